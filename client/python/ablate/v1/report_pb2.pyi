from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import comparison_pb2 as _comparison_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExportFormat(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    csv: ExportFormat.Value
    jsonl: ExportFormat.Value
    tensorboard: ExportFormat.Value
    unspecified: ExportFormat.Value
    def __init__(self) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ["experiment", "format", "keys"]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    experiment: str
    format: ExportFormat.Value
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, experiment: _Optional[str] = ..., format: _Optional[_Union[ExportFormat.Value, str]] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class FigureFormat(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    pdf: FigureFormat.Value
    png: FigureFormat.Value
    svg: FigureFormat.Value
    unspecified: FigureFormat.Value
    def __init__(self) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ["data", "path"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    path: str
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class RenderFigureRequest(_message.Message):
    __slots__ = ["comparison", "format", "key", "kind", "step", "width"]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    comparison: _comparison_pb2.CompareRequest
    format: FigureFormat.Value
    key: str
    kind: str
    step: int
    width: float
    def __init__(self, comparison: _Optional[_Union[_comparison_pb2.CompareRequest, _Mapping]] = ..., kind: _Optional[str] = ..., format: _Optional[_Union[FigureFormat.Value, str]] = ..., width: _Optional[float] = ..., key: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class RenderFigureResponse(_message.Message):
    __slots__ = ["csv", "data", "media_type"]
    CSV_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    csv: str
    data: bytes
    media_type: str
    def __init__(self, data: _Optional[bytes] = ..., media_type: _Optional[str] = ..., csv: _Optional[str] = ...) -> None: ...

class RenderReportRequest(_message.Message):
    __slots__ = ["at", "baseline", "by", "experiments", "key", "output"]
    class BaselineEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AT_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    at: int
    baseline: _containers.ScalarMap[str, str]
    by: str
    experiments: _containers.RepeatedScalarFieldContainer[str]
    key: str
    output: str
    def __init__(self, experiments: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., by: _Optional[str] = ..., baseline: _Optional[_Mapping[str, str]] = ..., at: _Optional[int] = ..., output: _Optional[str] = ...) -> None: ...

class RenderTableRequest(_message.Message):
    __slots__ = ["columns", "comparison", "format", "label"]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[str]
    comparison: _comparison_pb2.CompareRequest
    format: TableFormat.Value
    label: str
    def __init__(self, comparison: _Optional[_Union[_comparison_pb2.CompareRequest, _Mapping]] = ..., format: _Optional[_Union[TableFormat.Value, str]] = ..., columns: _Optional[_Iterable[str]] = ..., label: _Optional[str] = ...) -> None: ...

class RenderTableResponse(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: str
    def __init__(self, data: _Optional[str] = ...) -> None: ...

class TableFormat(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    csv: TableFormat.Value
    latex: TableFormat.Value
    text: TableFormat.Value
    unspecified: TableFormat.Value
    def __init__(self) -> None: ...
