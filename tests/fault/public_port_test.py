"""Attacks a server of public_server.cc, and holds that its memory stays bounded and that others are served meanwhile.

public_port_test.py SERVER [--bare] [--seconds S] [--attackers N] [--descriptors N] [--only ATTACK,...] [NAME=NUMBER ...]

--bare is gRPC's own port, NAME=NUMBER an argument of gRPC: docs/adr/0010 has what came out of those."""
import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import time

from attacks import ATTACKS
from http2 import Connection

MEMORY_LIMIT = 2 << 30  # of the server's address space, whatever it does
MAX_MIB = 300  # of its resident memory: what ResourceQuota allows, and a start of some 20
MAX_WAIT = 2  # seconds; a busy machine has its share in that
PROBE_EVERY = 0.05


class Server:
    def __init__(self, arguments):
        command = [arguments.server] + (["--bare"] if arguments.bare else []) + arguments.settings
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "GRPC_VERBOSITY": "NONE"},
                                        preexec_fn=lambda: limit(arguments.descriptors))
        self.address = ("127.0.0.1", int(self.process.stdout.readline()))

    def usage(self):
        """(MiB, threads, descriptors, seconds of CPU); None if it has ended."""
        folder = f"/proc/{self.process.pid}"
        try:
            with open(f"{folder}/status", encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file)
            with open(f"{folder}/stat", encoding="ascii") as file:
                ticks = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
            return (int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]), len(os.listdir(f"{folder}/fd")),
                    ticks / os.sysconf("SC_CLK_TCK"))
        except (OSError, KeyError):
            return None

    def stop(self):
        self.process.kill()
        self.process.wait()


def limit(descriptors):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


def probe(address, fresh, stop, waits):
    """A well-behaved client: how long each of its calls took, on one connection or each on a new one; None if it was not served."""
    connection = None
    while not stop.is_set():
        began = time.monotonic()
        try:
            if connection is None or fresh:
                connection = Connection(address)
            served = connection.is_served(5)
        except OSError:
            served = False
        waits.append(time.monotonic() - began if served else None)
        if fresh and connection is not None:
            connection.close()
        if not served:
            connection = None
        time.sleep(PROBE_EVERY)


def run_attack(name, address, source, seconds, results):
    results.append(ATTACKS[name](address, source, seconds))


def start(function, *arguments):
    process = multiprocessing.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


def describe(waits):
    served = sorted(wait for wait in waits if wait is not None)
    if not served:
        return f"0 of {len(waits)}"
    return f"{len(served)} of {len(waits)}, {served[len(served) // 2] * 1000:.0f}, {served[-1] * 1000:.0f} ms"


def problems(server, peak, waits):
    if server.process.poll() is not None:
        yield "the server died"
    if peak[0] > MAX_MIB:
        yield f"it took {peak[0]:.0f} MiB, more than {MAX_MIB}"
    for kind, each in waits.items():
        late = sum(wait is None or wait > MAX_WAIT for wait in each)
        if late or not each:
            yield f"{late} of {len(each)} calls on {kind} were not served in {MAX_WAIT} s"


def measure(name, arguments, manager):
    """Runs one attack; prints a row of the table and returns sentences about what went wrong."""
    server = Server(arguments)
    stop = manager.Event()
    results = manager.list()
    waits = {"an old connection": manager.list(), "new connections": manager.list()}
    probes = [start(probe, server.address, kind == "new connections", stop, each) for kind, each in waits.items()]
    before = peak = server.usage()
    attackers = [start(run_attack, name, server.address, f"127.0.0.{2 + i}", arguments.seconds, results)
                 for i in range(arguments.attackers)]
    end = time.monotonic() + arguments.seconds + 10
    while any(each.is_alive() for each in attackers) and time.monotonic() < end:
        now = server.usage()
        if now is not None:
            peak = tuple(map(max, peak, now))
        time.sleep(0.02)
    stop.set()
    for each in probes + attackers:
        each.join(6)
    waits = {kind: list(each) for kind, each in waits.items()}
    wrong = list(problems(server, peak, waits))
    print(f"{name:26} {before[0]:3.0f} to {peak[0]:4.0f} MiB, {peak[1]:3} threads, {peak[2]:5} descriptors, {peak[3] - before[3]:4.1f} s CPU | "
          f"old: {describe(waits['an old connection']):22} | new: {describe(waits['new connections']):22} | "
          f"{'; '.join(results)} {'; '.join(wrong)}", flush=True)
    server.stop()
    return [f"{name}: {each}" for each in wrong]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--attackers", type=int, default=2)
    parser.add_argument("--descriptors", type=int, default=20_000)
    parser.add_argument("--only", default=",".join(ATTACKS))
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_intermixed_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    arguments.descriptors = min(arguments.descriptors, most)
    with multiprocessing.Manager() as manager:
        wrong = [each for name in arguments.only.split(",") for each in measure(name, arguments, manager)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
