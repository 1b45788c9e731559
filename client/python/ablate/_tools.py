"""The tools of `ablate.mcp`. Their docstrings are read by agents."""
from __future__ import annotations

import csv
import io
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from google.protobuf import json_format

import ablate
from ablate import _address, _display
from ablate.v1 import comparison_pb2

_one_at_a_time = threading.Lock()  # warnings and session files aren't for several threads


def submit(experiment: str | dict[str, Any], seeds: int | list[int] | None = None,
           set: dict[str, Any] | None = None, extends: str = "", files: list[str] | None = None,
           tags: list[str] | None = None, note: str = "", dry_run: bool = False) -> str:
    """Creates an experiment and returns its ID at once; runs that exist already are reused.

    experiment: path of a .yaml file, its text, or the same fields as an object: name, base, axes,
    seeds. The first setting of an axis is the baseline. seeds replaces its seeds: a number N (0 to
    N - 1) or a list. set replaces fields below base, such as {"training.steps": 200}; a field of an
    axis can't be replaced. To add seeds, submit it again with more seeds and extends=ID: only what
    is new is trained. dry_run only checks it, and returns the number of runs and the time.
    """
    with _one_at_a_time, warnings.catch_warnings(record=True) as notes, ablate.connect() as lab:
        warnings.simplefilter("always", UserWarning)
        options: dict[str, Any] = {"seeds": seeds, "set": set, "extends": extends,
                                   "files": files or (), "tags": tags or (), "note": note}
        if dry_run:
            return repr(lab.submit(experiment, **options, dry_run=True))
        found = lab.submit(experiment, **options)
        return "\n".join([found.id, *(f"note: {one.message}" for one in notes)])


def status(experiment: str = "", wait_seconds: float = 0) -> str:
    """Returns the state of an experiment and the counts of its runs, or the 20 newest experiments.

    wait_seconds: wait at most so long for its end, up to 600. ENDED is the end; failed runs are
    explained by sql: SELECT cell, failure FROM cells JOIN runs USING (run) WHERE failure != ''.
    """
    with ablate.connect() as lab:
        if not experiment:
            return "\n".join(_line(one) for one in lab.experiments()[:20]) or "no experiments"
        found, end = lab.experiment(experiment), time.monotonic() + min(wait_seconds, 600)
        while found.state == "ACTIVE" and time.monotonic() < end:
            time.sleep(0.2)
        return _line(found)


def compare(experiment: str, metric: str = "", by: str = "", baseline: dict[str, str] | None = None,
            at: int | None = None, others: list[str] | None = None, gate: bool = False,
            looks: bool = False, session: str = "") -> dict[str, Any]:
    """Compares an experiment's settings with their baseline, paired by seed.

    experiment: ID or name. metric: by default the primary one. gate asks for a decision: better,
    not shown, worse or cannot say; then more_pairs is the fewest further seeds that may decide, and
    next the setting that deserves the next seed. looks: set it if you ask again after each new
    seed. session: path of a file that this tool keeps, for one change after another against a
    baseline that each kept change becomes; each change needs a label of its own, such as change-7.
    """
    if session:
        return _decided("compare", [experiment], looks, baseline, {
            "key": metric, "by": by, "at": at, "session": session, "with": others})
    with _one_at_a_time, ablate.connect() as lab:
        return _answer(lab.experiment(experiment).compare(
            metric, by=by, baseline=baseline, at=at, others=others or (), gate=gate, looks=looks))


def judge(paths: list[str], setting: list[str] | None = None, seed: str = "", metric: str = "",
          at: Literal["last", "best"] | int = "last", names: str = "",
          better: Literal["", "lower", "higher"] = "", baseline: dict[str, str] | None = None,
          margin: float | None = None, tune: list[str] | None = None, looks: bool = False,
          session: str = "") -> dict[str, Any]:
    """Decides about results that another tool wrote; keeps nothing.

    paths: CSV, JSON lines, or folders of W&B, MLflow, TensorBoard, Optuna and others. setting: keys
    of the settings to compare, by default those that vary. seed: key of the seed. names: pattern of
    runs' names, such as {norm}-s{seed}. baseline: a value per key. tune: settings that are tuned,
    such as a learning rate. looks, session and the answer are as in compare.
    """
    return _decided("judge", paths, looks, baseline, {
        "setting": ",".join(setting or ()), "seed": seed, "metric": metric, "at": at,
        "names": names, "better": better, "margin": margin, "tune": ",".join(tune or ()),
        "session": session, "python": sys.executable})


def query(filter: str = "", columns: list[str] | None = None, order_by: str = "",
          limit: int = 100) -> str:
    """Returns runs of all experiments as CSV, one line per cell.

    filter: such as: experiment = names AND training.learning_rate >= 0.01 AND eval/loss < 2.4.
    columns: fields, axes or metrics, by default the last value of each metric. order_by: such as
    "eval/loss" or "eval/loss desc".
    """
    with ablate.connect() as lab:
        return _csv(lab.query(filter, columns=columns or (), order_by=order_by, limit=limit,
                              library=None))


def sql(statement: str, limit: int = 1000) -> str:
    """Returns the rows of one SELECT as CSV, in SQLite's dialect. It can't change anything.

    "SELECT * FROM columns" lists the views with their columns: experiments, cells, runs, settings,
    metrics, analyses and points(run, key).
    """
    with ablate.connect() as lab:
        return _csv(lab.sql(statement, library=None), limit)


def report(experiment: str, path: str = "") -> str:
    """Writes the report of an experiment, one HTML file with figures and tables, and returns its
    path, by default ID.html in the working folder. It waits for the experiment's end, and replaces
    no file."""
    with ablate.connect() as lab:
        found = lab.experiment(experiment)
        target = Path(path or f"{found.id}.html").absolute()
        if target.exists():
            raise FileExistsError(f"path: {target} exists already; expected a new file")
        return str(found.report(target))


def cancel(experiment: str) -> str:
    """Cancels the runs of an experiment that no other active experiment needs."""
    with ablate.connect() as lab:
        return _line(lab.experiment(experiment).cancel())


def delete(experiment: str) -> str:
    """Deletes an experiment that isn't active, and the runs that no other has, for good."""
    with ablate.connect() as lab:
        found = lab.experiment(experiment)
        found.delete()
        return f"deleted {found.id}"


def _line(experiment: ablate.Experiment) -> str:
    state, message = experiment.state, experiment.message  # the state asks the server
    parts = [f"{experiment.id}: {state}", _display.counts_text(message.counts),
             message.stalled and f"stalled: {message.stalled}", message.why_cancelled]
    return "; ".join(part for part in parts if part)


def _decided(command: str, subjects: list[str], looks: bool, baseline: dict[str, str] | None,
             options: dict[str, Any]) -> dict[str, Any]:
    """Answers by the program's command, which alone keeps the files of sessions."""
    program = _address.program()
    if program is None:
        raise ablate.Unavailable(f"{command}: needs the program ablate, which isn't on PATH")
    given = [f"--baseline={key}={value}" for key, value in (baseline or {}).items()]
    for name, values in options.items():
        given += [f"--{name}={value}" for value in (values if isinstance(values, list) else
                                                    [values]) if value not in ("", None)]
    with _one_at_a_time, ablate.connect():  # which starts the personal server
        done = subprocess.run([program, command, "--json", *["--looks"][:looks], *given, "--",
                               *subjects], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in range(4):  # the decisions
        raise ablate.Error(done.stderr.strip().removeprefix("error: "))
    return _answer(ablate.Comparison(json_format.Parse(
        done.stdout, comparison_pb2.Comparison(), ignore_unknown_fields=True)),
        done.stderr.splitlines())


def _answer(comparison: ablate.Comparison, notes: Sequence[str] = ()) -> dict[str, Any]:
    gate = comparison.message.gate
    answer: dict[str, Any] = {"gate": comparison.gate, "reason": gate.text,
                              "more_pairs": gate.more_pairs, "next": gate.next}
    return ((answer if comparison.gate else {}) | {"text": repr(comparison)}
            | ({"notes": notes} if notes else {}))


def _csv(columns: dict[str, list[Any]], limit: int | None = None) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    rows = list(zip(*columns.values()))
    writer.writerows(rows[:limit])
    left = len(rows) - len(rows[:limit])
    return out.getvalue() + (f"({left} more row{'s' * (left > 1)}; raise limit)\n" if left else "")
