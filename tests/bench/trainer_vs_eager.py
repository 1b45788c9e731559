"""Milliseconds a training step of the reference trainer beside PyTorch eager, one thread each, interleaved.

    python trainer_vs_eager.py PATH/TO/trainer_vs_eager [rounds]

Prints a JSON object per workload: medians of both, and the median of the rounds' ratios (eager over ours, so
that above 1 is faster than eager). Eager is PyTorch at its best: fused attention and optimizer, batches made
beforehand.
"""

import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.projection = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (t.view(batch, time_, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(batch, time_, width))


class PreNormModel(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads, hidden, bias, norm, activation,
                 tied):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([
            nn.ModuleList([norm(width), Attention(width, heads, bias), norm(width),
                           nn.Linear(width, hidden, bias=bias), activation,
                           nn.Linear(hidden, width, bias=bias)]) for _ in range(layers)])
        self.norm = norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
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


def names():
    """Documents of 3 to 12 letters, one a step."""
    model = PreNormModel(27, 16, 8, 16, 4, 64, False, lambda d: nn.RMSNorm(d, 1e-5), nn.ReLU(),
                         False)
    path = os.path.join(os.path.dirname(__file__), "../../examples/data/names.txt")
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    import random
    random.seed(42)
    random.shuffle(lines)
    batches = []
    for line in lines[:4000]:
        tokens = [26] + [ord(c) - ord("a") for c in line] + [26]
        count = min(16, len(tokens) - 1)
        batches.append((torch.tensor([tokens[:count]]), torch.tensor([tokens[1:count + 1]])))
    options = dict(lr=0.01, betas=(0.85, 0.99), weight_decay=0.01)
    return model, torch.optim.AdamW(model.parameters(), fused=True, **options), batches, 100


def recall():
    model = RecallModel()
    batches = [(torch.randint(400, (128, 41)), torch.randint(400, (128,))) for _ in range(20)]
    return model, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True), batches, 10


def characters():
    model = PreNormModel(65, 64, 4, 128, 4, 512, True, nn.LayerNorm, nn.GELU(), True)
    batches = [(torch.randint(65, (32, 64)), torch.randint(65, (32, 64))) for _ in range(20)]
    return (model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True),
            batches, 5)


def eager_round(model, optimizer, batches, position, steps):
    """Wall and processor milliseconds a step, reading the loss at every step as a trainer must."""
    wall, processor = time.perf_counter(), time.process_time()
    for step in range(position, position + steps):
        tokens, targets = batches[step % len(batches)]
        optimizer.zero_grad()
        logits = model(tokens)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
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
    return tuple(map(float, process.stdout.readline().split()))


def compare(name, make, program, rounds):
    torch.manual_seed(0)
    model, optimizer, batches, steps = make()
    process = subprocess.Popen([program, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    pairs, position = [], 0
    for _ in range(rounds + 1):
        eager = eager_round(model, optimizer, batches, position, steps)
        pairs.append((eager, ours_round(process, steps)))
        position += steps
    process.stdin.close()
    process.wait()
    pairs = pairs[1:]  # the first warms both up
    median = lambda values: round(statistics.median(values), 3)
    print(json.dumps({
        "workload": name,
        "eager_ms": median([eager[1] for eager, _ in pairs]),
        "ours_ms": median([ours[1] for _, ours in pairs]),
        "ratio_processor": median([eager[1] / ours[1] for eager, ours in pairs]),
        "ratio_wall": median([eager[0] / ours[0] for eager, ours in pairs]),
    }), flush=True)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    for workload in (names, recall, characters):
        compare(workload.__name__, workload, sys.argv[1], count)
