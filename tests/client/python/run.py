"""Runs the tests of the Python client against real servers, its docstrings, and the notebook.

Usage: run.py ROOT BIN [TEST…]

ROOT is the checkout, BIN the folder of the programs, TEST a name for unittest, such as
torch_test.TorchTest. Exit code 77: a package that the client needs is missing.
"""
import importlib.util
import os
import pathlib
import sys
import unittest

root, programs = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
missing = [name for name in ("google.rpc", "grpc", "numpy", "pandas", "torch", "yaml")
           if not importlib.util.find_spec(name)]
if missing:
    print(f"skipped: Python without {', '.join(missing)}")
    sys.exit(77)
sys.path[:0] = [str(root / "client" / "python"), str(pathlib.Path(__file__).parent)]
os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
os.environ["ABLATE_ROOT"] = str(root)
os.environ.pop("ABLATE_SERVER", None)

loader = unittest.TestLoader()
if len(sys.argv) > 3:
    suite = loader.loadTestsFromNames(sys.argv[3:])
else:
    suite = loader.discover(str(pathlib.Path(__file__).parent), "*_test.py")
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(not result.wasSuccessful())
