"""Tests that results of other tools come back exactly. Files are made by the tools' own packages:
here if tests have them, otherwise by fixtures/make_*.py once, in fixtures/data."""
import atexit
import functools
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import ablate
import ablate.read
import numpy as np
import pandas
from ablate.v1 import import_pb2
from google.protobuf import json_format

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
DATA = FIXTURES / "data"


@functools.cache
def made(tool):
    """Returns the folder in which a tool's script of fixtures wrote. The script runs once."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    arguments = {"optuna": [f"{folder}/study.db"], "hydra": [
        "--multirun", "norm=pre,post", "seed=0,1", f"hydra.sweep.dir={folder}"]}
    subprocess.run([sys.executable, FIXTURES / f"make_{tool}.py", *arguments.get(tool, [folder])],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def make(tool, folder):
    """Copies the fixtures of a tool into a folder; skips the test if its package is missing."""
    if importlib.util.find_spec(tool) is None:
        raise unittest.SkipTest(f"Python without {tool}")
    shutil.copytree(made(tool), folder, dirs_exist_ok=True, symlinks=True)


def database(folder, name):
    """Returns a database made of a stored dump."""
    path = pathlib.Path(folder, f"{name}.db")
    connection = sqlite3.connect(path)
    connection.executescript((DATA / f"{name}.sql").read_text())
    connection.close()
    return path


class ReadTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, run, key, steps, values):
        series = run.series[key]
        self.assertEqual(series.steps.dtype, np.uint32)
        self.assertEqual(series.values.dtype, np.float64)
        self.assertEqual(series.steps.tolist(), steps)
        np.testing.assert_array_equal(series.values, values)

    def has_note(self, frame, *parts):
        self.assertTrue(any(all(part in note for part in parts) for note in frame.notes),
                        frame.notes)


class WandbTest(ReadTestCase):
    def test_local_runs(self):
        make("wandb", self.folder)
        frame = ablate.read.read(self.folder)
        self.assertEqual(frame.source, "wandb")
        done, failed, open_run = frame.runs
        self.assertEqual([run.name for run in frame.runs], ["pre-s0", "post-s0", "post-s1"])
        self.assertEqual([run.state for run in frame.runs], ["finished", "failed", "unfinished"])
        self.assertEqual(done.settings, {"norm": "pre", "optimizer.lr": 1e-3, "betas": [0.9, 0.99],
                                         "seed": 0, "group": "norms"})
        self.check(done, "loss", [0, 10, 20, 40], [0.1, 1.1, 2.1, math.nan])
        self.check(failed, "val.acc", [0, 10, 20], [0, 1 / 3, 2 / 3])
        self.check(failed, "grad", [40], [math.inf])
        self.check(done, "best", [40], [0.25])  # of the summary only
        self.check(open_run, "loss", [0, 10, 20], [0.1, 1.1, 2.1])
        self.assertLess(done.start, done.end)
        self.has_note(frame, "aren't numbers", "pre-s0 note")
        self.has_note(frame, "without an exit record", "post-s1")

    def test_a_resumed_run_is_one(self):
        make("wandb", self.folder)
        first, *_ = sorted(self.folder.glob("wandb/*id0"))
        shutil.copytree(first, first.with_name(f"{first.name}-again"))
        frame = ablate.read.wandb(self.folder)
        self.assertEqual(len(frame.runs), 3)
        self.has_note(frame, "several values at a step", "pre-s0 loss")

    def test_exported_panels(self):
        for key, more in (("loss", ""), ("acc", '\n"7","0.5","","","","",""')):
            (self.folder / f"wandb_export_{key}.csv").write_text(
                f'"Step","a - b - {key}","a - b - {key}__MIN","a - b - {key}__MAX",'
                f'"c - {key}","c - {key}__MIN","c - {key}__MAX"\n'
                f'"0","0.1","0.1","0.1","NaN","NaN","NaN"{more}\n')
        for frame in (ablate.read.read(self.folder),
                      ablate.read.read(*sorted(self.folder.glob("*.csv")))):
            self.assertEqual([run.name for run in frame.runs], ["a - b", "c"])
            self.check(frame.runs[0], "loss", [0], [0.1])
            self.check(frame.runs[0], "acc", [0, 7], [0.1, 0.5])
            self.check(frame.runs[1], "loss", [0], [math.nan])

    def test_refuses_other_exports(self):
        file = self.folder / "wandb_export.csv"
        file.write_text('"Step","Group: g - loss","Group: g - loss__MIN","Group: g - loss__MAX"\n')
        with self.assertRaisesRegex(ablate.InvalidArgument, "grouped.*export it ungrouped"):
            ablate.read.read(file)
        file.write_text('"Name","encoder","val_loss.min"\n"a","x","0.5"\n')
        with self.assertRaisesRegex(ablate.InvalidArgument, r"NAME - KEY; read another.*rows"):
            ablate.read.wandb(file)


class MlflowTest(ReadTestCase):
    def check_runs(self, frame):
        self.assertEqual(frame.source, "mlflow")
        self.assertEqual([run.name for run in frame.runs], ["pre-s0", "pre-s1", "pre-s2", "pre-s3"])
        self.assertEqual([run.state for run in frame.runs],
                         ["finished", "failed", "failed", "unfinished"])
        self.assertEqual((frame.runs[0].start, frame.runs[0].end), (1, 61))
        for seed, run in enumerate(frame.runs):
            self.assertEqual(run.settings, {"norm": "pre", "seed": seed, "optimizer/lr": 1e-3})
            self.check(run, "val/loss", [0, 10, 20, 30], [0.1, 0.25, math.nan, -math.inf])
        self.has_note(frame, "deleted runs", "mistake")
        self.has_note(frame, "parents", "sweep")

    def test_database(self):
        path = database(self.folder, "mlflow")
        self.check_runs(ablate.read.read(path))
        self.check_runs(ablate.read.read(self.folder))

    def test_folder(self):
        self.check_runs(ablate.read.read(DATA / "mlruns"))

    def test_several_experiments_are_a_setting(self):
        path = database(self.folder, "mlflow")
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO experiments (experiment_id, name) VALUES (77, 'other')")
            connection.execute("UPDATE runs SET experiment_id = 77 WHERE name = 'pre-s1'")
        runs = {run.name: run for run in ablate.read.mlflow(path).runs}
        self.assertEqual(runs["other/pre-s1"].settings["experiment"], "other")
        self.assertEqual(runs["norms/pre-s0"].settings["experiment"], "norms")


class TensorboardTest(ReadTestCase):
    def test_event_files(self):
        make("tensorboard", self.folder)
        frame = ablate.read.read(self.folder)
        self.assertEqual(frame.source, "tensorboard")
        post, pre, tensor = frame.runs
        self.assertEqual([run.name for run in frame.runs], ["post-s0", "pre-s0", "tensor"])
        self.assertEqual(pre.settings, {"norm": "pre", "seed": 0, "lr": 0.001, "bias": True})
        single = [float(np.float32(value)) for value in (0.1, 1.1, 2.1)]
        self.check(pre, "loss", [0, 10, 20, 40], [*single, math.nan])
        self.check(pre, "new", [7], [0.5])
        self.check(pre, "hparam/acc", [0], [0.75])
        self.check(post, "loss", [0, 10, 20, 30, 40],
                   [*single[1:], 0.25, 0.125, math.nan])  # with a restart at step 20
        self.check(tensor, "loss", [5], [0.25])
        self.assertEqual({run.state for run in frame.runs}, {"finished"})
        self.has_note(frame, "don't tell whether")
        self.has_note(frame, "aren't scalars", "pre-s0 note/text_summary")

    def test_settings_of_lightning_and_hparams_of_several_trials(self):
        make("tensorboard", self.folder)
        (self.folder / "tensor" / "hparams.yaml").write_text("norm: rms\n")
        [child] = [path for path in (self.folder / "pre-s0").iterdir() if path.is_dir()]
        shutil.copytree(child, child.with_name("1700000000.5"))
        frame = ablate.read.tensorboard(self.folder)
        runs = {run.name: run for run in frame.runs}
        self.assertEqual(runs["tensor"].settings, {"norm": "rms"})
        self.assertEqual(runs["pre-s0"].settings, {})
        self.assertEqual(runs["pre-s0/1700000000.5"].settings["norm"], "pre")

    def test_exported_csv(self):
        file = self.folder / "run-a-tag-loss.csv"
        file.write_text("Wall time,Step,Value\n1.5,0,0.1\n2.5,7,NaN\n")
        [run] = ablate.read.read(file).runs
        self.check(run, "value", [0, 7], [0.1, math.nan])


class HydraTest(ReadTestCase):
    def make(self):
        make("hydra", self.folder)

    def test_jobs_with_the_metrics_of_another_tool(self):
        self.make()
        frame = ablate.read.read(self.folder)
        self.assertEqual(frame.source, "hydra")
        self.assertEqual([run.name for run in frame.runs], ["0", "1", "2", "3"])
        self.assertEqual(frame.runs[3].settings, {"norm": "post", "seed": 1, "optimizer.lr": 1e-3})
        self.check(frame.runs[3], "loss", [4], [1.5])

    def test_choices_of_groups_are_settings(self):
        self.make()
        file = self.folder / "0" / ".hydra" / "overrides.yaml"
        file.write_text("- model=large\n- +data.size=3\n- ~extra\n- seed=9\n")
        settings = ablate.read.hydra(self.folder).runs[0].settings
        self.assertEqual(settings, {"norm": "pre", "seed": 0, "optimizer.lr": 1e-3,
                                    "model": "large", "data.size": 3})

    def test_jobs_without_metrics(self):
        self.make()
        shutil.rmtree(self.folder / "2" / "csv")
        frame = ablate.read.read(self.folder)
        self.assertEqual([run.name for run in frame.runs], ["0", "1", "2", "3"])
        self.assertEqual((frame.runs[2].series, frame.runs[2].state), ({}, "unfinished"))
        self.has_note(frame, "have no metrics", "2")


class OptunaTest(ReadTestCase):
    def test_trials(self):
        path = self.folder / "study.db"
        make("optuna", self.folder)
        before = sorted(self.folder.iterdir())
        frame = ablate.read.read(path)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(frame.source, "optuna")
        runs = {run.name: run for run in frame.runs}
        self.assertEqual({name: run.state for name, run in runs.items()}, {
            "one/trial-0": "finished", "one/trial-1": "pruned", "one/trial-2": "failed",
            "one/trial-3": "unfinished", "two/trial-0": "finished"})
        import optuna
        trials = optuna.load_study(study_name="one", storage=f"sqlite:///{path}").trials
        for trial in trials:
            run = runs[f"one/trial-{trial.number}"]
            self.assertEqual(run.settings, {"study": "one", "seed": trial.number} | trial.params)
            self.assertEqual(run.start, trial.datetime_start.timestamp())
        self.check(runs["one/trial-0"], "intermediate", [0, 1], [0.5, 1.5])
        self.check(runs["one/trial-0"], "value", [1], [0.125])
        self.check(runs["one/trial-2"], "intermediate", [0, 1], [2.5, math.inf])
        self.check(runs["two/trial-0"], "loss", [0], [0.25])
        self.check(runs["two/trial-0"], "acc", [0], [0.75])
        self.has_note(frame, "aren't a grid")

    def test_another_schema(self):
        path = self.folder / "study.db"
        make("optuna", self.folder)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE version_info SET schema_version = 13")
        with self.assertRaisesRegex(ablate.InvalidArgument,
                                    "schema version 13; expected .* schema version 12"):
            ablate.read.read(path)


class TrackioTest(ReadTestCase):
    def check_runs(self, frame):
        self.assertEqual(frame.source, "trackio")
        self.assertEqual([run.name for run in frame.runs], ["pre-s0", "post-s0", "post-s1"])
        self.assertEqual(frame.runs[2].settings,
                         {"norm": "post", "seed": 1, "optimizer.lr": 1e-3, "group": "norms"})
        for run in frame.runs:
            self.check(run, "loss", [0, 10, 20, 40], [0.1, 1.1, 2.1, math.nan])
            self.check(run, "val/acc", [0, 10, 20], [0, 1 / 3, 2 / 3])
            self.check(run, "grad", [40], [math.inf])
        self.has_note(frame, "doesn't store whether")

    def test_project(self):
        self.check_runs(ablate.read.read(database(self.folder, "trackio")))

    def test_reads_a_write_ahead_log_and_writes_nothing(self):
        path = database(self.folder, "trackio")
        connection = sqlite3.connect(path)
        self.addCleanup(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE metrics SET step = 50 WHERE step = 40")
        connection.commit()
        copy = self.folder / "copy"
        copy.mkdir()
        for name in ("trackio.db", "trackio.db-wal"):
            shutil.copy(self.folder / name, copy / name)
        before = {file: file.read_bytes() for file in copy.iterdir()}
        [run, *_] = ablate.read.read(copy).runs
        self.check(run, "grad", [50], [math.inf])
        self.assertEqual({file: file.read_bytes() for file in copy.iterdir()}, before)

    def test_older_files_have_no_run_id(self):
        path = database(self.folder, "trackio")
        with sqlite3.connect(path) as connection:
            for table, rest in (("metrics", "timestamp, run_name, step, metrics"),
                                ("configs", "run_name, config, created_at")):
                connection.execute(f"CREATE TABLE old AS SELECT id, {rest} FROM {table}")
                connection.execute(f"DROP TABLE {table}")
                connection.execute(f"ALTER TABLE old RENAME TO {table}")
        self.check_runs(ablate.read.trackio(path))


class LightningTest(ReadTestCase):
    def test_versions(self):
        frame = ablate.read.read(DATA / "lightning_logs")
        self.assertEqual(frame.source, "lightning")
        self.assertEqual([run.name for run in frame.runs], ["version_0", "version_1"])
        for seed, run in enumerate(frame.runs):
            self.assertEqual(run.settings, {"norm": "pre", "seed": seed, "lr": 0.001})
            self.check(run, "train_loss", [1, 3, 5, 7], [
                float(np.float32(0.1 + step)) for step in (1, 3, 5, 7)])
            self.check(run, "val_loss", [3, 7], [float(np.float32(1 / 3)), math.nan])

    def test_without_a_column_of_steps(self):
        (self.folder / "metrics.csv").write_text("epoch,loss\n5,0.1\n5,0.2\n6,0.3\n")
        [run] = ablate.read.read(self.folder).runs
        self.check(run, "loss", [0, 1, 2], [0.1, 0.2, 0.3])

    def test_objects_in_hparams_become_texts(self):
        shutil.copytree(DATA / "lightning_logs" / "version_0", self.folder / "a")
        (self.folder / "a" / "hparams.yaml").write_text(
            "path: !!python/object/apply:os.system ['exit 3']\npair: !!python/tuple [1, 2]\n"
            "kind: !!python/name:os.system ''\n")
        [run] = ablate.read.read(self.folder).runs
        self.assertEqual(run.settings, {"path": ["exit 3"], "pair": [1, 2], "kind": ""})


class TrainerTest(ReadTestCase):
    def test_folders_of_outputs(self):
        frame = ablate.read.read(DATA / "trainer")
        self.assertEqual(frame.source, "transformers")
        done, stopped = frame.runs
        self.assertEqual([(run.name, run.state) for run in frame.runs],
                         [("done", "finished"), ("stopped", "unfinished")])
        history = json.loads((DATA / "trainer/done/trainer_state.json").read_text())["log_history"]
        self.assertIn("train_runtime", history[-1])
        self.check(done, "loss", [1, 2, 3, 4], [row["loss"] for row in history if "loss" in row])
        self.check(done, "eval_loss", [2, 4],
                   [row["eval_loss"] for row in history if "eval_loss" in row])
        self.assertEqual(set(done.series), {"loss", "grad_norm", "learning_rate", "eval_loss"})
        self.check(stopped, "learning_rate", [1, 2], [5e-5, 3.7500000000000003e-05])
        self.has_note(frame, "unfinished", "stopped")

    def test_one_checkpoint(self):
        [run] = ablate.read.read(DATA / "trainer/stopped/checkpoint-2/trainer_state.json").runs
        self.assertEqual((run.name, run.state), ("checkpoint-2", "unfinished"))

    def test_early_stopping_is_an_end(self):
        state = json.loads((DATA / "trainer/stopped/checkpoint-2/trainer_state.json").read_text())
        state["stateful_callbacks"]["TrainerControl"]["args"]["should_training_stop"] = True
        (self.folder / "trainer_state.json").write_text(json.dumps(state))
        self.assertEqual(ablate.read.read(self.folder).runs[0].state, "finished")


class LmEvalTest(ReadTestCase):
    def test_tasks_and_groups(self):
        frame = ablate.read.read(DATA / "lm_eval")
        self.assertEqual(frame.source, "lm_eval")
        self.assertEqual([run.settings for run in frame.runs],
                         [{"model": "org/large"}, {"model": "org/small"}])
        for run, values in zip(frame.runs, ([0, 1, 1, 1, 1], [0, 1, 0, 1, 1])):
            self.assertEqual(set(run.series), {"spell/exact_match,strict",
                                               "spell/exact_match,lower", "subjects/acc"})
            group = run.series["subjects/acc"]
            self.assertEqual(group.values.tolist(), values)
            self.assertEqual(group.items, ["subjects_art/0", "subjects_art/1", "subjects_law/0",
                                           "subjects_law/1", "subjects_law/2"])
            self.assertEqual(group.groups, ["subjects_art"] * 2 + ["subjects_law"] * 3)
            self.assertEqual(len(group.steps), 0)
            single = run.series["spell/exact_match,strict"]
            self.assertEqual((single.items, single.groups), (["0", "1"], []))

    def changed(self, old, new):
        shutil.copytree(DATA / "lm_eval", self.folder / "lm_eval")
        [file] = self.folder.glob("lm_eval/org__small/samples_spell*")
        file.write_text(file.read_text().replace(old, new))
        return file

    def test_refuses_other_documents(self):
        self.changed("21a4f4e514d8", "31a4f4e514d8")
        with self.assertRaisesRegex(ablate.InvalidArgument,
                                    "document 0 of spell differs from that of another model"):
            ablate.read.read(self.folder)

    def test_other_prompts_are_a_note(self):
        self.changed("4def02cd7211", "5def02cd7211")
        self.has_note(ablate.read.read(self.folder), "prompts", "spell")

    def test_the_newest_evaluation_counts(self):
        file = self.changed('"exact_match": 0.0', '"exact_match": 0.0')
        newer = file.with_name("samples_spell_2026-12-01T00-00-00.000000.jsonl")
        newer.write_text(file.read_text().replace('"exact_match": 0.0', '"exact_match": 1.0'))
        frame = ablate.read.read(self.folder)
        [run] = [run for run in frame.runs if run.name.endswith("small")]
        self.assertEqual(run.series["spell/exact_match,lower"].values.tolist(), [1, 1])
        self.has_note(frame, "the newest counts", "spell")

    def test_refuses_a_document_twice(self):
        file = self.changed("x", "x")
        file.write_text(file.read_text() * 2)
        with self.assertRaisesRegex(ablate.InvalidArgument, "document 0 is there twice"):
            ablate.read.read(self.folder)


class InspectTest(ReadTestCase):
    def test_both_formats(self):
        frame = ablate.read.read(DATA / "inspect")
        self.assertEqual(frame.source, "inspect")
        self.assertEqual([run.settings for run in frame.runs],
                         [{"model": "mockllm/small"}, {"model": "mockllm/large"}])
        for run, values in zip(frame.runs, ([1, 1, 0, 1, 1, 0], [1] * 6)):
            self.assertEqual(run.state, "finished")
            self.assertEqual(set(run.series), {"letters/match", "letters/includes"})
            series = run.series["letters/match"]
            self.assertEqual(series.values.tolist(), values)
            self.assertEqual(series.items, ["a/1", "b/1", "c/1", "a/2", "b/2", "c/2"])
            self.assertEqual(series.groups, ["a", "b", "c"] * 2)

    def changed(self, **changes):
        [file] = (DATA / "inspect").glob("*.json")
        log = json.loads(file.read_text())
        log |= changes
        log["samples"] = log["samples"][:3]
        log["samples"][0]["scores"] = {}
        log["samples"][1]["scores"]["match"]["value"] = {"a": 0.25, "b": True, "c": "text"}
        (self.folder / "log.json").write_text(json.dumps(log))
        return ablate.read.read(self.folder)

    def test_one_epoch_and_other_scores(self):
        frame = self.changed(status="error")
        [run] = frame.runs
        self.assertEqual(run.state, "failed")
        self.assertEqual(run.series["letters/match.a"].values.tolist(), [0.25])
        self.assertEqual(run.series["letters/match.b"].values.tolist(), [1])
        self.assertEqual((run.series["letters/match"].items, run.series["letters/match"].groups),
                         (["c"], []))
        self.has_note(frame, "without a score", "letters a")
        self.has_note(frame, "aren't numbers", "letters/match.c")

    def test_a_stopped_evaluation(self):
        self.assertEqual(self.changed(status="started").runs[0].state, "unfinished")

    def test_refuses_a_task_twice(self):
        for name in ("a", "b"):
            shutil.copy(next((DATA / "inspect").glob("*.json")), self.folder / f"{name}.json")
        with self.assertRaisesRegex(ablate.InvalidArgument, "another log of letters"):
            ablate.read.read(self.folder)


class AutoresearchTest(ReadTestCase):
    def test_rows(self):
        (self.folder / "results.tsv").write_text(
            "commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"
            "a1b2c3d\t0.997900\t44.0\tkeep\tbaseline\n"
            "b2c3d4e\t0.993200\t44.2\tdiscard\tlr 0.04, \"warm\"\n"
            "c3d4e5f\t0.000000\t0.0\tcrash\ttwice the width\n"
            "a1b2c3d\t0.0\t0.0\tdiscard\tnothing printed\n")
        frame = ablate.read.read(self.folder)
        self.assertEqual(frame.source, "autoresearch")
        self.assertEqual([run.name for run in frame.runs],
                         ["a1b2c3d (line 2)", "b2c3d4e", "c3d4e5f", "a1b2c3d (line 5)"])
        self.assertEqual([run.state for run in frame.runs],
                         ["finished", "finished", "failed", "failed"])
        self.check(frame.runs[0], "val_bpb", [0], [0.9979])
        self.check(frame.runs[1], "memory_gb", [0], [44.2])
        self.assertEqual(frame.runs[1].settings,
                         {"commit": "b2c3d4e", "description": 'lr 0.04, "warm"'})
        self.assertEqual(frame.runs[2].series, {})
        self.has_note(frame, "no seeds")


class RowsTest(ReadTestCase):
    TABLE = [{"norm": norm, "seed": seed, "step": step, "loss": seed + step / 8, "acc": None}
             for norm in ("pre", "post") for seed in (0, 1) for step in (5, 10)]

    def test_a_table_of_runs(self):
        for table in (self.TABLE, pandas.DataFrame(self.TABLE).drop(columns="acc")):
            frame = ablate.read.rows(table, setting="norm", pair="seed", metric="loss", step="step")
            self.assertEqual([run.name for run in frame.runs][:2],
                             ["norm=pre seed=0", "norm=pre seed=1"])
            self.assertEqual(frame.runs[3].settings, {"norm": "post", "seed": 1})
            self.assertIs(type(frame.runs[3].settings["seed"]), int)
            self.check(frame.runs[3], "loss", [5, 10], [1.625, 2.25])

    def test_several_metrics_and_settings_without_steps(self):
        table = [{"norm": "pre", "lr": 0.1, "seed": seed, "loss": 0.5,
                  "acc": None if seed else math.nan} for seed in (0, 1)]
        frame = ablate.read.rows(table, setting=["norm", "lr"], pair="seed", metric=["loss", "acc"])
        self.assertEqual(frame.runs[0].settings, {"norm": "pre", "lr": 0.1, "seed": 0})
        self.check(frame.runs[0], "acc", [0], [math.nan])
        self.assertEqual(set(frame.runs[1].series), {"loss"})
        self.has_note(frame, "aren't numbers", "seed=1 acc")

    def test_items(self):
        table = [{"model": model, "document": item, "subject": item[0], "right": index}
                 for model in ("a", "b") for index, item in enumerate(("x1", "y2"))]
        frame = ablate.read.rows(table, setting="model", pair="document", metric="right",
                                 group="subject", items=True)
        self.assertEqual([run.settings for run in frame.runs], [{"model": "a"}, {"model": "b"}])
        series = frame.runs[1].series["right"]
        self.assertEqual((series.values.tolist(), series.items, series.groups),
                         ([0, 1], ["x1", "y2"], ["x", "y"]))
        self.assertEqual(frame.rows()[0], {"model": "a", "name": "model=a", "key": "right",
                                           "item": "x1", "group": "x", "value": 0.0})

    def test_refuses_duplicates_and_missing_columns(self):
        with self.assertRaisesRegex(ablate.InvalidArgument,
                                    "row 1: norm=pre seed=0 is there twice"):
            ablate.read.rows(self.TABLE, setting="norm", pair="seed", metric="loss")
        with self.assertRaisesRegex(ablate.InvalidArgument, "row 0: it has no column size"):
            ablate.read.rows(self.TABLE, setting="size", pair="seed", metric="loss")
        with self.assertRaisesRegex(ablate.InvalidArgument, "no run of table is there"):
            ablate.read.rows([], setting="size", pair="seed", metric="loss")


class FrameTest(ReadTestCase):
    def test_pandas(self):
        run = ablate.read.Run("a", {"norm": "pre", "step": 3}, series={
            "loss": ablate.read.Series(np.array([0.5, 0.25]), np.array([1, 2], np.uint32))})
        other = ablate.read.Run("b", {"size": 2}, series={
            "loss": ablate.read.Series(np.array([0.5]), np.array([1], np.uint32))})
        table = ablate.read.Frame("x", [run, other], []).to_pandas()
        self.assertEqual(list(table.columns),
                         ["norm", "setting.step", "size", "name", "key", "step", "value"])
        self.assertEqual(table["value"].tolist(), [0.5, 0.25, 0.5])
        self.assertEqual(table["step"].tolist(), [1, 2, 1])

    def joined(self, frame):
        """Checks the messages of a frame; returns its runs, with parts put together."""
        runs = []
        for index, message in enumerate(frame.messages()):
            self.assertLess(message.ByteSize(), 1.3e6)
            self.assertEqual(message.HasField("options"), index == 0)
            for part in message.runs:
                if runs and runs[-1].name == part.name:
                    self.assertFalse(part.settings)
                    for series in part.series:
                        last = runs[-1].series[-1]
                        if last.key == series.key:
                            for field in ("values", "steps", "items", "groups"):
                                getattr(last, field).extend(getattr(series, field))
                        else:
                            runs[-1].series.add().CopyFrom(series)
                else:
                    runs.append(part)
        return runs

    def test_messages(self):
        count = 300_000
        steps, values = np.arange(count, dtype=np.uint32), np.random.default_rng(1).random(count)
        run = ablate.read.Run("long", {
            "seed": 3, "none": None, "yes": True, "lr": 0.1, "text": "t", "list": [1, "a", None],
            "large": 2**63 + 1, "nan": math.nan}, "failed", 1.5, None,
            {"a": ablate.read.Series(values, steps),
             "b": ablate.read.Series(values[:5], steps[:5])})
        items = ablate.read.Run("items", series={"c": ablate.read.Series(
            values[:3000], items=[f"{index}" * 100 for index in range(3000)], groups=["g"] * 3000)})
        many = ablate.read.Run("many", series={
            f"key{index}": ablate.read.Series(values[:100], steps[:100]) for index in range(3000)})
        frame = ablate.read.Frame("wandb", [run, items, many], ["a note"])
        first = next(frame.messages())
        self.assertEqual((first.options.source, list(first.options.notes)), ("wandb", ["a note"]))
        long, by_item, wide = self.joined(frame)
        self.assertEqual({key: json_format.MessageToDict(value) if key != "nan" else
                          value.string_value for key, value in long.settings.items()},
                         {"seed": 3, "none": None, "yes": True, "lr": 0.1, "text": "t",
                          "list": [1, "a", None], "large": str(2**63 + 1), "nan": "nan"})
        self.assertEqual(long.state, import_pb2.ImportedState.failed)
        self.assertEqual(long.start_time.ToMicroseconds(), 1_500_000)
        self.assertFalse(long.HasField("end_time"))
        self.assertEqual(list(long.series[0].steps), steps.tolist())
        self.assertEqual(list(long.series[0].values), values.tolist())
        self.assertEqual(list(long.series[1].values), values[:5].tolist())
        self.assertEqual(len(set(by_item.series[0].items)), 3000)
        self.assertEqual(len(by_item.series[0].groups), 3000)
        self.assertEqual([series.key for series in wide.series], [f"key{i}" for i in range(3000)])

    def test_long_and_broken_texts(self):
        run = ablate.read.Run("a\udcff" + "x" * 5000, {"k" * 2000: "ü" * 2000, "l": "ü" * 2001})
        [message] = ablate.read.Frame("x", [run], []).messages()
        texts = [message.runs[0].name, *message.runs[0].settings,
                 *(value.string_value for value in message.runs[0].settings.values())]
        self.assertTrue(all(len(text.encode()) <= 1000 for text in texts))
        self.assertEqual(len(set(texts)), 5)


class DetectTest(ReadTestCase):
    def test_several_tools_and_none(self):
        with self.assertRaisesRegex(ablate.InvalidArgument, "no results of a known tool"):
            ablate.read.read(self.folder)
        shutil.copytree(DATA / "lightning_logs", self.folder / "a")
        shutil.copytree(DATA / "trainer", self.folder / "b")
        with self.assertRaisesRegex(ablate.InvalidArgument,
                                    r"lightning \(.*metrics.csv\) and trainer_state \(.*json\); "
                                    "expected one. Choose by --tool lightning"):
            ablate.read.read(self.folder)
        self.assertEqual(len(ablate.read.read(self.folder, tool="trainer_state").runs), 2)
        with self.assertRaisesRegex(ablate.InvalidArgument, 'tool: "x" is unknown; expected wandb'):
            ablate.read.read(self.folder, tool="x")
        with self.assertRaisesRegex(ablate.NotFound, "gone: no such file or folder"):
            ablate.read.read(self.folder / "gone")

    def test_several_paths(self):
        logs, trainer = DATA / "lightning_logs", DATA / "trainer"
        frame = ablate.read.read(logs, trainer)
        self.assertEqual(frame.source, "lightning, transformers")
        self.assertEqual([run.name for run in frame.runs],
                         ["version_0", "version_1", "done", "stopped"])
        shutil.copytree(logs, self.folder / "again")
        names = [run.name for run in ablate.read.read(logs, self.folder / "again").runs]
        self.assertEqual(names, ["version_0", "version_1", f"{self.folder}/again/version_0",
                                 f"{self.folder}/again/version_1"])
        with self.assertRaisesRegex(ablate.InvalidArgument, "is there twice"):
            ablate.read.read(logs, self.folder / "again", logs, logs)


class ProgramTest(ReadTestCase):
    def run_program(self, *arguments):
        return subprocess.run([sys.executable, "-m", "ablate.read", *map(str, arguments)],
                              capture_output=True, timeout=60,
                              env=os.environ | {"PYTHONPATH": str(pathlib.Path(
                                  ablate.__file__).parent.parent)})

    def test_writes_delimited_messages(self):
        done = self.run_program("--tool", "lightning", DATA / "lightning_logs")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        stream, messages = io.BytesIO(done.stdout), []
        while byte := stream.read(1):
            size, shift = byte[0] & 127, 7
            while byte[0] > 127:
                byte = stream.read(1)
                size |= (byte[0] & 127) << shift
                shift += 7
            messages.append(import_pb2.ImportRequest.FromString(stream.read(size)))
        self.assertEqual(*([one.SerializeToString(deterministic=True) for one in some] for some in (
            messages, ablate.read.read(DATA / "lightning_logs").messages())))

    def test_errors_are_one_line(self):
        for arguments in ([self.folder], ["--tool", "x", self.folder], [],
                          [DATA / "trainer", self.folder / "a\nb"]):
            done = self.run_program(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), done)
            self.assertRegex(done.stderr.decode(), r"\Aerror: [^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main()
