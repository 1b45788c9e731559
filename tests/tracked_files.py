"""Checks that git tracks no cache and no file above 1 MB, and that the example data are as published."""
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST = 1_000_000
# Data sets of the examples.
ALLOWED = {"examples/data/tinyshakespeare.txt"}
CACHE = re.compile(r"(^|/)([^/]*_cache|__pycache__|node_modules|[^/]*\.egg-info)/|\.(pyc|o|so)$")
SKIPPED = 77


def problems_of(path: str, size: int):
    if CACHE.search(path):
        yield f"{path}: is a cache or a build product; remove it and name it in .gitignore"
    elif size > LARGEST and path not in ALLOWED:
        yield f"{path}: has {size:,} bytes; expected at most {LARGEST:,}"


def changed_data():
    """Returns the data files whose hash isn't the one that their page gives."""
    data = ROOT / "examples" / "data"
    stated = re.findall(r"^## (\S+)$.*?^SHA-256: `([0-9a-f]{64})`$", (data / "ORIGIN.md").read_text(), re.S | re.M)
    assert len(stated) >= 3, stated
    return [f"examples/data/{name}: isn't the file of ORIGIN.md" for name, sha256 in stated
            if hashlib.sha256((data / name).read_bytes()).hexdigest() != sha256]


def main():
    for path, size in (("a/.mypy_cache/3.11/x.db", 1), ("a/x.pyc", 1), ("a.bin", LARGEST + 1)):
        assert list(problems_of(path, size)), path
    assert not list(problems_of("base/cache.cc", LARGEST))
    if not (ROOT / ".git").exists():
        print("skipped: this folder isn't a git checkout")
        return SKIPPED
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    files = [(path, ROOT / path) for path in listed.split("\0") if path]
    found = [problem for path, file in files if file.is_file() for problem in problems_of(path, file.stat().st_size)]
    found += changed_data()
    print("\n".join(found) or f"{len(files)} files")
    return 1 if found else 0


sys.exit(main())
