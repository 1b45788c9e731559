"""Reads trainer_state.json of Hugging Face's Trainer."""
from __future__ import annotations

import pathlib
import re

from ablate.read._frame import Frame, Run
from ablate.read._reading import (Notes, PathLike, Points, find, finish, flatten, json_file, number,
                                  reading, relative, step_of)

_SPEED = re.compile("(eval|test)?_?.*(runtime|_per_second)$")


def trainer_state(path: PathLike) -> Frame:
    """Reads one run per folder of outputs: its trainer_state.json, otherwise that of its last
    checkpoint. Settings are the trial's parameters of a search. A run that has neither reached
    max_steps, nor stopped early, nor ended with the row that sums it up, is unfinished."""
    notes, folders = Notes(), dict[pathlib.Path, tuple[int, pathlib.Path]]()
    with reading(path, "a folder of Trainer"):
        for file in find(path, "trainer_state.json"):
            checkpoint = re.fullmatch(r"checkpoint-(\d{1,18})", file.parent.name)
            folder = file.parent.parent if checkpoint and file != path else file.parent
            rank = int(checkpoint[1]) if checkpoint else 10**18
            folders[folder] = max(folders.get(folder, (-1, file)), (rank, file))
    runs = []
    for folder, (_, file) in folders.items():
        name = relative(folder, path if pathlib.Path(path).is_dir() else folder)
        with reading(file, "trainer_state.json of Trainer"):
            run = _run(name, file, notes)
        if run.state == "unfinished":
            notes.add("runs that haven't reached max_steps are unfinished", name)
        runs.append((run, str(folder)))
    return finish("transformers", path, runs, notes)


def _run(name: str, file: pathlib.Path, notes: Notes) -> Run:
    state, points = json_file(file), Points()
    summed = False
    for row in state["log_history"]:
        if "train_runtime" in row:
            summed = True
            continue
        for key, value in row.items():
            single = number(value)
            if single is not None and key not in ("step", "epoch") and not _SPEED.match(key):
                points.add(key, step_of(row.get("step")), single)
    control = state.get("stateful_callbacks", {}).get("TrainerControl", {}).get("args", {})
    ended = (summed or state["global_step"] >= state["max_steps"]
             or control.get("should_training_stop") is True)
    return Run(name, flatten(state.get("trial_params") or {}),
               "finished" if ended else "unfinished", series=points.series(name, notes))
