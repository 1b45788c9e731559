from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import spec_pb2 as _spec_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetRunRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListRunEventsRequest(_message.Message):
    __slots__ = ["run"]
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class ListRunEventsResponse(_message.Message):
    __slots__ = ["events"]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[RunEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[RunEvent, _Mapping]]] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ["archived", "columns", "experiment", "filter", "order_by", "page_size", "page_token", "part"]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    archived: bool
    columns: _containers.RepeatedScalarFieldContainer[str]
    experiment: str
    filter: str
    order_by: str
    page_size: int
    page_token: str
    part: str
    def __init__(self, experiment: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., part: _Optional[str] = ..., archived: bool = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ["next_page_token", "rows"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    rows: _containers.RepeatedCompositeFieldContainer[RunRow]
    def __init__(self, rows: _Optional[_Iterable[_Union[RunRow, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ["build", "contended_time", "continued_from", "continued_step", "device", "device_time", "environment", "tokens", "trainer", "worker"]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    CONTENDED_TIME_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_FROM_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_STEP_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    build: str
    contended_time: _duration_pb2.Duration
    continued_from: str
    continued_step: int
    device: str
    device_time: _duration_pb2.Duration
    environment: str
    tokens: int
    trainer: str
    worker: str
    def __init__(self, trainer: _Optional[str] = ..., device: _Optional[str] = ..., build: _Optional[str] = ..., worker: _Optional[str] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., contended_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., tokens: _Optional[int] = ..., environment: _Optional[str] = ..., continued_from: _Optional[str] = ..., continued_step: _Optional[int] = ...) -> None: ...

class ReadRunLogRequest(_message.Message):
    __slots__ = ["position", "run"]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    position: int
    run: str
    def __init__(self, run: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class ReadRunLogResponse(_message.Message):
    __slots__ = ["complete", "next", "text"]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    complete: bool
    next: int
    text: str
    def __init__(self, text: _Optional[str] = ..., next: _Optional[int] = ..., complete: bool = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ["attempts", "create_time", "end_time", "failure", "name", "parameters", "provenance", "resolved_spec", "stalled", "start_time", "state", "step", "steps", "summaries", "trajectory"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_SPEC_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    failure: str
    name: str
    parameters: int
    provenance: Provenance
    resolved_spec: _spec_pb2.RunSpec
    stalled: str
    start_time: _timestamp_pb2.Timestamp
    state: RunState.Value
    step: int
    steps: int
    summaries: _containers.RepeatedCompositeFieldContainer[Summary]
    trajectory: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[RunState.Value, str]] = ..., trajectory: _Optional[str] = ..., resolved_spec: _Optional[_Union[_spec_pb2.RunSpec, _Mapping]] = ..., step: _Optional[int] = ..., steps: _Optional[int] = ..., attempts: _Optional[int] = ..., failure: _Optional[str] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., summaries: _Optional[_Iterable[_Union[Summary, _Mapping]]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., parameters: _Optional[int] = ..., stalled: _Optional[str] = ...) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ["kind", "message", "step", "time", "worker"]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    kind: str
    message: str
    step: int
    time: _timestamp_pb2.Timestamp
    worker: str
    def __init__(self, time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., step: _Optional[int] = ..., worker: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class RunRow(_message.Message):
    __slots__ = ["cell", "continued_from", "continued_step", "experiment", "failure", "labels", "run", "seed", "state", "step", "steps", "summaries", "values"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CELL_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_FROM_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_STEP_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    cell: str
    continued_from: str
    continued_step: int
    experiment: str
    failure: str
    labels: _containers.ScalarMap[str, str]
    run: str
    seed: int
    state: RunState.Value
    step: int
    steps: int
    summaries: _containers.RepeatedCompositeFieldContainer[Summary]
    values: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Value]
    def __init__(self, cell: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., seed: _Optional[int] = ..., run: _Optional[str] = ..., state: _Optional[_Union[RunState.Value, str]] = ..., step: _Optional[int] = ..., steps: _Optional[int] = ..., summaries: _Optional[_Iterable[_Union[Summary, _Mapping]]] = ..., failure: _Optional[str] = ..., continued_from: _Optional[str] = ..., continued_step: _Optional[int] = ..., experiment: _Optional[str] = ..., values: _Optional[_Iterable[_Union[_struct_pb2.Value, _Mapping]]] = ...) -> None: ...

class RunState(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CANCELLED: RunState.Value
    DIVERGED: RunState.Value
    DONE: RunState.Value
    FAILED: RunState.Value
    QUEUED: RunState.Value
    RUNNING: RunState.Value
    unspecified: RunState.Value
    def __init__(self) -> None: ...

class Summary(_message.Message):
    __slots__ = ["count", "first", "first_nonfinite_step", "key", "last", "max", "mean", "min", "nonfinite"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FIRST_NONFINITE_STEP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    NONFINITE_FIELD_NUMBER: _ClassVar[int]
    count: int
    first: float
    first_nonfinite_step: int
    key: str
    last: float
    max: float
    mean: float
    min: float
    nonfinite: int
    def __init__(self, key: _Optional[str] = ..., first: _Optional[float] = ..., last: _Optional[float] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., mean: _Optional[float] = ..., count: _Optional[int] = ..., nonfinite: _Optional[int] = ..., first_nonfinite_step: _Optional[int] = ...) -> None: ...
