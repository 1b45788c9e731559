"""Reads and writes safetensors files: named arrays and text metadata."""
from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from ablate.errors import DataLoss

Arrays = dict[str, NDArray[np.generic]]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}


def read(file: bytearray) -> tuple[Arrays, dict[str, str]]:
    """Returns the arrays by name, in the file's order, and the metadata. The arrays share the
    file's memory."""
    try:
        size = int.from_bytes(file[:8], "little")
        header = json.loads(file[8:8 + size])
        metadata = header.pop("__metadata__", {})
        data = memoryview(file)[8 + size:]
        arrays: Arrays = {}
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            flat = np.frombuffer(data[first:last], dtype=_TYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"])
        return arrays, metadata
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataLoss(f"not a safetensors file: {problem}") from problem


def write_bytes(parts: dict[str, bytes], metadata: dict[str, str]) -> bytes:
    """Returns a file whose tensors are bytes. Byte for byte as the server writes it, because the
    hash of the file is its identity."""
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name, part in parts.items():
        header[name] = {"dtype": "U8", "shape": [len(part)],
                        "data_offsets": [offset, offset + len(part)]}
        offset += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts.values())
