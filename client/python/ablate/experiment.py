"""Experiments: wait for them, and read their results."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ablate import _display, _values, analysis
from ablate._connection import LONG, Connection
from ablate._frames import Library, axis_columns, frame
from ablate.comparison import Comparison
from ablate.errors import Conflict, Error, InvalidArgument, Unavailable
from ablate.figure import Figure
from ablate.run import Run, Series, is_accuracy, is_loss, list_keys, query
from ablate.v1 import analysis_pb2, comparison_pb2, experiment_pb2, metric_pb2, report_pb2, run_pb2

_State = experiment_pb2.ExperimentState
_OPEN = (_State.unspecified, _State.ACTIVE)
_RUN_COLUMNS = ("cell", "seed", "run", "state", "step", "steps")  # of `frame`
_POINT_COLUMNS = ("cell", "seed", "key", "step", "value")  # of `metrics`
_JOINT = ("cka",)  # kinds of analyses that read several models as one


class Experiment:
    """An experiment on the server. `message` has everything as last seen."""

    def __init__(self, connection: Connection, message: experiment_pb2.Experiment) -> None:
        self._connection = connection
        self.message = message

    @property
    def name(self) -> str:
        """Returns experiments/ID."""
        return self.message.name

    @property
    def id(self) -> str:
        return self.name.partition("/")[2]

    @property
    def state(self) -> str:
        """Asks the server: ACTIVE, ENDED or CANCELLED."""
        return _State.Value.Name(self.refresh().message.state)

    @property
    def primary(self) -> str:
        """Returns the metric that the verdict is about."""
        report = self.message.spec.report
        return report.primary if report.HasField("primary") else "eval/loss"

    @property
    def tags(self) -> list[str]:
        """Returns the tags, sorted, as last seen; `edit` changes them.

        >>> experiment.edit(tags=["paper", "lr"]).tags
        ['lr', 'paper']
        """
        return list(self.message.tags)

    @property
    def note(self) -> str:
        """Returns the note as last seen; empty if there is none."""
        return self.message.note

    @property
    def archived(self) -> bool:
        """Returns true if lists leave the experiment out once it has ended, as last seen."""
        return self.message.archived

    def refresh(self) -> Experiment:
        """Asks the server again, unless the experiment has ended."""
        if self.message.state in _OPEN:
            self.message = self._connection.call(
                "Experiments/GetExperiment", experiment_pb2.GetExperimentRequest(name=self.name),
                experiment_pb2.Experiment)
        return self

    def wait(self, progress: bool = True) -> Experiment:
        """Waits until every run and analysis has ended, through restarts of the server.

        `progress` shows a line in a terminal or notebook. Failed runs aren't an error: see
        `message.counts`.

        >>> experiment.wait().state
        'ENDED'
        """
        if self.message.state not in _OPEN:
            return self
        line = _display.Progress(self.id) if progress else None
        try:
            for event in self.watch(snapshots=True):
                if line:
                    line.update(event)
        finally:
            if line:
                line.finish()
        return self

    def watch(self, keys: str | Sequence[str] = (), *,
              snapshots: bool = False) -> Iterator[experiment_pb2.ExperimentEvent]:
        """Yields the state of every cell, then changes as they happen, until the experiment ends.

        `keys` are metrics whose newest values events have, by default train/loss and the primary
        metric. After a restart of the server the watch continues from the last change. With
        `snapshots`, events are about the whole instead, at most 4 a second: counts, speed, time
        left, means per setting, and the runs that are training, with their losses.
        """
        request = _values.make(experiment_pb2.WatchExperimentRequest, name=self.name,
                               snapshots=snapshots,
                               keys=_values.listed(keys) or sorted({"train/loss", self.primary}))

        def watch() -> Iterator[experiment_pb2.ExperimentEvent]:
            try:
                for event in self._connection.stream("Experiments/WatchExperiment", request,
                                                     experiment_pb2.ExperimentEvent):
                    request.token = event.token
                    yield event
            except Conflict:
                if not request.token:
                    raise
                request.token = ""  # expired: from the current state
                raise Unavailable("the watch position expired", retry=True) from None
            if self.state == "ACTIVE":
                raise Unavailable("the server ended the watch early", retry=True)

        return self._connection.keep_watching(watch)

    def runs(self, part: str = "") -> list[Run]:
        """Returns the experiment's cells in grid order, or those of a part: a setting such as
        post-lr0.01 with all its seeds, @best, or @chosen (the chosen values of tuned axes).

        >>> experiment.runs()[0].state
        'DONE'
        >>> {run.labels["placement"] for run in experiment.runs("post")}
        {'post'}
        """
        axes = [axis.name or axis.field.rpartition(".")[2] for axis in self.message.spec.axes]
        request = run_pb2.ListRunsRequest(experiment=self.name, page_size=1000, part=part)
        pages = self._connection.pages("Runs/ListRuns", request, run_pb2.ListRunsResponse)
        return [Run(self._connection, self.name, row, axes) for page in pages for row in page.rows]

    def run(self, cell: str) -> Run:
        """Returns a cell by its name, such as post-lr0.01-s42, or @best: the cell that is DONE and
        has the best report.primary."""
        runs = self.runs(str(cell))
        if len(runs) == 1:
            return runs[0]
        names = ", ".join(run.cell for run in runs[:5])
        raise InvalidArgument(f'"{cell}" has {len(runs)} cells in {self.id}; expected one, such as '
                              f"{names}")

    def frame(self, library: Library = "pandas", *,
              settings: Literal["varied", "all"] = "varied") -> Any:
        """Returns one row per cell.

        The columns are the cell, its label per axis (a text; axis.NAME if another column has the
        axis's name), seed, run, state, step and steps;
        then the resolved settings by path, with numbers and booleans as such, either those that
        vary or all; then the last value of each metric that training recorded, and for losses and
        accuracies the best one, such as eval/loss and eval/loss.best. A run that diverged before
        its end has no last values, so that means leave it out. Numbers of analyses are read by
        `metrics`.

        >>> frame = experiment.frame()
        >>> frame.groupby("placement")["eval/loss"].mean().idxmin()
        'pre'
        """
        if settings not in ("varied", "all"):
            raise InvalidArgument(f'settings: "{settings}" is unknown; expected varied or all')
        runs = self.runs()
        columns: dict[str, Any] = {"cell": [run.cell for run in runs]}
        for axis, name in axis_columns(runs[0].labels if runs else (), _RUN_COLUMNS).items():
            columns[name] = [run.labels.get(axis) for run in runs]
        for name in _RUN_COLUMNS[1:]:
            columns[name] = [getattr(run, "name" if name == "run" else name) for run in runs]
        columns |= self._settings(runs, settings == "all")
        for key in dict.fromkeys(key for run in runs for key in run.keys()):
            columns[key] = [run.last.get(key) for run in runs]
            if is_loss(key) or is_accuracy(key):
                columns[f"{key}.best"] = [run.best(key) for run in runs]
        return frame(columns, library)

    def metrics(self, keys: str | Sequence[str] = (), *, max_points: int | None = None,
                library: Library = "pandas") -> Any:
        """Returns every point of these metrics, or of all, as one row each: cell, a column per
        axis (axis.NAME if another column has its name), seed, key, step, value.

        `max_points` is a number of points per series, at least 4: each bucket keeps its first,
        smallest, largest and last point, so that a plot shows every peak. The steps that are left
        differ between runs: don't average over runs then. `series` has the same as arrays.

        >>> experiment.metrics("eval/loss").step.unique().tolist()
        [0, 100, 200]
        """
        runs = {run.cell: run for run in self.runs()}
        found = self.series(keys, max_points=max_points)
        lengths = [len(one.steps) for one in found]

        def column(values: list[Any], dtype: Any = object) -> Any:
            return np.repeat(np.array(values, dtype), lengths)

        columns: dict[str, Any] = {"cell": column([one.cell for one in found])}
        axes = next(iter(runs.values())).labels if runs else ()
        for axis, name in axis_columns(axes, _POINT_COLUMNS).items():
            columns[name] = column([runs[one.cell].labels.get(axis) for one in found])
        columns["seed"] = column([runs[one.cell].seed for one in found], np.int64)
        columns["key"] = column([one.key for one in found])
        columns["step"] = np.concatenate([one.steps for one in found] or [np.array([], np.int64)])
        columns["value"] = np.concatenate([one.values for one in found] or [np.array([])])
        return frame(columns, library)

    def series(self, keys: str | Sequence[str] = (), *,
               max_points: int | None = None) -> list[Series]:
        """Returns the series of these metrics, or of all, as NumPy arrays: in cell order, then by
        key. Raises NotFound for a metric that no run of an ended experiment has.

        >>> experiment.series("train/loss", max_points=50)[0].key
        'train/loss'
        """
        return query(self._connection, self.name, None, keys, max_points)

    def keys(self) -> list[str]:
        """Returns the keys of all metrics, numbers of analyses included.

        >>> "eval/loss" in experiment.keys()
        True
        """
        return list_keys(self._connection, self.name)

    def compare(self, key: str = "", *, by: str = "", baseline: Mapping[str, str] | None = None,
                at: int | None = None,
                others: Experiment | str | Sequence[Experiment | str] = (), gate: bool = False,
                looks: bool = False, level: float | None = None,
                session: Sequence[str] | None = None) -> Comparison:
        """Compares the settings with their baseline, paired by seed.

        `key` is a metric, by default the primary one; `by` an axis to compare along; `baseline` a
        label per axis; `at` a step. `others` are more experiments or parts of them. `gate`, `looks`,
        `level` and `session` ask for a decision, as in `Lab.judge`.

        >>> experiment.compare().verdict.startswith("held-out loss against “pre”")
        True
        """
        request = _values.make(comparison_pb2.CompareRequest,
                               **self._comparison(by, baseline, at, others), key=key)
        if gate or looks or level is not None or session is not None:
            request.gate.looks, request.gate.session = looks, session is not None
            request.gate.changes.extend(session or [])
            if level is not None:
                request.gate.level = level
        return Comparison(self._connection.call("Metrics/Compare", request,
                                                comparison_pb2.Comparison, timeout=LONG))

    def figure(self, kind: str, *, format: Literal["svg", "pdf", "png"] = "svg", key: str = "",
               step: int | None = None, width: float | None = None, by: str = "",
               baseline: Mapping[str, str] | None = None, at: int | None = None,
               others: Experiment | str | Sequence[Experiment | str] = ()) -> Figure:
        """Draws a figure; docs/reference/figures.md has the kinds.

        >>> experiment.figure("difference").data[:4]
        b'<svg'
        """
        request = _values.make(
            report_pb2.RenderFigureRequest, kind=kind, format=format, key=key, step=step,
            width=width, comparison=self._comparison(by, baseline, at, others))
        figure = self._connection.call("Reports/RenderFigure", request,
                                       report_pb2.RenderFigureResponse, timeout=LONG)
        return Figure(figure.data, figure.media_type, figure.csv)

    def table(self, format: Literal["text", "csv", "latex"] = "text", *, label: str = "",
              columns: str | Sequence[str] = ()) -> str:
        """Returns the main table, or with `label` the table of an analysis of the experiment's
        file.

        >>> "tabular" in experiment.table("latex")
        True
        """
        request = _values.make(
            report_pb2.RenderTableRequest, format=format, label=label,
            columns=_values.listed(columns), comparison={"experiment": self.name})
        return self._connection.call("Reports/RenderTable", request, report_pb2.RenderTableResponse,
                                     timeout=LONG).data

    def report(self, path: str | Path) -> Path:
        """Writes the report page, one HTML file that needs no network, once it is complete."""
        path = Path(path)
        request = report_pb2.RenderReportRequest(experiments=[self.name], output=path.name)
        page = b"".join(chunk.data for chunk in self._connection.stream(
            "Reports/RenderReport", request, report_pb2.FileChunk))
        path.write_bytes(page)
        return path

    def analyze(self, kind: str, cells: str | Sequence[str] = (), *, step: int | None = None,
                inputs: Mapping[str, Any] | None = None, seed: int | None = None, name: str = "",
                wait: bool = True, **options: Any) -> list[analysis.Analysis]:
        """Analyses the models of these cells, or of all, as `Run.analyze` does.

        Returns one analysis per cell, or a single one for cka, which reads all models together, and
        for norm_response, which reads none.

        >>> [analysis] = experiment.analyze("cka", ["pre-s0", "post-s0"])
        >>> analysis.arrays()["cka"].axes
        ('representation', 'other')
        """
        named = _values.listed(cells) or [run.cell for run in self.runs()]
        subjects = [{"experiment": self.name, "cell": cell, "step": step} for cell in named]
        groups = [subjects] if kind in _JOINT else [[one] for one in subjects]
        if kind == "norm_response":
            groups = [[]]
        made = [analysis.create(self._connection, kind, group, inputs=inputs, seed=seed, name=name,
                                options=options) for group in groups]
        return [one.wait() for one in made] if wait else made

    def analyses(self) -> list[analysis.Analysis]:
        """Returns the stored analyses of the experiment's runs, newest first."""
        cells = {run.name: run.cell for run in self.runs()}
        pages = self._connection.pages(
            "Analyses/ListAnalyses", analysis_pb2.ListAnalysesRequest(parent=self.name),
            analysis_pb2.ListAnalysesResponse)
        return [analysis.Analysis(self._connection, one, [
            cells[subject.run] for subject in one.subjects if subject.run in cells])
            for page in pages for one in page.analyses]

    def edit(self, *, name: str = "", tags: str | Sequence[str] = (),
             untags: str | Sequence[str] = (), note: str | None = None,
             archived: bool | None = None, paused: bool | None = None,
             priority: Literal["interactive", "normal", "background"] | None = None,
             move: Literal["first", "last"] | None = None) -> Experiment:
        """Changes the name, the note, or whether lists leave the experiment out once it has ended;
        adds `tags` and removes `untags`. The ID stays. A paused experiment begins no more runs;
        `priority` and `move` say when its queued runs come.

        >>> experiment.edit(note="figure 2").note
        'figure 2'
        """
        add, remove = _values.listed(tags), _values.listed(untags)
        others = {"note": note, "archived": archived, "paused": paused, "priority": priority,
                  "move": move}
        if not name and not add and not remove and not any(
                value is not None for value in others.values()):
            raise InvalidArgument("nothing is to be changed; expected name, tags, untags, note, "
                                  "archived, paused, priority or move")
        try:
            request = _values.make(
                experiment_pb2.UpdateExperimentRequest, name=self.name, new_name=name,
                add_tags=add, remove_tags=remove, **others)
            self.message = self._connection.call("Experiments/UpdateExperiment", request,
                                                 experiment_pb2.Experiment)
        except InvalidArgument as error:
            raise error.renamed({"new_name": "name", "add_tags": "tags",
                                 "remove_tags": "untags"}) from None
        return self

    def cancel(self) -> Experiment:
        """Cancels the runs that no other active experiment needs."""
        self.message = self._connection.call(
            "Experiments/CancelExperiment", experiment_pb2.CancelExperimentRequest(name=self.name),
            experiment_pb2.Experiment)
        return self

    def delete(self) -> None:
        """Deletes the experiment, and the runs that no other has. Raises Conflict while it is
        active."""
        request = experiment_pb2.DeleteExperimentRequest(name=self.name)
        self._connection.call("Experiments/DeleteExperiment", request,
                              experiment_pb2.DeleteExperimentResponse, repeat=False)

    def __repr__(self) -> str:
        return f"Experiment({self.id}: {_display.counts_text(self.message.counts)})"

    def _repr_html_(self) -> str:
        try:
            self.refresh()
        except Error:
            pass  # shows what was seen last
        message = self.message
        rows = [("question", message.spec.question), ("state", _State.Value.Name(message.state)),
                ("runs", _display.counts_text(message.counts)),
                ("axes", ", ".join(axis.name or axis.field for axis in message.spec.axes)),
                ("primary metric", self.primary),
                ("stalled", message.stalled), ("why cancelled", message.why_cancelled),
                ("tags", ", ".join(message.tags)), ("note", message.note),
                ("extends", message.extends.partition("/")[2]),
                ("changed", " ".join(message.changes))]
        return _display.table(["", self.id], [row for row in rows if row[1]])

    def _settings(self, runs: Sequence[Run], everything: bool) -> dict[str, list[Any]]:
        """Returns a column per path. Runs of equal labels differ only in their seeds: one of them
        is asked for."""
        samples = {tuple(run.labels.items()): run for run in runs}
        requests = [run_pb2.GetRunRequest(name=run.name) for run in samples.values()]
        messages = self._connection.call_all("Runs/GetRun", requests, run_pb2.Run)
        fields = {labels: _values.to_fields(message.resolved_spec.spec)
                  for labels, message in zip(samples, messages)}
        columns: dict[str, list[Any]] = {}
        for path in dict.fromkeys(path for one in fields.values() for path in one):
            values = {labels: one.get(path) for labels, one in fields.items()}
            if everything or len({repr(value) for value in values.values()}) > 1:
                columns[path] = [values[tuple(run.labels.items())] for run in runs]
        return columns

    def _comparison(self, by: str, baseline: Mapping[str, str] | None, at: int | None,
                    others: Experiment | str | Sequence[Experiment | str]) -> dict[str, Any]:
        """Returns the fields of a CompareRequest, without its key."""
        names = [one.name if isinstance(one, Experiment) else one for one in _values.listed(others)]
        return {"experiment": self.name, "others": names, "by": by, "baseline": baseline, "at": at}
