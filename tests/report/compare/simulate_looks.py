"""Simulates the rules for repeated looks, sessions of changes and ties that
docs/explanation/statistics.md describes, and prints every number that it states about them. Takes
some ten minutes. Needs NumPy and SciPy; with the package autojudge 1.0.1 `session` includes it.

Usage: simulate_looks.py [rule|session|noise|next|tuned|ties|reference]..."""
import sys

import numpy as np
from scipy import stats

LEVEL = .05
BETS, WEIGHTS = (.3, 1, 2.5), (.1, .45, .45)
DROP_BELOW, MOST_PAIRS = .5, 60


def log_evidence(differences, bets=BETS, weights=WEIGHTS, scale=None):
    """Returns log E after each pair, for positive differences. The last axis is the pairs."""
    pairs = np.arange(1, differences.shape[-1] + 1)
    if scale is None:
        scale = (np.cumsum(differences ** 2, -1) / pairs) ** .5
    x = differences / np.where(scale == 0, 1, scale)
    parts = [np.cumsum(np.log(2) - np.logaddexp(0, -2 * bet * x), -1) + np.log(weight)
             for bet, weight in zip(bets, weights)]
    return np.logaddexp.reduce(parts)


def two_sided(one_sided, differences):
    return np.logaddexp(one_sided(differences), one_sided(-differences)) - np.log(2)


def level_of_change(j, changes, level=LEVEL):
    return level * changes / ((j + changes - 1) * (j + changes))


def draw(rng, kind, shape):
    """Independent noise of mean 0 and, except for `growing` and `shrinking`, variance 1."""
    pairs = shape[-1]
    return {
        "normal": lambda: rng.normal(size=shape),
        "t3": lambda: rng.standard_t(3, shape) / 3 ** .5,
        "10 % with 5 sigma": lambda: (rng.normal(size=shape) / 3.4 ** .5 *
                                      np.where(rng.random(shape) < .1, 5, 1)),
        "rounded": lambda: np.round(rng.normal(size=shape)),
        "shrinking": lambda: rng.normal(size=shape) * np.exp(np.linspace(1, -1, pairs)),
        "growing": lambda: rng.normal(size=shape) * np.exp(np.linspace(-1, 1, pairs)),
        "drifting": lambda: rng.normal(size=shape) * np.exp(
            np.cumsum(.2 * rng.normal(size=shape), -1)),
        "lognormal": lambda: ((np.exp(rng.normal(size=shape)) - np.exp(.5)) /
                              ((np.e - 1) * np.e) ** .5),
    }[kind]()


def shares(values):
    return " / ".join(f"{value:.2f}" for value in values)


# One row, looked at after each pair.

def spending(rng, kind, pairs=30):
    """Returns critical p at each look from 3 to `pairs` (Lan & DeMets), for normal increments."""
    z = np.cumsum(rng.normal(size=(200000, pairs)), 1) / np.sqrt(np.arange(1, pairs + 1))
    alive, critical, used = np.ones(len(z), bool), np.full(pairs, np.inf), 0
    for k in range(2, pairs):
        share = (k + 1) / pairs
        spent = (2 - 2 * stats.norm.cdf(stats.norm.ppf(.975) / share ** .5)
                 if kind == "O'Brien-Fleming" else LEVEL * np.log(1 + (np.e - 1) * share))
        want = max(spent - used, 0) * len(z)
        if want >= 5:
            sizes = abs(z[alive, k])
            critical[k] = np.quantile(sizes, 1 - want / len(sizes))
            alive[np.where(alive)[0][sizes > critical[k]]] = False
            used = 1 - alive.mean()
    return 2 * stats.norm.sf(critical)


def p_of_t(d):
    n = np.arange(1, d.shape[1] + 1)
    mean = np.cumsum(d, 1) / n
    with np.errstate(all="ignore"):
        t = mean / np.sqrt((np.cumsum(d * d, 1) - n * mean ** 2) / (n - 1) / n)
        p = 2 * stats.t.sf(abs(t), n - 1)
    p[:, :2] = 1
    return np.nan_to_num(p, nan=1)


def running_median(d):
    sizes = abs(d)
    return 1.48 * np.stack([np.median(sizes[:, :k + 1], 1) for k in range(d.shape[1])], 1)


def plugged_in(d):
    """Bets at the effect that the past pairs estimate, shrunk to 0.6."""
    n = np.arange(1, d.shape[1] + 1)
    scale = (np.cumsum(d * d, 1) / n) ** .5
    effect = np.clip((8 * .6 + (np.cumsum(d, 1) - d) / scale) / (n + 7), .1, .85)
    return np.cumsum(np.log(2) - np.logaddexp(0, -2 * effect / (1 - effect ** 2) * d / scale), 1)


def rule():
    rng = np.random.default_rng(1)
    bounds = {kind: spending(rng, kind) for kind in ("O'Brien-Fleming", "Pocock")}
    enough = np.log(1 / LEVEL)

    def by(one_sided):
        return lambda d: two_sided(one_sided, d) >= enough

    def with_bets(*bets, weights=None):
        return by(lambda d: log_evidence(d, bets, weights or [1 / len(bets)] * len(bets)))

    rules = {"t each time": lambda d: p_of_t(d) <= LEVEL,
             **{f"{kind} on t": lambda d, kind=kind: p_of_t(d) <= bounds[kind] for kind in bounds},
             "chosen": by(log_evidence)}
    others = {"bets .3, .7, 1.5, 3, 6": with_bets(.3, .7, 1.5, 3, 6),
              "bets .3, 1, 3": with_bets(.3, 1, 3, weights=(.1, .45, .45)),
              "bets .8, 2.5": with_bets(.8, 2.5), "bets .7, 1.5": with_bets(.7, 1.5),
              "bet 1.4": with_bets(1.4),
              "median": by(lambda d: log_evidence(d, scale=running_median(d))),
              "largest": by(lambda d: log_evidence(d, scale=np.maximum.accumulate(abs(d), 1))),
              "plugged in": by(plugged_in)}

    print("Error at any look from 1 to 30 pairs (t: from 3), two-sided, 20,000 data sets")
    kinds = ("normal", "t3", "10 % with 5 sigma", "rounded", "shrinking", "growing", "drifting",
             "lognormal")
    data = {kind: draw(rng, kind, (20000, 30)) for kind in kinds}
    for name, rejects in rules.items():
        errors = [f"{kind} {rejects(data[kind]).any(1).mean():.3f}" for kind in kinds]
        print(f"{name}: {', '.join(errors)}", flush=True)
    print("Found by 8 / 12 / 20 / 30 pairs, and mean pairs used; 10,000 data sets")
    for kind in ("normal", "t3"):
        noise = draw(rng, kind, (10000, 30))
        for name, rejects in (rules | others).items():
            line = f"{kind}, {name}:"
            for effect in (.5, 1, 1.5):
                found = rejects(noise + effect)
                by_then = [found[:, :n].any(1).mean() for n in (8, 12, 20, 30)]
                used = np.where(found.any(1), found.argmax(1) + 1, 30).mean()
                line += f" {effect}: {shares(by_then)}, {used:.1f};"
            print(line, flush=True)
    print("Small effects, found by 100 / 400 pairs; 2,000 data sets")
    noise = rng.normal(size=(2000, 400))
    for name in ("chosen", "bets .3, .7, 1.5, 3, 6", "bets .8, 2.5"):
        line = f"{name}:"
        for effect in (.15, .2, .3, .4):
            found = (rules | others)[name](noise + effect)
            line += f" {effect}: {shares([found[:, :n].any(1).mean() for n in (100, 400)])};"
        print(line, flush=True)
    equal = two_sided(log_evidence, np.ones((1, 40)))[0]
    print("Equal differences that establish a row at .05, .01, .001:",
          [int((equal >= np.log(1 / level)).argmax()) + 1 for level in (.05, .01, .001)])


# A session of changes.

def session(rng, sessions, changes, real, level=level_of_change, below=DROP_BELOW, most=MOST_PAIRS,
            kind="normal", effect=1.):
    """Tries changes one after another against a moving baseline, paired by seed. A run's noise on
    its seed has half the variance of a paired difference. The baseline's runs are shared by the
    changes that are compared with it. Returns an array of kept noise, found and runs by session."""
    def noise():
        return draw(rng, kind, (sessions, most)) * .5 ** .5

    baseline, has = noise(), np.zeros(sessions, int)
    is_real = np.argsort(rng.random((sessions, changes)), 1) < real
    wrong, found, runs, kept_before = (np.zeros(sessions) for _ in range(4))
    for j in range(changes):
        own = noise()
        evidence = log_evidence(baseline - own + effect * is_real[:, j, None])
        enough = evidence >= -np.log(level(j + 1, changes + 1, kept_before))[:, None]
        ends = enough | (evidence < np.log(below))
        ends[:, -1] = True
        last = ends.argmax(1)
        kept, pairs = enough[np.arange(sessions), last], last + 1
        runs += pairs + np.maximum(pairs - has, 0)
        has = np.where(kept, pairs, np.maximum(pairs, has))
        wrong += kept & ~is_real[:, j]
        found += kept & is_real[:, j]
        kept_before += kept
        # The runs of a kept change are the new baseline's; on further seeds it will get new ones.
        known = np.arange(most) < pairs[:, None]
        baseline = np.where(kept[:, None], np.where(known, own, noise()), baseline)
    return np.array([wrong, found, runs])


LEVELS = {"open end": lambda j, m, kept: level_of_change(j, m) + 0 * kept,
          "even, ends after 100": lambda j, m, kept: LEVEL / m + 0 * kept,
          "6/(pi j)^2": lambda j, m, kept: LEVEL * 6 / (np.pi * j) ** 2 + 0 * kept,
          "e-LOND": lambda j, m, kept: LEVEL / m * (kept + 1)}


def single_runs(rng, sessions, changes, real, keeps):
    """A session of one run per change and baseline. `keeps` returns true if the row of values so
    far, with the statuses of all but the last, ends in a change to keep."""
    wrong, found = np.zeros(sessions), np.zeros(sessions)
    for s in range(sessions):
        is_real, value = np.argsort(rng.random(changes)) < real, 0.
        values, kept = [rng.normal() * .5 ** .5], [True]
        for j in range(changes):
            values.append(value - is_real[j] + rng.normal() * .5 ** .5)
            kept.append(keeps(values, kept))
            value -= is_real[j] and kept[-1]
            wrong[s] += kept[-1] and not is_real[j]
            found[s] += kept[-1] and is_real[j]
    return np.array([wrong, found, np.full(sessions, changes + 1.)])


def better_than_best(values, kept):
    return values[-1] < min(value for value, is_kept in zip(values, kept) if is_kept)


def autojudge_keeps(accepted):
    import auto_judge

    def keeps(values, kept):
        status = [auto_judge.Status.KEEP if of else auto_judge.Status.DISCARD for of in kept]
        rows = [auto_judge.Experiment(i + 1, str(i), 1 + .002 * value, 1., of, "")
                for i, (value, of) in enumerate(zip(values, status + [auto_judge.Status.KEEP]))]
        return auto_judge.analyze(rows).value.verdict.value in accepted

    return keeps


def fixed_pairs(rng, sessions, changes, real, pairs, keeps):
    baseline = rng.normal(size=(sessions, pairs)) * .5 ** .5
    is_real = np.argsort(rng.random((sessions, changes)), 1) < real
    wrong, found, runs = np.zeros(sessions), np.zeros(sessions), np.full(sessions, 1. * pairs)
    for j in range(changes):
        own = rng.normal(size=(sessions, pairs)) * .5 ** .5
        kept = keeps(baseline - own + is_real[:, j, None])
        wrong += kept & ~is_real[:, j]
        found += kept & is_real[:, j]
        runs += pairs
        baseline = np.where(kept[:, None], own, baseline)
    return np.array([wrong, found, runs])


def session_table():
    changes = 99
    designs = {"one run each, keep if better":
               lambda real, rng: single_runs(rng, 200, changes, real, better_than_best)}
    try:
        designs |= {
            "autojudge, its README's loop": lambda real, rng: single_runs(
                rng, 200, changes, real,
                autojudge_keeps(("STRONG_KEEP", "KEEP", "MARGINAL", "RETEST"))),
            "autojudge, only KEEP and STRONG_KEEP": lambda real, rng: single_runs(
                rng, 200, changes, real, autojudge_keeps(("STRONG_KEEP", "KEEP")))}
    except ImportError:
        print("autojudge isn't installed")
    designs |= {
        "5 pairs, one-sided t-test at .05": lambda real, rng: fixed_pairs(
            rng, 2000, changes, real, 5,
            lambda d: stats.ttest_1samp(d, 0, axis=1, alternative="greater").pvalue <= LEVEL),
        "11 pairs, all better": lambda real, rng: fixed_pairs(
            rng, 2000, changes, real, 11, lambda d: (d > 0).all(1))}
    designs |= {f"E, {name}": lambda real, rng, of=of: session(rng, 2000, changes, real, of)
                for name, of in LEVELS.items()}
    designs |= {f"E, open end, dropped below {below} or after {most}":
                lambda real, rng, below=below, most=most: session(
                    rng, 2000, changes, real, LEVELS["open end"], below, most)
                for below in (.9, .5, .3, .2) for most in (30, 60)}
    print("Changes: 99. Sessions with kept noise, kept noise per session; then with 5 real changes"
          " of 1 sigma: kept noise per session, found, runs, found per 100 runs")
    for name, design in designs.items():
        try:
            nothing, some = (design(real, np.random.default_rng(2)) for real in (0, 5))
        except ImportError:
            print(f"{name}: the package isn't installed")
            continue
        print(f"{name}: {(nothing[0] > 0).mean():.3f}, {nothing[0].mean():.2f}, runs"
              f" {nothing[2].mean():.0f}; {some[0].mean():.2f}, {some[1].mean():.2f},"
              f" {some[2].mean():.0f}, {100 * some[1].mean() / some[2].mean():.2f}"
              f" ({nothing.shape[1]} sessions)", flush=True)
    first = session(np.random.default_rng(2), 200, changes, 0, LEVELS["open end"])
    print(f"The first 200 sessions without effect: {(first[0] > 0).sum():.0f} keep noise")
    for effect in (.5, 1.5, 2):
        some = session(np.random.default_rng(2), 2000, changes, 5, LEVELS["open end"],
                       effect=effect)
        print(f"E, open end, effect {effect}: found {some[1].mean():.2f},"
              f" runs {some[2].mean():.0f}")


def session_noise():
    print("Sessions of 99 changes without effect that keep noise, and of 94 with 5 real ones;"
          " 10,000 sessions")
    for kind in ("normal", "t3", "lognormal", "rounded", "shrinking", "growing"):
        rates = [(session(np.random.default_rng(3), 10000, 99, real, LEVELS["open end"],
                          kind=kind)[0] > 0).mean() for real in (0, 5)]
        print(f"{kind}: {rates[0]:.4f}, {rates[1]:.4f}", flush=True)


# The variant that gets the next seed.

def next_seed():
    def race(rng, variants, real, effect, score, races=2000, most=60, budget=300):
        is_real = np.argsort(rng.random((races, variants)), 1) < real
        d = ((rng.normal(size=(races, 1, most)) - rng.normal(size=(races, variants, most))) *
             .5 ** .5 + effect * is_real[:, :, None])
        evidence = log_evidence(d)
        sums, scale = np.cumsum(d, 2), (np.cumsum(d * d, 2) / np.arange(1, most + 1)) ** .5
        n, race_of = np.zeros((races, variants), int), np.arange(races)
        found_at, wrong = np.full(races, budget), np.zeros(races, bool)
        going = np.ones(races, bool)
        for step in range(budget):
            at = np.maximum(n - 1, 0)[..., None]
            e, total, size = (np.take_along_axis(of, at, 2)[..., 0]
                              for of in (evidence, sums, scale))
            rank = np.where(n < most, score(rng, n, np.where(n, e, 0), total / size), -1e9)
            c = (rank - 1e-6 * n).argmax(1)
            n[race_of, c] += 1
            hit = going & (evidence[race_of, c, n[race_of, c] - 1] >= np.log(variants / LEVEL))
            found_at[hit] = step + 1
            wrong |= hit & ~is_real[race_of, c]
            going &= ~hit
            if not going.any():
                break
        return found_at.mean(), np.median(found_at), wrong.mean()

    def average(n, total):
        return np.where(n < 2, 1e6, total / np.maximum(n, 1))

    scores = {"round robin": lambda rng, n, e, total: -n.astype(float),
              "largest E": lambda rng, n, e, total: e,
              "largest mean": lambda rng, n, e, total: average(n, total),
              "UCB": lambda rng, n, e, total: average(n, total) + 1 / np.sqrt(np.maximum(n, 1)),
              "Thompson": lambda rng, n, e, total: (average(n, total) + rng.normal(size=n.shape) /
                                                    np.sqrt(np.maximum(n, 1)))}
    print("Runs of variants until one is established (mean, median; at most 300), and wrong; 2,000")
    for variants, real, effect in ((4, 1, 1), (8, 1, 1), (16, 1, 1), (8, 3, 1), (8, 1, 1.5),
                                   (8, 1, .5)):
        for name, score in scores.items():
            mean, median, wrong = race(np.random.default_rng(4), variants, real, effect, score)
            print(f"{variants} variants, {real} real, effect {effect}, {name}: {mean:.0f},"
                  f" {median:.0f}, {wrong:.3f}", flush=True)


# Tuned rows, with values that are selected on earlier seeds.

def selected_differences(baseline, row):
    """Returns row minus baseline of (experiment, seed, candidate) at each one's own selection, and
    averaged over the two selections."""
    chosen = [(np.cumsum(losses, 1) - losses).argmin(2)[..., None] for losses in (baseline, row)]
    (a_a, a_b), (b_a, b_b) = ([np.take_along_axis(losses, of, 2)[..., 0] for of in chosen]
                              for losses in (baseline, row))
    return b_b - a_a, (b_b - a_b + b_a - a_a) / 2


def tuned():
    candidates = np.arange(5)

    def curve(gap, best, height=0.):
        return gap * abs(candidates - best) + height

    def print_rates(name, of_baseline, of_row, correlation, noise=1., ceiling=False):
        rng = np.random.default_rng(5)
        experiments, seeds = 10000, 30
        a, b = (size * (correlation ** .5 * rng.normal(size=(experiments, seeds, 1)) +
                        (1 - correlation) ** .5 * rng.normal(size=(experiments, seeds, 5))) + mean
                for size, mean in ((1, of_baseline), (noise, of_row)))
        if ceiling:
            a, b = (np.maximum(np.round(4 * of) / 4, 0) for of in (a, b))
        decided = [np.maximum.accumulate(two_sided(log_evidence, d), 1) >= np.log(1 / LEVEL)
                   for d in selected_differences(a, b)]
        decided.append(decided[0] & decided[1])
        rates = "; ".join(" / ".join(f"{of[:, n - 1].mean():.3f}" for n in (8, 12, 30))
                          for of in decided)
        print(f"{name}: {rates}", flush=True)

    print("Decided by 8 / 12 / 30 seeds: at each one's own selection; averaged over both"
          " selections; both. 10,000 experiments")
    for rho in (0, .8):
        print_rates(f"equal, five alike, correlation {rho}", curve(0, 2), curve(0, 2), rho)
        for gap in (.25, .5, 1, 5):
            for apart in (0, 1, 2):
                print_rates(f"equal, V {gap}, {apart} apart, correlation {rho}", curve(gap, 1),
                            curve(gap, 1 + apart), rho)
    print_rates("equal, V 0.5 and V 5, 2 apart", curve(.5, 1), curve(5, 3), 0)
    print_rates("equal, five alike and V 5", curve(0, 2), curve(5, 2), 0)
    for gap in (0, 1):
        for noise in (3, 10):
            print_rates(f"equal, noise 1 and {noise}, V {gap}", curve(gap, 2), curve(gap, 2), 0,
                        noise)
    for height in (-2.5, -1.5, -.5):
        print_rates(f"equal at a ceiling {height}, V 1 and V 5", curve(1, 2, height),
                    curve(5, 2, height), 0, ceiling=True)
        print_rates(f"equal at a ceiling {height}, five alike and V 5", curve(0, 2, height),
                    curve(5, 2, height), 0, ceiling=True)
    for name, of_baseline, of_row in (
            ("five alike", curve(0, 1), curve(0, 1, -1.5)), ("V 1", curve(1, 1), curve(1, 1, -1.5)),
            ("V 1, 1 apart", curve(1, 1), curve(1, 2, -1.5)),
            ("V 1, 2 apart", curve(1, 1), curve(1, 3, -1.5)),
            ("V 3, 2 apart", curve(3, 1), curve(3, 3, -1.5))):
        print_rates(f"1.5 lower, {name}, correlation 0.8", of_baseline, of_row, .8)


# Ties and ceilings.

def sign_flip_p(d):
    signs = 1 - 2. * ((np.arange(2 ** (d.shape[1] - 1))[:, None] >> np.arange(d.shape[1])) & 1)
    sums = [abs(part @ signs.T) for part in np.array_split(d, -(-len(d) // 500))]
    return np.concatenate([(of >= of[:, :1] - 1e-9).mean(1) for of in sums])


def at_ceiling(a, b):
    """Half of the pairs or more are equal, and all equal pairs have the best value of all runs."""
    equal, best = a == b, np.maximum(a.max(1), b.max(1))[:, None]
    return (2 * equal.sum(1) >= a.shape[1]) & (~equal | (a == best)).all(1)


def ties():
    rng = np.random.default_rng(6)

    def accuracy(mean, step, shape):
        return np.minimum(100, np.round((mean + rng.normal(size=shape)) / step) * step)

    print("Accuracies in %, noise 1, at most 100, rounded to `step`. Pairs that are equal; error"
          " of the sign-flip test with 8 and 12 pairs, of looks up to 30; 20,000 experiments")
    for mean, step in ((99, 1), (99.5, 1), (100, 1), (100.5, .1), (101, .1), (101.5, .1),
                       (102, .1), (90, 2), (90, 4)):
        a, b = (accuracy(mean, step, (20000, 30)) for _ in range(2))
        d = b - a
        looks = (two_sided(log_evidence, d) >= np.log(1 / LEVEL)).any(1).mean()
        print(f"mean {mean}, step {step}: {(d == 0).mean():.2f}; "
              + ", ".join(f"{(sign_flip_p(d[:, :n]) <= LEVEL).mean():.3f}" for n in (8, 12))
              + f", {looks:.3f}; called `at the ceiling` with 8 and 12 pairs: "
              + ", ".join(f"{at_ceiling(a[:, :n], b[:, :n]).mean():.2f}" for n in (8, 12)),
              flush=True)
    print("Two accuracies: equal pairs; Student's interval with 8 pairs: doesn't exist (all equal),"
          " covers the true difference (of all, of those that exist, of those called `at the"
          " ceiling`); decided by the sign-flip test with 8 and 12 pairs and by looks up to 30")
    for means in ((101, 102), (100, 101), (100.5, 101.5), (100, 102), (99, 100)):
        far = [accuracy(mean, .1, 4000000).mean() for mean in means]
        a, b = (accuracy(mean, .1, (20000, 30)) for mean in means)
        d = b - a
        spread = d[:, :8].std(1, ddof=1)
        exists, called = spread > 1e-9, at_ceiling(a[:, :8], b[:, :8])
        covers = abs(d[:, :8].mean(1) - far[1] + far[0]) <= stats.t.ppf(.975, 7) * spread / 8 ** .5
        looks = (two_sided(log_evidence, d) >= np.log(1 / LEVEL)).any(1).mean()
        print(f"means {means}, difference {far[1] - far[0]:.2f}: {(d == 0).mean():.2f};"
              f" {1 - exists.mean():.3f}; {covers.mean():.3f}, {covers[exists].mean():.3f},"
              f" {covers[exists & called].mean():.3f} ({called.mean():.2f} called); "
              + ", ".join(f"{(sign_flip_p(d[:, :n]) <= LEVEL).mean():.2f}" for n in (8, 12))
              + f", {looks:.2f}", flush=True)


def reference():
    """Values for looks_test.cc."""
    examples = {"mixed": [.5, -.25, 1, 2, 0, .125, -.5, 1.5, .75, 1], "equal": [1.] * 6,
                "small": [3e-7, -1e-7, 2e-7, 5e-7], "rising": [1., -2, 4, 8, 16, 32, 64]}
    for name, d in examples.items():
        d = np.array(d)
        up, down = log_evidence(d), log_evidence(-d)
        both = np.logaddexp(up, down) - np.log(2)
        p, p_up, p_down = (min(1, np.exp(-of.max())) for of in (both, up, down))
        print(f"{name} {d.tolist()}: p {p:.15g}, positive {p_up:.15g}, negative {p_down:.15g},"
              f" log E {up[-1]:.15g}, {down[-1]:.15g}")
    print("levels of changes 1, 2, 50, 100 and 200 of 100:",
          [f"{level_of_change(j, 100):.15g}" for j in (1, 2, 50, 100, 200)])


parts = {"rule": rule, "session": session_table, "noise": session_noise, "next": next_seed,
         "tuned": tuned, "ties": ties, "reference": reference}
if __name__ == "__main__":
    for part in sys.argv[1:] or parts:
        print(f"== {part}")
        parts[part]()
