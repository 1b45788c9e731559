"""Runs of an experiment: their settings, numbers and checkpoints."""
from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ablate import _display, _program_files, _safetensors, _values, analysis
from ablate._connection import Connection
from ablate._frames import Library, frame
from ablate.errors import DataLoss, NotFound
from ablate.v1 import artifact_pb2, experiment_pb2, metric_pb2, run_pb2


class Series(NamedTuple):
    """A metric of a run over its steps."""

    cell: str
    key: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


class Checkpoint(Mapping[str, NDArray[np.generic]]):
    """The tensors of a model by name, such as `block.0.attention.qkv.weight`.

    `ablate.torch.load` makes a PyTorch module of it. `step` is the number of updates, `model` has
    the resolved fields of the model, and `vocabulary` the characters of the tokens, if a character
    is a token. Raises DataLoss if `file` isn't a checkpoint.
    """

    def __init__(self, file: bytearray) -> None:
        self._arrays, self.metadata = _safetensors.read(file)
        step = self.metadata.get("step", "")
        if not (step.isascii() and step.isdigit() and len(step) <= 20):
            raise DataLoss(f"not a checkpoint: its step is {step[:64]!r}; expected an integer")
        self.step = int(step)
        self.model = self._json("model", "")
        self.vocabulary = self._json("vocabulary", "{}")

    def _json(self, key: str, default: str) -> dict[str, Any]:
        """Returns an object of the metadata."""
        try:
            value = json.loads(self.metadata.get(key, default))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise DataLoss(f"not a checkpoint: its {key} isn't a JSON object")
        return value

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        size = sum(array.size for array in self._arrays.values())
        return f"Checkpoint(step {self.step}, {len(self)} tensors, {size:,} numbers)"


class Run:
    """A run, as one cell of an experiment.

    `cell` is the cell's name, `labels` has its label per axis, and `name` is runs/ID. `step` of
    `steps` updates are made; a program that hasn't ended may have 0 steps, which is unknown. State,
    step and metrics are as they were when the experiment was asked.
    """

    def __init__(self, connection: Connection, experiment: str, row: run_pb2.RunRow,
                 axes: Sequence[str]) -> None:
        self._connection = connection
        self._experiment = experiment
        self._row = row
        self.cell = row.cell
        self.name = row.run
        self.labels = {axis: row.labels[axis] for axis in axes}
        self.seed = row.seed
        self.state = run_pb2.RunState.Value.Name(row.state)
        self.step = row.step
        self.steps = row.steps
        self.failure = row.failure

    def keys(self) -> list[str]:
        """Returns the keys of the metrics that `last` and `best` have."""
        return [one.key for one in self._row.summaries]

    @property
    def last(self) -> dict[str, float]:
        """Returns the last value of each metric. A metric without one is left out: its last point
        isn't finite, or the run diverged before its end."""
        return {one.key: one.last for one in self._row.summaries if one.HasField("last")}

    def best(self, key: str) -> float | None:
        """Returns the lowest value of a loss or the highest of an accuracy, else None. A diverged
        run has one, too, as far as it went."""
        for one in self._row.summaries:
            if one.key == key and is_loss(key) and one.HasField("min"):
                return one.min
            if one.key == key and is_accuracy(key) and one.HasField("max"):
                return one.max
        return None

    def message(self) -> run_pb2.Run:
        """Asks the server for everything that it has about the run."""
        request = run_pb2.GetRunRequest(name=self.name)
        return self._connection.call("Runs/GetRun", request, run_pb2.Run)

    def settings(self) -> dict[str, Any]:
        """Returns the resolved fields of the run by path, such as training.learning_rate."""
        return _values.to_fields(self.message().resolved_spec.spec)

    def metrics(self, keys: str | Sequence[str] = (), *,
                max_points: int | None = None) -> dict[str, Series]:
        """Returns the series of these metrics, or of all, by key.

        `max_points` is a number of points per series, at least 4: each bucket keeps its first,
        smallest, largest and last point. Raises NotFound for a metric that no run of an ended
        experiment has.

        >>> losses = run.metrics("train/loss", max_points=100)["train/loss"]
        >>> bool(losses.values[0] > losses.values[-1])
        True
        """
        found = query(self._connection, self._experiment, self.cell, keys, max_points)
        return {one.key: one for one in found}

    def checkpoints(self) -> list[int]:
        """Returns the steps of the stored checkpoints, ascending."""
        return [one.step for one in self._artifacts() if one.kind == "checkpoint"]

    def checkpoint(self, step: int | None = None) -> Checkpoint:
        """Returns the checkpoint of a step, by default the last one.

        >>> run.checkpoint()["token_embedding.weight"].shape
        (27, 16)
        """
        stored = {one.step: one for one in self._artifacts() if one.kind == "checkpoint"}
        found = stored.get(max(stored, default=-1) if step is None else step)
        if found is None:
            steps = ", ".join(str(one) for one in stored) or "none"
            which = "" if step is None else f" of step {step}"
            raise NotFound(f"{self.cell} has no checkpoint{which}; stored are: {steps}")
        return Checkpoint(self._connection.download(
            "Artifacts/ReadArtifact", artifact_pb2.ReadArtifactRequest(name=found.name),
            artifact_pb2.ArtifactChunk, found.sha256))

    def analyze(self, kind: str, *, step: int | None = None,
                inputs: Mapping[str, Any] | None = None, seed: int | None = None, name: str = "",
                wait: bool = True, **options: Any) -> analysis.Analysis:
        """Analyses the model at a checkpoint, by default the last one.

        docs/reference/analyses.md has the kinds with their options. `inputs` has one of tokens,
        documents and prompt, and may have dataset. The numbers become metrics NAME/NUMBER of the
        experiment; `name` is the kind by default. Equal analyses are computed once.

        >>> analysis = run.analyze("attention", inputs={"prompt": "anna"})
        >>> analysis.state
        'DONE'
        """
        subject = {"experiment": self._experiment, "cell": self.cell, "step": step}
        made = analysis.create(self._connection, kind, [subject], inputs=inputs, seed=seed,
                               name=name, options=options)
        return made.wait() if wait else made

    def log(self) -> str:
        """Returns what a run of a program has written to its standard output and error, so far or
        until its end; at most the last 4 MB. Empty for a run of a model, which has a `history`."""
        parts: list[str] = []
        request = run_pb2.ReadRunLogRequest(run=self.name)
        while True:
            part = self._connection.call("Runs/ReadRunLog", request, run_pb2.ReadRunLogResponse)
            parts.append(part.text)
            if part.complete or not part.text:
                return "".join(parts)
            request.position = part.next

    def output(self, folder: str | Path) -> Path:
        """Writes the files that a run of a program left in its folder out/ into a new folder, and
        returns its path. Raises NotFound if there are none, and FileExistsError if the folder
        exists."""
        found = [one for one in self._artifacts() if one.kind == "output"]
        if not found:
            raise NotFound(f"{self.cell} has no output; only a run of a program that has ended has "
                           "one")
        target = Path(folder)
        if target.exists():
            raise FileExistsError(f"{target} exists already")
        _program_files.unpack_output(self._connection.download(
            "Artifacts/ReadArtifact", artifact_pb2.ReadArtifactRequest(name=found[-1].name),
            artifact_pb2.ArtifactChunk, found[-1].sha256), target)
        return target

    def history(self, library: Library = "pandas") -> Any:
        """Returns the run's history, oldest first: time (UTC), kind, step, worker, message."""
        request = run_pb2.ListRunEventsRequest(run=self.name)
        events = self._connection.call("Runs/ListRunEvents", request,
                                       run_pb2.ListRunEventsResponse).events
        times = [event.time.ToDatetime(datetime.timezone.utc) for event in events]
        columns: dict[str, list[Any]] = {"time": times}
        for name in ("kind", "step", "worker", "message"):
            columns[name] = [getattr(event, name) for event in events]
        return frame(columns, library)

    def __repr__(self) -> str:
        return f"Run({self.cell}, {self.state}, step {self.step})"

    def _repr_html_(self) -> str:
        rows = [("state", self.state), ("step", self.step), ("seed", self.seed),
                *self.labels.items(), *((key, f"{value:.4g}") for key, value in self.last.items())]
        return _display.table(["", self.cell], rows)

    def _artifacts(self) -> Sequence[artifact_pb2.Artifact]:
        return self._connection.call("Artifacts/ListArtifacts",
                                     artifact_pb2.ListArtifactsRequest(run=self.name),
                                     artifact_pb2.ListArtifactsResponse).artifacts


def is_loss(key: str) -> bool:
    """Returns true for losses of a whole model, as comparisons judge them."""
    return key.count("/") == 1 and key.endswith(("/loss", "/ema_loss"))


def is_accuracy(key: str) -> bool:
    return key.count("/") == 1 and key.endswith("/accuracy")


def query(connection: Connection, experiment: str, cell: str | None, keys: str | Sequence[str],
          max_points: int | None) -> list[Series]:
    """Returns series of one cell or all, each as a whole, in the server's order. Raises NotFound
    for a key that no run of an ended experiment has."""
    request = _values.make(metric_pb2.QueryMetricsRequest, experiment=experiment, cell=cell,
                           keys=_values.listed(keys), max_points=max_points)
    found: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {}
    for part in connection.stream("Metrics/QueryMetrics", request, metric_pb2.Series):
        steps, values = found.setdefault((part.cell, part.key), ([], []))  # a long series has parts
        steps.append(np.array(part.steps, dtype=np.int64))
        values.append(np.array(part.values, dtype=np.float64))
    missing = set(request.keys) - {key for _, key in found}
    if missing:
        _check_keys(connection, experiment, missing)
    return [Series(cell, key, np.concatenate(steps), np.concatenate(values))
            for (cell, key), (steps, values) in found.items()]


def list_keys(connection: Connection, experiment: str) -> list[str]:
    """Returns the keys of an experiment's metrics."""
    request = metric_pb2.ListMetricsRequest(parent=experiment)
    pages = connection.pages("Metrics/ListMetrics", request, metric_pb2.ListMetricsResponse)
    return [one.key for page in pages for one in page.metrics]


def _check_keys(connection: Connection, experiment: str, keys: Iterable[str]) -> None:
    """Raises NotFound for a key that no run has, unless the experiment hasn't ended."""
    state = connection.call("Experiments/GetExperiment",
                            experiment_pb2.GetExperimentRequest(name=experiment),
                            experiment_pb2.Experiment).state
    if state == experiment_pb2.ExperimentState.ACTIVE:
        return
    known = list_keys(connection, experiment)
    for key in sorted(set(keys) - set(known)):
        raise NotFound(f'no run has the metric "{key}"{_values.did_you_mean(key, known)}; '
                       "`Experiment.keys` lists them")
