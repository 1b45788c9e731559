"""Tests that results written by other tools have the verdict of the experiment itself."""
import csv
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest
import warnings

import ablate
import ablate.read
import numpy as np
from personal_server import PersonalServer, placement

AXES = [{"field": "model.norm.placement", "values": ["pre", "post", "none"]},
        {"name": "lr", "field": "training.learning_rate", "values": [0.005, 0.01], "tune": True}]
READ_AS = ["--setting", "placement,lr", "--tune", "lr", "--metric", "eval/loss"]


def statistics(message):
    """Returns the numbers of a comparison, without what only a run of ours has."""
    rows = []
    for row in message["rows"]:
        own = {key: value for key, value in row.items()
               if key not in ("changed", "parameters", "deviceSeconds", "deviceSecondsAll",
                              "device_seconds", "device_seconds_all", "tokens_per_second", "undefined",
                              "verdict")}
        own["verdict"] = row.get("verdict", {}).get("outcome")
        rows.append(own)
    return rows


class ImportsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        cls.lab = ablate.connect()
        os.environ["PYTHONPATH"] = str(pathlib.Path(ablate.__file__).parents[1])
        cls.experiment = cls.lab.submit(placement(axes=AXES, seeds={"count": 12}),
                                        set={"training.steps": 60}).wait()
        cls.runs = []  # settings, steps and values of each run
        for run in cls.experiment.runs():
            curve = run.metrics("eval/loss")["eval/loss"]
            settings = {"placement": run.labels["placement"], "lr": float(run.labels["lr"]),
                        "seed": run.seed}
            cls.runs.append((run.cell, settings, curve.steps.tolist(), curve.values.tolist()))

    def command(self, *arguments, code=0):
        done = subprocess.run(["ablate", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def judged(self, *paths, code=None):
        expected = json.loads(subprocess.run(
            ["ablate", "compare", self.experiment.id, "--gate", "--json"], capture_output=True,
            text=True).stdout)
        codes = {"BETTER": 0, "NOT_SHOWN": 1, "WORSE": 2, "CANNOT_SAY": 3}
        done = json.loads(self.command(
            "judge", *paths, *READ_AS, "--python", sys.executable, "--json",
            code=codes[expected["gate"]["decision"]] if code is None else code))
        return expected, done

    def write_csv(self, path="runs.csv"):
        with open(path, "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["placement", "lr", "seed", "key", "step", "value"])
            for _, settings, steps, values in self.runs:
                for step, value in zip(steps, values, strict=True):
                    writer.writerow([*settings.values(), "eval/loss", step, repr(value)])
        return path

    def test_csv_has_the_same_numbers(self):
        expected, judged = self.judged(self.write_csv())
        self.assertEqual(statistics(judged), statistics(expected))
        self.assertEqual(judged["gate"], expected["gate"])

    def test_imported_experiment_has_the_same_numbers(self):
        name = self.command("import", self.write_csv("kept.csv"), *READ_AS).split()[0]
        kept = json.loads(self.command("compare", name, "--json"))
        expected, _ = self.judged("runs.csv" if os.path.exists("runs.csv") else self.write_csv())
        self.assertEqual(statistics(kept), statistics(expected))
        experiment = self.lab.experiment(name)
        self.assertEqual(len(experiment.frame()), 72)
        self.assertTrue(experiment.figure("loss", key="eval/loss").data.startswith(b"<svg"))
        self.assertGreater(experiment.report("kept.html").stat().st_size, 10_000)
        rows = self.lab.sql(f"SELECT count(*) AS n FROM cells WHERE experiment = '{name}'")
        self.assertEqual(rows["n"][0], 72)
        self.assertEqual(len(self.lab.query("placement = post and lr = 0.01")), 24)

    def test_wandb_has_the_same_numbers(self):
        if importlib.util.find_spec("wandb") is None:
            self.skipTest("Python without wandb")
        script = ("import json, os, sys, wandb\n"
                  "for name, settings, steps, values in json.load(sys.stdin):\n"
                  "    run = wandb.init(dir='.', project='p', name=name, config=settings,\n"
                  "                     settings=wandb.Settings(console='off'))\n"
                  "    for step, value in zip(steps, values):\n"
                  "        run.log({'eval/loss': value}, step=step)\n"
                  "    run.finish()\n")
        # Each run starts a service of W&B, which takes a second.
        some = [run for run in self.runs if run[1]["seed"] < 3 and run[1]["lr"] == 0.01]
        subprocess.run([sys.executable, "-c", script], input=json.dumps(some), text=True, check=True,
                       env={**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true",
                            "WANDB_ERROR_REPORTING": "false"}, stdout=subprocess.DEVNULL)
        frame = ablate.read.wandb("wandb")
        read = {run.name: run.series["eval/loss"] for run in frame.runs}
        for name, settings, steps, values in some:
            self.assertEqual(read[name].steps.tolist(), steps)
            self.assertEqual(read[name].values.tolist(), values, "to the last bit")
            run = next(run for run in frame.runs if run.name == name)
            self.assertLessEqual(settings.items(), run.settings.items())
        self.assertIn("gate: cannot say", self.command(
            "judge", "wandb", "--setting", "placement", "--metric", "eval/loss", "--python",
            sys.executable, code=3))

    def test_tensorboard_has_the_same_numbers_in_float32(self):
        from torch.utils.tensorboard import SummaryWriter
        for name, settings, steps, values in self.runs:
            with SummaryWriter(f"logs/{settings['placement']}/lr{settings['lr']}-s{settings['seed']}"
                               ) as writer:
                for step, value in zip(steps, values, strict=True):
                    writer.add_scalar("eval/loss", value, step)
        judged = json.loads(self.command(
            "judge", "logs", "--names", "{placement}/lr{lr}-s{seed}", "--tune", "lr", "--metric",
            "eval/loss", "--baseline", "placement=pre", "--python", sys.executable, "--json",
            code=self.decided()))
        rounded = [(name, settings, steps, np.float32(values).astype(float).tolist())
                   for name, settings, steps, values in self.runs]
        frame = ablate.read.Frame("table", [
            ablate.read.Run(name, settings, series={"eval/loss": ablate.read.Series(
                np.array(values), np.array(steps, np.uint32))})
            for name, settings, steps, values in rounded], [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = self.lab.judge(frame, setting=["placement", "lr"], tune="lr",
                                      metric="eval/loss")
        by_label = {row["label"]: row for row in judged["rows"]}
        for row in expected.message.rows:
            self.assertEqual(by_label[row.label]["mean"], row.mean)
            if not row.is_baseline:
                self.assertEqual(by_label[row.label]["p"], row.p)

    def decided(self):
        return subprocess.run(["ablate", "compare", self.experiment.id, "--gate"],
                              capture_output=True).returncode

    def test_judge_takes_tables_and_says_what_is_missing(self):
        rows = [{"norm": norm, "seed": seed, "loss": 2 + seed % 3 - 0.5 * (norm == "post")}
                for norm in ("pre", "post") for seed in range(8)]
        judged = ablate.judge(rows, setting="norm", pair="seed", metric="loss")
        self.assertEqual(judged.gate, "better")
        self.assertEqual(self.lab.judge(rows[:6], setting="norm", pair="seed", metric="loss",
                                        session=[]).gate, "cannot say")
        with self.assertRaisesRegex(ablate.InvalidArgument, "setting, pair and metric"):
            self.lab.judge(rows)
        with self.assertRaisesRegex(ablate.InvalidArgument, "better: nothing says"):
            self.lab.judge([{**row, "score": row["loss"]} for row in rows], setting="norm",
                           pair="seed", metric="score")

    def test_items_have_mcnemars_p(self):
        rows = [{"model": model, "doc": doc, "acc": int(doc % 10 != (3 if model == "a" else 4) or
                                                       (doc % 3 == 0 and model == "a"))}
                for model in "ab" for doc in range(1000)]
        judged = self.lab.judge(rows, setting="model", pair="doc", metric="acc", items=True)
        row = judged.message.rows[1]
        from scipy.stats import binomtest
        self.assertAlmostEqual(row.p, binomtest(row.wins, row.wins + row.losses).pvalue, places=12)
        self.assertEqual(row.pairs, 1000)

    def test_a_broken_file_keeps_nothing(self):
        before = len(self.lab.experiments())
        path = pathlib.Path(self.write_csv("broken.csv"))
        path.write_bytes(path.read_bytes()[:-3] + b"\nx,y\n")
        self.command("import", path, *READ_AS, code=1)
        self.assertEqual(len(self.lab.experiments()), before)


if __name__ == "__main__":
    unittest.main()
