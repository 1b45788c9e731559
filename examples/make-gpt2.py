"""Writes a small GPT-2 with random values, as transformers saves one: python make-gpt2.py FOLDER.

Equal versions of torch and transformers write equal files. Its tokenizer is data/shakespeare-bpe.
"""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

if len(sys.argv) != 2:
    sys.exit("usage: python make-gpt2.py FOLDER")
torch.manual_seed(0)
config = GPT2Config(n_layer=4, n_embd=128, n_head=4, n_positions=128, vocab_size=512,
                    bos_token_id=None, eos_token_id=None)
GPT2LMHeadModel(config).save_pretrained(sys.argv[1])
