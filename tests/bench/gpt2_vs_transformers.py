"""Seconds a step and peak memory of fine-tuning GPT-2 with 124M parameters, beside transformers.

    python gpt2_vs_transformers.py PATH/TO/trainer_vs_eager [rounds [threads]]

Each way is a process of its own that makes a step of one window of 512 tokens when told to, in turn
with the others: our trainers, and GPT2LMHeadModel with fused attention and the fused AdamW, in
float32 and under bfloat16 autocast. Prints a line per way: median seconds of wall and of processor
time a step, peak resident memory, and the median ratio of its processor time to transformers' in
the same precision, so that above 1 ours is faster.
"""

import json
import statistics
import subprocess
import sys
import time

WINDOW = 512


def serve(precision, threads):
    """Makes steps with transformers, as trainer_vs_eager does with ours."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = GPT2Config(attn_implementation="sdpa", n_positions=WINDOW, resid_pdrop=0., embd_pdrop=0.,
                        attn_pdrop=0.)
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for line in sys.stdin:
        steps = int(line)
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            tokens = torch.randint(config.vocab_size, (1, WINDOW))
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
                loss = model(tokens, labels=tokens).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss.item()
        print(1e3 * (time.perf_counter() - wall) / steps,
              1e3 * (time.process_time() - processor) / steps, flush=True)


def peak_gigabytes(process):
    with open(f"/proc/{process.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) / 1e6


def step(process):
    process.stdin.write("1\n")
    process.stdin.flush()
    return tuple(1e-3 * float(text) for text in process.stdout.readline().split()[:2])


def main(program, rounds, threads):
    def start(*command):
        return subprocess.Popen([*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    ways = {}
    for precision in ("float32", "bfloat16"):
        ways["transformers", precision] = start(sys.executable, __file__, "--serve", precision,
                                                str(threads))
        ways["torch", precision] = start(program, "gpt2", "torch", precision, str(threads))
    if threads == 1:
        ways["native", "float32"] = start(program, "gpt2", "native", "float32", "1")
    times = {way: [] for way in ways}
    for _ in range(rounds + 1):
        for way, process in ways.items():
            times[way].append(step(process))
    for (name, precision), process in ways.items():
        own = times[name, precision][1:]  # the first warms up
        other = times["transformers", precision][1:]
        print(json.dumps({
            "way": name, "precision": precision, "threads": threads,
            "wall_s": round(statistics.median(wall for wall, _ in own), 2),
            "processor_s": round(statistics.median(processor for _, processor in own), 2),
            "peak_GB": round(peak_gigabytes(process), 2),
            "ratio": round(statistics.median(b[1] / a[1] for a, b in zip(own, other)), 2)}), flush=True)
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5,
             int(sys.argv[3]) if len(sys.argv) > 3 else 1)
