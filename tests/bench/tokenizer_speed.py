"""Megabytes per second of our encoder and of the tokenizers package, one thread each, by turns.

    python tokenizer_speed.py PATH/TO/tokenizer_speed TOKENIZER_FOLDER [rounds [FILE...]]

Encodes each file, and 2 MB of mixed text (emoji, CJK, code, control characters, every code point).
Prints a JSON object per text: medians of MB per second of processor time, and the median of the
rounds' ratios, so that above 1 ours is faster. The package encodes the whole text with
`encode_batch_fast`, which computes no offsets, and the text in parts of 10,000 characters, which is
faster for it but changes ids at the cuts; `tokenizers` is the faster one of both in each round.
Its cache of words stays from round to round; our encoder is new in each.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer, models, pre_tokenizers

PART = 10_000


def seconds_of(tokenizer, texts):
    begin = time.process_time()
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return time.process_time() - begin, sum(len(encoding.ids) for encoding in encodings)


def measure(program, folder, tokenizer, file, rounds):
    with open(file, encoding="utf-8", newline="") as text:
        whole = text.read()
    parts = [whole[i:i + PART] for i in range(0, len(whole), PART)]
    megabytes = len(whole.encode()) / 1e6
    ours, theirs, whole_only, ratios = [], [], [], []
    with subprocess.Popen([program, folder, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(rounds):
            process.stdin.write("\n")
            process.stdin.flush()
            our_seconds, our_ids = process.stdout.readline().split()
            whole_seconds, their_ids = seconds_of(tokenizer, [whole])
            assert int(our_ids) == their_ids, (our_ids, their_ids)
            their_seconds = min(whole_seconds, seconds_of(tokenizer, parts)[0])
            ours.append(megabytes / float(our_seconds))
            theirs.append(megabytes / their_seconds)
            whole_only.append(megabytes / whole_seconds)
            ratios.append(ours[-1] / theirs[-1])
        process.stdin.close()
    print(json.dumps({"text": os.path.basename(file), "megabytes": round(megabytes, 2),
                      "ours": round(statistics.median(ours), 1),
                      "tokenizers": round(statistics.median(theirs), 2),
                      "tokenizers_whole": round(statistics.median(whole_only), 2),
                      "ratio": round(statistics.median(ratios), 1)}))


def main(program, folder, rounds="7", *files):
    if os.path.exists(f"{folder}/tokenizer.json"):
        tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        tokenizer.encode_special_tokens = True
    else:
        tokenizer = Tokenizer(models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    with tempfile.TemporaryDirectory() as scratch:
        mixed = os.path.join(scratch, "mixed")
        subprocess.run([program, "--mixed", "2000000", mixed], check=True)
        for file in [*files, mixed]:
            measure(program, folder, tokenizer, file, int(rounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
