"""Analyses of GPT-2 models as straightforward scripts with transformers and PyTorch, one thread.

gpt2_analyses.py runs and measures them: python gpt2_scripts.py KIND MODELS TOKENS
"""

import contextlib
import importlib
import json
import math
import os
import statistics
import sys
import time

from gpt2_inputs import (BLOCK, DATASETS, ITERATIONS, KINDS, MODELS, PERIOD, POINTS, REPEATS, SAMPLES, SEQUENCES,
                         WINDOW, inputs_of)  # first, because it limits the threads

import numpy
import torch
from transformers import GPT2LMHeadModel

VALIDATION = 57_535  # of the tokens, as many as the experiment holds out
NAMES = {"wte": "token_embedding", "wpe": "position_embedding", "ln_f": "final_norm"}
SUBLAYERS = {"ln_1": "attention.norm", "attn.c_attn": "attention.qkv", "attn.c_proj": "attention.projection",
             "ln_2": "feed_forward.norm", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.down"}


class Subject:
    """Holds a model, its parameters by our names, and the windows."""

    def __init__(self, folder, tokens, windows, attention):
        self.model = GPT2LMHeadModel.from_pretrained(folder, attn_implementation=attention).eval()
        self.body = self.model.transformer
        self.windows = [(tokens[None, at:at + WINDOW], tokens[at + 1:at + WINDOW + 1])
                        for at in range(0, windows * WINDOW, WINDOW)]
        self.parameters = {}
        for name, parameter in self.body.named_parameters():
            *path, kind = name.split(".")
            if path[0] == "h":
                ours = f"block.{path[1]}.{SUBLAYERS['.'.join(path[2:])]}.{kind}"
            else:
                ours = f"{NAMES[path[0]]}.{kind}"
            self.parameters[ours] = parameter

    def loss(self, window):
        return torch.nn.functional.cross_entropy(self.model(window[0], use_cache=False).logits[0], window[1])

    def states(self, window):
        return [state[0] for state in self.batch_states(window[0])]

    def batch_states(self, tokens):
        """Returns the sum of the embeddings and the outputs of the blocks, of which the last isn't normed."""
        states = []
        handles = [self.body.h[0].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))]
        for block in self.body.h:
            handles.append(block.register_forward_hook(
                lambda _, __, out: states.append(out[0] if isinstance(out, tuple) else out)))
        self.body(tokens, use_cache=False)
        for handle in handles:
            handle.remove()
        return states


def spectrum(subject, _):
    x = torch.cat([subject.states(window)[-1] for window in subject.windows]).double()
    numbers = {}
    for prefix, rows in (("uncentred_", x), ("", x - x.mean(0))):
        squares = torch.linalg.eigvalsh(rows.T @ rows).clamp(min=0)
        sigma = squares.sqrt()
        numbers[prefix + "participation_ratio"] = squares.sum() ** 2 / (squares ** 2).sum()
        for name, values in (("effective_rank", sigma), ("effective_rank_of_squares", squares)):
            share = values / values.sum()
            numbers[prefix + name] = torch.special.entr(share).sum().exp()
        numbers[prefix + "stable_rank"] = squares.sum() / squares.max()
        numbers[prefix + "largest_singular_value"] = sigma.max()
    return numbers


def cka(subject, _):
    read = [subject.states(window) for window in subject.windows]
    grams = []
    for parts in zip(*read):
        x = torch.cat(parts).double()
        grams.append((x @ x.T).fill_diagonal_(0))
    n = len(grams[0])

    def hsic(k, l):
        rows, columns = k.sum(1), l.sum(1)
        return ((k * l).sum() + rows.sum() * columns.sum() / ((n - 1) * (n - 2))
                - 2 / (n - 2) * (rows @ columns)) / (n * (n - 3))

    names = ["embedding"] + [f"block.{i}.output" for i in range(len(grams) - 1)]
    own = [hsic(k, k) for k in grams]
    return {f"cka/{names[i]}/{names[j]}": hsic(grams[i], grams[j]) / (own[i] * own[j]).sqrt()
            for i in range(len(grams)) for j in range(i + 1, len(grams))}


def attention(subject, _):
    entropy = torch.special.entr
    sums = {}

    def add(name, values):
        sums[name] = sums.get(name, 0) + values.double().sum(-1)

    keys = torch.arange(1, WINDOW + 1)[1:]  # of each row that has a choice
    for window in subject.windows:
        for block, maps in enumerate(subject.body(window[0], output_attentions=True, use_cache=False).attentions):
            maps = maps[0, :, 1:]  # head, query, key
            add(f"entropy/block.{block}", entropy(maps).sum(-1) / keys.log())
            add(f"largest_weight/block.{block}", maps.amax(-1))
            add(f"first_token/block.{block}", maps[..., 0])
            add(f"mean_map_entropy/block.{block}", entropy(maps.mean(0)).sum(-1) / keys.log())
            rest = maps[:, 1:, 1:] / maps[:, 1:, 1:].sum(-1, keepdim=True)
            for name, rows in (("head_distance", maps), ("head_distance_without_first", rest)):
                own = entropy(rows).sum(-1)
                pairs = [entropy((rows[i] + rows[j]) / 2).sum(-1) - (own[i] + own[j]) / 2
                         for i in range(len(rows)) for j in range(i)]
                add(f"{name}/block.{block}", torch.stack(pairs))
    rows = len(keys) * len(subject.windows)
    rest = (len(keys) - 1) * len(subject.windows)
    return {name: value.mean() / (rest if "without" in name else rows) for name, value in sums.items()}


def weights(subject, _):
    numbers = {}
    for name, parameter in subject.parameters.items():
        x = parameter.detach().double().flatten()
        mean = x.mean()
        squares = (x - mean) ** 2
        variance = squares.mean()
        numbers["mean/" + name], numbers["variance/" + name] = mean, variance
        numbers["l2_norm/" + name] = x.norm()
        numbers["minimum/" + name], numbers["maximum/" + name] = x.min(), x.max()
        if variance > 0:
            numbers["skewness/" + name] = (squares * (x - mean)).mean() / variance ** 1.5
            numbers["kurtosis/" + name] = (squares ** 2).mean() / variance ** 2
        quantiles = numpy.quantile(x.numpy(), [0.05, 0.25, 0.5, 0.75, 0.95])
        for percent, value in zip(("05", "25", "50", "75", "95"), quantiles):
            numbers[f"quantile_{percent}/{name}"] = value
    return numbers


def gradient_flow(subject, _):
    squares = None
    for window in subject.windows:
        states = []
        handles = [module.register_forward_hook(lambda _, __, out: states.append(
            out[0] if isinstance(out, tuple) else out)) for module in (subject.body.drop, *subject.body.h)]
        loss = subject.loss(window) / len(subject.windows)
        for state in states:
            state.retain_grad()
        loss.backward()
        own = [state.grad.double().square().sum() for state in states]
        squares = own if squares is None else [a + b for a, b in zip(squares, own)]
        for handle in handles:
            handle.remove()
    names = ["embedding"] + [f"block.{i}" for i in range(len(squares) - 1)]
    numbers = {"gradient/" + name: value.sqrt() for name, value in zip(names, squares)}
    for name, parameter in subject.parameters.items():
        norm = parameter.grad.double().norm()
        numbers["parameter_gradient/" + name] = norm
        if parameter.any():
            numbers["relative_gradient/" + name] = norm / parameter.detach().double().norm()
    return numbers


def loss_landscape(subject, draws):
    moved = {}
    with torch.no_grad():
        for name, parameter in subject.parameters.items():
            if parameter.dim() == 2:
                rows = 1 if "embedding" in name else 0  # of the other matrices the columns are output units
                direction = draws[0].pop(name)
                direction *= parameter.norm(dim=rows, keepdim=True) / direction.norm(dim=rows, keepdim=True)
                moved[name] = parameter.clone(), direction
        losses = []
        for point in range(POINTS):
            alpha = 2 * point / (POINTS - 1) - 1
            for name, (value, direction) in moved.items():
                torch.add(value, direction, alpha=alpha, out=subject.parameters[name].data)
            losses.append(statistics.fmean(subject.loss(window).item() for window in subject.windows))
    middle = losses[POINTS // 2]
    near = 2 / (POINTS - 1)
    return {"loss": middle, "range": max(losses) - min(losses), "lowest": min(losses),
            "rise": (losses[0] + losses[-1]) / 2 - middle,
            "curvature": ((losses[POINTS // 2 - 1] + losses[POINTS // 2 + 1]) - 2 * middle) / near ** 2}


def hessian(subject, draws):
    parameters = list(subject.parameters.values())
    # The fused kernel on CPUs can't be differentiated twice.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loss = subject.loss(subject.windows[0])
        gradient = torch.autograd.grad(loss, parameters, create_graph=True)

    def product(vector):
        return torch.autograd.grad(gradient, parameters, vector, retain_graph=True)

    def dot(first, second):
        return sum(torch.dot(a.flatten(), b.flatten()).double() for a, b in zip(first, second))

    def ordered(vector):
        return [vector.pop(name) for name in subject.parameters]

    v = ordered(draws[0])
    scale = 1 / math.sqrt(sum(part.numel() for part in v))
    for part in v:
        part *= scale
    basis, diagonal, beside = [], [], []
    for _ in range(ITERATIONS):
        basis.append(v)
        v = [part.clone() for part in product(v)]
        diagonal.append(dot(basis[-1], v))
        for earlier in basis * 2:
            along = dot(earlier, v)
            for part, other in zip(v, earlier):
                part.sub_(other, alpha=along.item())
        beside.append(dot(v, v).sqrt())
        for part in v:
            part /= beside[-1].item()
    tridiagonal = torch.diag(torch.stack(diagonal))
    for i, value in enumerate(beside[:-1]):
        tridiagonal[i, i + 1] = tridiagonal[i + 1, i] = value
    ends = torch.linalg.eigvalsh(tridiagonal)
    del basis, v
    traces = []
    for sample in range(SAMPLES):
        vector = ordered(draws[1 + sample])
        traces.append(dot(vector, product(vector)))
    return {"loss": loss.item(), "gradient_norm": dot(gradient, gradient).sqrt(), "trace": sum(traces) / SAMPLES,
            "largest_eigenvalue": ends[-1], "smallest_eigenvalue": ends[0]}


def log_probabilities(logits):
    return torch.log_softmax(logits.double(), -1)


def predictions(subject, _, bins=15):
    read = []
    for window in subject.windows:
        log_p = log_probabilities(subject.model(window[0], use_cache=False).logits[0])
        confidence, guess = log_p.exp().max(-1)
        read.append(torch.stack([-log_p.gather(1, window[1][:, None])[:, 0], (guess == window[1]).double(),
                                 confidence, -(log_p.exp() * log_p).sum(-1)]))
    quarter = WINDOW // 4
    early = torch.stack([values[0, :quarter] for values in read]).mean()
    late = torch.stack([values[0, -quarter:] for values in read]).mean()
    loss, correct, confidence, entropy = torch.cat(read, 1)
    held = (confidence * bins).ceil().long().clamp(1, bins)
    gaps = [(correct[held == i].sum() - confidence[held == i].sum()).abs() for i in range(1, bins + 1)]
    return {"loss": loss.mean(), "accuracy": correct.mean(), "confidence": confidence.mean(),
            "entropy": entropy.mean(), "calibration_error": sum(gaps) / len(loss), "early_loss": early,
            "late_loss": late, "in_context_loss": late - early}


def logit_lens(subject, _):
    sums = {}
    for window in subject.windows:
        states = subject.states(window)
        last = log_probabilities(subject.model.lm_head(subject.body.ln_f(states[-1])))
        for depth, state in enumerate(states):
            place = f"block.{depth - 1}" if depth else "embedding"
            log_p = log_probabilities(subject.model.lm_head(subject.body.ln_f(state)))
            guess = log_p.argmax(-1)
            for name, values in (("loss", -log_p.gather(1, window[1][:, None])), ("accuracy", guess == window[1]),
                                 ("divergence", (last.exp() * (last - log_p)).sum(-1)),
                                 ("agreement", guess == last.argmax(-1))):
                sums[f"{name}/{place}"] = sums.get(f"{name}/{place}", 0) + values.double().mean()
    return {name: value / len(subject.windows) for name, value in sums.items()}


def robustness(subject, _):
    sums = {}

    def add(name, logits, targets):
        log_p = log_probabilities(logits)
        sums[name + "loss"] = sums.get(name + "loss", 0) - log_p.gather(1, targets[:, None]).mean()
        sums[name + "accuracy"] = sums.get(name + "accuracy", 0) + (log_p.argmax(-1) == targets).double().mean()

    squares = []
    for tokens, targets in subject.windows:
        embedding = subject.body.wte(tokens).detach().requires_grad_()
        squares.append(embedding.detach().double().square().mean())
        logits = subject.model(inputs_embeds=embedding, use_cache=False).logits[0]
        gradient, = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, targets), embedding)
        add("", logits.detach(), targets)
        with torch.no_grad():
            for name, step in (("fgsm@0.001/", 0.001 * gradient.sign()), ("fgsm@0.01/", 0.01 * gradient.sign()),
                               ("l2@0.1/", 0.1 * gradient / gradient.norm())):
                add(name, subject.model(inputs_embeds=embedding + step, use_cache=False).logits[0], targets)
    numbers = {name: value / len(squares) for name, value in sums.items()}
    numbers["embedding_rms"] = (sum(squares) / len(squares)).sqrt()
    return numbers


def repeated(maps):
    """Returns three means of the weights of repeated sequences, [..., query, key] (induction.md)."""
    length = PERIOD * REPEATS
    periods = range(PERIOD, length, PERIOD)

    def total(distance, first):
        """Sums the weights of the key at this distance before each query from the first one on."""
        return maps.diagonal(-distance, -2, -1)[..., first - distance:].sum(-1)

    return {"induction": sum(total(k - 1, k) for k in periods) / (length - PERIOD),
            "previous_token": total(1, 1) / (length - 1),
            "duplicate_token": sum(total(k, k) for k in periods) / (length - PERIOD)}


def induction(subject, periods):
    sums, losses = {}, 0
    for period in periods:
        tokens = torch.tensor(period * REPEATS)
        read = subject.model(tokens[None], output_attentions=True, use_cache=False)
        losses += torch.nn.functional.cross_entropy(read.logits[0, :-1], tokens[1:], reduction="none").double()
        for name, heads in repeated(torch.cat(read.attentions).double()).items():
            sums[name] = sums.get(name, 0) + heads
    uniform = torch.ones(len(tokens), len(tokens)).double().tril()
    numbers = {f"{name}_chance": value for name, value in repeated(uniform / uniform.sum(1, keepdim=True)).items()}
    numbers["first_loss"] = losses[:PERIOD - 1].mean() / SEQUENCES
    numbers["repeated_loss"] = losses[PERIOD - 1:].mean() / SEQUENCES
    for name, heads in sums.items():
        heads /= SEQUENCES
        numbers[name] = heads.max()
        for i, block in enumerate(heads):
            numbers[f"{name}/block.{i}"] = block.max()
            numbers.update((f"{name}/block.{i}.head.{h}", value) for h, value in enumerate(block))
    return numbers


class Pair:
    """Puts outputs of heads for a clean prompt into the pass over a corrupt one."""

    def __init__(self, subject, clean, corrupt, right, wrong):
        self.subject, self.corrupt, self.right, self.wrong = subject, corrupt, right[0, 0], wrong[0, 0]
        self.inputs = []  # of the blocks' projections: the outputs of the heads
        with contextlib.ExitStack() as stack:
            for block in subject.body.h:
                stack.enter_context(block.attn.c_proj.register_forward_pre_hook(
                    lambda _, inputs: self.inputs.append(inputs[0])))
            self.clean_difference = self.difference(clean)
        self.corrupt_difference = self.difference(corrupt)

    def difference(self, tokens):
        logits = self.subject.model(tokens, use_cache=False).logits[0, -1]
        return (logits[self.right] - logits[self.wrong]).item()

    def recovered(self, block, features, positions):
        def replace(_, inputs):
            changed = inputs[0].clone()
            changed[:, positions, features] = self.inputs[block][:, positions, features]
            return (changed,)

        with self.subject.body.h[block].attn.c_proj.register_forward_pre_hook(replace):
            patched = self.difference(self.corrupt)
        return (patched - self.corrupt_difference) / (self.clean_difference - self.corrupt_difference)


def patch(subject, prompts):
    pairs = [Pair(subject, *texts) for texts in prompts]
    numbers = {f"{name}_difference": statistics.fmean(getattr(pair, f"{name}_difference") for pair in pairs)
               for name in ("clean", "corrupt")}
    size = subject.model.config.n_embd // subject.model.config.n_head
    positions = [slice(None)] + [slice(at, at + 1) for at in range(prompts[0][0].shape[1])]
    for block in range(subject.model.config.n_layer):
        for head in range(subject.model.config.n_head):
            features = slice(head * size, (head + 1) * size)
            values = torch.tensor([[pair.recovered(block, features, at) for at in positions] for pair in pairs],
                                  dtype=torch.double)
            whole, *single = values.mean(0)
            place = f"block.{block}.head.{head}"
            numbers[f"recovered/{place}"] = whole
            numbers[f"recovered_standard_error/{place}"] = values[:, 0].std() / math.sqrt(len(pairs))
            numbers.update((f"recovered/{block}/{head}/{at}", value) for at, value in enumerate(single))
    return numbers


def word_states(subject, sentences):
    """Returns the states of the words at each depth, at their last tokens."""
    read = []
    for first in range(0, len(sentences), 32):
        batch = sentences[first:first + 32]
        # The padding comes after the tokens, which don't see it.
        tokens = torch.nn.utils.rnn.pad_sequence([tokens for tokens, _ in batch], batch_first=True)
        rows = [row for row, (_, last) in enumerate(batch) for _ in last]
        places = [place for _, last in batch for place in last]
        read.append([state[rows, places] for state in subject.batch_states(tokens)])
    return [torch.cat(parts) for parts in zip(*read)]


def probe(subject, words):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    sentences, training, fits = words
    numbers = {}
    for depth, states in enumerate(word_states(subject, sentences)):
        place = f"block.{depth - 1}" if depth else "embedding"
        x = states.double().numpy()
        x = StandardScaler().fit(x[:training]).transform(x)
        for name, labels in fits.items():
            fitted = LogisticRegression(C=1, tol=1e-5, max_iter=1000)  # ends as our fits do
            fitted.fit(x[:training], labels[:training])
            numbers[f"{name}/{place}"] = fitted.score(x[training:], labels[training:])
    learned, scored = fits["accuracy"][:training], fits["accuracy"][training:]
    numbers["majority"] = scored.count(statistics.mode(learned)) / len(scored)
    return numbers


def cka_models(read, order):
    def features(number):
        subject = read(number)
        config = subject.model.config
        states = torch.empty(config.n_layer + 1, len(order), config.n_embd)
        for i, window in enumerate(subject.windows):
            states[:, i * WINDOW:(i + 1) * WINDOW] = torch.stack(subject.states(window))
        return states

    models = [features(number) for number in range(MODELS)]

    def hsic(tokens):
        """Returns HSIC_u of all pairs over a minibatch."""
        rows = torch.cat([states[:, tokens] for states in models]).double()
        n = len(tokens)
        grams = rows @ rows.mT
        grams.diagonal(dim1=1, dim2=2).zero_()
        sums, grams = grams.sum(2), grams.flatten(1)
        totals = sums.sum(1)
        return (grams @ grams.T + torch.outer(totals, totals) / ((n - 1) * (n - 2))
                - 2 / (n - 2) * (sums @ sums.T)) / (n * (n - 3))

    values = sum(hsic(tokens) for tokens in torch.tensor(order).split(BLOCK))
    scale = values.diagonal().sqrt()
    values /= torch.outer(scale, scale)
    return {f"cka/{i}/{j}": values[i, j] for i in range(len(values)) for j in range(i + 1, len(values))}


def peak_gigabytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) / 1e6


def serve(kind, folder, tokens):
    torch.set_num_threads(1)
    windows = KINDS[kind][0]
    ids = torch.from_numpy(numpy.fromfile(tokens, "<u2").astype("i8"))
    ids = ids if kind in DATASETS else ids[-VALIDATION:]
    how = "eager" if kind in ("attention", "induction") else "sdpa"

    def read(number):
        return Subject(os.path.join(folder, str(number)), ids, windows, how)

    if kind == "probe":  # before the time begins, as torch is imported
        importlib.import_module("sklearn.linear_model")
    inputs = inputs_of(kind, {name: parameter.shape for name, parameter in read(0).parameters.items()})
    begin = time.process_time()
    with torch.set_grad_enabled(kind in ("gradient_flow", "hessian", "robustness")):
        numbers = globals()[kind](read if kind == "cka_models" else read(0), inputs)
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "peak": peak_gigabytes("self"),
                      "numbers": {name: float(value) for name, value in numbers.items()}}))


if __name__ == "__main__":
    serve(*sys.argv[1:])
