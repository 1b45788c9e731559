"""Reads and writes safetensors files: named arrays and text metadata."""
from __future__ import annotations

import json
import math

import numpy as np
from numpy.typing import NDArray

from ablate.errors import DataLoss

Arrays = dict[str, NDArray[np.generic]]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}


# The server's bounds. A damaged or hostile header must not cost more.
_MAX_HEADER_BYTES = 16 << 20
_MAX_TENSORS = 16_384
_MAX_RANK = 32


def read(file: bytearray) -> tuple[Arrays, dict[str, str]]:
    """Returns the arrays by name, in the file's order, and the metadata. The arrays share the
    file's memory. Raises DataLoss unless the file is well-formed: bounded, without repeated keys,
    its ranges contiguous and as long as types and shapes say."""
    try:
        header, data = _split(file)
        metadata = _metadata(header.pop("__metadata__", {}))
        if len(header) > _MAX_TENSORS:
            raise ValueError(f"it has {len(header)} tensors; expected at most {_MAX_TENSORS}")
        arrays: Arrays = {}
        ranges: list[tuple[int, int]] = []
        for name, entry in header.items():
            try:
                dtype, shape, first, last = _entry(entry)
                arrays[name] = np.frombuffer(data[first:last], dtype=dtype).reshape(shape)
            except (ValueError, OverflowError) as problem:
                raise ValueError(f"tensor {name[:64]!r}: {problem}") from None
            ranges.append((first, last))
        _check_ranges(ranges, len(data))
        return arrays, metadata
    except (ValueError, RecursionError) as problem:
        raise DataLoss(f"not a safetensors file: {problem}") from problem


def _split(file: bytearray) -> tuple[dict[str, object], memoryview]:
    """Returns the header and the bytes after it."""
    size = int.from_bytes(file[:8], "little")
    if size > min(_MAX_HEADER_BYTES, len(file) - 8):
        raise ValueError(f"its header has {size} bytes; expected at most {_MAX_HEADER_BYTES}, "
                         "and no more than the file has")
    header = json.loads(file[8:8 + size].decode(), object_pairs_hook=_object)
    if not isinstance(header, dict):
        raise ValueError("its header isn't an object")
    return header, memoryview(file)[8 + size:]


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is there twice")
    return members


def _metadata(metadata: object) -> dict[str, str]:
    texts = metadata.values() if isinstance(metadata, dict) else [None]
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its metadata aren't texts")
    return metadata


def _entry(entry: object) -> tuple[np.dtype[np.generic], list[int], int, int]:
    """Returns type, shape and range of a tensor."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError("expected dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"its type is {str(kind)[:64]!r}; expected {', '.join(_TYPES)}")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or len(numbers) > _MAX_RANK or not all(
                type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise ValueError(f"expected lists of at most {_MAX_RANK} integers in 0…2^63-1")
    if len(offsets) != 2:
        raise ValueError("expected two data_offsets")
    dtype, (first, last) = np.dtype(_TYPES[kind]), offsets
    if last - first != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{kind} {shape} doesn't fit the bytes {first} to {last}")
    return dtype, shape, first, last


def _check_ranges(ranges: list[tuple[int, int]], size: int) -> None:
    """Raises ValueError unless the ranges cover the data without holes and overlaps."""
    end = 0
    for first, last in sorted(ranges):
        if first != end:
            raise ValueError(f"a tensor begins at byte {first}; expected {end}")
        end = last
    if end != size:
        raise ValueError(f"the tensors end at byte {end}; expected {size}, the end of the file")


def write_bytes(parts: dict[str, bytes], metadata: dict[str, str]) -> bytes:
    """Returns a file whose tensors are bytes. Byte for byte as the server writes it, because the
    hash of the file is its identity."""
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name, part in parts.items():
        header[name] = {"dtype": "U8", "shape": [len(part)],
                        "data_offsets": [offset, offset + len(part)]}
        offset += len(part)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts.values())
