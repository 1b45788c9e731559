"""Makes DataFrames of columns; imports pandas or polars only when one is asked for."""
from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Literal

from ablate.errors import InvalidArgument

#: pandas and polars mean a DataFrame of that library, None a dict of columns.
Library = Literal["pandas", "polars"] | None


def frame(columns: Mapping[str, Any], library: Library) -> Any:
    """Returns columns of equal length as a DataFrame of `library`, or as they are."""
    if library is None:
        return dict(columns)
    if library not in ("pandas", "polars"):
        raise InvalidArgument(f'library: "{library}" is unknown; expected pandas, polars or None')
    return importlib.import_module(library).DataFrame(dict(columns))
