from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import report_pb2 as _report_pb2
from ablate.v1 import spec_pb2 as _spec_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeleteModelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExportModelRequest(_message.Message):
    __slots__ = ["cell", "experiment", "name", "step"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    cell: str
    experiment: str
    name: str
    step: int
    def __init__(self, name: _Optional[str] = ..., experiment: _Optional[str] = ..., cell: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class GenerateRequest(_message.Message):
    __slots__ = ["cell", "count", "experiment", "max_tokens", "model", "prompt", "prompt_ids", "run", "seed", "step", "stop", "temperature", "tokenizer", "top_k", "top_p"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    PROMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    cell: str
    count: int
    experiment: str
    max_tokens: int
    model: str
    prompt: str
    prompt_ids: _containers.RepeatedScalarFieldContainer[int]
    run: str
    seed: int
    step: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    temperature: float
    tokenizer: str
    top_k: int
    top_p: float
    def __init__(self, run: _Optional[str] = ..., experiment: _Optional[str] = ..., cell: _Optional[str] = ..., step: _Optional[int] = ..., count: _Optional[int] = ..., temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., seed: _Optional[int] = ..., prompt: _Optional[str] = ..., max_tokens: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ..., prompt_ids: _Optional[_Iterable[int]] = ..., model: _Optional[str] = ..., tokenizer: _Optional[str] = ...) -> None: ...

class GenerateResponse(_message.Message):
    __slots__ = ["sample", "summary"]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    sample: GeneratedSample
    summary: GenerateSummary
    def __init__(self, sample: _Optional[_Union[GeneratedSample, _Mapping]] = ..., summary: _Optional[_Union[GenerateSummary, _Mapping]] = ...) -> None: ...

class GenerateSummary(_message.Message):
    __slots__ = ["distinct_share", "in_training_data_share", "model", "run", "samples", "step"]
    DISTINCT_SHARE_FIELD_NUMBER: _ClassVar[int]
    IN_TRAINING_DATA_SHARE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    distinct_share: float
    in_training_data_share: float
    model: str
    run: str
    samples: int
    step: int
    def __init__(self, run: _Optional[str] = ..., step: _Optional[int] = ..., samples: _Optional[int] = ..., distinct_share: _Optional[float] = ..., in_training_data_share: _Optional[float] = ..., model: _Optional[str] = ...) -> None: ...

class GeneratedSample(_message.Message):
    __slots__ = ["ended", "in_training_data", "index", "stop", "text", "token_ids", "tokens"]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    IN_TRAINING_DATA_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    ended: bool
    in_training_data: bool
    index: int
    stop: str
    text: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    tokens: int
    def __init__(self, index: _Optional[int] = ..., text: _Optional[str] = ..., tokens: _Optional[int] = ..., ended: bool = ..., in_training_data: bool = ..., token_ids: _Optional[_Iterable[int]] = ..., stop: _Optional[str] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ["models", "next_page_token"]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ["bytes", "create_time", "model", "name", "notes", "owner", "parameters", "private", "sha256", "vocabulary"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    create_time: _timestamp_pb2.Timestamp
    model: _spec_pb2.ModelSpec
    name: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    owner: str
    parameters: int
    private: bool
    sha256: str
    vocabulary: int
    def __init__(self, name: _Optional[str] = ..., model: _Optional[_Union[_spec_pb2.ModelSpec, _Mapping]] = ..., vocabulary: _Optional[int] = ..., parameters: _Optional[int] = ..., sha256: _Optional[str] = ..., bytes: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., owner: _Optional[str] = ..., private: bool = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class UploadModelRequest(_message.Message):
    __slots__ = ["bytes", "data", "dropout", "file", "file_bytes", "files", "name", "norm_kind", "offset", "private", "sha256"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORM_KIND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    data: bytes
    dropout: float
    file: int
    file_bytes: _containers.RepeatedScalarFieldContainer[int]
    files: _containers.RepeatedScalarFieldContainer[str]
    name: str
    norm_kind: _spec_pb2.NormKind.Value
    offset: int
    private: bool
    sha256: str
    def __init__(self, name: _Optional[str] = ..., private: bool = ..., norm_kind: _Optional[_Union[_spec_pb2.NormKind.Value, str]] = ..., dropout: _Optional[float] = ..., files: _Optional[_Iterable[str]] = ..., bytes: _Optional[int] = ..., file: _Optional[int] = ..., data: _Optional[bytes] = ..., sha256: _Optional[str] = ..., file_bytes: _Optional[_Iterable[int]] = ..., offset: _Optional[int] = ...) -> None: ...
