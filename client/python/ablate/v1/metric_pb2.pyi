from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import comparison_pb2 as _comparison_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListMetricsRequest(_message.Message):
    __slots__ = ["cell", "page_size", "page_token", "parent"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    cell: str
    page_size: int
    page_token: str
    parent: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., cell: _Optional[str] = ...) -> None: ...

class ListMetricsResponse(_message.Message):
    __slots__ = ["metrics", "next_page_token"]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    metrics: _containers.RepeatedCompositeFieldContainer[MetricInfo]
    next_page_token: str
    def __init__(self, metrics: _Optional[_Iterable[_Union[MetricInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class MetricInfo(_message.Message):
    __slots__ = ["count", "key", "of_analysis"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OF_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    count: int
    key: str
    of_analysis: bool
    def __init__(self, key: _Optional[str] = ..., count: _Optional[int] = ..., of_analysis: bool = ...) -> None: ...

class QueryMetricsRequest(_message.Message):
    __slots__ = ["cell", "experiment", "first_step", "keys", "last_step", "max_points", "runs"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LAST_STEP_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    cell: str
    experiment: str
    first_step: int
    keys: _containers.RepeatedScalarFieldContainer[str]
    last_step: int
    max_points: int
    runs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, experiment: _Optional[str] = ..., runs: _Optional[_Iterable[str]] = ..., keys: _Optional[_Iterable[str]] = ..., first_step: _Optional[int] = ..., last_step: _Optional[int] = ..., max_points: _Optional[int] = ..., cell: _Optional[str] = ...) -> None: ...

class Series(_message.Message):
    __slots__ = ["cell", "key", "run", "steps", "values"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    cell: str
    key: str
    run: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, cell: _Optional[str] = ..., run: _Optional[str] = ..., key: _Optional[str] = ..., steps: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class SqlRequest(_message.Message):
    __slots__ = ["statement"]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    statement: str
    def __init__(self, statement: _Optional[str] = ...) -> None: ...

class SqlRow(_message.Message):
    __slots__ = ["values"]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[SqlValue]
    def __init__(self, values: _Optional[_Iterable[_Union[SqlValue, _Mapping]]] = ...) -> None: ...

class SqlRows(_message.Message):
    __slots__ = ["columns", "rows"]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[str]
    rows: _containers.RepeatedCompositeFieldContainer[SqlRow]
    def __init__(self, columns: _Optional[_Iterable[str]] = ..., rows: _Optional[_Iterable[_Union[SqlRow, _Mapping]]] = ...) -> None: ...

class SqlValue(_message.Message):
    __slots__ = ["blob", "integer", "real", "text"]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    blob: bytes
    integer: int
    real: float
    text: str
    def __init__(self, integer: _Optional[int] = ..., real: _Optional[float] = ..., text: _Optional[str] = ..., blob: _Optional[bytes] = ...) -> None: ...
