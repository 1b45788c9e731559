"""Milliseconds a training step of PyTorch's ways on one GPU, and steps a second of our trainer.

    python gpu_vs_pytorch.py --ours PATH/TO/PROGRAM --budget 180 --markdown FILE

Prints a JSON object per workload. The ways of PyTorch train by turns in each round; the result is
the median of the rounds. Their batches are on the device beforehand. Then they are freed, and our
trainer runs once for each number of lanes (runs that train at the same time), one process after
another. Ratios are our steps a second, of all lanes, divided by the way's: above 1 ours is faster.

- eager: fused attention, AdamW with its defaults, reads the loss at every step
- best eager: fused AdamW too, reads the loss every 50 steps, as the next ways do
- graph: forward, backward and optimizer in one CUDA graph
- compiled: best eager with model and loss by torch.compile
- reduce-overhead: the same in the mode of that name, which uses CUDA graphs, in s4 and gpt2

PROGRAM is started as `PROGRAM WORKLOAD LANES`. For each line with a number of steps it makes that
many steps in every lane and prints milliseconds per step of one lane, and steps per second of all.
"""

import argparse
import contextlib
import dataclasses
import datetime
import functools
import gc
import json
import statistics
import subprocess
import sys
import threading
import time

STARTED = time.monotonic()
import torch
import torch.nn as nn
import torch.nn.functional as F

from eager_models import (CHARACTERS_ADAMW, NAMES_ADAMW, NAMES_CONTEXT, RECALL_ADAM, PreNormModel,
                          RecallModel, characters_model, loss_of, names_batches, names_model,
                          plays_batches, recall_batches)

READ_EVERY = 50         # steps between two readings of the loss
COMPILE_SECONDS = 45    # a way with torch.compile begins only if this much of the budget is left
OURS_SECONDS = 60       # limit of one of our processes


@dataclasses.dataclass
class Workload:
    name: str
    model: object            # () -> nn.Module
    optimizer: object        # (parameters, **options) -> optimizer
    batches: list            # of (tokens, targets) on the device
    equal_batches: list      # the same, padded to equal shapes
    warm_steps: int = 20
    large: bool = False      # one run fills the device
    precision: str = "float32"
    reduce_overhead: bool = False

    def autocast(self, device):
        if self.precision != "bfloat16":
            return contextlib.nullcontext()
        return torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False)


def moved(batches, device):
    return [(tokens.to(device), targets.to(device)) for tokens, targets in batches]


def padded(batches, length):
    """Pads each document; targets of -100 don't count in the loss."""
    return [(F.pad(tokens, (0, length - tokens.shape[1]), value=26),
             F.pad(targets, (0, length - targets.shape[1]), value=-100))
            for tokens, targets in batches]


def gpt2_initialised(model):
    """Draws embeddings and weights from N(0, 0.02), as GPT-2 does; a tied head needs it."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model


def names(device):
    batches = names_batches()
    return Workload("names", lambda: names_model(True),
                    functools.partial(torch.optim.AdamW, **NAMES_ADAMW), moved(batches, device),
                    moved(padded(batches, NAMES_CONTEXT), device))


def recall(device):
    batches = moved(recall_batches(), device)
    return Workload("recall", RecallModel, functools.partial(torch.optim.Adam, **RECALL_ADAM),
                    batches, batches)


def s4(device):
    """Trains the character model of source experiment S4 by backpropagation.

    That is examples/norm-jacobian.yaml, variant softmax-bp: 4 pre-LayerNorm blocks of width 128,
    4 heads, hidden 512, exact GELU, biases, learned positions, a tied head without bias, 32 windows
    of 64 of Shakespeare's characters (65 different), AdamW with learning rate 1e-3.
    """
    batches = moved(plays_batches(), device)
    return Workload("s4", lambda: gpt2_initialised(characters_model(True)),
                    functools.partial(torch.optim.AdamW, **CHARACTERS_ADAMW), batches, batches,
                    reduce_overhead=True)


def gpt2(device, precision):
    """Trains GPT-2 with 124 million parameters on 8 × 1,024 random tokens.

    On a CPU, where only the program is tested, a batch is 1 × 64.
    """
    shape = (8, 1024) if device == "cuda" else (1, 64)
    batches = moved([(torch.randint(50257, shape), torch.randint(50257, shape)) for _ in range(4)],
                    device)

    def model():
        return gpt2_initialised(PreNormModel(50257, 1024, 12, 768, 12, 3072, True, nn.LayerNorm,
                                             nn.GELU(approximate="tanh"), True, True))

    return Workload({"float32": "gpt2", "tf32": "gpt2-tf32", "bfloat16": "gpt2-bf16"}[precision],
                    model, functools.partial(torch.optim.AdamW, lr=6e-4, weight_decay=0.1), batches,
                    batches, warm_steps=4, large=True, precision=precision, reduce_overhead=True)


WORKLOADS = {
    "names": names,
    "recall": recall,
    "s4": s4,
    "gpt2-bf16": lambda device: gpt2(device, "bfloat16"),
    "gpt2-tf32": lambda device: gpt2(device, "tf32"),
    "gpt2": lambda device: gpt2(device, "float32"),
}


class Loss(nn.Module):
    """A model with its loss, to be compiled together."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, targets):
        return loss_of(self.model, tokens, targets)


@dataclasses.dataclass
class Way:
    """A model in training. `step` takes a batch and returns the loss without waiting for it."""
    step: object
    batches: list
    read_every: int = READ_EVERY
    position: int = 0
    steps: int = 0           # of a round
    build_seconds: float = 0  # with the first steps, so with compilation
    peak_mib: float = 0      # of device memory, without the batches
    loss: float = 0
    ms: list = dataclasses.field(default_factory=list)  # per step, a value per round


def training_step(workload, device, loss, optimizer):
    def step(tokens, targets):
        optimizer.zero_grad()
        with workload.autocast(device):
            value = loss(tokens, targets)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def parts(workload, device, **options):
    """Returns a new model with its loss, and an optimizer with these options."""
    torch.manual_seed(0)
    with torch.device(device):
        loss = Loss(workload.model())
    return loss, workload.optimizer(loss.parameters(), **options)


def eager(workload, device):
    step = training_step(workload, device, *parts(workload, device))
    return Way(step, workload.batches, read_every=1)


def best_eager(workload, device):
    return Way(training_step(workload, device, *parts(workload, device, fused=True)),
               workload.batches)


def graph(workload, device):
    loss, optimizer = parts(workload, device, fused=True, capturable=True)
    step = training_step(workload, device, loss, optimizer)
    tokens, targets = (tensor.clone() for tensor in workload.equal_batches[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(tokens, targets)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad()  # so that the graph allocates gradients of its own
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        value = step(tokens, targets)

    def replay(next_tokens, next_targets):
        tokens.copy_(next_tokens)
        targets.copy_(next_targets)
        recorded.replay()
        return value

    return Way(replay, workload.equal_batches)


def compiled(workload, device, mode="default"):
    loss, optimizer = parts(workload, device, fused=True)
    step = training_step(workload, device, torch.compile(loss, mode=mode), optimizer)
    return Way(step, workload.equal_batches)


def reduce_overhead(workload, device):
    way = compiled(workload, device, "reduce-overhead")
    step = way.step

    def marked(tokens, targets):
        torch.compiler.cudagraph_mark_step_begin()
        return step(tokens, targets)

    way.step = marked
    return way


WAYS = {
    "eager": eager,
    "best eager": best_eager,
    "graph": graph,
    "compiled": compiled,
    "reduce-overhead": reduce_overhead,
}
COMPILED_WAYS = ("compiled", "reduce-overhead")
CUDA_WAYS = ("graph", *COMPILED_WAYS)


def train(way, steps):
    for number in range(way.position, way.position + steps):
        loss = way.step(*way.batches[number % len(way.batches)])
        if number % way.read_every == 0:
            loss.item()
    way.position += steps
    return loss


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def ms_per_step(way, steps, device):
    synchronize(device)
    start = time.perf_counter()
    loss = train(way, steps)
    synchronize(device)
    ms = 1e3 * (time.perf_counter() - start) / steps
    way.loss = loss.item()
    return ms


def steps_of_round(seconds, ms):
    return min(max(round(1e3 * seconds / ms), 2), 20000)


def note(text):
    print(f"{time.monotonic() - STARTED:.0f} s: {text}", file=sys.stderr, flush=True)


def first_line(error):
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def build(make, workload, device, seconds):
    """Returns a way that is warm and knows the steps of its round."""
    start = time.perf_counter()
    before = 0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    way = make(workload, device)
    train(way, workload.warm_steps)
    synchronize(device)
    way.build_seconds = time.perf_counter() - start
    way.steps = steps_of_round(seconds, ms_per_step(way, workload.warm_steps, device))
    if device == "cuda":
        way.peak_mib = (torch.cuda.max_memory_allocated() - before) / 2**20
    return way


def wanted_ways(workload, options):
    """Yields the ways to build, each when its turn comes, since building takes from the budget."""
    for name, make in WAYS.items():
        if options.device != "cuda" and name in CUDA_WAYS:
            continue
        if name == "reduce-overhead" and not workload.reduce_overhead:
            continue
        if name in options.skip or f"{workload.name}/{name}" in options.skip:
            continue
        left = options.budget - (time.monotonic() - STARTED)
        if name in COMPILED_WAYS and left < COMPILE_SECONDS:
            note(f"{workload.name}: {name} skipped: {max(left, 0):.0f} s of the budget are left")
            continue
        yield name, make


def measure_pytorch(workload, options):
    """Returns the ways that work, by name, with the milliseconds of each round."""
    ways = {}
    for name, make in wanted_ways(workload, options):
        try:
            ways[name] = build(make, workload, options.device, options.seconds)
            note(f"{workload.name}: {name} built in {ways[name].build_seconds:.1f} s")
        except Exception as error:
            note(f"{workload.name}: {name} left out: {first_line(error)}")
    for _ in range(options.rounds):
        for name, way in list(ways.items()):
            try:
                way.ms.append(ms_per_step(way, way.steps, options.device))
            except Exception as error:
                note(f"{workload.name}: {name} left out: {first_line(error)}")
                del ways[name]
    for way in ways.values():
        way.step = None  # frees the model
    return ways


def free_memory(device):
    torch.compiler.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def ask(process, steps):
    """Returns milliseconds per step of a lane, and steps per second of all."""
    process.stdin.write(f"{steps}\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("it ended without an answer, or took too long")
    ms, rate = map(float, line.split())
    return ms, rate


def measure_ours(workload, lanes, options):
    with subprocess.Popen([options.ours, workload.name, str(lanes)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        timer = threading.Timer(OURS_SECONDS, process.kill)
        timer.start()
        try:
            ask(process, workload.warm_steps)
            rate = ask(process, workload.warm_steps)[1]
            steps = steps_of_round(options.seconds, 1e3 * lanes / rate)
            answers = [ask(process, steps) for _ in range(options.rounds)]
        finally:
            timer.cancel()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
    return {"ms": round(statistics.median(ms for ms, _ in answers), 4),
            "steps_per_second": round(statistics.median(rate for _, rate in answers), 2)}


def measure_lanes(workload, options):
    """Returns our results by number of lanes."""
    ours = {}
    if options.ours is None:
        return ours
    for lanes in options.large_lanes if workload.large else options.lanes:
        try:
            ours[lanes] = measure_ours(workload, lanes, options)
            note(f"{workload.name}: ours measured, lanes: {lanes}")
        except Exception as error:
            note(f"{workload.name}: ours left out, lanes: {lanes}: {first_line(error)}")
    return ours


def ratios(rate, ways):
    return {name: round(rate * statistics.median(way.ms) / 1e3, 2) for name, way in ways.items()}


def compare(name, options):
    tf32 = name == "gpt2-tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.manual_seed(0)
    workload = WORKLOADS[name](options.device)
    ways = measure_pytorch(workload, options)
    workload.batches = workload.equal_batches = None
    for way in ways.values():
        way.batches = None
    free_memory(options.device)
    ours = measure_lanes(workload, options)
    result = {"workload": name, "precision": workload.precision}
    result["ms"] = {way: round(statistics.median(one.ms), 4) for way, one in ways.items()}
    if options.device == "cuda":
        result["peak_mib"] = {way: round(one.peak_mib, 1) for way, one in ways.items()}
    result["build_s"] = {way: round(one.build_seconds, 1) for way, one in ways.items()}
    result["loss"] = {way: round(one.loss, 4) for way, one in ways.items()}
    result["ours"] = ours
    if ours:
        best = max(ours, key=lambda lanes: ours[lanes]["steps_per_second"])
        result["best_lanes"] = best
        result["ratios"] = ratios(ours[best]["steps_per_second"], ways)
    if 1 in ours:
        result["ratios_one_lane"] = ratios(ours[1]["steps_per_second"], ways)
    return result


def driver():
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True,
                              timeout=20).stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def number(value):
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def table(head, rows):
    """Returns the lines of a Markdown table, without columns that are empty in all rows."""
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    lines = [[head[i] for i in kept], ["---"] * len(kept)]
    lines += [[row[i] for i in kept] for row in rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def markdown(machine, results, options):
    def cells(result, key):
        values = result.get(key, {})
        return [number(values[way]) if way in values else "" for way in WAYS]

    lanes = sorted({one for result in results for one in result["ours"]})
    rates = [[result["workload"]] +
             [number(result["ours"][one]["steps_per_second"]) if one in result["ours"] else ""
              for one in lanes] for result in results]
    lines = [f"{machine}. Medians of {options.rounds} rounds.", "",
             "Milliseconds per step of PyTorch's ways:", ""]
    lines += table(["workload", *WAYS], [[r["workload"], *cells(r, "ms")] for r in results])
    if any("peak_mib" in r for r in results):
        lines += ["", "Peak device memory of PyTorch's ways, MiB:", ""]
        lines += table(["workload", *WAYS],
                       [[r["workload"], *cells(r, "peak_mib")] for r in results])
    if lanes:
        heads = [f"{one} lane" + ("s" if one > 1 else "") for one in lanes]
        lines += ["", "Our steps per second, of all lanes:", ""]
        lines += table(["workload", *heads], rates)
        for key, title in (("ratios", "at our best number of lanes"),
                           ("ratios_one_lane", "at one lane")):
            lines += ["", f"Our steps per second {title}, divided by those of each way:", ""]
            lines += table(["workload", *(f"ours / {way}" for way in WAYS)],
                           [[r["workload"], *cells(r, key)] for r in results if key in r])
    return "\n".join(lines) + "\n"


def parsed():
    def items(text):
        return [item for item in text.split(",") if item]

    def numbers(text):
        return [int(item) for item in items(text)]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", choices=("cuda", "cpu"), default="cuda",
        help="cpu tests the program without the ways that need CUDA [cuda]")
    add("--ours", help="program of our trainer [none]")
    add("--workloads", type=items, default=list(WORKLOADS), help="comma-separated names [all]")
    add("--skip", type=items, default=[],
        help="comma-separated ways to leave out, WAY or WORKLOAD/WAY [none]")
    add("--lanes", type=numbers, default=[1, 4, 8, 16], help="our numbers of lanes [1,4,8,16]")
    add("--large-lanes", type=numbers, default=[1], help="the same for gpt2 [1]")
    add("--rounds", type=int, default=3, help="rounds of measurements [3]")
    add("--seconds", type=float, default=0.5, help="length of one measurement [0.5]")
    add("--budget", type=float, default=600,
        help="seconds from the start after which no workload begins [600]")
    add("--markdown", help="file for tables of the results [none]")
    options = parser.parse_args()
    for name in options.workloads:
        if name not in WORKLOADS:
            parser.error(f"--workloads: unknown workload {name}; expected {', '.join(WORKLOADS)}")
    for item in options.skip:
        workload, _, way = item.rpartition("/")
        if way not in WAYS or workload not in ("", *WORKLOADS):
            parser.error(f"--skip: unknown way {item}; expected WAY or WORKLOAD/WAY, "
                         f"with WAY one of {', '.join(WAYS)}")
    return options


def main():
    options = parsed()
    device = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    version = driver() if options.device == "cuda" else "none"
    machine = f"{device}, driver {version}, PyTorch {torch.__version__}, {datetime.date.today()}"
    note(machine)
    results = []
    for name in options.workloads:
        if time.monotonic() - STARTED > options.budget:
            note(f"{name}: skipped: the budget of {options.budget:.0f} s is spent")
            continue
        try:
            results.append(compare(name, options))
        except Exception as error:
            note(f"{name}: left out: {first_line(error)}")
            continue
        print(json.dumps({"device": device, **results[-1]}), flush=True)
        if options.markdown:
            with open(options.markdown, "w", encoding="utf-8") as file:
                file.write(markdown(machine, results, options))


if __name__ == "__main__":
    main()
