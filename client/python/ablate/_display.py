"""Shows tables in notebooks, and the progress of an experiment in one line."""
from __future__ import annotations

import html
import importlib
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ablate.v1 import experiment_pb2

_REDRAW = 0.2  # seconds between two lines


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Returns an HTML table; every text is escaped."""
    def line(tag: str, cells: Sequence[object]) -> str:
        texts = (html.escape(str(cell)) for cell in cells)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    head = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (f"<table>{head}<thead>{line('th', header)}</thead><tbody>"
            + "".join(line("td", row) for row in rows) + "</tbody></table>")


def counts_text(counts: experiment_pb2.RunCounts) -> str:
    """Returns the counts that aren't 0, such as "35 done, 1 diverged"."""
    names = ("queued", "running", "done", "diverged", "failed", "cancelled")
    parts = [f"{getattr(counts, name)} {name}" for name in names if getattr(counts, name)]
    return ", ".join(parts) or "no runs"


class Progress:
    """Draws one line: over itself in a terminal, as one display in a notebook, else not at all."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = 0.0
        self._display = _notebook_display()
        self._event = experiment_pb2.ExperimentEvent()  # the newest one

    def update(self, event: experiment_pb2.ExperimentEvent) -> None:
        """Takes an event with a snapshot."""
        self._event = event
        if time.monotonic() - self._drawn >= _REDRAW:
            self._draw()

    def finish(self) -> None:
        self._draw()
        if self._display is None and sys.stderr.isatty():
            sys.stderr.write("\n")

    def _line(self) -> str:
        event, snapshot = self._event, self._event.snapshot
        line = f"{self._name}  {counts_text(event.counts)}"
        left = snapshot.time_left.ToTimedelta().total_seconds()
        if event.stalled:
            line += f"   STALLED: {event.stalled}"
        elif left > 0:
            line += f"   {snapshot.steps_per_second:,.0f} steps/s, {left:.0f} s left"
        elif event.HasField("analyses") and event.analyses.planned:
            line += f"   {event.analyses.queued + event.analyses.running} analyses left"
        if snapshot.HasField("newest"):
            line += f"   {snapshot.newest.key} {snapshot.newest.value:.4g}"
        return line

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._display is not None:
            self._display.update({"text/plain": self._line()}, raw=True)
        elif sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{self._line()[:width]}")
            sys.stderr.flush()


def _notebook_display() -> Any:
    """Returns the handle of a display that can be updated; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display: Any = importlib.import_module("IPython.display").display
    return display({"text/plain": ""}, raw=True, display_id=True)
