"""A tiny model of transformers, to hold imports and exports against.

    python transformers_model.py make TYPE FOLDER
    python transformers_model.py loss FOLDER TEXT TOKENIZER CONTEXT
    python transformers_model.py check FOLDER EXPORTED

make saves a model of a type (gpt2, llama, …) with random weights for the 512 tokens of examples/data/shakespeare-bpe. loss prints the mean
loss over the windows that a text task evaluates. check compares the tensors that transformers loads from both
folders bit for bit. Exit code 77: a package is missing.
"""

import os
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError as error:
    print(error)
    sys.exit(77)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def make(kind, folder):
    torch.manual_seed(1)
    more = {} if kind == "gpt2" else {"intermediate_size": 64}
    if kind in ("llama", "qwen2", "qwen3"):
        more["num_key_value_heads"] = 2
    if kind == "qwen3":
        more["head_dim"] = 12
    config = AutoConfig.for_model(kind, num_hidden_layers=2, hidden_size=32, num_attention_heads=4,
                                  max_position_embeddings=48, vocab_size=512, bos_token_id=None, eos_token_id=None,
                                  **more)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)


def loss(folder, text, tokenizer, context):
    bpe = Tokenizer(models.BPE.from_file(f"{tokenizer}/vocab.json", f"{tokenizer}/merges.txt"))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    with open(text, encoding="utf-8", newline="") as file:
        ids = bpe.encode(file.read()).ids
    held_out = torch.tensor(ids[int(len(ids) * 0.9):])
    context = int(context)
    windows = (len(held_out) - 1) // context
    inputs = held_out[: windows * context].view(windows, context)
    targets = held_out[1: windows * context + 1].view(windows, context)
    model = AutoModelForCausalLM.from_pretrained(folder).eval().double()
    with torch.no_grad():
        logits = model(inputs).logits
    print(repr(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()))


def check(folder, exported):
    wanted = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    loaded, info = AutoModelForCausalLM.from_pretrained(exported, output_loading_info=True)
    assert not any(info.values()), info
    state = loaded.state_dict()
    assert state.keys() == wanted.keys(), state.keys() ^ wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(state[name].view(torch.int32), tensor.view(torch.int32)), name


{"make": make, "loss": loss, "check": check}[sys.argv[1]](*sys.argv[2:])
