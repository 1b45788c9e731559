"""Runs of an experiment: their settings, numbers and checkpoints."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ablate import _display, _safetensors, _values, analysis
from ablate._connection import Connection
from ablate._frames import Library, frame
from ablate.errors import NotFound
from ablate.v1 import analysis_pb2, artifact_pb2, metric_pb2, run_pb2


class Series(NamedTuple):
    """A metric of a run over its steps."""

    cell: str
    key: str
    steps: NDArray[np.uint32]
    values: NDArray[np.float64]


class Checkpoint(Mapping[str, NDArray[np.generic]]):
    """The tensors of a model by name, such as `block.0.attention.qkv.weight`.

    `ablate.torch.load` makes a PyTorch module of it. `step` is the number of updates, `model` has
    the resolved fields of the model, and `vocabulary` the characters of the tokens, if a character
    is a token.
    """

    def __init__(self, file: bytearray) -> None:
        self._arrays, self.metadata = _safetensors.read(file)
        self.step = int(self.metadata["step"])
        self.model: dict[str, Any] = json.loads(self.metadata["model"])
        self.vocabulary: dict[str, Any] = json.loads(self.metadata.get("vocabulary", "{}"))

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

    `cell` is the cell's name, `labels` has its label per axis, and `name` is runs/ID. State, step
    and metrics are as they were when the experiment was asked.
    """

    def __init__(self, connection: Connection, experiment: str, row: run_pb2.RunRow) -> None:
        self._connection = connection
        self._experiment = experiment
        self._row = row
        self.cell = row.cell
        self.name = row.run
        self.labels = dict(row.labels)
        self.seed = row.seed
        self.state = run_pb2.RunState.Value.Name(row.state)
        self.step = row.step
        self.failure = row.failure

    @property
    def last(self) -> dict[str, float]:
        """Returns the last finite value of each metric."""
        return {one.key: one.last for one in self._row.summaries if one.HasField("last")}

    def best(self, key: str) -> float | None:
        """Returns the lowest value of a loss or the highest of an accuracy, else None."""
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
        smallest, largest and last point.

        >>> losses = run.metrics("train/loss", max_points=100)["train/loss"]
        >>> bool(losses.values[0] > losses.values[-1])
        True
        """
        request = metric_pb2.QueryMetricsRequest(experiment=self._experiment, cell=self.cell)
        return {one.key: one for one in query(self._connection, request, keys, max_points)}

    def checkpoints(self) -> list[int]:
        """Returns the steps of the stored checkpoints, ascending."""
        return [one.step for one in self._artifacts()]

    def checkpoint(self, step: int | None = None) -> Checkpoint:
        """Returns the checkpoint of a step, by default the last one.

        >>> run.checkpoint()["token_embedding.weight"].shape
        (27, 16)
        """
        stored = {one.step: one for one in self._artifacts()}
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
        made = analysis.create(self._connection, kind, [self.subject(step)], inputs=inputs,
                               seed=seed, name=name, options=options)
        return made.wait() if wait else made

    def subject(self, step: int | None = None) -> analysis_pb2.AnalysisSubject:
        """Returns the model at a step as analyses name it."""
        return analysis_pb2.AnalysisSubject(experiment=self._experiment, cell=self.cell, step=step)

    def log(self, library: Library = "pandas") -> Any:
        """Returns the run's history, oldest first: time, kind, step, worker, message."""
        request = run_pb2.ListRunEventsRequest(run=self.name)
        events = self._connection.call("Runs/ListRunEvents", request,
                                       run_pb2.ListRunEventsResponse).events
        columns: dict[str, list[Any]] = {"time": [event.time.ToDatetime() for event in events]}
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


def query(connection: Connection, request: metric_pb2.QueryMetricsRequest,
          keys: str | Sequence[str], max_points: int | None) -> Iterator[Series]:
    """Yields the series that a request means, each as a whole, in the server's order."""
    request.keys.extend([keys] if isinstance(keys, str) else keys)
    request.max_points = max_points or 0
    cell, key = "", ""
    steps: list[NDArray[np.uint32]] = []
    values: list[NDArray[np.float64]] = []
    for part in connection.stream("Metrics/QueryMetrics", request, metric_pb2.Series):
        if (part.cell, part.key) != (cell, key):  # else the series continues in this message
            if steps:
                yield Series(cell, key, np.concatenate(steps), np.concatenate(values))
            cell, key, steps, values = part.cell, part.key, [], []
        steps.append(np.array(part.steps, dtype=np.uint32))
        values.append(np.array(part.values, dtype=np.float64))
    if steps:
        yield Series(cell, key, np.concatenate(steps), np.concatenate(values))
