from ablate.v1 import access_pb2 as _access_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Dataset(_message.Message):
    __slots__ = ["bytes", "characters", "create_time", "damaged", "display_name", "documents", "expire_time", "kind", "name", "owner", "private", "sha256", "vocabulary"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    characters: int
    create_time: _timestamp_pb2.Timestamp
    damaged: bool
    display_name: str
    documents: int
    expire_time: _timestamp_pb2.Timestamp
    kind: DatasetKind.Value
    name: str
    owner: str
    private: bool
    sha256: str
    vocabulary: int
    def __init__(self, name: _Optional[str] = ..., display_name: _Optional[str] = ..., sha256: _Optional[str] = ..., bytes: _Optional[int] = ..., documents: _Optional[int] = ..., characters: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., damaged: bool = ..., owner: _Optional[str] = ..., private: bool = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Union[DatasetKind.Value, str]] = ..., vocabulary: _Optional[int] = ...) -> None: ...

class DatasetChunk(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class DatasetKind(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    files: DatasetKind.Value
    tagged: DatasetKind.Value
    text: DatasetKind.Value
    tokenizer: DatasetKind.Value
    tokens: DatasetKind.Value
    unspecified: DatasetKind.Value
    def __init__(self) -> None: ...

class DeleteDatasetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DownloadDatasetRequest(_message.Message):
    __slots__ = ["name", "offset"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class GetDatasetRequest(_message.Message):
    __slots__ = ["name", "private", "sha256", "verify"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    name: str
    private: bool
    sha256: str
    verify: bool
    def __init__(self, name: _Optional[str] = ..., verify: bool = ..., sha256: _Optional[str] = ..., private: bool = ...) -> None: ...

class GetUploadRequest(_message.Message):
    __slots__ = ["sha256"]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    def __init__(self, sha256: _Optional[str] = ...) -> None: ...

class ListDatasetsRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDatasetsResponse(_message.Message):
    __slots__ = ["datasets", "next_page_token"]
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    datasets: _containers.RepeatedCompositeFieldContainer[Dataset]
    next_page_token: str
    def __init__(self, datasets: _Optional[_Iterable[_Union[Dataset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PartialUpload(_message.Message):
    __slots__ = ["bytes", "in_use"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    in_use: bool
    def __init__(self, bytes: _Optional[int] = ..., in_use: bool = ...) -> None: ...

class UploadDatasetRequest(_message.Message):
    __slots__ = ["data", "display_name", "for_experiment", "offset", "private", "sha256"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    FOR_EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    display_name: str
    for_experiment: bool
    offset: int
    private: bool
    sha256: str
    def __init__(self, display_name: _Optional[str] = ..., sha256: _Optional[str] = ..., data: _Optional[bytes] = ..., private: bool = ..., for_experiment: bool = ..., offset: _Optional[int] = ...) -> None: ...
