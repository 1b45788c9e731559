"""Tests the live page in a real browser, against real programs.

Usage: browser_test.py ROOT BIN DATA [TEST…]

As tests/client/python/run.py. Exit code 77: there is no Chromium, or no selenium.
"""
import http.client
import http.server
import importlib.util
import os
import pathlib
import shutil
import sys
import threading
import unittest

root, programs, data = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
if not importlib.util.find_spec("selenium") or not shutil.which("chromedriver") or not shutil.which("chromium"):
    print("skipped: no selenium, chromium or chromedriver")
    sys.exit(77)
sys.path[:0] = [str(root / "tests/client/python"), str(pathlib.Path(__file__).parent)]
os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
os.environ.update(ABLATE_ROOT=str(root), ABLATE_TEST_DATA=str(data))
os.environ.pop("ABLATE_SERVER", None)

import yaml
from browser import Browser, Page, eventually
from selenium.webdriver.common.keys import Keys
from personal_server import PersonalServer, placement

HOSTILE = "<script>hacked=1</script><img src=x onerror=hacked=1>\"'"


class BrowserTest(unittest.TestCase):
    """One server, one page, one browser and one ended experiment for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.server = PersonalServer().enter(cls)
        cls.server.ablate("up")
        cls.page = cls.enterClassContext(Page())
        cls.browser = cls.enterClassContext(Browser())
        cls.browser.driver.get(cls.page.first)
        eventually(lambda: cls.browser.text("h1") == "Lab")
        cls.ended = cls.submit("ended")
        cls.server.ablate("wait", cls.ended)

    def setUp(self):
        self.browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
        self.browser.complaints()

    @classmethod
    def submit(cls, name, *options, **fields):
        """Submits a small experiment; returns its ID."""
        path = cls.server.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(placement(name=name, **fields)))
        return cls.server.ablate("submit", str(path), *options).split()[0]

    def open(self, path):
        self.browser.driver.get(self.page.base + path)

    def expect_text(self, text, query="body"):
        try:
            eventually(lambda: text in self.browser.text(query))
        except AssertionError:
            self.fail(f"{text!r} is not in {self.browser.text(query)!r}")

    def expect_no_complaints(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertTrue(self.browser.run("return typeof hacked === 'undefined'"))

    def test_home_follows_an_experiment_to_its_verdict(self):
        self.open("/")
        self.browser.run("window.kept = true")
        experiment = self.submit("follow")
        self.expect_text(experiment, "[data-part=experiments]")
        self.expect_text("against “pre”", "[data-part=experiments]")
        self.assertTrue(self.browser.run("return window.kept"), "the page was loaded again")
        self.expect_text("The queue is empty")
        self.expect_text("cpu-train", "[data-part=devices]")
        self.expect_no_complaints()

    def test_an_experiment_is_preliminary_then_has_its_report(self):
        base = placement()["base"]
        base["training"]["steps"] = 20_000
        experiment = self.submit("live", base=base, seeds={"first": 0, "count": 3})
        self.open(f"/e/{experiment}")
        self.expect_text("Preliminary", "[data-part=board]")
        eventually(lambda: self.browser.run("return document.querySelectorAll('#curves canvas').length"))
        self.expect_text("/20,000", "[data-part=lanes]")
        self.server.ablate("wait", experiment)
        self.expect_text("Reproduce:", ".report")
        self.assertEqual(self.browser.text("[data-part=board]"), "")
        eventually(lambda: self.browser.run("return document.querySelectorAll('#curves canvas').length"))
        self.expect_no_complaints()

    def test_curves_are_also_a_table_and_read_by_keys(self):
        experiment = self.ended
        self.open(f"/e/{experiment}?by=seed")
        eventually(lambda: self.browser.run("return document.querySelectorAll('#curves canvas').length"))
        picture = "return [...document.querySelectorAll('#curves canvas')].map(one => one.toDataURL()).join()"
        for change in ("one('#smooth').value = 15; one('#smooth')", "one('#log-y').checked = true; one('#log-y')",
                       "one('#log-x').checked = true; one('#log-x')"):
            before = self.browser.run(picture)
            self.browser.run(f"const one = (query) => document.querySelector(query); {change}.dispatchEvent(new Event('change'))")
            eventually(lambda: self.browser.run(picture) != before)
        self.assertTrue(self.browser.driver.current_url.endswith("?by=seed"), "the page was loaded again")
        self.browser.run("document.querySelector('#log-x').checked = false; document.querySelector('#log-x').onchange()")
        self.browser.run("document.querySelector('#curve-table').closest('details').open = true")
        self.expect_text("pre-s0", "#curve-table")
        self.browser.run("document.querySelector('#curves').dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}))")
        self.expect_text("step 0:", "#readout")
        self.expect_no_complaints()

    def test_a_run_has_its_metrics_and_what_differs(self):
        experiment = self.ended
        run = self.server.ablate("runs", f"{experiment}/post-s3", "--json")
        run = yaml.safe_load(run)["rows"][0]["run"].split("/")[1]
        self.open(f"/r/{run}")
        for text in ("post-s3", "DONE", "train/loss", "model.norm.placement", "History", "Compared with pre-s3"):
            self.expect_text(text)
        eventually(lambda: self.browser.run("return document.querySelectorAll('#curves canvas').length"))
        self.browser.driver.find_element("link text", "Samples").click()
        self.expect_text("20 samples at step 200")
        self.expect_no_complaints()

    def test_figures_have_choices_and_files(self):
        experiment = self.ended
        self.open(f"/e/{experiment}/figure?kind=forest")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.drawn svg').length"), 1)
        files = self.browser.run("return [...document.querySelectorAll('.actions a')].map(a => a.href)")
        for address in files:
            kind = self.browser.run("return fetch(arguments[0]).then(a => a.blob()).then(b => b.type + b.size)", address)
            self.assertRegex(kind, r"^(image|application|text)/.*\d{3,}$", address)
        self.expect_no_complaints()

    def test_explores_runs_by_a_condition_with_completion(self):
        experiment = self.ended
        self.open(f"/runs?experiment={experiment}&columns=placement,seed,eval/loss&sort=eval/loss&draw=scatter")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.drawing circle').length"), 24)
        field = self.browser.driver.find_element("css selector", "main [name=filter]")
        field.send_keys("plac")
        eventually(lambda: "placement" in self.browser.text("main .offers"))
        field.send_keys(Keys.ARROW_DOWN, Keys.ENTER, " = post", Keys.ENTER)
        eventually(lambda: self.browser.run("return document.querySelectorAll('tbody tr').length") == 8)
        self.assertIn("filter=placement+%3D+post", self.browser.driver.current_url)
        csv = self.browser.run("return fetch(document.querySelector('main .actions a').href).then(a => a.text())")
        self.assertEqual(len(csv.splitlines()), 9, csv)
        self.open("/runs?filter=placement+%3D+pots")
        self.expect_text("pots")
        self.expect_no_complaints()

    def test_answers_sql(self):
        experiment = self.ended
        self.open("/sql")
        field = self.browser.driver.find_element("name", "query")
        field.clear()
        field.send_keys(f"SELECT count(*) AS n, seed FROM cells WHERE experiment = '{experiment}' GROUP BY seed")
        self.browser.driver.find_element("css selector", "main button").click()
        self.expect_text("8 rows")
        self.expect_no_complaints()

    def test_acts_after_it_has_asked(self):
        experiment = self.submit("acting")
        self.open(f"/e/{experiment}/do/tag")
        self.browser.driver.find_element("name", "value").send_keys("checked", Keys.ENTER)
        self.expect_text(f"ablate edit {experiment} --tag=checked", "pre")
        self.assertNotIn("checked", self.server.ablate("ls"))
        self.browser.driver.find_element("css selector", "form[method=post] button").click()
        self.expect_text("Done.")
        self.assertIn("checked", self.server.ablate("ls", "--tag", "checked"))
        self.open(f"/e/{experiment}/do/seeds?value=0..9")
        self.browser.driver.find_element("css selector", "form[method=post] button").click()
        self.expect_text("30 runs")
        self.expect_no_complaints()

    def test_two_runs_are_side_by_side(self):
        experiment = self.ended
        rows = yaml.safe_load(self.server.ablate("runs", experiment, "--json"))["rows"]
        self.open(f"/{rows[0]['run'].replace('runs', 'r')}")
        self.browser.driver.find_element("name", "other").send_keys(f"{experiment}/{rows[9]['cell']}", Keys.ENTER)
        self.expect_text("Two runs")
        self.expect_text("model.norm.placement")
        eventually(lambda: self.browser.run("return document.querySelectorAll('.legend li').length") == 2)
        self.expect_no_complaints()

    def test_pages_are_complete_without_script(self):
        experiment = self.ended
        self.browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
        for path, text in (("/", experiment), (f"/e/{experiment}", "Reproduce:"), (f"/e/{experiment}/figure", "svg")):
            self.open(path)
            self.assertIn(text, self.browser.driver.page_source, path)
        self.open(f"/e/{experiment}")
        self.assertGreater(self.browser.driver.find_element("css selector", "noscript img").size["height"], 100)

    def test_views_fit_a_phone_and_name_their_parts(self):
        run = yaml.safe_load(self.server.ablate("runs", self.ended, "--json"))["rows"][9]["run"].replace("runs", "r")
        self.addCleanup(self.browser.resize, 1440)
        self.browser.resize(390)
        for path in ("/", f"/e/{self.ended}", f"/e/{self.ended}/figure?kind=loss", f"/{run}", f"/{run}/with?other={self.ended}/pre-s0",
                     f"/runs?columns=seed,eval/loss,train/loss&draw=parallel", "/sql?query=SELECT+1", f"/e/{self.ended}/do/note", "/licences"):
            self.open(path)
            self.assertEqual(self.browser.run("""
                const wrong = [];
                const all = (query) => [...document.querySelectorAll(query)];
                const check = (holds, what) => { if (!holds) wrong.push(what); };
                check(document.documentElement.lang && document.title, 'language or title');
                check(all('h1').length === 1, 'one h1');
                check(document.documentElement.scrollWidth <= 390, 'wider than the screen');
                for (const field of all('input:not([type=hidden]), select, textarea'))
                  check(field.labels?.length || field.ariaLabel, `no label: ${field.outerHTML}`);
                for (const picture of all('img')) check(picture.alt, `no alt: ${picture.outerHTML}`);
                for (const table of all('main > .scroll table, section > .scroll table')) check(table.caption, 'no caption');
                for (const drawing of all('svg:not([aria-hidden]):not(.report svg)')) check(drawing.querySelector('title'), 'no title');
                for (const key of all('[tabindex]')) check(key.tabIndex <= 0, 'order of focus');
                return wrong;"""), [], path)

    def test_a_server_that_is_gone_and_back(self):
        self.open("/")
        self.server.ablate("down")
        self.expect_text("no server", "#away")
        self.server.ablate("up")
        eventually(lambda: self.browser.text("#away") == "")
        self.server.ablate("down")
        self.open("/")
        self.expect_text("The server doesn't answer")
        self.server.ablate("up")
        self.expect_text("Experiments")  # loaded again by itself

    def test_says_that_the_command_has_ended(self):
        with Page() as page:
            self.browser.driver.get(page.first)
            self.expect_text("cpu-train")
        self.expect_text("doesn\u2019t answer; trying again", "#away")

    def test_runs_nothing_that_people_write(self):
        # Names, tags and labels have no such characters: PagesTest has them in every text.
        experiment = self.submit("hostile", "--note", HOSTILE, question=HOSTILE)
        self.server.ablate("wait", experiment)
        for path in ("/", f"/e/{experiment}", f"/e/{experiment}/figure"):
            self.open(path)
            self.expect_text("hacked=1" if "figure" not in path else "Figure")
            self.browser.run("return new Promise((done) => setTimeout(done, 300))")
            self.expect_no_complaints()

    def test_the_policy_runs_no_inline_script(self):
        self.open("/")
        self.browser.run("document.querySelector('main').innerHTML = '<img src=x onerror=\"hacked=1\">'")
        eventually(lambda: any("Content Security Policy" in message for message in self.browser.complaints()))
        self.assertTrue(self.browser.run("return typeof hacked === 'undefined'"))

    # What other web sites can do.

    def status(self, method="GET", path="/", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.page.port)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.assertNotIn("Access-Control-Allow-Origin", answer.headers)
        self.assertNotIn(b"Devices", text)
        return answer.status

    def test_refuses_a_guessed_port_and_a_rebound_name(self):
        self.assertEqual(self.status(), 403)
        self.assertEqual(self.status(path="/?token=0123456789abcdef0123456789abcdef"), 403)
        cookie = "; ".join(f"{one['name']}={one['value']}" for one in self.browser.driver.get_cookies())
        self.assertEqual(self.status(Cookie=cookie, Host=f"evil.example:{self.page.port}"), 421)
        self.assertEqual(self.status(Cookie=cookie, Origin="http://evil.example"), 403)
        self.assertEqual(self.status("POST", "/", "form=x", Cookie=cookie,
                                     Content_Type="application/x-www-form-urlencoded"), 403)
        self.assertEqual(self.status("POST", "/", "x" * 200_000, Cookie=cookie), 413)
        self.assertIn(self.status(path="/" + "x" * 9000, Cookie=cookie), (400, 414))

    def test_refuses_what_another_site_sends_through_the_browser(self):
        target = self.page.base

        class Evil(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(f"""<form method=post action="{target}/" target=f><input name=form value=x></form><iframe name=f></iframe>
                    <script>document.forms[0].submit();
                    fetch("{target}/", {{credentials: "include"}}).then(a => a.text()).then(t => window.read = t, e => window.refused = true);
                    </script>""".encode())

            def log_message(self, *_):
                pass

        evil = http.server.HTTPServer(("127.0.0.1", 0), Evil)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        self.addCleanup(evil.server_close)
        self.addCleanup(evil.shutdown)
        for host in ("127.0.0.1", "localhost"):  # of the same site, and of another
            self.browser.driver.get(f"http://{host}:{evil.server_port}/")
            eventually(lambda: self.browser.run("return window.refused"))
            self.assertTrue(self.browser.run("return typeof read === 'undefined'"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
