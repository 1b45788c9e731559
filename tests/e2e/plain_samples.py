"""Names drawn from a checkpoint in plain NumPy, to hold `ablate generate` against: plain_samples.py FILE COUNT SEED T K P.

Knows the model of the end-to-end tests only: pre-LayerNorm, learned positions, biases, exact GELU, causal softmax.
"""
import json
import math
import sys

import numpy as np
from safetensors import safe_open

MASK = 2**64 - 1


def uniform(seed, sample, position):
    """Element (sample, position) of U(seed), whose rows have 2^32 elements."""
    z = (seed + ((sample << 32) + position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def norm(x, p, name, eps):
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return z * p[f"{name}.weight"] + p[f"{name}.bias"]


def linear(x, p, name):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def scores(p, model, tokens):
    """Scores of the token after `tokens`."""
    n, heads, eps = len(tokens), model["heads"], model["norm"]["eps"]
    x = p["token_embedding.weight"][tokens] + p["position_embedding.weight"][:n]
    hidden = np.triu(np.full((n, n), -np.inf), 1)
    for i in range(model["layers"]):
        block = f"block.{i}"
        qkv = linear(norm(x, p, f"{block}.attention.norm", eps), p, f"{block}.attention.qkv")
        q, k, v = (part.reshape(n, heads, -1).transpose(1, 0, 2) for part in np.split(qkv, 3, axis=1))
        seen = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2]) + hidden) @ v
        x = x + linear(seen.transpose(1, 0, 2).reshape(n, -1), p, f"{block}.attention.projection")
        up = linear(norm(x, p, f"{block}.feed_forward.norm", eps), p, f"{block}.feed_forward.up")
        gelu = up * (1 + np.vectorize(math.erf)(up / math.sqrt(2))) / 2
        x = x + linear(gelu, p, f"{block}.feed_forward.down")
    return linear(norm(x, p, "final_norm", eps), p, "head")[-1]


def draw(z, u, temperature, top_k, top_p):
    probabilities = softmax(z / temperature)
    kept = np.argsort(-probabilities, kind="stable")[: top_k or len(z)]
    q = probabilities[kept] / probabilities[kept].sum()
    count = min(np.searchsorted(np.cumsum(q), top_p) + 1, len(q)) if top_p < 1 else len(q)
    q = q[:count] / q[:count].sum()
    return int(kept[min(np.searchsorted(np.cumsum(q), u, side="right"), count - 1)])


def main():
    path, (count, seed), (temperature, top_p) = sys.argv[1], map(int, sys.argv[2:4]), map(float, (sys.argv[4], sys.argv[6]))
    with safe_open(path, "numpy") as file:
        p = {name: file.get_tensor(name).astype(np.float64) for name in file.keys()}
        metadata = file.metadata()
    model, vocabulary = json.loads(metadata["model"]), json.loads(metadata["vocabulary"])
    for sample in range(count):
        tokens = [vocabulary["bos"]]
        while len(tokens) <= model["context"]:
            u = uniform(seed, sample, len(tokens) - 1)
            token = draw(scores(p, model, tokens), u, temperature, int(sys.argv[5]), top_p)
            if token == vocabulary["bos"]:
                break
            tokens.append(token)
        print("".join(vocabulary["characters"][token] for token in tokens[1:]))


if __name__ == "__main__":
    main()
