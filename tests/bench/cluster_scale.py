"""Measures a real shared server with simulated workers and watchers, which join over TLS.

Usage: cluster_scale.py BIN [--workers N] [--lanes N] [--runs N] [--users N] [--experiments N] [--watchers N] [--burst N] [--restart]

BIN is the folder of the programs. Workers end each run as soon as they are granted it: Started, Points, Finished. The
users submit RUNS in EXPERIMENTS of equal size; meanwhile a client asks for the state of experiments
and workers, and with --burst one more user submits so many runs in one experiment. With --restart the server is
stopped halfway and started again. Needs grpcio and protobuf; clients share the machine with the server.
"""
import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

os.environ["GRPC_VERBOSITY"] = "NONE"
import grpc  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 50


def load_messages(folder):
    """Makes Python modules of the messages, also of those between server and workers."""
    files = [str(file) for file in sorted((ROOT / "proto/ablate").glob("*/**/*.proto"))]
    subprocess.run(["protoc", f"-I{ROOT}/proto", f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))
    from ablate.v1 import experiment_pb2, queue_pb2, spec_pb2, worker_pb2
    from ablate.worker.v1 import worker_pb2 as protocol_pb2
    return experiment_pb2, queue_pb2, spec_pb2, worker_pb2, protocol_pb2


class Server:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.home = programs, folder, folder / "home"
        self.environment = dict(os.environ, ABLATE_HOME=str(self.home), HOME=str(folder))
        self.environment.pop("ABLATE_SERVER", None)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.ablate("up", "--lanes", "1")
        self.ablate("admin", "init", f"localhost:{self.port}")
        self.ablate("down")
        self.start()

    def ablate(self, *arguments):
        done = subprocess.run([self.programs / "ablate", *arguments], env=self.environment, cwd=self.folder,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ablate {' '.join(arguments)}: {done.stderr}")

    def start(self):
        log = open(self.folder / "server.log", "a")
        at = log.tell()
        self.process = subprocess.Popen(
            [self.programs / "ablated", "--home", self.home, "--no-workers", "--listen", f"127.0.0.1:{self.port}"],
            env=self.environment, stdout=log, stderr=log)
        while "serving others" not in (self.folder / "server.log").read_text()[at:]:
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def join(self, user, role):
        path = self.folder / f"{user}.join"
        self.ablate("admin", "user", "add", user, "--role", role, "-o", str(path))
        return json.loads(path.read_text())

    def usage(self):
        status = dict(line.split(":", 1) for line in
                      pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        files = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return f"{int(status['VmRSS'].split()[0]) >> 10} MB, {status['Threads'].strip()} threads, {files} files, " \
               f"{seconds:.1f} s of processor time"


class Client:
    """A channel with a token. Each has a connection of its own."""

    def __init__(self, join):
        credentials = grpc.ssl_channel_credentials(join["certificate_authority"].encode())
        self.channel = grpc.aio.secure_channel(join["address"], credentials, [
            ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0),
            ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.initial_reconnect_backoff_ms", 100)])
        self.metadata = (("authorization", f"Bearer {join['token']}"),)

    async def call(self, method, request, response, timeout=60):
        call = self.channel.unary_unary(f"/ablate.v1.{method}", type(request).SerializeToString, response.FromString)
        return await call(request, metadata=self.metadata, timeout=timeout)

    def stream(self, method, request, response):
        call = self.channel.unary_stream(f"/ablate.v1.{method}", type(request).SerializeToString, response.FromString)
        return call(request, metadata=self.metadata)


class Simulation:
    def __init__(self, options, server, messages):
        self.options, self.server = options, server
        self.experiment, self.queue, self.spec, self.workers, self.protocol = messages
        self.done = collections.Counter()  # runs, by user
        self.owner = {}  # of each run
        self.attached = set()
        self.events = 0  # that watchers got
        self.latencies = collections.defaultdict(list)
        self.stopping = False

    def make_spec(self, name, seeds, first):
        spec = self.spec.ExperimentSpec(name=name)
        spec.base.task.legacy_recall.keys, spec.base.task.legacy_recall.draw = 10, 4
        model, training = spec.base.model, spec.base.training
        model.layers, model.width, model.heads = 1, 16, 2
        training.steps, training.batch, training.trainer = STEPS, 4, 2
        spec.base.evaluation.every, spec.base.evaluation.batches = STEPS, 1
        spec.seeds.first, spec.seeds.count, spec.limits.runs = first, seeds, max(seeds, 1000)
        if seeds > 10_000:  # the most
            axis = spec.axes.add(field="model.norm.placement")
            for placement in ("pre", "post"):
                axis.values.add().string_value = placement
            spec.seeds.count = seeds // 2
        return spec

    async def submit(self, client, user, name, seeds, first):
        request = self.experiment.CreateExperimentRequest(spec=self.make_spec(name, seeds, first),
                                                          request_id=os.urandom(8).hex())
        answer = await client.call("Experiments/CreateExperiment", request, self.experiment.CreateExperimentResponse,
                                   timeout=300)
        for cell in answer.cells:
            self.owner[cell.run.removeprefix("runs/")] = user
        return answer.experiment.name

    def events_of(self, grant):
        X, lease = self.protocol, grant.lease
        points = X.Points(step=STEPS, busy_us=20_000, tokens=1000, columns=[
            X.Column(key="eval/loss", steps=[0, STEPS], values=[2.3, 1 + random.random()]),
            X.Column(key="train/loss", steps=list(range(STEPS)), values=[2.0] * STEPS)])
        return [X.FromWorker(event=X.Event(lease=lease, seq=1, started=X.Started())),
                X.FromWorker(event=X.Event(lease=lease, seq=2, points=points)),
                X.FromWorker(event=X.Event(lease=lease, seq=3, finished=X.Finished(step=STEPS)))]

    async def worker(self, number, join):
        X, name = self.protocol, f"sim{number}"
        client, incarnation = Client(join), os.urandom(8).hex()
        hello = X.Hello(worker=name, incarnation=incarnation, device="simulated", device_kind="cpu",
                        lanes=self.options.lanes, build="simulated", numerics_version=self.options.numerics,
                        config_version=self.options.config,
                        trainers=[X.TrainerInfo(name="torch", environment="simulated"),
                                  X.TrainerInfo(name="native", environment="native, simulated")])
        attach = client.channel.stream_stream("/ablate.worker.v1.WorkerChannel/Attach",
                                              X.FromWorker.SerializeToString, X.ToWorker.FromString)
        run_of, beats, writing = {}, None, asyncio.Lock()  # gRPC takes one write at a time
        while not self.stopping:
            call = attach(metadata=client.metadata)
            try:
                await call.write(X.FromWorker(hello=hello))
                beats = asyncio.create_task(self.beat(call, writing))
                while (message := await call.read()) is not grpc.aio.EOF:
                    kind = message.WhichOneof("message")
                    if kind == "welcome":
                        self.attached.add(number)
                    elif kind == "grant":
                        run_of[message.grant.lease] = message.grant.run.run
                        async with writing:
                            for event in self.events_of(message.grant):
                                await call.write(event)
                    elif kind == "ack" and message.ack.seq == 3:
                        self.done[self.owner.get(run_of.pop(message.ack.lease, ""), "?")] += 1
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass
            finally:
                if beats:
                    beats.cancel()
                call.cancel()
            self.attached.discard(number)
            await asyncio.sleep(0.1 + random.random())

    async def beat(self, call, writing):
        while True:
            await asyncio.sleep(4 + random.random())
            beat = self.protocol.FromWorker(heartbeat=self.protocol.Heartbeat(lanes=self.options.lanes))
            try:
                async with writing:
                    await call.write(beat)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return

    async def watcher(self, join, names):
        client = Client(join)
        while not self.stopping:
            request = self.experiment.WatchExperimentRequest(name=random.choice(names), snapshots=random.random() < 0.5)
            try:
                async for _ in client.stream("Experiments/WatchExperiment", request, self.experiment.ExperimentEvent):
                    self.events += 1
            except grpc.aio.AioRpcError:
                pass
            await asyncio.sleep(0.1 + random.random())

    async def ask(self, join, names):
        """Asks for states, and notes how long the answers take."""
        client = Client(join)
        calls = [("Experiments/GetExperiment", lambda: self.experiment.GetExperimentRequest(name=random.choice(names)),
                  self.experiment.Experiment),
                 ("Workers/ListWorkers", self.workers.ListWorkersRequest, self.workers.ListWorkersResponse),
                 ("Queue/ListQueue", self.queue.ListQueueRequest, self.queue.ListQueueResponse)]
        while not self.stopping:
            for method, request, response in calls:
                begin = time.monotonic()
                try:
                    await client.call(method, request(), response)
                    self.latencies[method].append(time.monotonic() - begin)
                except grpc.aio.AioRpcError:
                    pass
            await asyncio.sleep(0.2)

    def say(self, text):
        print(f"{text}; server: {self.server.usage()}", flush=True)

    async def until(self, condition, seconds=600):
        begin = time.monotonic()
        while not condition() and time.monotonic() - begin < seconds:
            await asyncio.sleep(0.05)
        return time.monotonic() - begin

    async def run(self):
        tasks = []
        try:
            await self.measure(tasks)
        finally:
            self.stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def measure(self, tasks):
        options = self.options
        users = [f"user{i}" for i in range(options.users)]
        joins = {user: self.server.join(user, "member") for user in users}
        cluster = self.server.join("cluster", "worker")
        clients = {user: Client(joins[user]) for user in users}
        begin, names, first = time.monotonic(), [], 0
        while first < options.runs:
            # Equal numbers for all, so that shares can be compared.
            seeds, user = min(options.runs // options.experiments, options.runs - first), users[len(names) % len(users)]
            names.append(await self.submit(clients[user], user, f"e{len(names)}", seeds, first))
            first += seeds
        self.say(f"{options.runs} runs in {len(names)} experiments of {len(users)} users submitted in "
                 f"{time.monotonic() - begin:.1f} s")
        tasks += [asyncio.create_task(self.watcher(random.choice(list(joins.values())), names))
                  for _ in range(options.watchers)]
        tasks.append(asyncio.create_task(self.ask(joins[users[0]], names)))
        if options.watchers:
            await asyncio.sleep(options.watchers / 200)
            self.say(f"{options.watchers} watchers got {self.events} events")
        begin = time.monotonic()
        tasks += [asyncio.create_task(self.worker(i, cluster)) for i in range(options.workers)]
        await self.until(lambda: len(self.attached) == options.workers, 120)
        joined = time.monotonic() - begin
        await asyncio.sleep(2)
        self.say(f"{len(self.attached)} of {options.workers} workers attached within {joined:.1f} s")
        self.latencies.clear()
        begin, before = time.monotonic(), sum(self.done.values())
        if options.burst:
            at = time.monotonic()
            await self.submit(clients[users[0]], users[0], "burst", options.burst, first)
            self.say(f"{options.burst} runs submitted in {time.monotonic() - at:.1f} s, meanwhile the slowest answers "
                     + ", ".join(f"{method.partition('/')[2]} {max(times):.2f} s"
                                 for method, times in self.latencies.items()))
        if options.restart:
            await self.until(lambda: sum(self.done.values()) > options.runs / 2)
            self.server.stop()
            await self.until(lambda: not self.attached, 30)
            at = time.monotonic()
            self.server.start()
            await self.until(lambda: len(self.attached) == options.workers, 120)
            self.say(f"after a restart {len(self.attached)} workers are attached within {time.monotonic() - at:.1f} s")
        if options.restart:
            return  # acknowledgements were lost, so runs can't be counted
        half = options.runs / 2
        await self.until(lambda: sum(self.done.values()) >= half)
        shares = sorted(self.done[user] for user in users)
        total = options.runs + options.burst
        await self.until(lambda: sum(self.done.values()) >= total)
        ended, seconds = sum(self.done.values()), time.monotonic() - begin
        self.say(f"{ended} of {total} runs ended, {(ended - before) / seconds:.0f} a second; half-way users had "
                 f"{shares[0]} to {shares[-1]} of them; watchers got {self.events} events")
        for method, times in self.latencies.items():
            times.sort()
            print(f"{method}: median {1e3 * times[len(times) // 2]:.1f} ms, 99 % within "
                  f"{1e3 * times[int(0.99 * len(times))]:.1f} ms, {len(times)} calls")
        print(f"simulation: {sum(os.times()[:2]):.1f} s of processor time")


def versions():
    """The versions that a worker must have to be granted runs, as the engine declares them."""
    text = (ROOT / "server/engine/trainer.h").read_text() + (ROOT / "server/engine/config.h").read_text()
    return [int(text.partition(f"{name} = ")[2].partition(";")[0]) for name in ("kNumericsVersion", "kConfigVersion")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    for name, number in (("workers", 64), ("lanes", 2), ("runs", 20_000), ("users", 20), ("experiments", 100), ("watchers", 0), ("burst", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--restart", action="store_true")
    options = parser.parse_args()
    options.numerics, options.config = versions()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scale"))
    server = None
    try:
        messages = load_messages(folder)
        server = Server(options.programs.resolve(), folder)
        asyncio.run(Simulation(options, server, messages).run())
    finally:
        if server:
            server.process.terminate()
            server.process.wait(60)
        shutil.rmtree(folder)


main()
