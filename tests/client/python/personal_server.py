"""A personal server in a temporary folder, as the environment of this process names it."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(os.environ["ABLATE_ROOT"])
DATA = pathlib.Path(os.environ["ABLATE_TEST_DATA"])

PLACEMENT = """
name: placement
base:
  task: {documents: {dataset: names.txt, held_out: 500}}
  model: {layers: 2, width: 16, heads: 4, context: 16, norm: {kind: rms}}
  training: {steps: 200, batch: 1, learning_rate: 0.01, schedule: linear}
axes:
  - {field: model.norm.placement, values: [pre, post, none]}
seeds: {first: 0, count: 8}
"""


def placement(**fields):
    """The same as a dict, with some fields replaced."""
    return {**yaml.safe_load(PLACEMENT), **fields}


class PersonalServer:
    """Starts when a client connects. Use it in a `with`: it stops the server and removes all."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="py"))  # short, because of sockets
        self.before = {name: os.environ.get(name)
                       for name in ("ABLATE_HOME", "HOME", "XDG_CONFIG_HOME", "ABLATE_SERVER")}
        os.environ.update(ABLATE_HOME=str(self.folder / "home"), HOME=str(self.folder),
                          XDG_CONFIG_HOME=str(self.folder / "config"))
        self.cwd = os.getcwd()
        os.chdir(self.folder)
        shutil.copy(ROOT / "examples/data/names.txt", self.folder)
        (self.folder / "placement.yaml").write_text(PLACEMENT)
        return self

    def enter(self, test_class):
        """Starts it for a class of tests."""
        test_class.addClassCleanup(self.__exit__)
        return self.__enter__()

    def __exit__(self, *exception):
        self.ablate("down", check=False)
        os.chdir(self.cwd)
        for name, value in self.before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(self.folder)

    def share(self):
        """Serves other machines at a free port. Returns it, and the join file of the user ada."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.ablate("up")
        self.ablate("admin", "init", f"localhost:{port}")
        self.ablate("down")
        self.ablate("up", "--listen", f"127.0.0.1:{port}")
        join = self.folder / "ada.join"
        self.ablate("admin", "user", "add", "ada", "-o", str(join))
        return port, join

    def ablate(self, *arguments, check=True):
        """Runs the command line; returns what it prints."""
        home = str(self.folder / "home")
        env = dict(os.environ, ABLATE_HOME=home, ABLATE_SERVER="personal")
        done = subprocess.run(["ablate", *arguments], env=env, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"ablate {' '.join(arguments)}: {done.stderr}")
        return done.stdout
