"""Tests the server for agents with a client of the package mcp."""
import asyncio
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import ablate
from personal_server import PersonalServer, placement

PACKAGE = str(Path(ablate.__file__).parents[1])
READS = {"submit", "status", "compare", "judge", "query", "sql", "report"}


class Agent:
    """A client of a real server on standard input and output. Use it in a `with`."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.loop, self.done = asyncio.new_event_loop(), asyncio.Event()
        self.ready = concurrent.futures.Future()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.hello = self.ready.result(60)
        return self

    def _run(self):
        try:
            self.loop.run_until_complete(self._serve())
        except Exception as error:
            self.ready.set_exception(error)

    async def _serve(self):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "ablate.mcp", *self.options],
            env=dict(os.environ, PYTHONPATH=PACKAGE))
        async with stdio_client(server) as streams, ClientSession(*streams) as self.session:
            self.ready.set_result(await self.session.initialize())
            await self.done.wait()

    def __exit__(self, *exception):
        self.loop.call_soon_threadsafe(self.done.set)
        self.thread.join(60)
        self.loop.close()

    def wait_for(self, call):
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(60)

    def tools(self):
        return {tool.name: tool for tool in self.wait_for(self.session.list_tools()).tools}

    def call(self, tool, **arguments):
        """Returns whether the call failed, and its text."""
        result = self.wait_for(self.session.call_tool(tool, arguments))
        return bool(result.isError), "\n".join(part.text for part in result.content)


@unittest.skipUnless(importlib.util.find_spec("mcp"), "Python without mcp")
class McpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        with contextlib.ExitStack() as stack:
            cls.agent = stack.enter_context(Agent())
            cls.addClassCleanup(stack.pop_all().close)

    def good(self, tool, **arguments):
        failed, text = self.agent.call(tool, **arguments)
        self.assertFalse(failed, text)
        return text

    def bad(self, tool, **arguments):
        failed, text = self.agent.call(tool, **arguments)
        self.assertTrue(failed, text)
        return text

    def results(self, name, difference):
        lines = [f"{norm},{seed},{seed % 3 + difference * (norm == 'rms')}"
                 for norm in ("layer", "rms") for seed in range(12)]
        Path(name).write_text("\n".join(["norm,seed,loss", *lines]) + "\n")
        return str(self.server.folder / name)

    def test_tools_describe_themselves_and_change_nothing(self):
        tools = self.agent.tools()
        self.assertEqual(set(tools), READS)
        for name, tool in tools.items():
            self.assertGreater(len(tool.description), 80, name)
            self.assertFalse(tool.annotations.destructiveHint)
        self.assertIn("gate", self.agent.hello.instructions)

    def test_an_experiment_from_submit_to_report(self):
        plan = self.good("submit", experiment="placement.yaml", seeds=2, dry_run=True)
        self.assertIn("6 runs", plan)
        changes = {"training.steps": 20}
        first = self.good("submit", experiment=placement(), seeds=2, set=changes)
        self.assertRegex(first, "^placement-[a-z0-9]{4}$")
        self.assertIn("6 done", self.good("status", experiment=first, wait_seconds=60))
        answer = json.loads(self.good("compare", experiment=first, looks=True))
        self.assertEqual(answer["gate"], "cannot say")
        self.assertGreater(answer["more_pairs"], 0)
        answer = json.loads(self.good("compare", experiment=first, session="changes.json"))
        self.assertEqual(answer["gate"], "cannot say")
        self.assertTrue((self.server.folder / "changes.json").exists())
        self.assertIn("held-out loss", answer["text"])
        more = self.good("submit", experiment=(self.server.folder / "placement.yaml").read_text(),
                         seeds=[0, 1, 2], set=changes, extends=first)
        self.assertIn("9 done", self.good("status", experiment=more, wait_seconds=60))
        self.assertIn(more, self.good("status"))
        self.assertNotIn("gate", json.loads(self.good("compare", experiment=more)))
        rows = self.good("query", filter="placement = pre AND seed < 2", columns=["eval/loss"],
                         order_by="eval/loss", limit=1).splitlines()
        self.assertEqual(len(rows), 2)
        self.assertTrue(rows[0].endswith(",eval/loss"), rows[0])
        statement = "SELECT DISTINCT cell FROM cells WHERE cell GLOB 'pre-s[0-2]' ORDER BY cell"
        self.assertEqual(self.good("sql", statement=statement, limit=2),
                         "cell\npre-s0\npre-s1\n(1 more row; raise limit)\n")
        path = self.good("report", experiment=more)
        self.assertEqual(path, str(self.server.folder / f"{more}.html"))
        self.assertIn("<html", Path(path).read_text()[:500])
        self.assertIn("exists already", self.bad("report", experiment=more))

    def test_a_session_of_judged_files_is_the_command_lines(self):
        session = str(self.server.folder / "session.json")
        better = self.results("better.csv", -1)
        answer = json.loads(self.good("judge", paths=[better], setting=["norm"], metric="loss",
                                      session=session))
        self.assertEqual(answer["gate"], "better")
        kept = Path(session).read_text()
        [change] = json.loads(kept)["changes"]
        self.assertTrue(change.startswith("rms"), change)
        self.server.ablate("judge", better, "--setting", "norm", "--metric", "loss", "--session",
                           session)
        self.assertEqual(json.loads(Path(session).read_text()), json.loads(kept))
        answer = json.loads(self.good("judge", paths=[self.results("worse.csv", 1)],
                                      metric="loss", baseline={"norm": "layer"}))
        self.assertEqual(answer["gate"], "worse")

    def test_bad_input_is_an_error_with_the_servers_message(self):
        wrong = placement(seeds={"count": 0})
        wrong["base"]["model"]["widht"] = 8
        for tool, arguments, message in (
                ("submit", {"experiment": wrong}, "did you mean"),
                ("submit", {"experiment": "nothing.yaml"}, "nothing.yaml: no such file"),
                ("submit", {}, "experiment"),
                ("status", {"experiment": "nothing"}, "nothing"),
                ("compare", {"experiment": "nothing", "gate": True}, "nothing"),
                ("judge", {"paths": ["nothing.csv"]}, "nothing.csv"),
                ("judge", {"paths": [self.results("one.csv", 1)], "at": "first"}, "at"),
                ("judge", {"paths": ["one.csv"], "metric": "loss", "session": "placement.yaml"},
                 "isn't the file of a session"),
                ("query", {"filter": "lossy < 1"}, "lossy"),
                ("sql", {"statement": "DELETE FROM runs"}, "SELECT"),
                ("delete", {"experiment": "placement"}, "Unknown tool")):
            self.assertIn(message, self.bad(tool, **arguments), (tool, arguments))

    def test_cancels_and_deletes_only_if_allowed(self):
        with Agent("--allow-changes") as agent:
            self.assertEqual(set(agent.tools()), READS | {"cancel", "delete"})
            self.assertTrue(agent.tools()["delete"].annotations.destructiveHint)
            _, name = agent.call("submit", experiment=placement(name="long"), seeds=1,
                                 set={"training.steps": 500000})
            self.assertTrue(agent.call("delete", experiment=name)[0])
            self.assertFalse(agent.call("cancel", experiment=name)[0])
            self.assertIn("CANCELLED", agent.call("status", experiment=name, wait_seconds=60)[1])
            self.assertEqual(agent.call("delete", experiment=name), (False, f"deleted {name}"))
            self.assertTrue(agent.call("status", experiment=name)[0])

    def test_without_the_package_the_error_names_it(self):
        hidden = ("import runpy, sys; sys.modules['mcp'] = None; sys.argv = ['mcp']; "
                  "runpy.run_module('ablate.mcp', run_name='__main__')")
        done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=PACKAGE))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("pip install 'client/python[mcp]'", done.stderr)


if __name__ == "__main__":
    unittest.main()
