"""Reads the jobs of Hydra: their settings, and metrics that another tool wrote below each."""
from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from ablate.read._frame import Frame, Run
from ablate.read._reading import (Notes, PathLike, find, finish, flatten, plain, reading, relative,
                                  yaml_file)


def hydra(path: PathLike, metrics: Callable[[pathlib.Path], Frame | None]) -> Frame:
    """Reads each folder that has .hydra below a folder. Settings are those of config.yaml and the
    overrides; `metrics` reads the metrics of a job."""
    notes, runs = Notes(), []
    with reading(path, "a folder of Hydra"):
        jobs = [file.parent.parent for file in find(path, "overrides.yaml")
                if file.parent.name == ".hydra"]
    for job in jobs:
        with reading(job / ".hydra", "config.yaml and overrides.yaml of Hydra"):
            settings = flatten(yaml_file(job / ".hydra" / "config.yaml") or {})
            overrides = yaml_file(job / ".hydra" / "overrides.yaml") or []
            for key, value in _pairs(overrides):
                if key not in settings:  # such as the choice of a group
                    settings[key] = value
        name = relative(job, path)
        found = metrics(job)
        if found is None:
            notes.add("jobs that have no metrics below them are unfinished", name)
        for note in found.notes if found else []:
            notes.add(note, name)
        below = found.runs if found else [Run(name, state="unfinished")]
        for run in below:
            run.name = name if len(below) == 1 else f"{name}/{run.name}"
            run.settings |= settings
            runs.append((run, run.name))
    return finish("hydra", path, runs, notes)


def _pairs(overrides: Any) -> list[tuple[str, Any]]:
    """Returns the overrides that set something; others begin with ~."""
    split = [str(one).partition("=") for one in overrides]
    return [(key.lstrip("+"), plain(value)) for key, _, value in split if not key.startswith("~")]
