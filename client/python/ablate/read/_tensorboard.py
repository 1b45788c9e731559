"""Reads scalars from TensorBoard's event files, and from CSV files that it exports."""
from __future__ import annotations

import pathlib
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.read._frame import Frame, Run
from ablate.read._protobuf import fields, signed
from ablate.read._reading import (Notes, PathLike, Points, csv_rows, find, finish, flatten, reading,
                                  relative, yaml_file)

_HPARAMS = "_hparams_/session_start_info"
_TIME = re.compile(r"\d{9,11}\.\d+")  # names the folder that PyTorch's add_hparams makes
_TYPES = {1: "<f4", 2: "<f8"}
_MAX_CHECKED = 1024  # bytes; of longer records, such as images, only the length is checked


def tensorboard(path: PathLike) -> Frame:
    """Reads the runs below a folder: each folder with event files is one. Settings are the hparams
    of TensorBoard, and those in Lightning's hparams.yaml."""
    notes, folders = Notes(), dict[pathlib.Path, list[pathlib.Path]]()
    with reading(path, "a folder of TensorBoard"):
        for file in find(path, "*tfevents*", "*.csv"):
            folders.setdefault(file if file.suffix == ".csv" else file.parent, []).append(file)
    if any(folder.is_dir() for folder in folders):
        folders = {folder: files for folder, files in folders.items() if folder.is_dir()}
    runs: dict[pathlib.Path, tuple[Run, Points]] = {}
    for folder, files in folders.items():
        name = relative(folder, path if pathlib.Path(path).is_dir() else folder)
        run, points = runs[folder] = (Run(name), Points())
        for file in files:
            with reading(file, "an event file of TensorBoard or a CSV file that it exported"):
                if file.suffix == ".csv":
                    _exported(file, points)
                else:
                    _read(file, run, points, notes)
        if (settings := folder / "hparams.yaml").is_file():
            with reading(settings, "a YAML file of hparams"):
                run.settings |= flatten(yaml_file(settings) or {})
    made = [folder for folder in runs if _TIME.fullmatch(folder.name) and folder.parent in runs]
    for folder in made:
        if [one.parent for one in made].count(folder.parent) == 1:
            run, points = runs.pop(folder)
            runs[folder.parent][0].settings |= run.settings
            runs[folder.parent][1].add_missing(points)
    for folder, (run, points) in list(runs.items()):
        run.series = points.series(run.name, notes)
        if not run.series:
            notes.add("folders without scalars are left out", run.name)
            del runs[folder]
    notes.add("event files don't tell whether a run has finished; each counts as finished")
    return finish("tensorboard", path, [(run, str(folder)) for folder, (run, _) in runs.items()],
                  notes)


def _exported(file: pathlib.Path, points: Points) -> None:
    header, rows = csv_rows(file)
    if header != ["Wall time", "Step", "Value"]:
        raise ValueError("its columns aren't Wall time, Step, Value")
    for time, step, value in rows:
        points.add("value", float(step), float(value), float(time))


def _read(file: pathlib.Path, run: Run, points: Points, notes: Notes) -> None:
    plugins: dict[bytes, bytes] = {}
    data = file.read_bytes()
    records, whole = _records(data)
    if not records and len(data) >= 12 and not _checked(
            np.frombuffer(data, np.uint8), np.zeros(1, np.int64), 8)[0]:
        raise ValueError("it doesn't begin with a record")
    if not whole:
        notes.add("event files are read up to their first damaged record",
                  f"{run.name} {file.name}")
    for first, last in records:
        step, summary = 0, b""
        for field, content in fields(data[first:last]):
            if field == 5:
                summary = content
            elif field == 2:
                step = signed(content)
            elif field == 1:
                (run.end,) = struct.unpack("<d", content)
                run.start = run.start or run.end
        for field, content in fields(summary):
            if field == 1:
                _add(dict(fields(content)), step, plugins, run, points, notes)


def _add(value: dict[int, Any], step: int, plugins: dict[bytes, bytes], run: Run, points: Points,
         notes: Notes) -> None:
    """Adds a value of a summary."""
    tag = value.get(1, b"")
    if 9 in value:
        plugin = dict(fields(dict(fields(value[9])).get(1, b"")))
        plugins[tag] = plugin.get(1, b"")
        if tag == _HPARAMS.encode():
            run.settings |= flatten(dict(_hparams(plugin.get(2, b""))))
    if 2 in value:
        points.add(tag.decode(), step, struct.unpack("<f", value[2])[0])
    elif plugins.get(tag) == b"scalars" and (
            kind := _TYPES.get((tensor := dict(fields(value.get(8, b"")))).get(1, 0))):
        content = tensor.get(4) or tensor.get(5) or tensor.get(6) or bytes(8)
        points.add(tag.decode(), step, float(np.frombuffer(content, kind)[0]))
    elif not tag.startswith(b"_hparams_/"):
        notes.add("tags that aren't scalars are left out", f"{run.name} {tag.decode()}")


def _hparams(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yields the settings of a HParamsPluginData: its session_start_info's map of Values."""
    for field, entry in fields(dict(fields(content)).get(3, b"")):
        if field == 1:
            pair = dict(fields(entry))
            for kind, value in fields(pair.get(2, b"")):
                if kind == 2:
                    (single,) = struct.unpack("<d", value)
                    yield pair[1].decode(), int(single) if single.is_integer() else single
                elif kind in (1, 4):
                    yield pair[1].decode(), bool(value) if kind == 4 else None
                else:
                    yield pair[1].decode(), value.decode()


def _records(data: bytes) -> tuple[list[tuple[int, int]], bool]:
    """Returns the ranges of the records before the first damaged one, and whether none is."""
    at, bounds = 0, []
    while at + 16 <= len(data):
        size = int.from_bytes(data[at:at + 8], "little")
        if at + 16 + size > len(data):
            break
        bounds.append((at + 12, at + 12 + size))
        at += 16 + size
    if not bounds:
        return [], not data
    array = np.frombuffer(data, np.uint8)
    first, last = np.array(bounds).T
    good = _checked(array, first - 12, 8)
    for size in np.unique((last - first)[last - first <= _MAX_CHECKED]):
        chosen = np.flatnonzero(last - first == size)
        good[chosen] &= _checked(array, first[chosen], int(size))
    count = len(bounds) if good.all() else int(np.argmin(good))
    return bounds[:count], count == len(bounds) and at == len(data)


def _checked(data: NDArray[np.uint8], starts: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Returns whether ranges of this size are followed by their masked CRC32C. All ranges advance
    by a byte at a time: 1,000,000 records take less than a second."""
    crc = np.full(len(starts), 0xFFFFFFFF, np.uint32)
    for index in range(size):
        crc = _TABLE[(crc ^ data[starts + index]) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    masked = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
    stored = sum(data[starts + size + byte].astype(np.uint32) << (8 * byte) for byte in range(4))
    return np.asarray(masked == stored)


def _table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table


_TABLE = _table()
