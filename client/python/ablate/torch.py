"""The model family as a PyTorch module, with the parameters of a checkpoint.

docs/reference/model.md has the formulas. Modules and parameters have the names of the checkpoint's
tensors, so that `model.block[0].attention.qkv.weight` is block.0.attention.qkv.weight. The shapes
in the comments: B sequences, T positions, d features, H heads, V tokens.
"""
from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ablate.errors import DataLoss
from ablate.run import Checkpoint


# The fields of a model that the module reads, with their types or values.
_FIELDS: dict[str, type | tuple[str, ...]] = {
    "vocabulary": int, "layers": int, "width": int, "heads": int, "context": int, "hidden": int,
    "positions": ("learned", "sinusoidal", "rotary", "alibi", "none"),
    "bias": bool, "residual": bool, "residual_scale": float, "tied_head": bool, "head_bias": bool,
    "activation": ("relu", "gelu", "gelu_tanh", "silu", "swiglu", "relu2", "geglu", "reglu"),
    "attention.kind": ("softmax", "sigmoid", "none"),
    "attention.causal": bool, "attention.score_bias": float,
    "norm.kind": ("layer", "rms", "batch", "l2", "dyt", "derf"),
    "norm.deviation": ("population", "unbiased_eps_outside"),
    "norm.placement": ("pre", "post", "sandwich", "none"),
    "norm.attention": bool, "norm.feed_forward": bool, "norm.final": bool, "norm.eps": float,
    "norm.gain": bool, "norm.bias": bool}
# Fields that came later, with their values in a checkpoint that lacks them; read as the others.
_LATER: dict[str, Any] = {
    "rotary.theta": 1e4, "rotary.share": 1.0, "rotary.skip_every": 0, "parallel": False,
    "parallel_norms": False,
    "update_gain": "none", "embedding_scale": 1.0, "embedding_norm": False, "logit_cap": 0.0,
    "base_width": 0,
    "attention.kv_heads": 0, "attention.head_size": 0, "attention.qkv_bias": False,
    "attention.qk_norm.kind": "none", "attention.qk_norm.scope": "head",
    "attention.qk_norm.place": "before", "attention.qk_norm.gain": True,
    "attention.qk_norm.scale": 1.0, "attention.score_cap": 0.0, "attention.window": 0,
    "attention.full_every": 0, "attention.sink": False, "attention.value_residual": "none",
    "norm.gain_form": "scale"}
_VALUES = {
    "update_gain": ("none", "feature", "scalar"), "norm.gain_form": ("scale", "one_plus"),
    "attention.qk_norm.kind": ("none", "rms", "layer", "l2"),
    "attention.qk_norm.scope": ("head", "all"), "attention.qk_norm.place": ("before", "after"),
    "attention.value_residual": ("none", "fixed", "learned")}
_GATES = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}
_MAX_SIZE = 2**31 - 1


def load(checkpoint: Checkpoint) -> Transformer:
    """Returns the model of a checkpoint, in its precision and for evaluation.

    It has no dropout, its norms use their running statistics, and its gradients are autograd's,
    whatever rule the run learned by. Raises DataLoss if the checkpoint's tensors aren't those of
    its model; nothing is allocated before.

    >>> model = ablate.torch.load(run.checkpoint())
    >>> model(torch.tensor([[26, 0, 13, 13]])).shape
    torch.Size([1, 4, 27])
    """
    arrays = {name: array for name, array in checkpoint.items()
              if not name.endswith("feedback")}  # of learning rules
    config = _with_later(checkpoint.model)
    _check_config(config, len(arrays))
    try:
        with torch.device("meta"):  # without memory
            model = Transformer(config)
    except RuntimeError as problem:  # a size overflows
        raise DataLoss(f"not a model's checkpoint: {problem}") from None
    types = {array.dtype.name for array in arrays.values()}
    if types not in ({"float32"}, {"float64"}):
        raise DataLoss(f"not a model's checkpoint: its tensors are {', '.join(sorted(types))}; "
                       "expected float32 or float64")
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    for name in [*wanted, *arrays]:
        shape = arrays[name].shape if name in arrays else None
        if shape != wanted.get(name):
            raise DataLoss(f"not a model's checkpoint: tensor {name[:64]!r} has the shape {shape}; "
                           f"expected {wanted.get(name)}, by its model")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    model.to(next(iter(tensors.values())).dtype).to_empty(device="cpu")
    model.load_state_dict(tensors)
    return model.eval()


def _with_later(config: Any) -> dict[str, Any]:
    """Returns the fields of a model with those that an older version's checkpoint lacks."""
    config = copy.deepcopy(config)
    for path, value in _LATER.items():
        *parts, last = path.split(".")
        part = config
        for name in parts:
            part = part.setdefault(name, {}) if isinstance(part, dict) else None
        if isinstance(part, dict):
            part.setdefault(last, value)
    return config


def _check_config(config: dict[str, Any], tensors: int) -> None:
    """Raises DataLoss unless a module can be made of the fields of a model with so many tensors."""
    later = {path: _VALUES.get(path, type(value)) for path, value in _LATER.items()}
    for path, allowed in {**_FIELDS, **later}.items():
        value: Any = config
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(allowed, tuple):
            fits, expected = isinstance(value, str) and value in allowed, ", ".join(allowed)
        elif allowed is int:
            least, largest = int(path in _FIELDS), tensors if path == "layers" else _MAX_SIZE
            fits = type(value) is int and least <= value <= largest
            expected = f"{least} to {largest:,}"
        elif allowed is bool:
            fits, expected = isinstance(value, bool), "true or false"
        else:
            fits = type(value) in (int, float) and -1e18 <= value <= 1e18
            expected = "a number from -1e18 to 1e18"
        if not fits:
            raise DataLoss(f"not a model's checkpoint: {path} is {str(value)[:64]!r}; "
                           f"expected {expected}")
    if not config["attention"]["head_size"] and config["width"] % config["heads"] != 0:
        raise DataLoss(f"not a model's checkpoint: width is {config['width']}; expected a multiple "
                       f"of {config['heads']} heads")
    if config["heads"] % (config["attention"]["kv_heads"] or 1) != 0:
        raise DataLoss(f"not a model's checkpoint: attention.kv_heads is "
                       f"{config['attention']['kv_heads']}; expected a divisor of "
                       f"{config['heads']} heads")


class Transformer(nn.Module):
    """`config` has the resolved fields of the model, as `Checkpoint.model` has them."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config = _with_later(config)
        width = config["width"]
        self.token_embedding = nn.Embedding(config["vocabulary"], width)
        if config["positions"] == "learned":
            self.position_embedding = nn.Embedding(config["context"], width)
        self.embedding_norm = Norm(config) if config["embedding_norm"] else None
        self.block = nn.ModuleList(Block(config, index) for index in range(config["layers"]))
        self.final_norm = Norm(config) if config["norm"]["final"] else nn.Identity()
        self.head = Head(config)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Returns the logits [B, T, V] of tokens [B, T].

        `lengths` [B] has the number of tokens of each sequence; the others are padding at its end.
        Models with a causal mask don't need it.
        """
        position = torch.arange(tokens.shape[1], device=tokens.device)
        masked = torch.zeros(1, 1, 1, len(position), dtype=torch.bool, device=tokens.device)
        if lengths is not None:
            masked = (position >= lengths[:, None])[:, None, None]  # [B, 1, 1, T]
        if self.config["attention"]["causal"]:
            masked = masked | (position > position[:, None])  # [B, 1, T, T]
        x = self.token_embedding(tokens) * self.config["embedding_scale"]
        if self.config["positions"] == "learned":
            x = x + self.position_embedding(position)
        elif self.config["positions"] == "sinusoidal":
            angle = _angles(len(position), self.config["width"])
            waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
            x = x + waves[:, :self.config["width"]].to(x)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        first_values: list[Tensor] = []
        for block in self.block:
            x = block(x, masked, first_values)
        x = self.final_norm(x) / _width_ratio(self.config)
        logits: Tensor = self.head(x, self.token_embedding.weight)
        return _capped(logits, self.config["logit_cap"])


class Block(nn.Module):
    """An attention sublayer, if the model has attention, and a feed-forward sublayer."""

    def __init__(self, config: dict[str, Any], index: int) -> None:
        super().__init__()
        self.config = config
        has_attention = config["attention"]["kind"] != "none"
        self.attention = Attention(config, index) if has_attention else None
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, masked: Tensor, first_values: list[Tensor]) -> Tensor:
        """`first_values` becomes the first block's values, which the others may read."""
        inside = self.config["norm"]["placement"] in ("pre", "sandwich")

        def read(stream: Tensor, sublayer: Sublayer) -> Tensor:
            """Returns a sublayer's input."""
            return sublayer.norm(stream) if inside and sublayer.norm is not None else stream

        stream = x
        if self.attention is not None:
            update = self.attention(read(x, self.attention), masked, first_values)
            stream = self._add(x, self.attention, update)
        reads_both = self.config["parallel"] and self.attention is not None
        reader = self.feed_forward
        if reads_both and not self.config["parallel_norms"]:
            reader = self.attention
        inputs = read(x if reads_both else stream, reader)
        return self._add(stream, self.feed_forward, self.feed_forward(inputs))

    def _add(self, x: Tensor, f: Sublayer, update: Tensor) -> Tensor:
        """Combines a sublayer's update with the residual stream, by the placement of its norms."""
        placement = self.config["norm"]["placement"]
        if f.post_norm is not None:
            update = f.post_norm(update)
        if f.update_gain is not None:
            update = f.update_gain * update
        if self.config["residual"]:
            update = x + self.config["residual_scale"] * update
        if f.norm is not None and placement == "post":
            update = f.norm(update)
        return update


class Sublayer(nn.Module):
    """The norms of a sublayer."""

    def __init__(self, config: dict[str, Any], name: str) -> None:
        super().__init__()
        self.config = config
        norm = config["norm"]
        has_norm = norm[name] and norm["placement"] != "none"
        if name == "feed_forward" and config["parallel"]:
            has_norm = (config["parallel_norms"] and norm["attention"]
                        and norm["placement"] != "none")  # else it reads the attention's
        self.norm = Norm(config) if has_norm else None
        self.post_norm = Norm(config) if has_norm and norm["placement"] == "sandwich" else None
        size = {"none": 0, "feature": config["width"], "scalar": 1}[config["update_gain"]]
        self.update_gain = nn.Parameter(torch.ones(size)) if size else None


class Attention(Sublayer):
    """Attention by softmax or sigmoid; `masked` is true where a position may not attend."""

    def __init__(self, config: dict[str, Any], index: int) -> None:
        super().__init__(config, "attention")
        self.index, self.options = index, config["attention"]
        width, heads = config["width"], config["heads"]
        self.kv_heads = self.options["kv_heads"] or heads
        self.query_width = heads * _head_size(config)
        self.kv_width = self.kv_heads * _head_size(config)
        self.qkv = nn.Linear(width, self.query_width + 2 * self.kv_width,
                             bias=config["bias"] or self.options["qkv_bias"])
        if self.options["qk_norm"]["kind"] != "none":
            self.query_norm = HeadNorm(config, heads)
            self.key_norm = HeadNorm(config, self.kv_heads)
        self.sink = nn.Parameter(torch.zeros(heads)) if self.options["sink"] else None
        learned = self.options["value_residual"] == "learned" and index > 0
        self.value_mix = nn.Parameter(torch.full((1,), 0.5)) if learned else None
        self.projection = nn.Linear(self.query_width, width, bias=config["bias"])

    def forward(self, x: Tensor, masked: Tensor, first_values: list[Tensor]) -> Tensor:
        heads, qk_norm = self.config["heads"], self.options["qk_norm"]
        q, k, v = (part.unflatten(-1, (count, -1)).transpose(1, 2)  # [B, heads, T, d/H]
                   for part, count in zip(
                       self.qkv(x).split([self.query_width, self.kv_width, self.kv_width], dim=-1),
                       (heads, self.kv_heads, self.kv_heads), strict=True))
        q, k = self._turned(q, k)
        v = self._mixed(v, first_values)
        k, v = (part.repeat_interleave(heads // self.kv_heads, dim=1) for part in (k, v))
        scale = (1 / math.sqrt(q.shape[-1] * _width_ratio(self.config))
                 if qk_norm["kind"] == "none" else qk_norm["scale"])
        scores = _capped(q @ k.transpose(-2, -1) * scale, self.options["score_cap"])
        position = torch.arange(x.shape[1], device=x.device)
        distance = (position[:, None] - position).abs()  # [T, T]
        if self.config["positions"] == "alibi":
            slopes = torch.tensor(_alibi_slopes(heads)).to(scores)
            scores = scores - slopes[:, None, None] * distance
        window = self.options["window"]
        if window > 0 and not _is_nth(self.options["full_every"], self.index):
            # Padding sees itself: a position that saw nothing would have no softmax.
            masked = (masked | (distance >= window)) & (distance > 0)
        if self.options["kind"] == "sigmoid":
            weights = torch.sigmoid(scores + self.options["score_bias"]).masked_fill(masked, 0)
        else:
            weights = self._softmax(scores.masked_fill(masked, -math.inf))
        output: Tensor = self.projection((weights @ v).transpose(1, 2).flatten(2))
        return output

    def _turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Returns queries and keys, normalised and rotated."""
        rotary, qk_norm = self.config["rotary"], self.options["qk_norm"]
        norms = qk_norm["kind"] != "none"
        if norms and qk_norm["place"] == "before":
            q, k = self.query_norm(q), self.key_norm(k)
        if self.config["positions"] == "rotary" and not _is_nth(rotary["skip_every"], self.index):
            q, k = _rotate(q, rotary), _rotate(k, rotary)
        if norms and qk_norm["place"] == "after":
            q, k = self.query_norm(q), self.key_norm(k)
        return q, k

    def _mixed(self, v: Tensor, first_values: list[Tensor]) -> Tensor:
        """Returns the values, mixed with those of the first block."""
        if self.options["value_residual"] == "none":
            return v
        if self.index == 0:
            first_values.append(v)
        own = 0.5 if self.value_mix is None else self.value_mix
        return v if self.index == 0 else own * v + (1 - own) * first_values[0]

    def _softmax(self, scores: Tensor) -> Tensor:
        if self.sink is None:
            return scores.softmax(dim=-1)
        sink = self.sink.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]


class HeadNorm(nn.Module):
    """Normalises the features of each head of queries or keys, or those of all heads together."""

    def __init__(self, config: dict[str, Any], heads: int) -> None:
        super().__init__()
        self.options, self.eps = config["attention"]["qk_norm"], config["norm"]["eps"]
        size = _head_size(config)
        shape = heads * size if self.options["scope"] == "all" else size
        self.weight = nn.Parameter(torch.ones(shape)) if self.options["gain"] else None

    def forward(self, x: Tensor) -> Tensor:
        heads = x.shape[1]
        if self.options["scope"] == "all":
            x = x.transpose(1, 2).flatten(2)
        x = _standardised(x, self.options["kind"], self.eps)
        x = x if self.weight is None else x * self.weight
        return x.unflatten(-1, (heads, -1)).transpose(1, 2) if x.dim() == 3 else x


class FeedForward(Sublayer):
    """Two linears with an activation between them."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config, "feed_forward")
        width, inner, gated = config["width"], config["hidden"], config["activation"] in _GATES
        self.up = nn.Linear(width, 2 * inner if gated else inner, bias=config["bias"])
        self.down = nn.Linear(inner, width, bias=config["bias"])

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        activation = self.config["activation"]
        if activation in _GATES:
            gate, value = x.chunk(2, dim=-1)
            x = _GATES[activation](gate) * value
        elif activation == "silu":
            x = F.silu(x)
        elif activation == "relu":
            x = F.relu(x)
        elif activation == "relu2":
            x = F.relu(x).square()
        else:
            x = F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
        output: Tensor = self.down(x)
        return output


class Norm(nn.Module):
    """Computes (x - mu)/sigma of the norm's kind, then gain and bias."""

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config, width = config["norm"], config["width"]
        self.weight = nn.Parameter(torch.ones(width)) if self.config["gain"] else None
        self.bias = nn.Parameter(torch.zeros(width)) if self.config["bias"] else None
        if self.config["kind"] in ("dyt", "derf"):
            self.alpha = nn.Parameter(torch.ones(1))
        if self.config["kind"] == "derf":
            self.offset = nn.Parameter(torch.zeros(1))
        if self.config["kind"] == "batch":
            self.register_buffer("running_mean", torch.zeros(width))
            self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        kind, eps = self.config["kind"], self.config["eps"]
        if kind == "batch":
            x = (x - self.running_mean) / torch.sqrt(self.running_variance + eps)
        elif kind == "dyt":
            x = torch.tanh(self.alpha * x)
        elif kind == "derf":
            x = torch.erf(self.alpha * x + self.offset)
        elif kind == "layer" and self.config["deviation"] == "unbiased_eps_outside":
            x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)
        else:
            x = _standardised(x, kind, eps)
        if self.weight is not None:
            x = x * (1 + self.weight if self.config["gain_form"] == "one_plus" else self.weight)
        return x if self.bias is None else x + self.bias


class Head(nn.Module):
    """The linear to logits, whose weight is the token embedding's if the head is tied."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        shape = config["vocabulary"], config["width"]
        self.weight = None if config["tied_head"] else nn.Parameter(torch.zeros(shape))
        self.bias = nn.Parameter(torch.zeros(shape[0])) if config["head_bias"] else None

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(x, embedding if self.weight is None else self.weight, self.bias)


def _standardised(x: Tensor, kind: str, eps: float) -> Tensor:
    """Returns (x - mu)/sigma over the last axis, by the formula of layer, rms or l2."""
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    square = x.square()
    total = square.sum(-1, keepdim=True) if kind == "l2" else square.mean(-1, keepdim=True)
    return x / torch.sqrt(total + eps)


def _head_size(config: dict[str, Any]) -> int:
    """Returns the features of a head."""
    size: int = config["attention"]["head_size"] or config["width"] // config["heads"]
    return size


def _width_ratio(config: dict[str, Any]) -> float:
    """Returns the width as a multiple of muP's base width; 1 without muP."""
    return config["width"] / config["base_width"] if config["base_width"] > 0 else 1.0


def _capped(x: Tensor, cap: float) -> Tensor:
    """Returns x with the bound `cap`; 0 is none."""
    return cap * torch.tanh(x / cap) if cap > 0 else x


def _is_nth(number: int, index: int) -> bool:
    """Returns true for every so-manyth block."""
    return number > 0 and (index + 1) % number == 0


def _alibi_slopes(heads: int) -> list[float]:
    """Returns 2^(-8(h+1)/n) for the power of two n below `heads`, then every other one of 2n."""
    power = 2 ** (heads.bit_length() - 1)
    return ([2 ** (-8 * (h + 1) / power) for h in range(power)]
            + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)])


def _angles(positions: int, features: int, theta: float = 1e4) -> Tensor:
    """Returns p/theta^(2j/features) of each position p and j < features/2, one more if `features`
    is odd. In float64 and on the CPU, because not every device has float64."""
    even = torch.arange(0, features, 2, dtype=torch.float64)
    return torch.arange(positions)[:, None] * theta ** (-even / features)


def _rotate(x: Tensor, rotary: dict[str, Any]) -> Tensor:
    """Rotates features j and j + s/2 of each head's first s features by the position's angle."""
    size = round(x.shape[-1] * rotary["share"])
    angle = _angles(x.shape[-2], size, rotary["theta"])
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x[..., :size].chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos, x[..., size:]], dim=-1)
