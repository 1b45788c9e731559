"""Inputs of the analyses that gpt2_analyses.py compares: options, prompts, random draws, labelled words.

Draws are those of docs/reference/random-streams.md, with seed 0.
"""

import bisect
import json
import math
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import numpy
import torch

WINDOW = 512
POINTS, ITERATIONS, SAMPLES = 5, 3, 2
PAIRS = {"clean": ["My lord, you", "And there is the man"], "corrupt": ["My man, you", "And there is my lord"],
         "right": [" are", " is"], "wrong": [" is", " will"]}
PERIOD, REPEATS, SEQUENCES = 25, 4, 20  # the defaults of induction
SCORED = 0.3  # of the sentences, the default of probe
MODELS, BLOCK = 4, 512  # of cka_models; the default size of a minibatch
KINDS = {  # windows to read, and the options
    "spectrum": (4, []),
    "cka": (4, []),
    "attention": (2, []),
    "weights": (0, []),
    "gradient_flow": (4, []),
    "loss_landscape": (2, ["directions=1", f"points={POINTS}"]),
    "hessian": (1, [f"iterations={ITERATIONS}", f"trace_samples={SAMPLES}", "density_runs=0"]),
    "predictions": (4, []),
    "logit_lens": (2, []),
    "robustness": (2, ["fgsm=[0.001,0.01]", "l2=[0.1]"]),
    "induction": (0, []),
    "patch": (0, [f"{name}={json.dumps(texts)}" for name, texts in PAIRS.items()]),
    "probe": (0, []),
    "cka_models": (39, [f"block={BLOCK}"]),
}
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/data")
TEXT, TOKENIZER, TAGGED = (os.path.join(EXAMPLES, name)
                           for name in ("tinyshakespeare.txt", "shakespeare-bpe", "tagged.conllu"))
DATASETS = {"probe": TAGGED, "cka_models": TEXT}  # read from the beginning, instead of held-out data


def word(state, numbers):
    """Returns the words of splitmix64 with these numbers (docs/reference/random-streams.md)."""
    z = numpy.uint64(state) + (numbers + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ z >> numpy.uint64(shift)) * numpy.uint64(factor)
    return z ^ z >> numpy.uint64(31)


def key(name):
    """Returns the state at which the stream of a name starts, for seed 0."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    mixed = word((h - 0x9E3779B97F4A7C15) % 2**64, numpy.zeros(1, "u8"))[0]
    return word(mixed, numpy.zeros(1, "u8"))[0]


def signs(state, first, count):
    words = word(state, numpy.arange(first, first + count, dtype="u8"))
    return numpy.where(words >> numpy.uint64(63), 1, -1)


def normals(state, first, count):
    uniform = (word(state, numpy.arange(first, first + count, dtype="u8")) >> numpy.uint64(11)) * 2.0**-53
    radius, angle = numpy.sqrt(-2 * numpy.log1p(-uniform[::2])), 2 * numpy.pi * uniform[1::2]
    return numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1).ravel()


def draw(stream, draws, shapes):
    """Returns a vector of all parameters, from our streams; transformers' linears are transposed."""
    vector = {}
    for name, shape in shapes.items():
        values = torch.empty(math.prod(shape))
        state = key(f"{stream}/{name}")
        for first in range(0, len(values), 2**20):
            count = min(2**20, len(values) - first)
            values[first:first + count] = torch.from_numpy(draws(state, first, count))
        transposed = len(shape) == 2 and "embedding" not in name
        vector[name] = values.view(shape[::-1]).T.contiguous() if transposed else values.view(shape)
    return vector


class Stream:
    """Draws from a sequential stream, given its name."""

    def __init__(self, name):
        self.state, self.number = key(name), 0

    def below(self, count):
        mask = (1 << max(count - 1, 1).bit_length()) - 1
        while True:
            value = int(word(self.state, numpy.array([self.number], "u8"))[0]) & mask
            self.number += 1
            if value < count:
                return value

    def shuffled(self, values):
        values = list(values)
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values


def tokenizer():
    from transformers import GPT2TokenizerFast
    return GPT2TokenizerFast.from_pretrained(TOKENIZER)


def tagged_sentence(lines, encode):
    """Returns the tokens of a sentence in CoNLL-U and, of each word, its last token, form and label."""
    text, words = "", []
    for _, form, _, label, *_, misc in (line.split("\t") for line in lines if line[0].isdigit()):
        text += form
        words.append((len(text), form, label))
        text += "" if misc == "SpaceAfter=No" else " "
    encoded = encode(text.rstrip(), return_offsets_mapping=True)
    ends = [end for _, end in encoded["offset_mapping"]]
    return (torch.tensor(encoded["input_ids"]),
            [(bisect.bisect_left(ends, end), form, label) for end, form, label in words])


def probed_words():
    """Returns sentences, first those to learn from, the number of words in these, and each fit's labels.

    A sentence is its tokens and the last token of each word.
    """
    encode = tokenizer()
    with open(TAGGED, encoding="utf-8") as file:
        sentences = [tagged_sentence(block.splitlines(), encode) for block in file.read().strip().split("\n\n")]
    order = numpy.argsort(word(key("analysis/probe/split"), numpy.arange(len(sentences), dtype="u8")))
    scored = int(SCORED * len(sentences) + 0.5)
    sentences = [sentences[i] for i in [*sorted(order[scored:]), *sorted(order[:scored])]]
    training = sum(len(words) for _, words in sentences[:-scored])
    forms, labels = zip(*(word[1:] for _, words in sentences for word in words))
    ordered = sorted(labels[:training])
    fits = {"accuracy": labels,
            "shuffled": (*Stream("analysis/probe/shuffled").shuffled(labels[:training]), *labels[training:]),
            "types": [ordered[Stream(f"analysis/probe/type/{form}").below(training)] for form in forms]}
    return [(tokens, [token for token, *_ in words]) for tokens, words in sentences], training, fits


def inputs_of(kind, shapes):
    """Returns the inputs of a kind besides windows: random draws, prompts, or labelled words."""
    if kind == "loss_landscape":
        return [draw("analysis/loss_landscape/0", normals, shapes)]
    if kind == "hessian":
        names = ["start.0"] + [f"trace.{i}" for i in range(SAMPLES)]
        return [draw(f"analysis/hessian/{name}", signs, shapes) for name in names]
    if kind == "induction":
        streams = [Stream(f"analysis/induction/{i}") for i in range(SEQUENCES)]
        vocabulary = tokenizer().vocab_size
        return [[stream.below(vocabulary) for _ in range(PERIOD)] for stream in streams]
    if kind == "patch":
        encode = tokenizer()
        return [[encode(text, return_tensors="pt")["input_ids"] for text in pair] for pair in zip(*PAIRS.values())]
    if kind == "probe":
        return probed_words()
    if kind == "cka_models":
        places = Stream("analysis/cka/tokens").shuffled(range(KINDS[kind][0] * WINDOW))
        return sorted(range(len(places)), key=places.__getitem__)  # the token at each place
    return None
