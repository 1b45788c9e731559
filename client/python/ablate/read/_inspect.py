"""Reads logs of Inspect: scores by sample."""
from __future__ import annotations

import datetime
import importlib
import json
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ablate.errors import InvalidArgument
from ablate.read._frame import Frame, Run, Series, State
from ablate.read._reading import Notes, PathLike, find, finish, flatten, json_file, number, reading

_STATES: dict[str, State] = {"success": "finished", "error": "failed"}
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # as Inspect's value_to_float
_MAX_MEMBER = 1 << 28  # bytes


def inspect(path: PathLike) -> Frame:
    """Reads .eval and .json logs. A run is a model with its arguments and those of the task; a
    series is TASK/SCORER. Items are samples; with several epochs ID/EPOCH, grouped by ID."""
    notes, runs = Notes(), dict[str, tuple[Run, set[str]]]()
    with reading(path, "a folder of logs of Inspect"):
        files = find(path, "*.eval", "*.json")
    for file in files:
        with reading(file, "a .eval or .json log of Inspect"):
            about, samples = _archive(file) if file.suffix == ".eval" else _whole(json_file(file))
            if "eval" not in about and file != pathlib.Path(path):
                notes.add("JSON files that aren't logs are left out", file.name)
                continue
            what = about["eval"]
            settings = {"model": str(what["model"])} | {
                f"{part}.{key}": value for part in ("model_args", "task_args")
                for key, value in flatten(what.get(part) or {}).items()
                if not isinstance(value, list)}
            run, tasks = runs.setdefault(repr(sorted(settings.items())), (
                Run(settings["model"], settings), set()))
            if what["task"] in tasks:
                raise InvalidArgument(f"{file}: {run.name} has another log of {what['task']} and "
                                      "the same settings; expected one. Move one of them away")
            tasks.add(what["task"])
            state = _STATES.get(about["status"], "unfinished")
            run.state = state if state != "finished" else run.state
            times = about.get("stats") or {}
            run.start = run.start or _time(times.get("started_at"))
            run.end = _time(times.get("completed_at")) or run.end
            run.series |= _scores(str(what["task"]), samples, run.name, notes)
    named = [(run, f"{number_of_run + 1}") for number_of_run, (run, _) in enumerate(runs.values())]
    return finish("inspect", path, named, notes)


def _whole(log: Any) -> tuple[Any, Iterable[Any]]:
    return log, log.get("samples") or []


def _archive(file: pathlib.Path) -> tuple[Any, Iterable[Any]]:
    """Returns the header of an archive, and its summaries of samples."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        ended = "header.json" in names
        header = _member(archive, "header.json" if ended else "_journal/start.json")
        parts = ["summaries.json"] if ended else [
            name for name in names if name.startswith("_journal/summaries/")]
        samples = [sample for part in parts for sample in _member(archive, part)]
    return header if ended else {"status": "started"} | header, samples


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """Returns the JSON of an archive's file. Inspect compresses by zstd, zipfile since 3.14."""
    about = archive.getinfo(name)
    if about.file_size > _MAX_MEMBER:
        raise ValueError(f"{name} has {about.file_size} bytes; at most {_MAX_MEMBER} are read")
    if about.compress_type != 93:
        return json.loads(archive.read(about))
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise InvalidArgument(f"{archive.filename}: zstandard is missing; run "
                              "`pip install zstandard`") from None
    with pathlib.Path(archive.filename or "").open("rb") as file:
        file.seek(about.header_offset + 26)
        file.seek(sum(struct.unpack("<HH", file.read(4))), 1)  # name and extra field
        packed = file.read(about.compress_size)
    try:
        data = zstandard.ZstdDecompressor().stream_reader(packed).read(about.file_size)
    except zstandard.ZstdError as problem:
        raise ValueError(f"{name}: {problem}") from None
    if zlib.crc32(data) != about.CRC:
        raise ValueError(f"{name} is damaged")
    return json.loads(data)


def _scores(task: str, samples: Iterable[Any], run: str, notes: Notes) -> dict[str, Series]:
    found: dict[str, dict[tuple[str, int], float]] = {}
    for sample in samples:
        place = str(sample["id"]), int(sample.get("epoch", 1))
        if not sample.get("scores"):
            notes.add("samples without a score are left out", f"{run} {task} {place[0]}")
        for scorer, score in (sample.get("scores") or {}).items():
            for key, value in flatten(score["value"], f"{task}/{scorer}").items():
                single = float(value) if isinstance(value, bool) else _LETTERS.get(
                    str(value), number(value))
                if single is None:
                    notes.add("scores that aren't numbers are left out", key)
                elif place in found.setdefault(key, {}):
                    raise ValueError(f"sample {place[0]} of epoch {place[1]} is there twice")
                else:
                    found[key][place] = single
    series = {}
    for key, values in found.items():
        several = any(epoch > 1 for _, epoch in values)
        series[key] = Series(np.array(list(values.values()), np.float64),
                             items=[f"{one}/{epoch}" if several else one for one, epoch in values],
                             groups=[one for one, _ in values] if several else [])
    return series


def _time(text: str | None) -> float | None:
    return datetime.datetime.fromisoformat(text).timestamp() if text else None
