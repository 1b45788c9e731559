"""Reads the folders of Lightning's CSVLogger."""
from __future__ import annotations

from ablate.read._frame import Frame, Run
from ablate.read._reading import (Notes, PathLike, Points, csv_rows, find, finish, flatten, reading,
                                  relative, yaml_file)


def lightning(path: PathLike) -> Frame:
    """Reads each folder that has metrics.csv. Settings are those of hparams.yaml beside it."""
    notes, runs = Notes(), []
    with reading(path, "a folder of Lightning"):
        files = find(path, "metrics.csv")
    for file in files:
        run, points = Run(relative(file.parent, path if file != path else file.parent)), Points()
        with reading(file, "metrics.csv of Lightning's CSVLogger"):
            header, rows = csv_rows(file)
            step = header.index("step") if "step" in header else None
            if not {"step", "epoch"} & set(header):
                raise ValueError("it has no column step")
            for index, row in enumerate(rows):
                at = float(row[step]) if step is not None else index
                for key, text in zip(header, row, strict=True):
                    if text and key not in ("step", "epoch"):
                        points.add(key, at, float(text))
        if (settings := file.with_name("hparams.yaml")).is_file():
            with reading(settings, "a YAML file of hparams"):
                run.settings = flatten(yaml_file(settings) or {})
        run.series = points.series(run.name, notes)
        runs.append((run, str(file.parent)))
    notes.add("Lightning doesn't store whether a run has finished; each counts as finished")
    return finish("lightning", path, runs, notes)
