"""A headless Chromium, and the program `ablate web` that it looks at."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


class Page:
    """`ablate web` of the server that the environment names. Use it in a `with`."""

    def __enter__(self):
        self.process = subprocess.Popen(["ablate", "web", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = iter(self.process.stdout.readline, "}\n")  # to the end of the object
        printed = json.loads("".join(lines) + "}")
        self.first, self.port = printed["address"], int(printed["port"])
        self.base = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    """Chromium with a profile of its own. Use it in a `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="browser")
        options = Options()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--no-proxy-server", f"--user-data-dir={self.folder}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        return self

    def __exit__(self, *exception):
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cdp(self, method, **parameters):
        return self.driver.execute_cdp_cmd(method, parameters)

    def resize(self, width, height=900, dark=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    def shoot(self, path, height, scale=1):
        """Writes the page as WebP, at most `height` pixels of it."""
        content = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": self.driver.execute_script("return innerWidth"),
                "height": min(content["height"], height), "scale": scale}
        shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip, format="webp", quality=70)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def text(self, query="body"):
        """The text of the first element that a CSS selector finds; "" if there is none."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", query)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def complaints(self):
        """Errors of scripts and of the policy since the last call, except the icon of the first address."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "favicon.ico" not in entry["message"]]


def eventually(condition, seconds=60):
    """Waits until `condition` returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.05)
