"""Finds out which tool wrote files, and reads them."""
from __future__ import annotations

import contextlib
import pathlib
import re
import zipfile
from collections.abc import Callable

from ablate.errors import InvalidArgument
from ablate.read import _hydra, _sqlite
from ablate.read._autoresearch import autoresearch
from ablate.read._frame import Frame, Run
from ablate.read._inspect import inspect
from ablate.read._lightning import lightning
from ablate.read._lm_eval import lm_eval
from ablate.read._mlflow import mlflow
from ablate.read._optuna import optuna
from ablate.read._reading import PathLike, check_distinct, find, reading
from ablate.read._tensorboard import tensorboard
from ablate.read._trackio import trackio
from ablate.read._transformers import trainer_state
from ablate.read._wandb import wandb

_PATTERNS = ("*.wandb", "*tfevents*", "*.csv", "*.tsv", "*.json", "*.jsonl", "*.eval", "meta.yaml",
             "overrides.yaml", *_sqlite.PATTERNS)
# How the files of a tool begin.
_MARKS = {
    "wandb": rb':W&B|"?[\w ]+"?,.*__MAX\b',
    "tensorboard": rb"Wall time,Step,Value|.{8}.{4}\x09.{8}.{0,12}brain\.Event:",
    "trainer_state": rb'\s*\{\s*"(best_global_step|best_metric|best_model_checkpoint)"',
    "lm_eval": rb'\s*\{\s*"(results"\s*:\s*\{|doc_id")',
    "inspect": rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"',
    "autoresearch": rb"commit\t(.*\t)?status\tdescription",
    "mlflow": rb"artifact_(location|uri):",
}
_TABLES = {"mlflow": ("experiments", "runs", "params", "metrics"),
           "optuna": ("studies", "trials", "trial_params"), "trackio": ("metrics", "configs")}


def read(*paths: PathLike, tool: str | None = None) -> Frame:
    """Reads results from folders or files; `tool` says which tool wrote them if that isn't clear.

    Files that have the same runs, such as exports of one metric each, are joined. Raises
    InvalidArgument if no tool's files are there, or those of several tools.
    """
    if tool is not None and tool not in READERS:
        raise InvalidArgument(f'tool: "{tool}" is unknown; expected {", ".join(READERS)}')
    frames = [READERS[tool or _tool(path)](path) for path in paths]
    if len(frames) == 1:
        return frames[0]
    runs: dict[str, Run] = {}
    for path, one in zip(paths, frames, strict=True):
        for run in one.runs:
            known = runs.get(run.name)
            if (known and pathlib.Path(path).suffix == ".csv" and known.settings == run.settings
                    and not known.series.keys() & run.series.keys()):
                known.series |= run.series
                continue
            if known:
                run.name = f"{path}/{run.name}"
            if run.name in runs:
                raise InvalidArgument(f"{path}: is there twice; expected each path once")
            runs[run.name] = run
    if not runs:
        raise InvalidArgument("path: none is given; expected a folder or a file")
    check_distinct("paths", runs.values())
    sources = ", ".join(dict.fromkeys(one.source for one in frames))
    return Frame(sources, list(runs.values()),
                 list(dict.fromkeys(note for one in frames for note in one.notes)))


def hydra(path: PathLike) -> Frame:
    """Reads the jobs of Hydra below a folder, each with the metrics that another tool wrote."""
    def metrics(job: pathlib.Path) -> Frame | None:
        tools = {tool: file for tool, file in _found(job).items() if tool != "hydra"}
        return READERS[_only(job, tools)](job) if tools else None

    return _hydra.hydra(path, metrics)


READERS: dict[str, Callable[[PathLike], Frame]] = {
    "wandb": wandb, "mlflow": mlflow, "tensorboard": tensorboard, "hydra": hydra, "optuna": optuna,
    "trackio": trackio, "lightning": lightning, "trainer_state": trainer_state, "lm_eval": lm_eval,
    "inspect": inspect, "autoresearch": autoresearch}


def _tool(path: PathLike) -> str:
    """Returns the tool whose files are there."""
    found = _found(path)
    if not found:
        raise InvalidArgument(f"{path}: no results of a known tool are there; expected those of "
                              f"{', '.join(READERS)}. Read a table by ablate.read.rows")
    return "hydra" if "hydra" in found else _only(path, found)


def _only(path: PathLike, found: dict[str, pathlib.Path]) -> str:
    tools = list(found)
    if len(tools) > 1:
        there = " and ".join(f"{tool} ({file})" for tool, file in found.items())
        raise InvalidArgument(f"{path}: results of several tools are there: {there}; expected one. "
                              f'Choose by --tool {tools[0]}, or tool="{tools[0]}"')
    return tools[0]


def _found(path: PathLike) -> dict[str, pathlib.Path]:
    """Returns the tools whose files are there, each with its first file."""
    found: dict[str, pathlib.Path] = {}
    with reading(path, "a folder or a file"):
        given = pathlib.Path(path)
        for file in [given] if given.is_file() else find(path, *_PATTERNS):
            for tool in _tools(file):
                found.setdefault(tool, file)
    return found


def _tools(file: pathlib.Path) -> list[str]:
    """Returns the tools that may have written a file; usually one or none."""
    if file.name == "overrides.yaml":
        return ["hydra"] if file.parent.name == ".hydra" else []
    with file.open("rb") as opened:
        head = opened.read(4096)
        if file.name == "metrics.csv":
            columns = (head + opened.readline(1 << 20)).split(b"\n")[0].strip().split(b",")
            return ["lightning"] if {b"step", b"epoch"} & set(columns) else []
    if head.startswith(b"SQLite format 3\0"):
        return [tool for tool, tables in _TABLES.items() if _sqlite.has(file, *tables)]
    if "tfevents" in file.name:
        return ["tensorboard"]
    if head.startswith(b"PK"):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as archive:
            return ["inspect"] if "_journal/start.json" in archive.namelist() else []
    return [tool for tool, mark in _MARKS.items() if re.match(mark, head)][:1]
