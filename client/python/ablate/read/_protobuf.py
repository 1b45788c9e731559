"""Decodes the wire format of protobuf without the messages' definitions."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yields the number and the value of each field: an int of a varint, otherwise bytes.
    Raises ValueError if the data are damaged."""
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 128:
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field has the unknown wire type {kind}")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield tag >> 3, data[at:at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns the number at a position, and the position after it."""
    value = shift = 0
    while shift < 70 and at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number is longer than 10 bytes or than its message")


def signed(value: int) -> int:
    """Returns the int64 that a varint is."""
    return value - (1 << 64) if value >> 63 else value
