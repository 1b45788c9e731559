"""Improves a small model of names as an automated researcher does: propose, submit, gate, then keep
or drop.

Each change is compared with the settings that were kept so far. Both get one seed more at a time
until the gate decides. At most one session in 20 keeps a change without an effect.

Usage: python examples/agent_loop.py [--changes N] [--seed SEED]
"""
import argparse
import itertools
import random
import time
from pathlib import Path

import ablate

NAMES = str(Path(__file__).parent / "data/names.txt")
BASE = {
    "task": {"documents": {"dataset": NAMES, "held_out": 1000}},
    "model": {"layers": 2, "heads": 4, "context": 16},
    "training": {"steps": 800, "batch": 2},
}
CHOICES = {  # the first values are the settings at the start
    "model.width": [16, 8, 24],
    "model.norm.kind": ["layer", "rms"],
    "model.norm.placement": ["post", "pre"],
    "model.feed_forward.activation": ["relu", "gelu"],
    "training.learning_rate": [0.002, 0.001, 0.005, 0.01, 0.02],
    "training.schedule": ["constant", "linear", "cosine"],
    "training.weight_decay": [0, 0.01, 0.1],
}


def judge(lab, label, kept, change, session):
    """Trains one seed more of the kept settings and of the change until the gate decides."""
    settings = [{"label": "kept", "set": kept}, {"label": label, "set": {**kept, **change}}]
    spec = {"name": label, "base": BASE, "axes": [{"name": "change", "settings": settings}]}
    experiment = ""
    for seeds in itertools.count(1):
        # Equal runs are shared, so only the new seed is trained.
        experiment = lab.submit(spec, seeds=seeds, extends=experiment, files=[NAMES])
        comparison = experiment.wait(progress=False).compare(session=session)
        if comparison.gate != "cannot say":
            return comparison


def main():
    parser = argparse.ArgumentParser(description="Improve a small model of names by gated changes.")
    parser.add_argument("--changes", type=int, default=20, help="number of changes to try [20]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the proposals [0]")
    options = parser.parse_args()
    propose, start = random.Random(options.seed), time.monotonic()
    kept = {field: values[0] for field, values in CHOICES.items()}
    dropped, session = [], []
    with ablate.connect() as lab:
        for number in range(1, options.changes + 1):
            changes = [(field, value) for field, values in CHOICES.items() for value in values
                       if value != kept[field] and (field, value) not in dropped]
            if not changes:
                break
            field, value = propose.choice(changes)
            label = f"change-{number}"  # a new one for each change of the session
            comparison = judge(lab, label, kept, {field: value}, session)
            session = comparison.message.gate.changes
            row = comparison.message.rows[1]
            difference = f"{row.difference.mean:+.4f} nats" if row.n else "diverged"
            print(f"{time.monotonic() - start:4.0f} s  {label}: {field} {kept[field]} → {value}: "
                  f"{comparison.gate} ({difference}, n = {row.pairs})", flush=True)
            if comparison.gate == "better":
                kept[field], dropped = value, []
            else:
                dropped.append((field, value))
    print(", ".join(f"{field}: {value}" for field, value in kept.items()))


if __name__ == "__main__":
    main()
