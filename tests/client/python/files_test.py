"""Tests how damaged and hostile files of models are refused, without a server."""
import copy
import json
import random
import unittest

import ablate
import ablate.torch
import torch
from ablate import _safetensors
from ablate.run import Checkpoint

CONFIG = {
    "vocabulary": 7, "layers": 2, "width": 4, "heads": 2, "context": 5, "positions": "learned",
    "bias": True, "residual": True, "residual_scale": 1, "dropout": 0, "tied_head": False,
    "head_bias": True, "attention": {"kind": "softmax", "causal": True, "score_bias": 0},
    "activation": "relu", "hidden": 8,
    "norm": {"kind": "layer", "deviation": "population", "placement": "pre", "attention": True,
             "feed_forward": True, "final": True, "eps": 1e-5, "gain": True, "bias": True}}


def file_of(header, data=b""):
    """A file with this header: a value, or the bytes of its JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return bytearray(len(text).to_bytes(8, "little") + text + data)


def tensor(dtype="U8", shape=(4,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def header_of(config):
    """The header of a model's checkpoint, and the number of bytes of its tensors."""
    header = {"__metadata__": {"step": "3", "model": json.dumps(config)}}
    end = 0
    for name, value in ablate.torch.Transformer(CONFIG).state_dict().items():
        first, end = end, end + 4 * value.numel()
        header[name] = tensor("F32", value.shape, (first, end))
    return header, end


def checkpoint_of(config=CONFIG, change=None):
    header, size = header_of(config)
    if change:
        change(header)
    return Checkpoint(file_of(header, bytes(size)))


class SafetensorsTest(unittest.TestCase):
    def test_reads_tensors_in_the_files_order(self):
        header = {"b": tensor(offsets=(8, 12)), "__metadata__": {"k": "v"},
                  "a": tensor("F64", (), (0, 8)), "c": tensor("F32", (0, 3), (12, 12))}
        arrays, metadata = _safetensors.read(file_of(header, bytes(8) + b"abcd"))
        self.assertEqual(list(arrays), ["b", "a", "c"])
        self.assertEqual(arrays["b"].tobytes(), b"abcd")
        self.assertEqual(arrays["c"].shape, (0, 3))
        self.assertEqual(metadata, {"k": "v"})

    def test_refuses_what_is_damaged_or_hostile(self):
        deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        twice = b'{"a":' + b",".join([json.dumps(tensor()).encode()] * 2).replace(
            b",{", b',"a":{') + b"}"
        files = {
            "empty": bytearray(), "short": bytearray(b"1234567"),
            "no header": bytearray(8), "longer than the file": bytearray(b"\3" + bytes(7) + b"{}"),
            "2^64": bytearray(b"\xff" * 8 + b"{}"),
            "above the bound": file_of(b"{}" + b" " * (16 << 20)),
            "no JSON": file_of(b"{"), "no UTF-8": file_of(b'{"\xff":1}'), "deep": file_of(deep),
            "a list": file_of([]), "a number": file_of(3), "null": file_of(None),
            "a tensor twice": file_of(twice, b"abcd"),
            "many tensors": file_of({str(i): tensor(shape=(0,), offsets=(0, 0))
                                     for i in range(16_385)}),
            "metadata": file_of({"__metadata__": {"k": 1}}),
            "metadata, a list": file_of({"__metadata__": []}),
            **{f"entry {entry}": file_of({"a": entry}, b"abcd") for entry in (
                1, None, [], "x", {}, {"dtype": "U8"}, tensor(stride=1), tensor(dtype="BF16"),
                tensor(dtype="U9" * 1000), {**tensor(), "dtype": ["U8"]},
                {**tensor(), "shape": 4}, {**tensor(), "shape": "4"}, {**tensor(), "shape": {}},
                {**tensor(), "data_offsets": None}, tensor(shape=(-1,)), tensor(shape=(True, 4)),
                tensor(shape=(4.0,)), tensor(shape=(None,)), tensor(shape=(2**64, 0)),
                tensor(shape=(2**62, 4)), tensor(shape=[1] * 10_000 + [4]), tensor(shape=(5,)),
                tensor(offsets=(0,)), tensor(offsets=(0, 4, 8)), tensor(offsets=(4, 0)),
                tensor(offsets=(-4, 0)), tensor(offsets=(0, 4.0)), tensor(offsets=(1, 5)),
                tensor(offsets=(0, 2**63)), tensor(offsets=("0", "4")))},
            "a hole": file_of({"a": tensor(offsets=(1, 5))}, bytes(5)),
            "an overlap": file_of({"a": tensor(), "b": tensor(offsets=(2, 6))}, bytes(6)),
            "one range twice": file_of({"a": tensor(), "b": tensor()}, bytes(4)),
            "bytes at the end": file_of({"a": tensor()}, bytes(5)),
        }
        for what, file in files.items():
            with self.subTest(what), self.assertRaises(ablate.DataLoss) as raised:
                _safetensors.read(file)
            self.assertLess(len(str(raised.exception)), 300)

    def test_reads_or_refuses_whatever_byte_changes(self):
        header, size = header_of(CONFIG)
        original = file_of(header, bytes(size))
        generator = random.Random(0)
        refused = 0
        for _ in range(3000):
            file = original[:]
            for _ in range(generator.randint(1, 3)):
                file[generator.randrange(len(file) - size)] = generator.choice(b'09-",:[]{}\xff\0')
            try:
                ablate.torch.load(Checkpoint(file[:generator.choice((len(file), len(file) - 1))]
                                             if generator.random() < 0.1 else file))
            except ablate.DataLoss:
                refused += 1
        self.assertGreater(refused, 2000)


class CheckpointTest(unittest.TestCase):
    def test_loads_a_model(self):
        model = ablate.torch.load(checkpoint_of())
        self.assertEqual(model(torch.tensor([[1, 2]])).shape, (1, 2, 7))
        self.assertTrue(all(value.dtype == torch.float32 and not value.any()
                            for value in model.state_dict().values()))

    def test_refuses_other_metadata(self):
        for metadata in ({}, {"step": "1"}, {"model": "{}"}, {"step": "1.5", "model": "{}"},
                         {"step": "-1", "model": "{}"}, {"step": "9" * 9999, "model": "{}"},
                         {"step": "1", "model": "[]"}, {"step": "1", "model": "{"},
                         {"step": "1", "model": "[" * 100_000},
                         {"step": "1", "model": "{}", "vocabulary": "3"}):
            with self.subTest(str(metadata)[:80]), self.assertRaises(ablate.DataLoss):
                Checkpoint(file_of({"__metadata__": metadata}))

    def test_refuses_a_model_of_other_tensors_before_it_is_built(self):
        changes = {**{path: [None, "x", [], -1, 2**70, True] for path in
                      ("vocabulary", "layers", "width", "heads", "context", "hidden")},
                   "layers": [0, 1, 3, 2_000_000_000, 2.0],
                   "vocabulary": [8, 2_000_000_000], "width": [2, 2_000_000_000], "heads": [3],
                   "positions": [1, "none", "learnt"], "tied_head": [1, True],
                   "residual_scale": [float("nan"), 2**64, 10**400, "1", True],
                   "activation": ["swiglu", "tanh", ["relu"]],
                   "attention": [None, "softmax", {}, {"kind": "none"}],
                   "norm": [None, [], {}, {**CONFIG["norm"], "kind": "batch"},
                            {**CONFIG["norm"], "eps": "1"}, {**CONFIG["norm"], "placement": {}}]}
        for key, values in changes.items():
            for value in [*values, ...]:
                config = copy.deepcopy(CONFIG)
                if value is ...:
                    del config[key]
                else:
                    config[key] = value
                with self.subTest(f"{key} {str(value)[:50]}"):
                    with self.assertRaises(ablate.DataLoss) as raised:
                        ablate.torch.load(checkpoint_of(config))
                    self.assertLess(len(str(raised.exception)), 300)

    def test_refuses_tensors_of_another_type_or_name(self):
        def integers(header):
            for name in header.keys() - {"__metadata__"}:
                header[name]["dtype"] = "I32"

        def mixed(header):
            header["head.bias"]["dtype"] = "U32"

        def renamed(header):
            header["head.bia"] = header.pop("head.bias")

        for change in (integers, mixed, renamed):
            with self.subTest(change.__name__), self.assertRaises(ablate.DataLoss):
                ablate.torch.load(checkpoint_of(change=change))
        with self.assertRaises(ablate.DataLoss):
            ablate.torch.load(Checkpoint(file_of(
                {"__metadata__": {"step": "1", "model": json.dumps(CONFIG)}})))
