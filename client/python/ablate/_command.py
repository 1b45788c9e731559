"""The command `ablate` of this package: the everyday commands, for machines without Debian's
package. The program of that package has more, and starts servers."""
from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from ablate import _address, _display
from ablate._connection import Connection, release
from ablate.errors import Conflict, Error, InvalidArgument, Unavailable
from ablate.experiment import Experiment
from ablate.lab import Lab, connect
from ablate.v1 import admin_pb2, experiment_pb2

_SUCCESS, _FAILURE, _CANCELLED, _USAGE, _UNAVAILABLE = 0, 1, 2, 64, 69
_State = experiment_pb2.ExperimentState


def main() -> int:
    """Becomes the program `ablate` if it is on the path, too; otherwise runs one command."""
    if program := _address.program():
        os.execv(program, [program, *sys.argv[1:]])
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code, as the program has them."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except Unavailable as error:
        return _fail(error, _UNAVAILABLE)
    except (Error, OSError) as error:
        return _fail(error, _FAILURE)
    except KeyboardInterrupt:
        return 130


def _fail(error: Exception, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """Ends with the exit code of a wrong command line."""

    def error(self, message: str) -> Any:
        self.print_usage(sys.stderr)
        self.exit(_USAGE, f"error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ablate", description="Submit experiments to an ablate server, and read "
                     "results. The server is $ABLATE_SERVER, or that of the last login.")
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("--server", metavar="NAME", help="use this login, or a join file NAME.join")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[Any], int], text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        return one

    one = command("login", _login, "Use a server on another machine from now on")
    one.add_argument("--join", metavar="FILE", required=True, help="join file of an admin")
    one.add_argument("--name", help="name for the server [the first part of its host name]")

    one = command("submit", _submit, "Create an experiment from a file")
    one.add_argument("file", metavar="FILE", help="experiment file: .yaml, .yml or .json")
    one.add_argument("--set", metavar="PATH=VALUE", action="append", default=[],
                     help="replace a value below base by one in JSON or a text, such as "
                     "training.steps=200 (repeatable)")
    one.add_argument("--seeds", help="8 for 0 to 7, 0..9 or 1,2,5 [the file's]")
    one.add_argument("--dry-run", action="store_true", help="only check it, and print the plan")
    one.add_argument("--wait", action="store_true", help="wait until it has ended, and compare")

    one = command("ls", _list, "List experiments, newest first")
    one.add_argument("-n", "--limit", metavar="N", type=int, default=100,
                     help="list at most N, 0 for all [100]")

    for name, run, text in (("show", _show, "Print an experiment's state"),
                            ("watch", _watch, "Follow an experiment until it has ended")):
        command(name, run, text).add_argument("experiment", metavar="EXP")

    one = command("compare", _compare, "Compare the settings of experiments")
    one.add_argument("experiments", metavar="EXP", nargs="+")
    one.add_argument("-k", "--key", default="", help="metric [report.primary]")
    one.add_argument("--by", default="", help="axis to compare along")

    one = command("report", _report, "Write the report page")
    one.add_argument("experiment", metavar="EXP")
    one.add_argument("-o", "--output", metavar="FILE", default="report.html",
                     help="file to write [report.html]")

    one.add_argument("--force", action="store_true", help="replace FILE")

    one = command("figure", _figure, "Draw a figure")
    one.add_argument("experiment", metavar="EXP")
    one.add_argument("kind", metavar="KIND", help="such as difference, curves or sensitivity")
    one.add_argument("-o", "--output", metavar="FILE", required=True, help=".svg, .pdf or .png")
    one.add_argument("-k", "--key", default="", help="metric, family or analysis [the kind's]")
    one.add_argument("--force", action="store_true", help="replace FILE")

    one = command("sql", _sql, "Run a SELECT over the server's views, as CSV")
    one.add_argument("statement", metavar="SELECT", help="`SELECT * FROM columns` lists the views")
    return parser


def _version() -> str:
    return f"ablate {release()}" if release() else "ablate, from a checkout"


def _lab(options: Any) -> Lab:
    try:
        return connect(options.server, start=False)
    except Unavailable as error:
        if options.server:
            raise
        raise Unavailable("no server: run `ablate login --join FILE`, or install the Debian "
                          f"packages, which start one ({error})") from None


def _login(options: Any) -> int:
    path = pathlib.Path(options.join)
    name = options.name or _name_of(_address.read_join_file(path, "").server_name)
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", name) or name == _address.PERSONAL:
        raise InvalidArgument(f'--name: "{name}" is not a name for a server; expected 1 to 64 '
                              "letters, digits and . _ -, other than personal")
    address = _address.read_join_file(path, name)
    with contextlib.closing(Connection(address)) as connection:
        who = connection.call("Admin/WhoAmI", admin_pb2.WhoAmIRequest(), admin_pb2.WhoAmIResponse)
    _address.add_login(name, path)
    user = who.user.removeprefix("users/")
    print(f"logged in to {name} ({address.target}) as {user}; {path} may be deleted",
          file=sys.stderr)
    return _SUCCESS


def _name_of(host: str) -> str:
    """Returns the first part of a host's name; the whole of an address."""
    if ":" in host or re.fullmatch(r"[0-9.]+", host):
        return host.replace(":", "-")
    return host.partition(".")[0]


def _value(text: str) -> Any:
    """Returns a number, a truth value or a list in the form of JSON; other texts as they are."""
    for read in (json.loads, float):
        with contextlib.suppress(ValueError):
            return read(text)
    return text


def _overrides(arguments: Iterable[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in arguments:
        path, equals, value = one.partition("=")
        if not equals or not path:
            raise InvalidArgument(f'--set: "{one}" has no value; expected PATH=VALUE')
        values[path] = _value(value)
    return values


def _seeds(text: str | None) -> Iterable[int] | int | None:
    if text is None:
        return None
    first, dots, last = text.partition("..")
    try:
        if dots:
            return range(int(first), int(last) + 1)
        return [int(one) for one in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise InvalidArgument(f'--seeds: "{text}" isn\'t a list of seeds; expected 8, 0..9 or '
                              "1,2,5") from None


def _submit(options: Any) -> int:
    lab = _lab(options)
    made = lab.submit(pathlib.Path(options.file), set=_overrides(options.set),
                      seeds=_seeds(options.seeds), dry_run=options.dry_run)
    if not isinstance(made, Experiment):
        print(made)
        return _SUCCESS
    print(made.id)
    if not options.wait:
        return _SUCCESS
    code = _follow(made)
    print(made.compare())
    return code


def _list(options: Any) -> int:
    rows = []
    for one in _lab(options).experiments()[:options.limit or None]:
        message = one.message
        rows.append((one.id, _State.Value.Name(message.state), _display.counts_text(message.counts),
                     message.owner, message.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M"),
                     message.spec.question))
    for row in _columns([("experiment", "state", "runs", "owner", "created", "question"), *rows]):
        print(row)
    return _SUCCESS


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns lines whose columns are aligned. Control characters are escaped."""
    plain = [[re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", cell)
              for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in plain) for i in range(len(plain[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in plain]


def _show(options: Any) -> int:
    experiment = _lab(options).experiment(options.experiment)
    message = experiment.message
    rows = [("experiment", experiment.id), ("state", _State.Value.Name(message.state)),
            ("runs", _display.counts_text(message.counts)), ("question", message.spec.question),
            ("primary", experiment.primary), ("tags", ", ".join(message.tags)),
            ("note", message.note), ("stalled", message.stalled),
            ("why cancelled", message.why_cancelled)]
    for line in _columns([row for row in rows if row[1]]):
        print(line)
    return _SUCCESS


def _follow(experiment: Experiment) -> int:
    """Waits for the end; returns the exit code."""
    counts = experiment.wait().message.counts
    print(f"{experiment.id}: {_display.counts_text(counts)}", file=sys.stderr)
    return _exit_code(experiment.message)


def _exit_code(message: experiment_pb2.Experiment) -> int:
    counts, analyses = message.counts, message.analyses
    if counts.failed or analyses.failed or analyses.failure:
        return _FAILURE
    cancelled = counts.cancelled or analyses.cancelled or message.state == _State.CANCELLED
    return _CANCELLED if cancelled else _SUCCESS


def _watch(options: Any) -> int:
    return _follow(_lab(options).experiment(options.experiment))


def _compare(options: Any) -> int:
    first, *others = options.experiments
    print(_lab(options).experiment(first).compare(options.key, by=options.by, others=others))
    return _SUCCESS


def _report(options: Any) -> int:
    _check_new(options)
    print(_lab(options).experiment(options.experiment).report(options.output), file=sys.stderr)
    return _SUCCESS


def _check_new(options: Any) -> None:
    if pathlib.Path(options.output).exists() and not options.force:
        raise Conflict(f"{options.output} exists already: --force replaces it")


def _figure(options: Any) -> int:
    forms: dict[str, Literal["svg", "pdf", "png"]] = {".svg": "svg", ".pdf": "pdf", ".png": "png"}
    form = forms.get(pathlib.Path(options.output).suffix)
    if form is None:
        raise InvalidArgument(f"--output: {options.output} has another format; expected a name "
                              f"that ends with {', '.join(forms)}")
    _check_new(options)
    experiment = _lab(options).experiment(options.experiment)
    experiment.figure(options.kind, format=form, key=options.key).save(options.output)
    return _SUCCESS


def _sql(options: Any) -> int:
    columns = _lab(options).sql(options.statement, library=None)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(columns)
    out.writerows(zip(*columns.values(), strict=True))
    return _SUCCESS
