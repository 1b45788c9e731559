from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

ACCESS_FIELD_NUMBER: _ClassVar[int]
DESCRIPTOR: _descriptor.FileDescriptor
access: _descriptor.FieldDescriptor

class Access(_message.Message):
    __slots__ = ["anyone", "least", "local"]
    ANYONE_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    LOCAL_FIELD_NUMBER: _ClassVar[int]
    anyone: bool
    least: Role.Value
    local: bool
    def __init__(self, least: _Optional[_Union[Role.Value, str]] = ..., anyone: bool = ..., local: bool = ...) -> None: ...

class Role(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    admin: Role.Value
    member: Role.Value
    reader: Role.Value
    unspecified: Role.Value
    worker: Role.Value
    def __init__(self) -> None: ...
