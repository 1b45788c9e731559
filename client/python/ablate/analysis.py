"""Analyses of trained models: numbers, and arrays whose axes have names."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import _display, _safetensors, _values
from ablate._connection import LONG, Connection
from ablate.errors import Conflict, DataLoss, Unavailable
from ablate.v1 import analysis_pb2

_State = analysis_pb2.AnalysisState
_OVER = (_State.DONE, _State.FAILED, _State.CANCELLED)


@dataclass(frozen=True, eq=False)
class Array:
    """An array of an analysis. `numpy.asarray` takes it; `axes` has a name per dimension."""

    values: NDArray[np.generic]
    axes: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.generic]:
        values = np.asarray(self.values, dtype=dtype)
        return values.copy() if copy else values

    def __repr__(self) -> str:
        shape = ", ".join(f"{axis} {size}" for axis, size in zip(self.axes, self.values.shape))
        return f"Array({shape}; {self.values.dtype})"


class Analysis:
    """A stored analysis. `cells` names its models, as far as they were named by cells."""

    def __init__(self, connection: Connection, message: analysis_pb2.Analysis,
                 cells: Sequence[str] = ()) -> None:
        self._connection = connection
        self.message = message
        self.cells = list(cells)

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def kind(self) -> str:
        return self.message.analysis.WhichOneof("kind") or ""

    @property
    def state(self) -> str:
        """Returns QUEUED, RUNNING, DONE, FAILED or CANCELLED, as last seen."""
        return _State.Value.Name(self.message.state)

    @property
    def numbers(self) -> dict[str, float]:
        """Returns the headline numbers by name; NaN for one that is undefined."""
        return {name: number.value if number.HasField("value") else float("nan")
                for name, number in sorted(self.message.numbers.items())}

    @property
    def undefined(self) -> dict[str, str]:
        """Returns the reasons of the numbers that are undefined."""
        reason = analysis_pb2.UndefinedNumber.Value.Name
        return {name: reason(number.undefined) for name, number in self.message.numbers.items()
                if number.HasField("undefined")}

    def wait(self) -> Analysis:
        """Waits until the analysis has ended, through restarts of the server. Raises Conflict if it
        failed or was cancelled."""
        def watch() -> Iterator[analysis_pb2.Analysis]:
            yield from self._connection.stream(
                "Analyses/WatchAnalysis", analysis_pb2.WatchAnalysisRequest(name=self.name),
                analysis_pb2.Analysis)
            if self.message.state not in _OVER:
                raise Unavailable("the server ended the watch early", retry=True)

        if self.message.state not in _OVER:
            for self.message in self._connection.keep_watching(watch):
                pass
        if self.message.state != _State.DONE:
            raise Conflict(f"{self.name} is {self.state}: {self.message.failure or 'cancelled'}")
        return self

    def arrays(self) -> dict[str, Array]:
        """Returns the arrays by name; empty if the kind has none."""
        self.wait()
        if not self.message.artifact:
            return {}
        file = self._connection.download(
            "Analyses/ReadAnalysisArrays", analysis_pb2.ReadAnalysisArraysRequest(name=self.name),
            analysis_pb2.AnalysisArraysChunk, self.message.artifact)
        arrays, _ = _safetensors.read(file)
        axes = {info.name: tuple(info.axes) for info in self.message.arrays}
        if {name: array.ndim for name, array in arrays.items()} != {
                name: len(names) for name, names in axes.items()}:
            raise DataLoss(f"{self.name}: the file has other arrays than the analysis lists")
        return {name: Array(values, axes[name]) for name, values in arrays.items()}

    def __getitem__(self, number: str) -> float:
        return self.numbers[number]

    def __repr__(self) -> str:
        return f"Analysis({self.name}, {self.kind}, {self.state}, {len(self.numbers)} numbers)"

    def _repr_html_(self) -> str:
        rows = [(name, self.undefined.get(name, f"{value:.4g}"))
                for name, value in self.numbers.items()]
        return _display.table(["number", "value"], rows, f"{self.kind} {' '.join(self.cells)}")


def create(connection: Connection, kind: str, subjects: Sequence[Mapping[str, Any]], *,
           inputs: Mapping[str, Any] | None, seed: int | None, name: str,
           options: Mapping[str, Any]) -> Analysis:
    """Queues one analysis of these models, or finds the stored one. Doesn't wait."""
    request = _values.make(analysis_pb2.CreateAnalysisRequest, subjects=subjects, seed=seed,
                           label=name, analysis={kind: options}, inputs=inputs)
    response = connection.call("Analyses/CreateAnalysis", request,
                               analysis_pb2.CreateAnalysisResponse, timeout=LONG)
    return Analysis(connection, response.analysis, [one["cell"] for one in subjects])
