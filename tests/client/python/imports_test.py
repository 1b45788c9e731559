"""Tests that results written by other tools have the verdict of the experiment itself."""
import csv
import importlib.util
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import unittest
import warnings

import ablate
import ablate.read
import numpy as np
from personal_server import PersonalServer, placement

DATA = pathlib.Path(__file__).parent / "fixtures/data"  # made by the tools' own packages
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

    def test_mlflow_has_the_same_numbers(self):
        database = sqlite3.connect("mlflow.db")
        database.executescript((DATA / "mlflow.sql").read_text())
        for table in ("metrics", "params", "tags", "runs"):
            database.execute(f"DELETE FROM {table}")
        [experiment] = database.execute("SELECT max(experiment_id) FROM experiments").fetchone()
        for start, (name, settings, steps, values) in enumerate(self.runs, 1):
            database.execute(
                "INSERT INTO runs (run_uuid, name, status, start_time, lifecycle_stage, "
                "experiment_id) VALUES (?, ?, 'FINISHED', ?, 'active', ?)",
                (name, name, start, experiment))
            database.executemany("INSERT INTO params VALUES (?, ?, ?)",
                                 [(key, str(value), name) for key, value in settings.items()])
            database.executemany(
                "INSERT INTO metrics (key, value, timestamp, run_uuid, step) "
                "VALUES ('eval/loss', ?, ?, ?, ?)",
                [(value, step, name, step) for step, value in zip(steps, values, strict=True)])
        database.commit()
        database.close()
        expected, judged = self.judged("mlflow.db")
        self.assertEqual(statistics(judged), statistics(expected))
        self.assertEqual(judged["gate"], expected["gate"])

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

    def test_lm_evals_samples_have_mcnemars_p_and_the_bootstrap_of_groups(self):
        from scipy.stats import binomtest, bootstrap
        draw = np.random.default_rng(5)
        sizes = draw.multinomial(1000, np.full(40, 1 / 40))
        hard = np.repeat(draw.normal(0, 0.15, 40), sizes)
        right = {model: (draw.uniform(size=1000) < mean + hard).astype(float)
                 for model, mean in (("small", 0.6), ("large", 0.66))}
        group = np.repeat(np.arange(40), sizes)
        for model, values in right.items():
            self.write_samples(f"single/org__{model}", [("spell", values)], {})
            tasks = [(f"subjects_{index}", values[group == index]) for index in range(40)]
            self.write_samples(f"grouped/org__{model}", tasks,
                               {"subjects": [task for task, _ in tasks]})

        def row_of(folder, metric):
            judged = self.lab.judge(ablate.read.lm_eval(folder), setting="model", metric=metric,
                                    baseline={"model": "org/small"}, better="higher")
            [row] = [row for row in judged.message.rows if not row.is_baseline]
            return row
        difference = right["large"] - right["small"]
        row = row_of("single", "spell/acc")
        self.assertEqual((row.wins, row.losses), ((difference > 0).sum(), (difference < 0).sum()))
        self.assertAlmostEqual(row.p, binomtest(row.wins, row.wins + row.losses).pvalue, places=12)
        row = row_of("grouped", "subjects/acc")
        self.assertEqual(row.pairs, 40)
        self.assertAlmostEqual(row.difference.mean, difference.mean(), places=12)

        def mean(totals, sizes, axis):
            return totals.sum(axis) / sizes.sum(axis)
        totals = np.bincount(group, difference)
        independent = bootstrap((totals, sizes), mean, paired=True, n_resamples=40_000,
                                vectorized=True, method="BCa", rng=draw).confidence_interval
        width = independent.high - independent.low
        self.assertAlmostEqual(row.difference.bca_low, independent.low, delta=0.03 * width)
        self.assertAlmostEqual(row.difference.bca_high, independent.high, delta=0.03 * width)

    def write_samples(self, folder, tasks, groups):
        """Writes values of documents in lm-eval's files, as one model's."""
        made = next((DATA / "lm_eval").glob("*__small/samples_subjects_law*"))
        sample = json.loads(made.read_text().splitlines()[0])
        date, folder = made.stem.split("_")[-1], pathlib.Path(folder)
        folder.mkdir(parents=True)
        for task, values in tasks:
            (folder / f"samples_{task}_{date}.jsonl").write_text("".join(json.dumps(sample | {
                "doc_id": doc, "doc_hash": f"{task}{doc}", "prompt_hash": f"{task}{doc}",
                "acc": value}) + "\n" for doc, value in enumerate(values)))
        (folder / f"results_{date}.json").write_text(json.dumps({
            "model_name": str(folder.name).replace("__", "/"), "group_subtasks": groups}))

    def test_a_broken_file_keeps_nothing(self):
        before = len(self.lab.experiments())
        path = pathlib.Path(self.write_csv("broken.csv"))
        path.write_bytes(path.read_bytes()[:-3] + b"\nx,y\n")
        self.command("import", path, *READ_AS, code=1)
        self.assertEqual(len(self.lab.experiments()), before)


if __name__ == "__main__":
    unittest.main()
