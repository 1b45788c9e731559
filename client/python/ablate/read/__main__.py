"""Writes results of other tools as messages: python -m ablate.read [--tool TOOL] PATH…

Each ImportRequest is preceded by its length as a varint. An error is one line on stderr, with exit
code 2 and nothing on stdout.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ablate.errors import Error
from ablate.read._detect import READERS, read


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(2, f"error: {message}\n")


def main(arguments: Sequence[str]) -> int:
    parser = _Parser(prog="python -m ablate.read", description="Write results of other tools as "
                     "messages for `ablate import`.")
    parser.add_argument("--tool", choices=sorted(READERS), help="tool that wrote the files [found]")
    parser.add_argument("path", metavar="PATH", nargs="+", help="folder or file with results")
    options = parser.parse_args(arguments)
    try:
        messages = [one.SerializeToString() for one in read(*options.path, tool=options.tool
                                                            ).messages()]
    except (Error, OSError) as problem:
        line = " ".join(str(problem).split())
        print(f"error: {line}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
        return 2
    for message in messages:
        sys.stdout.buffer.write(_varint(len(message)) + message)
    sys.stdout.buffer.flush()
    return 0


def _varint(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
