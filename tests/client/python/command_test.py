"""Tests the command `ablate` of the Python package."""
import contextlib
import io
import os
import re
import unittest
import unittest.mock

from ablate import _command
from personal_server import PersonalServer


def run(*arguments):
    """Returns the exit code and what was printed, as output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = _command.run(arguments)
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        cls.server.ablate("up")
        code, cls.out, err = run("submit", "placement.yaml", "--seeds", "0..1", "--set",
                                 "training.steps=20", "--wait")
        assert code == 0, err
        cls.id = cls.out.splitlines()[0]

    def test_submit_prints_the_id_and_the_comparison(self):
        self.assertRegex(self.id, "^placement-[a-z0-9]{4}$")
        self.assertIn("held-out loss", self.out)
        code, out, _ = run("submit", "placement.yaml", "--seeds", "3", "--dry-run")
        self.assertEqual(code, 0)
        self.assertIn("9 runs", out)

    def test_reads_results(self):
        self.assertRegex(run("ls")[1], f"\n{self.id}  ENDED +6 done ")
        self.assertRegex(run("show", self.id)[1], "primary +eval/loss\n")
        self.assertEqual(run("watch", self.id)[0], 0)
        self.assertIn("training loss", run("compare", self.id, "-k", "train/loss")[1])
        self.assertEqual(run("sql", "SELECT count(*) AS cells FROM cells")[1], "cells\n6\n")
        self.assertEqual(run("report", self.id, "-o", "page.html")[0], 0)
        self.assertIn("<html", (self.server.folder / "page.html").read_text()[:500])
        code, _, err = run("report", self.id, "-o", "page.html")
        self.assertEqual((code, err), (1, "error: page.html exists already: --force replaces it\n"))
        self.assertEqual(run("report", self.id, "-o", "page.html", "--force")[0], 0)
        self.assertEqual(run("figure", self.id, "difference", "-o", "difference.png")[0], 0)
        self.assertEqual((self.server.folder / "difference.png").read_bytes()[:4], b"\x89PNG")

    def test_wrong_input_has_an_error_and_an_exit_code(self):
        for arguments, code, message in (
                (["submit"], 64, "error: the following arguments are required: FILE"),
                (["figure", self.id, "difference", "-o", "x.gif"], 1,
                 "--output: x.gif has another format; expected"),
                (["submit", "placement.yaml", "--seeds", "some"], 1, '--seeds: "some" isn'),
                (["submit", "placement.yaml", "--set", "x"], 1,
                 '--set: "x" has no value; expected PATH=VALUE'),
                (["submit", "placement.yaml", "--set", "training.stesp=1"], 1, "did you mean"),
                (["show", "nothing"], 1, "nothing"),
                (["--server", "elsewhere", "ls"], 1, 'no server is named "elsewhere"')):
            got, out, err = run(*arguments)
            self.assertEqual((got, out), (code, ""), arguments)
            self.assertIn(message, err)

    def test_becomes_the_program_if_it_is_on_the_path(self):
        with unittest.mock.patch("os.execv") as execute, \
                unittest.mock.patch("sys.argv", ["ablate", "ls"]):
            execute.side_effect = SystemExit
            self.assertRaises(SystemExit, _command.main)
        [program, arguments] = execute.call_args.args
        self.assertEqual(arguments, [program, "ls"])
        script = self.server.folder / "bin"
        script.mkdir()
        (script / "ablate").write_text("#!/bin/sh\n")
        (script / "ablate").chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PATH=str(script)):
            self.assertIsNone(_command._address.program())

    def test_control_characters_are_escaped(self):
        self.assertEqual(_command._columns([["a", "b"], ["\x1b[2J", "c"]]),
                         ["a        b", "\\x1b[2J  c"])


class LoginTest(unittest.TestCase):
    def test_keeps_a_join_file_that_the_server_accepts(self):
        with PersonalServer() as server:
            port, join = server.share()
            code, _, err = run("login", "--join", str(join), "--name", "lab")
            self.assertEqual((code, err), (0, f"logged in to lab (localhost:{port}) as ada; {join} "
                                              "may be deleted\n"))
            kept = server.folder / "config/ablate/servers/lab.json"
            self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
            self.assertEqual(kept.parent.parent.stat().st_mode & 0o777, 0o700)
            server.ablate("login", "--join", str(join), "--name", "other")
            server.ablate("logout", "other")
            self.assertEqual(run("login", "--join", str(join), "--name", "lab")[0], 0)
            join.unlink()
            self.assertEqual(run("ls")[0], 0)
            self.assertEqual(run("login", "--join", str(kept), "--name", "personal")[0], 1)
            bad = server.folder / "bad.join"
            bad.write_text(re.sub('"token": "[^"]*"', f'"token": "{"x" * 43}"', kept.read_text()))
            os.chmod(bad, 0o600)
            self.assertEqual(run("login", "--join", str(bad), "--name", "other")[0], 1)
            self.assertFalse((kept.parent / "other.json").exists())


if __name__ == "__main__":
    unittest.main()
