"""Processor time and peak memory of analyses of GPT-2 models with 124M parameters, beside transformers.

    python gpt2_analyses.py PATH/TO/build/bin [rounds [KIND...]]

Makes a model with random values, imports it into a personal server of its own, and evaluates it once.
Then each kind is analyzed by turns: by the server's worker, and by a straightforward script with
transformers and PyTorch (gpt2_scripts.py), one thread. Each time is a process of its own. Prints a line
per kind: median seconds of processor time from the request to the numbers, reading the model included
(ours is the worker's and the server's together), peak resident memory (ours is the worker's), the median
of the rounds' ratios of the script's time to ours, so that above 1 ours is faster, and the largest
relative difference of the numbers that both compute. Fails if a difference exceeds TOLERANCE.

The script reads a window at a time. It makes random draws, tokens and labels (gpt2_inputs.py) before its
time begins.

patch compares the outputs of heads, at all positions of a prompt and at each. The script runs one patched
pass after the other. probe needs scikit-learn and is skipped without it. Accuracies count absolutely, so
they may differ by 0.5 percentage points: fits that ended within the same tolerance can predict different
labels of words whose two best labels score nearly the same. cka_models compares four models of different
seeds at 13 hook points each, by minibatches. Its script keeps the states of all models.
"""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

from gpt2_inputs import DATASETS, EXAMPLES, KINDS, MODELS, TAGGED, TEXT, TOKENIZER, WINDOW
import gpt2_scripts

import numpy
from safetensors.numpy import load_file
import torch
from transformers import GPT2Config, GPT2LMHeadModel

TOLERANCE = 5e-3
ARRAYS = {"patch": "recovered", "cka_models": "cka"}  # compared besides the numbers


def make(folder, seed):
    torch.manual_seed(seed)
    config = GPT2Config(n_positions=WINDOW, initializer_range=0.05, bos_token_id=None, eos_token_id=None)
    GPT2LMHeadModel(config).save_pretrained(folder)


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Server:
    """A personal server in a folder of its own, with the evaluated models."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.environment = {**os.environ, "ABLATE_HOME": os.path.join(folder, "home")}
        self.environment.pop("ABLATE_SERVER", None)

    def call(self, *arguments):
        return subprocess.run([os.path.join(self.programs, "ablate"), *arguments], env=self.environment,
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def prepare(self, models):
        experiment = os.path.join(self.folder, "bench.yaml")
        settings = [f"{{label: m{i}, set: {{model_from: models/gpt2-{i}}}}}" for i in range(len(models))]
        with open(experiment, "w", encoding="utf-8") as file:
            file.write("name: bench\nbase:\n  evaluation: {tokens: 2048}\n"
                       f"  task: {{text: {{dataset: {TEXT}, tokenizer: {TOKENIZER}}}}}\n"
                       f"axes: [{{name: model, settings: [{', '.join(settings)}]}}]\nseeds: {{count: 1}}\n")
        self.call("up")
        try:
            for i, model in enumerate(models):
                self.call("model", "add", model, "--name", f"gpt2-{i}")
            self.call("data", "add", TAGGED)
            self.call("submit", experiment, "--data", EXAMPLES, "--wait")
        finally:
            self.call("down")

    def processes(self):
        """Returns the ids of the server and of its worker for analyses."""
        home, found = self.environment["ABLATE_HOME"], {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    command = file.read().split("\0")
            except OSError:
                continue
            if not any(home in part for part in command):
                continue
            if command[0].endswith("ablated"):
                found["server"] = pid
            elif "--role=analysis" in command:
                found["worker"] = pid
        return found["server"], found["worker"]

    def analyze(self, kind):
        """Analyses the model, or all of them, with fresh processes."""
        windows, options = KINDS[kind]
        arrays = os.path.join(self.folder, "arrays.safetensors")
        subjects = [f"bench/m{i}-s0" for i in range(MODELS if kind == "cka_models" else 1)]
        command = ["analyze", kind.removesuffix("_models"), *subjects, "--json"]
        command += ["--tokens", str(windows * WINDOW)] if windows else []
        command += ["--dataset", os.path.basename(DATASETS[kind])] if kind in DATASETS else []
        command += ["-o", arrays] if kind in ARRAYS else []
        for option in options:
            command += ["--set", option]
        self.call("up")
        try:
            pids = self.processes()
            before = processor_seconds(pids)
            answer = json.loads(self.call(*command))
            seconds = processor_seconds(pids) - before
            peak = gpt2_scripts.peak_gigabytes(pids[1])
            self.call("rm", answer["name"], "--yes")
        finally:
            self.call("down")
        numbers = {name: number["value"] for name, number in answer["numbers"].items() if "value" in number}
        if kind in ARRAYS:
            numbers.update(elements(arrays, ARRAYS[kind]))
        return {"seconds": seconds, "peak": peak, "notes": answer["notes"], "numbers": numbers}


def elements(file, name):
    """Returns the elements of an array as numbers called NAME/INDEX/INDEX and so on."""
    return {"/".join([name, *map(str, index)]): value.item()
            for index, value in numpy.ndenumerate(load_file(file)[name])}


def difference(kind, ours, theirs):
    """Returns the largest relative difference, and the number's name. Numbers near 0 count absolutely."""
    assert theirs.keys() <= ours.keys(), sorted(theirs.keys() - ours.keys())
    least = 1 if kind == "probe" else 0.01  # accuracies are at most 1
    return max((abs(ours[name] - value) / max(abs(value), least), name) for name, value in theirs.items())


def main(programs, rounds, kinds):
    if "probe" in kinds and importlib.util.find_spec("sklearn") is None:
        print("probe: skipped, because Python has no scikit-learn", flush=True)
        kinds = [kind for kind in kinds if kind != "probe"]
    with tempfile.TemporaryDirectory() as folder:
        models, tokens = os.path.join(folder, "gpt2"), os.path.join(folder, "tokens")
        made = [os.path.join(models, str(i)) for i in range(MODELS if "cka_models" in kinds else 1)]
        for seed, model in enumerate(made):
            make(model, seed)
        server = Server(programs, folder)
        server.call("data", "encode", TEXT, "--tokenizer", TOKENIZER, "-o", tokens)
        server.prepare(made)
        for kind in kinds:
            measured = []
            for _ in range(rounds):
                own = server.analyze(kind)
                other = json.loads(subprocess.run([sys.executable, gpt2_scripts.__file__, kind, models, tokens],
                                                  check=True, stdout=subprocess.PIPE, text=True).stdout)
                measured.append((own, other))
            largest, name = difference(kind, own["numbers"], other["numbers"])
            print(json.dumps({
                "kind": kind, "windows": KINDS[kind][0], "compared": len(other["numbers"]),
                "ours_s": round(statistics.median(own["seconds"] for own, _ in measured), 2),
                "script_s": round(statistics.median(other["seconds"] for _, other in measured), 2),
                "ratio": round(statistics.median(b["seconds"] / a["seconds"] for a, b in measured), 2),
                "ours_GB": round(statistics.median(own["peak"] for own, _ in measured), 2),
                "script_GB": round(statistics.median(other["peak"] for _, other in measured), 2),
                "difference": float(f"{largest:.2g}"), "of": name}), flush=True)
            assert largest <= TOLERANCE, (kind, name, own["numbers"][name], other["numbers"][name])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3, sys.argv[3:] or list(KINDS))
