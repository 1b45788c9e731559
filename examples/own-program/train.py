"""Trains a small model of names: an ordinary PyTorch script that ablate runs.

    python own-program/train.py --lr=0.01 --placement=pre --seed=3

`ablate submit own-program.yaml` runs it for each setting and seed. `log` prints outside ablate.
"""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F

import ablate_run as run

parser = argparse.ArgumentParser()
parser.add_argument("--placement", choices=["pre", "post", "none"], default="pre")
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--every", type=int, default=100, help="steps between evaluations")
parser.add_argument("--checkpoint", type=int, default=0, help="steps between checkpoints; 0: none")
parser.add_argument("--data", default="data/names.txt", help="text file with a name per line")
args = parser.parse_args()
WIDTH, HEADS, CONTEXT, BOUNDARY, HELD_OUT = 16, 4, 16, 26, 2000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH, False), nn.Linear(WIDTH, WIDTH, False)
        fc1, fc2 = nn.Linear(WIDTH, 64, False), nn.Linear(64, WIDTH, False)
        self.feed_forward = nn.Sequential(fc1, nn.ReLU(), fc2)
        self.norms = nn.ModuleList([norm(), norm()])

    def attention(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, WIDTH))

    def forward(self, x):
        for norm, layer in zip(self.norms, (self.attention, self.feed_forward)):
            x = norm(x + layer(x)) if args.placement == "post" else x + layer(norm(x))
        return x


def norm():
    return nn.Identity() if args.placement == "none" else nn.RMSNorm(WIDTH, eps=1e-5)


def batch(names):
    """Returns inputs and targets, shape (names, positions); targets of padding are -100."""
    tokens = [[BOUNDARY, *(ord(c) - ord("a") for c in name), BOUNDARY] for name in names]
    rows = [torch.tensor(row[:CONTEXT + 1]) for row in tokens]
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
    return padded[:, :-1].clamp(min=0), padded[:, 1:]


def loss_of(inputs, targets):
    x = model["wte"](inputs) + model["wpe"].weight[:inputs.shape[1]]
    logits = model["head"](model["final"](model["blocks"](x)))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # averaged over tokens


def evaluate(step):
    with torch.no_grad():
        run.log({"eval/loss": loss_of(*held_out)}, step=step)


names = open(args.data).read().split()
random.Random(0).shuffle(names)  # the held-out names are the same for all seeds
names, held_out = names[:-HELD_OUT], batch(names[-HELD_OUT:])
random.Random(args.seed).shuffle(names)
torch.manual_seed(args.seed)
model = nn.ModuleDict({"wte": nn.Embedding(27, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH),
                       "blocks": nn.Sequential(*(Block() for _ in range(8))),
                       "head": nn.Linear(WIDTH, 27, False),
                       "final": norm() if args.placement == "pre" else nn.Identity()})
optimizer = torch.optim.AdamW(model.parameters(), args.lr, betas=(0.85, 0.99), weight_decay=0.01)
if run.step == 0:
    run.log({"parameters": sum(p.numel() for p in model.parameters())}, step=0)
else:  # an earlier attempt stored this
    state = torch.load(run.state / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["generator"])

for step in range(run.step, args.steps):
    if step % args.every == 0:
        evaluate(step)
        run.progress(step, args.steps)
    for group in optimizer.param_groups:
        group["lr"] = args.lr * (1 - step / args.steps)
    loss = loss_of(*batch([names[step % len(names)]]))
    run.log({"train/loss": loss}, step=step)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.checkpoint and (step + 1) % args.checkpoint == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "generator": torch.get_rng_state()}, run.state / "state.pt")
        run.checkpoint(step + 1)
evaluate(args.steps)
