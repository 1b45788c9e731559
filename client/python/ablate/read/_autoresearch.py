"""Reads results.tsv of karpathy/autoresearch."""
from __future__ import annotations

from ablate.read._frame import Frame, Run
from ablate.read._reading import Notes, PathLike, Points, csv_rows, find, finish, reading

_TEXTS = ("commit", "status", "description")


def autoresearch(path: PathLike) -> Frame:
    """Reads one run per row. Settings are commit and description; each other column is a metric. A
    crash, or 0 as the first metric, is a failed run without values."""
    notes, runs = Notes(), []
    with reading(path, "results.tsv of autoresearch"):
        files = find(path, "*.tsv")
    for file in files:
        with reading(file, "results.tsv with the columns commit, status and description"):
            header, rows = csv_rows(file, "\t")
            if missing := [name for name in _TEXTS if name not in header]:
                raise ValueError(f"it has no column {', '.join(missing)}")
            metrics = [name for name in header if name not in _TEXTS]
            for line, cells in enumerate(rows, 2):
                row, points = dict(zip(header, cells, strict=True)), Points()
                failed = row["status"] == "crash" or float(row[metrics[0]]) == 0
                for key in [] if failed else metrics:
                    points.add(key, 0, float(row[key]))
                run = Run(row["commit"], {key: row[key] for key in ("commit", "description")},
                          "failed" if failed else "finished")
                run.series = points.series(run.name, notes)
                runs.append((run, f"line {line}"))
    notes.add("autoresearch makes one run each, so there are no seeds")
    return finish("autoresearch", path, runs, notes)
