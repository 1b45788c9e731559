"""Simulates the error rates that docs/explanation/statistics.md prints, with an implementation of
the tests that is independent of the program's. Takes some minutes. Needs NumPy and SciPy.

Usage: simulate_rates.py [untuned|tuned|widened|guards|noise|skewed|ceiling]..."""
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


def noise():
    """Tuned rows whose runs have other noise than the baseline's. A row is *doubtful* if at the
    selected values one setting's standard deviation is at least twice the other's, and that setting
    selected several values. Prints the share of experiments with p <= 0.05, and what remains of it
    if doubtful rows need p <= 0.03, 0.02 or 0.01, or can't be established. With a difference the
    share in its direction is the power."""
    rng = np.random.default_rng(5)
    candidates = np.arange(5)
    levels = (LEVEL, .03, .02, .01, 0)
    print("p <= 0.05, and if doubtful p <= 0.03, 0.02, 0.01, never")
    for n, effect in ((6, 1.6), (8, 1.2), (12, .9)):
        for ratio in (1, 3, 10):
            for gap, apart in ((0, 0), (1, 0), (1, 2)):
                for size, experiments in ((0, 10000), (effect, 2000)):
                    found = np.zeros(len(levels))
                    for _ in range(experiments):
                        a = rng.normal(size=(n, 5)) + gap * abs(candidates - 2)
                        b = (ratio * rng.normal(size=(n, 5)) + gap * abs(candidates - 2 - apart) -
                             size * (1 + ratio ** 2) ** .5)
                        p, _, *chosen = reselection(a, b)
                        if p > LEVEL:
                            continue
                        runs = [select(losses)[0] for losses in (a, b)]
                        d = runs[1] - runs[0]
                        if sign_flip_p(d[None])[0] > .2 or size and d.mean() > 0:
                            continue
                        deviations = [of.std(ddof=1) for of in runs]
                        noisier = int(deviations[1] > deviations[0])
                        doubtful = (max(deviations) >= 2 * min(deviations) and
                                    len(set(chosen[noisier])) > 1)
                        found += [p <= level or not doubtful for level in levels]
                    rates = " ".join(f"{rate:.3f}" for rate in found / experiments)
                    print(f"{n} seeds, noise 1 and {ratio}, V {gap}, {apart} apart, difference"
                          f" {size} deviations: {rates} ({experiments})", flush=True)


def skewness(differences):
    apart = differences - differences.mean(1, keepdims=True)
    return (apart ** 3).mean(1) / (apart ** 2).mean(1) ** 1.5


def skewed():
    """Untuned rows with differences of mean 0 whose distribution isn't symmetric."""
    rng = np.random.default_rng(6)
    experiments = 20000
    draws = {"normal": rng.normal, "exponential": lambda size: rng.exponential(size=size) - 1,
             "lognormal, sigma 0.5": lambda size: np.exp(rng.normal(size=size) / 2) - np.exp(.125),
             "lognormal, sigma 1": lambda size: np.exp(rng.normal(size=size)) - np.exp(.5)}
    for name, draw in draws.items():
        for n in (5, 6, 8, 12, 16):
            d = draw(size=(experiments, n))
            p_t = stats.ttest_1samp(d, 0, axis=1).pvalue
            # With 16 seeds there are many patterns.
            part = slice(experiments if n < 16 else 4000)
            rejected = (sign_flip_p(d[part]) if n > 5 else p_t) <= LEVEL
            warned = abs(skewness(d[part])) >= 1.2
            print(f"{name}, {n} seeds, {'probable' if n == 5 else 'established'}:"
                  f" {rejected.mean():.3f}, coverage {(p_t > LEVEL).mean():.3f}, warned"
                  f" {warned.mean():.2f}, of the rejected {warned[rejected].mean():.2f}", flush=True)


def ceiling():
    """Coverage of Student's interval if many pairs are equal. Losses are rounded to 1/4, and 0 if
    negative."""
    rng = np.random.default_rng(7)
    experiments = 20000

    def draw(mean, size):
        return np.maximum(np.round(4 * (mean + rng.normal(size=size))) / 4, 0)

    for n in (6, 8, 12):
        for means in ((-.5, -.5), (-1, -.5), (-1.5, -1), (-1.5, -.5), (-2, -1)):
            true = np.diff([draw(mean, 4000000).mean() for mean in means])
            d = np.diff([draw(mean, (experiments, n)) for mean in means], axis=0)[0]
            error = d.std(1, ddof=1) / n ** .5
            covers = abs(d.mean(1) - true) <= stats.t.ppf(.975, n - 1) * error
            exists, tied = error > 0, 2 * (d == 0).sum(1) >= n
            print(f"{n} seeds, means {means}: covers {covers[exists].mean():.3f}, with half of the"
                  f" pairs equal {covers[exists & tied].mean():.3f} ({(exists & tied).mean():.2f} of"
                  f" experiments), with fewer {covers[exists & ~tied].mean():.3f}", flush=True)


parts = {"untuned": untuned, "tuned": tuned, "widened": widened, "guards": guards, "noise": noise,
         "skewed": skewed, "ceiling": ceiling}
for part in sys.argv[1:] or parts:
    parts[part]()
