"""What PyTorch computes for the parity tests: models and training written from their formulas.

    python reference.py MODE FOLDER, with one of the modes at the end of this file

Reads the cases that the C++ test wrote into FOLDER and writes the answers beside them. Exit code 77: a
package is missing.
"""

import collections
import contextlib
import copy
import glob
import importlib
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

from model import Transformer, head_size, width_ratio
from rounding import Rounding


def cross_entropy(logits, targets, label_smoothing=0.0, z_loss=0.0):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    loss = F.cross_entropy(logits, targets, ignore_index=-100, label_smoothing=label_smoothing)
    squares = torch.logsumexp(logits[targets != -100], -1)**2
    return loss + z_loss * squares.mean() if z_loss > 0 else loss


def kind_of(name, parameter):
    if parameter.dim() < 2:
        return "vectors"
    if "embedding" in name:
        return "embeddings"
    return "head" if name.startswith("head") else "blocks"


def stacked_rows(model, name, weight):
    """Rows of the matrices that a weight of a block stacks."""
    model = model.model
    if name.endswith("qkv.weight"):
        keys = (model["attention"]["kv_heads"] or model["heads"]) * head_size(model)
        return [model["heads"] * head_size(model), keys, keys]
    gated = name.endswith("up.weight") and model["activation"].endswith("glu")
    return [model["hidden"], model["hidden"]] if gated else [len(weight)]


def parameter_groups(model, training):
    """A group of parameters for each kind, with the peak of its learning rate and both forms of decay."""
    groups = {}
    ratio = width_ratio(model.model) if hasattr(model, "model") else 1
    if training["optimizer"] == "muon":
        ratio = math.sqrt(ratio) if training["muon"]["adjust"] == "match_rms" else 1
    rates = {"blocks": 1 / ratio, **training["rates"]}
    for name, parameter in model.named_parameters():
        kind = kind_of(name, parameter)
        peak, decay = training["learning_rate"], training["weight_decay"]
        muon = training["optimizer"] == "muon" and kind == "blocks"
        if training["optimizer"] == "muon" and not muon:
            peak, decay = (training["muon"]["adamw_" + name] for name in ("learning_rate", "weight_decay"))
        if training["weight_decay_on"] == "matrices" and kind == "vectors":
            decay = 0.0
        decoupled = training["optimizer"] in ("adamw", "muon", "lion")
        independent = decoupled and training["weight_decay_form"] == "independent"
        group = groups.setdefault(kind, {
            "params": [], "peak": peak * rates[kind], "muon": muon, "rows": {},
            "weight_decay": 0.0 if independent else decay, "independent_decay": decay if independent else 0.0})
        group["params"].append(parameter)
        if muon:
            group["rows"][parameter] = stacked_rows(model, name, parameter)
    return list(groups.values())


class Written:
    """An optimizer that is written from its formulas. Its decay is decoupled."""

    def __init__(self, groups, training):
        self.param_groups, self.training = groups, training
        self.state = collections.defaultdict(dict)

    def zero_grad(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                change = self.direction(group, parameter, parameter.grad)
                parameter.copy_(parameter - group["lr"] * group["weight_decay"] * parameter - group["lr"] * change)

    def mean(self, parameter, name, beta, gradient):
        """Moves a moving average of gradients."""
        state = self.state[parameter]
        state[name] = beta * state.get(name, torch.zeros_like(parameter)) + (1 - beta) * gradient
        return state[name]


class Lion(Written):
    def direction(self, group, parameter, gradient):
        momentum = self.state[parameter].get("momentum", torch.zeros_like(parameter))
        beta = self.training["beta1"]
        change = torch.sign(beta * momentum + (1 - beta) * gradient)
        self.mean(parameter, "momentum", self.training["beta2"], gradient)
        return change


class Muon(Written):
    def direction(self, group, parameter, gradient):
        beta = self.training["momentum"]
        momentum = self.mean(parameter, "exp_avg", beta, gradient)
        if self.training["muon"]["nesterov"]:
            momentum = beta * momentum + (1 - beta) * gradient
        return torch.cat([self.adjusted(part) for part in momentum.split(group["rows"][parameter])])

    def adjusted(self, matrix):
        rows, columns = matrix.shape
        x = matrix / matrix.norm().clamp(min=1e-7)
        for _ in range(self.training["muon"]["iterations"]):
            # The smaller of both products; the other order is equal in exact arithmetic.
            if rows <= columns:
                square = x @ x.T
                x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
            else:
                square = x.T @ x
                x = 3.4445 * x + x @ (-4.775 * square + 2.0315 * square @ square)
        if self.training["muon"]["adjust"] == "match_rms":
            return 0.2 * math.sqrt(max(rows, columns)) * x
        return math.sqrt(max(1, rows / columns)) * x


class Together:
    """Several optimizers of different parameters."""

    def __init__(self, optimizers):
        self.optimizers = optimizers
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]

    @property
    def state(self):
        return {parameter: optimizer.state[parameter] for optimizer in self.optimizers
                for group in optimizer.param_groups for parameter in group["params"]}

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def make_optimizer(model, training):
    groups, kind = parameter_groups(model, training), training["optimizer"]
    rates = {"lr": training["learning_rate"]}
    adam = {**rates, "betas": (training["beta1"], training["beta2"]), "eps": training["eps"]}
    if kind == "sgd":
        return torch.optim.SGD(groups, **rates, momentum=training["momentum"])
    if kind == "lion":
        return Lion(groups, training)
    if kind == "muon":
        return Together([Muon([group for group in groups if group["muon"]], training),
                         torch.optim.AdamW([group for group in groups if not group["muon"]], **adam)])
    return {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[kind](groups, **adam)


def one_cycle_rates(rate, warmup, steps):
    """PyTorch's own; it has no cycle whose peak comes before its second step."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=warmup / steps, cycle_momentum=False)
    rates = []
    for step in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step + 1 < steps:
            scheduler.step()
    return rates


def learning_rate(training, step, rate):
    """Of a step, with the peak `rate`."""
    steps, warmup = training["steps"], training["warmup"]
    if training["schedule"] == "one_cycle":
        return one_cycle_rates(rate, warmup, steps)[step]
    if step < warmup:
        return rate * (step + 1) / (warmup + 1)
    schedule, form, first = training["schedule"], training["schedule"], warmup
    if schedule == "constant":
        return rate
    if schedule == "inverse_sqrt":
        return rate * math.sqrt((warmup + 1) / (step + 1))
    if schedule == "wsd":
        form, first = training["decay_form"], steps - training["decay"]
        if step < first:
            return rate
    progress = (step - first) / (steps - first)
    factor = {
        "linear": 1.0 - progress,
        "sqrt": 1.0 - math.sqrt(progress),
        "cosine": (1.0 + math.cos(math.pi * progress)) / 2,
    }[form]
    return rate * (training["final_rate"] + (1 - training["final_rate"]) * factor)


def update(model, optimizer, training, step, logits, targets):
    """One training step; returns its loss, its gradient's norm, and the gradients by name. An update
    that is accumulated is that of its whole batch."""
    optimizer.zero_grad()
    loss = cross_entropy(logits, targets, training["label_smoothing"], training["z_loss"])
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    clip = training["clip"] if training["clip"] > 0 else math.inf
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    with torch.no_grad():
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(training, step, group["peak"])
            factor = 1 - group["independent_decay"] * learning_rate(training, step, 1.0)
            for parameter in group["params"] if factor != 1 else []:
                parameter.mul_(factor)
    optimizer.step()
    return loss.item(), norm.item(), gradients


def read_case(path):
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["case"]), {k: file.get_tensor(k) for k in file.keys()}


def answer(path, tensors):
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    save_file(tensors, path.replace(".case.", ".answer."))


def load(model, tensors):
    """Parameters and buffers of a case, by their names in the layout."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors["initial." + name])
        buffers = {name[len("buffer."):]: t for name, t in tensors.items() if name.startswith("buffer.")}
        model.take_buffers(buffers)
        for name, value in model.statistics().items():
            value.copy_(buffers[name])


def logits_of(model, micro_batches, inputs, lengths):
    """Logits of a batch, computed in equal micro-batches with statistics of their own; rows count on."""
    rows, logits = len(inputs) // micro_batches, []
    for first in range(0, len(inputs), rows):
        model.dropout.first_row = first
        logits.append(model(inputs[first:first + rows], lengths[first:first + rows]))
    return torch.cat(logits)


class Run:
    """One run of a case, in torch's default precision."""

    def __init__(self, case, tensors):
        self.training = case["training"]
        self.tensors = tensors
        self.model = Transformer(case["model"], case["seed"], self.training["rule"])
        load(self.model, tensors)
        self.optimizer = make_optimizer(self.model, self.training)
        self.ema_model = copy.deepcopy(self.model)

    def batch(self, step):
        return (self.tensors[f"{step}.{key}"] for key in ("inputs", "targets", "lengths"))

    def logits(self):
        """Of the first batch, without dropout."""
        inputs, _, lengths = self.batch(0)
        with torch.no_grad():
            return self.model.eval()(inputs, lengths)

    def step(self, step):
        """Makes one update; returns its loss, its gradient's norm, and the gradients by name."""
        inputs, targets, lengths = self.batch(step)
        self.model.train()
        self.model.dropout.step = step
        logits = logits_of(self.model, self.training["accumulation"], inputs, lengths)
        result = update(self.model, self.optimizer, self.training, step, logits, targets)
        with torch.no_grad():
            for kept, parameter in zip(self.ema_model.parameters(), self.model.parameters()):
                kept.copy_(self.training["ema"] * kept + (1 - self.training["ema"]) * parameter)
            for name, value in self.ema_model.statistics().items():
                value.copy_(self.model.statistics()[name])
        return result

    def evaluations(self):
        """Losses on the first batch: of the parameters and, if they are kept, of the EMA weights."""
        inputs, targets, lengths = self.batch(0)
        evaluated = [self.model, self.ema_model] if self.training["ema"] > 0 else [self.model]
        with torch.no_grad():
            return [cross_entropy(m.eval()(inputs, lengths), targets).item() for m in evaluated]

    def slots(self):
        """What the optimizer keeps of each parameter: names of a checkpoint's tensors and PyTorch's."""
        if self.training["optimizer"] == "lion":
            return {"optimizer.momentum": "momentum"}
        if self.training["optimizer"] != "sgd":
            return {"optimizer.first_moment": "exp_avg", "optimizer.second_moment": "exp_avg_sq"}
        has_momentum = self.training["momentum"] > 0
        return {"optimizer.momentum": "momentum_buffer"} if has_momentum else {}

    def state(self):
        """All that the next update depends on, by the names of a checkpoint's tensors."""
        state = {"buffer." + name: value for name, value in self.model.statistics().items()}
        for name, parameter in self.model.named_parameters():
            state["value." + name] = parameter
            kept = self.optimizer.state[parameter]
            for ours, theirs in self.slots().items():
                state[f"{ours}.{name}"] = kept.get(theirs, torch.zeros_like(parameter))
        if self.training["ema"] > 0:
            state.update({"average." + name: p for name, p in self.ema_model.named_parameters()})
        return {name: tensor.detach().clone() for name, tensor in state.items()}

    def restore(self, state, step):
        """Sets the state that a run of the case had before `step`."""
        with torch.no_grad():
            for name, value in self.model.statistics().items():
                value.copy_(state["buffer." + name])
            for name, parameter in self.model.named_parameters():
                parameter.copy_(state["value." + name])
                kept = self.optimizer.state[parameter]
                kept.update({t: state[f"{ours}.{name}"].clone() for ours, t in self.slots().items()})
                if self.training["optimizer"] != "sgd":
                    kept["step"] = torch.tensor(float(step), dtype=torch.float32)
            if self.training["ema"] > 0:
                for name, parameter in self.ema_model.named_parameters():
                    parameter.copy_(state["average." + name])


def run_case(path):
    """A whole run in float64."""
    case, tensors = read_case(path)
    run = Run(case, tensors)
    out, losses, norms = {"logits": run.logits()}, [], []
    for step in range(case["training"]["steps"]):
        loss, norm, gradients = run.step(step)
        if step == 0:
            out.update({"gradient." + name: gradient for name, gradient in gradients.items()})
        losses.append(loss)
        norms.append(norm)
    out.update(losses=torch.tensor(losses), norms=torch.tensor(norms),
               evaluations=torch.tensor(run.evaluations()))
    out.update(run.state())
    answer(path, out)


def updated(run, state, step, rounding=contextlib.nullcontext()):
    """Every quantity that is compared after one update from a state."""
    run.restore(state, step)
    with rounding:
        out = {"logits": run.logits()}
        loss, norm, gradients = run.step(step)
        out.update({"gradient." + name: gradient for name, gradient in gradients.items()})
        evaluations = run.evaluations()
    out.update(loss=torch.tensor(loss), norm=torch.tensor(norm), evaluations=torch.tensor(evaluations))
    out.update(run.state())
    return out


def update_case(path, samples=4):
    """One update of a float32 run in float64, from the run's own state as float32 holds it; beside every
    quantity its unit: the root mean square over `samples` of what float32's roundings do to it."""
    case, tensors = read_case(path)
    tensors = {name: t.double() if t.is_floating_point() else t for name, t in tensors.items()}
    run = Run(case, tensors)
    state = run.state()
    for step in range(case["step"]):
        run.restore(state, step)
        run.step(step)
        state = {name: after.float().double() for name, after in run.state().items()}
    exact = updated(run, state, case["step"])
    squares = dict.fromkeys(exact, 0.0)
    for seed in range(samples):
        moved = updated(run, state, case["step"], Rounding(seed))
        for name, value in exact.items():
            squares[name] += (moved[name] - value).square().sum().item()
    out = {"before." + name: value.float() for name, value in state.items()}
    out.update({"exact." + name: value for name, value in exact.items()})
    out.update({"unit." + name: torch.tensor(math.sqrt(s / samples)) for name, s in squares.items()})
    answer(path, out)


def each(check):
    """Returns a function that calls `check` for every case of a folder, in float64."""
    def run(folder):
        torch.set_default_dtype(torch.float64)
        for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
            check(path)
    return run


def cycles(folder):
    """The rates of every step of a cycle."""
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        case, _ = read_case(path)
        rates = one_cycle_rates(case["rate"], case["warmup"], case["steps"])
        answer(path, {"rates": torch.tensor(rates, dtype=torch.float64)})


def count_subnormals(tensors):
    """Counts by bits, because an arithmetic comparison may take them as 0."""
    bits = torch.cat([t.detach().flatten() for t in tensors]).view(torch.int32)
    return ((bits & 0x7f800000 == 0) & (bits & 0x7fffff != 0)).sum()


def names(folder):
    """The source experiment on names, one document a step, from its own shuffle and weights."""
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        case, _ = read_case(path)
        torch.set_flush_denormal(case.get("flush", False))
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
        optimizer = make_optimizer(model, training)
        losses = []
        for step in range(case["record"]):
            tokens = [bos] + [number[c] for c in documents[step % len(documents)]] + [bos]
            count = min(case["model"]["context"], len(tokens) - 1)
            inputs = torch.tensor([tokens[:count]])
            targets = torch.tensor([tokens[1:count + 1]])
            logits = model(inputs, torch.tensor([count]))
            losses.append(update(model, optimizer, training, step, logits, targets)[0])
        out["losses"] = torch.tensor(losses, dtype=torch.float64)
        out["subnormals"] = count_subnormals(s["exp_avg_sq"] for s in optimizer.state.values())
        answer(path, out)


def characters(folder):
    """The source experiment on characters, from given weights, feedback and batches."""
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        case, tensors = read_case(path)
        training = case["training"]
        model = Transformer(case["model"], case["seed"], training["rule"])
        load(model, tensors)
        optimizer = make_optimizer(model, training)
        losses = []
        for step in range(case["record"]):
            inputs = tensors[f"{step}.inputs"]
            logits = model(inputs, torch.full((len(inputs),), inputs.shape[1]))
            losses.append(update(model, optimizer, training, step, logits, tensors[f"{step}.targets"])[0])
        answer(path, {"losses": torch.tensor(losses, dtype=torch.float64)})


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
        optimizer = make_optimizer(model, training)
        losses = [
            update(model, optimizer, training, step, model(tensors[f"{step}.inputs"]),
                   tensors[f"{step}.targets"])[0] for step in range(case["record"])]
        out["losses"] = torch.tensor(losses, dtype=torch.float64)
        answer(path, out)


def of(module, function):
    """Returns a function of another module, which is imported only when it is called: gpt2.py needs
    transformers, probe.py scikit-learn."""
    def run(folder):
        try:
            functions = importlib.import_module(module)
        except ImportError as error:
            print(error)
            sys.exit(77)
        getattr(functions, function)(folder)
    return run


if __name__ == "__main__":
    torch.set_num_threads(1)
    modes = {"runs": each(run_case), "updates": each(update_case), "names": names, "characters": characters,
             "recall": recall, "cycles": cycles, "gpt2_models": of("gpt2", "make"),
             "gpt2_exports": of("gpt2", "check"), "gpt2_texts": of("gpt2", "generate"),
             "gpt2_shapes": of("gpt2", "shapes"), "family_models": of("families", "make"),
             "family_exports": of("families", "check"), "family_texts": of("families", "generate"), "probes": of("probe", "fit")}
    modes[sys.argv[1]](sys.argv[2])
