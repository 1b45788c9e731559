"""Results of other tools in one form: runs with settings and series."""
from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from google.protobuf import struct_pb2
from numpy.typing import NDArray

from ablate._frames import frame as make_frame
from ablate.v1 import import_pb2

State = Literal["finished", "failed", "unfinished", "pruned"]

_MESSAGE = 1 << 20  # bytes; a message ends before the part that would exceed them
_PART = 400_000  # bytes of a series in a part
_MAX_TEXT = 1000  # bytes of a name or a setting, as the server's
_MAX_KEY = 200  # bytes of a key, an item or a group, likewise
_MAX_NOTES = 1000


@dataclass
class Series:
    """The values of a metric, by step or by item."""

    values: NDArray[np.float64]
    steps: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    items: list[str] = field(default_factory=list)  #: instead of steps, such as documents' IDs
    groups: list[str] = field(default_factory=list)  #: of each item, such as its subject; or empty


@dataclass
class Run:
    """A run, or the results by item of one model. Keys of nested settings have dots."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    state: State = "finished"
    start: float | None = None  #: seconds since 1970
    end: float | None = None
    series: dict[str, Series] = field(default_factory=dict)


@dataclass
class Frame:
    """The results that were read: runs, and notes about what was left out and why."""

    source: str  #: the tool that wrote them
    runs: list[Run]
    notes: list[str]

    def to_pandas(self) -> Any:
        """Returns a DataFrame with one row per value: the settings, name, key, step or item, group
        if there are any, and value. A setting of such a name has the column setting.NAME."""
        return make_frame(self._columns(), "pandas")

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows of `to_pandas` as dicts."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _columns(self) -> dict[str, list[Any]]:
        every = [series for run in self.runs for series in run.series.values()]
        own = ["name", "key", *(["step"] if any(len(one.steps) for one in every) else []),
               *(["item"] if any(one.items for one in every) else []),
               *(["group"] if any(one.groups for one in every) else []), "value"]
        settings = {key: f"setting.{key}" if key in own else key
                    for run in self.runs for key in run.settings}
        columns: dict[str, list[Any]] = {name: [] for name in [*settings.values(), *own]}
        for run in self.runs:
            for key, series in run.series.items():
                count = len(series.values)
                values = {"name": [run.name] * count, "key": [key] * count,
                          "step": series.steps.tolist(), "item": series.items,
                          "group": series.groups, "value": series.values.tolist()}
                values |= {column: [run.settings.get(setting)] * count
                           for setting, column in settings.items()}
                for name, column in columns.items():
                    column += values[name] or [None] * count
        return columns

    def messages(self) -> Iterator[import_pb2.ImportRequest]:
        """Yields the results as messages of about 1 MiB. The first has the options. A long run is
        divided into parts of the same name that follow each other; only the first has settings."""
        request = import_pb2.ImportRequest(options=import_pb2.ImportOptions(
            source=self.source[:40], notes=[_text(note) for note in self.notes[:_MAX_NOTES]]))
        size = request.ByteSize()
        for run in self.runs:
            for part in _parts(run):
                size += part.ByteSize() + 8
                if size > _MESSAGE:
                    yield request
                    request = import_pb2.ImportRequest()
                    size = part.ByteSize() + 8
                request.runs.append(part)
        yield request


def _parts(run: Run) -> Iterator[import_pb2.ImportedRun]:
    name = _text(run.name)
    part = import_pb2.ImportedRun(name=name, state=run.state)
    for key, value in run.settings.items():
        part.settings[_text(key, _MAX_KEY)].CopyFrom(_value(value))
    for moment, target in ((run.start, part.start_time), (run.end, part.end_time)):
        if moment is not None and 0 <= moment < 253402300800:  # the year 10000
            target.FromMicroseconds(round(moment * 1e6))
    size = part.ByteSize()
    for key, series in run.series.items():
        for first, last in _ranges(series):
            if size > _PART or first:  # a part has a key once
                yield part
                part, size = import_pb2.ImportedRun(name=name, state=run.state), 0
            part.series.add(key=_text(key, _MAX_KEY), values=series.values[first:last].tolist(),
                            steps=series.steps[first:last].tolist(),
                            items=[_text(item, _MAX_KEY) for item in series.items[first:last]],
                            groups=[_text(group, _MAX_KEY) for group in series.groups[first:last]])
            size += part.series[-1].ByteSize() + 8
    yield part


def _ranges(series: Series) -> Iterator[tuple[int, int]]:
    """Yields the first and the last index + 1 of each part of a series."""
    sizes = np.full(len(series.values), 13)
    for texts in (series.items, series.groups):
        if texts:
            sizes += np.fromiter((min(4 * len(text), _MAX_TEXT) + 3 for text in texts), np.int64)
    part = np.cumsum(sizes) // _PART
    bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(sizes)]
    yield from zip(bounds, bounds[1:], strict=False)


def _text(text: str, most: int = _MAX_TEXT) -> str:
    """Returns a text that a message may have. A long one ends in its hash: it remains distinct."""
    data = text.encode(errors="replace")
    if len(data) > most:
        head = data[:most - 40].decode(errors="ignore")
        return f"{head}… sha256:{hashlib.sha256(data).hexdigest()[:16]}"
    return data.decode()


def _value(value: Any) -> struct_pb2.Value:
    """Returns a setting; as text if it is a number that a Value doesn't hold exactly."""
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)) and math.isfinite(value) and float(value) == value:
        return struct_pb2.Value(number_value=value)
    if isinstance(value, list):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=map(_value, value)))
    return struct_pb2.Value(string_value=_text(str(value)))
