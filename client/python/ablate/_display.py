"""Shows tables in notebooks, and the progress of an experiment in one line."""
from __future__ import annotations

import collections
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
_WINDOW = 20.0  # seconds over which speeds are measured


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


class GrowthRate:
    """Measures how fast a count grows. Starts again if the count falls."""

    def __init__(self) -> None:
        self._samples: collections.deque[tuple[float, int]] = collections.deque()

    def add(self, now: float, count: int) -> None:
        samples = self._samples
        if samples and count < samples[-1][1]:
            samples.clear()
        samples.append((now, count))
        while len(samples) > 2 and now - samples[1][0] >= _WINDOW:
            samples.popleft()

    def per_second(self) -> float:
        """Returns 0 if less than a second is known."""
        if not self._samples or self._samples[-1][0] - self._samples[0][0] < 1:
            return 0
        (begin, first), (end, last) = self._samples[0], self._samples[-1]
        return (last - first) / (end - begin)


class Progress:
    """Draws one line: over itself in a terminal, as one display in a notebook, else not at all."""

    def __init__(self, name: str, primary: str) -> None:
        self._name, self._primary = name, primary
        self._steps: dict[str, tuple[int, int]] = {}  # of each run: made, and left
        self._training: dict[str, GrowthRate] = {}  # runs that have made steps
        self._made, self._speed = 0, GrowthRate()  # of all runs since this began
        self._drawn = 0.0
        self._metric = ""
        self._display = _notebook_display()
        self._event = experiment_pb2.ExperimentEvent()  # the newest one

    def update(self, event: experiment_pb2.ExperimentEvent) -> None:
        if event.cell:
            self._count(event, time.monotonic())
            if self._primary in event.last:
                self._metric = f"   {self._primary} {event.last[self._primary]:.4g}"
        self._event = event
        if time.monotonic() - self._drawn >= _REDRAW:
            self._draw()

    def _count(self, event: experiment_pb2.ExperimentEvent, now: float) -> None:
        before = self._steps.get(event.run)
        left = 0 if event.state in ENDED else max(event.steps - event.step, 0)
        self._steps[event.run] = (event.step, left)
        if before is not None:
            self._made += event.step - before[0]
        self._speed.add(now, self._made)
        if event.state != run_pb2.RunState.RUNNING:
            self._training.pop(event.run, None)
        elif event.step != (before or (0, 0))[0]:  # before its first steps a run may have no lane
            self._training.setdefault(event.run, GrowthRate()).add(now, event.step)

    def _seconds_left(self) -> float | None:
        """Returns the time of the slowest run at its own speed, or of all runs at theirs; None if unknown."""
        longest, others = 0.0, sum(left for _, left in self._steps.values())
        speed, everything = self._speed.per_second(), others
        for run, rate in self._training.items():
            if (own := rate.per_second()) > 0:
                longest = max(longest, self._steps[run][1] / own)
                others -= self._steps[run][1]
        if others > 0 and speed <= 0:
            return None
        return max(longest, everything / speed) if others > 0 else longest

    def finish(self) -> None:
        self._draw()
        if self._display is None and sys.stderr.isatty():
            sys.stderr.write("\n")

    def _line(self) -> str:
        event = self._event
        left, speed = self._seconds_left(), self._speed.per_second()
        line = f"{self._name}  {counts_text(event.counts)}"
        if event.stalled:
            line += f"   STALLED: {event.stalled}"
        elif left and speed > 0:
            line += f"   {speed:,.0f} steps/s, {left:.0f} s left"
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
