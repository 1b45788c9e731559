from ablate.v1 import access_pb2 as _access_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceUse(_message.Message):
    __slots__ = ["ecc_errors", "others", "used_bytes", "utilization", "watts"]
    ECC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    WATTS_FIELD_NUMBER: _ClassVar[int]
    ecc_errors: int
    others: int
    used_bytes: int
    utilization: int
    watts: int
    def __init__(self, utilization: _Optional[int] = ..., used_bytes: _Optional[int] = ..., others: _Optional[int] = ..., watts: _Optional[int] = ..., ecc_errors: _Optional[int] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ["next_page_token", "pending_pilots", "queued_analyses", "workers"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PENDING_PILOTS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_ANALYSES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    pending_pilots: _containers.RepeatedCompositeFieldContainer[PendingPilot]
    queued_analyses: int
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., queued_analyses: _Optional[int] = ..., pending_pilots: _Optional[_Iterable[_Union[PendingPilot, _Mapping]]] = ...) -> None: ...

class PendingPilot(_message.Message):
    __slots__ = ["cluster", "reason", "since", "worker"]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    reason: str
    since: _timestamp_pb2.Timestamp
    worker: str
    def __init__(self, worker: _Optional[str] = ..., cluster: _Optional[str] = ..., reason: _Optional[str] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TrainingRun(_message.Message):
    __slots__ = ["losses", "run", "steps_per_second"]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    losses: _containers.RepeatedScalarFieldContainer[float]
    run: str
    steps_per_second: float
    def __init__(self, run: _Optional[str] = ..., steps_per_second: _Optional[float] = ..., losses: _Optional[_Iterable[float]] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ["attach_time", "build", "busy_lanes", "device", "device_use", "end_time", "hidden_runs", "lanes", "name", "role", "runs", "stalled", "state", "training"]
    ATTACH_TIME_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    BUSY_LANES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_USE_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_RUNS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    attach_time: _timestamp_pb2.Timestamp
    build: str
    busy_lanes: int
    device: str
    device_use: DeviceUse
    end_time: _timestamp_pb2.Timestamp
    hidden_runs: int
    lanes: int
    name: str
    role: WorkerRole.Value
    runs: _containers.RepeatedScalarFieldContainer[str]
    stalled: str
    state: WorkerState.Value
    training: _containers.RepeatedCompositeFieldContainer[TrainingRun]
    def __init__(self, name: _Optional[str] = ..., device: _Optional[str] = ..., lanes: _Optional[int] = ..., state: _Optional[_Union[WorkerState.Value, str]] = ..., runs: _Optional[_Iterable[str]] = ..., hidden_runs: _Optional[int] = ..., build: _Optional[str] = ..., attach_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., role: _Optional[_Union[WorkerRole.Value, str]] = ..., stalled: _Optional[str] = ..., device_use: _Optional[_Union[DeviceUse, _Mapping]] = ..., training: _Optional[_Iterable[_Union[TrainingRun, _Mapping]]] = ..., busy_lanes: _Optional[int] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WorkerRole(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    analysis: WorkerRole.Value
    train: WorkerRole.Value
    unspecified: WorkerRole.Value
    def __init__(self) -> None: ...

class WorkerState(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    AWAY: WorkerState.Value
    BUSY: WorkerState.Value
    IDLE: WorkerState.Value
    unspecified: WorkerState.Value
    def __init__(self) -> None: ...
