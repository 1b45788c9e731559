"""Tests the Debian packages: what they have, what they need, and that their programs run.

Usage: packages_test.py BUILD   the folder of a build; its programs are packed as they are.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]


def output(*command, **options):
    return subprocess.run([str(one) for one in command], check=True, capture_output=True, text=True,
                          **options).stdout


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        output("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "packages")
        [cls.client] = (cls.folder / "packages").glob("ablate-client_*.deb")
        [cls.server] = (cls.folder / "packages").glob("ablate_*.deb")
        cls.root = cls.folder / "root"
        for package in (cls.client, cls.server):
            output("dpkg-deb", "-x", package, cls.root)

    def files(self, package):
        return set(re.findall(r" \./(\S*[^/\s])$", output("dpkg-deb", "-c", package), re.M))

    def field(self, package, name):
        return output("dpkg-deb", "-f", package, name).strip()

    def test_the_client_has_the_command_line_only(self):
        self.assertEqual({one for one in self.files(self.client) if "/share/" not in one},
                         {"usr/bin/ablate"})
        depends = self.field(self.client, "Depends")
        self.assertIn("libgrpc++", depends)
        for other in ("torch", "python", "sqlite", "bubblewrap"):
            self.assertNotIn(other, depends)

    def test_the_server_has_programs_units_and_settings(self):
        self.assertLessEqual({
            "usr/bin/ablated", "usr/bin/ablate-worker", "usr/sbin/ablate-torch",
            "usr/lib/ablate/torch.sh", "usr/lib/systemd/system/ablate.service",
            "usr/lib/systemd/system/ablate-worker.service", "etc/ablate/server.conf",
            "usr/share/ablate/examples/names-norm.yaml", "usr/share/doc/ablate/copyright",
        }, self.files(self.server))
        version = self.field(self.server, "Version")
        depends = self.field(self.server, "Depends").split(", ")
        self.assertLessEqual({f"ablate-client (= {version})", "adduser", "bubblewrap",
                              "fonts-liberation", "python3-venv"}, set(depends))
        control = self.folder / "control"
        output("dpkg-deb", "-e", self.server, control)
        self.assertEqual((control / "conffiles").read_text(),
                         "/etc/ablate/server.conf\n/etc/ablate/worker.conf\n")
        for script in ("postinst", "prerm", "postrm"):
            self.assertTrue(os.access(control / script, os.X_OK), script)
            output("sh", "-n", control / script)
        for name in ("ablate", "ablate-worker"):
            unit = (self.root / f"usr/lib/systemd/system/{name}.service").read_text()
            self.assertIn(f"\nKillMode={'process' if name == 'ablate' else 'mixed'}\n", unit)
            self.assertIn("\nOOMPolicy=continue\n", unit)

    def test_the_worker_finds_torch_by_the_link_only(self):
        dynamic = output("readelf", "-d", self.root / "usr/bin/ablate-worker")
        self.assertEqual(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic),
                         ["/usr/lib/ablate/torch/lib:/usr/lib/ablate/torch/../nvidia/cu13/lib"])

    def test_programs_run_with_a_torch_that_is_named(self):
        for program in ("ablate", "ablated"):
            self.assertRegex(output(self.root / "usr/bin" / program, "--version"), r"0\.\d+\.\d+")
        library = self.root / "usr/lib/ablate"
        environment = {**os.environ, "ABLATE_LIB": str(library)}
        command = self.root / "usr/sbin/ablate-torch"
        refused = subprocess.run([command, self.folder], env=environment, capture_output=True,
                                 text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "has no torch; expected the torch folder of version 2")
        [torch] = (BUILD / "venv/lib").glob("python3*/site-packages/torch")
        output(command, torch, env=environment)
        self.assertEqual((library / "torch").readlink(), torch)
        environment["LD_LIBRARY_PATH"] = str(library / "torch/lib")
        worker = output(self.root / "usr/bin/ablate-worker", "--version", env=environment)
        self.assertRegex(worker, r"^ablate-worker .*torch 2\.")


if __name__ == "__main__":
    unittest.main()
