"""Tests how plain values and YAML become messages, without a server."""
import unittest

import ablate
import numpy as np
from ablate import _shorthands, _values, _yaml
from ablate.v1 import analysis_options_pb2, spec_pb2
from personal_server import ROOT


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
                         "unknown (did you mean rms?); expected layer, rms, batch or l2")
        self.assertIn("(did you mean name?)", problems["naem"])

    def test_keeps_members_of_a_oneof_that_are_empty(self):
        kind = _values.make(analysis_options_pb2.AnalysisKind, weights={})
        self.assertEqual(kind.WhichOneof("kind"), "weights")

    def test_reads_fields_back_by_path(self):
        spec, _ = read({"name": "x", "base": {"model": {"layers": 2, "norm": {"kind": "l2"}}}})
        self.assertEqual(_values.to_fields(spec.base),
                         {"model.layers": 2, "model.norm.kind": "l2"})


class ShorthandsTest(unittest.TestCase):
    def test_stand_for_seeds_and_values(self):
        spec = {"seeds": 8, "axes": [
            {"field": "training.learning_rate", "values": {"log": [1e-4, 1e-2], "count": 5}},
            {"field": "model.width", "values": {"log": [16, 512], "count": 4}},
            {"field": "training.clip", "values": {"linear": [-0.3, 0.3], "count": 7}},
            {"field": "training.clip", "values": {"linear": [0, 1], "count": 4}},
            {"field": "training.clip", "values": [0, 1]}]}
        _shorthands.expand(spec)
        self.assertEqual(spec["seeds"], {"count": 8})
        self.assertEqual([axis["values"] for axis in spec["axes"]], [
            [1e-4, 3.16e-4, 1e-3, 3.16e-3, 1e-2], [16, 51, 161, 512],
            [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3], [0, 0.333, 0.667, 1], [0, 1]])

    def test_stand_for_ranges_and_lists_of_seeds(self):
        for seeds, expected in [("42..53", {"first": 42, "count": 12}), ("7..7", {"first": 7,
                                "count": 1}), ([1, 5], {"list": [1, 5]}),
                                ("0..2,5", {"list": [0, 1, 2, 5]})]:
            spec = {"seeds": seeds}
            _shorthands.expand(spec)
            self.assertEqual(spec["seeds"], expected)
        for seeds in ("twelve", "8", "9..0", "0..10000", "1,", "-1..3", ""):
            with self.assertRaises(ablate.InvalidArgument) as raised:
                _shorthands.expand({"seeds": seeds})
            self.assertTrue(str(raised.exception).startswith("seeds: "), raised.exception)

    def test_name_field_value_and_what_is_expected(self):
        for values, problem in [
                ({"log": [0, 1], "count": 3}, "log: [0, 1] is not a range; expected two different "
                                              "numbers above 0"),
                ({"linear": [1, 1], "count": 3}, "linear: [1, 1] is not a range"),
                ({"linear": [0, 1], "count": 1}, "count: 1 is not a whole number from 2 to 1000"),
                ({"linear": [0, 1]}, "is not a range; expected a list of values, {log:")]:
            with self.assertRaises(ablate.InvalidArgument) as raised:
                _shorthands.expand({"axes": [{"field": "training.clip", "values": values}]})
            self.assertIn("axes[0].values: ", str(raised.exception))
            self.assertIn(problem, str(raised.exception))
        with self.assertRaises(ablate.InvalidArgument) as raised:
            _shorthands.expand({"seeds": 0})
        self.assertEqual(str(raised.exception), "seeds: 0 is not a whole number from 1 to 10000")


class YamlTest(unittest.TestCase):
    def test_follows_the_core_schema_of_1_2(self):
        text = ("{on: no, a: 1e-3, b: 0o17, c: ~, d: 'true', e: .inf, f: 1_000, g: 12:30, "
                "h: 2024-01-01}")
        self.assertEqual(_yaml.parse(text, "t"), {
            "on": "no", "a": 0.001, "b": 15, "c": None, "d": "true", "e": float("inf"),
            "f": "1_000", "g": "12:30", "h": "2024-01-01"})

    def test_refuses_fields_without_a_value(self):
        for text, place in [("a:\nb: 1", "t:1:1: a: "), ("a: {b: 1, steps: }", "t:1:11: steps: "),
                            ('{"a": {"b": , "c": 2}}', "t:1:8: b: ")]:
            with self.assertRaises(ablate.InvalidArgument) as raised:
                _yaml.parse(text, "t")
            self.assertEqual(str(raised.exception),
                             f"{place}the value is missing; expected a value, null for the "
                             "default, or {} for the default of each field")
        with self.assertRaisesRegex(ablate.InvalidArgument, "t:2:2: an empty list item"):
            _yaml.parse("a:\n-\n- 1", "t")
        self.assertEqual(_yaml.parse("{a: null, b: ~, c: ''}", "t"),
                         {"a": None, "b": None, "c": ""})

    def test_refuses_numbers_that_would_become_zero_or_infinite(self):
        for number, problem in [("1e-400", "is too small and would become 0; expected 0, or"),
                                ("-1e-310", "is too small"), ("1e400", "is too large")]:
            with self.assertRaises(ablate.InvalidArgument) as raised:
                _yaml.parse(f"a: {{lr: {number}}}", "t")
            self.assertIn(f"t:1:9: {number} {problem}", str(raised.exception))
        self.assertEqual(_yaml.parse("a: [0e-400, 2.3e-308, -0.0]", "t"), {"a": [0, 2.3e-308, 0]})

    def test_keeps_every_digit_of_whole_numbers(self):
        spec, problems = read({"axes": [{"field": "training.steps", "values": [2**53 + 1, 2**53 - 1]}],
                               "seeds": {"list": [2**53 + 1]}, "limits": {"bytes": 2**53 + 1},
                               "base": {"training": {"clip": 10**400}}})
        self.assertEqual(spec.axes[0].values[0].string_value, "9007199254740993")
        self.assertEqual(spec.axes[0].values[1].number_value, 9007199254740991)
        self.assertEqual(spec.limits.bytes, 2**53 + 1)
        self.assertIn("9007199254740993 is out of range", problems["seeds.list[0]"])
        self.assertIn("is not a finite number", problems["base.training.clip"])

    def test_reads_aliases_and_merge_keys(self):
        self.assertEqual(
            _yaml.parse("a: &a {x: 1, y: 2}\nb: [*a]\nc: {<<: *a, x: 3}\nd: {<<: [*a, {z: 4}]}\n",
                        "t"),
            {"a": {"x": 1, "y": 2}, "b": [{"x": 1, "y": 2}], "c": {"x": 3, "y": 2},
             "d": {"x": 1, "y": 2, "z": 4}})

    def test_refuses_files_that_expand_to_far_too_much(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
        with self.assertRaises(ablate.InvalidArgument) as raised:
            _yaml.parse("\n".join(lines), "t")
        self.assertRegex(str(raised.exception), r"t:\d+:\d+: aliases expand to more than 100000")

    def test_refuses_aliases_tags_and_duplicates_with_their_place(self):
        for text, problem in [("c: *b", "t:1:4: found undefined alias"),
                              ("a: &b [*b]", "t: nested"), ("a: !!int 3", "t:1:4: tags"),
                              ("a: &b 1\nc: {<<: *b}", "t:1:4: <<: not a mapping"),
                              ("a: &b {}\nc: {<<: *b, <<: *b}", 't:2:13: duplicate key "<<"'),
                              ("a: 1\na: 2", 't:2:1: duplicate key "a"'), ("a: [1", "t:"),
                              ("- 1", "t: an experiment is a mapping"), ("[" * 5000, "t: nested"),
                              ("", "t: an experiment")]:
            with self.assertRaises(ablate.InvalidArgument) as raised:
                _yaml.parse(text, "t")
            self.assertIn(problem, str(raised.exception))

    def test_reads_all_examples(self):
        for path in (ROOT / "examples").glob("*.yaml"):
            with self.subTest(path.name):
                spec = _yaml.parse(path.read_text(), path.name)
                _shorthands.expand(spec)
                _, problems = read(spec)
                self.assertEqual(problems, {})
