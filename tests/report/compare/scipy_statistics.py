"""Compares statistics of random samples with SciPy's: t, sign flips, bootstrap, Holm, correlation."""
import itertools
import math
import warnings

import asking

np, stats = asking.import_scipy()
warnings.simplefilter("ignore")  # SciPy's remarks on constant and tiny samples

SIZES = (1, 2, 5, 12, 30)
rng = np.random.default_rng(20240607)


def draw_pairs(n, kind):
    """Baseline and setting with shared seeds; kind decides on ties, offsets and scales."""
    baseline = rng.normal(2.4, 0.1, n)
    difference = rng.normal(0.02, 0.05, n)
    if kind == "ties":  # sixty-fourths: equal pairs, equal differences, exact sums
        baseline, difference = np.round(baseline * 64) / 64, np.round(difference * 64) / 64
    elif kind == "large":
        baseline, difference = baseline * 1e6, difference * 1e6
    elif kind == "skewed":
        difference = rng.exponential(0.05, n) - 0.03
    elif kind == "far":
        difference = difference + 0.2
    return baseline + difference, baseline


def hedges_factor(nu):
    return math.exp(math.lgamma(nu / 2) - math.lgamma((nu - 1) / 2)) / math.sqrt(nu / 2)


def check_sign_flip(checks, name, answer, d):
    n = len(d)
    if n == 1:
        checks.equal(f"{name} sign flip", answer["p_sign_flip"], "TOO_FEW_PAIRS")
        return
    reference = asking.exact_sign_flip(d)
    checks.equal(f"{name} exact", answer["exact"], n <= 20)
    if n <= 20:
        checks.near(f"{name} sign flip by halves", answer["p_sign_flip"], reference)
    if n <= 12:
        test = stats.permutation_test((d,), lambda x, axis: x.sum(axis=axis), permutation_type="samples",
                                      n_resamples=np.inf, vectorized=True)
        checks.near(f"{name} sign flip", answer["p_sign_flip"], test.pvalue)
    if n > 20:
        error = math.sqrt(reference * (1 - reference) / 1e5)
        checks.near(f"{name} drawn sign flip", answer["p_sign_flip"], reference, (4 * error + 2e-5) / reference)


def check_pairs(checks, name, answer, setting, baseline):
    d = setting - baseline
    n = len(d)
    checks.near(f"{name} mean", answer["mean"], d.mean())
    check_sign_flip(checks, name, answer, d)
    spread = n > 1 and d.std() > 1e-14 * np.abs(setting).max()
    if not spread:
        for field in ("deviation", "interval", "t", "p_t", "effect", "effect_unbiased"):
            checks.equal(f"{name} {field}", answer[field], "TOO_FEW_PAIRS" if n < 2 else "ZERO_VARIANCE")
        return
    test = stats.ttest_rel(setting, baseline)
    interval = test.confidence_interval(0.95)
    effect = d.mean() / d.std(ddof=1)
    checks.near(f"{name} deviation", answer["deviation"], d.std(ddof=1))
    checks.near(f"{name} t", answer["t"], test.statistic)
    checks.near(f"{name} p", answer["p_t"], test.pvalue)
    checks.near(f"{name} interval", answer["interval"], [interval.low, interval.high])
    checks.near(f"{name} effect", answer["effect"], effect)
    if n < 3:
        checks.equal(f"{name} Hedges", answer["effect_unbiased"], "TOO_FEW_PAIRS")
        checks.equal(f"{name} skewness", answer["skewness"], "TOO_FEW_PAIRS")
        checks.equal(f"{name} correlation", answer["correlation"], "TOO_FEW_PAIRS")
        return
    checks.near(f"{name} Hedges", answer["effect_unbiased"], effect * hedges_factor(n - 1))
    checks.near(f"{name} skewness", answer["skewness"], stats.skew(d))
    if setting.std() > 0 and baseline.std() > 0:
        checks.near(f"{name} correlation", answer["correlation"], stats.pearsonr(setting, baseline).statistic)


def ask_about_pairs(checks):
    cases = []
    for kind, n in itertools.product(("plain", "ties", "large", "skewed", "far"), SIZES + (3, 6, 20, 21)):
        for repeat in range(1 if n > 20 else 6):
            cases.append((f"{kind} n={n} #{repeat}", *draw_pairs(n, kind)))
    cases.append(("constant", np.full(6, 2.5) + np.arange(6), np.arange(6.0)))
    cases.append(("equal", np.arange(6.0), np.arange(6.0)))
    questions = [{"ask": "pairs", "setting": list(a), "baseline": list(b)} for _, a, b in cases]
    for (name, setting, baseline), answer in zip(cases, asking.ask(questions)):
        check_pairs(checks, name, answer, setting, baseline)


def ask_about_samples(checks):
    samples = [draw_pairs(n, kind)[0] for kind in ("plain", "ties", "large", "far") for n in SIZES]
    samples += [rng.lognormal(0, 3, n) for n in SIZES] + [1e8 + rng.normal(0, 1, n) for n in SIZES]
    for values, answer in zip(samples, asking.ask([{"ask": "sample", "values": list(v)} for v in samples])):
        n = len(values)
        name = f"sample n={n} from {values[0]}"
        checks.near(f"{name} mean", answer["mean"], math.fsum(values) / n)
        if n < 2:
            checks.equal(f"{name} interval", answer["interval"], "TOO_FEW_RUNS")
            continue
        if values.std() == 0:
            checks.equal(f"{name} interval", answer["interval"], "ZERO_VARIANCE")
            continue
        interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        checks.near(f"{name} deviation", answer["deviation"], values.std(ddof=1))
        checks.near(f"{name} interval", answer["interval"], [interval.low, interval.high])


class GivenDraws(np.random.Generator):
    """A generator whose integers are given: SciPy's bootstrap then uses our indices."""

    def __init__(self, indices):
        super().__init__(np.random.PCG64(0))
        self.indices = indices

    def integers(self, low, high=None, size=None, **_):
        assert size == self.indices.shape, (size, self.indices.shape)
        return self.indices


def exact_mean(x, axis):
    """Correctly rounded, so that resamples with equal sums tie in SciPy as they do in ours."""
    return np.apply_along_axis(lambda v: math.fsum(v) / len(v), axis, x)


def ask_about_bootstrap(checks):
    cases = []
    for kind, n, _ in itertools.product(("plain", "ties", "skewed", "far"), (2, 5, 12, 30), range(4)):
        setting, baseline = draw_pairs(n, kind)
        cases.append((setting - baseline, rng.integers(0, n, (999, n))))
    questions = [{"ask": "bootstrap", "values": list(v), "indices": [int(i) for i in x.ravel()]} for v, x in cases]
    compared = 0
    for (values, indices), answer in zip(cases, asking.ask(questions)):
        name = f"bootstrap n={len(values)} of {values[0]}"
        if values.std() == 0:
            checks.equal(name, answer, "ZERO_VARIANCE")
            continue
        result = stats.bootstrap((values,), exact_mean, axis=-1, n_resamples=len(indices), method="bca",
                                 vectorized=True, rng=GivenDraws(indices)).confidence_interval
        if not math.isfinite(result.low):  # all resamples lie on one side
            checks.equal(name, answer, "NON_FINITE")
            continue
        compared += 1
        checks.near(name, answer, [result.low, result.high])
    checks.equal("bootstraps compared with SciPy", compared >= 50, True)


def closed_testing(p):
    """Holm by its definition: the largest Bonferroni p over all subsets that contain the hypothesis."""
    adjusted = [0.0] * len(p)
    for size in range(1, len(p) + 1):
        for subset in itertools.combinations(range(len(p)), size):
            bonferroni = min(1.0, size * min(p[i] for i in subset))
            for i in subset:
                adjusted[i] = max(adjusted[i], bonferroni)
    return adjusted


def ask_about_p_values(checks):
    families = [list(rng.uniform(0, 0.3, m) ** 2) for m in range(1, 9) for _ in range(4)]
    families += [[round(p, 2) for p in rng.uniform(0, 0.2, m)] for m in (3, 6, 8)] + [[]]
    for p, answer in zip(families, asking.ask([{"ask": "holm", "p": p} for p in families])):
        checks.near(f"Holm of {p}", answer, closed_testing(p))
    games = [(w, n - w) for n in (1, 2, 5, 12, 30, 400) for w in sorted({0, 1, n // 3, n // 2, n})]
    answers = asking.ask([{"ask": "sign_test", "wins": w, "losses": l} for w, l in games])
    for (wins, losses), answer in zip(games, answers):
        checks.near(f"sign test {wins}:{losses}", answer, stats.binomtest(wins, wins + losses).pvalue)


if __name__ == "__main__":
    all_checks = asking.Checks()
    ask_about_pairs(all_checks)
    ask_about_samples(all_checks)
    ask_about_bootstrap(all_checks)
    ask_about_p_values(all_checks)
    all_checks.finish(at_least=2000)
