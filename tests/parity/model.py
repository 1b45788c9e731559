"""The model family in PyTorch, written from its formulas and independent of the C++: every switch is a
branch here, every position is computed, and what autograd can't know (backward modes, feedback) is
written out."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class HandedBack(torch.autograd.Function):
    """Returns x_hat and sigma; the gradient of x follows a mode. mu and sigma are taken over `axis`."""

    @staticmethod
    def forward(ctx, x, kind, eps, mode):
        axis = 0 if kind == "batch" else -1
        mean = x.mean(axis, keepdim=True) if kind in ("layer", "batch") else torch.zeros(())
        square = (x - mean)**2
        total = square.sum(axis, keepdim=True) if kind == "l2" else square.mean(axis, keepdim=True)
        sigma = torch.sqrt(total + eps)
        x_hat = (x - mean) / sigma
        ctx.save_for_backward(x_hat, sigma)
        ctx.kind, ctx.mode, ctx.axis = kind, mode, axis
        return x_hat

    @staticmethod
    def backward(ctx, g):
        x_hat, sigma = ctx.saved_tensors
        level = g.mean(ctx.axis, keepdim=True) if ctx.kind in ("layer", "batch") else 0
        along = (g * x_hat).sum(ctx.axis, keepdim=True)
        if ctx.kind != "l2":
            along = along / x_hat.shape[ctx.axis]
        dx = {
            "exact": (g - level - x_hat * along) / sigma,
            "center_scale": (g - level) / sigma,
            "projected": g - level - x_hat * along,
            "identity": g,
        }[ctx.mode]
        return dx, None, None, None


class Norm(nn.Module):
    def __init__(self, model):
        super().__init__()
        norm, width = model["norm"], model["width"]
        self.one_plus = norm["gain_form"] == "one_plus"
        self.kind, self.eps, self.deviation = norm["kind"], norm["eps"], norm["deviation"]
        self.mode = norm["backward"]
        self.width = width
        self.register_parameter("weight", nn.Parameter(torch.ones(width)) if norm["gain"] else None)
        self.register_parameter("bias", nn.Parameter(torch.zeros(width)) if norm["bias"] else None)
        if self.kind in ("dyt", "derf"):
            self.alpha = nn.Parameter(torch.ones(1))
        if self.kind == "derf":
            self.offset = nn.Parameter(torch.zeros(1))
        if self.kind == "batch":
            self.batch = nn.BatchNorm1d(width, eps=self.eps, affine=False)

    def standardise(self, x, real):
        if self.kind == "dyt":
            return torch.tanh(self.alpha * x)
        if self.kind == "derf":
            return torch.erf(self.alpha * x + self.offset)
        if self.kind == "batch":
            return self.standardise_positions(x, real)
        if self.mode != "exact":
            return HandedBack.apply(x, self.kind, self.eps, self.mode)
        if self.kind == "layer" and self.deviation == "unbiased_eps_outside":
            return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps)
        if self.kind == "layer":
            return F.layer_norm(x, x.shape[-1:], None, None, self.eps)
        if self.kind == "rms":
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps)
        return x / torch.sqrt((x * x).sum(-1, keepdim=True) + self.eps)

    def standardise_positions(self, x, real):
        """torch.nn.BatchNorm1d over the positions that are no padding; the others come out as 0."""
        positions = x[real]
        x_hat = self.batch(positions)
        if self.training and self.mode != "exact":
            x_hat = HandedBack.apply(positions, "batch", self.eps, self.mode)
        return torch.zeros_like(x).masked_scatter(real.unsqueeze(-1).expand_as(x), x_hat)

    def forward(self, x, real):
        y = self.standardise(x, real)
        if self.weight is not None:
            y = y * (1 + self.weight if self.one_plus else self.weight)
        return y if self.bias is None else y + self.bias


class AlignedLinear(torch.autograd.Function):
    """A linear whose input learns through B instead of W."""

    @staticmethod
    def forward(ctx, x, weight, feedback):
        ctx.save_for_backward(x, feedback)
        return x @ weight.T

    @staticmethod
    def backward(ctx, g):
        x, feedback = ctx.saved_tensors
        rows, out = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        return g @ feedback, out.T @ rows, None


class Linear(nn.Linear):
    """Of a block. `feedback` is set where the learning rule has it."""

    feedback = None

    def forward(self, x):
        if self.feedback is None:
            return super().forward(x)
        y = AlignedLinear.apply(x, self.weight, self.feedback)
        return y if self.bias is None else y + self.bias


def at(state, number):
    """Call `number` of a splitmix64 generator that begins at `state`; int64 wraps as uint64 does."""

    def signed(value):
        value &= (1 << 64) - 1
        return value - (1 << 64) if value >> 63 else value

    def shift(x, bits):
        return (x >> bits) & ((1 << (64 - bits)) - 1)

    word = torch.as_tensor(number, dtype=torch.int64) + 1
    word = word * signed(0x9E3779B97F4A7C15) + signed(state)
    word = (word ^ shift(word, 30)) * signed(0xBF58476D1CE4E5B9)
    word = (word ^ shift(word, 27)) * signed(0x94D049BB133111EB)
    return word ^ shift(word, 31)


def stream_seed(seed, name):
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    mixed = at(digest - 0x9E3779B97F4A7C15, 0).item()  # the finalizer alone
    return at(mixed, seed).item()


class Dropout:
    """Masks by counter. `step` and `first_row` are set before each part of an update."""

    def __init__(self, model, seed):
        self.rate, self.context, self.width = model["dropout"], model["context"], model["width"]
        self.heads = model["heads"]
        self.seed, self.step, self.first_row = seed, 0, 0
        self.on = False

    def mask(self, x, site, number):
        state = at(stream_seed(self.seed, "dropout/" + site), self.step).item()
        upper = (at(state, number) >> 32) & 0xFFFFFFFF
        return (upper >= math.ceil(self.rate * 2**32)).to(x.dtype) / (1 - self.rate)

    def stream(self, x, site):
        """x [batch, time, width]."""
        if not self.on or self.rate == 0:
            return x
        row = torch.arange(x.shape[0])[:, None, None] + self.first_row
        position, feature = torch.arange(x.shape[1])[:, None], torch.arange(x.shape[2])
        return x * self.mask(x, site, (row * self.context + position) * self.width + feature)

    def weights(self, x, site):
        """x [batch, heads, time, time]."""
        if not self.on or self.rate == 0:
            return x
        row = torch.arange(x.shape[0])[:, None, None, None] + self.first_row
        head = torch.arange(self.heads)[:, None, None]
        query, key = torch.arange(x.shape[2])[:, None], torch.arange(x.shape[3])
        line = (row * self.heads + head) * self.context + query
        return x * self.mask(x, site, line * self.context + key)


def turns(time, pairs, theta=10000):
    """Cosines and sines of p * theta^(-j/pairs), [time, pairs]: constants, so that no Rounding moves them."""
    angles = [[p * theta**(-j / pairs) for j in range(pairs)] for p in range(time)]
    return tuple(
        torch.tensor([[of(angle) for angle in row] for row in angles], dtype=torch.float64)
        for of in (math.cos, math.sin))


def rotate(x, rotary):
    """Of the first s features of each head, j and j + s/2 turned by p * theta^(-2j/s) at position p."""
    time, size = x.shape[-2], round(x.shape[-1] * rotary["share"])
    cos, sin = (table.to(x.dtype) for table in turns(time, size // 2, rotary["theta"]))
    a, b = x[..., :size // 2], x[..., size // 2:size]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, x[..., size:]], dim=-1)


def alibi_slopes(heads):
    """As in the paper's code: geometric for a power of two; else with every other one of the double."""
    def geometric(n):
        return [2**(-8 * (i + 1) / n) for i in range(n)]

    power = 2**int(math.log2(heads))
    return geometric(power) + geometric(2 * power)[0::2][:heads - power]


class HeadNorm(nn.Module):
    """Of queries or keys, [batch, heads, time, size]."""

    def __init__(self, model, heads):
        super().__init__()
        qk = model["attention"]["qk_norm"]
        self.kind, self.all, self.eps = qk["kind"], qk["scope"] == "all", model["norm"]["eps"]
        size = head_size(model)
        self.weight = nn.Parameter(torch.ones(heads * size if self.all else size)) if qk["gain"] else None

    def forward(self, x):
        batch, heads, time, size = x.shape
        if self.all:
            x = x.transpose(1, 2).reshape(batch, time, heads * size)
        if self.kind == "layer":
            y = F.layer_norm(x, x.shape[-1:], None, None, self.eps)
        else:
            square = (x * x).mean(-1, keepdim=True) if self.kind == "rms" else (x * x).sum(-1, keepdim=True)
            y = x / torch.sqrt(square + self.eps)
        y = y if self.weight is None else y * self.weight
        return y.view(batch, time, heads, size).transpose(1, 2) if self.all else y


def head_size(model):
    return model["attention"]["head_size"] or model["width"] // model["heads"]


def width_ratio(model):
    """Of muP."""
    return model["width"] / model["base_width"] if model["base_width"] > 0 else 1


def every(number, block):
    return number > 0 and (block + 1) % number == 0


class Attention(nn.Module):
    def __init__(self, model, index, site, dropout):
        super().__init__()
        width, options = model["width"], model["attention"]
        self.index, self.options, self.kv_heads = index, options, options["kv_heads"] or model["heads"]
        self.model, self.site, self.dropout = model, site, dropout
        has_norm = model["norm"]["attention"] and model["norm"]["placement"] != "none"
        self.norm = Norm(model) if has_norm else None
        self.q_width, self.kv_width = model["heads"] * head_size(model), self.kv_heads * head_size(model)
        self.qkv = Linear(width, self.q_width + 2 * self.kv_width, bias=model["bias"] or options["qkv_bias"])
        self.has_qk_norm = options["qk_norm"]["kind"] != "none"
        if self.has_qk_norm:
            self.query_norm, self.key_norm = HeadNorm(model, model["heads"]), HeadNorm(model, self.kv_heads)
        self.sink = nn.Parameter(torch.zeros(model["heads"])) if options["sink"] else None
        learned = options["value_residual"] == "learned" and index > 0
        self.value_mix = nn.Parameter(torch.full((1,), 0.5)) if learned else None
        self.projection = Linear(self.q_width, width, bias=model["bias"])
        sandwich = has_norm and model["norm"]["placement"] == "sandwich"
        self.post_norm = Norm(model) if sandwich else None
        self.update_gain = update_gain(model)

    def turned(self, q, k):
        rotary = self.model["rotary"]
        turns_heads = self.model["positions"] == "rotary" and not every(rotary["skip_every"], self.index)
        if self.has_qk_norm and self.options["qk_norm"]["place"] == "before":
            q, k = self.query_norm(q), self.key_norm(k)
        if turns_heads:
            q, k = rotate(q, rotary), rotate(k, rotary)
        if self.has_qk_norm and self.options["qk_norm"]["place"] == "after":
            q, k = self.query_norm(q), self.key_norm(k)
        return q, k

    def mixed(self, v, first):
        if self.options["value_residual"] == "none":
            return v
        if self.index == 0:
            first.append(v.detach() if self.direct else v)
            return v
        if self.value_mix is None:
            return (v + first[0]) / 2
        return self.value_mix * v + (1 - self.value_mix) * first[0]

    def forward(self, x, real, first):
        batch, time, width = x.shape
        heads, kind = self.model["heads"], self.options["kind"]
        q, k, v = self.qkv(x).split([self.q_width, self.kv_width, self.kv_width], dim=2)
        q, k, v = (t.view(batch, time, n, -1).transpose(1, 2)
                   for t, n in ((q, heads), (k, self.kv_heads), (v, self.kv_heads)))
        q, k = self.turned(q, k)
        v = self.mixed(v, first)
        k, v = (torch.repeat_interleave(t, heads // self.kv_heads, dim=1) for t in (k, v))
        scale = 1 / math.sqrt(head_size(self.model)) / math.sqrt(width_ratio(self.model))
        scale = self.options["qk_norm"]["scale"] if self.has_qk_norm else scale
        scores = q @ k.transpose(2, 3) * scale
        if self.options["score_cap"] > 0:
            scores = self.options["score_cap"] * torch.tanh(scores / self.options["score_cap"])
        position = torch.arange(time)
        distance = position[:, None] - position[None, :]
        if self.model["positions"] == "alibi":
            slopes = torch.tensor(alibi_slopes(heads), dtype=torch.float64).to(scores.dtype)
            scores = scores - slopes[:, None, None] * distance.abs()
        hidden = ~real[:, None, None, :]
        if self.options["window"] > 0:
            hidden = hidden & (distance != 0)[None, None]  # or a window in the padding would be empty
        if self.options["causal"]:
            hidden = hidden | (distance < 0)[None, None]
        if self.options["window"] > 0 and not every(self.options["full_every"], self.index):
            hidden = hidden | (distance.abs() >= self.options["window"])[None, None]
        if self.sink is not None:
            more = self.sink.view(1, heads, 1, 1).expand(batch, heads, time, 1)
            weights = torch.softmax(torch.cat([scores.masked_fill(hidden, -torch.inf), more], -1), -1)[..., :-1]
        elif kind == "sigmoid":
            biased = scores + self.options["score_bias"]
            weights = torch.sigmoid(biased).masked_fill(hidden, 0)
        else:
            weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        weights = self.dropout.weights(weights, self.site + ".weights")
        y = self.projection((weights @ v).transpose(1, 2).reshape(batch, time, self.q_width))
        return self.dropout.stream(y, self.site + ".output")


GATES = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}


def update_gain(model):
    if model["update_gain"] == "none":
        return None
    return nn.Parameter(torch.ones(model["width"] if model["update_gain"] == "feature" else 1))


class FeedForward(nn.Module):
    def __init__(self, model, site, dropout):
        super().__init__()
        self.activation, self.site, self.dropout = model["activation"], site, dropout
        has_norm = model["norm"]["feed_forward"] and model["norm"]["placement"] != "none"
        if model["parallel"]:
            before = model["norm"]["attention"] and model["norm"]["placement"] != "none"
            has_norm = model["parallel_norms"] and before
        self.norm = Norm(model) if has_norm else None
        inner = model["hidden"] * (2 if self.activation in GATES else 1)
        self.up = Linear(model["width"], inner, bias=model["bias"])
        self.down = Linear(model["hidden"], model["width"], bias=model["bias"])
        sandwich = has_norm and model["norm"]["placement"] == "sandwich"
        self.post_norm = Norm(model) if sandwich else None
        self.update_gain = update_gain(model)

    def forward(self, x):
        x = self.up(x)
        if self.activation in GATES:
            gate, value = x.chunk(2, dim=-1)
            x = GATES[self.activation](gate) * value
        else:
            x = {
                "relu": F.relu,
                "relu2": lambda y: F.relu(y)**2,
                "gelu": F.gelu,
                "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
                "silu": F.silu,
            }[self.activation](x)
        return self.dropout.stream(self.down(x), self.site + ".output")


class Block(nn.Module):
    def __init__(self, model, index, dropout):
        super().__init__()
        self.model, site = model, f"block.{index}"
        self.attention = None
        if model["attention"]["kind"] != "none":
            self.attention = Attention(model, index, site + ".attention", dropout)
        self.feed_forward = FeedForward(model, site + ".feed_forward", dropout)

    def sublayer(self, x, layer, apply, real):
        def joined(update):
            update = update if layer.update_gain is None else layer.update_gain * update
            return x + self.model["residual_scale"] * update if self.model["residual"] else update

        placement = self.model["norm"]["placement"]
        if layer.norm is None:
            return joined(apply(x))
        if placement == "pre":
            return joined(apply(layer.norm(x, real)))
        if placement == "post":
            return layer.norm(joined(apply(x)), real)
        return joined(layer.post_norm(apply(layer.norm(x, real)), real))

    def parallel(self, x, real, first):
        """Both sublayers read the same input, and have one norm of it or two."""
        normed = x if self.attention.norm is None else self.attention.norm(x, real)
        second = normed if self.feed_forward.norm is None else self.feed_forward.norm(x, real)
        for layer, update in ((self.attention, self.attention(normed, real, first)),
                              (self.feed_forward, self.feed_forward(second))):
            update = update if layer.update_gain is None else layer.update_gain * update
            x = x + self.model["residual_scale"] * update
        return x

    def forward(self, x, real, first):
        if self.model["parallel"]:
            return self.parallel(x, real, first)
        if self.attention is not None:
            x = self.sublayer(x, self.attention, lambda y: self.attention(y, real, first), real)
        return self.sublayer(x, self.feed_forward, self.feed_forward, real)


class Transformer(nn.Module):
    """Modules are built in the order in which the source experiments build theirs."""

    def __init__(self, model, seed=0, rule="backprop"):
        super().__init__()
        self.model, self.rule = model, rule
        self.dropout = Dropout(model, seed)
        self.token_embedding = nn.Embedding(model["vocabulary"], model["width"])
        learned = model["positions"] == "learned"
        self.position_embedding = (
            nn.Embedding(model["context"], model["width"]) if learned else None)
        self.block = nn.ModuleList(
            [Block(model, i, self.dropout) for i in range(model["layers"])])
        self.embedding_norm = Norm(model) if model["embedding_norm"] else None
        self.final_norm = Norm(model) if model["norm"]["final"] else None
        self.head = nn.Linear(model["width"], model["vocabulary"], bias=model["head_bias"])
        if model["tied_head"]:
            self.head.weight = self.token_embedding.weight
        for block in self.block:
            if block.attention is not None:
                block.attention.direct = rule == "direct_feedback_alignment"
        self.errors = {}  # where the output error goes, by name

    def take_buffers(self, buffers):
        """Feedback by its names in the layout."""
        for name, value in buffers.items():
            owner, _, kind = name.rpartition(".")
            if kind != "feedback":
                continue
            if self.rule == "feedback_alignment":
                self.get_submodule(owner).feedback = value
            else:
                self.errors[owner] = value

    def statistics(self):
        """BatchNorm's running ones, by their names in the layout."""
        named = {}
        for name, module in self.named_modules():
            if isinstance(module, Norm) and module.kind == "batch":
                named[name + ".running_mean"] = module.batch.running_mean
                named[name + ".running_variance"] = module.batch.running_var
        return named

    def embed(self, tokens, real):
        x = self.token_embedding(tokens) * self.model["embedding_scale"]
        time, width = x.shape[1:]
        if self.position_embedding is not None:
            x = x + self.position_embedding(torch.arange(time))
        if self.model["positions"] == "sinusoidal":
            cos, sin = turns(time, width // 2)
            x = x + torch.stack([sin, cos], dim=-1).flatten(1).to(x.dtype)
        x = x if self.embedding_norm is None else self.embedding_norm(x, real)
        return self.dropout.stream(x, "embedding")

    def forward(self, tokens, lengths):
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        direct = self.rule == "direct_feedback_alignment" and torch.is_grad_enabled()
        self.dropout.on = self.training
        x, first = self.embed(tokens, real), []
        cuts = [(x, self.errors.get("embedding"))]
        for i, block in enumerate(self.block):
            x = block(x.detach() if direct else x, real, first)
            cuts.append((x, self.errors.get(f"block.{i}")))
        x = x.detach() if direct else x
        if self.final_norm is not None:
            x = self.final_norm(x, real)
        logits = self.head(x / width_ratio(self.model))
        if self.model["logit_cap"] > 0:
            logits = self.model["logit_cap"] * torch.tanh(logits / self.model["logit_cap"])
        if direct:
            def hand_on(error):
                for output, matrix in cuts:
                    output.backward(error @ matrix, retain_graph=True)
            logits.register_hook(hand_on)
        if self.model["loss"] == "all":
            return logits
        return logits[torch.arange(len(lengths)), lengths - 1]
