"""Processor time and peak memory of analyses of a GPT-2 with 124M parameters, beside transformers.

    python gpt2_analyses.py PATH/TO/build/bin [rounds [KIND...]]

Makes a model with random values, imports it into a personal server of its own, and evaluates it once.
Then each kind is analysed by turns: by the server's worker, and by a straightforward script with
transformers and PyTorch, one thread. Each time is a process of its own. Prints a line per kind: median
seconds of processor time from the request to the numbers, reading the model included (ours is the
worker's and the server's together), peak resident memory (ours is the worker's), the median of the
rounds' ratios of the script's time to ours, so that above 1 ours is faster, and the largest relative
difference of the numbers that both compute. Fails if a difference exceeds TOLERANCE.

The script reads a window at a time. It makes the random vectors of loss_landscape and hessian from our
documented streams (docs/reference/random-streams.md) before its time begins.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

WINDOW = 512
VALIDATION = 57_535  # of the tokens, as many as the experiment holds out
POINTS, ITERATIONS, SAMPLES = 5, 3, 2
KINDS = {  # windows to read, and the options
    "spectrum": (4, []),
    "cka": (4, []),
    "attention": (2, []),
    "weights": (0, []),
    "gradient_flow": (4, []),
    "loss_landscape": (2, ["directions=1", f"points={POINTS}"]),
    "hessian": (1, [f"iterations={ITERATIONS}", f"trace_samples={SAMPLES}", "density_runs=0"]),
    "predictions": (4, []),
    "logit_lens": (2, []),
    "robustness": (2, ["fgsm=[0.001,0.01]", "l2=[0.1]"]),
}
TOLERANCE = 5e-3
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/data")
NAMES = {"wte": "token_embedding", "wpe": "position_embedding", "ln_f": "final_norm"}
SUBLAYERS = {"ln_1": "attention.norm", "attn.c_attn": "attention.qkv", "attn.c_proj": "attention.projection",
             "ln_2": "feed_forward.norm", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.down"}


def make(folder):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    config = GPT2Config(n_positions=WINDOW, initializer_range=0.05, bos_token_id=None, eos_token_id=None)
    GPT2LMHeadModel(config).save_pretrained(folder)


def peak_gigabytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) / 1e6


# The script.


class Subject:
    """The model, its parameters by our names, and the windows."""

    def __init__(self, folder, tokens, windows, attention):
        import torch
        from transformers import GPT2LMHeadModel
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
        self.loss = lambda window: torch.nn.functional.cross_entropy(
            self.model(window[0], use_cache=False).logits[0], window[1])

    def states(self, window):
        """Returns the sum of the embeddings and the outputs of the blocks, of which the last isn't normed."""
        states = []
        handles = [self.body.h[0].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))]
        for block in self.body.h:
            handles.append(block.register_forward_hook(
                lambda _, __, out: states.append(out[0] if isinstance(out, tuple) else out)))
        self.body(window[0], use_cache=False)
        for handle in handles:
            handle.remove()
        return [state[0] for state in states]


def spectrum(subject, _):
    import torch
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
    import torch
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
    import torch
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
    import numpy
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
    import torch
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
    import torch
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
    import torch
    return torch.log_softmax(logits.double(), -1)


def predictions(subject, _, bins=15):
    import torch
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
    import torch
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
    import torch
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


def word(state, numbers):
    """Returns the words of splitmix64 with these numbers (docs/reference/random-streams.md)."""
    import numpy
    z = numpy.uint64(state) + (numbers + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ z >> numpy.uint64(shift)) * numpy.uint64(factor)
    return z ^ z >> numpy.uint64(31)


def key(name):
    """Returns the state at which the stream of a name starts, for seed 0."""
    import numpy
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    mixed = word((h - 0x9E3779B97F4A7C15) % 2**64, numpy.zeros(1, "u8"))[0]
    return word(mixed, numpy.zeros(1, "u8"))[0]


def signs(state, first, count):
    import numpy
    words = word(state, numpy.arange(first, first + count, dtype="u8"))
    return numpy.where(words >> numpy.uint64(63), 1, -1)


def normals(state, first, count):
    import numpy
    uniform = (word(state, numpy.arange(first, first + count, dtype="u8")) >> numpy.uint64(11)) * 2.0**-53
    radius, angle = numpy.sqrt(-2 * numpy.log1p(-uniform[::2])), 2 * numpy.pi * uniform[1::2]
    return numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1).ravel()


def draw(stream, draws, shapes):
    """Returns a vector of all parameters, from our streams; transformers' linears are transposed."""
    import torch
    vector = {}
    for name, shape in shapes.items():
        values = torch.empty(math.prod(shape))
        state = key(f"{stream}/{name}")
        for first in range(0, len(values), 2**20):
            count = min(2**20, len(values) - first)
            values[first:first + count] = torch.from_numpy(draws(state, first, count))
        transposed = len(shape) == 2 and "embedding" not in name
        vector[name] = values.view(shape[::-1]).T.contiguous() if transposed else values.view(shape)
    return vector


def serve(kind, folder, tokens):
    import numpy
    import torch
    torch.set_num_threads(1)
    windows = KINDS[kind][0]
    ids = torch.from_numpy(numpy.fromfile(tokens, "<u2").astype("i8"))[-VALIDATION:]
    how = "eager" if kind == "attention" else "sdpa"
    shapes = {name: parameter.shape for name, parameter in Subject(folder, ids, 0, how).parameters.items()}
    draws = []
    if kind == "loss_landscape":
        draws = [draw("analysis/loss_landscape/0", normals, shapes)]
    elif kind == "hessian":
        draws = [draw("analysis/hessian/start.0", signs, shapes)]
        draws += [draw(f"analysis/hessian/trace.{i}", signs, shapes) for i in range(SAMPLES)]
    begin = time.process_time()
    with torch.set_grad_enabled(kind in ("gradient_flow", "hessian", "robustness")):
        numbers = globals()[kind](Subject(folder, ids, windows, how), draws)
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "peak": peak_gigabytes("self"),
                      "numbers": {name: float(value) for name, value in numbers.items()}}))


# Ours.


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Server:
    """A personal server in a folder of its own, with the evaluated model."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.environment = {**os.environ, "ABLATE_HOME": os.path.join(folder, "home")}
        self.environment.pop("ABLATE_SERVER", None)

    def call(self, *arguments):
        return subprocess.run([os.path.join(self.programs, "ablate"), *arguments], env=self.environment,
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def prepare(self, model):
        experiment = os.path.join(self.folder, "bench.yaml")
        for name in ("tinyshakespeare.txt", "shakespeare-bpe"):
            os.symlink(os.path.join(EXAMPLES, name), os.path.join(self.folder, name))
        with open(experiment, "w", encoding="utf-8") as file:
            file.write("name: bench\nbase:\n  model_from: models/gpt2\n  evaluation: {tokens: 2048}\n"
                       "  task: {text: {dataset: ./tinyshakespeare.txt, tokenizer: ./shakespeare-bpe}}\n"
                       "seeds: {count: 1}\n")
        self.call("up")
        try:
            self.call("model", "add", model, "--name", "gpt2")
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

    def analyse(self, kind):
        """Analyses the model with fresh processes."""
        windows, options = KINDS[kind]
        command = ["analyze", kind, "bench/s0", "--json"]
        command += ["--tokens", str(windows * WINDOW)] if windows else []
        for option in options:
            command += ["--set", option]
        self.call("up")
        try:
            pids = self.processes()
            before = processor_seconds(pids)
            answer = json.loads(self.call(*command))
            seconds = processor_seconds(pids) - before
            peak = peak_gigabytes(pids[1])
            self.call("rm", answer["name"], "--yes")
        finally:
            self.call("down")
        return {"seconds": seconds, "peak": peak, "notes": answer["notes"],
                "numbers": {name: number["value"] for name, number in answer["numbers"].items() if "value" in number}}


def difference(ours, theirs):
    """Returns the largest relative difference, and the number's name. Numbers near 0 count absolutely."""
    assert theirs.keys() <= ours.keys(), sorted(theirs.keys() - ours.keys())
    return max((abs(ours[name] - value) / max(abs(value), 0.01), name) for name, value in theirs.items())


def main(programs, rounds, kinds):
    with tempfile.TemporaryDirectory() as folder:
        model, tokens = os.path.join(folder, "gpt2"), os.path.join(folder, "tokens")
        subprocess.run([sys.executable, __file__, "--make", model], check=True)
        server = Server(programs, folder)
        server.call("data", "encode", os.path.join(EXAMPLES, "tinyshakespeare.txt"), "--tokenizer",
                    os.path.join(EXAMPLES, "shakespeare-bpe"), "-o", tokens)
        server.prepare(model)
        for kind in kinds:
            measured = []
            for _ in range(rounds):
                own = server.analyse(kind)
                other = json.loads(subprocess.run([sys.executable, __file__, "--serve", kind, model, tokens],
                                                  check=True, stdout=subprocess.PIPE, text=True).stdout)
                measured.append((own, other))
            largest, name = difference(own["numbers"], other["numbers"])
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
    if sys.argv[1] == "--make":
        make(sys.argv[2])
    elif sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3, sys.argv[3:] or list(KINDS))
