"""Simulates the error rates that docs/explanation/statistics.md prints, with an implementation of
the tests that is independent of the program's. Takes some minutes. Needs NumPy and SciPy.

Usage: simulate_rates.py [untuned|tuned|widened|guards]..."""
import functools
import sys

import numpy as np
from scipy import stats

LEVEL = 0.05


@functools.cache
def patterns(n):
    """Every pattern of flipped seeds that doesn't flip the last, as (pattern, seed)."""
    return ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1).astype(bool)


def print_rate(name, rate, experiments):
    print(f"{name}: {rate:.4f}, standard error {(rate * (1 - rate) / experiments) ** 0.5:.4f},"
          f" {experiments} experiments", flush=True)


def sign_flip_p(differences):
    """p of each row of (experiment, seed)."""
    signs = 1 - 2.0 * patterns(differences.shape[1])
    p = []
    for part in np.array_split(differences, -(-len(differences) // 500)):
        sums = np.abs(part @ signs.T)
        p.append((sums >= sums[:, :1] * (1 - 1e-12)).mean(1))
    return np.concatenate(p)


def select(losses):
    """Leave-one-seed-out selection. Returns the selected losses and candidates of (…, seed,
    candidate)."""
    chosen = (losses.sum(-2, keepdims=True) - losses).argmin(-1)
    return np.take_along_axis(losses, chosen[..., None], -1)[..., 0], chosen


def reselection(a, b):
    """Returns p of the permutation test with reselection, p of the t-test, and both settings'
    candidates."""
    flipped = patterns(len(a))[:, :, None]
    of_a, chosen_a = select(np.where(flipped, b, a))
    of_b, chosen_b = select(np.where(flipped, a, b))
    d = of_b - of_a
    share = d.sum(1) ** 2 / (d ** 2).sum(1)  # rises with |t|
    t = abs(d[0].mean()) / (d[0].std(ddof=1) / len(a) ** 0.5)
    return ((share >= share[0] * (1 - 1e-12)).mean(), 2 * stats.t.sf(t, len(a) - 1), chosen_a[0],
            chosen_b[0])


def untuned():
    rng = np.random.default_rng(1)
    experiments = 20000
    d = rng.normal(size=(experiments, 24))
    for looks in ([8], [6, 12], [8, 16], [6, 12, 18, 24], [8, 12, 16, 20, 24],
                  list(range(6, 25, 3)), list(range(6, 25))):
        going, found = np.arange(experiments), 0
        for n in looks:
            # With more than 12 seeds the t-test is close to the permutation test.
            p = (sign_flip_p(d[going, :n]) if n <= 12 else
                 stats.ttest_1samp(d[going, :n], 0, axis=1).pvalue)
            found += (p <= LEVEL).sum()
            going = going[p > LEVEL]
        print_rate(f"looks at {looks}", found / experiments, experiments)

    experiments = 4000
    for rows in (1, 2, 5, 11):
        for n in (6, 8, 12):
            losses = rng.normal(size=(experiments, rows + 1, n))
            d = losses[:, 1:] - losses[:, :1]
            p = np.min([sign_flip_p(d[:, row]) for row in range(rows)], 0)
            grade = "established"
            if rows * 2.0 ** (1 - n) > LEVEL:
                p, grade = stats.ttest_1samp(d, 0, axis=2).pvalue.min(1), "probable"
            print_rate(f"{rows} untuned rows, {n} seeds, {grade}", (p * rows <= LEVEL).mean(),
                       experiments)

    experiments, n, margin = 20000, 8, 2
    d = margin + rng.normal(size=(experiments, n)) * 2 ** 0.5
    error = d.std(1, ddof=1) / n ** 0.5
    p = stats.t.sf((margin - np.abs(d.mean(1))) / error, n - 1)
    print_rate("equivalent at the margin", (p <= LEVEL).mean(), experiments)


def tuned():
    rng = np.random.default_rng(2)
    candidates = 5

    def draw(settings, n, correlation, gap, apart):
        of_seed = rng.normal(size=n)
        for setting in range(settings):
            shared = rng.normal(size=n)
            own = (correlation ** 0.5 * shared[:, None] +
                   (1 - correlation) ** 0.5 * rng.normal(size=(n, candidates)))
            best = apart if setting == 1 else 0
            yield of_seed[:, None] + own + gap * np.abs(np.arange(candidates) - best)

    # Rows, seeds, correlation between candidates, gap between neighbours, best values apart.
    designs = [(1, 6, 0, 0, 0, 2000), (1, 8, 0, 0, 0, 2000), (2, 6, 0, 0, 0, 2000),
               (2, 8, 0, 0, 0, 2000), (2, 8, .8, 0, 0, 2000), (2, 8, .8, 2, 0, 2000),
               (5, 8, .8, 0, 0, 2000), (11, 8, 0, 0, 0, 1000)]
    designs += [(1, n, *curves, 2000) for n in (6, 8)
                for curves in ((0, .5, 1), (0, 1, 2), (.8, .5, 2), (.8, 2, 1))]
    designs += [(1, 12, 0, 0, 0, 1000), (2, 12, 0, 0, 0, 500)]
    for rows, n, correlation, gap, apart, experiments in designs:
        established = 0
        for _ in range(experiments):
            losses = list(draw(rows + 1, n, correlation, gap, apart))
            p = min(reselection(losses[0], losses[row])[0] for row in range(1, rows + 1))
            established += p * rows <= LEVEL
        print_rate(f"{rows} tuned rows, {n} seeds, correlation {correlation}, gap {gap}, best"
                   f" {apart} apart, established", established / experiments, experiments)


def widened():
    rng = np.random.default_rng(3)
    experiments, n, tried = 3000, 8, 3
    for name, mean in (("flat", [0, 0, 0, 0]), ("falling by .3", [.9, .6, .3, 0]),
                       ("falling by .6", [1.8, 1.2, .6, 0]), ("best third", [1, .5, 0, .5])):
        for correlation in (0, .8):
            at_edge = by_p = 0
            for _ in range(experiments):
                a, b = (correlation ** 0.5 * rng.normal(size=n)[:, None] +
                        (1 - correlation) ** 0.5 * rng.normal(size=(n, tried + 1)) + np.array(mean)
                        for _ in range(2))
                narrow, _, *chosen = reselection(a[:, :tried], b[:, :tried])
                wide = reselection(a, b)[0]
                is_edge = any(np.bincount(of, minlength=tried).argmax() == tried - 1
                              for of in chosen)
                at_edge += (wide if is_edge else narrow) <= LEVEL
                by_p += min(narrow, wide) <= LEVEL
            print_rate(f"{name}, correlation {correlation}, widened at the edge",
                       at_edge / experiments, experiments)
            print_rate(f"{name}, correlation {correlation}, widened because of p",
                       by_p / experiments, experiments)


def keeps_opposite(signed, differences):
    """Returns True if the inverted interval reaches beyond 0, against the mean of the differences
    (pattern, seed), the observed ones first. `signed` is -1 for flipped seeds."""
    shift = -np.sign(differences[0].mean()) * abs(differences[0]).max() * np.geomspace(1e-4, 10, 80)
    n = differences.shape[1]
    sums = differences.sum(1)[:, None] - shift * signed.sum(1)[:, None]
    squares = ((differences ** 2).sum(1)[:, None] -
               2 * shift * (signed * differences).sum(1)[:, None] + n * shift ** 2)
    share = sums ** 2 / np.maximum(squares, 1e-300)
    return ((share >= share[0] * (1 - 1e-12)).mean(0) > LEVEL).any()


def guards():
    """What a tuned row with p <= 0.05 may need in addition. With a ceiling, losses are rounded to
    1/4, 0 if negative, and independent."""
    rng = np.random.default_rng(4)
    candidates = np.arange(5)

    def curve(gap, best, height=0.):
        return gap * abs(candidates - best) + height

    # Curves of baseline and row, correlation between candidates, ceiling, direction (0: any).
    designs = {f"equal at a ceiling {height}, {name}": (*curves, 0, True, 0)
               for height in (-2.5, -1.5, -.5) for name, curves in {
                   "V1 and V5, 0 apart": (curve(1, 2, height), curve(5, 2, height)),
                   "V1 and V5, 1 apart": (curve(1, 1, height), curve(5, 2, height)),
                   "flat and V5": (curve(0, 2, height), curve(5, 2, height)),
                   "V3, 2 apart": (curve(3, 1, height), curve(3, 3, height))}.items()}
    designs |= {"equal, V0.5 and V5": (curve(.5, 2), curve(5, 2), 0, False, 0),
                "equal, flat and V5": (curve(0, 2), curve(5, 2), 0, False, 0),
                "equal, flat": (curve(0, 2), curve(0, 2), 0, False, 0)}
    designs |= {f"{effect} lower, {name}": (*curves, correlation, False, -1)
                for effect in (1, 1.5, 2) for correlation in (0, .8) for name, curves in {
                    f"nearly alike, correlation {correlation}": (curve(.1, 2), curve(.1, 2, -effect)),
                    f"V1, 0 apart, {correlation}": (curve(1, 2), curve(1, 2, -effect)),
                    f"V1, 1 apart, {correlation}": (curve(1, 1), curve(1, 2, -effect)),
                    f"V3, 2 apart, {correlation}": (curve(3, 1), curve(3, 3, -effect)),
                    f"V0.5 and V5, {correlation}": (curve(.5, 2), curve(5, 2, -effect))}.items()}
    designs |= {f"{height} against a ceiling, {name}": (*curves, 0, True, -1)
                for height in (.5, 1) for name, curves in {
                    "V1, 0 apart": (curve(1, 2, height), curve(1, 2, -2.5)),
                    "V3, 1 apart": (curve(3, 1, height), curve(3, 2, -2.5))}.items()}
    print("p, and interval, and p of selected <= 0.1, <= 0.2, and at most half tied")
    for name, (mean_a, mean_b, correlation, ceiling, direction) in designs.items():
        for n, experiments in ((6, 2000), (8, 2000), (10, 1000), (12, 400)):
            signed, found = 1 - 2. * patterns(n), np.zeros(5)
            for _ in range(experiments):
                a, b = (correlation ** .5 * rng.normal(size=n)[:, None] +
                        (1 - correlation) ** .5 * rng.normal(size=(n, 5)) + mean
                        for mean in (mean_a, mean_b))
                if ceiling:
                    a, b = np.maximum(np.round(4 * a) / 4, 0), np.maximum(np.round(4 * b) / 4, 0)
                flipped = patterns(n)[:, :, None]
                d = select(np.where(flipped, a, b))[0] - select(np.where(flipped, b, a))[0]
                if not d[0].any() or direction * d[0].mean() < 0:
                    continue
                share = d.sum(1) ** 2 / np.maximum((d ** 2).sum(1), 1e-300)
                if (share >= share[0] * (1 - 1e-12)).mean() > LEVEL:
                    continue
                p = sign_flip_p(d[:1])[0]
                found += [1, not keeps_opposite(signed, d), p <= .1, p <= .2,
                          2 * (d[0] == 0).sum() <= n]
            rates = " ".join(f"{rate:.3f}" for rate in found / experiments)
            print(f"{name}, {n} seeds: {rates} ({experiments})", flush=True)


parts = {"untuned": untuned, "tuned": tuned, "widened": widened, "guards": guards}
for part in sys.argv[1:] or parts:
    parts[part]()
