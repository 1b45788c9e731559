"""Asks ablate, MLflow and pandas the same about the runs that question_speed.cc makes.

Usage: question_speed.py FOLDER ABLATED [REPETITIONS]

Starts the server ABLATED on FOLDER/store without workers and asks it by the Python client. MLflow
reads an SQLite file in this process. pandas has FOLDER/runs.csv in memory, like a script that has
loaded all runs of a tracking server, such as W&B's. Needs client/python[pandas]. MLflow's column
also needs mlflow, or mlflow-skinny, sqlalchemy and alembic.
"""
import contextlib
import os
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

import ablate
import pandas

try:
    from mlflow.store.tracking.dbmodels import models
    from mlflow.tracking import MlflowClient
    import sqlalchemy
    WITHOUT_MLFLOW = ""
except ImportError as error:
    WITHOUT_MLFLOW = f"no column for MLflow: {error}; pip install mlflow adds it"

PAGE, TICK = 100, os.sysconf("SC_CLK_TCK")
PARAMS = ["placement", "model.norm.placement", "model.layers", "training.learning_rate", "seed"]
METRICS = ["eval/loss", "min(eval/loss)", "train/loss", "train/gradient_norm", "eval/accuracy",
           "gradient/block.0", "gradient/block.1"]
STATUS = {"DONE": "FINISHED", "DIVERGED": "FAILED", "QUEUED": "SCHEDULED"}
LOAD = "all runs into a frame"
LOSS = 'metrics."eval/loss"'
# SQL of ablate and of MLflow's tables: the mean loss by placement.
ABLATE_MEAN = """SELECT value, avg(last) FROM settings JOIN metrics USING (run)
    WHERE kind = 'axis' AND name = 'placement' AND key = 'eval/loss' {} GROUP BY value"""
MLFLOW_MEAN = """SELECT p.value, avg(m.value) FROM params p JOIN latest_metrics m USING (run_uuid)
    WHERE p.key = 'placement' AND m.key = 'eval/loss' GROUP BY p.value"""


@contextlib.contextmanager
def serve(program, folder):
    """Starts a server; gives a client, and a function that returns its processor time."""
    os.environ["ABLATE_HOME"] = str(folder)
    process = subprocess.Popen([program, "--home", folder, "--no-workers"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def seconds():
        clock = (~process.pid << 3) | 2  # Linux: the clock of another process
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ended_children = (int(fields[13]) + int(fields[14])) / TICK
        return time.clock_gettime(clock) + ended_children

    try:
        while not (folder / "run/address").exists() and process.poll() is None:
            time.sleep(.1)
        with ablate.connect("personal", start=False) as lab:
            yield lab, seconds
    finally:
        process.terminate()
        process.wait()


def fill(path, runs):
    """Makes MLflow's file, by its own tables: 100,000 runs by its API would take hours."""
    MlflowClient(f"sqlite:///{path}").search_experiments()  # makes the tables
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    ids = {name: place + 1 for place, name in enumerate(runs["experiment"].unique())}
    rows = {table: [] for table in ("SqlRun", "SqlParam", "SqlLatestMetric", "SqlTag")}
    for place, run in enumerate(runs.to_dict("records")):
        own = {"run_uuid": uuid.uuid4().hex}
        rows["SqlRun"].append(own | {
            "name": run["cell"], "user_id": run["owner"], "status": STATUS[run["state"]],
            "start_time": 10**12 + place, "experiment_id": ids[run["experiment"]],
            "lifecycle_stage": "active", "artifact_uri": f"/{own['run_uuid']}"})
        rows["SqlParam"] += [own | {"key": key, "value": str(run[key])} for key in PARAMS]
        rows["SqlLatestMetric"] += [
            own | {"key": key, "value": run[key], "timestamp": 0, "step": 1000, "is_nan": False}
            for key in METRICS if pandas.notna(run[key])]
        rows["SqlTag"] += [own | {"key": f"mlflow.{key}", "value": value} for key, value in (
            ("runName", run["cell"]), ("user", run["owner"]), ("source.type", "LOCAL"))]
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(models.SqlExperiment), [
            {"experiment_id": number, "name": name, "lifecycle_stage": "active",
             "artifact_location": f"/{name}"} for name, number in ids.items()])
        for table, values in rows.items():
            connection.execute(sqlalchemy.insert(getattr(models, table).__table__), values)
        # MLflow doesn't do this, but then an order by a metric takes minutes.
        connection.execute(sqlalchemy.text("ANALYZE"))


class MLflow:
    def __init__(self, path):
        self._client = MlflowClient(f"sqlite:///{path}")
        self._engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        self._ids = {one.name: one.experiment_id
                     for one in self._client.search_experiments(max_results=1000)}

    def search(self, filter="", order=None, limit=PAGE, only=None, token=None):
        ids = [self._ids[only]] if only else list(self._ids.values())
        return self._client.search_runs(ids, filter, max_results=limit, page_token=token,
                                        order_by=[order] if order else None)

    def union(self, filters, order=None):
        """Makes a search per filter and joins them here, because MLflow's filters have no OR."""
        found = {run.info.run_id: run for one in filters for run in self.search(one, order)}
        return sorted(found.values(), key=lambda run: run.data.metrics.get("eval/loss", 9e9))[:PAGE]

    def frame(self, **how):
        page = self.search(**how)
        runs = list(page)
        while page.token:
            page = self.search(token=page.token, **how)
            runs += page
        return pandas.DataFrame([{**run.data.params, **run.data.metrics} for run in runs])

    def mean_by_setting(self):
        return dict(pandas.read_sql(MLFLOW_MEAN, self._engine).itertuples(index=False))


def questions(lab, mlflow, runs, csv):
    """Returns (question, answer of ablate, of MLflow, of pandas) of each."""
    norm, loss, peri = runs["model.norm.placement"], runs["eval/loss"], runs["placement"] == "peri"
    one = runs["experiment"][50_000]
    either = ["params.placement = 'peri'", f"{LOSS} < 2.31"]

    def query(filter="", order="", limit=PAGE):
        return lab.query(filter, order_by=order, limit=limit, columns=PARAMS[:-1] + METRICS)

    def best(rows, limit=PAGE):
        return rows.sort_values("eval/loss", kind="stable").head(limit)

    def mean(rows):
        return dict(rows.groupby("placement")["eval/loss"].mean())

    def sql(where=""):
        return dict(lab.sql(ABLATE_MEAN.format(where)).itertuples(index=False))

    return [
        ("parameter AND metric",
         lambda: query("model.norm.placement = post AND eval/loss < 2.4"),
         lambda: mlflow.search(f"params.`model.norm.placement` = 'post' AND {LOSS} < 2.4"),
         lambda: runs[(norm == "post") & (loss < 2.4)].head(PAGE)),
        ("parameter OR metric",
         lambda: query("placement = peri OR eval/loss < 2.31"),
         lambda: mlflow.union(either),
         lambda: runs[peri | (loss < 2.31)].head(PAGE)),
        ("the same, by metric",
         lambda: query("placement = peri OR eval/loss < 2.31", "eval/loss"),
         lambda: mlflow.union(either, f"{LOSS} ASC"),
         lambda: best(runs[peri | (loss < 2.31)])),
        ("ten best of all",
         lambda: query("", "eval/loss", 10),
         lambda: mlflow.search("", f"{LOSS} ASC", 10),
         lambda: best(runs, 10)),
        ("runs of one experiment",
         lambda: query(f"experiment = {one}", limit=500),
         lambda: mlflow.search(limit=500, only=one),
         lambda: runs[runs["experiment"] == one]),
        ("mean by setting, one experiment",
         lambda: sql(f"AND experiment = '{one}'"),
         lambda: mean(mlflow.frame(limit=500, only=one)),
         lambda: mean(runs[runs["experiment"] == one])),
        ("mean by setting, all",
         sql, lambda: mlflow.mean_by_setting(), lambda: mean(runs)),
        (LOAD, lambda: query(limit=None), lambda: mlflow.frame(limit=50_000),
         lambda: pandas.read_csv(csv, low_memory=False)),
    ]


def losses(answer):
    """Returns the sorted losses of an answer, to compare answers."""
    if isinstance(answer, pandas.DataFrame):
        answer = dict(answer["eval/loss"].dropna())
    found = answer.values() if isinstance(answer, dict) else [
        run.data.metrics["eval/loss"] for run in answer if run.data.metrics]
    return [round(loss, 9) for loss in sorted(found)]


def measure(ways, turns, server_time):
    """Returns the medians (processor, wall) of each way in milliseconds, and the last answers."""
    times = [[] for _ in ways]
    for _ in range(turns):
        answers = []
        for way, taken in zip(ways, times, strict=True):
            used, start = time.process_time() + server_time(), time.perf_counter()
            answers.append(way())
            wall = time.perf_counter() - start
            time.sleep(.05)  # the server's child has ended then, and counts
            taken.append((time.process_time() + server_time() - used, wall))
    return [[1e3 * statistics.median(one) for one in zip(*taken, strict=True)]
            for taken in times], answers


def main(folder, program, repetitions=10):
    csv, path, mlflow = folder / "runs.csv", folder / "mlflow.db", None
    runs = pandas.read_csv(csv, low_memory=False)
    if WITHOUT_MLFLOW:
        print(WITHOUT_MLFLOW)
    else:
        if not path.exists():
            fill(path, runs)
        mlflow = MLflow(path)
    names = ["ablate", "MLflow", "pandas"] if mlflow else ["ablate", "pandas"]
    print(f"{len(runs)} runs; medians of processor time (wall time) in ms\n"
          f"| question | {' | '.join(names + [f'{name} / ablate' for name in names[1:]])} |")
    with serve(program, folder / "store") as (lab, server_time):
        for question, *ways in questions(lab, mlflow, runs, csv):
            ways = ways if mlflow else [ways[0], ways[2]]
            if question != LOAD:
                measure(ways, 1, server_time)  # warms caches
            times, answers = measure(ways, 1 if question == LOAD else repetitions, server_time)
            # Without an order, a page may have any of the runs.
            key = len if question.startswith("parameter") else losses
            if any(key(answer) != key(answers[0]) for answer in answers):
                print("these answers differ:")
            ratios = [processor / times[0][0] for processor, _ in times[1:]]
            cells = [f"{processor:.1f} ({wall:.1f})" for processor, wall in times]
            cells += [f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}" for ratio in ratios]
            print(f"| {question} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
