"""Helpers that the readers share: errors, notes, settings, points and files."""
from __future__ import annotations

import contextlib
import csv
import fnmatch
import importlib
import json
import os
import pathlib
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from ablate.errors import Error, InvalidArgument, NotFound
from ablate.read._frame import Frame, Run, Series

PathLike: TypeAlias = "str | os.PathLike[str]"

_MAX_VALUES = 100_000  # in a run's settings; a YAML file of a few bytes may expand to billions
_SCALARS = (bool, int, float, str, type(None))
_MAX_NAMED = 5  # places that a note names
_CONTENT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
            EOFError, csv.Error, struct.error, zipfile.BadZipFile, zlib.error)


@contextlib.contextmanager
def reading(path: PathLike, expected: str) -> Iterator[None]:
    """Turns each problem of a file's content into an InvalidArgument that names the file."""
    try:
        yield
    except Error:
        raise
    except FileNotFoundError as problem:
        raise NotFound(f"{problem.filename}: no such file or folder") from None
    except OSError as problem:
        raise InvalidArgument(f"{path}: {problem.strerror or problem}; expected {expected}"
                              ) from problem
    except _CONTENT as problem:
        text = f"{type(problem).__name__} {problem}"[:200] if not isinstance(
            problem, ValueError) else str(problem)[:200]
        raise InvalidArgument(f"{path}: {text}; expected {expected}") from problem


class Notes:
    """Collects why something was left out, and where."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, None]] = {}

    def add(self, reason: str, place: object = "") -> None:
        """Adds a place, such as a run's name, to those of a reason."""
        self._places.setdefault(reason, {})[str(place)] = None

    def texts(self) -> list[str]:
        """Returns one text per reason, with its first places."""
        texts = []
        for reason, places in self._places.items():
            named = [place[:200] for place in places if place]
            more = len(named) - _MAX_NAMED
            text = ", ".join(named[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
            texts.append(f"{reason}: {text}" if text else reason)
        return texts


class Points:
    """Collects the values of a run by key and step, in the order in which they were written."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[list[float], list[float], list[float]]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._lists

    def add(self, key: str, step: float, value: float, time: float = 0) -> None:
        """Adds a value. Of several at a step the one with the largest time counts, then the last
        one. A step that isn't a number is NaN."""
        lists = self._lists.get(key)
        if lists is None:
            lists = self._lists[key] = ([], [], [])
        lists[0].append(step)
        lists[1].append(value)
        lists[2].append(time)

    def add_missing(self, other: Points) -> None:
        """Adds the values of other keys."""
        self._lists = other._lists | self._lists

    def last_step(self) -> int:
        """Returns the largest valid step, 0 if there is none."""
        return max((int(step) for steps, _, _ in self._lists.values() for step in steps
                    if 0 <= step < 2**32), default=0)

    def series(self, run: str, notes: Notes) -> dict[str, Series]:
        """Returns the series by key."""
        result = {}
        for key, lists in self._lists.items():
            steps, values, times = (np.array(one, np.float64) for one in lists)
            valid = (steps >= 0) & (steps < 2**32) & (steps == np.floor(steps))
            if not valid.all():
                notes.add("values whose step isn't an integer from 0 to 4294967295 are left out",
                          f"{run} {key}")
                steps, values, times = steps[valid], values[valid], times[valid]
            order = np.lexsort((times, steps))  # stable
            steps, values = steps[order], values[order]
            last = np.append(steps[1:] != steps[:-1], np.ones(min(len(steps), 1), bool))
            if not last.all():
                notes.add("of several values at a step the last one counts", f"{run} {key}")
            if len(steps):
                result[key] = Series(values[last], steps[last].astype(np.uint32))
        return result


def finish(source: str, path: PathLike, runs: Iterable[tuple[Run, str]], notes: Notes) -> Frame:
    """Returns the frame of runs, each with an ID that tells it from others of its name."""
    listed = list(runs)
    if not listed:
        raise InvalidArgument(f"{path}: no run of {source} is there; expected one or more")
    counts = Counter(run.name for run, _ in listed)
    for run, identity in listed:
        if counts[run.name] > 1:
            run.name = f"{run.name} ({identity})"
    check_distinct(path, [run for run, _ in listed])
    return Frame(source, [run for run, _ in listed], notes.texts())


def check_distinct(path: PathLike, runs: Iterable[Run]) -> None:
    """Raises InvalidArgument if two runs have the same name."""
    name, count = Counter(run.name for run in runs).most_common(1)[0]
    if count > 1:
        raise InvalidArgument(f"{path}: {count} runs have the name {name}; expected distinct names")


def find(path: PathLike, *patterns: str) -> list[pathlib.Path]:
    """Returns the files of these names below a folder, in order, or the file that path is. What
    tools keep in a run besides its results isn't searched."""
    root = pathlib.Path(path)
    if not root.is_dir():
        root.stat()  # raises FileNotFoundError
        return [root] if any(fnmatch.fnmatch(root.name, one) for one in patterns) else []
    found = []
    for folder, folders, files in os.walk(root, onerror=_raise):
        skipped = {".git", ".trash"}
        if "meta.yaml" in files:
            skipped |= {"artifacts", "models", "tags", "datasets", "traces"}
        if any(name.endswith(".wandb") for name in files):
            skipped |= {"files", "logs", "tmp"}
        folders[:] = sorted(name for name in folders if name not in skipped)
        found += [pathlib.Path(folder, name) for name in sorted(files)
                  if any(fnmatch.fnmatch(name, one) for one in patterns)]
    return found


def _raise(problem: OSError) -> None:
    raise problem


def relative(path: pathlib.Path, root: PathLike) -> str:
    """Returns a folder's name: its path below root, or root's own name."""
    base = pathlib.Path(root)
    return base.resolve().name if path == base else path.relative_to(base).as_posix()


def number(value: object) -> float | None:
    """Returns a value of a metric, None if it isn't a number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(str(value))


def step_of(value: object) -> float:
    """Returns a step; NaN if it isn't a number."""
    return float(value) if isinstance(value, (int, float)) else np.nan


def plain(text: str) -> Any:
    """Returns the number, the truth value or None that a text is; otherwise the text."""
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    if text in ("None", "null"):
        return None
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.?\d+)(e[-+]?\d+)?", text, re.ASCII | re.IGNORECASE) and (
            "." in text or "e" in text.lower()):
        return float(text)
    return text


def flatten(value: object, key: str = "") -> dict[str, Any]:
    """Returns settings by key; keys of nested ones have dots. Lists are kept."""
    result: dict[str, Any] = {}
    _check_size(value, [0])
    _flatten(value, key, result)
    return result


def _check_size(value: object, count: list[int]) -> None:
    count[0] += 1
    if count[0] > _MAX_VALUES:
        raise ValueError(f"a run's settings have more than {_MAX_VALUES:,} values")
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            _check_size(one, count)


def _flatten(value: object, key: str, result: dict[str, Any]) -> None:
    if isinstance(value, dict) and (value or not key):
        for name, nested in value.items():
            _flatten(nested, f"{key}.{name}" if key else str(name), result)
    elif isinstance(value, list):
        result[key] = [one if isinstance(one, _SCALARS) else json.dumps(one, default=str)
                       for one in value]
    else:
        result[key] = value if isinstance(value, _SCALARS) else str(value)


def json_file(path: pathlib.Path) -> Any:
    """Returns the content of a JSON file."""
    return json.loads(path.read_bytes())


def yaml_file(path: pathlib.Path) -> Any:
    """Returns the content of a YAML file. Objects of Python become texts, lists and dicts."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise InvalidArgument(f"{path}: PyYAML is missing; run `pip install PyYAML`") from None

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined, misc]
        """Makes no object of a tag."""

    def construct(loader: Any, _tag: str, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return node.value
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_mapping(node, deep=True)

    Loader.add_multi_constructor("", construct)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except yaml.YAMLError as problem:
        raise ValueError(" ".join(str(problem).split())) from problem


def csv_rows(path: pathlib.Path, delimiter: str = ",") -> tuple[list[str], list[list[str]]]:
    """Returns the header of a table and its rows. A last row that is short is left out."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    header, *rest = rows or [[]]
    if rest and len(rest[-1]) < len(header):
        rest.pop()
    for line, row in enumerate(rest, 2):
        if len(row) != len(header):
            raise ValueError(f"row {line} has {len(row)} cells and the header {len(header)}")
    return header, rest
