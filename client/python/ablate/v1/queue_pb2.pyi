from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import spec_pb2 as _spec_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListQueueRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ListQueueResponse(_message.Message):
    __slots__ = ["experiments", "left_out"]
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    experiments: _containers.RepeatedCompositeFieldContainer[QueuedExperiment]
    left_out: int
    def __init__(self, experiments: _Optional[_Iterable[_Union[QueuedExperiment, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...

class QueuedExperiment(_message.Message):
    __slots__ = ["experiment", "latest", "owner", "paused", "priority", "queued", "running", "soonest", "title", "waits"]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SOONEST_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    experiment: str
    latest: _duration_pb2.Duration
    owner: str
    paused: bool
    priority: _spec_pb2.Priority.Value
    queued: int
    running: int
    soonest: _duration_pb2.Duration
    title: str
    waits: str
    def __init__(self, experiment: _Optional[str] = ..., title: _Optional[str] = ..., owner: _Optional[str] = ..., priority: _Optional[_Union[_spec_pb2.Priority.Value, str]] = ..., paused: bool = ..., queued: _Optional[int] = ..., running: _Optional[int] = ..., waits: _Optional[str] = ..., soonest: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., latest: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
