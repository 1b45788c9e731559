"""Tests the package as pip installs it."""
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from personal_server import ROOT

SOURCE = ROOT / "client" / "python"


class PackageTest(unittest.TestCase):
    def test_wheel_has_every_module_and_runs_anywhere(self):
        if importlib.util.find_spec("hatchling") is None:
            self.skipTest("Python without hatchling")
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(SOURCE, pathlib.Path(folder) / "source",
                                   ignore=shutil.ignore_patterns("build", "*.egg-info"))
            before = set(copy.rglob("*"))
            subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                            "--no-index", "--no-build-isolation", "--wheel-dir", folder, copy],
                           check=True)
            self.assertEqual(set(copy.rglob("*")), before)
            [wheel] = pathlib.Path(folder).glob("*.whl")
            self.assertTrue(wheel.name.endswith("-py3-none-any.whl"))
            packed = {name for name in zipfile.ZipFile(wheel).namelist()
                      if ".dist-info/" not in name}
        expected = {str(path.relative_to(SOURCE)) for path in (SOURCE / "ablate").rglob("*")
                    if path.is_file() and "__pycache__" not in path.parts} | {"ablate_run.py"}
        self.assertEqual(packed, expected)
        self.assertIn("ablate/py.typed", packed)

    def test_version_is_the_projects(self):
        project = re.search(r"project\(ablate VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
        package = re.search(r'^version = "(.+)"', (SOURCE / "pyproject.toml").read_text(), re.M)
        self.assertEqual(package[1], project[1])
