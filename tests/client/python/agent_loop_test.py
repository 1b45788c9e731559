"""Tests the example of an agent's loop."""
import os
import pathlib
import subprocess
import sys
import unittest

import ablate
from personal_server import ROOT, PersonalServer


class AgentLoopTest(unittest.TestCase):
    def test_decides_about_each_change_and_keeps_some(self):
        with PersonalServer():
            package = str(pathlib.Path(ablate.__file__).parents[1])
            done = subprocess.run(
                [sys.executable, ROOT / "examples/agent_loop.py", "--seed", "1", "--changes", "4"],
                env=dict(os.environ, PYTHONPATH=package), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        *decisions, kept = done.stdout.splitlines()
        self.assertEqual(len(decisions), 4)
        for number, line in enumerate(decisions, 1):
            self.assertRegex(line, f" s  change-{number}: .* → .*: (better|not shown|worse) ")
        # A third more width is an effect of many standard deviations.
        self.assertIn("model.width 16 → 24: better", done.stdout)
        self.assertIn("model.width: 24", kept)


if __name__ == "__main__":
    unittest.main()
