"""Writes base/tokenizer/character_ranges.inc: the classes of all characters in the tokenizers package.

    python write_character_ranges.py base/tokenizer/character_ranges.inc

The package's classes are those of a Unicode version. Ids of a text change with them: write the file
again only if the package changed, and say so in the change log.
"""

import itertools
import sys

from tokenizers import __version__, pre_tokenizers

OTHER, NAMES = "kOther", ("kLetter", "kNumber", "kSpace")


def class_of(split, point):
    """Finds the class by which neighbours the character joins. The space may begin each word."""
    character = chr(point)
    if character == " ":
        return "kSpace"
    joined = [text for text, _ in split("a" + character + "1")]
    if len(joined) == 2:
        return "kLetter" if joined[1] == "1" else "kNumber"
    return OTHER if len(split("!" + character + "!")) == 1 else "kSpace"


def ranges(split):
    surrogates = range(0xD800, 0xE000)
    points = ((OTHER if point in surrogates else class_of(split, point), point) for point in range(0x110000))
    for name, group in itertools.groupby(points, key=lambda pair: pair[0]):
        group = [point for _, point in group]
        yield name, group[0], group[-1]


def main(path):
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True).pre_tokenize_str
    found = list(ranges(split))
    with open(path, "w") as out:
        out.write("// Written by tests/tokenizer/write_character_ranges.py "
                  f"with tokenizers {__version__}, which has Unicode 16.0.\n")
        for wanted in NAMES:
            out.write(f"constexpr CharacterRange {wanted}s[] = {{\n")
            line = ""
            for text in (f"{{0x{first:X}, 0x{last:X}}}," for name, first, last in found if name == wanted):
                if len(line) + len(text) + 5 > 100:
                    out.write(f"    {line}\n")
                    line = ""
                line += text if not line else " " + text
            out.write(f"    {line}\n}};\n")


if __name__ == "__main__":
    main(sys.argv[1])
