"""Asks report_answers, compares with a tolerance, and ends a script the way ctest reads."""
import json
import math
import subprocess
import sys

TOLERANCE = 1e-9
SKIPPED = 77


def import_scipy():
    """NumPy and SciPy's statistics; ends the script as skipped where they are missing."""
    try:
        import numpy
        import scipy.stats
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    return numpy, scipy.stats


def ask(questions):
    """The answers of the program named on the command line, one to a question."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), (len(answers), len(questions))
    return answers


def exact_sign_flip(differences):
    """Share of sign patterns that reach the observed sum: both halves enumerated, one sorted. Any n up to 40."""
    import numpy as np  # not at the top: where it is missing, import_scipy() says so

    def sums(part):
        total = np.zeros(1)
        for value in part:
            total = np.concatenate([total - value, total + value])
        return total
    half = len(differences) // 2
    left, right = sums(differences[:half]), np.sort(sums(differences[half:]))
    observed = abs(math.fsum(differences))
    threshold = observed - 1e-12 * max(observed, np.abs(differences).max())
    if threshold <= 0:
        return 1.0
    count = len(right) * len(left) - np.searchsorted(right, threshold - left, "left").sum()
    count += np.searchsorted(right, -threshold - left, "right").sum()
    return count / 2.0 ** len(differences)


class Checks:
    """Counts what was compared and keeps what differs."""

    def __init__(self):
        self.count = 0
        self.wrong = []

    def near(self, name, ours, theirs, tolerance=TOLERANCE):
        """Numbers (or lists of them) within the relative tolerance; rounding near 0 is allowed for."""
        if isinstance(theirs, (list, tuple)):
            self.equal(f"{name}: length", len(ours) if isinstance(ours, list) else ours, len(theirs))
            if isinstance(ours, list):
                for i, (a, b) in enumerate(zip(ours, theirs)):
                    self.near(f"{name}[{i}]", a, b, tolerance)
            return
        self.count += 1
        numbers = isinstance(ours, (int, float)) and not isinstance(ours, bool)
        if not numbers or not math.isfinite(theirs) or abs(ours - theirs) > tolerance * abs(theirs) + 1e-14:
            self.wrong.append(f"{name}: ours {ours}, reference {theirs}")

    def equal(self, name, ours, theirs):
        self.count += 1
        if ours != theirs:
            self.wrong.append(f"{name}: ours {ours}, reference {theirs}")

    def finish(self, at_least):
        """Prints the outcome and exits; fewer checks than expected is a failure too."""
        print("\n".join(self.wrong[:40]) or f"{self.count} values agree")
        sys.exit(1 if self.wrong or self.count < at_least else 0)
