"""Uses a real shared server for a long time, as a team would, and shows that it doesn't grow.

Usage: soak.py BIN [--minutes N] [--every N]

BIN is the folder of the programs. Five users submit, cancel, delete, analyze, compare and query over TLS; workers come
and go, some by SIGKILL. Prints the server's memory, descriptors and threads every so many minutes. At the end nothing
may be queued, the store must be whole, and the runs that all users share must have the points of an undisturbed server.
"""
import argparse
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time

EXPERIMENT = """
name: {name}
base:
  task: {{legacy_recall: {{keys: 10, draw: 4}}}}
  model: {{layers: 1, width: 16, heads: 4}}
  training: {{steps: {steps}, batch: 16, checkpoints: [-1]}}
  evaluation: {{every: 50, batches: 2}}
axes:
  - {{field: model.norm.placement, values: [pre, post]}}
seeds: {first}..{last}
"""
USERS = ["ann", "bob", "cid", "dan", "eve"]


class Soak:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.stopping = threading.Event()
        self.calls, self.failures = 0, []
        self.workers, self.kills = [], 0
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.ablate("admin", "up", "--lanes", "1")
        self.ablate("admin", "admin", "init", f"localhost:{self.port}")
        self.ablate("admin", "down")
        with open(folder / "server.log", "w") as log:
            self.server = subprocess.Popen(
                [programs / "ablated", "--home", folder / "admin", "--no-workers", "--worker-silence", "5",
                 "--listen", f"127.0.0.1:{self.port}"], stdout=log, stderr=log, env=self.environment("admin"))
        while "serving others" not in (folder / "server.log").read_text():
            if self.server.poll() is not None:
                raise SystemExit((folder / "server.log").read_text())
            time.sleep(0.1)
        for user, role in [("cluster", "worker")] + [(user, "member") for user in USERS]:
            self.ablate("admin", "admin", "user", "add", user, "--role", role, "-o", str(folder / f"{user}.join"))
            if role == "member":
                self.ablate(user, "login", "--join", str(folder / f"{user}.join"))

    def environment(self, user):
        home = self.folder / user
        home.mkdir(mode=0o700, exist_ok=True)
        environment = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home), ABLATE_HOME=str(home))
        environment.pop("ABLATE_SERVER", None)
        return environment

    def ablate(self, user, *arguments, check=True):
        done = subprocess.run([self.programs / "ablate", *arguments], env=self.environment(user), cwd=self.folder,
                              capture_output=True, text=True)
        self.calls += 1
        if check and done.returncode != 0:
            raise RuntimeError(f"{user}: ablate {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, user, name, seeds, steps=200):
        path = self.folder / f"{user}-{name}.yaml"
        path.write_text(EXPERIMENT.format(name=name, first=seeds[0], last=seeds[1], steps=steps))
        return self.ablate(user, "submit", str(path)).split()[0]

    def act(self, user, luck, own):
        """Does one thing that a user does."""
        first = luck.randrange(10_000)
        kind = luck.choice(["submit"] * 3 + ["cancel", "delete", "analyze", "compare", "sql", "ls", "workers", "queue"])
        if kind == "submit":
            own.append(self.submit(user, f"e{len(own)}", (first, first + luck.randrange(4)), luck.choice([100, 300])))
        elif kind in ("ls", "workers", "queue"):
            self.ablate(user, kind)
        elif kind == "sql":
            self.ablate(user, "sql", "SELECT state, count(*), avg(steps) FROM runs GROUP BY state")
        elif own and kind == "cancel":
            self.ablate(user, "cancel", own[-1])
        elif own and kind == "delete":
            self.ablate(user, "cancel", own[0], check=False)
            self.ablate(user, "rm", "--yes", own.pop(0), check=False)  # refused while analyses run
        elif own and kind == "compare":
            self.ablate(user, "compare", own[0], check=False)  # exits with 3 if there are too few runs
        elif own and kind == "analyze":
            self.ablate(user, "analyze", "spectrum", own[0], "--no-wait", check=False)  # refused without checkpoints

    def use(self, user, seed):
        luck, own = random.Random(seed), []
        while not self.stopping.wait(luck.uniform(1, 4)):
            try:
                self.act(user, luck, own)
            except RuntimeError as error:
                self.failures.append(str(error))

    def start_worker(self, *options):
        number = len(self.workers) + self.kills
        with open(self.folder / "workers.log", "a") as log:
            self.workers.append(subprocess.Popen(
                [self.programs / "ablate-worker", "--join", self.folder / "cluster.join", "--name",
                 f"pilot-{number}-{random.randrange(1 << 30):08x}", "--device", "cpu", *options],
                stdout=log, stderr=log, env=self.environment("cluster")))

    def run_cluster(self):
        luck = random.Random(7)
        while not self.stopping.wait(luck.uniform(3, 12)):
            self.workers = [each for each in self.workers if each.poll() is None]
            if len(self.workers) < 2:
                self.start_worker("--lanes", "1", "--exit-when-idle", "20s")
            elif luck.random() < 0.5:
                luck.choice(self.workers).send_signal(luck.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1]))
                self.kills += 1

    def usage(self):
        root = pathlib.Path(f"/proc/{self.server.pid}")
        status = dict(line.split(":", 1) for line in (root / "status").read_text().splitlines())
        return (f"{int(status['VmRSS'].split()[0]) >> 10} MB, {len(os.listdir(root / 'fd'))} descriptors, "
                f"{status['Threads'].strip()} threads")

    def settle(self):
        """Lets everything end, with workers that stay."""
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers = []
        self.start_worker("--lanes", "2")
        self.start_worker("--role", "analysis")
        query = ("SELECT (SELECT count(*) FROM runs WHERE state IN ('QUEUED', 'RUNNING')) + "
                 "(SELECT count(*) FROM analyses WHERE state IN ('QUEUED', 'RUNNING'))")
        deadline = time.monotonic() + 600
        while (left := self.ablate("ann", "sql", query).split()[-1]) != "0":
            if time.monotonic() > deadline:
                raise SystemExit(f"{left} runs and analyses are stuck")
            time.sleep(1)

    def points(self, user, experiment):
        return self.ablate(user, "metrics", experiment, "--key", "eval/loss", "--csv")

    def undisturbed(self):
        """Returns the points of the shared runs by a server of their own."""
        self.ablate("alone", "up", "--lanes", "2")
        try:
            experiment = self.submit("alone", "shared", (0, 3), 2000)
            self.ablate("alone", "wait", experiment)
            return self.points("alone", experiment)
        finally:
            self.ablate("alone", "down")

    def run(self, minutes, every):
        wanted = self.undisturbed()
        threads = [threading.Thread(target=self.use, args=(user, number)) for number, user in enumerate(USERS)]
        threads.append(threading.Thread(target=self.run_cluster))
        shared = self.submit("ann", "shared", (0, 3), 2000)
        for thread in threads:
            thread.start()
        for minute in range(0, minutes, every):
            time.sleep(60 * every)
            print(f"after {minute + every} min: {self.usage()}; {self.calls} calls, {self.kills} signals", flush=True)
        self.stopping.set()
        for thread in threads:
            thread.join()
        self.settle()
        self.ablate("admin", "admin", "check")  # fails if the store is damaged
        print(f"settled: {self.usage()}; the store is whole; {len(self.failures)} of {self.calls} calls failed")
        for failure in self.failures[:20]:
            print(failure)
        if self.points("ann", shared) != wanted:
            raise SystemExit("the points of the shared runs differ")
        print("the points of the shared runs are equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--every", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak", ignore_cleanup_errors=True) as folder:
        soak = Soak(options.programs.resolve(), pathlib.Path(folder))
        try:
            soak.run(options.minutes, options.every)
        finally:
            soak.stopping.set()
            for process in [*soak.workers, soak.server]:
                process.kill()
                process.wait()


main()
