"""Makes tokenizers with the tokenizers package, and encodes files with them.

    python reference_json.py FOLDER FILE...

Trains a tokenizer of each kind on text of the files, and writes FOLDER/KIND.json. Writes
FILE.KIND.ids, little-endian uint32, next to each file, and FILE.KIND.txt, the text as the tokenizer
normalizes it. Names of files that begin with a word have a meaning:

- special: special tokens are found; in other files they are ordinary text
- long: isn't trained on
- characters: isn't trained on, and is encoded with two kinds only

Exit code 77: a package is missing.
"""

import json
import os
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import numpy
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                            trainers)
except ImportError as error:
    print(error)
    sys.exit(77)

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END = AddedToken("<|endoftext|>", special=True, normalized=False)
WORDS = [AddedToken("<think>", special=False, normalized=False), AddedToken("!!", special=False, normalized=False)]
SPACES = [AddedToken(" " * count, special=False, normalized=True) for count in range(24, 1, -1)]

# Pattern (None: the one of ByteLevel), normalizer, ignore_merges, added tokens.
KINDS = {
    "gpt2": (None, None, False, [END]),
    "neox": (None, normalizers.NFC(), False, [END, *SPACES]),
    "llama3": (CONTRACTIONS + LETTERS + r"\p{N}{1,3}" + REST, None, True, [END]),
    "qwen2": (CONTRACTIONS + LETTERS + r"\p{N}" + REST, normalizers.NFC(), False, [END, *WORDS]),
    "numbers": (CONTRACTIONS + LETTERS + r"\p{N}+" + REST, None, False, []),
    "split": (GPT2, normalizers.NFC(), True, []),
    "lines": (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}{1,3}" + REST, None, False, []),
    "plain": (r"'(?i:[sdmt]|ll|ve|re)|" + LETTERS + r" ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", None, False, []),
}


def make(kind, texts, path):
    pattern, normalizer, ignore_merges, added = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=1500, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), max_token_length=40))
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    tokenizer.save(path)
    if ignore_merges:  # without some merges, words that they make are only in the vocabulary
        with open(path, encoding="utf-8") as file:
            saved = json.load(file)
        del saved["model"]["merges"][3::4]
        saved["model"]["merges"] = [" ".join(merge) for merge in saved["model"]["merges"]]  # the older form
        with open(path, "w", encoding="utf-8") as file:
            json.dump(saved, file)
    return Tokenizer.from_file(path)


def main(folder, *files):
    def is_called(file, name):
        return os.path.basename(file).startswith(name)

    texts = {}
    for file in files:
        with open(file, encoding="utf-8", newline="") as text:
            texts[file] = text.read()
    learned = [text[:200_000] for file, text in texts.items()
               if not is_called(file, "characters") and not is_called(file, "long")]
    for kind in KINDS:
        tokenizer = make(kind, learned, os.path.join(folder, kind + ".json"))
        for file, text in texts.items():
            if is_called(file, "characters") and kind not in ("llama3", "qwen2"):
                continue
            tokenizer.encode_special_tokens = not is_called(file, "special")
            ids = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
            numpy.array(ids, "<u4").tofile(f"{file}.{kind}.ids")
            normal = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
            with open(f"{file}.{kind}.txt", "w", encoding="utf-8", newline="") as out:
                out.write(normal)


if __name__ == "__main__":
    main(*sys.argv[1:])
