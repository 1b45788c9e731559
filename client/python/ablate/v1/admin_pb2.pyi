from ablate.v1 import access_pb2 as _access_pb2
from ablate.v1 import join_pb2 as _join_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditEntry(_message.Message):
    __slots__ = ["method", "outcome", "resource", "time", "token", "user"]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    method: str
    outcome: str
    resource: str
    time: _timestamp_pb2.Timestamp
    token: str
    user: str
    def __init__(self, time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., user: _Optional[str] = ..., token: _Optional[str] = ..., method: _Optional[str] = ..., resource: _Optional[str] = ..., outcome: _Optional[str] = ...) -> None: ...

class CheckStoreRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class CheckStoreResponse(_message.Message):
    __slots__ = ["files", "left_out", "problems"]
    FILES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    files: int
    left_out: int
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, problems: _Optional[_Iterable[str]] = ..., left_out: _Optional[int] = ..., files: _Optional[int] = ...) -> None: ...

class CreateTokenRequest(_message.Message):
    __slots__ = ["lifetime", "note", "user"]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    lifetime: _duration_pb2.Duration
    note: str
    user: str
    def __init__(self, user: _Optional[str] = ..., note: _Optional[str] = ..., lifetime: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CreateTokenResponse(_message.Message):
    __slots__ = ["join", "token"]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    join: _join_pb2.JoinFile
    token: Token
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., join: _Optional[_Union[_join_pb2.JoinFile, _Mapping]] = ...) -> None: ...

class CreateUserRequest(_message.Message):
    __slots__ = ["programs", "role", "user"]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    programs: bool
    role: _access_pb2.Role.Value
    user: str
    def __init__(self, user: _Optional[str] = ..., role: _Optional[_Union[_access_pb2.Role.Value, str]] = ..., programs: bool = ...) -> None: ...

class DeleteUserRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class InitializeSharingRequest(_message.Message):
    __slots__ = ["address", "hosts", "user"]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    address: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    user: str
    def __init__(self, address: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., user: _Optional[str] = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ["method", "page_size", "page_token", "user"]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    method: str
    page_size: int
    page_token: str
    user: str
    def __init__(self, user: _Optional[str] = ..., method: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAuditResponse(_message.Message):
    __slots__ = ["entries", "next_page_token"]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ["page_size", "page_token", "user"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    user: str
    def __init__(self, user: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ["next_page_token", "tokens"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListUsersRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListUsersResponse(_message.Message):
    __slots__ = ["next_page_token", "users"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    users: _containers.RepeatedCompositeFieldContainer[User]
    def __init__(self, users: _Optional[_Iterable[_Union[User, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ["lanes", "queued_runs", "stored_bytes"]
    LANES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_RUNS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    lanes: int
    queued_runs: int
    stored_bytes: int
    def __init__(self, lanes: _Optional[int] = ..., queued_runs: _Optional[int] = ..., stored_bytes: _Optional[int] = ...) -> None: ...

class RenewCertificateRequest(_message.Message):
    __slots__ = ["drop_others", "hosts"]
    DROP_OTHERS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    drop_others: bool
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., drop_others: bool = ...) -> None: ...

class RenewCertificateResponse(_message.Message):
    __slots__ = ["expire_time", "hosts"]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    expire_time: _timestamp_pb2.Timestamp
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RevokeTokenRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SetQuotaRequest(_message.Message):
    __slots__ = ["name", "quota"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    name: str
    quota: Quota
    def __init__(self, name: _Optional[str] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ["create_time", "expire_time", "last_use_time", "name", "note", "revoke_time", "user"]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_USE_TIME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REVOKE_TIME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    last_use_time: _timestamp_pb2.Timestamp
    name: str
    note: str
    revoke_time: _timestamp_pb2.Timestamp
    user: str
    def __init__(self, name: _Optional[str] = ..., user: _Optional[str] = ..., note: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., revoke_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_use_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class UpdateUserRequest(_message.Message):
    __slots__ = ["name", "programs", "role"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    programs: bool
    role: _access_pb2.Role.Value
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[_access_pb2.Role.Value, str]] = ..., programs: bool = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ["device_time", "lanes", "queued_runs", "stored_bytes"]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_RUNS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    device_time: _duration_pb2.Duration
    lanes: int
    queued_runs: int
    stored_bytes: int
    def __init__(self, lanes: _Optional[int] = ..., queued_runs: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class User(_message.Message):
    __slots__ = ["create_time", "name", "programs", "quota", "role", "usage"]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    create_time: _timestamp_pb2.Timestamp
    name: str
    programs: bool
    quota: Quota
    role: _access_pb2.Role.Value
    usage: Usage
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[_access_pb2.Role.Value, str]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., programs: bool = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ["expire_time", "role", "token", "user"]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    expire_time: _timestamp_pb2.Timestamp
    role: _access_pb2.Role.Value
    token: str
    user: str
    def __init__(self, user: _Optional[str] = ..., role: _Optional[_Union[_access_pb2.Role.Value, str]] = ..., token: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
