"""Tests that damaged and hostile files are read up to the damage, or refused by ablate.Error.

Each valid file is cut at many lengths and changed at many positions. A reader may return a frame or
raise ablate.Error, in bounded time and memory.
"""
import json
import math
import random
import resource
import shutil
import sqlite3
import struct
import unittest
import zipfile
import zlib

import ablate
import ablate.read
from read_test import DATA, ReadTestCase, database, make

SOME = 25  # cuts and changes of a file


class HostileTest(ReadTestCase):
    """Damages the files of each tool."""

    def attempt(self, reader, path):
        """Returns the frame, or None if the reader refuses the path by an error that names it."""
        try:
            frame = reader(path)
        except ablate.Error as error:
            self.assertIn(str(self.folder), str(error))
            self.assertLess(len(str(error)), 1000)
            return None
        for message in frame.messages():
            message.SerializeToString()
        return frame

    def damage(self, reader, file, path=None):
        """Damages a file in every way; `path` is what is read."""
        content, chance = file.read_bytes(), random.Random(1)
        path = path or file
        self.assertIsNotNone(self.attempt(reader, path))
        some = range(0, len(content), max(1, len(content) // SOME))
        for cut in some:
            file.write_bytes(content[:cut])
            self.attempt(reader, path)
        for at in some:
            changed = bytearray(content)
            changed[at:at + 4] = chance.randbytes(4)
            file.write_bytes(changed)
            self.attempt(reader, path)
        for garbage in (chance.randbytes(5000), bytes(5000), b"[" * 100_000, b"{}", b"[]", b"null",
                        b'{"a":' * 100_000, b"\xff\xfe" * 100, b"PK\x05\x06" + bytes(18),
                        b"SQLite format 3\0" + bytes(5000), b":W&B\xe1\xbe\x00" + b"\xff" * 99):
            file.write_bytes(garbage)
            self.attempt(reader, path)
            self.attempt(ablate.read.read, path)
        file.write_bytes(content)

    def test_every_reader_refuses_folders_and_files_of_others(self):
        for name, reader in ablate.read._detect.READERS.items():
            with self.subTest(name):
                empty = self.folder / "empty"
                empty.mkdir(exist_ok=True)
                with self.assertRaisesRegex(ablate.InvalidArgument, "expected"):
                    reader(empty)
                with self.assertRaises(ablate.NotFound):
                    reader(self.folder / "gone")
                other = self.folder / "other.txt"
                other.write_text("a text\n")
                with self.assertRaisesRegex(ablate.InvalidArgument, "other.txt"):
                    reader(other)

    def test_wandb(self):
        make("wandb", self.folder)
        self.damage(ablate.read.wandb, next(self.folder.glob("wandb/*id0/*.wandb")))

    def test_wandb_is_read_up_to_the_damage(self):
        make("wandb", self.folder)
        file = next(self.folder.glob("wandb/*id0/*.wandb"))
        content = file.read_bytes()
        counts = set()
        for cut in range(len(content)):
            file.write_bytes(content[:cut])
            [run] = ablate.read.wandb(file).runs
            self.assertEqual(run.state, "unfinished")
            values = run.series["loss"].values if "loss" in run.series else []
            self.assertEqual(list(values)[:3], [0.1, 1.1, 2.1][:len(values)])
            counts.add(len(values))
        self.assertEqual(counts, {0, 1, 2, 3, 4})

    def test_wandb_blocks_and_lengths(self):
        def log(*records):
            data = bytearray(b":W&B\xe1\xbe\x00")
            for record in records:
                at, kind = 0, 2
                while at < len(record) or kind == 2:
                    if (left := 32768 - len(data) % 32768) < 7:
                        data += bytes(left)
                        continue
                    part = record[at:at + left - 7]
                    at += len(part)
                    kind = {2: 1, 3: 4}[kind] if at == len(record) else kind
                    data += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))),
                                        len(part), kind) + part
                    kind = 3
            return bytes(data)

        def history(step, padding):
            texts = [(b"_step", b"%d" % step), (b"loss", b"%d.5" % step),
                     (b"t", b'"%s"' % padding)]
            items = b""
            for key, value in texts:
                item = field(1, key) + field(16, value)
                items += field(1, item)
            return field(2, items)

        def varint(value):
            if value < 128:
                return bytes([value])
            return bytes([value & 127 | 128]) + varint(value >> 7)

        def field(number, value):
            return varint(number << 3 | 2) + varint(len(value)) + value

        file = self.folder / "run-x.wandb"
        for length in [0, 100_000, *range(32_680, 32_720)]:  # around the end of a block
            file.write_bytes(log(history(0, b"x" * length), history(1, b""), history(2, b"")))
            [run] = ablate.read.read(file).runs
            self.check(run, "loss", [0, 1, 2], [0.5, 1.5, 2.5])
        file.write_bytes(log(field(2, b"") + varint(2 << 3 | 2) + varint(2**62)))
        with self.assertRaisesRegex(ablate.InvalidArgument, "longer than its message"):
            ablate.read.read(file)

    def test_tensorboard(self):
        make("tensorboard", self.folder)
        self.damage(ablate.read.tensorboard, next((self.folder / "pre-s0").glob("*tfevents*")))

    def test_tensorboard_is_read_up_to_the_damage(self):
        make("tensorboard", self.folder)
        file = next((self.folder / "pre-s0").glob("*tfevents*"))
        content = file.read_bytes()
        ends = [0]
        while ends[-1] < len(content):
            ends.append(ends[-1] + 16 + int.from_bytes(content[ends[-1]:ends[-1] + 8], "little"))
        for at in range(12, len(content)):
            flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]
            for damaged in (content[:at], flipped):
                if damaged == content[:at] and at in ends:
                    continue  # a record's end can be a file's
                file.write_bytes(damaged)
                frame = ablate.read.tensorboard(file.parent)
                self.has_note(frame, "up to their first damaged record")
                self.assertEqual(frame.runs[0].series["hparam/acc"].values.tolist(), [0.75])
                values = frame.runs[0].series["loss"].values.tolist() if (
                    "loss" in frame.runs[0].series) else []
                self.assertEqual([round(value, 6) for value in values[:3]],
                                 [0.1, 1.1, 2.1][:len(values)])
        for size in (2**63, 2**64 - 1, 2**40):
            file.write_bytes(struct.pack("<Q", size) + bytes(100))
            self.assertIsNone(self.attempt(ablate.read.tensorboard, file))

    def test_mlflow(self):
        self.damage(ablate.read.mlflow, database(self.folder, "mlflow"))
        shutil.copytree(DATA / "mlruns", self.folder / "mlruns")
        metas = sorted(self.folder.glob("mlruns/*/*/meta.yaml"))
        losses = sorted(self.folder.glob("mlruns/*/*/metrics/val/loss"))
        for file in (metas[0], losses[0]):
            self.damage(ablate.read.mlflow, file, self.folder / "mlruns")

    def test_optuna(self):
        make("optuna", self.folder)
        self.damage(ablate.read.optuna, self.folder / "study.db")

    def test_trackio(self):
        self.damage(ablate.read.trackio, database(self.folder, "trackio"))

    def test_texts(self):
        for tool, reader, pattern in (
                ("lightning_logs", ablate.read.lightning, "version_1/*"),
                ("trainer", ablate.read.trainer_state, "*/checkpoint-2/*"),
                ("lm_eval", ablate.read.lm_eval, "org__small/*"),
                ("inspect", ablate.read.inspect, "*")):
            shutil.copytree(DATA / tool, self.folder / tool)
            for file in sorted(self.folder.glob(f"{tool}/{pattern}")):
                with self.subTest(file.name):
                    self.damage(reader, file, self.folder / tool)

    def test_hydra(self):
        make("hydra", self.folder / "h")
        for name in ("config", "overrides"):
            self.damage(ablate.read.hydra, self.folder / "h" / "0" / ".hydra" / f"{name}.yaml",
                        self.folder / "h")

    def test_autoresearch_and_exported_tables(self):
        for name, text in (
                ("results.tsv", "commit\tval_bpb\tstatus\tdescription\na\t0.5\tkeep\tbase\n"),
                ("wandb_export.csv", '"Step","a - l","a - l__MIN","a - l__MAX"\n"0","1","1","1"\n'),
                ("run.csv", "Wall time,Step,Value\n1,0,0.5\n")):
            file = self.folder / name
            file.write_text(text)
            self.damage(ablate.read.read, file)

    def test_a_yaml_file_that_expands_to_billions(self):
        shutil.copytree(DATA / "lightning_logs" / "version_0", self.folder / "a")
        def nested(first, opening, item, closing):
            """Thirty lines; each has the one before nine times."""
            lines = [f"a0: &a0 {first}"]
            for i in range(1, 30):
                items = ", ".join(item.format(j, i - 1) for j in range(9))
                lines.append(f"a{i}: &a{i} {opening}{items}{closing}")
            return "\n".join(lines)

        for text in (nested("{x: 1}", "{", "k{}: *a{}", "}"), nested("[1]", "[", "*a{1}", "]"),
                     "a: &a [*a]", "a: &a {b: *a}"):
            (self.folder / "a" / "hparams.yaml").write_text(text)
            self.assertIsNone(self.attempt(ablate.read.lightning, self.folder))

    def test_an_archive_that_expands_to_gigabytes(self):
        file = self.folder / "log.eval"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", b"[" + b" " * (300 << 20) + b"]")
        with self.assertRaisesRegex(ablate.InvalidArgument, "header.json has 314572802 bytes"):
            ablate.read.inspect(file)

    def test_a_view_in_place_of_a_table(self):
        path = database(self.folder, "trackio")
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE metrics")
            connection.execute("CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                               "SELECT i FROM n) SELECT i AS id, i AS run_id FROM n")
        with self.assertRaisesRegex(ablate.InvalidArgument, "no table metrics"):
            ablate.read.trackio(path)

    def test_odd_steps_are_left_out(self):
        file = self.folder / "trainer_state.json"
        steps = [3, -1, 1.5, 2**32, 2**32 - 1, 1e300, math.nan, "4", None, 10**20]
        file.write_text(json.dumps({"best_metric": None, "global_step": 1, "max_steps": 1,
                                    "log_history": [{"step": step, "loss": 0.5}
                                                    for step in steps]}))
        frame = ablate.read.read(file)
        self.check(frame.runs[0], "loss", [3, 2**32 - 1], [0.5, 0.5])
        self.has_note(frame, "step isn't an integer from 0 to 4294967295")

    def test_links_are_not_followed(self):
        shutil.copytree(DATA / "lightning_logs", self.folder / "logs")
        (self.folder / "logs" / "again").symlink_to(self.folder / "logs")
        self.assertEqual(len(ablate.read.read(self.folder).runs), 2)

    def test_notes_are_few(self):
        file = self.folder / "metrics.csv"
        keys = [f"k{index}" for index in range(5000)]
        row = ",".join(["3"] + ["1"] * 5000)
        file.write_text("\n".join([",".join(["step", *keys]), row, row]))
        frame = ablate.read.read(file)
        self.has_note(frame, "several values at a step", "and 4,995 more")
        self.assertLess(sum(map(len, frame.notes)), 2000)


def setUpModule():
    global limit
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, limit[1]))


def tearDownModule():
    resource.setrlimit(resource.RLIMIT_AS, limit)


if __name__ == "__main__":
    unittest.main()
