"""What PyTorch computes for the parity tests: models and training written from their formulas.

    python reference.py grid|names|recall FOLDER

Reads the cases that the C++ test wrote into FOLDER and writes the answers beside them. Exit code 77: a
package is missing.
"""

import glob
import json
import math
import os
import random
import sys

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from safetensors import safe_open
    from safetensors.torch import save_file
except ImportError as error:
    print(error)
    sys.exit(77)

from model import Transformer


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1),
                           ignore_index=-100)


def make_optimizer(parameters, training):
    o = training["optimizer"]
    if o["kind"] == "sgd":
        return torch.optim.SGD(parameters, lr=o["learning_rate"], momentum=o["momentum"],
                               weight_decay=o["weight_decay"])
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[o["kind"]]
    return kind(parameters, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["eps"],
                weight_decay=o["weight_decay"])


def learning_rate(training, step):
    rate, steps = training["optimizer"]["learning_rate"], training["steps"]
    warmup = training["schedule"]["warmup"]
    if step < warmup:
        return rate * (step + 1) / (warmup + 1)
    progress = (step - warmup) / (steps - warmup)
    factors = {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": (1.0 + math.cos(math.pi * progress)) / 2,
    }
    return rate * factors[training["schedule"]["kind"]]


def update(model, optimizer, training, step, logits, targets, out=None):
    """One training step; returns its loss."""
    optimizer.zero_grad()
    loss = cross_entropy(logits, targets)
    loss.backward()
    if step == 0 and out is not None:
        for name, parameter in model.named_parameters():
            out["gradient." + name] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
    if training["clip"] > 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), training["clip"])
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(training, step)
    optimizer.step()
    return loss.item()


def read_case(path):
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["case"]), {k: file.get_tensor(k) for k in file.keys()}


def answer(path, tensors):
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    save_file(tensors, path.replace(".case.", ".answer."))


def run_grid_case(path):
    case, tensors = read_case(path)
    torch.set_default_dtype(torch.float64 if case["precision"] == "float64" else torch.float32)
    training = case["training"]
    model = Transformer(case["model"], case["seed"], training["rule"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors["initial." + name])
        model.take_buffers({n[7:]: t for n, t in tensors.items() if n.startswith("buffer.")})
        for name, value in model.statistics().items():
            value.copy_(tensors["buffer." + name])
    optimizer = make_optimizer(model.parameters(), training)
    out, losses = {}, []
    for step in range(training["steps"]):
        inputs, targets, lengths = (
            tensors[f"{step}.{key}"] for key in ("inputs", "targets", "lengths"))
        if step == 0:
            with torch.no_grad():
                out["logits"] = model.eval()(inputs, lengths)
        model.train()
        model.dropout.step = step
        logits = model(inputs, lengths)
        losses.append(update(model, optimizer, training, step, logits, targets, out))
    out["losses"] = torch.tensor(losses, dtype=torch.float64)
    for name, parameter in model.named_parameters():
        out["final." + name] = parameter
    for name, value in model.statistics().items():
        out["buffer." + name] = value
    answer(path, out)


def grid(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        run_grid_case(path)


def names(folder):
    """The source experiment on names, one document a step, from its own shuffle and weights."""
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        case, _ = read_case(path)
        training = case["training"]
        with open(case["text"], encoding="utf-8") as file:
            documents = [line.strip() for line in file if line.strip()]
        random.seed(case["seed"])
        random.shuffle(documents)
        characters = sorted(set("".join(documents)))
        number = {character: i for i, character in enumerate(characters)}
        bos = len(characters)
        torch.manual_seed(case["seed"])
        model = Transformer(case["model"])
        out = {"initial." + name: p.clone() for name, p in model.named_parameters()}
        optimizer = make_optimizer(model.parameters(), training)
        losses = []
        for step in range(case["record"]):
            tokens = [bos] + [number[c] for c in documents[step % len(documents)]] + [bos]
            count = min(case["model"]["context"], len(tokens) - 1)
            inputs = torch.tensor([tokens[:count]])
            targets = torch.tensor([tokens[1:count + 1]])
            logits = model(inputs, torch.tensor([count]))
            losses.append(update(model, optimizer, training, step, logits, targets))
        out["losses"] = torch.tensor(losses, dtype=torch.float64)
        answer(path, out)


class RecallModel(nn.Module):
    """The source experiment on recall: one post-norm block around nn.MultiheadAttention."""

    def __init__(self, model):
        super().__init__()
        width = model["width"]
        self.embedding = nn.Embedding(model["vocabulary"], width)
        self.attention = nn.MultiheadAttention(width, model["heads"], batch_first=True)
        self.up = nn.Linear(width, model["hidden"])
        self.down = nn.Linear(model["hidden"], width)
        normed = model["norm"]["placement"] == "post"
        self.norm1 = nn.LayerNorm(width) if normed else nn.Identity()
        self.norm2 = nn.LayerNorm(width) if normed else nn.Identity()
        self.head = nn.Linear(width, model["vocabulary"])

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.norm1(x + self.attention(x, x, x)[0])
        x = self.norm2(x + self.down(F.gelu(self.up(x))))
        return self.head(x[:, -1])

    def layout_names(self):
        attention, feed_forward = "block.0.attention.", "block.0.feed_forward."
        names = {
            "embedding.weight": "token_embedding.weight",
            "attention.in_proj_weight": attention + "qkv.weight",
            "attention.in_proj_bias": attention + "qkv.bias",
        }
        for ours, theirs in (("attention.out_proj", attention + "projection"),
                             ("norm1", attention + "norm"), ("norm2", feed_forward + "norm"),
                             ("up", feed_forward + "up"), ("down", feed_forward + "down"),
                             ("head", "head")):
            for kind in (".weight", ".bias"):
                names[ours + kind] = theirs + kind
        return names


def recall(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        case, tensors = read_case(path)
        torch.manual_seed(case["seed"])
        model, training = RecallModel(case["model"]), case["training"]
        names_ = model.layout_names()
        out = {"initial." + names_[name]: p.clone() for name, p in model.named_parameters()}
        optimizer = make_optimizer(model.parameters(), training)
        losses = [
            update(model, optimizer, training, step, model(tensors[f"{step}.inputs"]),
                   tensors[f"{step}.targets"]) for step in range(case["record"])]
        out["losses"] = torch.tensor(losses, dtype=torch.float64)
        answer(path, out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"grid": grid, "names": names, "recall": recall}[sys.argv[1]](sys.argv[2])
