"""Microseconds of a step of many small runs: JAX (vmap over runs, scan over steps) and our native trainer, by turns.

    python jax_names.py PATH/TO/trainer_vs_eager [rounds [runs...]]

Needs jax from PyPI. Both train the names model (8 layers of width 16, one name a step) from the same initial
values on the same names. JAX needs one shape, so it pads each name to 16 positions and masks the rest. Prints a
JSON object per number of runs: medians of processor and wall time per run and step, the seconds that JAX compiles,
and the mean loss of the first steps of the first run. The program ends with an error if these losses differ.
"""

import functools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy

NAMES = os.path.join(os.path.dirname(__file__), "../../examples/data/names.txt")
LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT, VOCABULARY = 8, 16, 4, 64, 16, 27
SEED = 42
RATE, BETA1, BETA2, EPS, DECAY, STEPS = 0.01, 0.85, 0.99, 1e-8, 0.01, 1_000_000
CHECKED = 20  # steps whose losses are compared
JAX_STEPS, OUR_STEPS = 100, 4000  # of a turn


def initial_values(seed):
    """Draws what LibTorch draws, except for its approximate logarithm (docs/reference/random-streams.md)."""
    generator = numpy.random.RandomState(seed)

    def fractions(count):
        return (numpy.frombuffer(generator.bytes(4 * count), "<u4") & 0xFFFFFF) * 2.0**-24

    def normal(*shape):
        x = fractions(math.prod(shape)).reshape(-1, 2, 8)
        radius, angle = numpy.sqrt(-2 * numpy.log(1 - x[:, 0])), 2 * math.pi * x[:, 1]
        both = numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1)
        return both.reshape(shape).astype("f4")

    def linear(outputs, inputs):
        bound = inputs**-0.5
        return (fractions(outputs * inputs) * 2 * bound - bound).reshape(outputs, inputs).astype("f4")

    def block():
        return {"qkv": linear(3 * WIDTH, WIDTH), "projection": linear(WIDTH, WIDTH),
                "up": linear(HIDDEN, WIDTH), "down": linear(WIDTH, HIDDEN),
                "gain1": numpy.ones(WIDTH, "f4"), "gain2": numpy.ones(WIDTH, "f4")}

    return {"tokens": normal(VOCABULARY, WIDTH), "positions": normal(CONTEXT, WIDTH),
            "blocks": [block() for _ in range(LAYERS)], "gain": numpy.ones(WIDTH, "f4"),
            "head": linear(VOCABULARY, WIDTH)}


def read_names():
    """Returns the tokens of all names, padded, and their numbers of targets."""
    with open(NAMES, encoding="utf-8") as file:
        names = [line.strip() for line in file if line.strip()]
    tokens = numpy.full((len(names), CONTEXT + 1), 26, "i4")
    for row, name in zip(tokens, names):
        letters = [ord(c) - ord("a") for c in name[:CONTEXT]]
        row[1:1 + len(letters)] = letters
    return tokens, numpy.array([min(CONTEXT, len(name) + 1) for name in names], "i4")


def order_of(seed, count):
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return numpy.array(order, "i4")


def rms_norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def loss_of(parameters, tokens, count):
    """Returns the mean cross-entropy of one name."""
    x = parameters["tokens"][tokens[:-1]] + parameters["positions"]
    hidden = jnp.triu(jnp.ones((CONTEXT, CONTEXT), bool), 1)
    for block in parameters["blocks"]:
        qkv = (rms_norm(x, block["gain1"]) @ block["qkv"].T).reshape(CONTEXT, 3, HEADS, -1)
        q, k, v = qkv[:, 0], qkv[:, 1], qkv[:, 2]
        scores = jnp.einsum("ihd,jhd->hij", q, k) / math.sqrt(WIDTH // HEADS)
        weights = jax.nn.softmax(jnp.where(hidden, -jnp.inf, scores))
        x = x + jnp.einsum("hij,jhd->ihd", weights, v).reshape(CONTEXT, WIDTH) @ block["projection"].T
        x = x + jax.nn.relu(rms_norm(x, block["gain2"]) @ block["up"].T) @ block["down"].T
    logits = rms_norm(x, parameters["gain"]) @ parameters["head"].T
    losses = jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, tokens[1:, None], -1)[:, 0]
    return jnp.where(jnp.arange(CONTEXT) < count, losses, 0).sum() / count


def train_step(names, run, step):
    """Makes one update of AdamW. Returns the run and the loss before it."""
    parameters, m, v, order = run
    name = order[step % len(order)]
    loss, gradient = jax.value_and_grad(loss_of)(parameters, names[0][name], names[1][name])
    rate = RATE * (1 - step / STEPS)
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, gradient)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, gradient)
    step_size, root = rate / (1 - BETA1**(step + 1.0)), jnp.sqrt(1 - BETA2**(step + 1.0))
    parameters = jax.tree.map(
        lambda p, m, v: p * (1 - rate * DECAY) - step_size * m / (jnp.sqrt(v) / root + EPS), parameters, m, v)
    return (parameters, m, v, order), loss


def make_trainer(names):
    """Returns a function that makes so many steps of each run, compiled once for each shape of `runs`."""
    @functools.partial(jax.jit, static_argnums=2, donate_argnums=0)
    def train(runs, first, count):
        step = jax.vmap(functools.partial(train_step, names), in_axes=(0, None))
        return jax.lax.scan(lambda runs, i: step(runs, first + i), runs, jnp.arange(count))
    return train


def make_runs(count, names):
    runs = []
    for seed in range(SEED, SEED + count):
        parameters = initial_values(seed)
        zeros = jax.tree.map(numpy.zeros_like, parameters)
        runs.append((parameters, zeros, zeros, order_of(seed, names)))
    return jax.tree.map(lambda *leaves: jnp.asarray(numpy.stack(leaves)), *runs)


def measure(count, rounds, names, program):
    with subprocess.Popen([program, "names", "native"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        def ours(steps):
            print(steps, file=process.stdin, flush=True)
            return [float(text) for text in process.stdout.readline().split()]

        train = make_trainer(names)
        runs, losses = train(make_runs(count, len(names[1])), 0, CHECKED)
        our_loss, jax_loss = ours(CHECKED)[2], float(losses[:, 0].mean())
        begin = time.perf_counter()
        compiled = train.lower(runs, 0, JAX_STEPS).compile()
        compiling = time.perf_counter() - begin
        times = {"jax": ([], []), "native": ([], [])}
        for turn in range(rounds):
            wall, processor = time.perf_counter(), time.process_time()
            runs, losses = compiled(runs, CHECKED + turn * JAX_STEPS)
            losses.block_until_ready()
            scale = 1e6 / (JAX_STEPS * count)
            times["jax"][0].append((time.process_time() - processor) * scale)
            times["jax"][1].append((time.perf_counter() - wall) * scale)
            ms = ours(OUR_STEPS)
            times["native"][0].append(1e3 * ms[1])
            times["native"][1].append(1e3 * ms[0])
        process.stdin.close()
    result = {"runs": count, "compiling_s": round(compiling, 1), "loss": {"jax": jax_loss, "native": our_loss}}
    for trainer, (processor, wall) in times.items():
        result[trainer] = {"processor_us": round(statistics.median(processor), 1),
                           "wall_us": round(statistics.median(wall), 1)}
    result["jax / native"] = round(
        statistics.median(a / b for a, b in zip(times["jax"][0], times["native"][0])), 2)
    print(json.dumps(result), flush=True)
    if abs(our_loss - jax_loss) > 1e-4:
        sys.exit(f"The mean losses of the first {CHECKED} steps differ: {our_loss} and {jax_loss}.")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    names = tuple(map(jnp.asarray, read_names()))
    for count in [int(text) for text in sys.argv[3:]] or [1, 12, 60, 180]:
        measure(count, rounds, names, sys.argv[1])


if __name__ == "__main__":
    main()
