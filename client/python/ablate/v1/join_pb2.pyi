from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JoinFile(_message.Message):
    __slots__ = ["address", "certificate_authority", "expire_time", "server_name", "token", "user"]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SERVER_NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    address: str
    certificate_authority: str
    expire_time: _timestamp_pb2.Timestamp
    server_name: str
    token: str
    user: str
    def __init__(self, address: _Optional[str] = ..., server_name: _Optional[str] = ..., certificate_authority: _Optional[str] = ..., user: _Optional[str] = ..., token: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
