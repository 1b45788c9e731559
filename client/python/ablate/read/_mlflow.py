"""Reads runs of MLflow from its database, or from a folder mlruns."""
from __future__ import annotations

import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np

from ablate.read import _sqlite
from ablate.read._frame import Frame, Run, State
from ablate.read._reading import (Notes, PathLike, Points, find, finish, plain, reading, yaml_file)

_TABLES = ("experiments", "runs", "params", "metrics", "tags")
_STATES: dict[Any, State] = {"FINISHED": "finished", 3: "finished", "FAILED": "failed", 4: "failed",
                             "KILLED": "failed", 5: "failed"}


class _Found(NamedTuple):
    run: Run
    experiment: str
    identity: str
    parent: str | None


def mlflow(path: PathLike) -> Frame:
    """Reads the runs of a database of MLflow or below a folder of mlruns. Settings are the params,
    and the experiment's name if there are several."""
    notes, found = Notes(), list[_Found]()
    with reading(path, "a database of MLflow or a folder mlruns"):
        files = find(path, "meta.yaml") or _sqlite.files(path, *_TABLES)
    for file in files:
        with reading(file, "a database of MLflow or the meta.yaml of mlruns"):
            found += _folder(file, notes) if file.name == "meta.yaml" else _database(file, notes)
    several = len({one.experiment for one in found}) > 1
    parents, runs = {one.parent for one in found}, []
    for one in sorted(found, key=lambda one: (one.experiment, one.run.start or 0, one.run.name)):
        if several:
            one.run.name = f"{one.experiment}/{one.run.name}"
            one.run.settings.setdefault("experiment", one.experiment)
        if one.identity in parents and not one.run.series:
            notes.add("parents of runs that have no metrics are left out", one.run.name)
        else:
            runs.append((one.run, one.identity))
    return finish("mlflow", path, runs, notes)


def _value(value: float, is_nan: object = False) -> float:
    """Returns a value; databases hold NaN and infinite ones in another form."""
    if is_nan:
        return np.nan
    return float(np.copysign(np.inf, value)) if abs(value) == sys.float_info.max else value


def _database(file: pathlib.Path, notes: Notes) -> list[_Found]:
    with _sqlite.database(file, *_TABLES) as query:
        names = dict(query("SELECT experiment_id, name FROM experiments"))
        parents = dict(query("SELECT run_uuid, value FROM tags WHERE key = 'mlflow.parentRunId'"))
        runs: dict[str, _Found] = {}
        for key, name, status, start, end, stage, experiment in query(
                "SELECT run_uuid, name, status, start_time, end_time, lifecycle_stage, "
                "experiment_id FROM runs"):
            if stage == "deleted":
                notes.add("deleted runs are left out", name or key)
                continue
            run = Run(name or key, {}, _STATES.get(status, "unfinished"), start and start / 1e3,
                      end and end / 1e3)
            runs[key] = _Found(run, str(names.get(experiment, experiment)), key, parents.get(key))
        for key, name, value in query("SELECT run_uuid, key, value FROM params"):
            if key in runs:
                runs[key].run.settings[name] = plain(value)
        points = {key: Points() for key in runs}
        for key, name, step, value, time, is_nan in query(
                "SELECT run_uuid, key, step, value, timestamp, is_nan FROM metrics"):
            if key in points:
                points[key].add(name, step, _value(value, is_nan), time)
    for key, found in runs.items():
        found.run.series = points[key].series(found.run.name, notes)
    return list(runs.values())


def _folder(meta: pathlib.Path, notes: Notes) -> list[_Found]:
    about = yaml_file(meta)
    if "run_id" not in about:
        return []  # an experiment's
    folder = meta.parent
    name = str(about.get("run_name") or about["run_id"])
    if about.get("lifecycle_stage") == "deleted":
        notes.add("deleted runs are left out", name)
        return []
    run = Run(name, {}, _STATES.get(about.get("status"), "unfinished"))
    start, end = about.get("start_time"), about.get("end_time")
    run.start, run.end = start and start / 1e3, end and end / 1e3
    for file in sorted(folder.glob("params/**/*")):
        if file.is_file():
            run.settings[file.relative_to(folder / "params").as_posix()] = plain(
                file.read_text(encoding="utf-8").rstrip("\n"))
    points = Points()
    for file in sorted(folder.glob("metrics/**/*")):
        lines = file.read_bytes().split(b"\n") if file.is_file() else [b""]
        if lines.pop():
            notes.add("a last line that isn't complete is left out", f"{name} {file.name}")
        for index, line in enumerate(lines):
            time, value, *more = line.split()
            points.add(file.relative_to(folder / "metrics").as_posix(),
                       float(more[0]) if more else index, _value(float(value)), float(time))
    run.series = points.series(name, notes)
    experiment = meta.parent.parent / "meta.yaml"
    known = yaml_file(experiment) if experiment.is_file() else {}
    parent = folder / "tags" / "mlflow.parentRunId"
    return [_Found(run, str(known.get("name", experiment.parent.name)), str(about["run_id"]),
                   parent.read_text(encoding="utf-8") if parent.is_file() else None)]
