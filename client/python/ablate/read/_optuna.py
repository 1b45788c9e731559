"""Reads the trials of Optuna from its database."""
from __future__ import annotations

import datetime
import json
import math
import pathlib

from ablate.read import _sqlite
from ablate.read._frame import Frame, Run, State
from ablate.read._reading import Notes, PathLike, Points, finish, flatten, reading

_VERSION = 12
_TABLES = ("version_info", "studies", "study_system_attributes", "trials", "trial_params",
           "trial_user_attributes", "trial_values", "trial_intermediate_values")
_STATES: dict[str, State] = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}
_INFINITE = {"INF_POS": math.inf, "INF_NEG": -math.inf, "NAN": math.nan}


def optuna(path: PathLike) -> Frame:
    """Reads trials. Settings are their parameters, user attributes whose key ends in `seed`, and
    the study's name if there are several. Series are `intermediate` and the objectives: under the
    names of the study's metrics, otherwise `value` or `value_0`, `value_1`, …"""
    notes, runs = Notes(), list[tuple[Run, str]]()
    with reading(path, "a database of Optuna"):
        for file in _sqlite.files(path, *_TABLES):
            with reading(file, f"a database of Optuna with schema version {_VERSION}"):
                runs += _trials(file, notes)
    notes.add("parameters that a sampler chose aren't a grid; pruned trials differ from others")
    return finish("optuna", path, runs, notes)


def _trials(file: pathlib.Path, notes: Notes) -> list[tuple[Run, str]]:
    with _sqlite.database(file, *_TABLES) as query:
        versions = [version for (version,) in query("SELECT schema_version FROM version_info")]
        if versions != [_VERSION]:
            raise ValueError(f"it has schema version {', '.join(map(str, versions)) or 'none'}")
        studies = dict(query("SELECT study_id, study_name FROM studies"))
        metrics = {study: json.loads(names) for study, names in query(
            "SELECT study_id, value_json FROM study_system_attributes "
            "WHERE key = 'study:metric_names'")}
        runs, points, study_of = dict[int, Run](), dict[int, Points](), dict[int, int]()
        for key, trial, study, state, start, end in query(
                "SELECT trial_id, number, study_id, state, datetime_start, datetime_complete "
                "FROM trials ORDER BY trial_id"):
            name = f"trial-{trial}"
            runs[key] = Run(name if len(studies) == 1 else f"{studies[study]}/{name}",
                            {} if len(studies) == 1 else {"study": studies[study]},
                            _STATES.get(state, "unfinished"), _time(start), _time(end))
            points[key], study_of[key] = Points(), study
        for key, name, value, form in query(
                "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params"):
            about = json.loads(form)
            choices = about["attributes"].get("choices")
            if choices is not None:
                value = choices[int(value)]
            elif about["name"].startswith("Int"):
                value = int(value)
            runs[key].settings |= flatten(value, name)
        for key, name, text in query("SELECT trial_id, key, value_json FROM trial_user_attributes "
                                     "WHERE lower(key) LIKE '%seed'"):
            runs[key].settings |= flatten(json.loads(text), name)
        for key, step, value, kind in query(
                "SELECT trial_id, step, intermediate_value, intermediate_value_type "
                "FROM trial_intermediate_values"):
            points[key].add("intermediate", step, _INFINITE.get(kind, value))
        objectives = list(query("SELECT trial_id, objective, value, value_type FROM trial_values"))
    several = {key for key, objective, _, _ in objectives if objective}
    for key, objective, value, kind in objectives:
        names = metrics.get(study_of[key], [])
        name = "value" if key not in several else f"value_{objective}"
        points[key].add(names[objective] if objective < len(names) else name,
                        points[key].last_step(), _INFINITE.get(kind, value))
    for key, run in runs.items():
        run.series = points[key].series(run.name, notes)
    return [(run, f"{file.name} {run.name}") for run in runs.values()]


def _time(text: str | None) -> float | None:
    """Returns a local time in seconds since 1970."""
    return text and datetime.datetime.fromisoformat(text).timestamp() or None
