from ablate.v1 import comparison_pb2 as _comparison_pb2
from ablate.v1 import spec_pb2 as _spec_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ImportOptions(_message.Message):
    __slots__ = ["at", "baseline", "best", "better", "gate", "margin", "metric", "name", "names", "note", "notes", "private", "question", "request_id", "seed", "settings", "source", "tags", "tune", "validate_only"]
    class BaselineEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AT_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    BETTER_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TUNE_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    at: int
    baseline: _containers.ScalarMap[str, str]
    best: bool
    better: _spec_pb2.Better.Value
    gate: _comparison_pb2.GateRequest
    margin: float
    metric: str
    name: str
    names: str
    note: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    private: bool
    question: str
    request_id: str
    seed: str
    settings: _containers.RepeatedScalarFieldContainer[str]
    source: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    tune: _containers.RepeatedScalarFieldContainer[str]
    validate_only: bool
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., question: _Optional[str] = ..., private: bool = ..., tags: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., source: _Optional[str] = ..., settings: _Optional[_Iterable[str]] = ..., tune: _Optional[_Iterable[str]] = ..., seed: _Optional[str] = ..., names: _Optional[str] = ..., metric: _Optional[str] = ..., best: bool = ..., at: _Optional[int] = ..., better: _Optional[_Union[_spec_pb2.Better.Value, str]] = ..., margin: _Optional[float] = ..., baseline: _Optional[_Mapping[str, str]] = ..., gate: _Optional[_Union[_comparison_pb2.GateRequest, _Mapping]] = ..., validate_only: bool = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ["options", "runs"]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    options: ImportOptions
    runs: _containers.RepeatedCompositeFieldContainer[ImportedRun]
    def __init__(self, options: _Optional[_Union[ImportOptions, _Mapping]] = ..., runs: _Optional[_Iterable[_Union[ImportedRun, _Mapping]]] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ["comparison", "experiment", "notes", "repeated", "reused", "runs"]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    comparison: _comparison_pb2.Comparison
    experiment: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    repeated: bool
    reused: int
    runs: int
    def __init__(self, experiment: _Optional[str] = ..., repeated: bool = ..., runs: _Optional[int] = ..., reused: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., comparison: _Optional[_Union[_comparison_pb2.Comparison, _Mapping]] = ...) -> None: ...

class ImportedRun(_message.Message):
    __slots__ = ["end_time", "name", "series", "settings", "start_time", "state"]
    class SettingsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    end_time: _timestamp_pb2.Timestamp
    name: str
    series: _containers.RepeatedCompositeFieldContainer[ImportedSeries]
    settings: _containers.MessageMap[str, _struct_pb2.Value]
    start_time: _timestamp_pb2.Timestamp
    state: ImportedState.Value
    def __init__(self, name: _Optional[str] = ..., settings: _Optional[_Mapping[str, _struct_pb2.Value]] = ..., state: _Optional[_Union[ImportedState.Value, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., series: _Optional[_Iterable[_Union[ImportedSeries, _Mapping]]] = ...) -> None: ...

class ImportedSeries(_message.Message):
    __slots__ = ["groups", "items", "key", "steps", "values"]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    items: _containers.RepeatedScalarFieldContainer[str]
    key: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, key: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ..., steps: _Optional[_Iterable[int]] = ..., items: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportedState(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    failed: ImportedState.Value
    finished: ImportedState.Value
    pruned: ImportedState.Value
    unfinished: ImportedState.Value
    unspecified: ImportedState.Value
    def __init__(self) -> None: ...
