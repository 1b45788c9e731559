"""Sends results of other tools to the server, to be kept or judged."""
from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ablate import _values
from ablate._connection import Connection
from ablate.errors import InvalidArgument
from ablate.read import Frame, read, rows
from ablate.v1 import import_pb2

At = Literal["last", "best"] | int


def results_of(source: Any, setting: Any, pair: str, metric: Any,
               tables: Mapping[str, Any]) -> Frame:
    """Returns the results of a Frame, of paths, or of a table."""
    if isinstance(source, Frame):
        return source
    if isinstance(source, str | Path):
        return read(source)
    if isinstance(source, Sequence) and source and all(isinstance(one, str | Path)
                                                       for one in source):
        return read(*source)
    if not setting or not pair or not metric:
        raise InvalidArgument("a table needs setting, pair and metric: the names of its columns")
    return rows(source, setting=setting, pair=pair, metric=metric, **tables)


def send(connection: Connection, frame: Frame, *, setting: str | Sequence[str] = (),
         pair: str = "", metric: str | Sequence[str] = "", names: str = "", at: At = "last",
         baseline: Mapping[str, str] | str | None = None, tune: str | Sequence[str] = (),
         **options: Any) -> import_pb2.ImportResponse:
    """Sends a frame. The server's notes are warnings."""
    by_item = any(series.items for run in frame.runs for series in run.series.values())
    metrics = [one for one in _values.listed(metric) if one]
    request = _values.make(
        import_pb2.ImportOptions, settings=_values.listed(setting), seed="" if by_item else pair,
        metric=metrics[0] if metrics else "", names=names, source=frame.source,
        baseline={"": baseline} if isinstance(baseline, str) else baseline or {},
        tune=_values.listed(tune),
        request_id=uuid.uuid4().hex,
        **{key: value for key, value in options.items() if value not in (None, "", {})},
        **({"best": True} if at == "best" else {} if at == "last" else {"at": at}))

    def messages() -> Iterator[import_pb2.ImportRequest]:
        for index, message in enumerate(frame.messages()):
            if index == 0:
                request.notes.extend(message.options.notes)
                message.options.CopyFrom(request)
            yield message

    response = connection.send("Experiments/Import", messages(), import_pb2.ImportResponse)
    for note in response.notes:
        warnings.warn(note, stacklevel=3)
    return response
