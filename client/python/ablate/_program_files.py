"""Finds the files of a program that an experiment names, and packs them as `ablate submit` does."""
from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ablate import _datasets, _safetensors
from ablate.errors import DataLoss, InvalidArgument

_MAX_FILES, _MAX_BYTES = 10_000, 250_000_000
_ALLOWED = "paths and patterns of files in the experiment file's folder"
_OUTPUT = "out/"  # before the paths of a program's output


def pack(folder: Path, patterns: str, experiment: Path | None, allowed: Sequence[Path]) -> bytes:
    """Returns a file set of the files below `folder` that the patterns name, divided by commas. A
    folder stands for the files in it that git tracks or, if it tracks none, for all that aren't
    hidden. The file of the experiment is left out. Raises InvalidArgument for a pattern that leads
    out of the folder or names no file, for files that may not be sent, and above the limits."""
    found: set[str] = set()
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        path = posixpath.normpath(pattern)
        if path.startswith("/") or path.split("/")[0] == "..":
            raise InvalidArgument(f'"{pattern}" leads out of the experiment file\'s folder; expected '
                                  f"{_ALLOWED}")
        matches = _matches(folder, path)
        if not matches:
            raise InvalidArgument(f'"{pattern}" names no file; expected {_ALLOWED}')
        for match in matches:
            file = folder / match
            # A deleted file may still be tracked.
            if not file.is_file() or experiment is not None and file.samefile(experiment):
                continue
            _datasets.check_allowed(file, folder, allowed)
            found.add(match)
    size = sum((folder / path).stat().st_size for path in found)
    if len(found) > _MAX_FILES or size > _MAX_BYTES:
        raise InvalidArgument(f"{len(found):,} files of {size:,} bytes; expected at most "
                              f"{_MAX_FILES:,} files and {_MAX_BYTES:,} bytes. Name the program's "
                              "files one by one, or by patterns such as *.py")
    ordered = sorted(found, key=os.fsencode)
    executable = [path for path in ordered if (folder / path).stat().st_mode & stat.S_IXUSR]
    return _safetensors.write_bytes({path: (folder / path).read_bytes() for path in ordered},
                                    {"ablate.dataset": "files", "executable": "\n".join(executable)})


def unpack_output(file: bytearray, folder: Path) -> None:
    """Writes the files of a program's output into a new folder, all or none. Raises DataLoss if
    `file` isn't a file set or a path leads out of the folder."""
    arrays, metadata = _safetensors.read(file)
    if metadata.get("ablate.dataset") != "files":
        raise DataLoss("not a file set: its metadata don't say so")
    executable = metadata.get("executable", "").split("\n")
    for path in arrays:
        if not path.isprintable() or any(part in ("", ".", "..") for part in path.split("/")):
            raise DataLoss(f"not a file set: {path[:64]!r} isn't a relative path")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as part:
        whole = Path(part) / "files"
        whole.mkdir()
        for path, array in arrays.items():
            target = whole / path.removeprefix(_OUTPUT)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                out.write(array.tobytes())
            if path in executable:
                mode = target.stat().st_mode
                target.chmod(mode | (mode & 0o444) >> 2)
        whole.rename(folder)


def _matches(folder: Path, path: str) -> list[str]:
    """Returns the paths below `folder` that one path or pattern stands for."""
    if (folder / path).is_dir():
        below = "" if path == "." else path + "/"
        names = _tracked(folder / path) or _listed(folder / path)
        return [below + name for name in names
                if not any(part.startswith(".") for part in name.split("/"))]
    if (folder / path).exists():
        return [path]
    return [name for name in _listed(folder) if _fits(name.split("/"), path.split("/"))]


def _fits(names: list[str], patterns: list[str]) -> bool:
    """Returns True if each part fits: a * matches no slash."""
    return len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns))


def _tracked(folder: Path) -> list[str]:
    """Returns the files below a folder that git tracks; none outside of a repository."""
    # A repository's own settings may name programs to run: none is needed here.
    command = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "ls-files", "-z"]
    try:
        listed = subprocess.run(command, check=False, capture_output=True).stdout
    except OSError:
        return []
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _listed(folder: Path) -> list[str]:
    """Returns the files below a folder that aren't hidden, without Python's caches."""
    files: list[str] = []
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        below = Path(above).relative_to(folder)
        files += [str(below / name) for name in names
                  if not name.startswith(".") and (Path(above) / name).is_file()]
        if len(files) > 10 * _MAX_FILES:
            raise InvalidArgument(f"more than {10 * _MAX_FILES:,} files in {folder}; expected fewer")
    return files
