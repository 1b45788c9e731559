"""Checks that each error text which docs/howto/troubleshooting.md indexes is one that a program
prints: a list item begins with the texts, in backticks. Words in capitals that stand for a value
are not compared.

Usage: error_texts.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
PAGE = "docs/howto/troubleshooting.md"
ITEM = re.compile(r"^- ((?:`[^`]+`,?\s+)*`[^`]+`):", re.MULTILINE)
PLACEHOLDER = re.compile(r"\b(?:ADDRESS|CELL|EXP|FIELD|FILE|FOLDER|MODE|N|NAME|ROLE|SIZE|THINGS)\b")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def printed():
    """The string literals of the programs, those that follow each other as one."""
    for folder in ("base", "client", "proto", "server", "storage"):
        for path in sorted((root / folder).rglob("*.cc")) + sorted((root / folder).rglob("*.h")):
            text = re.sub(r'"\s*\n\s*"', "", path.read_text())
            for literal in LITERAL.findall(text):
                yield literal.replace('\\"', '"')


literals = "\n".join(printed())


def is_printed(text):
    """Whether the text is in one literal, or its two halves, parted at a space, are in two."""
    words = text.strip(' ":()').split(" ")
    return any(" ".join(words[:i]) in literals and " ".join(words[i:]) in literals
               for i in range(1, len(words) + 1))


items = ITEM.findall((root / PAGE).read_text())
if not items:
    sys.exit(f"{PAGE}: no item begins with an error text")
missing = [text for item in items for text in re.findall(r"`([^`]+)`", item)
           for part in PLACEHOLDER.split(text) if not is_printed(part)]
if missing:
    sys.exit(f"{PAGE}: no program prints\n  " + "\n  ".join(missing))
print(f"{PAGE}: {len(items)} items")
