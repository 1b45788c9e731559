"""Opens the databases of tools and changes neither them nor their folders."""
from __future__ import annotations

import contextlib
import pathlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from ablate.read._reading import PathLike, find

PATTERNS = ("*.db", "*.sqlite", "*.sqlite3")


@contextlib.contextmanager
def database(path: pathlib.Path, *tables: str) -> Iterator[Callable[[str], sqlite3.Cursor]]:
    """Gives a function that runs a SELECT. Raises ValueError unless the tables are there.

    SQLite writes beside a database with a write-ahead log even if it only reads: such a one is
    copied.
    """
    with contextlib.ExitStack() as stack:
        with path.open("rb") as file:
            header = file.read(20)
        if header[:16] != b"SQLite format 3\0":
            raise ValueError("it isn't a SQLite database")
        if header[18:] != b"\1\1":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            log = path.with_name(path.name + "-wal")
            for source, name in ((path, "db"), (log, "db-wal")):
                if source.exists():
                    shutil.copyfile(source, pathlib.Path(folder, name))
            path = pathlib.Path(folder, "db")
        try:
            connection = stack.enter_context(contextlib.closing(
                sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)))
            connection.execute("PRAGMA trusted_schema = OFF")
            missing = set(tables) - names(connection)
            if missing:
                raise ValueError(f"it has no table {', '.join(sorted(missing))}")
            yield connection.execute
        except sqlite3.Error as problem:
            raise ValueError(str(problem)) from problem


def names(connection: sqlite3.Connection) -> set[str]:
    """Returns the names of ordinary tables. Others are not read: a view may be an endless query."""
    return {name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'")}


def files(path: PathLike, *tables: str) -> list[pathlib.Path]:
    """Returns the databases below a folder that have these tables, or the file that path is."""
    if not pathlib.Path(path).is_dir():
        return [pathlib.Path(path)]
    return [file for file in find(path, *PATTERNS) if has(file, *tables)]


def has(path: pathlib.Path, *tables: str) -> bool:
    """Returns whether a file is a database with these tables."""
    with contextlib.suppress(ValueError), database(path, *tables):
        return True
    return False
