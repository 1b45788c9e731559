"""Compares whole comparisons of random grids with a plain reading of the rules in Python and with SciPy."""
import itertools
import math
import warnings

import asking

np, stats = asking.import_scipy()
warnings.simplefilter("ignore")

INFINITY = math.inf
rng = np.random.default_rng(20240608)


def draw_grid(seeds, row_axes, tuned_axes, diverging, missing, ties, better, by):
    """A random experiment as report_answers reads it."""
    axes = [{"name": f"row{i}", "labels": [f"r{j}" for j in range(k)], "tuned": False} for i, k in enumerate(row_axes)]
    axes += [{"name": f"tune{i}", "labels": [f"t{j}" for j in range(k)], "tuned": True} for i, k in enumerate(tuned_axes)]
    effects = {}
    cells = []
    for labels in itertools.product(*(axis["labels"] for axis in axes)):
        effects[labels] = rng.normal(0, 0.1)
        for seed in range(seeds):
            value = 2.4 + 0.05 * np.sin(seed) + effects[labels] + rng.normal(0, 0.05)
            if ties:
                value = round(value * 16) / 16  # sixteenths: sums are exact and equal ones frequent
            draw = rng.uniform()
            outcome = "diverged" if draw < diverging else "missing" if draw < diverging + missing else "done"
            cells.append({"labels": list(labels), "seed": 100 + seed, "outcome": outcome, "value": value})
    rng.shuffle(cells)
    return {"ask": "compare", "axes": axes, "cells": cells, "better": better, "by": by}


def choose(results, candidates, seeds, held_out, sign):
    """The first candidate that is best on the other seeds; None if none of them has a result there."""
    ranks = []
    for candidate in candidates:
        others = [results.get((candidate, s)) for s in seeds if s != held_out]
        others = [r for r in others if r is not None]
        if others:
            converged = [sign * r for r in others if math.isfinite(r)]
            rest = math.fsum(converged) / len(converged) if converged else INFINITY
            diverged = len(others) - len(converged)
            ranks.append((rest if diverged == 0 else INFINITY, diverged, rest, candidate))
    if not ranks:
        return None
    if all(math.isinf(rank[0]) for rank in ranks):
        best = min(rank[1:3] for rank in ranks)
        return next(rank[3] for rank in ranks if rank[1:3] == best)
    lowest = min(rank[0] for rank in ranks)
    return next(rank[3] for rank in ranks if rank[0] <= lowest + 1e-12 * abs(lowest))


def picked_runs(results, candidates, seeds, sign):
    """seed → (candidate, value) of one setting, its value infinite where the run diverged."""
    runs = {}
    for seed in seeds:
        pick = choose(results, candidates, seeds, seed, sign)
        if pick is None:
            pick = choose({(c, s): r for (c, s), r in results.items() if s == seed}, candidates, seeds, None, sign)
        if pick is not None and results.get((pick, seed)) is not None:
            runs[seed] = (pick, results[pick, seed])
    return runs


def score(own, other, sign):
    """|sum| over the root of squares of the differences that both converged (none: infinite), their number, wins less losses, pairs."""
    differences, wins, pairs = [], 0, 0
    for seed in sorted(set(own) & set(other)):
        a, b = own[seed][1], other[seed][1]
        pairs += 1
        a_loss, b_loss = (sign * v if math.isfinite(v) else INFINITY for v in (a, b))
        wins += int(a_loss < b_loss) - int(a_loss > b_loss)
        if math.isfinite(a) and math.isfinite(b):
            differences.append(a - b)
    squares = math.fsum(d * d for d in differences)
    far = abs(math.fsum(differences)) / math.sqrt(squares) if squares > 0 else 0.0
    return (far if differences else INFINITY), len(differences), wins, pairs


def flip(results, others, flipped):
    """One setting's results with the columns of the flipped seeds taken from the other's."""
    return {**{key: r for key, r in results.items() if key[1] not in flipped},
            **{key: r for key, r in others.items() if key[1] in flipped}}


def reselected_p(own, other, candidates, seeds, sign):
    """(p of the difference, p of the wins), choosing again under each of all patterns of signs; few seeds only."""
    columns = [s for s in seeds if any((c, s) in own for c in candidates) and any((c, s) in other for c in candidates)]
    scores = []
    for pattern in range(2 ** len(columns)):
        flipped = {s for i, s in enumerate(columns) if pattern >> i & 1}
        scores.append(score(picked_runs(flip(own, other, flipped), candidates, seeds, sign),
                            picked_runs(flip(other, own, flipped), candidates, seeds, sign), sign))
    far, converged, wins, pairs = scores[0]
    return (np.mean([s[0] >= far - 1e-12 for s in scores]) if converged >= 2 else None,
            np.mean([abs(s[2]) >= abs(wins) for s in scores]) if pairs >= 2 else None)


def pick_all(values, sign):
    """[..., candidates, seeds] → the values that the other seeds' means pick, [..., seeds]; the first of equals."""
    others = sign * (values.sum(-1, keepdims=True) - values)
    lowest = others.min(-2, keepdims=True)
    picks = (others <= lowest + 1e-12 * np.abs(lowest)).argmax(-2)
    return np.take_along_axis(values, picks[..., None, :], -2)[..., 0, :]


def reselected(own, other, candidates, seeds, sign):
    """p and the least and largest kept shift of whole grids, by Student's t of all patterns at once."""
    a, b = (np.array([[results[c, s] for s in seeds] for c in candidates]) for results in (own, other))
    n = len(seeds)
    flips = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    mixed = flips[:, None, :]
    differences = pick_all(np.where(mixed, b, a), sign) - pick_all(np.where(mixed, a, b), sign)

    def p_at(shift):
        d = differences - shift * (1 - 2 * flips)
        t = np.abs(d.mean(-1)) / (d.std(-1, ddof=1) / math.sqrt(n))
        return (t >= t[0] * (1 - 1e-9)).mean()

    def by_shift(signs, d):  # squares of the sum, and the sum of squares, of d - shift * signs
        return np.polynomial.Polynomial([d.sum(), -signs.sum()]) ** 2, np.polynomial.Polynomial([d @ d, -2 * (signs @ d), n])
    seen_squared, seen_squares = by_shift(np.ones(n), differences[0])
    turns = []
    for flip, d in zip(flips[1:], differences[1:]):
        squared, squares = by_shift(1 - 2 * flip, d)
        roots = (squared * seen_squares - seen_squared * squares).roots()
        turns.extend(roots.real[np.abs(roots.imag) <= 1e-9 * np.abs(roots)])
    turns = np.unique(turns)
    middles = (turns[1:] + turns[:-1]) / 2
    assert p_at(turns[0] - 1) <= 0.05 and p_at(turns[-1] + 1) <= 0.05
    low = next(i for i in range(len(middles)) if p_at(middles[i]) > 0.05)
    high = next(i for i in reversed(range(len(middles))) if p_at(middles[i]) > 0.05)
    return p_at(0.0), [turns[low], turns[high + 1]]


def check_reselection(checks, name, row, own, other, candidates, seeds, sign):
    """p of a row whose settings chose, and its interval where the grid is whole."""
    whole = all(math.isfinite(r.get((c, s), INFINITY)) for r in (own, other) for c in candidates for s in seeds)
    if len(seeds) <= 5:
        p, p_wins = reselected_p(own, other, candidates, seeds, sign)
        if p is not None:
            checks.near(f"{name} p, chosen again", row["difference"]["p_sign_flip"], p)
        if row["by_wins"] and p_wins is not None:
            checks.near(f"{name} p of wins, chosen again", row["p"], p_wins)
        checks.equal(f"{name} is chosen again below six pairs", row["by_rechoosing"], False)
    elif whole and len(seeds) <= 12:
        p, ends = reselected(own, other, candidates, seeds, sign)
        checks.near(f"{name} p, chosen again", row["difference"]["p_sign_flip"], p)
        checks.equal(f"{name} interval is of the choices made again", row["by_rechoosing"], True)
        checks.near(f"{name} kept shifts", row["difference"]["interval"], ends, 1e-7)


def read_grid(question):
    """setting labels → {(tuned labels, seed): value}; infinite where diverged, absent where missing."""
    compared = [i for i, axis in enumerate(question["axes"]) if not axis["tuned"] or axis["name"] == question["by"]]
    rows = {}
    for cell in question["cells"]:
        row = tuple(cell["labels"][i] for i in compared)
        tuned = tuple(l for i, l in enumerate(cell["labels"]) if i not in compared)
        results = rows.setdefault(row, {})
        if cell["outcome"] != "missing":
            results[tuned, cell["seed"]] = cell["value"] if cell["outcome"] == "done" else INFINITY
    return compared, rows


def baseline_of(question, compared, row):
    """The first label on the axis that is compared, or on all of them."""
    axes = [question["axes"][i] for i in compared]
    return tuple(axis["labels"][0] if question["by"] in ("", axis["name"]) else label
                 for axis, label in zip(axes, row))


def holm(p):
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, largest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = largest
    return adjusted


def check_numbers(checks, name, row, values, baseline, tuned):
    """Mean, interval and difference over converged pairs; both are arrays of one length."""
    d = values - baseline
    checks.near(f"{name} mean", row["mean"], values.mean())
    checks.near(f"{name} difference", row["difference"]["mean"], d.mean())
    if len(d) < 2:
        checks.equal(f"{name} interval", row["difference"]["interval"], "TOO_FEW_PAIRS")
        return
    if len(d) <= 20 and not tuned:
        checks.near(f"{name} sign flip", row["difference"]["p_sign_flip"], asking.exact_sign_flip(d))
    if d.std() < 1e-14:
        checks.equal(f"{name} interval", row["difference"]["interval"], "ZERO_VARIANCE")
        return
    test = stats.ttest_rel(values, baseline)
    interval = test.confidence_interval(0.95)
    if not row["by_rechoosing"]:
        checks.near(f"{name} difference's interval", row["difference"]["interval"], [interval.low, interval.high])
    checks.near(f"{name} p", row["difference"]["p_t"], test.pvalue)


def check_row(checks, name, row, runs, baseline, sign, is_baseline, tuned):
    values = {seed: value for seed, (_, value) in runs.items()}
    checks.equal(f"{name} n", row["n"], len(values))
    checks.equal(f"{name} diverged", row["diverged"], sum(math.isinf(v) for v in values.values()))
    if is_baseline:
        own = np.array([v for v in values.values() if math.isfinite(v)])
        if len(own) > 0:
            checks.near(f"{name} mean", row["mean"], own.mean())
        return
    shared = [seed for seed in sorted(values) if seed in baseline]
    signed = [(sign * values[s] if math.isfinite(values[s]) else INFINITY,
               sign * baseline[s][1] if math.isfinite(baseline[s][1]) else INFINITY) for s in shared]
    checks.equal(f"{name} pairs", row["pairs"], len(shared))
    checks.equal(f"{name} wins", row["wins"], sum(a < b for a, b in signed))
    checks.equal(f"{name} ties", row["ties"], sum(a == b for a, b in signed))
    both = [s for s in shared if math.isfinite(values[s]) and math.isfinite(baseline[s][1])]
    checks.equal(f"{name} converged pairs", row["difference"]["n"], len(both))
    if both:
        check_numbers(checks, name, row, np.array([values[s] for s in both]),
                      np.array([baseline[s][1] for s in both]), tuned)
    else:
        checks.equal(f"{name} difference", row["difference"]["mean"], "ALL_DIVERGED" if shared else "TOO_FEW_PAIRS")


    wins, losses = row["wins"], row["pairs"] - row["wins"] - row["ties"]
    one_diverged = sum(math.isinf(a) != math.isinf(b) for a, b in signed) > 0
    checks.equal(f"{name} by wins", row["by_wins"], one_diverged)
    if one_diverged and not tuned:
        checks.near(f"{name} sign test", row["p"], stats.binomtest(wins, wins + losses).pvalue)
    elif not one_diverged:
        checks.equal(f"{name} p", row["p"], row["difference"]["p_sign_flip"])


def check_holm(checks, name, rows):
    """p_holm from the p values that the rows themselves carry; undefined ones count in the family as 1."""
    p = [row["p"] for row in rows]
    adjusted = holm([value if isinstance(value, float) else 1.0 for value in p])
    for i, row in enumerate(rows):
        if isinstance(p[i], float):
            checks.near(f"{name} Holm {i}", row["p_holm"], adjusted[i])
        else:
            checks.equal(f"{name} Holm {i}", row["p_holm"], p[i])


def check_grid(checks, name, question, answer):
    sign = 1 if question["better"] == "lower" else -1
    compared, grid = read_grid(question)
    seeds = sorted({cell["seed"] for cell in question["cells"]})
    tuned_axes = [axis for i, axis in enumerate(question["axes"]) if i not in compared]
    candidates = list(itertools.product(*(axis["labels"] for axis in tuned_axes)))
    runs = {row: picked_runs(results, candidates, seeds, sign) for row, results in grid.items()}
    tested = []
    checks.equal(f"{name} rows", [tuple(row["labels"]) for row in answer["rows"]], sorted(grid))
    for row in answer["rows"]:
        labels = tuple(row["labels"])
        base = baseline_of(question, compared, labels)
        where = f"{name} {labels}"
        checks.equal(f"{where} picks", row["runs"], [[s, list(runs[labels][s][0])] for s in sorted(runs[labels])])
        check_row(checks, where, row, runs[labels], runs[base], sign, base == labels, bool(tuned_axes))
        if base != labels and tuned_axes:
            check_reselection(checks, where, row, grid[labels], grid[base], candidates, seeds, sign)
        if base != labels:
            tested.append(row)
    check_holm(checks, name, tested)
    if tuned_axes:
        check_matched(checks, name, question, answer, compared, grid, candidates, seeds, sign)


def check_matched(checks, name, question, answer, compared, grid, candidates, seeds, sign):
    tested = []
    checks.equal(f"{name} matched", [tuple(block["labels"]) for block in answer["matched"]], candidates)
    for block in answer["matched"]:
        tuned = tuple(block["labels"])
        at = {row: {s: (tuned, results[tuned, s]) for s in seeds if (tuned, s) in results}
              for row, results in grid.items()}
        for row in block["rows"]:
            labels = tuple(row["labels"])
            base = baseline_of(question, compared, labels)
            check_row(checks, f"{name} at {tuned} {labels}", row, at[labels], at[base], sign, base == labels,
                      False)
            if base != labels:
                tested.append(row)
    check_holm(checks, f"{name} matched", tested)


def draw_grids():
    shapes = [((3,), ()), ((3,), (4,)), ((2, 2), (3,)), ((2,), (2, 3)), ((2, 3), ()), ((4,), (3,))]
    for seeds, (row_axes, tuned_axes) in itertools.product((1, 2, 5, 12, 30), shapes):
        for diverging, missing, ties in ((0, 0, False), (0.15, 0, False), (0.5, 0.1, True), (0, 0.2, True)):
            better = "lower" if rng.uniform() < 0.7 else "higher"
            by = f"row{len(row_axes) - 1}" if rng.uniform() < 0.4 else ""
            if tuned_axes and rng.uniform() < 0.1:
                by = "tune0"
            yield draw_grid(seeds, row_axes, tuned_axes, diverging, missing, ties, better, by)


if __name__ == "__main__":
    all_checks = asking.Checks()
    questions = list(draw_grids())
    for number, (question, answer) in enumerate(zip(questions, asking.ask(questions))):
        check_grid(all_checks, f"grid {number}", question, answer)
    all_checks.finish(at_least=10000)
