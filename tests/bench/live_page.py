"""Measures the live page: times of pages with many runs, and processor time while pages are open.

Usage: live_page.py ROOT BIN DATA [RUNS]

RUNS: runs of the big store, in experiments of 5,000 [100000]. Prints one line of JSON.
"""
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

root, programs, data = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 100_000
sys.path[:0] = [str(root / "tests/client/python")]
os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
os.environ.update(ABLATE_ROOT=str(root), ABLATE_TEST_DATA=str(data))
os.environ.pop("ABLATE_SERVER", None)

import yaml
from personal_server import PersonalServer, placement

TRIES, READERS, SECONDS = 9, 20, 20


class Page:
    """`ablate web`, asked over one connection."""

    def __init__(self):
        self.process = subprocess.Popen(["ablate", "web", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        text = ""
        while not text.endswith("}\n"):
            text += self.process.stdout.readline()
        first = urllib.parse.urlsplit(json.loads(text)["address"])
        self.port = first.port
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", f"/?{first.query}")
        self.cookie = connection.getresponse().headers["Set-Cookie"].split(";")[0]

    def open(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        return connection.getresponse()

    def milliseconds(self, path):
        """Medians until the first kilobytes of a page, which a browser can paint, and until its end."""
        first, whole = [], []
        for _ in range(TRIES):
            begin = time.perf_counter()
            answer = self.open(path)
            assert answer.status == 200, (path, answer.status)
            answer.read(4096)
            first.append((time.perf_counter() - begin) * 1000)
            answer.read()
            whole.append((time.perf_counter() - begin) * 1000)
        return {"first": round(statistics.median(first), 1), "whole": round(statistics.median(whole), 1)}


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor_name():
    return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))


def open_pages(page, path, counts):
    def read():
        answer = page.open(path)
        while line := answer.readline():
            counts.append(len(line))
    for _ in range(READERS):
        threading.Thread(target=read, daemon=True).start()


def fill(server, wanted):
    for number in range(wanted // 5000):
        lines = ["norm,lr,seed,eval/loss"]
        for run in range(5000):
            norm, lr, seed = run % 5, run // 5 % 20, run // 100
            lines.append(f"n{norm},{0.001 * (lr + 1):.4f},{seed},{2 + norm / 10 + (run * 7919 + number) % 1000 / 5000}")
        table = server.folder / f"table{number}.csv"
        table.write_text("\n".join(lines))
        server.ablate("import", str(table), "--setting", "norm", "--setting", "lr", "--metric", "eval/loss", "--name", f"big{number}")


def main():
    result = {"processor": processor_name(), "cores": os.cpu_count()}
    with PersonalServer() as server:
        server.ablate("up")
        base = placement()["base"]
        base["training"]["steps"] = 1000
        grid = placement(name="grid", base=base, seeds={"first": 0, "count": 12},
                         axes=[{"field": "model.norm.placement", "values": ["pre", "post", "none"]},
                               {"name": "lr", "field": "training.learning_rate", "values": [.001, .002, .004, .01, .02], "tune": True}])
        (server.folder / "grid.yaml").write_text(yaml.safe_dump(grid))
        server.ablate("submit", "grid.yaml", "--wait")
        page = Page()
        result["180 runs of 1,000 steps, ms"] = page.milliseconds("/e/grid")

        base["training"]["steps"] = 200_000
        (server.folder / "live.yaml").write_text(yaml.safe_dump({**grid, "name": "live"}))
        server.ablate("submit", "live.yaml")
        pids = {"gateway": page.process.pid, "server": int((server.folder / "home/run/ablated.pid").read_text().split()[0])}

        def share(seconds):
            before = {name: processor_seconds(pid) for name, pid in pids.items()}
            time.sleep(seconds)
            return {name: round(100 * (processor_seconds(pid) - before[name]) / seconds, 1) for name, pid in pids.items()}

        time.sleep(5)
        counts = []
        result["percent of a core, no page"] = share(SECONDS)
        open_pages(page, "/e/live/events?by=setting", counts)
        time.sleep(3)
        counts.clear()
        result[f"percent of a core, {READERS} pages of a training experiment"] = share(SECONDS)
        result["bytes a second and page"] = round(sum(counts) / SECONDS / READERS)
        server.ablate("cancel", "live")

        fill(server, runs)
        result["runs"] = runs
        result["home, ms"] = page.milliseconds("/")
        result["runs, ms"] = page.milliseconds("/runs")
        condition = urllib.parse.quote("norm = n3 AND eval/loss < 2.31")
        result["filter, ms"] = page.milliseconds(f"/runs?filter={condition}&sort=eval/loss")
        page.process.terminate()
    print(json.dumps(result))


main()
