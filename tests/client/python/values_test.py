"""Tests how plain values become messages, without a server."""
import unittest

import numpy as np
from ablate import _values
from ablate.v1 import analysis_options_pb2, spec_pb2


def read(value):
    """The spec of a plain value, and the problems by field."""
    spec, problems = spec_pb2.ExperimentSpec(), []
    _values.fill(spec, _values.plain(value), "", problems)
    return spec, dict(problems)


class ValuesTest(unittest.TestCase):
    def test_fills_every_kind_of_field(self):
        spec, problems = read({
            "name": "x", "seeds": {"list": np.arange(2)},
            "base": {"model": {"norm": {"kind": "rms", "eps": np.float64(1e-6)}, "bias": False},
                     "task": {"recall": {}}, "training": {"betas": (0.9, 0.95), "warmup": None}},
            "axes": [{"name": "a", "settings": [{"label": "b", "set": {"model.layers": 2}}]}],
            "limits": {"device_time": "12.5s", "bytes": 2**40}})
        self.assertEqual(problems, {})
        self.assertEqual(list(spec.seeds.list), [0, 1])
        self.assertEqual(spec.base.model.norm.kind, spec_pb2.NormKind.rms)
        self.assertEqual(spec.base.model.norm.eps, 1e-6)
        self.assertTrue(spec.base.model.HasField("bias"))
        self.assertEqual(spec.base.task.WhichOneof("kind"), "recall")
        self.assertEqual(list(spec.base.training.betas), [0.9, 0.95])
        self.assertFalse(spec.base.training.HasField("warmup"))
        self.assertEqual(spec.axes[0].settings[0].set["model.layers"].number_value, 2)
        self.assertEqual(spec.limits.device_time.ToMilliseconds(), 12500)
        self.assertEqual(spec.limits.bytes, 2**40)

    def test_reports_every_problem_by_field(self):
        _, problems = read({
            "naem": "x", "seeds": {"list": 3, "first": -1, "count": 2.5},
            "base": {"model": {"norm": {"kind": "rmss"}, "layers": True, "bias": "yes"},
                     "task": {"recall": {}, "text": {}}, "training": {"clip": float("nan")}},
            "axes": [{"settings": {}}], "limits": {"device_time": 5},
            "exclude": [{"where": {"a": float("inf")}}]})
        self.assertEqual(set(problems), {
            "naem", "seeds.list", "seeds.first", "seeds.count", "base.model.norm.kind",
            "base.model.layers", "base.model.bias", "base.task", "base.training.clip",
            "axes[0].settings", "limits.device_time", 'exclude[0].where["a"]'})
        self.assertEqual(problems["base.model.norm.kind"], 'base.model.norm.kind: "rmss" is '
                         "unknown (did you mean rms?); expected layer, rms, batch, l2, dyt or derf")
        self.assertIn("(did you mean name?)", problems["naem"])

    def test_keeps_members_of_a_oneof_that_are_empty(self):
        kind = _values.make(analysis_options_pb2.AnalysisKind, weights={})
        self.assertEqual(kind.WhichOneof("kind"), "weights")

    def test_reads_fields_back_by_path(self):
        spec, _ = read({"name": "x", "base": {"model": {"layers": 2, "norm": {"kind": "l2"}}}})
        self.assertEqual(_values.to_fields(spec.base),
                         {"model.layers": 2, "model.norm.kind": "l2"})

    def test_keeps_every_digit_of_whole_numbers(self):
        spec, problems = read({"axes": [{"field": "training.steps", "values": [2**53 + 1, 2**53 - 1]}],
                               "seeds": {"list": [2**53 + 1]}, "limits": {"bytes": 2**53 + 1},
                               "base": {"training": {"clip": 10**400}}})
        self.assertEqual(spec.axes[0].values[0].string_value, "9007199254740993")
        self.assertEqual(spec.axes[0].values[1].number_value, 9007199254740991)
        self.assertEqual(spec.limits.bytes, 2**53 + 1)
        self.assertIn("9007199254740993 is out of range", problems["seeds.list[0]"])
        self.assertIn("is not a finite number", problems["base.training.clip"])
