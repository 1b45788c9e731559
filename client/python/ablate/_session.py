"""Files of sessions of changes, which `ablate judge --session` reads and writes, too."""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ablate.errors import InvalidArgument

_FORMAT = "ablate session 1"


class Session(NamedTuple):
    """What a session has judged."""

    changes: list[str]
    level: float = 0.05  #: error rate of the whole session


def read(path: str | Path) -> Session:
    """Returns the session of a file; a new one if there is no file yet."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        level, changes = found["level"], found["changes"]
        good = (found["format"] == _FORMAT and isinstance(level, float)
                and isinstance(changes, list) and all(isinstance(one, str) for one in changes))
    except FileNotFoundError:
        return Session([])
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise InvalidArgument(f"session: {path} isn't the file of a session; expected one that "
                              "`ablate judge --session` has made, or no file yet")
    return Session(changes, level)


def write(path: str | Path, changes: Sequence[str], level: float) -> None:
    """Replaces the file of a session, whole or not at all."""
    draft = Path(f"{path}.{os.getpid()}.new")
    content = {"format": _FORMAT, "level": level, "changes": list(changes)}
    draft.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)
