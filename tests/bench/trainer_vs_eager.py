"""Milliseconds a training step of our trainers beside PyTorch's ways, one thread each, interleaved.

    python trainer_vs_eager.py PATH/TO/trainer_vs_eager [rounds [workload...]]

Prints a JSON object per workload: medians of processor milliseconds a step, and for each of our trainers,
`torch` and `native`, the medians of the rounds' ratios to it, so that above 1 ours is faster. PyTorch's ways, all with batches made beforehand: `plain` eager
(attention written out, AdamW over lists of tensors), eager at its `best` (fused attention and optimizer),
and the best `compiled` by torch.compile, where the model can be.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import torch.nn as nn
import torch.nn.functional as F

from eager_models import (CHARACTERS_ADAMW, NAMES_ADAMW, RECALL_ADAM, PreNormModel, RecallModel,
                          characters_model, loss_of, names_batches, names_model, plays_batches,
                          recall_batches)

torch.set_num_threads(1)


class AlignedLinear(torch.autograd.Function):
    """A linear whose input learns through a fixed matrix."""

    @staticmethod
    def forward(ctx, x, weight, bias, feedback):
        ctx.save_for_backward(x, feedback)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g):
        x, feedback = ctx.saved_tensors
        rows, out = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        return g @ feedback, out.T @ rows, out.sum(0), None


class Aligned(nn.Linear):
    def __init__(self, inputs, outputs, bias):
        super().__init__(inputs, outputs, bias=bias)
        self.register_buffer("feedback", 0.02 * torch.randn(outputs, inputs))

    def forward(self, x):
        return AlignedLinear.apply(x, self.weight, self.bias, self.feedback)


class OddAttention(nn.Module):
    """Attention that is rotary, sigmoid, looks ahead or drops weights.

    Fused is the softmax alone: of sigmoid PyTorch has no fused attention on a CPU, and with dropout
    it falls back to one that is slower than what is written out here.
    """

    def __init__(self, width, context, heads, fused, linear, rotary, sigmoid, causal, dropout):
        super().__init__()
        self.heads, self.rotary, self.sigmoid = heads, rotary, sigmoid
        self.causal, self.dropout = causal, dropout
        self.fused = fused and not sigmoid and dropout == 0
        self.qkv, self.projection = linear(width, 3 * width, True), linear(width, width, True)
        hidden = torch.ones(context, context, dtype=torch.bool).triu(1)
        bias = torch.full((context, context), -math.log(context) if sigmoid else 0.)
        self.register_buffer("bias", bias.masked_fill(hidden, -torch.inf) if causal else bias)
        half = width // heads // 2
        angle = torch.arange(context)[:, None] * 1e4**(-torch.arange(half) / half)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, x):
        batch, time_, width = x.shape
        qkv = self.qkv(x).view(batch, time_, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        qk, v = qkv[:2], qkv[2]
        if self.rotary:
            a, b = qk.chunk(2, -1)
            qk = torch.cat((a * self.cosine - b * self.sine, b * self.cosine + a * self.sine), -1)
        q, k = qk[0], qk[1]
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            q, k, v = (t.flatten(0, 1) for t in (q, k, v))
            scores = torch.baddbmm(self.bias, q, k.transpose(1, 2), alpha=q.shape[-1]**-.5)
            weights = scores.sigmoid() if self.sigmoid else scores.softmax(-1)
            y = (F.dropout(weights, self.dropout) @ v).view(batch, self.heads, time_, -1)
        return self.projection(y.transpose(1, 2).reshape(batch, time_, width))


class OddModel(nn.Module):
    """Four blocks of width 64 with switches that the other models leave alone."""

    def __init__(self, fused, linear=nn.Linear, sandwich=False, rotary=False, swiglu=False,
                 sigmoid=False, causal=True, dropout=0.):
        super().__init__()
        width, context, hidden = 64, 64, 128 if swiglu else 256
        self.swiglu, self.dropout = swiglu, dropout
        self.tokens = nn.Embedding(65, width)
        self.positions = None if rotary else nn.Embedding(context, width)
        after = nn.LayerNorm if sandwich else lambda d: nn.Identity()
        self.blocks = nn.ModuleList([
            nn.ModuleList([
                nn.LayerNorm(width),
                OddAttention(width, context, 4, fused, linear, rotary, sigmoid, causal, dropout),
                after(width), nn.LayerNorm(width),
                linear(width, 2 * hidden if swiglu else hidden, True), linear(hidden, width, True),
                after(width)]) for _ in range(4)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 65, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        x = F.dropout(x, self.dropout)
        for before1, attention, after1, before2, up, down, after2 in self.blocks:
            x = x + after1(F.dropout(attention(before1(x)), self.dropout))
            u = up(before2(x))
            if self.swiglu:
                gate, value = u.chunk(2, -1)
                u = F.silu(gate) * value
            else:
                u = F.gelu(u)
            x = x + after2(F.dropout(down(u), self.dropout))
        return self.head(self.norm(x))


class LlamaModel(nn.Module):
    """Four blocks of width 64 of Llama's shape, or with Qwen3's norms and shared heads."""

    def __init__(self, fused, qwen):
        super().__init__()
        width, self.heads, self.kv_heads, self.fused = 64, 4, 2 if qwen else 4, fused
        size, hidden = width // self.heads, 176
        self.tokens = nn.Embedding(65, width)
        self.blocks = nn.ModuleList([
            nn.ModuleDict({
                "before1": nn.RMSNorm(width), "before2": nn.RMSNorm(width),
                "qkv": nn.Linear(width, (self.heads + 2 * self.kv_heads) * size, bias=False),
                "query": nn.RMSNorm(size) if qwen else nn.Identity(),
                "key": nn.RMSNorm(size) if qwen else nn.Identity(),
                "projection": nn.Linear(width, width, bias=False),
                "up": nn.Linear(width, 2 * hidden, bias=False),
                "down": nn.Linear(hidden, width, bias=False)}) for _ in range(4)])
        self.norm = nn.RMSNorm(width)
        angle = torch.arange(64)[:, None] * 1e4**(-torch.arange(size // 2) / (size // 2))
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())
        self.register_buffer("hidden", torch.full((64, 64), -torch.inf).triu(1))

    def turned(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cosine - b * self.sine, b * self.cosine + a * self.sine), -1)

    def attention(self, block, x):
        batch, time_, width = x.shape
        all_heads = block["qkv"](x).view(batch, time_, self.heads + 2 * self.kv_heads, -1).transpose(1, 2)
        q, k, v = all_heads.split([self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = self.turned(block["query"](q)), self.turned(block["key"](k))
        shared = self.heads != self.kv_heads
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared)
        else:
            if shared:
                k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
            scores = q @ k.transpose(-2, -1) * q.shape[-1]**-.5 + self.hidden
            y = scores.softmax(-1) @ v
        return block["projection"](y.transpose(1, 2).reshape(batch, time_, width))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = x + self.attention(block, block["before1"](x))
            gate, value = block["up"](block["before2"](x)).chunk(2, -1)
            x = x + block["down"](F.silu(gate) * value)
        return F.linear(self.norm(x), self.tokens.weight)


def adamw(model, fused, options):
    return torch.optim.AdamW(model.parameters(), fused=fused, **options)


def names(fused):
    """Trains on documents of 3 to 12 letters, one a step."""
    model = names_model(fused)
    return model, adamw(model, fused, NAMES_ADAMW), names_batches(), 100


def names16(fused):
    """Trains on documents that fill the context."""
    model = names_model(fused)
    batches = [(torch.randint(27, (1, 16)), torch.randint(27, (1, 16))) for _ in range(400)]
    return model, adamw(model, fused, NAMES_ADAMW), batches, 100


def recall(fused):
    """Trains with nn.MultiheadAttention as it comes, fused or not."""
    model = RecallModel()
    optimizer = torch.optim.Adam(model.parameters(), fused=fused, **RECALL_ADAM)
    return model, optimizer, recall_batches(), 10


def random_characters():
    return [(torch.randint(65, (32, 64)), torch.randint(65, (32, 64))) for _ in range(20)]


def depth(fused):
    model = PreNormModel(65, 64, 20, 64, 4, 256, True, nn.LayerNorm, nn.GELU(), False, fused)
    return model, adamw(model, fused, CHARACTERS_ADAMW), random_characters(), 3


def characters(fused, linear=nn.Linear):
    model = characters_model(fused, linear)
    return model, adamw(model, fused, CHARACTERS_ADAMW), random_characters(), 5


def alignment(fused):
    return characters(fused, Aligned)


def odd(model, fused):
    return model, adamw(model, fused, CHARACTERS_ADAMW), plays_batches(), 10


def odd_sandwich(fused):
    return odd(OddModel(fused, sandwich=True, rotary=True, swiglu=True), fused)


def odd_alignment(fused):
    return odd(OddModel(fused, Aligned, sigmoid=True), fused)


def odd_masks(fused):
    return odd(OddModel(fused, causal=False, dropout=.1), fused)


def llama(fused):
    return odd(LlamaModel(fused, False), fused)


def qwen(fused):
    return odd(LlamaModel(fused, True), fused)


def eager_round(model, optimizer, batches, position, steps):
    """Wall and processor milliseconds a step, reading the loss at every step as a trainer must."""
    wall, processor = time.perf_counter(), time.process_time()
    for step in range(position, position + steps):
        tokens, targets = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = loss_of(model, tokens, targets)
        loss.backward()
        norms = torch._foreach_norm([p.grad for p in model.parameters()])
        torch.linalg.vector_norm(torch.stack(norms)).item()
        optimizer.step()
        loss.item()
    return (1e3 * (time.perf_counter() - wall) / steps,
            1e3 * (time.process_time() - processor) / steps)


def ours_round(process, steps):
    process.stdin.write(f"{steps}\n")
    process.stdin.flush()
    return tuple(map(float, process.stdout.readline().split()[:2]))


def ways(make):
    """Each of PyTorch's ways to train the workload, and the steps of a round."""
    made = {"plain": make(False), "best": make(True)}
    model, optimizer, batches, steps = make(True)
    made["compiled"] = (torch.compile(model, dynamic=True), optimizer, batches, steps)
    return made, steps


def works(way):
    try:
        eager_round(*way[:3], 0, 3)
        return True
    except Exception as error:
        print(f"left out: {str(error).splitlines()[0]}", file=sys.stderr)
        return False


def compare(name, make, program, rounds):
    torch.manual_seed(0)
    made, steps = ways(make)
    made = {way: parts for way, parts in made.items() if works(parts)}
    ours = {kind: subprocess.Popen([program, name, kind], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True) for kind in ("torch", "native")}
    times = []  # a round each: processor milliseconds by way
    for number in range(rounds + 1):
        here = {way: eager_round(*parts[:3], number * steps, steps)[1] for way, parts in made.items()}
        for kind, process in ours.items():
            here[kind] = ours_round(process, steps)[1]
        times.append(here)
    for process in ours.values():
        process.stdin.close()
        process.wait()
    times = times[1:]  # the first warms all up
    result = {"workload": name}
    for way in [*made, *ours]:
        result[way + "_ms"] = round(statistics.median(one[way] for one in times), 4)
    for kind in ours:
        result[kind + " ratios"] = {
            way: round(statistics.median(one[way] / one[kind] for one in times), 2) for way in made}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    wanted = sys.argv[3:]
    for workload in (names, names16, recall, depth, characters, alignment, odd_sandwich,
                     odd_alignment, odd_masks, llama, qwen):
        if not wanted or workload.__name__ in wanted:
            compare(workload.__name__, workload, sys.argv[1], count)
