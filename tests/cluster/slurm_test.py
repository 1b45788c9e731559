"""Tests pilots in a real Slurm cluster on this machine: cancelled, preempted, at their limit, and over a restart.

Usage: slurm_test.py ROOT BIN. ROOT is the checkout, BIN the folder of the programs. Exit code 77: Slurm or munge is missing.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import slurm_cluster
from slurm_cluster import SlurmCluster, eventually

ROOT, BIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
# More runs than are trained before the end of the test.
EXPERIMENT = """
name: grid
base:
  task: {documents: {dataset: names.txt, held_out: 500}}
  model: {layers: 2, width: 32, heads: 4, context: 16}
  training: {steps: 8000, batch: 8, learning_rate: 0.01}
  evaluation: {every: 500}
seeds: SEEDS
"""
# Submits, and says that it didn't; but only once.
SBATCH = """#!/bin/sh
{sbatch} "$@" || exit 1
mkdir {folder}/failed-once 2>/dev/null || exit 0
echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
exit 1
"""


class SlurmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slurm")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("cluster", "bin"):
            (self.folder / name).mkdir()
        (self.folder / "names.txt").write_bytes((ROOT / "examples/data/names.txt").read_bytes())
        self.environment = dict(os.environ, HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder),
                                ABLATE_HOME=str(self.folder / "home"), PATH=f"{BIN}:{os.environ['PATH']}")
        self.environment.pop("ABLATE_SERVER", None)

    def ablate(self, *arguments, home="home"):
        done = subprocess.run([BIN / "ablate", *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=dict(self.environment, ABLATE_HOME=str(self.folder / home)))
        self.assertEqual(done.returncode, 0, f"ablate {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def column(self, statement):
        return self.ablate("sql", statement).split()[1:]

    def start(self, name, *command, environment=None):
        with open(self.folder / f"{name}.log", "a") as log:
            process = subprocess.Popen([str(one) for one in command], cwd=self.folder, stdout=log, stderr=log,
                                       env=environment or self.environment)

        def end():
            process.terminate()
            process.wait(30)
        self.addCleanup(end)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def serve(self):
        """Starts a shared server without workers of its own; returns the join file of workers."""
        self.ablate("up")
        self.ablate("admin", "init", "localhost:7443")
        self.ablate("down")
        port = slurm_cluster.free_port()
        self.start("server", BIN / "ablated", "--home", self.folder / "home", "--no-workers", "--listen",
                   f"127.0.0.1:{port}")
        eventually("the server listens", lambda: "serving others" in self.log("server"))
        self.ablate("admin", "user", "add", "ci", "--role", "worker", "-o", "ci.join")
        join = self.folder / "ci.join"
        join.write_text(join.read_text().replace("localhost:7443", f"localhost:{port}"))
        return join

    def submit(self, seeds, home="home"):
        (self.folder / "grid.yaml").write_text(EXPERIMENT.replace("SEEDS", seeds))
        self.ablate("submit", "grid.yaml", home=home)

    def points(self, cells, home="home"):
        """Every point of these cells, as text."""
        lines = self.ablate("metrics", "grid", "--csv", home=home).splitlines()
        return {cell: [line for line in lines if line.startswith(f"{cell},")] for cell in cells}

    def launch(self, slurm, join):
        """Starts a launcher of two pilots, whose first sbatch fails after it has submitted."""
        sbatch = subprocess.check_output(["sh", "-c", "command -v sbatch"], text=True).strip()
        (self.folder / "bin/sbatch").write_text(SBATCH.format(sbatch=sbatch, folder=self.folder))
        (self.folder / "bin/sbatch").chmod(0o755)
        environment = dict(self.environment, SLURM_CONF=slurm.environment["SLURM_CONF"],
                           PATH=f"{self.folder}/bin:{self.environment['PATH']}:/usr/sbin")
        self.start("launcher", BIN / "ablate", "cluster", "slurm", "--join", join, "--max", "2", "--idle", "2s",
                   "--every", "1s", "--logs", self.folder / "pilots", "--worker-options", "--resume-every 0.2",
                   "--", "--partition=low", "--cpus-per-task=1", "--time=10", "--signal=B:TERM@45",
                   environment=environment)

    def interrupted(self):
        """The cells whose runs a worker gave back after they had begun."""
        begun = self.column("SELECT cell FROM cells JOIN runs USING (run) WHERE runs.step > 0 ORDER BY place")
        return [cell for cell in begun if "released" in self.ablate("logs", f"grid/{cell}")]

    def test_loses_no_point_at_any_end_of_a_pilot(self):
        join = self.serve()
        self.submit("{first: 0, count: 500}")
        with SlurmCluster(self.folder / "cluster", cpus=2) as slurm:
            def pilots():
                return [job for job, (state, name) in slurm.jobs().items()
                        if name.startswith("slurm-") and state == "RUNNING"]
            most, counted = 0, threading.Event()

            def count():
                nonlocal most
                while not counted.wait(0.2):
                    there = [name for state, name in slurm.jobs().values() if state in ("PENDING", "RUNNING")]
                    most = max(most, sum(name.startswith("slurm-") for name in there))
            counting = threading.Thread(target=count)
            counting.start()
            self.addCleanup(counting.join)
            self.addCleanup(counted.set)
            self.launch(slurm, join)

            first = eventually("two pilots run", lambda: len(pilots()) == 2 and pilots())
            eventually("they train", lambda: len(self.column("SELECT run FROM runs WHERE state = 'RUNNING'")) >= 2)
            slurm.run("scancel", first[0])
            second = eventually("one replaces it", lambda: len(pilots()) == 2 and first[0] not in pilots()
                                and pilots())
            job = slurm.run("sbatch", "--parsable", "--partition=high", "-o", "/dev/null", "--wrap", "sleep 1").strip()
            eventually("another job has preempted one", lambda: job not in slurm.jobs())
            third = eventually("one replaces it", lambda: len(pilots()) == 2 and set(pilots()) != set(second)
                               and pilots())
            slurm.run("scontrol", "update", f"JobId={third[0]}", "TimeLimit=1")
            slurm.stop("slurmctld")
            eventually("squeue fails", lambda: "squeue failed" in self.log("launcher"))
            slurm.start("slurmctld", "-D")
            eventually("one reaches its limit", lambda: pilots() and third[0] not in pilots())
            eventually("one replaces it", lambda: len(pilots()) == 2)

            cells = self.interrupted()
            self.assertGreaterEqual(len(cells), 3)
            names = ", ".join(f"'{cell}'" for cell in cells)
            eventually("they are trained", lambda: self.column(
                f"SELECT count(*) FROM cells JOIN runs USING (run) WHERE state = 'DONE' AND cell IN ({names})")
                == [str(len(cells))])
            self.ablate("cancel", "grid")
            eventually("idle pilots leave", lambda: not slurm.jobs())
            counted.set()
            counting.join()
            self.assertEqual(most, 2, "pilots at one time")
        self.assertIn("Socket timed out", self.log("launcher"))
        logs = [file.read_text() for file in (self.folder / "pilots").glob("*.log")]
        self.assertTrue(any("DUE TO PREEMPTION" in log for log in logs))
        self.assertTrue(all("draining: saving" in log for log in logs), logs)
        for cell in cells:
            self.assertNotRegex(self.ablate("logs", f"grid/{cell}"), r"\b(failed|lost)\b")

        self.ablate("up", home="other")
        self.addCleanup(self.ablate, "down", home="other")
        self.submit(f"{{list: [{', '.join(cell.removeprefix('s') for cell in cells)}]}}", home="other")
        self.ablate("wait", "grid", home="other")
        self.assertEqual(self.points(cells), self.points(cells, home="other"))


if missing := slurm_cluster.missing():
    print(f"skipped: no {', '.join(missing)}")
    sys.exit(77)
unittest.main(argv=sys.argv[:1], verbosity=2)
