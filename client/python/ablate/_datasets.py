"""Uploads data sets."""
from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ablate import _safetensors, _values
from ablate._connection import LONG, Connection
from ablate.errors import InvalidArgument, NotFound
from ablate.v1 import dataset_pb2

_CHUNK = 256 << 10
_JSON = "tokenizer.json"  # the file in the folder of a tokenizer, or else these two
_TOKENIZER = ("vocab.json", "merges.txt")
_log = logging.getLogger("ablate")


def upload(connection: Connection, path: Path, private: bool,
           for_experiment: bool = False) -> dataset_pb2.Dataset:
    """Uploads a file, or the file that is made of a tokenizer's folder, unless the server has its
    bytes already. Bytes that it has as the caller's private data set aren't published. An upload
    `for_experiment` is deleted after an hour unless an experiment uses it, and only the caller sees
    it until then. Logs an upload, as a warning if others will see it."""
    return upload_bytes(connection, _read(path), path, private, for_experiment)


def upload_bytes(connection: Connection, source: bytes, path: Path, private: bool,
                 for_experiment: bool) -> dataset_pb2.Dataset:
    """Uploads bytes that were made of the files at a path, as `upload` does a file."""
    sha256 = hashlib.sha256(source).hexdigest()
    for as_private in (True,) if private else (False, True):
        request = dataset_pb2.GetDatasetRequest(sha256=sha256, verify=True, private=as_private)
        try:
            found = connection.call("Datasets/GetDataset", request, dataset_pb2.Dataset,
                                    timeout=LONG)
        except NotFound:
            continue
        if found.HasField("expire_time") and (not for_experiment or private and not found.private):
            continue  # uploading it again, without its bytes, makes it what is asked for
        if not found.damaged:
            return found
        private = found.private  # uploading it again mends it
        break
    published = bool(connection.address.login) and not private
    _log.log(logging.WARNING if published else logging.INFO,
             "uploading %s (%d bytes) as a %s data set%s", path, len(source),
             "private" if private else "public",
             "" if private or not for_experiment else " once an experiment uses it")

    def messages() -> Iterator[dataset_pb2.UploadDatasetRequest]:
        yield dataset_pb2.UploadDatasetRequest(display_name=display_name(path), sha256=sha256,
                                               private=private, for_experiment=for_experiment)
        for first in range(0, len(source), _CHUNK):
            yield dataset_pb2.UploadDatasetRequest(data=source[first:first + _CHUNK])

    return connection.send("Datasets/UploadDataset", messages(), dataset_pb2.Dataset)


def check_links(path: Path, allowed: Sequence[Path]) -> None:
    """Raises InvalidArgument if the files of a tokenizer's folder are links that lead out of it,
    other than to `allowed`."""
    if path.is_dir():
        check_allowed(path, path, allowed)


def display_name(path: Path) -> str:
    """Returns the name that the server shows for a file: letters, digits and . _ -, first a letter
    or digit, at most 100 characters, at most 33 of them before the last dot."""
    file = path.resolve().name if path.name in ("", "..") else path.name
    name = re.sub(r"[^A-Za-z0-9._]", "-", file)
    stem, dot, ending = name.rpartition(".") if "." in name else (name, "", "")
    return re.sub(r"^[^A-Za-z0-9]+", "", f"{stem[-33:]}{dot}{ending}"[:100]) or "data"


def _names_in(folder: Path) -> tuple[str, ...]:
    """Returns the names of the files that are read in a tokenizer's folder."""
    return (_JSON,) if (folder / _JSON).exists() else _TOKENIZER


def _read(path: Path) -> bytes:
    """Returns the bytes that are uploaded of a path."""
    if path.is_dir():
        names = _names_in(path)
        missing = [name for name in names if not (path / name).exists()]
        if missing:
            raise InvalidArgument(f"{path} is a folder without {missing[0]}; expected a file, or a "
                                  f"tokenizer's folder with {_JSON}, or {' and '.join(_TOKENIZER)}")
        return _safetensors.write_bytes({name: (path / name).read_bytes() for name in names},
                                        {"ablate.dataset": "tokenizer"})
    if not path.exists():
        names = [near.name for near in path.parent.iterdir()] if path.parent.is_dir() else []
        raise NotFound(f"no file {path}{_values.did_you_mean(path.name, names)}")
    if not path.is_file():
        raise InvalidArgument(f"{path} is not a file")
    return path.read_bytes()


def check_allowed(path: Path, folder: Path, allowed: Sequence[Path]) -> None:
    """Raises InvalidArgument if what is read for a path is hidden or outside a folder, other than
    in `allowed`."""
    root = folder.resolve()
    for read in [path / name for name in _names_in(path)] if path.is_dir() else [path]:
        real = read.resolve()
        if any(real.is_relative_to(one.resolve()) for one in allowed):
            continue
        inside = real.is_relative_to(root)
        if not inside or any(part.startswith(".") for part in real.relative_to(root).parts):
            raise InvalidArgument(
                f"{real} is {'hidden' if inside else 'outside the folder ' + str(root)}, and would "
                f"be uploaded; to allow that, add files=[{str(path)!r}]")
