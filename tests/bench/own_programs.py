"""Seconds of a grid of short PyTorch programs: by ablate, warm and cold, and by a shell loop, by turns.

    build/venv/bin/python tests/bench/own_programs.py build/bin [runs] [rounds]

The program trains a model of two layers for 50 steps. Of ablate, time counts from the submit to the
end of the last run, on a server that has trained no program before; of the loop, one interpreter
after the other with one thread. Cold runs and the loop have a tenth of the runs, and are scaled.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TRAIN = """
import argparse
import torch
import ablate_run as run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
args = parser.parse_args()
torch.manual_seed(args.seed)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), args.lr)
for step in range(50):
    x = torch.randn(64, 32)
    loss = (model(x) - x[:, :1]).square().mean()
    run.log({"train/loss": loss}, step=step)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
run.log({"eval/loss": loss}, step=50)
"""
FILE = """
name: starts
base:
  program: {{command: [python, train.py], files: [train.py], start: {start}}}
  settings: {{lr: 0.001}}
axes:
  - {{field: settings.lr, values: [0.001, 0.01]}}
seeds: {{count: {seeds}}}
"""


def by_ablate(programs, folder, start, runs):
    (folder / f"{start}.yaml").write_text(FILE.format(start=start, seeds=runs // 2))
    home = folder / f"home-{start}"
    environment = {"ABLATE_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(folder)}

    def ablate(*arguments):
        subprocess.run([programs / "ablate", *arguments], check=True, env=environment, cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    ablate("up")
    begin = time.monotonic()
    ablate("submit", f"{start}.yaml", "--fresh", "--wait")
    seconds = time.monotonic() - begin
    ablate("down")
    return seconds


def by_loop(folder, runs):
    module = pathlib.Path(__file__).resolve().parents[2] / "client" / "python"
    begin = time.monotonic()
    for seed in range(runs):
        subprocess.run([sys.executable, "train.py", "--lr=0.001", f"--seed={seed}"], check=True,
                       cwd=folder, stdout=subprocess.DEVNULL,
                       env={"PYTHONPATH": str(module), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin"})
    return time.monotonic() - begin


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    runs, rounds = (int(text) for text in [*sys.argv[2:], "180", "3"][:2])
    part = max(runs // 10 // 2 * 2, 2)
    seconds = {"warm": [], "cold": [], "loop": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "train.py").write_text(TRAIN)
            seconds["warm"].append(by_ablate(programs, folder, "warm", runs))
            seconds["cold"].append(by_ablate(programs, folder, "cold", part) * runs / part)
            seconds["loop"].append(by_loop(folder, part) * runs / part)
    for kind, values in seconds.items():
        print(f"{kind}: {statistics.median(values):.1f} s for {runs} runs", values)
    ratios = [loop / warm for loop, warm in zip(seconds["loop"], seconds["warm"])]
    print(f"loop / warm: {statistics.median(ratios):.1f}", ratios)


main()
