"""Encodes files with the tokenizers package.

    python reference_ids.py TOKENIZER_FOLDER FILE...

Writes FILE.ids, little-endian uint32, next to each file. In files whose names begin with "special",
<|endoftext|> is a special token. Exit code 77: a package is missing.
"""

import os
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import numpy
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
except ImportError as error:
    print(error)
    sys.exit(77)


def main(folder, *files):
    for file in files:
        tokenizer = Tokenizer(models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        if os.path.basename(file).startswith("special"):
            tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
        with open(file, encoding="utf-8", newline="") as text:
            ids = tokenizer.encode_batch_fast([text.read()], add_special_tokens=False)[0].ids
        numpy.array(ids, "<u4").tofile(file + ".ids")


if __name__ == "__main__":
    main(*sys.argv[1:])
