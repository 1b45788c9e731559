"""Makes DataFrames of columns; imports pandas or polars only when one is asked for."""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ablate.errors import InvalidArgument

#: pandas and polars mean a DataFrame of that library, None a dict of columns.
Library = Literal["pandas", "polars"] | None


def axis_columns(axes: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Returns the column of each axis of a frame that has `others` as columns, too: the axis's
    name, or axis.NAME if another column has that name. An axis's name has no dot."""
    taken = frozenset(others)
    return {axis: f"axis.{axis}" if axis in taken else axis for axis in axes}


def frame(columns: Mapping[str, Any], library: Library) -> Any:
    """Returns columns of equal length as a DataFrame of `library`, or as they are."""
    if library is None:
        return dict(columns)
    if library not in ("pandas", "polars"):
        raise InvalidArgument(f'library: "{library}" is unknown; expected pandas, polars or None')
    return importlib.import_module(library).DataFrame(dict(columns))
