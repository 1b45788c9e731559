"""Turns plain values (dicts, lists, numbers, text) into messages and back, with problems by field.

The rules are those of experiment files: an integer has no fraction, enums are given by name,
durations as "7200s", None clears a field.
"""
from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
from google.protobuf import duration_pb2, json_format, struct_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ablate.errors import FieldProblem, InvalidArgument

MessageType = TypeVar("MessageType", bound=Message)

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-2**31, 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-2**63, 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def make(kind: type[MessageType], /, **fields: Any) -> MessageType:
    """Returns a message with these fields. Raises InvalidArgument with every problem."""
    message = kind()
    problems: list[FieldProblem] = []
    fill(message, plain(fields), "", problems)
    if problems:
        raise InvalidArgument.of(problems)
    return message


def plain(value: Any) -> Any:
    """Returns a copy that has only dicts, lists, text, numbers, bools and None. Arrays, tuples,
    ranges and generators become lists, scalars of numpy numbers, and paths text. Sets stay: they
    have no order, but the first value of an axis is the baseline."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | set | frozenset):
        return [plain(member) for member in value]
    return str(value) if isinstance(value, PurePath) else value


def listed(value: Any) -> list[Any]:
    """Returns the members of a collection, or a list of one text or other value."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns a hint at the most similar of these names; empty if none is similar."""
    guess = difflib.get_close_matches(name, list(names), 1)
    return f" (did you mean {guess[0]}?)" if guess else ""


def to_value(value: Any, path: str, problems: list[FieldProblem]) -> struct_pb2.Value:
    """Returns a plain value as the message that carries any value."""
    result = struct_pb2.Value()
    if value is None:
        result.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        result.bool_value = value
    elif isinstance(value, int) and abs(value) >= 2**53:
        result.string_value = str(value)  # a double would lose digits
    elif isinstance(value, int | float) and math.isfinite(value):
        result.number_value = value
    elif isinstance(value, str):
        result.string_value = value
    elif isinstance(value, list):
        result.list_value.SetInParent()
        for i, member in enumerate(value):
            result.list_value.values.append(to_value(member, f"{path}[{i}]", problems))
    elif isinstance(value, dict):
        result.struct_value.SetInParent()
        for key, member in value.items():
            result.struct_value.fields[key].CopyFrom(to_value(
                member, f"{path}.{key}" if path else key, problems))
    else:
        _refuse(path, f"{value!r} can't be sent",
                "None, a bool, a finite number, text, a list or a dict", problems)
    return result


def fill(message: Message, value: Any, path: str, problems: list[FieldProblem]) -> None:
    """Sets the fields of an empty message from a plain dict, and appends every problem."""
    names = [field.name for field in message.DESCRIPTOR.fields]
    if not isinstance(value, dict):
        _refuse(path, f"{_short(value)} has no fields", f"the fields {', '.join(names)}", problems)
        return
    _check_oneofs(message.DESCRIPTOR, value, path, problems)
    for name, member in value.items():
        below = f"{path}.{name}" if path else name
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            _refuse(below, f"unknown field{did_you_mean(name, names)}", _any_of(names), problems)
        elif member is not None:
            _set_field(message, field, member, below, problems)


def to_fields(message: Message) -> dict[str, Any]:
    """Returns the set fields as plain values by dotted path, such as model.norm.kind."""
    fields: dict[str, Any] = {}

    def add(value: Any, path: str) -> None:
        if isinstance(value, dict) and value:
            for name, member in value.items():
                add(member, f"{path}.{name}" if path else name)
        else:
            fields[path] = value

    add(json_format.MessageToDict(message, preserving_proto_field_name=True), "")
    return fields


def _is_repeated(field: Any) -> bool:
    """Returns true for lists and maps. Runtimes before 6 have only `label`, later ones drop it."""
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED if repeated is None else repeated)


def _set_field(message: Message, field: Any, value: Any, path: str,
               problems: list[FieldProblem]) -> None:
    target = getattr(message, field.name)
    if not _is_repeated(field):
        if field.message_type is not None:
            target.SetInParent()
            _fill_any(target, value, path, problems)
        elif (scalar := _scalar(field, value, path, problems)) is not None:
            setattr(message, field.name, scalar)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        if not isinstance(value, dict):
            _refuse(path, f"{_short(value)} has no keys", "keys and their values", problems)
            return
        kind = field.message_type.fields_by_name["value"]
        for key, member in value.items():
            below = f'{path}["{key}"]'
            if kind.message_type is not None:
                _fill_any(target[key], member, below, problems)
            elif (scalar := _scalar(kind, member, below, problems)) is not None:
                target[key] = scalar
    elif not isinstance(value, list):
        _refuse(path, f"{_short(value)} is not a list", "a list, such as [a, b]", problems)
    else:
        for i, member in enumerate(value):
            if field.message_type is not None:
                _fill_any(target.add(), member, f"{path}[{i}]", problems)
            elif (scalar := _scalar(field, member, f"{path}[{i}]", problems)) is not None:
                target.append(scalar)


def _fill_any(message: Message, value: Any, path: str, problems: list[FieldProblem]) -> None:
    if isinstance(message, struct_pb2.Value):
        message.CopyFrom(to_value(value, path, problems))
    elif isinstance(message, duration_pb2.Duration):
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}(\.\d{1,9})?s", value):
            message.FromJsonString(value)
        else:
            _refuse(path, f"{_short(value)} is not a duration",
                    "seconds followed by s, such as 7200s", problems)
    else:
        fill(message, value, path, problems)


def _scalar(field: Any, value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Returns the value as the field takes it; None after a problem."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if field.enum_type is not None:
        # 0 stands for a missing value.
        names = {one.name: one.number for one in field.enum_type.values if one.number != 0}
        if isinstance(value, str) and value in names:
            return names[value]
        hint = did_you_mean(str(value), names)
        return _refuse(path, f"{_short(value)} is unknown{hint}", _any_of(list(names)), problems)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return value if isinstance(value, bool) else _refuse(
            path, f"{_short(value)} is not a boolean", "true or false", problems)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return value if isinstance(value, str) else _refuse(
            path, f"{_short(value)} is not text",
            "text, in quotes if it looks like something else", problems)
    if field.cpp_type in _INTEGERS:
        low, high = _INTEGERS[field.cpp_type]
        if not is_number or not (isinstance(value, int) or value.is_integer()):
            return _refuse(path, f"{_short(value)} is not a whole number", "a whole number",
                           problems)
        return int(value) if low <= value <= high else _refuse(
            path, f"{_short(value)} is out of range", f"{low} to {high}", problems)
    if not is_number or not abs(value) <= sys.float_info.max:
        return _refuse(path, f"{_short(value)} is not a finite number", "a number", problems)
    return float(value)


def _check_oneofs(descriptor: Any, value: dict[str, Any], path: str,
                  problems: list[FieldProblem]) -> None:
    """Reports members of a oneof that are given together."""
    for oneof in descriptor.oneofs:
        members = [field.name for field in oneof.fields]
        given = [name for name in members if value.get(name) is not None]
        if len(given) > 1:
            _refuse(path, f"{', '.join(given)} exclude each other", _any_of(members), problems)


def _refuse(path: str, complaint: str, allowed: str, problems: list[FieldProblem]) -> Any:
    """Appends a problem; returns None."""
    where = f"{path}: " if path else ""
    problems.append(FieldProblem(path, f"{where}{complaint}; expected {allowed}"))
    return None


def _short(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _any_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
