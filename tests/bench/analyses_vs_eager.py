"""Processor milliseconds of a point of a loss landscape and of a product with the Hessian, of the published recall
model on 5,000 held-out tokens: ours beside a straightforward script in PyTorch, one thread each, by turns.

    python analyses_vs_eager.py PATH/TO/analyses_vs_eager [rounds]

Prints a JSON object per analysis: medians, and the median of the rounds' ratios of PyTorch's time to ours. PyTorch
keeps the graph of the gradient for all products, as ours does, and orthogonalises nothing.
"""

import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import torch.nn.functional as F

from eager_models import RecallModel

torch.set_num_threads(1)

ROWS = 121  # of 41 tokens


def plane(model, parameters):
    """A direction whose rows have the norms of the parameters'."""
    direction = [torch.randn_like(p) for p in parameters]
    return [d * (p.norm(dim=1, keepdim=True) / d.norm(dim=1, keepdim=True)) if p.dim() > 1 else 0 * d
            for d, p in zip(direction, parameters)]


def landscape(model, tokens, targets):
    parameters = [p.detach().clone() for p in model.parameters()]
    first, second = plane(model, parameters), plane(model, parameters)
    model.eval()

    def point(number):
        alpha, beta = (number % 41 - 20) / 20, (number // 41 % 41 - 20) / 20
        with torch.no_grad():
            for p, w, d, e in zip(model.parameters(), parameters, first, second):
                p.copy_(w + alpha * d + beta * e)
            return F.cross_entropy(model(tokens), targets).item()

    return point


def hessian(model, tokens, targets):
    parameters = list(model.parameters())
    # The fused kernel on CPUs can't be differentiated twice.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loss = F.cross_entropy(model(tokens), targets)
    gradient = torch.autograd.grad(loss, parameters, create_graph=True)

    def product(number):
        vector = [torch.randint(2, p.shape) * 2. - 1 for p in parameters]
        made = torch.autograd.grad(gradient, parameters, vector, retain_graph=True)
        return sum((a * b).sum() for a, b in zip(made, vector)).item()

    return product


def compare(name, make, program, count, rounds):
    torch.manual_seed(0)
    theirs = make(RecallModel(), torch.randint(400, (ROWS, 41)), torch.randint(400, (ROWS,)))
    ours = subprocess.Popen([program, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    times = []
    for round_ in range(rounds + 1):
        begin = time.process_time()
        for number in range(count):
            theirs(round_ * count + number)
        eager = 1e3 * (time.process_time() - begin) / count
        ours.stdin.write(f"{count}\n")
        ours.stdin.flush()
        times.append((eager, float(ours.stdout.readline())))
    ours.stdin.close()
    ours.wait()
    times = times[1:]  # the first warms both up
    print(json.dumps({
        "analysis": name,
        "eager_ms": round(statistics.median(a for a, _ in times), 3),
        "ours_ms": round(statistics.median(b for _, b in times), 3),
        "ratio": round(statistics.median(a / b for a, b in times), 2)}), flush=True)


if __name__ == "__main__":
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    compare("landscape", landscape, sys.argv[1], 20, wanted)
    compare("hessian", hessian, sys.argv[1], 5, wanted)
