"""GPT-2 models of transformers for the parity tests.

make(FOLDER) writes models with random weights, their hidden states and logits. check(FOLDER) loads what
the C++ test wrote of them, and compares every tensor bit for bit. generate(FOLDER) writes models, and the
most likely tokens after a prompt. shapes(FOLDER) writes models of several shapes in every type of file,
and their logits.
"""

import json
import os

import torch
import torch.nn as nn
import transformers
from safetensors.torch import load_file, save_file, save_model
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# Settings of GPT2Config, and: dtype, max_shard_size, plain (names without "transformer."), masks (the
# constants that old files have), norm and without (a kind of norm, and the sites that lack one), aliases (sizes
# in config.json have the names that GPT2Config maps), head_only (the shared tensor is stored as the head).
CASES = {
    "tied": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 61},
    "untied": {"n_layer": 1, "n_embd": 24, "n_head": 3, "n_positions": 9, "vocab_size": 40,
               "tie_word_embeddings": False, "layer_norm_epsilon": 1e-6},
    "padded": {"n_layer": 3, "n_embd": 32, "n_head": 1, "n_positions": 12, "vocab_size": 128, "n_inner": 80,
               "activation_function": "gelu"},
    "plain": {"n_layer": 2, "n_embd": 40, "n_head": 5, "n_positions": 20, "vocab_size": 33, "plain": True,
              "masks": True, "activation_function": "relu"},
    "half": {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 50,
             "dtype": torch.float16, "activation_function": "silu"},
    "bfloat": {"n_layer": 2, "n_embd": 64, "n_head": 8, "n_positions": 30, "vocab_size": 70,
               "dtype": torch.bfloat16, "activation_function": "gelu_pytorch_tanh", "plain": True},
    "double": {"n_layer": 1, "n_embd": 20, "n_head": 4, "n_positions": 7, "vocab_size": 11,
               "dtype": torch.float64},
    "sharded": {"n_layer": 4, "n_embd": 32, "n_head": 4, "n_positions": 16, "vocab_size": 90,
                "max_shard_size": "40KB"},
    "sharded_untied": {"n_layer": 2, "n_embd": 36, "n_head": 6, "n_positions": 10, "vocab_size": 64,
                       "max_shard_size": "30KB", "tie_word_embeddings": False, "dtype": torch.float16},
    "rms": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 64, "norm": "rms"},
    "rms_attention": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 64,
                      "norm": "rms", "without": ["ln_2"]},
    "rms_feed_forward": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 64,
                         "norm": "rms", "without": ["ln_1"], "dtype": torch.bfloat16},
    "rms_final": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 16, "vocab_size": 64,
                  "norm": "rms", "without": ["ln_1", "ln_2"], "plain": True},
    "layer_attention": {"n_layer": 2, "n_embd": 28, "n_head": 2, "n_positions": 16, "vocab_size": 31,
                        "without": ["ln_2", "ln_f"]},
    "aliases": {"n_layer": 2, "n_embd": 24, "n_head": 3, "n_positions": 16, "vocab_size": 31, "aliases": True},
    "head_only": {"n_layer": 1, "n_embd": 24, "n_head": 2, "n_positions": 16, "vocab_size": 31,
                  "head_only": True},
    **{name: {"n_layer": 2, "n_embd": 24, "n_head": 2, "n_positions": 12, "vocab_size": 31,
              "activation_function": name}
       for name in ("gelu_accurate", "gelu_fast", "gelu_python", "gelu_python_tanh", "swish")},
}
# Models that generate.
TEXT_CASES = {
    "tied": {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 256, "vocab_size": 300},
    "untied": {"n_layer": 3, "n_embd": 32, "n_head": 2, "n_positions": 207, "vocab_size": 97,
               "tie_word_embeddings": False, "activation_function": "gelu"},
    "relu": {"n_layer": 1, "n_embd": 40, "n_head": 5, "n_positions": 240, "vocab_size": 64, "n_inner": 72,
             "activation_function": "relu", "tie_word_embeddings": False},
    "rms": {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 256, "vocab_size": 128, "norm": "rms",
            "activation_function": "silu"},
}
# Shapes whose logits gpt2_errors compares, for each type of file. The last is GPT-2's own.
SHAPES = {
    "1-tiny": {"n_layer": 1, "n_embd": 16, "n_head": 1, "n_positions": 8, "vocab_size": 50},
    "2-narrow": {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 64, "vocab_size": 512},
    "3-example": {"n_layer": 4, "n_embd": 128, "n_head": 4, "n_positions": 128, "vocab_size": 512},
    "4-deep": {"n_layer": 24, "n_embd": 64, "n_head": 4, "n_positions": 64, "vocab_size": 512},
    "5-odd": {"n_layer": 4, "n_embd": 120, "n_head": 5, "n_positions": 100, "vocab_size": 997, "n_inner": 300,
              "activation_function": "gelu"},
    "6-untied": {"n_layer": 4, "n_embd": 256, "n_head": 8, "n_positions": 256, "vocab_size": 5000,
                 "tie_word_embeddings": False},
    "7-half": {"n_layer": 6, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 5000},
    "8-gpt2": {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
}
FILE_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
MOST_TOKENS = 256  # of a sequence of a shape
PROMPT, NEW = 7, 200  # numbers of tokens
OURS = ("dtype", "max_shard_size", "plain", "masks", "norm", "without", "aliases", "head_only")


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)


def replace_norms(model, case):
    """Replaces norms as the case says."""
    for owner in (*model.transformer.h, model.transformer):
        for name in ("ln_1", "ln_2", "ln_f"):
            if not hasattr(owner, name):
                continue
            if name in case.get("without", []):
                setattr(owner, name, nn.Identity())
            elif case.get("norm") == "rms":
                setattr(owner, name, RMSNorm(model.config.n_embd, model.config.layer_norm_epsilon))


def make_model(case, seed):
    torch.manual_seed(seed)
    settings = {key: value for key, value in case.items() if key not in OURS}
    model = GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None, **settings))
    replace_norms(model, case)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.to(case.get("dtype", torch.float32)).eval()


def rename_sizes(path):
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    for alias, key in GPT2Config.attribute_map.items():
        config[alias] = config.pop(key)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def save(model, case, folder):
    """Writes the model with transformers, or tensor by tensor under the other names."""
    size = {"max_shard_size": case["max_shard_size"]} if "max_shard_size" in case else {}
    model.save_pretrained(folder, **size)
    if case.get("aliases"):
        rename_sizes(os.path.join(folder, "config.json"))
    if case.get("head_only"):
        save_model(model, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    if not case.get("plain"):
        return
    path = os.path.join(folder, "model.safetensors")
    tensors = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    if case.get("masks"):
        positions = model.config.n_positions
        for layer in range(model.config.n_layer):
            tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, positions, positions).tril().bool()
            tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path)


def make(folder):
    for seed, (name, case) in enumerate(sorted(CASES.items())):
        model = make_model(case, seed)
        save(model, case, os.path.join(folder, name))
        if case.get("head_only"):
            stored = load_file(os.path.join(folder, name, "model.safetensors"))
            assert "lm_head.weight" in stored and "transformer.wte.weight" not in stored, name
        tokens = torch.randint(case["vocab_size"], (2, case["n_positions"]))
        answer = {"tokens": tokens}
        for dtype in (torch.float32, torch.float64):
            # Both compute with the float32 values, to which an import rounds float64.
            run = model.float().to(dtype)
            with torch.no_grad():
                out = run(tokens, output_hidden_states=True)
            kind = str(dtype).removeprefix("torch.")
            answer[kind + ".logits"] = out.logits
            for i, state in enumerate(out.hidden_states):
                answer[f"{kind}.hidden.{i}"] = state
        save_file({key: t.contiguous() for key, t in answer.items()},
                  os.path.join(folder, name + ".answer.safetensors"))


def check_tensors(name, exported, model):
    """Compares tensors by name; a tied head is stored once."""
    wanted = {key: t.float() for key, t in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del wanted["lm_head.weight"]
    assert exported.keys() == wanted.keys(), (name, exported.keys() ^ wanted.keys())
    for key, tensor in wanted.items():
        assert exported[key].dtype == torch.float32, (name, key)
        assert torch.equal(exported[key].view(torch.int32), tensor.contiguous().view(torch.int32)), (name, key)


def check_loads(name, folder, model):
    """transformers loads a plain GPT-2 from the folder, with every bit, and computes the same."""
    loaded, info = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), (name, info)
    assert type(AutoModelForCausalLM.from_pretrained(folder)) is GPT2LMHeadModel, name
    for key, tensor in model.float().state_dict().items():
        assert torch.equal(loaded.state_dict()[key], tensor), (name, key)
    for key in ("n_embd", "n_head", "n_layer", "n_positions", "vocab_size", "layer_norm_epsilon",
                "tie_word_embeddings"):
        assert getattr(loaded.config, key) == getattr(model.config, key), (name, key)
    tokens = torch.arange(min(5, model.config.n_positions)).unsqueeze(0)
    with torch.no_grad():
        # gelu_pytorch_tanh is exported as gelu_new, which rounds otherwise.
        torch.testing.assert_close(loaded.eval()(tokens).logits, model.float()(tokens).logits)


def check(folder):
    for seed, (name, case) in enumerate(sorted(CASES.items())):
        model = make_model(case, seed)
        exported = os.path.join(folder, name + ".export")
        check_tensors(name, load_file(os.path.join(exported, "model.safetensors")), model)
        with open(os.path.join(exported, "config.json"), encoding="utf-8") as file:
            norm = json.load(file)["ablate"]["norm"]
        for site, module in (("attention", "ln_1"), ("feed_forward", "ln_2"), ("final", "ln_f")):
            assert norm[site] == (module not in case.get("without", [])), (name, norm)
        if "norm" not in case and "without" not in case:
            check_loads(name, exported, model)
            continue
        try:
            AutoModelForCausalLM.from_pretrained(exported)
        except ValueError as error:
            assert "ablate_gpt2" in str(error), (name, error)
        else:
            raise AssertionError(f"{name}: transformers would compute another norm")


def generate(folder):
    for seed, (name, case) in enumerate(sorted(TEXT_CASES.items())):
        model = make_model(case, seed)
        with torch.no_grad():
            model.transformer.wpe.weight.mul_(4)  # or few tokens repeat
        save(model, case, os.path.join(folder, name))
        prompt = torch.randint(case["vocab_size"], (1, PROMPT))
        tokens = model.double().generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                         min_new_tokens=NEW, max_new_tokens=NEW, pad_token_id=0)[0]
        assert tokens.shape == (PROMPT + NEW,), (name, tokens.shape)
        save_file({"prompt": tokens[:PROMPT].clone(), "drawn": tokens[PROMPT:].clone()},
                  os.path.join(folder, name + ".answer.safetensors"))


def shapes(folder):
    for seed, (name, settings) in enumerate(SHAPES.items()):
        for kind, dtype in FILE_TYPES.items():
            torch.manual_seed(seed)
            model = GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None, **settings)).double()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.05)
            model = model.to(dtype).eval()
            model.save_pretrained(os.path.join(folder, f"{name}.{kind}"))
            tokens = torch.randint(settings["vocab_size"], (1, min(settings["n_positions"], MOST_TOKENS)))
            answer = {"tokens": tokens}
            for computed in (torch.float64, torch.float32):  # first with the exact values of the file
                model = model.to(computed)
                with torch.no_grad():
                    answer[str(computed).removeprefix("torch.") + ".logits"] = model(tokens).logits[0]
            save_file(answer, os.path.join(folder, f"{name}.{kind}.answer.safetensors"))
