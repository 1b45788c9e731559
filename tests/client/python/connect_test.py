"""Tests how a server is found, started, joined, and missed."""
import os
import re
import shutil
import unittest
import unittest.mock

import ablate
from ablate import _address
from personal_server import PersonalServer


class ConnectTest(unittest.TestCase):
    def test_starts_the_personal_server_and_finds_it_again(self):
        with PersonalServer() as server:
            with self.assertRaises(ablate.Unavailable) as raised:
                ablate.connect(start=False)
            self.assertIn("run `ablate up`", str(raised.exception))
            self.assertEqual(ablate.connect().experiments(), [])
            self.assertEqual(ablate.connect(start=False).experiments(), [])
            socket_path = f"unix:{server.folder}/home/run/ablate.sock"
            self.assertEqual(ablate.connect(socket_path).experiments(), [])
            # A copied folder names another folder's server.
            shutil.copytree(server.folder / "home/run", server.folder / "copy/run",
                            ignore=lambda _, names: [n for n in names if n.endswith(".sock")])
            os.environ["ABLATE_HOME"] = str(server.folder / "copy")
            with self.assertRaises(ablate.Unavailable):
                ablate.connect(start=False)

    def test_finds_a_server_whose_socket_is_elsewhere(self):
        with PersonalServer() as server:
            os.environ["ABLATE_HOME"] = str(server.folder / ("long" * 30))
            try:
                self.assertEqual(ablate.connect().experiments(), [])
                self.assertEqual(ablate.connect(start=False).experiments(), [])
            finally:
                server.ablate("down", "--home", os.environ["ABLATE_HOME"])

    def test_ignores_relative_folders_of_xdg(self):
        relative = {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "HOME": "/home/ada"}
        with unittest.mock.patch.dict(os.environ, relative):
            os.environ.pop("ABLATE_HOME", None)
            self.assertEqual(str(_address._home()), "/home/ada/.local/share/ablate")
            self.assertEqual(str(_address._logins()), "/home/ada/.config/ablate")

    def test_refuses_other_addresses(self):
        with PersonalServer():
            with self.assertRaises(ablate.InvalidArgument):
                ablate.connect("example.org:7443")
            with self.assertRaises(ablate.NotFound) as raised:
                ablate.connect("lab")
            self.assertIn("expected personal", str(raised.exception))
            with self.assertRaises(ablate.Unavailable):
                ablate.connect("unix:/nowhere/socket").experiments()

    def test_joins_a_shared_server_by_tls_and_token(self):
        with PersonalServer() as server:
            _, join = server.share()
            lab = ablate.connect(join)
            self.assertEqual(lab.experiments(), [])
            self.assertNotIn("token", repr(lab))
            server.ablate("login", "--join", str(join), "--name", "lab")
            self.assertIn("lab", repr(ablate.connect()))
            self.assertEqual(ablate.connect("lab").experiments(), [])
            server.ablate("admin", "user", "rm", "ada")
            with self.assertRaises(ablate.PermissionDenied):
                lab.experiments()
            join.chmod(0o644)
            with self.assertRaises(ablate.Conflict):
                ablate.connect(str(join))
            join.chmod(0o600)
            join.write_text(re.sub(r'"address": "[^"]*"', '"address": ""', join.read_text()))
            with self.assertRaises(ablate.InvalidArgument) as raised:
                ablate.connect(str(join))
            self.assertIn("address is missing", str(raised.exception))
