from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import analysis_options_pb2 as _analysis_options_pb2
from ablate.v1 import experiment_pb2 as _experiment_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Analysis(_message.Message):
    __slots__ = ["analysis", "arrays", "artifact", "artifact_bytes", "create_time", "device_time", "end_time", "failure", "inputs", "labels", "name", "notes", "numbers", "owner", "private", "progress", "seed", "start_time", "state", "subjects"]
    class NumbersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AnalysisNumber
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AnalysisNumber, _Mapping]] = ...) -> None: ...
    ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    analysis: _analysis_options_pb2.AnalysisKind
    arrays: _containers.RepeatedCompositeFieldContainer[AnalysisArrayInfo]
    artifact: str
    artifact_bytes: int
    create_time: _timestamp_pb2.Timestamp
    device_time: _duration_pb2.Duration
    end_time: _timestamp_pb2.Timestamp
    failure: str
    inputs: _analysis_options_pb2.AnalysisInputs
    labels: _containers.RepeatedScalarFieldContainer[str]
    name: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    numbers: _containers.MessageMap[str, AnalysisNumber]
    owner: str
    private: bool
    progress: float
    seed: int
    start_time: _timestamp_pb2.Timestamp
    state: AnalysisState.Value
    subjects: _containers.RepeatedCompositeFieldContainer[AnalysisSubject]
    def __init__(self, name: _Optional[str] = ..., analysis: _Optional[_Union[_analysis_options_pb2.AnalysisKind, _Mapping]] = ..., inputs: _Optional[_Union[_analysis_options_pb2.AnalysisInputs, _Mapping]] = ..., seed: _Optional[int] = ..., subjects: _Optional[_Iterable[_Union[AnalysisSubject, _Mapping]]] = ..., state: _Optional[_Union[AnalysisState.Value, str]] = ..., progress: _Optional[float] = ..., numbers: _Optional[_Mapping[str, AnalysisNumber]] = ..., arrays: _Optional[_Iterable[_Union[AnalysisArrayInfo, _Mapping]]] = ..., artifact: _Optional[str] = ..., artifact_bytes: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., failure: _Optional[str] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., owner: _Optional[str] = ..., private: bool = ..., labels: _Optional[_Iterable[str]] = ...) -> None: ...

class AnalysisArrayInfo(_message.Message):
    __slots__ = ["axes", "name", "shape", "type"]
    AXES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    axes: _containers.RepeatedScalarFieldContainer[str]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    type: str
    def __init__(self, name: _Optional[str] = ..., axes: _Optional[_Iterable[str]] = ..., shape: _Optional[_Iterable[int]] = ..., type: _Optional[str] = ...) -> None: ...

class AnalysisArraysChunk(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class AnalysisCost(_message.Message):
    __slots__ = ["array_bytes", "device_time", "forwards", "measured", "state_bytes"]
    ARRAY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    FORWARDS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    STATE_BYTES_FIELD_NUMBER: _ClassVar[int]
    array_bytes: int
    device_time: _duration_pb2.Duration
    forwards: float
    measured: bool
    state_bytes: int
    def __init__(self, forwards: _Optional[float] = ..., state_bytes: _Optional[int] = ..., array_bytes: _Optional[int] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., measured: bool = ...) -> None: ...

class AnalysisNumber(_message.Message):
    __slots__ = ["undefined", "value"]
    UNDEFINED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    undefined: UndefinedNumber.Value
    value: float
    def __init__(self, value: _Optional[float] = ..., undefined: _Optional[_Union[UndefinedNumber.Value, str]] = ...) -> None: ...

class AnalysisState(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CANCELLED: AnalysisState.Value
    DONE: AnalysisState.Value
    FAILED: AnalysisState.Value
    QUEUED: AnalysisState.Value
    RUNNING: AnalysisState.Value
    unspecified: AnalysisState.Value
    def __init__(self) -> None: ...

class AnalysisSubject(_message.Message):
    __slots__ = ["cell", "experiment", "run", "step"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    cell: str
    experiment: str
    run: str
    step: int
    def __init__(self, run: _Optional[str] = ..., experiment: _Optional[str] = ..., cell: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class CancelAnalysisRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CreateAnalysisRequest(_message.Message):
    __slots__ = ["analysis", "inputs", "label", "seed", "subjects", "validate_only"]
    ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    analysis: _analysis_options_pb2.AnalysisKind
    inputs: _analysis_options_pb2.AnalysisInputs
    label: str
    seed: int
    subjects: _containers.RepeatedCompositeFieldContainer[AnalysisSubject]
    validate_only: bool
    def __init__(self, analysis: _Optional[_Union[_analysis_options_pb2.AnalysisKind, _Mapping]] = ..., subjects: _Optional[_Iterable[_Union[AnalysisSubject, _Mapping]]] = ..., inputs: _Optional[_Union[_analysis_options_pb2.AnalysisInputs, _Mapping]] = ..., seed: _Optional[int] = ..., validate_only: bool = ..., label: _Optional[str] = ...) -> None: ...

class CreateAnalysisResponse(_message.Message):
    __slots__ = ["analysis", "cost", "label", "problems", "reused", "unlabelled"]
    ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    UNLABELLED_FIELD_NUMBER: _ClassVar[int]
    analysis: Analysis
    cost: AnalysisCost
    label: str
    problems: _containers.RepeatedCompositeFieldContainer[_experiment_pb2.Problem]
    reused: bool
    unlabelled: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, analysis: _Optional[_Union[Analysis, _Mapping]] = ..., reused: bool = ..., cost: _Optional[_Union[AnalysisCost, _Mapping]] = ..., problems: _Optional[_Iterable[_Union[_experiment_pb2.Problem, _Mapping]]] = ..., unlabelled: _Optional[_Iterable[str]] = ..., label: _Optional[str] = ...) -> None: ...

class DeleteAnalysisRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetAnalysisRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListAnalysesRequest(_message.Message):
    __slots__ = ["page_size", "page_token", "parent"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    parent: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAnalysesResponse(_message.Message):
    __slots__ = ["analyses", "next_page_token"]
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    analyses: _containers.RepeatedCompositeFieldContainer[Analysis]
    next_page_token: str
    def __init__(self, analyses: _Optional[_Iterable[_Union[Analysis, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReadAnalysisArraysRequest(_message.Message):
    __slots__ = ["name", "offset"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class UndefinedNumber(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    NON_FINITE: UndefinedNumber.Value
    NO_ATTENTION: UndefinedNumber.Value
    NO_NORM: UndefinedNumber.Value
    ONE_CLASS: UndefinedNumber.Value
    TOO_FEW_TOKENS: UndefinedNumber.Value
    UNNORMALISED: UndefinedNumber.Value
    ZERO_DENOMINATOR: UndefinedNumber.Value
    ZERO_GRADIENT: UndefinedNumber.Value
    ZERO_VARIANCE: UndefinedNumber.Value
    unspecified: UndefinedNumber.Value
    def __init__(self) -> None: ...

class WatchAnalysisRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
