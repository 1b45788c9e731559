"""Shows tables in notebooks, and the progress of an experiment in one line."""
from __future__ import annotations

import html
import importlib
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ablate.v1 import experiment_pb2, run_pb2

ENDED = (run_pb2.RunState.DONE, run_pb2.RunState.DIVERGED, run_pb2.RunState.FAILED,
         run_pb2.RunState.CANCELLED)
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

    def __init__(self, name: str, primary: str) -> None:
        self._name, self._primary = name, primary
        self._steps: dict[str, tuple[int, int]] = {}  # of each run: made, and in all
        self._began, self._drawn = time.monotonic(), 0.0
        self._made_before: int | None = None
        self._metric = ""
        self._display = _notebook_display()
        self._event = experiment_pb2.ExperimentEvent()  # the newest one

    def update(self, event: experiment_pb2.ExperimentEvent) -> None:
        if event.cell:
            over = event.state in ENDED
            self._steps[event.run] = (event.steps if over else event.step, event.steps)
            if self._primary in event.last:
                self._metric = f"   {self._primary} {event.last[self._primary]:.4g}"
        self._event = event
        if time.monotonic() - self._drawn >= _REDRAW:
            self._draw()

    def finish(self) -> None:
        self._draw()
        if self._display is None and sys.stderr.isatty():
            sys.stderr.write("\n")

    def _line(self) -> str:
        event = self._event
        made = sum(step for step, _ in self._steps.values())
        left = sum(steps for _, steps in self._steps.values()) - made
        if self._made_before is None and event.counts.running:
            self._made_before, self._began = made, time.monotonic()
        seconds = time.monotonic() - self._began
        speed = (made - (self._made_before or 0)) / seconds if seconds >= 1 else 0
        line = f"{self._name}  {counts_text(event.counts)}"
        if event.stalled:
            line += f"   STALLED: {event.stalled}"
        elif left > 0 and speed > 0:
            line += f"   {speed:,.0f} steps/s, {left / speed:.0f} s left"
        elif event.HasField("analyses") and event.analyses.planned:
            line += f"   {event.analyses.queued + event.analyses.running} analyses left"
        return line + self._metric

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
