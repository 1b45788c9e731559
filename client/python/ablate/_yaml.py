"""Reads experiment files: YAML 1.2 without tags, or JSON.

PyYAML follows YAML 1.1, in which `on`, `off`, `yes` and `no` are booleans and 1e-3 is text. The
schema here is the core schema of 1.2, as in the command line.
"""
from __future__ import annotations

import re
import sys
from typing import Any

import yaml

from ablate.errors import FieldProblem, InvalidArgument

_MAX_REPEATED = 100_000  # values that aliases add
_NUMBER = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _Loader(yaml.SafeLoader):
    """Refuses tags: they let a small file mean something unexpected."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) not in (None, "!"):
            raise yaml.MarkedYAMLError(
                problem=f"tags such as {event.tag} are not supported: write the value alone",
                problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def parse(text: str, name: str) -> dict[str, Any]:
    """Returns the fields of an experiment. `name` names the text in errors."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        fields = None if node is None else _Reader().value(node)
    except yaml.MarkedYAMLError as error:
        place = _place(error.problem_mark) if error.problem_mark else ""
        raise InvalidArgument(f"{name}{place}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InvalidArgument(f"{name}: {error}") from None
    except RecursionError:
        raise InvalidArgument(f"{name}: nested too deeply") from None
    if not isinstance(fields, dict):
        raise InvalidArgument(f"{name}: an experiment is a mapping: name, base, axes, seeds, …")
    return fields


def _scalar(text: str) -> Any:
    """Returns the value of a plain scalar: None, a bool, a number, otherwise the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return _decimal(text)
    if re.fullmatch(r"0o[0-7]+|0x[0-9a-fA-F]+", text):
        return int(text, 0)
    if re.fullmatch(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", text):
        return float(text.replace(".", ""))
    return text


def _decimal(text: str) -> float:
    """Returns the number of a decimal. Raises ValueError if it would become 0 or infinite."""
    number = float(text)
    if re.search("[1-9]", re.split("[eE]", text)[0]):
        if abs(number) < sys.float_info.min:
            raise ValueError(f"{text} is too small and would become 0; expected 0, or a number of "
                             "at least 2.23e-308 in size")
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"{text} is too large; expected a number of at most 1.79e+308 in size")
    return number


def _place(mark: yaml.Mark) -> str:
    return f":{mark.line + 1}:{mark.column + 1}"


def _is_missing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value == ""


class _Reader:
    """Turns nodes into values; aliases and merge keys (<<) into what they stand for."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._repeated = 0

    def value(self, node: yaml.Node) -> Any:
        self._count(node)
        if isinstance(node, yaml.ScalarNode):
            try:
                return _scalar(node.value) if node.style is None else node.value
            except ValueError as error:
                raise yaml.MarkedYAMLError(problem=str(error),
                                           problem_mark=node.start_mark) from None
        if isinstance(node, yaml.SequenceNode):
            for member in node.value:
                if _is_missing(member):
                    raise yaml.MarkedYAMLError(
                        problem="an empty list item: write null or a value",
                        problem_mark=member.start_mark)
            return [self.value(member) for member in node.value]
        fields: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, member in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a field's name must be a word",
                                           problem_mark=key.start_mark)
            if key.value in fields or (key.value == "<<" and merged):
                raise yaml.MarkedYAMLError(problem=f'duplicate key "{key.value}"',
                                           problem_mark=key.start_mark)
            if _is_missing(member):
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value}: the value is missing; expected a value, null for the "
                            "default, or {} for the default of each field",
                    problem_mark=key.start_mark)
            if key.value == "<<":
                merged = member.value if isinstance(member, yaml.SequenceNode) else [member]
            else:
                fields[key.value] = self.value(member)
        for source in merged:
            if not isinstance(source, yaml.MappingNode):
                raise yaml.MarkedYAMLError(
                    problem="<<: not a mapping; expected an alias of one, such as *name, or a list "
                            "of such aliases", problem_mark=source.start_mark)
            for name, value in self.value(source).items():
                fields.setdefault(name, value)
        return fields

    def _count(self, node: yaml.Node) -> None:
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._repeated += 1
        if self._repeated > _MAX_REPEATED:
            raise yaml.MarkedYAMLError(
                problem=f"aliases expand to more than {_MAX_REPEATED} values; expected fewer. "
                        "Write the values out", problem_mark=node.start_mark)
