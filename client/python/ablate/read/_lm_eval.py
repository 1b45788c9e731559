"""Reads samples of lm-evaluation-harness: results by document."""
from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import numpy as np

from ablate.errors import InvalidArgument
from ablate.read._frame import Frame, Run, Series
from ablate.read._reading import Notes, PathLike, find, finish, json_file, number, reading

_NAME = re.compile(r"(?:samples_(?P<task>.+)|results)_(?P<date>\d{4}-\d\d-\d\dT[-\d.]+)\.jsonl?")


def lm_eval(path: PathLike) -> Frame:
    """Reads samples_*.jsonl, with the results_*.json beside them. A run is a model, a series a
    metric of a task that isn't in a group, or of a group. Items are documents; a group's have the
    subtask in front, and it is their group. The newest evaluation of a task counts."""
    notes, newest = Notes(), dict[tuple[pathlib.Path, str], tuple[str, pathlib.Path]]()
    with reading(path, "a folder of lm-eval with --log_samples"):
        for file in find(path, "samples_*.jsonl"):
            name = _NAME.fullmatch(file.name)
            task, date = (name["task"], name["date"]) if name else (file.stem[8:], "")
            known = newest.get((file.parent, task))
            if known:
                notes.add("of several evaluations of a task the newest counts", file.parent / task)
            newest[file.parent, task] = max(known or (date, file), (date, file))
    runs: dict[pathlib.Path, Run] = {}
    hashes: dict[tuple[str, str, str], str] = {}
    for (folder, task), (date, file) in newest.items():
        about: dict[str, Any] = {}
        with reading(folder, "results_*.json of lm-eval"):
            if (results := folder / f"results_{date}.json").is_file():
                about = json_file(results)
            model = str(about.get("model_name") or folder.name)
            top = _top(task, about.get("group_subtasks", {}))
        with reading(file, "samples of lm-eval"):
            run = runs.setdefault(folder, Run(model, {"model": model}))
            _samples(file, run, task, top, hashes, notes)
    return finish("lm_eval", path, [(run, str(folder)) for folder, run in runs.items()], notes)


def _top(task: str, groups: dict[str, list[str]]) -> str:
    """Returns the outermost group of a task, or the task."""
    for _ in range(len(groups)):
        task = next((group for group, subtasks in groups.items() if task in subtasks), task)
    return task


def _samples(file: pathlib.Path, run: Run, task: str, top: str,
             hashes: dict[tuple[str, str, str], str], notes: Notes) -> None:
    found: dict[str, dict[str, float]] = {}
    for number_of_line, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if not line:
            continue
        try:
            sample = json.loads(line)
        except ValueError:
            notes.add("samples are read up to the first damaged line", f"{file} {number_of_line}")
            run.state = "unfinished"
            break
        item = str(sample["doc_id"])
        for kind in ("doc_hash", "prompt_hash"):
            digest = str(sample.get(kind))
            if hashes.setdefault((task, item, kind), digest) != digest:
                if kind == "doc_hash":
                    raise InvalidArgument(
                        f"{file}: document {item} of {task} differs from that of another model "
                        f"(doc_hash {digest[:12]}); expected the same evaluation data")
                notes.add("prompts of a document differ between models", task)
        for metric in sample["metrics"]:
            value, form = sample.get(metric), sample.get("filter", "none")
            value = float(value) if isinstance(value, bool) else number(value)
            key = f"{top}/{metric}" + ("" if form == "none" else f",{form}")
            if value is None:
                notes.add("metrics that aren't one number a sample are left out", key)
            elif item in found.setdefault(key, {}):
                raise ValueError(f"document {item} is there twice")
            else:
                found[key][item] = value
    for key, values in found.items():
        grouped = top != task
        series = run.series.setdefault(key, Series(np.zeros(0)))
        series.values = np.append(series.values, list(values.values()))
        series.items += [f"{task}/{item}" if grouped else item for item in values]
        series.groups += [task] * len(values) if grouped else []
