"""Comparisons of an experiment's settings with their baseline."""
from __future__ import annotations

import html
from typing import Any

from ablate import _display
from ablate._frames import Library, axis_columns, frame
from ablate.v1 import comparison_pb2


class Comparison:
    """A comparison as the server computed it. Printed, it is the text of `ablate compare`.

    `message` has every number; docs/reference/comparison.md explains them.
    """

    def __init__(self, message: comparison_pb2.Comparison) -> None:
        self.message = message

    @property
    def verdict(self) -> str:
        """Returns the conclusion in one sentence."""
        return self.message.verdict.text

    @property
    def gate(self) -> str:
        """Returns the decision: better, not shown, worse or cannot say; empty if none was asked
        for. `message.gate` has its reason."""
        if not self.message.HasField("gate"):
            return ""
        return comparison_pb2.Gate.Decision.Name(self.message.gate.decision
                                                 ).lower().replace("_", " ")

    @property
    def warnings(self) -> list[str]:
        return [warning.text for warning in self.message.warnings]

    def frame(self, library: Library = "pandas") -> Any:
        """Returns one row per setting; a statistic that doesn't exist is None. An axis that has the
        name of another column is axis.NAME."""
        rows = self.message.rows
        columns: dict[str, list[Any]] = {}
        for name in ("n", "diverged", "missing", "failed"):
            columns[name] = [getattr(row, name) for row in rows]
        for name in ("mean", "mean_low", "mean_high"):
            columns[name] = [_optional(row, name) for row in rows]
        columns["difference"] = [_optional(row.difference, "mean") for row in rows]
        columns["difference_low"] = [_optional(row.difference, "low") for row in rows]
        columns["difference_high"] = [_optional(row.difference, "high") for row in rows]
        for name in ("p", "p_holm", "effect", "wins", "losses", "pairs", "parameters",
                     "device_seconds"):
            columns[name] = [_optional(row, name) for row in rows]
        outcomes, grades = comparison_pb2.VerdictOutcome.Value, comparison_pb2.VerdictGrade.Value
        verdicts = [row.verdict if row.HasField("verdict") else None for row in rows]
        columns["outcome"] = [one and outcomes.Name(one.outcome) for one in verdicts]
        columns["grade"] = [one and grades.Name(one.grade) for one in verdicts]
        front: dict[str, list[Any]] = {"label": [row.label for row in rows]}
        axes = axis_columns(self.message.row_axes, [*front, *columns])
        front |= {name: [row.labels.get(axis) for row in rows] for axis, name in axes.items()}
        return frame(front | columns, library)

    def __repr__(self) -> str:
        return self.message.text.rstrip("\n")

    def _repr_html_(self) -> str:
        rows = []
        for row in self.message.rows:
            difference = row.difference
            delta = "—"
            if difference.HasField("mean"):
                delta = f"{difference.mean:+.4g}"
                if difference.HasField("low") and difference.HasField("high"):
                    delta += f" [{difference.low:+.4g}, {difference.high:+.4g}]"
            wins = f"{row.wins}/{row.pairs}" if row.HasField("wins") else "—"
            rows.append([row.label, _number(row, "mean"), delta, _number(row, "p_holm"), wins,
                         row.diverged])
        header = ["setting", "mean", "Δ [95 % CI]", "p (Holm)", "wins", "diverged"]
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in (
            self.verdict, self.message.matched_note,
            *(f"warning: {text}" for text in self.warnings)) if text)
        return _display.table(header, rows, self.message.key) + notes


def _optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _number(message: Any, field: str) -> str:
    return f"{getattr(message, field):.4g}" if message.HasField(field) else "—"
