"""Replaces shorthands of experiment files by the fields that they stand for, as the command line
does: `seeds: 8`, `seeds: 42..53`, and ranges as the values of an axis."""
from __future__ import annotations

import math
import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from ablate.errors import InvalidArgument
from ablate.v1 import spec_pb2

_MAX_SEEDS = 10_000
_MAX_VALUES = 1_000  # of an axis


def expand(spec: dict[str, Any]) -> None:
    """Replaces the shorthands in an experiment's fields."""
    seeds = spec.get("seeds")
    if _is_number(seeds):
        spec["seeds"] = {"count": _count("seeds", seeds, 1, _MAX_SEEDS)}
    elif isinstance(seeds, str):
        listed = _seeds(seeds)
        spec["seeds"] = ({"list": listed} if "," in seeds
                         else {"first": listed[0], "count": len(listed)})
    elif isinstance(seeds, list):
        spec["seeds"] = {"list": seeds}
    axes = spec.get("axes")
    for index, axis in enumerate(axes if isinstance(axes, list) else []):
        if isinstance(axis, dict) and isinstance(axis.get("values"), dict):
            axis["values"] = _values(axis["values"], axis.get("field"), f"axes[{index}].values")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(field: str, value: Any, least: int, most: int) -> int:
    if not _is_number(value) or value != int(value) or not least <= value <= most:
        raise InvalidArgument(f"{field}: {value!r} is not a whole number from {least} to {most}")
    return int(value)


def _seeds(text: str) -> list[int]:
    """Returns the seeds of a text such as 42..53 or 0..3,9."""
    if ".." not in text and "," not in text:  # a number as a text could be a seed, or their count
        raise InvalidArgument(f"seeds: {text!r} isn't a number of seeds; expected a whole number "
                              f"from 1 to {_MAX_SEEDS}, a range such as 0..9, or a list")
    seeds: list[int] = []
    for item in text.split(","):
        ends = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", item)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends is not None else (0, -1)
        if last < first or last - first >= _MAX_SEEDS:
            raise InvalidArgument(f"seeds: {item!r} isn't a range of seeds; expected FIRST..LAST, at "
                                  f"most {_MAX_SEEDS} seeds")
        seeds += range(first, last + 1)
    return seeds


def _values(form: dict[str, Any], field: Any, path: str) -> list[float]:
    kinds = [kind for kind in ("log", "linear") if kind in form]
    if len(kinds) != 1 or form.keys() != {kinds[0], "count"}:
        raise InvalidArgument(f"{path}: {form!r} is not a range; expected a list of values, "
                              "{log: [FIRST, LAST], count: N} or {linear: [FIRST, LAST], count: N}")
    kind, ends = kinds[0], form[kinds[0]]
    good = (isinstance(ends, list) and len(ends) == 2 and all(map(_is_number, ends))
            and all(map(math.isfinite, ends)) and ends[0] != ends[1]
            and (kind == "linear" or min(ends) > 0))
    if not good:
        raise InvalidArgument(f"{path}: {kind}: {ends!r} is not a range; expected two different "
                              "numbers" + (" above 0" if kind == "log" else ""))
    count = _count(f"{path}: count", form["count"], 2, _MAX_VALUES)
    return _range(float(ends[0]), float(ends[1]), count, kind == "log", _is_whole(field))


def _is_whole(path: Any) -> bool:
    """Returns True if the field of this path below base has whole numbers."""
    message: Any = spec_pb2.BaseSpec.DESCRIPTOR
    field: Any = None
    for name in str(path).split("."):
        field = message.fields_by_name.get(name) if message is not None else None
        if field is None:
            return False
        message = field.message_type
    return field.cpp_type in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_INT32)


def _range(first: float, last: float, count: int, log: bool, whole: bool) -> list[float]:
    """Returns the values between exact ends, with the fewest digits that keep them within a
    hundredth of a step, at least three."""
    parts = [i / (count - 1) for i in range(count)]
    low, high = math.log(first) if log else first, math.log(last) if log else last
    exact = [low + part * (high - low) for part in parts]
    exact = [first, *[math.exp(one) if log else one for one in exact[1:-1]], last]
    steps = [min(abs(exact[i + 1] - exact[i]), abs(exact[i] - exact[i - 1]))
             for i in range(1, count - 1)]
    if whole:
        return [first, *[float(round(one)) for one in exact[1:-1]], last]
    rounded: list[float] = []
    for digits in range(3, 16):
        rounded = [0.0 if abs(one) < 1e-9 * step else float(f"{one:.{digits}g}")
                   for one, step in zip(exact[1:-1], steps, strict=True)]
        if all(abs(one - true) <= 0.01 * step
               for one, true, step in zip(rounded, exact[1:-1], steps, strict=True)):
            break
    return [first, *rounded, last]
