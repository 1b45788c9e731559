"""The model family as a PyTorch module, with the parameters of a checkpoint.

docs/reference/model.md has the formulas. Modules and parameters have the names of the checkpoint's
tensors, so that `model.block[0].attention.qkv.weight` is block.0.attention.qkv.weight. The shapes
in the comments: B sequences, T positions, d features, H heads, V tokens.
"""
from __future__ import annotations

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
    "positions": ("learned", "sinusoidal", "rotary", "none"),
    "bias": bool, "residual": bool, "residual_scale": float, "tied_head": bool, "head_bias": bool,
    "activation": ("relu", "gelu", "gelu_tanh", "silu", "swiglu"),
    "attention.kind": ("softmax", "sigmoid", "none"),
    "attention.causal": bool, "attention.score_bias": float,
    "norm.kind": ("layer", "rms", "batch", "l2"),
    "norm.deviation": ("population", "unbiased_eps_outside"),
    "norm.placement": ("pre", "post", "sandwich", "none"),
    "norm.attention": bool, "norm.feed_forward": bool, "norm.final": bool, "norm.eps": float,
    "norm.gain": bool, "norm.bias": bool}
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
    _check_config(checkpoint.model, len(arrays))
    try:
        with torch.device("meta"):  # without memory
            model = Transformer(checkpoint.model)
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


def _check_config(config: dict[str, Any], tensors: int) -> None:
    """Raises DataLoss unless a module can be made of the fields of a model with so many tensors."""
    for path, allowed in _FIELDS.items():
        value: Any = config
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(allowed, tuple):
            fits, expected = isinstance(value, str) and value in allowed, ", ".join(allowed)
        elif allowed is int:
            largest = tensors if path == "layers" else _MAX_SIZE
            fits, expected = type(value) is int and 1 <= value <= largest, f"1 to {largest:,}"
        elif allowed is bool:
            fits, expected = isinstance(value, bool), "true or false"
        else:
            fits = type(value) in (int, float) and -1e18 <= value <= 1e18
            expected = "a number from -1e18 to 1e18"
        if not fits:
            raise DataLoss(f"not a model's checkpoint: {path} is {str(value)[:64]!r}; "
                           f"expected {expected}")
    if config["width"] % config["heads"] != 0:
        raise DataLoss(f"not a model's checkpoint: width is {config['width']}; expected a multiple "
                       f"of {config['heads']} heads")


class Transformer(nn.Module):
    """`config` has the resolved fields of the model, as `Checkpoint.model` has them."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        width = config["width"]
        self.token_embedding = nn.Embedding(config["vocabulary"], width)
        if config["positions"] == "learned":
            self.position_embedding = nn.Embedding(config["context"], width)
        self.block = nn.ModuleList(Block(config) for _ in range(config["layers"]))
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
        x = self.token_embedding(tokens)
        if self.config["positions"] == "learned":
            x = x + self.position_embedding(position)
        elif self.config["positions"] == "sinusoidal":
            angle = _angles(len(position), self.config["width"])
            waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
            x = x + waves[:, :self.config["width"]].to(x)
        for block in self.block:
            x = block(x, masked)
        logits: Tensor = self.head(self.final_norm(x), self.token_embedding.weight)
        return logits


class Block(nn.Module):
    """An attention sublayer, if the model has attention, and a feed-forward sublayer."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.attention = Attention(config) if config["attention"]["kind"] != "none" else None
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, masked: Tensor) -> Tensor:
        if self.attention is not None:
            x = self._add(x, self.attention, masked)
        return self._add(x, self.feed_forward)

    def _add(self, x: Tensor, f: Sublayer, *masked: Tensor) -> Tensor:
        """Combines a sublayer with the residual stream, by the placement of its norms."""
        placement = self.config["norm"]["placement"]
        inside = placement in ("pre", "sandwich")
        update: Tensor = f(f.norm(x) if f.norm is not None and inside else x, *masked)
        if f.post_norm is not None:
            update = f.post_norm(update)
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
        self.norm = Norm(config) if has_norm else None
        self.post_norm = Norm(config) if has_norm and norm["placement"] == "sandwich" else None


class Attention(Sublayer):
    """Attention by softmax or sigmoid; `masked` is true where a position may not attend."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config, "attention")
        width = config["width"]
        self.qkv = nn.Linear(width, 3 * width, bias=config["bias"])
        self.projection = nn.Linear(width, width, bias=config["bias"])

    def forward(self, x: Tensor, masked: Tensor) -> Tensor:
        heads = self.config["heads"]
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2)  # [B, H, T, d/H]
                   for part in self.qkv(x).chunk(3, dim=-1))
        if self.config["positions"] == "rotary":
            q, k = _rotate(q), _rotate(k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [B, H, T, T]
        if self.config["attention"]["kind"] == "sigmoid":
            weights = torch.sigmoid(scores + self.config["attention"]["score_bias"])
            weights = weights.masked_fill(masked, 0)
        else:
            weights = scores.masked_fill(masked, -math.inf).softmax(dim=-1)
        output: Tensor = self.projection((weights @ v).transpose(1, 2).flatten(2))
        return output


class FeedForward(Sublayer):
    """Two linears with an activation between them."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config, "feed_forward")
        width, inner, gated = config["width"], config["hidden"], config["activation"] == "swiglu"
        self.up = nn.Linear(width, 2 * inner if gated else inner, bias=config["bias"])
        self.down = nn.Linear(inner, width, bias=config["bias"])

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        activation = self.config["activation"]
        if activation == "swiglu":
            gate, value = x.chunk(2, dim=-1)
            x = F.silu(gate) * value
        elif activation == "silu":
            x = F.silu(x)
        elif activation == "relu":
            x = F.relu(x)
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
        if self.config["kind"] == "batch":
            self.register_buffer("running_mean", torch.zeros(width))
            self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        kind, eps = self.config["kind"], self.config["eps"]
        if kind == "batch":
            x = (x - self.running_mean) / torch.sqrt(self.running_variance + eps)
        elif kind == "rms":
            x = x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
        elif kind == "l2":
            x = x / torch.sqrt(x.square().sum(-1, keepdim=True) + eps)
        else:
            x = x - x.mean(-1, keepdim=True)
            if self.config["deviation"] == "unbiased_eps_outside":
                x = x / (torch.sqrt(x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)) + eps)
            else:
                x = x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
        x = x if self.weight is None else x * self.weight
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


def _angles(positions: int, features: int) -> Tensor:
    """Returns p/10000^(2j/features) of each position p and j < features/2, one more if `features`
    is odd. In float64 and on the CPU, because not every device has float64."""
    even = torch.arange(0, features, 2, dtype=torch.float64)
    return torch.arange(positions)[:, None] * 10000.0 ** (-even / features)


def _rotate(x: Tensor) -> Tensor:
    """Rotates features j and j + s/2 of each head's s features by the angle of the position."""
    angle = _angles(x.shape[-2], x.shape[-1])
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
