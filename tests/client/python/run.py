"""Runs the tests of the Python client against real servers, its docstrings, and the notebook.

Usage: run.py ROOT BIN DATA [TEST…]

ROOT is the checkout, BIN the folder of the programs, DATA a folder with data that isn't in the
repository, TEST a name for unittest, such as torch_test.TorchTest. Exit code 77: a package that
the client needs is missing.
"""
import importlib.util
import os
import pathlib
import sys
import unittest

root, programs, data = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
missing = [name for name in ("google.rpc", "grpc", "numpy", "pandas", "torch", "yaml")
           if not importlib.util.find_spec(name)]
if missing:
    print(f"skipped: Python without {', '.join(missing)}")
    sys.exit(77)
sys.path[:0] = [str(root / "client" / "python"), str(pathlib.Path(__file__).parent)]
os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
os.environ.update(ABLATE_ROOT=str(root), ABLATE_TEST_DATA=str(data))
os.environ.pop("ABLATE_SERVER", None)

loader = unittest.TestLoader()
if len(sys.argv) > 4:
    suite = loader.loadTestsFromNames(sys.argv[4:])
else:
    suite = loader.discover(str(pathlib.Path(__file__).parent), "*_test.py")
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(not result.wasSuccessful())
