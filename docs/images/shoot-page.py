"""Takes pictures of every view of `ablate web` by headless Chromium, to be looked at.

Usage: docs/images/shoot-page.py ROOT BIN DATA OUT

Writes OUT/VIEW-WIDTH-light.webp and -dark.webp at widths of 1440, 800 and 390 pixels. Those of
`kept` go to docs/images, smaller. Needs selenium, chromium and chromedriver.
"""
import json
import os
import pathlib
import sys
import time

root, programs, data, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
sys.path[:0] = [str(root / "tests/client/python"), str(root / "tests/client/web")]
os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
os.environ.update(ABLATE_ROOT=str(root), ABLATE_TEST_DATA=str(data))
os.environ.pop("ABLATE_SERVER", None)

import yaml
from browser import Browser, Page, eventually
from personal_server import PersonalServer

kept = {("home", 1440, False): "live-page-home", ("training", 1440, False): "live-page-training",
        ("training", 390, True): "live-page-phone"}


def grid(name, steps, seeds):
    spec = yaml.safe_load((root / "examples/names-norm.yaml").read_text())
    spec["name"], spec["seeds"] = name, {"first": 42, "count": seeds}
    spec["base"]["task"]["documents"]["dataset"] = "names.txt"
    spec["base"]["training"].update(steps=steps, checkpoints=[0, -1])
    spec["base"]["evaluation"]["every"] = steps // 10
    spec.pop("analyses")
    return spec


def main():
    out.mkdir(parents=True, exist_ok=True)
    with PersonalServer() as server, Browser() as browser:
        def submit(spec, *options):
            (server.folder / "spec.yaml").write_text(yaml.safe_dump(spec))
            return server.ablate("submit", "spec.yaml", *options).split()[0]

        server.ablate("up")
        ended = submit(grid("names-norm", 400, 8), "--tag", "paper", "--note", "Figure 2 of the paper")
        server.ablate("wait", ended)
        run = json.loads(server.ablate("runs", ended, "--json"))["rows"][70]["run"].split("/")[1]
        training = submit(grid("norm-long", 12_000, 8), "--tag", "longer")
        with Page() as page:
            browser.driver.get(page.first)
            eventually(lambda: browser.text("h1") == "Lab")
            time.sleep(25)  # until some of its runs have ended
            views = {"home": "/", "training": f"/e/{training}", "run": f"/r/{run}", "ended": f"/e/{ended}",
                     "figure": f"/e/{ended}/figure?kind=forest", "pair": f"/r/{run}/with?other={ended}/pre-lr0.01-s42",
                     "runs": f"/runs?experiment={ended}&columns=placement,lr,eval/loss&draw=scatter",
                     "parallel": f"/runs?experiment={ended}&columns=lr,seed,train/loss,eval/loss&draw=parallel",
                     "sql": "/sql?query=SELECT+state,count(*)+AS+runs+FROM+runs+GROUP+BY+state",
                     "act": f"/e/{training}/do/tag?value=paper"}
            for view, path in views.items():
                for width in (1440, 800, 390):
                    for dark in (False, True):
                        browser.resize(width, dark=dark)
                        browser.driver.get(page.base + path)
                        time.sleep(1.2)
                        browser.shoot(out / f"{view}-{width}-{'dark' if dark else 'light'}.webp", 2400)
                        if (view, width, dark) in kept:
                            name = kept[view, width, dark]
                            browser.shoot(root / f"docs/images/{name}.webp", 1500, .7)
                        for complaint in browser.complaints():
                            print(view, width, complaint)


main()
