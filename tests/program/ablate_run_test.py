"""Tests what a program sends through ablate_run, and what it gets."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

MODULES = pathlib.Path(__file__).resolve().parents[2] / "client" / "python"


class Program:
    """A program with the descriptors, the settings and the folders of a run."""

    def __init__(self, code, folder, settings=None, **variables):
        self.folder = pathlib.Path(folder)
        (self.folder / "settings.json").write_text(json.dumps(settings or {}))
        read, metrics = os.pipe()
        replies, self._replies = os.pipe()
        self.lines = open(read, "rb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import ablate_run as run\n" + code], cwd=folder, text=True,
            pass_fds=[metrics, replies], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={
                **os.environ, "PYTHONPATH": str(MODULES), "ABLATE_METRICS": str(metrics),
                "ABLATE_REPLIES": str(replies), "ABLATE_SETTINGS": str(self.folder / "settings.json"),
                "ABLATE_SEED": "5", "ABLATE_STEP": "0", "ABLATE_STATE": str(self.folder / "state"),
                "ABLATE_OUT": str(self.folder / "out"), **variables})
        os.close(metrics)
        os.close(replies)

    def line(self):
        return json.loads(self.lines.readline())

    def reply(self, text):
        os.write(self._replies, text)

    def end(self):
        """Returns the lines that weren't read, the exit code, the output and the errors."""
        lines = [json.loads(line) for line in self.lines]
        output, errors = self.process.communicate()
        self.lines.close()
        os.close(self._replies)
        return lines, self.process.returncode, output, errors


class AblateRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_code(self, code, **options):
        return Program(code, self.folder, **options).end()

    def test_sends_numbers_by_key(self):
        lines, code, _, errors = self.run_code("""
class Scalar:
    def item(self): return 0.5
class Array:
    def item(self): raise ValueError("has 2 elements")
run.log({"loss": Scalar(), "a": {"b": 1, "c": {"d": True}}, "nan": float("nan")}, step=7)
for _ in range(2):
    run.log({"x": -float("inf"), "text": "3", "none": None, "array": Array(), "step": 1})
""")
        self.assertEqual(lines, [
            {"step": 7, "loss": 0.5, "a/b": 1, "a/c/d": 1, "nan": "NaN"},
            {"step": 7, "x": "-Infinity"}, {"step": 8, "x": "-Infinity"}])
        self.assertEqual(errors.splitlines(), [
            "ablate_run: text: not a number (str); dropped",
            "ablate_run: none: not a number (NoneType); dropped",
            "ablate_run: array: not a number (Array); dropped",
            "ablate_run: step: reserved name; dropped. Pass a step as log(..., step=N)."])
        self.assertEqual(code, 0)

    def test_counts_steps_as_wandb_does(self):
        lines, _, _, errors = self.run_code("""
run.log({"a": 1}); run.log({"a": 2}, commit=False); run.log({"b": 3}); run.log({"a": 4})
run.log({"a": 5}, step=9); run.log({"b": 6}); run.log({"a": 7}, step=3)
""", ABLATE_STEP="4")
        self.assertEqual([line["step"] for line in lines], [4, 5, 5, 6, 9, 9])
        self.assertEqual(errors, "ablate_run: log: steps decrease (3 after 9); such points are "
                         "dropped\n")

    def test_reads_settings(self):
        _, _, output, _ = self.run_code("""
args = run.defaults(lr=1, model={"heads": 2, "width": 8}, depth={"a": 1})
args.extra = 4
print(args.lr, args["model"].heads, args.model.width, args.depth, run.settings.extra, run.seed)
print(run.out.name, run.out.is_dir(), run.state.is_dir())
try: args.modle
except AttributeError as error: print(error)
""", settings={"lr": 0.25, "model": {"heads": 4}, "depth": 3})
        self.assertEqual(output.splitlines(), [
            "0.25 4 8 3 4 5", "out True True",
            "modle: unknown setting; expected lr, model, depth, extra"])

    def test_sends_a_point_while_the_program_computes(self):
        program = Program("run.log({'a': 1}); input()", self.folder)
        self.assertEqual(program.line(), {"step": 0, "a": 1})  # would wait for ever otherwise
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        self.assertEqual(program.end()[1], 0)

    def test_sends_everything_before_progress_and_after_an_exception(self):
        program = Program("run.log({'a': 1}); run.progress(1, 3); run.log({'a': 2}); input(); 1/0",
                          self.folder)
        self.assertEqual([program.line(), program.line()],
                         [{"step": 0, "a": 1}, {"progress": 1, "of": 3}])
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        lines, code, _, _ = program.end()
        self.assertEqual((lines, code), ([{"step": 1, "a": 2}], 1))

    def test_waits_until_a_checkpoint_is_stored(self):
        program = Program("""
for step in 3, 4:
    (run.state / "x").write_text(str(step))
    run.checkpoint(step)
run.checkpoint(5)
""", self.folder)
        for step in 3, 4:
            self.assertEqual(program.line(), {"checkpoint": step})
            self.assertEqual((program.folder / "state" / "x").read_text(), str(step))
            program.reply(b"checkpoint %d\n" % step)
        os.dup2(os.open(os.devnull, os.O_RDONLY), program._replies)  # the worker ends
        _, code, _, errors = program.end()
        self.assertEqual(code, 1)
        self.assertIn("checkpoint 5: not stored; the worker has ended", errors)

    def test_names_the_reason_if_a_checkpoint_is_refused(self):
        program = Program("run.checkpoint(2)", self.folder)
        self.assertEqual(program.line(), {"checkpoint": 2})
        program.reply(b'{"error": "its step is below the last one"}\n')
        _, code, _, errors = program.end()
        self.assertEqual(code, 1)
        self.assertIn("checkpoint 2: not stored; ", errors)
        self.assertIn("its step is below the last one", errors)

    def test_ends_early_when_asked(self):
        program = Program("""
step = 0
while not run.stopping():
    run.log({"a": 1}); step += 1
run.checkpoint(step)
""", self.folder)
        program.line()
        program.process.send_signal(signal.SIGTERM)
        points = 1
        while "checkpoint" not in (line := program.line()):
            points += 1
        program.reply(b"checkpoint %d\n" % points)
        self.assertEqual(line, {"checkpoint": points})
        self.assertEqual(program.end()[:2], ([], 0))

    def test_child_of_a_fork_is_ended_by_sigterm(self):
        _, code, output, _ = self.run_code("""
import os, signal
run.stopping()
pid = os.fork()
if pid == 0: signal.pause()
os.kill(pid, signal.SIGTERM)
print(os.waitpid(pid, 0)[1])
""")
        self.assertEqual((code, output), (0, f"{int(signal.SIGTERM)}\n"))

    def test_lines_of_threads_and_forks_stay_whole(self):
        lines, code, _, _ = self.run_code("""
import os, threading
def work(name):
    for step in range(300):
        run.log({f"{name}/{key}": step for key in range(step % 60)}, step=0)
run.log({"before": 1}, step=0)
for child in range(3):
    if os.fork() == 0:
        threads = [threading.Thread(target=work, args=(f"{child}{i}",)) for i in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        os._exit(0)
work("parent")
for child in range(3): os.wait()
""")
        points = [key for line in lines for key in line if key != "step"]
        self.assertEqual(len(points), 1 + 7 * sum(step % 60 for step in range(300)))
        self.assertEqual((points.count("before"), code), (1, 0))

    def test_serves_as_wandb(self):
        lines, _, output, errors = self.run_code("""
import argparse
wandb = run
with wandb.init(project="p", name="n", config=argparse.Namespace(lr=1, width=8), tags=["x"]) as it:
    wandb.watch(None, log="all")
    it.config.update({"heads": 2, "lr": 3}, allow_val_change=True)
    print(it.config.lr, wandb.config["width"], it.config.heads, it.name, it.id)
    it.log({"a": 1}); it.log({"a": 2})
    it.summary["best"] = 2
    it.summary.update({"name": "text"})
try: wandb.Image
except AttributeError as error: print(error)
""", settings={"lr": 0.5})
        self.assertEqual(lines, [{"step": 0, "a": 1}, {"step": 1, "a": 2}, {"step": 1, "best": 2}])
        self.assertEqual(output.splitlines()[0], "0.5 8 2 n n-5")
        self.assertRegex(output, "Image: not in ablate_run, which has settings, .* finish")
        self.assertEqual(errors.count("ablate_run: "), 2)

    def test_prints_without_a_run(self):
        code = ("import ablate_run as run; run.log({'a': 1 / 3, 'b': float('nan')}, step=10);"
                "run.checkpoint(3); run.progress(1, 2); print(run.seed, run.step, run.settings)")
        output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                                text=True, cwd=self.folder,
                                env={**os.environ, "PYTHONPATH": str(MODULES)}).stdout
        self.assertEqual(output, "step 10  a 0.333333  b nan\n0 0 {}\n")
        self.assertEqual(os.listdir(self.folder), [])

    def test_prints_in_a_process_that_is_no_fork(self):
        lines, _, output, _ = self.run_code("""
import subprocess, sys
code = "import ablate_run as run; run.log({'a': 1})"
subprocess.run([sys.executable, "-c", code], check=True)
""")
        self.assertEqual((lines, output), ([], "step 0  a 1\n"))


if __name__ == "__main__":
    unittest.main()
