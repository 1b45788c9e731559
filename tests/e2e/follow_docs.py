"""Does what a page of the docs says, on a fresh personal server: writes its files, runs its commands in order, and looks for
the words of the output that it prints.
Usage: follow_docs.py ROOT BIN PAGE [SECTION]    ROOT is the checkout, BIN the folder of the programs"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root, programs, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
section = sys.argv[4] if len(sys.argv) > 4 else None

COMMAND = re.compile(r"^(ablate|export|mkdir|cp|cat|id=)\b")
FILE = re.compile(r"Save this as\s+`([^`]+)`")
WORD = re.compile(r"[A-Za-z]{3,}")
MARK = "=== block "


def blocks_of(text):
    """Yields (paragraph before it, language, text) of each fenced block."""
    for match in re.finditer(r"((?:[^\n]+\n)*)\n?```(\w*)\n(.*?)```", text, re.DOTALL):
        yield match.groups()


def script_of(text):
    """The page as one bash script, and the outputs that it prints, by the number of the block of commands before each."""
    lines, expected, block = ["set -eo pipefail"], [], 0
    for before, language, content in blocks_of(text):
        name = FILE.search(before)
        if name:
            lines.append(f"cat > '{name[1]}' <<'END_OF_FILE'\n{content}END_OF_FILE")
        elif COMMAND.match(content):
            block += 1
            lines += [f"echo '{MARK}{block}'", content]
        elif not language:
            expected.append((block, content))
    return "\n".join(lines), expected, block


text = (root / page).read_text()
if section:
    text = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
script, expected, blocks = script_of(text)
if blocks == 0:
    sys.exit(f"{page}: no block of commands was found")
with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    (here / "build").mkdir()
    (here / "build/bin").symlink_to(programs)
    (here / "examples").symlink_to(root / "examples")
    env = dict(os.environ, ABLATE_HOME=str(here / "home"), PATH=f"{programs}:{os.environ['PATH']}")
    env.pop("ABLATE_SERVER", None)
    try:
        done = subprocess.run(["bash", "-c", script], cwd=here, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    finally:
        subprocess.run(["ablate", "down"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if done.returncode != 0:
    sys.exit(f"{page}: a command failed\n{done.stdout}")
outputs = [set(WORD.findall(output)) for output in done.stdout.split(MARK)]
for block, content in expected:
    # A verdict follows an empty line. Its words depend on the numbers, and these on the processor.
    missing = set(WORD.findall(content.split("\n\n")[0])) - outputs[block]
    if missing:
        sys.exit(f"{page}: not in the output of block {block}: {', '.join(sorted(missing))}\n{done.stdout.split(MARK)[block]}")
print(f"{page}: {blocks} blocks of commands, {len(expected)} outputs")
