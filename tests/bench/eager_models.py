"""PyTorch models, batches and optimizer settings that the benchmarks share.

A model is made on the device of the surrounding `with torch.device(...)` and computes on the device
of its tokens. Batches are made on the CPU.
"""

import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

DATA = os.path.join(os.path.dirname(__file__), "../../examples/data")
NAMES_CONTEXT = 16
NAMES_ADAMW = {"lr": 0.01, "betas": (0.85, 0.99), "weight_decay": 0.01}
CHARACTERS_ADAMW = {"lr": 1e-3, "weight_decay": 0.01}
RECALL_ADAM = {"lr": 1e-4}


class Attention(nn.Module):
    def __init__(self, width, heads, bias, fused, linear):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = linear(width, 3 * width, bias=bias)
        self.projection = linear(width, width, bias=bias)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (t.view(batch, time_, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(x).split(width, dim=2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            hidden = torch.ones(time_, time_, dtype=torch.bool, device=x.device).triu(1)
            scores = q @ k.transpose(2, 3) / (width // self.heads)**.5
            y = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return self.projection(y.transpose(1, 2).reshape(batch, time_, width))


class PreNormModel(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads, hidden, bias, norm, activation,
                 tied, fused, linear=nn.Linear):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([
            nn.ModuleList([norm(width), Attention(width, heads, bias, fused, linear), norm(width),
                           linear(width, hidden, bias=bias), activation,
                           linear(hidden, width, bias=bias)]) for _ in range(layers)])
        self.norm = norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for norm1, attention, norm2, up, activation, down in self.blocks:
            x = x + attention(norm1(x))
            x = x + down(activation(up(norm2(x))))
        return self.head(self.norm(x))


class RecallModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(402, 128)
        self.attention = nn.MultiheadAttention(128, 1, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
        self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
        self.head = nn.Linear(128, 402)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        x = self.norm2(x + self.down(F.gelu(self.up(x))))
        return self.head(x[:, -1])


def loss_of(model, tokens, targets):
    """Returns the cross-entropy per target; targets of -100 don't count."""
    logits = model(tokens)
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def names_model(fused):
    return PreNormModel(27, NAMES_CONTEXT, 8, 16, 4, 64, False, lambda d: nn.RMSNorm(d, 1e-5),
                        nn.ReLU(), False, fused)


def names_batches():
    """Returns 4,000 documents, one a batch, cut to the context."""
    with open(os.path.join(DATA, "names.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    random.Random(42).shuffle(lines)
    batches = []
    for line in lines[:4000]:
        tokens = [26] + [ord(c) - ord("a") for c in line] + [26]
        count = min(NAMES_CONTEXT, len(tokens) - 1)
        batches.append((torch.tensor([tokens[:count]]), torch.tensor([tokens[1:count + 1]])))
    return batches


def recall_batches():
    return [(torch.randint(400, (128, 41)), torch.randint(400, (128,))) for _ in range(20)]


def characters_model(fused, linear=nn.Linear):
    return PreNormModel(65, 64, 4, 128, 4, 512, True, nn.LayerNorm, nn.GELU(), True, fused, linear)


def plays_batches():
    """Returns 20 batches of 32 windows of 64 characters."""
    with open(os.path.join(DATA, "tinyshakespeare.txt"), encoding="utf-8") as file:
        text = file.read()
    token = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([token[c] for c in text])
    windows = [torch.stack([tokens[i:i + 65] for i in torch.randint(len(tokens) - 65, (32,))])
               for _ in range(20)]
    return [(w[:, :-1].contiguous(), w[:, 1:].contiguous()) for w in windows]
