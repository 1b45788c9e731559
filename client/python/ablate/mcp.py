"""Serves agents by the Model Context Protocol: python -m ablate.mcp [--allow-changes]

It speaks MCP on standard input and output, and uses the server that `ablate.connect()` finds.
Errors are returned to the agent as text. Needs the package `mcp`.
"""
from __future__ import annotations

import argparse
import asyncio
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ablate import _tools

if TYPE_CHECKING:
    from mcp.server.fastmcp import FastMCP

_INSTRUCTIONS = """Ablation experiments with a verdict. The loop: submit a change and its
baseline as two settings of one axis, wait with status, compare with gate, looks or session. Keep
the change if gate is "better", drop it if "not shown" or "worse", add seeds if "cannot say". Never
judge by one seed or by means alone."""
_READ_ONLY = (_tools.status, _tools.query, _tools.sql)
_TOOLS = (_tools.submit, _tools.compare, _tools.judge, _tools.report, *_READ_ONLY)
_CHANGES = (_tools.cancel, _tools.delete)


def server(allow_changes: bool = False) -> FastMCP:
    """Returns the server; with `allow_changes` it has the tools cancel and delete, too."""
    from mcp.server.fastmcp import FastMCP
    from mcp.types import ToolAnnotations

    made = FastMCP("ablate", instructions=_INSTRUCTIONS, log_level="WARNING")
    for tool in (*_TOOLS, *(_CHANGES if allow_changes else ())):
        hints = ToolAnnotations(readOnlyHint=tool in _READ_ONLY,
                                destructiveHint=tool in _CHANGES)
        made.tool(annotations=hints)(_in_thread(tool))
    return made


def _in_thread(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the tool as a coroutine function that doesn't block the protocol."""
    @functools.wraps(tool)
    async def call(**arguments: Any) -> Any:
        return await asyncio.to_thread(tool, **arguments)

    return call


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ablate.mcp",
                                     description="Serve agents by MCP on standard input and output.")
    parser.add_argument("--allow-changes", action="store_true",
                        help="let agents cancel and delete experiments, too")
    options = parser.parse_args()
    try:
        made = server(options.allow_changes)
    except ImportError as error:
        sys.exit(f"error: {error}; run: pip install 'client/python[mcp]'")
    made.run()


if __name__ == "__main__":
    main()
