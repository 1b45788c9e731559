"""Writes base/tokenizer/nfc_tables.inc: normalization form C as the tokenizers package has it.

    python write_nfc_tables.py base/tokenizer/nfc_tables.inc

Decompositions and combining classes are those of Python's unicodedata, without what the package
doesn't know: Unicode never changes them once a character has them. Ids of a text change with the
tables: write the file again only if the package changed, and say so in the change log.
"""

import itertools
import sys
import unicodedata

from tokenizers import __version__, normalizers

NFC, NFD = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
HANGUL = range(0xAC00, 0xAC00 + 11172)
POINTS = [point for point in range(0x110000) if point not in range(0xD800, 0xE000)]
LOW, HIGH = "\u0334", "\u0345"  # of the lowest and the highest combining class


def combining_class(point):
    """Returns 0 for a character that the package doesn't reorder."""
    character = chr(point)
    moves = NFD("a" + character + LOW) != "a" + character + LOW or NFD("a" + HIGH + character) != "a" + HIGH + character
    return unicodedata.combining(character) if moves else 0


def decomposition(point):
    """Returns the one or two characters of a canonical decomposition that the package knows."""
    if point in HANGUL or NFD(chr(point)) == chr(point):
        return ()
    return tuple(int(part, 16) for part in unicodedata.decomposition(chr(point)).split())


def write(out, head, rows):
    out.write(f"constexpr {head}[] = {{\n")
    line = ""
    for row in rows:
        if len(line) + len(row) + 5 > 100:
            out.write(f"    {line}\n")
            line = ""
        line += row if not line else " " + row
    out.write(f"    {line}\n}};\n")


def main(path):
    pairs = {point: found for point in POINTS if (found := decomposition(point))}
    assert all(len(found) <= 2 for found in pairs.values())
    classes = {point: combining_class(point) for point in POINTS}
    kept = [point for point, found in pairs.items() if len(found) == 2 and NFC(chr(point)) != chr(point)]
    ranges = []
    for value, group in itertools.groupby(POINTS, key=classes.get):
        group = list(group)
        if value:
            ranges.append(f"{{0x{group[0]:X}, 0x{group[-1]:X}, {value}}},")
    with open(path, "w") as out:
        out.write(f"// Written by tests/tokenizer/write_nfc_tables.py with tokenizers {__version__}.\n")
        write(out, "CombiningRange kCombining", ranges)
        write(out, "Decomposition kDecompositions",
              ["{" + ", ".join(f"0x{one:X}" for one in (point, *found)) + "}," for point, found in pairs.items()])
        write(out, "char32_t kNeverComposed", [f"0x{point:X}," for point in kept])


if __name__ == "__main__":
    main(sys.argv[1])
