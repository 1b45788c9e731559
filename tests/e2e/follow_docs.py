"""Follows a page of the docs on a fresh personal server: writes its files, runs its commands in
order, and looks for the words of the output that it prints.

A fenced block is, by the first rule that fits,
- a file, if the paragraph before it contains "Save this as `NAME`";
- commands, if it has no language and begins with one of COMMAND. If the paragraph before it
  contains "laptop", they run in another folder, with another home, where there is no server; join
  files are copied there first;
- Python, if that is its language. Blocks continue each other, as in a notebook. One that imports a
  package that isn't installed is skipped, with its output;
- expected output, if it has no language. Its words up to the first empty line must be printed by
  the block before it;
- else ignored.

The page's server, lab.example.org, is this machine, at a port that is free.

Usage: follow_docs.py ROOT BIN PAGE [SECTION]
ROOT is the checkout, BIN the folder of the programs."""
import importlib.util
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap

root, programs, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
section = sys.argv[4] if len(sys.argv) > 4 else None

COMMAND = re.compile(r"^((ablate|export|mkdir|cp|cat|head|rm|sed|tar)\b|\w+=)")
FILE = re.compile(r"Save\s+this\s+as\s+`([^`]+)`")
IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
WORD = re.compile(r"[A-Za-z]{3,}")
MARK = "=== block "
LAPTOP = """(
mkdir -p ../laptop && cp -p ./*.join ../laptop && cd ../laptop
export HOME=$PWD XDG_CONFIG_HOME=$PWD ABLATE_HOME=$PWD/none
{}
)"""


def blocks_of(text):
    """Yields (paragraph before it, language, text) of each fenced block."""
    block = re.compile(r"((?:(?! *```)[^\n]+\n)*)\n?^ *```(\w*)\n(.*?)^ *```$",
                       re.DOTALL | re.MULTILINE)
    for match in block.finditer(text):
        before, language, content = match.groups()
        yield before, language, textwrap.dedent(content)


class Script:
    """A page as one bash script, and the outputs that it prints, by the number of the block of
    commands before each."""

    def __init__(self, text):
        self.lines, self.expected, self.blocks = ["set -eo pipefail"], [], 0
        self.missing = set()  # packages that Python blocks import and that aren't installed
        python, skipped = "", False
        for before, language, content in blocks_of(text):
            name = FILE.search(before)
            if name:
                self.lines.append(f"cat > '{name[1]}' <<'END_OF_FILE'\n{content}END_OF_FILE")
            elif not language and COMMAND.match(content):
                skipped = False
                laptop = re.search(r"\blaptop\b", before)
                self.run(LAPTOP.format(content) if laptop else content)
            elif language == "python":
                python += content
                absent = {name for name in IMPORT.findall(python)
                          if not importlib.util.find_spec(name)}
                self.missing |= absent
                skipped = bool(absent)
                if not skipped:
                    self.run(f"'{sys.executable}' - <<'END_OF_PYTHON'\n{python}END_OF_PYTHON")
            elif not language and not skipped:
                self.expected.append((self.blocks, content))

    def run(self, content):
        self.blocks += 1
        self.lines += [f"echo '{MARK}{self.blocks}'", content]


def run(script, home):
    """Runs the script and ends what it leaves in the background. Returns exit code and output."""
    here = home / "server"
    (here / "build").mkdir(parents=True)
    (here / "build/bin").symlink_to(programs)
    for name in ("examples", "proto"):
        (here / name).symlink_to(root / name)
    env = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home / "config"),
               ABLATE_HOME=str(here / "home"), PATH=f"{programs}:{os.environ['PATH']}")
    env.pop("ABLATE_SERVER", None)
    bash = subprocess.Popen(["bash", "-c", script], cwd=here, env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            start_new_session=True)
    try:
        output, _ = bash.communicate()
    finally:
        try:
            os.killpg(bash.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        for folder in here.rglob("run/ablate.sock"):
            subprocess.run(["ablate", "down", "--home", str(folder.parent.parent)], env=env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return bash.returncode, output


def here_for_example_org(text):
    """The text, with the server lab.example.org at a port of this machine that was free."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    text = text.replace("lab.example.org:7443", f"localhost:{port}")
    text = text.replace("0.0.0.0:7443", f"127.0.0.1:{port}")
    return re.sub(r"\blab(\.example\.org)?\b", "localhost", text)


text = here_for_example_org((root / page).read_text())
if section:
    text = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
script = Script(text)
if script.blocks == 0:
    sys.exit(f"{page}: no block of commands was found")
with tempfile.TemporaryDirectory() as folder:
    code, output = run("\n".join(script.lines), pathlib.Path(folder))
if code != 0:
    sys.exit(f"{page}: a command failed\n{output}")
outputs = [set(WORD.findall(output)) for output in output.split(MARK)]
for block, content in script.expected:
    # A verdict follows an empty line. Its words depend on the numbers, and these on the processor.
    missing = set(WORD.findall(content.split("\n\n")[0])) - outputs[block]
    if missing:
        sys.exit(f"{page}: not in the output of block {block}: {', '.join(sorted(missing))}\n"
                 f"{output.split(MARK)[block]}")
print(f"{page}: {script.blocks} blocks of commands, {len(script.expected)} outputs",
      *(f"skipped: Python without {name}" for name in sorted(script.missing)), sep="; ")
