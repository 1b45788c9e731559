"""Tests reading results: frames, metrics, comparisons, files, docstrings, the notebook."""
import ast
import doctest
import importlib
import io
import json
import pickle
import pkgutil
import shutil
import sys
import types
import unittest
import unittest.mock
from pathlib import Path

import ablate
import numpy as np
import pandas
import torch
from personal_server import ROOT, PersonalServer, placement


class ResultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        cls.lab = ablate.connect()
        cls.experiment = cls.lab.submit("placement.yaml").wait()

    def test_frame_has_settings_seeds_and_metrics(self):
        frame = self.experiment.frame()
        self.assertEqual(len(frame), 24)
        self.assertEqual(list(frame.columns[:9]), [
            "cell", "placement", "seed", "run", "state", "step", "steps", "model.norm.placement",
            "eval/accuracy"])
        self.assertTrue((frame["model.norm.placement"] == frame["placement"]).all())
        self.assertTrue((frame["eval/loss.best"] <= frame["eval/loss"]).all())
        self.assertTrue((frame["eval/accuracy.best"] >= frame["eval/accuracy"]).all())
        self.assertNotIn("train/gradient_norm.best", frame)
        everything = self.experiment.frame(settings="all")
        self.assertEqual(set(everything["training.learning_rate"]), {0.01})
        columns = self.experiment.frame(None)
        self.assertEqual(columns["seed"], list(range(8)) * 3)

    def test_axes_have_the_order_of_the_experiment(self):
        names = ["norm", "zero", "decay", "alpha"]
        fields = ["model.norm.kind", "training.learning_rate", "training.weight_decay",
                  "training.warmup"]
        values = [["layer", "rms"], [0.01, 0.02], [0, 0.1], [0, 5]]
        spec = {**placement(), "name": "order", "seeds": {"count": 1}, "axes": [
            {"name": name, "field": field, "values": some}
            for name, field, some in zip(names, fields, values)]}
        experiment = self.lab.submit(spec, set={"training.steps": 10}).wait()
        self.assertEqual(list(experiment.frame().columns[1:5]), names)
        self.assertEqual(list(experiment.metrics().columns[1:5]), names)
        self.assertEqual(list(experiment.runs()[0].labels), names)

    def test_axes_with_the_names_of_columns_keep_their_labels(self):
        axes = [{"name": name, "field": field, "values": values} for name, field, values in (
            ("value", "training.learning_rate", [0.01, 0.02]),
            ("run", "training.weight_decay", [0, 0.1]), ("mean", "training.warmup", [0, 5]))]
        spec = {**placement(), "name": "columns", "seeds": {"count": 1},
                "axes": axes}
        experiment = self.lab.submit(spec, set={"training.steps": 10}).wait()
        points = experiment.metrics("eval/loss")
        self.assertEqual(list(points.columns),
                         ["cell", "axis.value", "run", "mean", "seed", "key", "step", "value"])
        self.assertEqual(set(points["axis.value"]), {"0.01", "0.02"})
        frame = experiment.frame()
        self.assertEqual(list(frame.columns[1:6]), ["value", "axis.run", "mean", "seed", "run"])
        self.assertEqual(set(frame["axis.run"]), {"0", "0.1"})
        compared = experiment.compare().frame()
        self.assertEqual(list(compared.columns[:4]), ["label", "value", "run", "axis.mean"])
        self.assertEqual(set(compared["axis.mean"]), {"0", "5"})
        found = self.lab.query(f"experiment = {experiment.id}", columns=["run", "mean", "seed"])
        self.assertEqual(set(found["axis.run"]), {"0", "0.1"})
        self.assertEqual(len(set(found["run"])), 8)

    def test_a_run_that_diverged_before_its_end_has_no_last_values(self):
        spec = {**placement(), "name": "diverged", "seeds": {"count": 2},
                "axes": [{"field": "training.learning_rate", "values": [0.01, 1000]}]}
        experiment = self.lab.submit(spec, set={
            "training.steps": 20, "training.optimizer": "sgd", "model.norm.placement": "none"})
        frame = experiment.wait().frame().set_index("learning_rate")
        self.assertEqual(set(frame.state["1000"]), {"DIVERGED"})
        self.assertTrue(frame.loc["1000", ["eval/loss", "train/loss"]].isna().all(axis=None))
        self.assertTrue(frame.loc["1000", "eval/loss.best"].notna().all())
        means = frame.groupby("learning_rate")["eval/loss"].mean()
        self.assertTrue(means.notna()["0.01"])
        self.assertTrue(means.isna()["1000"])
        found = self.lab.query(f"experiment = {experiment.id}", order_by="eval/loss best")
        self.assertEqual(found["eval/loss"].notna().tolist(), [True, True, False, False])
        for run in experiment.runs("learning_rate1000"):
            self.assertEqual(run.last, {})
            self.assertIsNotNone(run.best("eval/loss"))

    def test_query_selects_cells_of_all_experiments(self):
        own = f"experiment = {self.experiment.id}"
        frame = self.lab.query(f"{own} AND placement != none AND seed < 3",
                               order_by="eval/loss best")
        self.assertEqual(len(frame), 6)
        self.assertEqual(list(frame.columns[:7]),
                         ["experiment", "cell", "run", "seed", "state", "step", "steps"])
        self.assertTrue(frame["eval/loss"].is_monotonic_increasing)
        self.assertTrue((frame["eval/loss"] == frame.merge(
            self.experiment.frame(), on="run")["eval/loss_y"]).all())
        few = self.lab.query(limit=5, columns=["placement", "seed", "model.layers", "ended"])
        self.assertEqual(list(few.columns[-3:]), ["placement", "model.layers", "ended"])
        self.assertEqual(len(few), 5)
        self.assertEqual(len(self.lab.query("seed > 100")), 0)
        with self.assertRaises(ablate.InvalidArgument) as raised:
            self.lab.query("sed = 1")
        self.assertIn("did you mean seed", str(raised.exception))

    def test_sql_reads_the_views(self):
        frame = self.lab.sql(
            "SELECT cell, last, NULL AS none, 'x' AS cell FROM cells JOIN metrics USING (run) "
            f"WHERE key = 'eval/loss' AND experiment = '{self.experiment.id}' ORDER BY place")
        self.assertEqual(list(frame.columns), ["cell", "last", "none", "cell_2"])
        self.assertEqual(frame["last"].tolist(), self.experiment.frame()["eval/loss"].tolist())
        self.assertEqual(self.lab.sql("SELECT run FROM runs LIMIT 0").columns.tolist(), ["run"])
        self.assertEqual(self.lab.sql("SELECT 9007199254740993, x'00'", library=None),
                         {"9007199254740993": [9007199254740993], "x'00'": [b"\0"]})
        with self.assertRaises(ablate.InvalidArgument) as raised:
            self.lab.sql("SELECT 1 FORM runs")
        self.assertEqual(raised.exception.fields[0].field, "statement")
        self.assertIn("syntax error in line 1, column 15", str(raised.exception))

    def test_frame_is_the_command_lines_export(self):
        self.server.ablate("export", self.experiment.id, "--format", "csv", "-o", "points.csv")
        exported = pandas.read_csv("points.csv", float_precision="round_trip")
        points = self.experiment.metrics()
        self.assertEqual(len(points), len(exported))
        for column in ("cell", "placement", "seed", "key", "step", "value"):
            self.assertTrue((points[column] == exported[column]).all(), column)
        last = exported[exported.key == "eval/loss"].groupby("cell").value.last()
        frame = self.experiment.frame().set_index("cell")
        self.assertTrue((frame["eval/loss"] == last[frame.index]).all())

    def test_metrics_are_thinned_and_selected(self):
        points = self.experiment.metrics(["train/loss"], max_points=20)
        self.assertEqual(set(points.key), {"train/loss"})
        self.assertLessEqual(points.groupby("cell").size().max(), 20)
        [series] = self.experiment.run("none-s3").metrics("train/loss").values()
        self.assertEqual(len(series.steps), 200)
        self.assertEqual(series.values.dtype, np.float64)
        self.assertEqual((series.steps - 1)[0], -1)  # signed
        for of in (self.experiment, self.experiment.runs()[0]):
            with self.assertRaises(ablate.NotFound) as raised:
                of.metrics(["train/loss", "evl/loss"])
            self.assertIn("did you mean eval/loss?", str(raised.exception))

    def test_polars_frames_are_equal(self):
        try:
            import polars  # noqa: F401
        except ImportError:
            self.skipTest("no polars")
        self.assertEqual(self.experiment.frame("polars")["cell"].to_list(),
                         list(self.experiment.frame()["cell"]))
        self.assertEqual(len(self.experiment.metrics(library="polars")),
                         len(self.experiment.metrics()))

    def test_comparison_is_the_command_lines(self):
        comparison = self.experiment.compare()
        printed = self.server.ablate("compare", self.experiment.id)
        self.assertEqual(repr(comparison).split(), printed.split())
        frame = comparison.frame()
        self.assertEqual(list(frame.label), ["pre", "post", "none"])
        losses = self.experiment.frame().groupby("placement")["eval/loss"].mean()
        for row in frame.itertuples():
            self.assertAlmostEqual(row.mean, losses[row.label], 12)
        other = self.experiment.compare(baseline={"placement": "none"}, key="train/loss", at=100)
        self.assertTrue(other.message.rows[2].is_baseline)
        self.assertEqual(other.message.at, 100)

    def test_everything_displays_in_a_notebook(self):
        experiment, run = self.experiment, self.experiment.runs()[0]
        for shown in (experiment, experiment.compare(), run, experiment.figure("forest"),
                      experiment.figure("forest", format="pdf"), run.analyze("weights"),
                      self.lab.submit("placement.yaml", dry_run=True)):
            self.assertRegex(shown._repr_html_(), r"^<(table|img|p)\b")

    def test_names_with_markup_are_escaped(self):
        spec = {**placement(), "question": "<script>"}
        experiment = self.lab.submit(spec, seeds=[0])
        self.assertIn("&lt;script&gt;", experiment._repr_html_())
        experiment.wait()

    def test_one_key_or_cell_needs_no_list(self):
        [first, *_] = self.experiment.watch("eval/accuracy")
        self.assertEqual(list(first.last), ["eval/accuracy"])
        [analysis] = self.experiment.analyze("weights", "pre-s0")
        self.assertEqual(analysis.cells, ["pre-s0"])
        self.assertEqual(repr(self.experiment.compare(others=self.experiment)),
                         repr(self.experiment.compare(others=[self.experiment.name])))

    def test_arguments_of_wrong_types_are_named(self):
        experiment, run = self.experiment, self.experiment.runs()[0]
        for field, call in {
                "max_points": lambda: experiment.metrics(max_points=-1),
                "keys[0]": lambda: run.metrics(3),
                "at": lambda: experiment.compare(at=1.5),
                "baseline": lambda: experiment.compare(baseline="pre"),
                "comparison.by": lambda: experiment.figure("forest", by=3),
                "width": lambda: experiment.figure("forest", width="wide"),
                "subjects[0].step": lambda: run.analyze("weights", step="last"),
                "inputs": lambda: run.analyze("attention", inputs="anna"),
                "name": lambda: self.lab.experiment(3)}.items():
            with self.assertRaises(ablate.InvalidArgument) as raised:
                call()
            self.assertEqual([one.field for one in raised.exception.fields], [field])

    def test_writes_figures_and_reports(self):
        figure = self.experiment.figure("curves", format="png", width=6)
        self.assertTrue(figure.save("curves.png").read_bytes().startswith(b"\x89PNG"))
        self.assertTrue(figure.csv.startswith("panel,setting,"))
        with self.assertRaisesRegex(ablate.InvalidArgument, "the figure is PNG; expected .png"):
            figure.save("curves.svg")
        self.assertFalse(Path("curves.svg").exists())
        self.assertEqual(figure.save("curves").name, "curves")
        self.assertEqual(pickle.loads(pickle.dumps(figure)), figure)
        page = self.experiment.report("report.html").read_text()
        self.assertTrue(page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>"))
        with self.assertRaises(ablate.InvalidArgument):
            self.experiment.figure("no-such-kind")
        with self.assertRaises(ablate.InvalidArgument) as raised:
            self.experiment.figure("forest", format="gif")
        self.assertEqual(raised.exception.fields[0].field, "format")

    def test_analyses_have_numbers_and_named_axes(self):
        run = self.experiment.run("pre-s0")
        analysis = run.analyze("attention", inputs={"prompt": "anna"})
        self.assertEqual(analysis.arrays()["entropy"].axes, ("block", "head"))
        entropy = analysis.arrays()["entropy"]
        self.assertEqual(np.asarray(entropy).shape, (2, 4))
        self.assertIs(np.asarray(entropy), entropy.values)
        self.assertIsNot(np.array(entropy), entropy.values)
        self.assertIn("attention/entropy", self.experiment.keys())
        stored = [one.name for one in self.experiment.analyses() if one.kind == "attention"]
        self.assertEqual(stored, [analysis.name])
        cells = ["pre-s0", "post-s0"]
        several = self.experiment.analyze("gradient_flow", cells)
        self.assertEqual([one.cells for one in several], [[cell] for cell in cells])
        with self.assertRaises(ablate.InvalidArgument) as raised:
            run.analyze("attention", maps="all")
        self.assertEqual(raised.exception.fields[0].field, "analysis.attention.maps")
        with self.assertRaises(ablate.InvalidArgument):
            run.analyze("atention")

    def test_missing_objects_are_named(self):
        run = self.experiment.run("pre-s0")
        self.assertEqual(run.checkpoints(), [200])
        for call in (lambda: run.checkpoint(100), lambda: self.lab.run("nothing/cell")):
            self.assertRaises(ablate.NotFound, call)
        with self.assertRaisesRegex(ablate.InvalidArgument, "did you mean pre-s"):
            self.experiment.run("pre-s9")
        with self.assertRaisesRegex(ablate.InvalidArgument, "expected one, such as pre-s0"):
            self.experiment.run("pre")
        best = self.experiment.run("@best")
        self.assertIn(best.cell, {run.cell for run in self.experiment.runs()})

    def test_progress_is_one_line_in_a_terminal(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        stderr, sys.stderr = sys.stderr, Terminal()
        try:
            self.lab.submit("placement.yaml", seeds=range(50, 52)).wait()
            drawn = sys.stderr.getvalue()
        finally:
            sys.stderr = stderr
        self.assertEqual(drawn.count("\n"), 1)
        self.assertIn("6 done   eval/loss", drawn.rpartition("\r")[2])

    def test_progress_is_one_display_in_a_notebook(self):
        shown = []
        handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
        shell = types.SimpleNamespace(kernel=None)
        modules = {"IPython": types.SimpleNamespace(get_ipython=lambda: shell),
                   "IPython.display": types.SimpleNamespace(display=lambda *_, **__: handle)}
        with unittest.mock.patch.dict(sys.modules, modules):
            self.lab.submit("placement.yaml", seeds=[60]).wait()
            self.assertIn("3 done", shown[-1])
            shown.clear()
            self.lab.submit("placement.yaml", seeds=[61]).wait(progress=False)
            self.assertEqual(shown, [])

    def test_docstrings_are_true(self):
        names = {"lab": self.lab, "experiment": self.experiment, "run": self.experiment.runs()[0],
                 "spec": placement(), "ablate": ablate, "torch": torch}
        examples = 0
        modules = [f"ablate.{one.name}" for one in pkgutil.iter_modules(ablate.__path__)]
        for module in ["ablate", *modules]:
            tested = doctest.testmod(importlib.import_module(module), extraglobs=names)
            self.assertEqual(tested.failed, 0, module)
            examples += tested.attempted
        self.assertGreater(examples, 20)

    def test_notebook_runs(self):
        notebook = json.loads((ROOT / "examples/notebook.ipynb").read_text())
        names = {"__name__": "notebook"}
        shutil.copytree(ROOT / "examples/data", self.server.folder / "data")
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            self.assertEqual(cell["outputs"], [])
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell["id"], "exec"), names)
            if last:
                shown = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
                self.assertTrue(getattr(shown, "_repr_html_", shown.__repr__)())
