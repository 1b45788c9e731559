"""Finds the server: its address and, on another machine, the credentials for it."""
from __future__ import annotations

import os
import pathlib
import re
import stat
import subprocess
import urllib.parse
from dataclasses import dataclass, field

from google.protobuf import json_format

from ablate.errors import Conflict, Error, InvalidArgument, NotFound, Unavailable
from ablate.v1 import join_pb2

PERSONAL = "personal"
_LOCAL = ("unix:", "localhost:", "127.0.0.1:", "[::1]:")
_MAX_SOCKET_PATH = 107  # sockaddr_un has 108 bytes including the terminating zero
_MAX_JOIN_FILE = 64 << 10


@dataclass(frozen=True)
class Address:
    """Where a server is, and what proves who asks."""

    target: str  # "unix:PATH" or "HOST:PORT"
    login: str = ""  # this user's name for it; empty on this machine
    server_name: str = ""  # that its certificate must contain
    authority: str = field(default="", repr=False)  # CA certificate in PEM; empty: no TLS
    token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{f'the server {self.login}' if self.login else 'a server'} at {self.target}"

    @property
    def next_step(self) -> str:
        """Returns the advice for a server that doesn't answer."""
        return "" if self.login else ": run `ablate up`"


def find(address: str | None) -> Address | None:
    """Returns the server that `address` names, or the environment; None for the personal server.

    `address` is as in `ablate.connect`. Without one the choice is the command line's:
    $ABLATE_SERVER, otherwise the current login, otherwise the personal server.
    """
    named = address or os.environ.get("ABLATE_SERVER") or _current_login()
    if not named or named == PERSONAL:
        return None
    if named.startswith(_LOCAL):
        return Address(named)
    if named.endswith(".join"):
        return read_join_file(pathlib.Path(named), pathlib.Path(named).stem)
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", named):
        raise InvalidArgument(
            f'"{named}" is not a server; expected unix:PATH, localhost:PORT, personal, a join '
            "file NAME.join, or the name of a login")
    file = _logins() / "servers" / f"{named}.json"
    if not file.exists():
        known = sorted(path.stem for path in file.parent.glob("*.json"))
        raise NotFound(f'no server is named "{named}"; expected {", ".join([PERSONAL, *known])}')
    return read_join_file(file, named)


def personal() -> Address:
    """Returns the address of the running personal server. Unavailable if there is none.

    The address file of a copied or moved folder names another server, and doesn't count.
    """
    home = _home()
    none = Unavailable(f"no server runs in {home}: run `ablate up`", retry=True)
    try:
        written = (home / "run" / "address").read_text().strip()
    except OSError:
        raise none from None
    real = os.fsencode(os.path.realpath(home))
    socket = real + b"/run/ablate.sock"
    if len(socket) <= _MAX_SOCKET_PATH:
        ours = written == "unix:" + urllib.parse.quote(socket, safe="/-._~")
    else:
        ours = written.startswith(_LOCAL) and written.endswith(f"/{_fnv1a(real):016x}-ablate.sock")
    if not ours:
        raise none
    return Address(written)


def start_personal() -> Address:
    """Starts the personal server by `ablate up`, which does nothing if it runs."""
    ablate = program()
    if ablate is None:
        raise Unavailable(f"no server runs in {_home()}, and the program ablate, which starts one, "
                          "isn't on PATH")
    up = subprocess.run([ablate, "up", "--home", str(_home())], capture_output=True, text=True,
                        stdin=subprocess.DEVNULL)
    if up.returncode != 0:
        raise Unavailable(f"`ablate up` failed: {up.stderr.strip()}")
    return personal()


def program() -> str | None:
    """Returns the program `ablate` on the path, not this package's command of that name."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = os.path.join(folder, "ablate")
        if not os.path.isfile(candidate) or not os.access(candidate, os.X_OK):
            continue
        try:
            script = pathlib.Path(candidate).read_bytes()[:2] == b"#!"
        except OSError:
            script = False  # it may be run, but not read
        if not script:
            return candidate
    return None


def _home() -> pathlib.Path:
    if home := os.environ.get("ABLATE_HOME"):
        return pathlib.Path(os.path.abspath(home))
    return _user_folder("XDG_DATA_HOME", ".local/share")


def _logins() -> pathlib.Path:
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, default: str) -> pathlib.Path:
    """Returns ablate's folder in the one that XDG's variable names; that must be absolute."""
    named = os.environ.get(variable, "")
    base = pathlib.Path(named) if os.path.isabs(named) else pathlib.Path.home() / default
    return base / "ablate"


def _current_login() -> str:
    try:
        return (_logins() / "current").read_text().strip()
    except OSError:
        return ""


def read_join_file(path: pathlib.Path, login: str) -> Address:
    """Reads a join file. Errors don't contain any part of the token."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None
    # Windows has no such rights.
    others_read = os.name == "posix" and status.st_mode & 0o077
    if not stat.S_ISREG(status.st_mode) or others_read:
        raise Conflict(f"{path}: others may read it; expected a file of mode 0600. Run "
                       f"`chmod 600 {path}` if nobody else has seen it")
    if status.st_size > _MAX_JOIN_FILE:
        raise InvalidArgument(f"{path}: {status.st_size} bytes; expected at most {_MAX_JOIN_FILE}")
    try:
        join = json_format.Parse(path.read_bytes(), join_pb2.JoinFile())
    except (json_format.ParseError, UnicodeDecodeError):
        raise InvalidArgument(f"{path}: not the JSON of a join file") from None
    for name in ("address", "server_name", "certificate_authority", "token"):
        if not getattr(join, name):
            raise InvalidArgument(f"{path}: {name} is missing; expected a join file of `ablate "
                                  "admin user add`")
    return Address(join.address, login, join.server_name, join.certificate_authority, join.token)


def add_login(name: str, join: pathlib.Path) -> None:
    """Keeps a join file as the login `name`, and makes it the current one."""
    folder = _logins() / "servers"
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for private in (folder.parent, folder):
        private.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{name}.json"
    try:
        known: Address | None = read_join_file(file, name)
    except Error:
        known = None  # there is none, or it is damaged
    if known and known.authority != read_join_file(join, name).authority:
        raise Conflict(f"{name} is the name of another server ({known.target}); give this one "
                       "another by --name NAME")
    _write_private(file, join.read_bytes())
    _write_private(_logins() / "current", f"{name}\n".encode())


def _write_private(path: pathlib.Path, content: bytes) -> None:
    """Replaces a file, whole or not at all, by one of mode 0600."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)


def _fnv1a(text: bytes) -> int:
    """Hashes a folder as the server does, for the name of a socket outside of it."""
    value = 14695981039346656037
    for byte in text:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value
