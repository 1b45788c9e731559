"""Tests submitting: data sets, programs, problems, restarts of the server."""
import json
import os
import shutil
import unittest
import warnings
from pathlib import Path

import ablate
import numpy as np
import yaml
from ablate import _datasets
from ablate.v1 import run_pb2
from personal_server import DATA, PLACEMENT, ROOT, PersonalServer, placement


class ServerTest(unittest.TestCase):
    """Has a server of its own for the tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        cls.lab = ablate.connect()

    def setUp(self):
        self.spec = placement()


class SubmitTest(ServerTest):
    def problems(self, experiment, **options):
        with self.assertRaises(ablate.InvalidArgument) as raised:
            self.lab.submit(experiment, **options)
        return dict(raised.exception.fields)

    def test_takes_a_dict_a_path_and_a_text(self):
        plans = [self.lab.submit(one, dry_run=True)
                 for one in (self.spec, "placement.yaml", self.server.folder / "placement.yaml",
                             PLACEMENT)]
        self.assertEqual({tuple(plan.cells) for plan in plans}, {tuple(plans[0].cells)})
        self.assertEqual(len(plans[0].cells), 24)
        self.assertIn("24 runs (0 reused)", repr(plans[0]))
        self.assertEqual(self.lab.experiments(), [])
        plan = self.lab.submit(self.spec, seeds=np.arange(3), dry_run=True)
        self.assertEqual(len(plan.cells), 9)
        self.assertRaises(ablate.NotFound, self.lab.submit, "plcement.yaml")

    def test_refuses_arguments_of_wrong_types(self):
        for experiment in (None, [self.spec], b"name: x", "placement", "names.txt"):
            with self.assertRaises(ablate.InvalidArgument) as raised:
                self.lab.submit(experiment, dry_run=True)
            self.assertTrue(str(raised.exception).startswith("experiment: "), raised.exception)
        for seeds in (0, "42..45", {"first": 1}, []):
            with self.assertRaises(ablate.InvalidArgument) as raised:
                self.lab.submit(self.spec, seeds=seeds, dry_run=True)
            self.assertTrue(str(raised.exception).startswith("seeds"), raised.exception)
        with self.assertRaises(ablate.InvalidArgument):
            self.lab.submit(self.spec, set="training.steps=3", dry_run=True)
        # A set has no order, so the baseline would be any of its values.
        axis = {"field": "model.norm.kind", "values": {"layer", "rms"}}
        self.assertEqual(set(self.problems({**self.spec, "axes": [axis]})), {"axes[0].values"})

    def test_lists_all_problems_that_the_server_finds(self):
        sets = {"model.heads": 5, "training.stepz": 1, "training.learning_rate": -1}
        problems = self.problems(self.spec, set=sets)
        self.assertEqual(set(problems), {f'overrides["{path}"]' for path in sets})
        values = [17 + i for i in range(200)]  # more problems than an error carries
        axes = [{"field": "model.norm.eps", "values": values}]
        self.assertGreaterEqual(len(self.problems({**self.spec, "axes": axes})), 200)

    def test_says_where_problems_of_files_and_texts_are(self):
        broken = PLACEMENT.replace("width: 16", "widht: 16").replace("count: 8", "count: 0")
        (self.server.folder / "broken.yaml").write_text(broken)
        for experiment, name in (("broken.yaml", "broken.yaml"), (broken, "the text")):
            problems = self.problems(experiment)
            self.assertTrue(problems["base.model.widht"].startswith(
                f"{name}:5:22: base.model.widht: unknown field (did you mean width?)"), problems)
        broken = PLACEMENT.replace("placement, values: [pre", "placement, values: [pree")
        for dry_run in (True, False):
            [(field, problem)] = self.problems(broken, dry_run=dry_run).items()
            self.assertEqual(field, "axes[0].values[0]")
            self.assertTrue(problem.startswith("the text:8:44: "), problem)
        for text, problem in (("a: !!int 3\n", "the text:1:4: tags"), ("a: *b\n", "the text:1:4: an alias"),
                              ("- 1\n", "an experiment is a mapping"), ("{", "the text:"),
                              ("a:\n\t- b\n", "the text:2:1: a tab"), ("x" * (2 << 20) + "\n", "2,")):
            with self.assertRaises(ablate.InvalidArgument) as raised:
                self.lab.submit(text)
            self.assertIn(problem, str(raised.exception))

    def test_reads_the_shorthands_of_files(self):
        text = PLACEMENT.replace("{first: 0, count: 8}", "3..5,9").replace(
            "axes:", "axes:\n  - {field: training.learning_rate, values: {log: [1e-3, 1e-2], count: 3}}")
        plan = self.lab.submit(text, dry_run=True)
        self.assertEqual(len(plan.cells), 36)
        self.assertIn("learning_rate0.00316-pre-s9", plan.cells)
        fields = {**self.spec, "seeds": "3..5,9", "axes": [
            {"field": "training.learning_rate", "values": {"log": [1e-3, 1e-2], "count": 3}},
            *self.spec["axes"]]}
        self.assertEqual(self.lab.submit(fields, dry_run=True).cells, plan.cells)
        self.assertEqual(len(self.lab.submit(text, seeds=1, dry_run=True).cells), 9)
        for seeds in ("twelve", "8", "9..0", "0..10000", "1,", ""):
            self.assertEqual(set(self.problems({**self.spec, "seeds": seeds})), {"seeds"})

    def test_refuses_values_that_no_text_has(self):
        for value, problem in ((float("nan"), "nan can't be sent"), (b"x", "can't be sent")):
            spec = {**self.spec, "base": {**self.spec["base"], "training": {"clip": value}}}
            self.assertIn(problem, self.problems(spec)["base.training.clip"])

    def test_uploads_data_sets_once(self):
        (self.server.folder / "own.txt").write_text("anna\nbob\n" * 40)
        self.spec["base"]["task"]["documents"]["held_out"] = 10
        axis = {"name": "data", "field": "task.documents.dataset",
                "values": ["own.txt", "names.txt"]}
        plan = self.lab.submit({**self.spec, "axes": [axis]}, seeds=[1, 2], dry_run=True)
        self.assertEqual(len(plan.cells), 4)
        self.assertRegex(plan.cells[0], r"own-\w{6}-s1")
        again = self.lab.submit({**self.spec, "axes": []}, dry_run=True,
                                set={"task.documents.dataset": "own.txt"})
        task = again.message.experiment.spec.base.task.documents
        self.assertEqual(task.dataset, self.lab.upload("own.txt"))
        self.assertEqual(self.server.ablate("data", "ls").count("own.txt"), 1)

    def test_uploads_a_tokenizer_as_the_command_line_does(self):
        folder = DATA / "gpt2-bpe"
        if not (folder / "merges.txt").exists():
            self.skipTest("no gpt2-bpe")
        name = self.lab.upload(folder)
        self.server.ablate("data", "add", str(folder))
        self.assertEqual(self.server.ablate("data", "ls").count("gpt2-bpe"), 2)  # ID and file
        self.assertTrue(name.startswith("datasets/gpt2-bpe-"))

    def test_uploads_a_tokenizer_of_one_file(self):
        folder = self.server.folder / "one"
        shutil.copytree(ROOT / "examples/data/shakespeare-bpe", folder)
        model = {"type": "BPE", "vocab": json.loads((folder / "vocab.json").read_text()),
                 "merges": (folder / "merges.txt").read_text().splitlines()[1:]}
        (folder / "tokenizer.json").write_text(json.dumps({
            "model": model, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}}))
        name = self.lab.upload(folder)
        self.server.ablate("data", "add", str(folder))
        self.assertEqual(self.server.ablate("data", "ls").count("one"), 2)  # ID and file
        self.server.ablate("data", "get", name, "-o", str(folder / "copy"))
        self.assertEqual((folder / "copy/tokenizer.json").read_bytes(),
                         (folder / "tokenizer.json").read_bytes())

    def test_refuses_files_that_the_author_may_not_mean(self):
        outside = self.server.folder.parent / f"{self.server.folder.name}-outside.txt"
        outside.write_text("anna\n" * 20)
        self.addCleanup(outside.unlink)
        for path in (outside, ".hidden.txt", "nams.txt"):
            (self.server.folder / ".hidden.txt").write_text("anna\n")
            spec = {**self.spec, "base": {**self.spec["base"],
                                          "task": {"documents": {"dataset": path}}}}
            [problem] = self.problems(spec).items()
            self.assertEqual(problem[0], "base.task.documents.dataset")
        self.assertIn("did you mean names.txt?", problem[1])
        task = {"documents": {"dataset": outside, "held_out": 5}}
        spec = {**self.spec, "base": {**self.spec["base"], "task": task}}
        for files in ([outside], str(outside), outside.parent):
            self.assertEqual(len(self.lab.submit(spec, files=files, dry_run=True).cells), 24)
        self.problems(spec, files=str(self.server.folder / "names.txt"))
        # The caller's own values aren't checked.
        self.lab.submit(self.spec, set={"task.documents.dataset": outside,
                                        "task.documents.held_out": 5}, dry_run=True)

    def test_follows_no_link_out_of_a_tokenizers_folder(self):
        folder, secret = self.server.folder / "tokenizer", self.server.folder / "secret"
        shutil.copytree(ROOT / "examples/data/shakespeare-bpe", folder)
        (folder / "vocab.json").rename(secret)
        (folder / "vocab.json").symlink_to(secret)
        with self.assertRaisesRegex(ablate.InvalidArgument, f"{secret} is outside the folder"):
            self.lab.upload(folder)
        sets = {"task.documents.tokenizer": folder}
        self.assertIn("is outside the folder",
                      self.problems(self.spec, set=sets)['overrides["task.documents.tokenizer"]'])
        self.assertTrue(self.lab.upload(folder, files=secret))
        self.assertTrue(self.lab.submit(self.spec, set=sets, files=secret, dry_run=True).cells)

    def test_waits_through_a_restart_of_the_server(self):
        experiment = self.lab.submit(self.spec, set={"training.steps": 2000, "training.batch": 4})
        done, restarted = [], 0
        for event in experiment.watch():
            if event.state == run_pb2.RunState.DONE:
                done.append(event.cell)
            if event.counts.done > 8 and not restarted:
                restarted = len(done)
                self.server.ablate("down")
                self.server.ablate("up")
        self.assertTrue(restarted)
        self.assertEqual(experiment.state, "ENDED")
        self.assertEqual(len(set(done)), 24)
        # A token may be older than the newest changes, which then come again.
        self.assertLess(len(done), 24 + restarted, "every change came again")
        self.assertEqual(experiment.message.counts.done, 24)

    def test_cancels_and_deletes(self):
        experiment = self.lab.submit(self.spec, set={"training.steps": 100000}, seeds=[77])
        with self.assertRaises(ablate.Conflict):
            experiment.delete()
        self.assertEqual(experiment.cancel().state, "CANCELLED")
        experiment.delete()
        with self.assertRaises(ablate.NotFound) as raised:
            self.lab.experiment(experiment.id)
        self.assertEqual(raised.exception.reason, "EXPERIMENT_NOT_FOUND")


class RelatedTest(ServerTest):
    def test_returns_an_identical_experiment_unless_fresh(self):
        spec = {**self.spec, "name": "twice"}
        first = self.lab.submit(spec, seeds=[1, 2]).wait(progress=False)
        self.assertEqual(self.lab.submit(spec, seeds=[1, 2]).name, first.name)
        self.assertEqual(self.lab.submit(first).name, first.name)
        with self.assertWarnsRegex(UserWarning, rf"identical to {first.id}, .*edit\(tags=…\)$"):
            self.lab.submit(first, tags=["new"])
        with self.assertWarnsRegex(UserWarning, r"edit\(tags=…, note=…\)$"):
            self.lab.submit(first, tags="new", note="text")
        self.assertEqual(first.edit(tags="new", note="text").archived, False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.lab.submit(first, tags="new", note="text")
        self.assertNotEqual(self.lab.submit(first, fresh=True).name, first.name)

    def test_extends_a_stored_experiment(self):
        first = self.lab.submit({**self.spec, "name": "longer"}, seeds=2).wait(progress=False)
        extended = self.lab.submit(first, seeds=3, extends=first, tags="paper", note="figure 2")
        self.assertEqual(len(extended.wait(progress=False).runs()), 9)
        self.assertEqual(extended.message.extends, first.name)
        self.assertEqual(list(extended.message.changes), ["seeds=3"])
        self.assertEqual([one.name for one in self.lab.experiments(tag="paper")], [extended.name])
        extended.edit(tags="lr")
        for tags, names in ((["lr", "paper"], [extended.name]), (["lr", "none"], [])):
            self.assertEqual([one.name for one in self.lab.experiments(tag=tags)], names)
        self.assertNotIn(first.name, [one.name for one in self.lab.experiments()])
        self.assertIn(first.name, [one.name for one in self.lab.experiments(archived=True)])
        self.assertEqual(len(self.lab.query("experiment = longer")), 9)
        self.assertEqual(len(self.lab.query("experiment = longer", archived=True)), 15)
        with self.assertRaises(ablate.InvalidArgument) as raised:
            self.lab.submit(extended, seeds=1, extends="longer")
        self.assertIn("6 cells of", dict(raised.exception.fields)["extends"])
        first.edit(name="short", tags=["a", "b"], archived=False)
        self.assertEqual(self.lab.experiment("short").name, first.name)
        self.assertEqual(first.edit(untags="a", note="short").tags, ["b"])
        self.assertEqual((first.note, first.archived), ("short", False))

    def test_names_parameters_in_errors_of_edits(self):
        experiment = self.lab.submit({**self.spec, "name": "edited"}, seeds=1).wait(progress=False)
        cases = [({"name": "A b"}, ["name"]), ({"untags": ["a", "x y"], "note": "\a"},
                                              ["untags[1]", "note"]), ({"name": 3}, ["name"])]
        for edit, fields in cases:
            with self.assertRaises(ablate.InvalidArgument) as raised:
                experiment.edit(**edit)
            self.assertEqual([one.field for one in raised.exception.fields], fields)
            for one in raised.exception.fields:
                self.assertEqual(one.problem.split(":")[0], one.field)
                self.assertIn(one.problem, str(raised.exception))
        experiment.edit(tags=[f"t{i}" for i in range(20)])
        with self.assertRaisesRegex(ablate.InvalidArgument, "^tags: .* at most 20"):
            experiment.edit(tags="more")
        with self.assertRaisesRegex(ablate.InvalidArgument, "expected name, tags, untags, note, archived"):
            experiment.edit()


class DisplayNameTest(unittest.TestCase):
    def test_names_files_as_the_command_line_does(self):
        for path, name in [("a b/ü x.txt", "x.txt"), ("x" * 40 + "y.txt", "x" * 32 + "y.txt"),
                           ("folder/", "folder"), ("...", "data"), ("_a.txt", "a.txt")]:
            self.assertEqual(_datasets.display_name(Path(path)), name)


TRAIN = """import json, os
import ablate_run as run
print("hello", run.seed)
run.log({"eval/loss": run.settings.lr + run.settings.model.heads}, step=7)
(run.out / "sub").mkdir()
(run.out / "sub" / "a.txt").write_text("kept")
"""
PROGRAM = """name: program
base:
  program: {command: [python, train.py], files: ['*.py', lib], arguments: none}
  settings: {lr: 0.5, model: {heads: 4}, name: adam}
axes: [{field: settings.model.heads, values: [1, 2]}]
seeds: 1
"""


@unittest.skipUnless(shutil.which("bwrap"), "bubblewrap isn't installed")
class ProgramTest(ServerTest):
    def setUp(self):
        for path, text in {"train.py": TRAIN, "lib/é \".txt": "1", "lib/run.sh": "#!/bin/sh\n",
                           "lib/.hidden": "2", "program.yaml": PROGRAM}.items():
            file = self.server.folder / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        (self.server.folder / "lib/run.sh").chmod(0o755)

    def stored(self):
        listed = json.loads(self.server.ablate("data", "ls", "--json"))["datasets"]
        return [one["name"] for one in listed if one["kind"] == "files"]

    def test_packs_files_as_the_command_line_does(self):
        folder = self.server.folder
        for experiment in (Path("program.yaml"), PROGRAM, yaml.safe_load(PROGRAM)):
            plan = self.lab.submit(experiment, dry_run=True)
            self.assertEqual(len(plan.cells), 2)
        [by_python] = self.stored()
        self.server.ablate("submit", "program.yaml", "--dry-run")
        self.assertEqual(self.stored(), [by_python], "one file set, because the bytes are equal")
        self.server.ablate("data", "get", by_python, "-o", "got")
        got = sorted(str(path.relative_to("got")) for path in Path("got").rglob("*") if path.is_file())
        self.assertEqual(got, [".ablate", "lib/run.sh", 'lib/é ".txt', "train.py"])
        self.assertTrue((folder / "got/lib/run.sh").stat().st_mode & 0o100)

    def test_refuses_files_as_the_command_line_does(self):
        os.symlink("/etc/hostname", self.server.folder / "host.txt")
        self.addCleanup(os.remove, self.server.folder / "host.txt")
        for files, problem in {"../a": "leads out", "/etc/hostname": "leads out", "gone.py": "no file",
                               "lib/.hidden": "hidden", "host.txt": "outside"}.items():
            text = PROGRAM.replace("['*.py', lib]", f"'{files}'")
            with self.assertRaises(ablate.InvalidArgument) as raised:
                self.lab.submit(text, dry_run=True)
            [(field, message)] = raised.exception.fields
            self.assertEqual(field, "base.program.files")
            self.assertIn(problem, message)

    def test_reads_settings_log_and_output(self):
        experiment = self.lab.submit("program.yaml").wait(progress=False)
        frame = experiment.frame(None)
        self.assertEqual(frame["settings.model.heads"], [1, 2])
        self.assertEqual(frame["eval/loss"], [1.5, 2.5])
        self.assertEqual(frame["steps"], [7, 7])
        every = experiment.frame(None, settings="all")
        self.assertEqual(every["settings.lr"], [0.5, 0.5])
        self.assertEqual(every["settings.name"], ["adam", "adam"])
        run = experiment.runs()[0]
        self.assertEqual(run.log(), "hello 0\n")
        self.assertIn("done", run.history(None)["kind"])
        self.assertEqual(run.checkpoints(), [])
        self.assertRaises(ablate.NotFound, run.checkpoint)
        folder = run.output("kept")
        self.assertEqual((folder / "sub" / "a.txt").read_text(), "kept")
        self.assertRaises(FileExistsError, run.output, "kept")
