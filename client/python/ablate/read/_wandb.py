"""Reads local runs of Weights & Biases, and CSV files that its panels export."""
from __future__ import annotations

import json
import pathlib
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from ablate.read._frame import Frame, Run
from ablate.read._protobuf import fields
from ablate.read._reading import (Notes, PathLike, Points, csv_rows, find, finish, flatten, number,
                                  reading, relative, step_of)

_BLOCK = 32768
_HEADER = b":W&B\xe1\xbe\x00"
_HISTORY, _SUMMARY, _CONFIG, _RUN, _EXIT = 2, 3, 5, 17, 18


def wandb(path: PathLike) -> Frame:
    """Reads runs from their .wandb logs below a folder, otherwise from exported CSV files. A run
    that was resumed has several logs. Settings are its config and its group."""
    notes, runs = Notes(), []
    logs: dict[str, list[pathlib.Path]] = {}
    with reading(path, "a folder of wandb"):
        for log in sorted(find(path, "*.wandb"), key=lambda log: log.parent.name.split("run-")[-1]):
            logs.setdefault(log.stem.removeprefix("run-"), []).append(log)
        exports = [] if logs else find(path, "*.csv")
    for identity, parts in logs.items():
        with reading(parts[0], "a log of wandb"):
            runs.append((_run(identity, parts, path, notes), identity))
    return finish("wandb", path, runs or _exported(exports, notes), notes)


def _run(identity: str, logs: list[pathlib.Path], root: PathLike, notes: Notes) -> Run:
    run, points, summary = Run(identity, state="unfinished"), Points(), dict[str, Any]()
    for log in logs:
        run.state = "unfinished"
        for kind, body in _records(log, notes, relative(log, root)):
            if kind == _HISTORY:
                _history(body, points, run, notes)
            elif kind in (_CONFIG, _SUMMARY):
                _update(run.settings if kind == _CONFIG else summary, body)
            elif kind == _RUN:
                _describe(run, body)
            elif kind == _EXIT:
                run.state = "failed" if dict(fields(body)).get(1) else "finished"
    step = points.last_step()
    for key, value in summary.items():
        single = number(value)
        if single is not None and not key.startswith("_") and key not in points:
            points.add(key, step, single)
    if run.state == "unfinished":
        notes.add("runs without an exit record are unfinished", run.name)
    run.settings = {key: value for key, value in run.settings.items()
                    if key.split(".")[0] not in ("_wandb", "wandb_version")}
    run.series = points.series(run.name, notes)
    return run


def _records(path: pathlib.Path, notes: Notes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yields the kind and the content of each record up to the first damaged one."""
    data = path.read_bytes()
    if not _HEADER.startswith(data[:7]):
        raise ValueError("it doesn't begin with the header of version 0")
    if len(data) < 7:
        notes.add("logs are read up to their first damaged record", name)
    at, record = 7, list[bytes]()
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < 7:
            at += left
            continue
        head = data[at:at + 7]
        crc, size, kind = struct.unpack("<IHB", head.ljust(7, b"\0"))
        body = data[at + 7:at + 7 + size]
        if (len(body) < size or size > left - 7 or kind not in ((3, 4) if record else (1, 2))
                or zlib.crc32(body, zlib.crc32(head[6:])) != crc):
            notes.add("logs are read up to their first damaged record", name)
            return
        at += 7 + size
        record.append(body)
        if kind in (1, 4):
            yield from ((key, value) for key, value in fields(b"".join(record))
                        if isinstance(value, bytes))
            record.clear()


def _items(body: bytes, number_of_field: int) -> Iterator[tuple[str, bytes]]:
    """Yields key and JSON of each item in such a field of a record."""
    for field, item in fields(body):
        if field == number_of_field:
            keys, value = [], b"null"
            for part, content in fields(item):
                if part in (1, 2):
                    keys.append(content.decode())
                elif part == 16:
                    value = content
            yield ".".join(keys), value


def _history(body: bytes, points: Points, run: Run, notes: Notes) -> None:
    items = dict(_items(body, 1))
    if "_step" in items:
        step = step_of(json.loads(items["_step"]))
    else:
        step = step_of(next((dict(fields(value)).get(1, 0) for field, value in fields(body)
                             if field == 2), None))
    if time := items.get("_timestamp"):
        run.end = float(time)
    for key, text in items.items():
        if key[:1] == "_":
            continue
        try:
            value = float(text)
        except ValueError:
            notes.add("values that aren't numbers are left out", f"{run.name} {key}")
        else:
            points.add(key, step, value)


def _update(settings: dict[str, Any], body: bytes) -> None:
    for field in (2, 1):  # remove, update
        for key, text in _items(body, field):
            for old in [old for old in settings if old == key or old.startswith(f"{key}.")]:
                del settings[old]
            if field == 1:
                settings |= flatten(json.loads(text), key)


def _describe(run: Run, body: bytes) -> None:
    for field, value in fields(body):
        if field == 4:
            _update(run.settings, value)
        elif field == 6 and value:
            run.settings.setdefault("group", value.decode())
        elif field == 8 and value:
            run.name = value.decode()
        elif field == 17 and run.start is None:
            parts = dict(fields(value))
            run.start = parts.get(1, 0) + parts.get(2, 0) / 1e9


def _exported(files: list[pathlib.Path], notes: Notes) -> list[tuple[Run, str]]:
    points: dict[str, Points] = {}
    for file in files:
        with reading(file, "a CSV file that a panel of wandb exported, with columns NAME - KEY"):
            header, rows = csv_rows(file)
            if any(cell.startswith("Group: ") for cell in header):
                raise ValueError("its runs are grouped, so single runs are gone; export it "
                                 "ungrouped")
            columns = [index for index, cell in enumerate(header[1:], 1) if " - " in cell
                       and not re.search("__(MIN|MAX)$", cell)]
            if not columns:
                raise ValueError("it has no column NAME - KEY; read another table by "
                                 "ablate.read.rows")
            for index in columns:
                name, _, key = header[index].rpartition(" - ")
                for row in rows:
                    if row[index]:
                        points.setdefault(name, Points()).add(key, float(row[0]), float(row[index]))
    if files:
        notes.add("exported CSV files don't tell whether a run has finished")
    return [(Run(name, series=one.series(name, notes)), name) for name, one in points.items()]
