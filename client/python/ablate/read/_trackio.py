"""Reads projects of trackio from their databases."""
from __future__ import annotations

import datetime
import json

from ablate.read import _sqlite
from ablate.read._frame import Frame, Run
from ablate.read._reading import Notes, PathLike, Points, finish, flatten, number, reading

_TABLES = ("metrics", "configs")


def trackio(path: PathLike) -> Frame:
    """Reads runs from PROJECT.db or a folder of such files. Settings are the config without keys
    that begin with _, and the group."""
    notes, runs = Notes(), dict[tuple[str, str], tuple[Run, Points]]()
    with reading(path, "a database of trackio"):
        files = _sqlite.files(path, *_TABLES)
    for file in files:
        with reading(file, "a database of trackio"), _sqlite.database(file, *_TABLES) as query:
            for table in _TABLES:
                columns = {row[1] for row in query(f"PRAGMA table_info({table})")}
                key = "run_id" if "run_id" in columns else "run_name"
                step = "step, timestamp, metrics" if table == "metrics" else "0, created_at, config"
                for identity, name, at, time, text in query(
                        f"SELECT {key}, run_name, {step} FROM {table} ORDER BY id"):
                    run, points = runs.setdefault((file.stem, identity), (Run(name), Points()))
                    moment = datetime.datetime.fromisoformat(time).timestamp()
                    run.start = min(moment, run.start or moment)
                    run.end = max(moment, run.end or moment)
                    values = flatten(json.loads(text))
                    if table == "configs":
                        group = values.get("_Group")
                        run.settings = ({"group": group} if group is not None else {}) | {
                            one: value for one, value in values.items() if one[:1] != "_"}
                        continue
                    for one, value in values.items():
                        single = number(value)
                        if single is None:
                            notes.add("values that aren't numbers are left out", f"{name} {one}")
                        else:
                            points.add(one, at, single)
    for run, points in runs.values():
        run.series = points.series(run.name, notes)
    notes.add("trackio doesn't store whether a run has finished; each counts as finished")
    return finish("trackio", path, [(run, f"{project} {identity}") for (project, identity), (run, _)
                                    in runs.items()], notes)
