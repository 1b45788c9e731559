"""Makes a frame of a table that the caller has."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ablate.errors import InvalidArgument
from ablate.read._frame import Frame, Run, Series
from ablate.read._reading import Notes, Points, finish, number, step_of


def rows(table: Any, *, setting: str | Iterable[str], pair: str, metric: str | Iterable[str],
         step: str | None = None, group: str | None = None, items: bool = False) -> Frame:
    """Returns the frame of a pandas DataFrame, or of dicts.

    `setting`, `pair`, `metric`, `step` and `group` are names of columns; `pair` is the seed, or
    with `items` the item, such as a document. A value that is None is left out. Raises
    InvalidArgument if a column is missing or a setting has a pair (and step) twice.
    """
    settings = [setting] if isinstance(setting, str) else list(setting)
    metrics = [metric] if isinstance(metric, str) else list(metric)
    known: dict[tuple[Any, ...], tuple[Run, Points]] = {}
    seen, notes = set[tuple[Any, ...]](), Notes()
    records = table.to_dict("records") if hasattr(table, "to_dict") else table
    for index, row in enumerate(records):
        for column in [*settings, pair, *metrics, *(one for one in (step, group) if one)]:
            if not isinstance(row, Mapping) or column not in row:
                raise InvalidArgument(f"row {index}: it has no column {column}; expected one in "
                                      "each row")
        values = {column: _plain(row[column]) for column in [*settings, pair]}
        keys = tuple(map(repr, values.values()))
        if (place := (*keys, step and _plain(row[step]))) in seen:
            raise InvalidArgument(f"row {index}: {_name(values)} is there twice; expected one row "
                                  f"per setting and {pair}{' and step' if step else ''}")
        seen.add(place)
        chosen = {key: values[key] for key in settings} if items else values
        run, points = known.setdefault(keys[:len(settings)] if items else keys,
                                       (Run(_name(chosen), chosen), Points()))
        for key in metrics:
            value = number(_plain(row[key]))
            if value is None:
                notes.add("values that aren't numbers are left out", f"{run.name} {key}")
            elif items:
                series = run.series.setdefault(key, Series(np.zeros(0)))
                series.items.append(str(values[pair]))
                series.groups += [str(row[group])] if group else []
                points.add(key, len(series.items), value)
            else:
                points.add(key, step_of(_plain(row[step])) if step else 0, value)
    for run, points in known.values():
        for key, one in points.series(run.name, notes).items():
            if items:
                run.series[key].values = one.values
            else:
                run.series[key] = one
    return finish("table", "table", [(run, run.name) for run, _ in known.values()], notes)


def _plain(value: Any) -> Any:
    """Returns a value of NumPy or pandas as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _name(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
