from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import import_pb2 as _import_pb2
from ablate.v1 import run_pb2 as _run_pb2
from ablate.v1 import spec_pb2 as _spec_pb2
from ablate.v1 import worker_pb2 as _worker_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnalysisCounts(_message.Message):
    __slots__ = ["cancelled", "done", "failed", "failure", "planned", "queued", "running"]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    done: int
    failed: int
    failure: str
    planned: bool
    queued: int
    running: int
    def __init__(self, planned: bool = ..., queued: _Optional[int] = ..., running: _Optional[int] = ..., done: _Optional[int] = ..., failed: _Optional[int] = ..., cancelled: _Optional[int] = ..., failure: _Optional[str] = ...) -> None: ...

class CancelExperimentRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Cell(_message.Message):
    __slots__ = ["continued_from", "continued_step", "labels", "name", "reused", "run", "seed", "state"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTINUED_FROM_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_STEP_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    continued_from: str
    continued_step: int
    labels: _containers.ScalarMap[str, str]
    name: str
    reused: bool
    run: str
    seed: int
    state: _run_pb2.RunState.Value
    def __init__(self, name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., seed: _Optional[int] = ..., run: _Optional[str] = ..., state: _Optional[_Union[_run_pb2.RunState.Value, str]] = ..., reused: bool = ..., continued_from: _Optional[str] = ..., continued_step: _Optional[int] = ...) -> None: ...

class CellValue(_message.Message):
    __slots__ = ["cell", "key", "value"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    cell: str
    key: str
    value: float
    def __init__(self, cell: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class CreateExperimentRequest(_message.Message):
    __slots__ = ["changes", "extends", "files", "find_identical", "fresh", "name", "note", "overrides", "private", "request_id", "seeds", "spec", "tags", "text", "validate_only"]
    class FilesEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OverridesEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    EXTENDS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    FIND_IDENTICAL_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedScalarFieldContainer[str]
    extends: str
    files: _containers.ScalarMap[str, str]
    find_identical: bool
    fresh: bool
    name: str
    note: str
    overrides: _containers.MessageMap[str, _struct_pb2.Value]
    private: bool
    request_id: str
    seeds: _spec_pb2.Seeds
    spec: _spec_pb2.ExperimentSpec
    tags: _containers.RepeatedScalarFieldContainer[str]
    text: str
    validate_only: bool
    def __init__(self, request_id: _Optional[str] = ..., spec: _Optional[_Union[_spec_pb2.ExperimentSpec, _Mapping]] = ..., overrides: _Optional[_Mapping[str, _struct_pb2.Value]] = ..., fresh: bool = ..., validate_only: bool = ..., private: bool = ..., tags: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., extends: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ..., find_identical: bool = ..., text: _Optional[str] = ..., files: _Optional[_Mapping[str, str]] = ..., seeds: _Optional[_Union[_spec_pb2.Seeds, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class CreateExperimentResponse(_message.Message):
    __slots__ = ["analyses", "cells", "differs_only_in_evaluation", "estimate", "experiment", "files", "identical_to", "notes", "parameters", "problems", "reused", "trainers"]
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_ONLY_IN_EVALUATION_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    IDENTICAL_TO_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    analyses: int
    cells: _containers.RepeatedCompositeFieldContainer[Cell]
    differs_only_in_evaluation: _containers.RepeatedScalarFieldContainer[str]
    estimate: Estimate
    experiment: Experiment
    files: _containers.RepeatedCompositeFieldContainer[NamedFile]
    identical_to: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    parameters: _containers.RepeatedCompositeFieldContainer[SettingParameters]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    reused: int
    trainers: _containers.RepeatedCompositeFieldContainer[TrainerUse]
    def __init__(self, experiment: _Optional[_Union[Experiment, _Mapping]] = ..., cells: _Optional[_Iterable[_Union[Cell, _Mapping]]] = ..., reused: _Optional[int] = ..., differs_only_in_evaluation: _Optional[_Iterable[str]] = ..., estimate: _Optional[_Union[Estimate, _Mapping]] = ..., problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., parameters: _Optional[_Iterable[_Union[SettingParameters, _Mapping]]] = ..., trainers: _Optional[_Iterable[_Union[TrainerUse, _Mapping]]] = ..., analyses: _Optional[int] = ..., identical_to: _Optional[str] = ..., files: _Optional[_Iterable[_Union[NamedFile, _Mapping]]] = ...) -> None: ...

class DeleteExperimentRequest(_message.Message):
    __slots__ = ["name", "validate_only"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    validate_only: bool
    def __init__(self, name: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class DeleteExperimentResponse(_message.Message):
    __slots__ = ["analyses", "bytes", "checkpoint_of", "device_time", "runs", "shared_runs", "shared_with"]
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OF_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SHARED_RUNS_FIELD_NUMBER: _ClassVar[int]
    SHARED_WITH_FIELD_NUMBER: _ClassVar[int]
    analyses: int
    bytes: int
    checkpoint_of: _containers.RepeatedScalarFieldContainer[str]
    device_time: _duration_pb2.Duration
    runs: int
    shared_runs: int
    shared_with: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, runs: _Optional[int] = ..., analyses: _Optional[int] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., bytes: _Optional[int] = ..., shared_runs: _Optional[int] = ..., shared_with: _Optional[_Iterable[str]] = ..., checkpoint_of: _Optional[_Iterable[str]] = ...) -> None: ...

class DiffExperimentsRequest(_message.Message):
    __slots__ = ["left", "right"]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: str
    right: str
    def __init__(self, left: _Optional[str] = ..., right: _Optional[str] = ...) -> None: ...

class DiffExperimentsResponse(_message.Message):
    __slots__ = ["fields", "left", "right"]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[FieldDifference]
    left: str
    right: str
    def __init__(self, left: _Optional[str] = ..., right: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[FieldDifference, _Mapping]]] = ...) -> None: ...

class Estimate(_message.Message):
    __slots__ = ["bytes", "device_time", "measured", "wall_time"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    device_time: _duration_pb2.Duration
    measured: bool
    wall_time: _duration_pb2.Duration
    def __init__(self, device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., wall_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., bytes: _Optional[int] = ..., measured: bool = ...) -> None: ...

class Experiment(_message.Message):
    __slots__ = ["analyses", "archived", "changes", "counts", "create_time", "end_time", "extends", "name", "note", "owner", "paused", "priority", "private", "spec", "stalled", "state", "tags", "why_cancelled"]
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTENDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    WHY_CANCELLED_FIELD_NUMBER: _ClassVar[int]
    analyses: AnalysisCounts
    archived: bool
    changes: _containers.RepeatedScalarFieldContainer[str]
    counts: RunCounts
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    extends: str
    name: str
    note: str
    owner: str
    paused: bool
    priority: _spec_pb2.Priority.Value
    private: bool
    spec: _spec_pb2.ExperimentSpec
    stalled: str
    state: ExperimentState.Value
    tags: _containers.RepeatedScalarFieldContainer[str]
    why_cancelled: str
    def __init__(self, name: _Optional[str] = ..., owner: _Optional[str] = ..., spec: _Optional[_Union[_spec_pb2.ExperimentSpec, _Mapping]] = ..., state: _Optional[_Union[ExperimentState.Value, str]] = ..., counts: _Optional[_Union[RunCounts, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., analyses: _Optional[_Union[AnalysisCounts, _Mapping]] = ..., private: bool = ..., tags: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., archived: bool = ..., extends: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ..., why_cancelled: _Optional[str] = ..., paused: bool = ..., priority: _Optional[_Union[_spec_pb2.Priority.Value, str]] = ..., stalled: _Optional[str] = ...) -> None: ...

class ExperimentEvent(_message.Message):
    __slots__ = ["analyses", "cell", "counts", "last", "run", "snapshot", "stalled", "state", "step", "steps", "token"]
    class LastEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    CELL_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    STALLED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    analyses: AnalysisCounts
    cell: str
    counts: RunCounts
    last: _containers.ScalarMap[str, float]
    run: str
    snapshot: Snapshot
    stalled: str
    state: _run_pb2.RunState.Value
    step: int
    steps: int
    token: str
    def __init__(self, cell: _Optional[str] = ..., run: _Optional[str] = ..., state: _Optional[_Union[_run_pb2.RunState.Value, str]] = ..., step: _Optional[int] = ..., steps: _Optional[int] = ..., last: _Optional[_Mapping[str, float]] = ..., token: _Optional[str] = ..., counts: _Optional[_Union[RunCounts, _Mapping]] = ..., analyses: _Optional[_Union[AnalysisCounts, _Mapping]] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ..., stalled: _Optional[str] = ...) -> None: ...

class ExperimentState(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ACTIVE: ExperimentState.Value
    CANCELLED: ExperimentState.Value
    ENDED: ExperimentState.Value
    unspecified: ExperimentState.Value
    def __init__(self) -> None: ...

class FieldDifference(_message.Message):
    __slots__ = ["left", "path", "right"]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: _containers.RepeatedScalarFieldContainer[str]
    path: str
    right: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[str] = ..., left: _Optional[_Iterable[str]] = ..., right: _Optional[_Iterable[str]] = ...) -> None: ...

class GetExperimentRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Lane(_message.Message):
    __slots__ = ["cell", "step", "steps", "training", "worker"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    cell: str
    step: int
    steps: int
    training: _worker_pb2.TrainingRun
    worker: str
    def __init__(self, worker: _Optional[str] = ..., cell: _Optional[str] = ..., step: _Optional[int] = ..., steps: _Optional[int] = ..., training: _Optional[_Union[_worker_pb2.TrainingRun, _Mapping]] = ...) -> None: ...

class ListExperimentsRequest(_message.Message):
    __slots__ = ["archived", "owner", "page_size", "page_token", "tag"]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    archived: bool
    owner: str
    page_size: int
    page_token: str
    tag: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., owner: _Optional[str] = ..., tag: _Optional[str] = ..., archived: bool = ...) -> None: ...

class ListExperimentsResponse(_message.Message):
    __slots__ = ["experiments", "next_page_token"]
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    experiments: _containers.RepeatedCompositeFieldContainer[Experiment]
    next_page_token: str
    def __init__(self, experiments: _Optional[_Iterable[_Union[Experiment, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NamedFile(_message.Message):
    __slots__ = ["field", "in_text", "is_files", "path"]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    IN_TEXT_FIELD_NUMBER: _ClassVar[int]
    IS_FILES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    field: str
    in_text: bool
    is_files: bool
    path: str
    def __init__(self, path: _Optional[str] = ..., field: _Optional[str] = ..., in_text: bool = ..., is_files: bool = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ["allowed", "column", "field", "line", "message", "value"]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    allowed: str
    column: int
    field: str
    line: int
    message: str
    value: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[str] = ..., allowed: _Optional[str] = ..., message: _Optional[str] = ..., line: _Optional[int] = ..., column: _Optional[int] = ...) -> None: ...

class QueueEnd(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    first: QueueEnd.Value
    last: QueueEnd.Value
    unspecified: QueueEnd.Value
    def __init__(self) -> None: ...

class RunCounts(_message.Message):
    __slots__ = ["cancelled", "diverged", "done", "failed", "queued", "running"]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    diverged: int
    done: int
    failed: int
    queued: int
    running: int
    def __init__(self, queued: _Optional[int] = ..., running: _Optional[int] = ..., done: _Optional[int] = ..., diverged: _Optional[int] = ..., failed: _Optional[int] = ..., cancelled: _Optional[int] = ...) -> None: ...

class SettingMean(_message.Message):
    __slots__ = ["cells", "diverged", "labels", "mean", "n"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CELLS_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    cells: int
    diverged: int
    labels: _containers.ScalarMap[str, str]
    mean: float
    n: int
    def __init__(self, labels: _Optional[_Mapping[str, str]] = ..., mean: _Optional[float] = ..., n: _Optional[int] = ..., diverged: _Optional[int] = ..., cells: _Optional[int] = ...) -> None: ...

class SettingParameters(_message.Message):
    __slots__ = ["labels", "parameters"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.ScalarMap[str, str]
    parameters: int
    def __init__(self, labels: _Optional[_Mapping[str, str]] = ..., parameters: _Optional[int] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ["failed", "fraction", "lanes", "newest", "settings", "steps_per_second", "time_left"]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TIME_LEFT_FIELD_NUMBER: _ClassVar[int]
    failed: _containers.RepeatedScalarFieldContainer[str]
    fraction: float
    lanes: _containers.RepeatedCompositeFieldContainer[Lane]
    newest: CellValue
    settings: _containers.RepeatedCompositeFieldContainer[SettingMean]
    steps_per_second: float
    time_left: _duration_pb2.Duration
    def __init__(self, fraction: _Optional[float] = ..., steps_per_second: _Optional[float] = ..., time_left: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lanes: _Optional[_Iterable[_Union[Lane, _Mapping]]] = ..., settings: _Optional[_Iterable[_Union[SettingMean, _Mapping]]] = ..., failed: _Optional[_Iterable[str]] = ..., newest: _Optional[_Union[CellValue, _Mapping]] = ...) -> None: ...

class TrainerUse(_message.Message):
    __slots__ = ["runs", "trainer", "why_not_native"]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    WHY_NOT_NATIVE_FIELD_NUMBER: _ClassVar[int]
    runs: int
    trainer: str
    why_not_native: str
    def __init__(self, trainer: _Optional[str] = ..., runs: _Optional[int] = ..., why_not_native: _Optional[str] = ...) -> None: ...

class UpdateExperimentRequest(_message.Message):
    __slots__ = ["add_tags", "archived", "move", "name", "new_name", "note", "paused", "priority", "remove_tags"]
    ADD_TAGS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REMOVE_TAGS_FIELD_NUMBER: _ClassVar[int]
    add_tags: _containers.RepeatedScalarFieldContainer[str]
    archived: bool
    move: QueueEnd.Value
    name: str
    new_name: str
    note: str
    paused: bool
    priority: _spec_pb2.Priority.Value
    remove_tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., new_name: _Optional[str] = ..., add_tags: _Optional[_Iterable[str]] = ..., remove_tags: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., archived: bool = ..., paused: bool = ..., priority: _Optional[_Union[_spec_pb2.Priority.Value, str]] = ..., move: _Optional[_Union[QueueEnd.Value, str]] = ...) -> None: ...

class WatchExperimentRequest(_message.Message):
    __slots__ = ["keys", "name", "snapshots", "token"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    name: str
    snapshots: bool
    token: str
    def __init__(self, name: _Optional[str] = ..., token: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., snapshots: bool = ...) -> None: ...
