"""Asks pandas the questions of question_speed.cc, over the CSV that it writes.

Usage: question_speed.py FOLDER"""
import sys
import time

import pandas

start = time.perf_counter()
runs = pandas.read_csv(sys.argv[1] + "/runs.csv", low_memory=False)
print(f"read_csv: {1e3 * (time.perf_counter() - start):.0f} ms, {len(runs)} rows")
PAGE = 100
norm, rate = runs["model.norm.placement"], runs["training.learning_rate"]


def best(rows, by, ascending=True):
    return rows.sort_values(by, ascending=ascending, kind="stable").head(PAGE)


QUESTIONS = {
    "placement = post AND lr >= 5e-3": lambda: runs[(norm == "post") & (rate >= 5e-3)].head(PAGE),
    "placement = post OR layers = 8 OR seed = 3": lambda: runs[
        (norm == "post") | (runs["model.layers"] == 8) | (runs["seed"] == 3)].head(PAGE),
    "eval/loss < 2.31 OR (train/loss > 3 AND NOT pre)": lambda: runs[
        (runs["eval/loss"] < 2.31)
        | ((runs["train/loss"] > 3) & (runs["placement"] != "pre"))].head(PAGE),
    "all; by eval/loss": lambda: best(runs, "eval/loss"),
    "done AND eval/loss < 5; by min(eval/loss)": lambda: best(
        runs[(runs["state"] == "DONE") & (runs["eval/loss"] < 5)], "min(eval/loss)"),
    "all; by learning rate desc": lambda: best(runs, "training.learning_rate", False),
}
for question, ask in QUESTIONS.items():
    times = []
    for _ in range(30):
        begin = time.process_time()
        ask()
        times.append(1e3 * (time.process_time() - begin))
    times.sort()
    print(f"{times[15]:6.1f} ms (p50) {times[-1]:6.1f} (p99)  {question}")
