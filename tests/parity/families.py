"""Llama, Qwen2, Qwen3 and GPT-NeoX of transformers for the parity tests.

make(FOLDER) writes models with random weights, their hidden states and logits. check(FOLDER) loads what
the C++ test wrote of them with transformers, and compares every tensor bit for bit. generate(FOLDER) writes
models, and the most likely tokens after a prompt.
"""

import contextlib
import json
import os
import unittest.mock

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48,
         "max_position_embeddings": 16, "vocab_size": 61}
# Settings of a configuration, and: type, dtype, max_shard_size, constants (that old files have), old (members of
# config.json as transformers 4 wrote them).
CASES = {
    "llama": {"type": "llama"},
    "llama_grouped": {"type": "llama", "num_key_value_heads": 2, "dtype": torch.bfloat16,
                      "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    "llama_wide": {"type": "llama", "hidden_size": 40, "num_attention_heads": 5, "head_dim": 6,
                   "num_key_value_heads": 1, "tie_word_embeddings": True, "hidden_act": "gelu"},
    "llama_biased": {"type": "llama", "attention_bias": True, "mlp_bias": True, "hidden_act": "relu",
                     "max_shard_size": "20KB"},
    "llama_old": {"type": "llama", "constants": "layers.{}.self_attn.rotary_emb.inv_freq", "old": True,
                  "dtype": torch.float16},
    "qwen2": {"type": "qwen2", "num_key_value_heads": 2},
    "qwen2_tied": {"type": "qwen2", "num_key_value_heads": 4, "tie_word_embeddings": True, "rms_norm_eps": 1e-5,
                   "dtype": torch.bfloat16},
    "qwen2_deep": {"type": "qwen2", "num_key_value_heads": 1, "num_hidden_layers": 4, "vocab_size": 200},
    "qwen3": {"type": "qwen3", "num_key_value_heads": 2, "head_dim": 8},
    "qwen3_narrow": {"type": "qwen3", "num_key_value_heads": 4, "head_dim": 6, "tie_word_embeddings": True},
    "qwen3_wide": {"type": "qwen3", "num_key_value_heads": 1, "head_dim": 16, "dtype": torch.float16,
                   "max_shard_size": "30KB"},
    "neox": {"type": "gpt_neox"},
    "neox_sequential": {"type": "gpt_neox", "use_parallel_residual": False, "hidden_act": "gelu_new",
                        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0,
                                            "partial_rotary_factor": 1.0}},
    "neox_half": {"type": "gpt_neox", "dtype": torch.bfloat16, "layer_norm_eps": 1e-6, "num_attention_heads": 2,
                  "constants": "layers.{}.attention.rotary_emb.inv_freq", "old": True},
    "neox_tied": {"type": "gpt_neox", "tie_word_embeddings": True, "num_hidden_layers": 3},
}
OURS = ("type", "dtype", "max_shard_size", "constants", "old")
PROMPT, NEW = 7, 100  # numbers of tokens


def make_model(case, seed):
    torch.manual_seed(seed)
    settings = {**SMALL, **{key: value for key, value in case.items() if key not in OURS}}
    config = AutoConfig.for_model(case["type"], bos_token_id=None, eos_token_id=None, pad_token_id=None, **settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.to(case.get("dtype", torch.float32)).eval()


def age(path):
    """Writes rotary positions as transformers 4 did."""
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    if config["model_type"] == "gpt_neox":
        config.update(rotary_emb_base=rope["rope_theta"], rotary_pct=rope["partial_rotary_factor"])
    else:
        config.update(rope_theta=rope["rope_theta"], rope_scaling=None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def save(model, case, folder):
    size = {"max_shard_size": case["max_shard_size"]} if "max_shard_size" in case else {}
    model.save_pretrained(folder, **size)
    if case.get("old"):
        age(os.path.join(folder, "config.json"))
    if "constants" in case:
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        for layer in range(model.config.num_hidden_layers):
            tensors[model.base_model_prefix + "." + case["constants"].format(layer)] = torch.ones(4)
        save_file(tensors, path, metadata={"format": "pt"})


class Angles(torch.nn.Module):
    """Cosines and sines of rotary positions in float64, from their formula."""

    def __init__(self, config):
        super().__init__()
        rope = config.rope_parameters
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        pairs = torch.arange(0, int(size * rope.get("partial_rotary_factor", 1.0)), 2, dtype=torch.float64)
        self.frequencies = rope["rope_theta"] ** (-pairs / (2 * len(pairs)))

    def forward(self, x, position_ids):
        angles = position_ids[:, :, None].double() * self.frequencies
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@contextlib.contextmanager
def exactly(model):
    """A model that computes in its own type what transformers computes in float32: norms, softmax and angles."""
    dtype = model.dtype
    model.base_model.rotary_emb = Angles(model.config)
    with unittest.mock.patch.object(torch, "float32", dtype):
        yield model


def make(folder):
    for seed, (name, case) in enumerate(sorted(CASES.items())):
        model = make_model(case, seed)
        save(model, case, os.path.join(folder, name))
        tokens = torch.randint(model.config.vocab_size, (2, model.config.max_position_embeddings))
        answer = {"tokens": tokens}
        for dtype in (torch.float32, torch.float64):
            with torch.no_grad(), exactly(model.to(torch.float32).to(dtype)) as run:
                out = run(tokens, output_hidden_states=True)
            kind = str(dtype).removeprefix("torch.")
            answer[kind + ".logits"] = out.logits
            for i, state in enumerate(out.hidden_states):
                answer[f"{kind}.hidden.{i}"] = state
        save_file({key: t.contiguous() for key, t in answer.items()},
                  os.path.join(folder, name + ".answer.safetensors"))


def check(folder):
    for seed, (name, case) in enumerate(sorted(CASES.items())):
        model = make_model(case, seed).float()
        exported = os.path.join(folder, name + ".export")
        loaded, info = AutoModelForCausalLM.from_pretrained(exported, attn_implementation="eager",
                                                            output_loading_info=True)
        assert not any(info.values()), (name, info)
        assert type(loaded) is type(model), name
        wanted = model.state_dict()
        assert loaded.state_dict().keys() == wanted.keys(), name
        for key, tensor in wanted.items():
            assert torch.equal(loaded.state_dict()[key], tensor), (name, key)
        tokens = torch.arange(5).unsqueeze(0)
        # With angles of their own: those of a model that was rounded to 16 bits are rounded, too.
        with torch.no_grad(), exactly(loaded.eval()) as run, exactly(model) as wanted_run:
            # Of one formula the first name is exported, and implementations round differently.
            torch.testing.assert_close(run(tokens).logits, wanted_run(tokens).logits, rtol=1e-4, atol=1e-4)


def generate(folder):
    for seed, (name, settings) in enumerate(sorted({
            "llama": {"type": "llama", "num_key_value_heads": 2, "max_position_embeddings": 128},
            "qwen3": {"type": "qwen3", "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 128},
            "qwen2": {"type": "qwen2", "num_key_value_heads": 1, "max_position_embeddings": 128},
            "neox": {"type": "gpt_neox", "max_position_embeddings": 128}}.items())):
        model = make_model(settings, seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2 if parameter.dim() > 1 else 1)  # or few tokens repeat
        save(model, settings, os.path.join(folder, name))
        prompt = torch.randint(model.config.vocab_size, (1, PROMPT))
        with exactly(model.double()) as run:
            tokens = run.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                  min_new_tokens=NEW, max_new_tokens=NEW, pad_token_id=0)[0]
        save_file({"prompt": tokens[:PROMPT].clone(), "drawn": tokens[PROMPT:].clone()},
                  os.path.join(folder, name + ".answer.safetensors"))
