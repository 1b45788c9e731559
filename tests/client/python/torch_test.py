"""Tests that PyTorch modules of checkpoints compute the server's logits."""
import unittest

import ablate
import ablate.torch
import numpy as np
import torch
from personal_server import PersonalServer

TOLERANCE = 1e-5

# Fields of models that together have every norm, placement, kind of attention, positions and
# activation; each differs from the base in several.
MODELS = {
    "default": {},
    "post": {"model.norm.placement": "post", "model.positions": "sinusoidal",
             "model.feed_forward.activation": "relu", "model.residual_scale": 0.7},
    "sandwich": {"model.norm.placement": "sandwich", "model.norm.kind": "rms",
                 "model.positions": "rotary", "model.feed_forward.activation": "swiglu",
                 "model.bias": False},
    "none": {"model.norm.placement": "none", "model.positions": "none", "model.tied_head": True,
             "model.feed_forward.activation": "gelu_tanh"},
    "l2": {"model.norm.kind": "l2", "model.norm.gain": False, "model.residual": False,
           "model.norm.placement": "sandwich"},
    "batch": {"model.norm.kind": "batch", "model.norm.bias": False, "training.batch": 8,
              "model.feed_forward.activation": "silu"},
    "unbiased": {"model.norm.deviation": "unbiased_eps_outside", "model.norm.attention": False,
                 "model.norm.final": False, "model.head_bias": False},
    "sigmoid": {"model.attention.kind": "sigmoid", "model.norm.feed_forward": False,
                "model.positions": "rotary", "model.dropout": 0.1},
    "feed_forward": {"model.attention.kind": "none", "training.rule": "feedback_alignment"},
    "uncausal": {"model.attention.causal": False, "training.rule": "direct_feedback_alignment",
                 "model.norm.backward": "identity"},
    "qk_norm": {"model.attention.qk_norm.kind": "rms", "model.attention.kv_heads": 1,
                "model.positions": "rotary", "model.rotary.theta": 500,
                "model.attention.value_residual": "learned", "model.norm.gain_form": "one_plus",
                "model.feed_forward.activation": "geglu"},
    "after": {"model.attention.qk_norm.kind": "layer", "model.attention.qk_norm.scope": "all",
              "model.attention.qk_norm.place": "after", "model.positions": "rotary",
              "model.rotary.skip_every": 2, "model.attention.qk_norm.gain": False,
              "model.feed_forward.activation": "reglu", "model.parallel": True},
    "shapes": {"model.attention.head_size": 8, "model.bias": False, "model.attention.qkv_bias": True,
               "model.parallel": True, "model.parallel_norms": True},
    "l2_heads": {"model.attention.qk_norm.kind": "l2", "model.attention.window": 3,
                 "model.attention.full_every": 2, "model.attention.sink": True,
                 "model.feed_forward.activation": "relu2", "model.update_gain": "feature"},
    "alibi": {"model.positions": "alibi", "model.attention.score_cap": 2, "model.logit_cap": 3,
              "model.attention.value_residual": "fixed", "model.update_gain": "scalar", "model.base_width": 6,
              "model.embedding_norm": True, "model.embedding_scale": 2},
    "dyt": {"model.norm.kind": "dyt", "model.norm.alpha": 0.8},
    "derf": {"model.norm.kind": "derf", "model.norm.placement": "sandwich"},
}

DOCUMENTS = {
    "name": "models",
    "base": {"task": {"documents": {"dataset": "names.txt", "held_out": 500}},
             "model": {"layers": 2, "width": 12, "heads": 2, "context": 16},
             "training": {"steps": 60, "batch": 2, "learning_rate": 0.01}},
    "axes": [{"name": "model", "settings": [{"label": label, "set": fields}
                                            for label, fields in MODELS.items()]}],
}
RECALL = {
    "name": "recall",
    "base": {"task": {"recall": {"entities": 6, "attributes": 5, "pairs": 4}},
             "model": {"layers": 2, "width": 15, "heads": 3, "positions": "sinusoidal"},
             "training": {"steps": 40, "batch": 8}},
}


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        PersonalServer().enter(cls)
        cls.lab = ablate.connect()

    def check(self, run):
        """Compares with the logits that the server captures."""
        arrays = run.analyze("capture", sites=["logits"], inputs={"documents": 40}).arrays()
        lengths = arrays["lengths"].values
        tokens = np.split(arrays["tokens"].values, np.cumsum(lengths)[:-1])
        padded = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
        for row, sequence in zip(padded, tokens):
            row[:len(sequence)] = torch.from_numpy(sequence.astype(np.int64))
        model = ablate.torch.load(run.checkpoint())
        with torch.no_grad():
            logits = model(padded, torch.from_numpy(lengths))
        ours = np.concatenate([row[:n].numpy() for row, n in zip(logits, lengths)])
        error = abs(ours - arrays["logits"].values).max()
        self.assertLess(error, TOLERANCE * max(1, abs(ours).max()))

    def test_logits_are_the_servers_for_every_part(self):
        experiment = self.lab.submit(DOCUMENTS).wait()
        self.assertEqual(experiment.message.counts.done, len(MODELS))
        for run in experiment.runs():
            with self.subTest(run.cell):
                self.check(run)

    def test_logits_are_the_servers_for_tasks_that_read_the_last_position(self):
        self.check(self.lab.submit(RECALL).wait().runs()[0])

    def test_modules_have_the_names_of_tensors(self):
        run = self.lab.submit(DOCUMENTS, set={"training.steps": 10}).wait().runs()[0]
        checkpoint = run.checkpoint()
        model = ablate.torch.load(checkpoint)
        self.assertEqual(list(model.state_dict()), list(checkpoint))
        self.assertEqual(model.block[0].attention.qkv.weight.shape, (36, 12))
        model(torch.tensor([[0, 1]])).sum().backward()
        self.assertTrue(all(p.grad is not None for p in model.parameters()))
