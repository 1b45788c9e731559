"""Hostile labels, drawn and read back by an XML parser: literal, or U+FFFD."""
import random
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = ["`touch hacked`", "$(id)", "\"'\\\\n{}", "a<b>&amp;</text><script>", "ABLATE_EOD", "^{2}_x @a /Sigma",
         "|", "%s %g", "# comment", "\u202eright to left\u2066", "tab\tline\nend", "e\u0301 \u4e2d\u6587 \U0001f600", "]]>"]


def expected(text):
    unfit = {0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF} | set(range(0x202A, 0x202F)) | set(
        range(0x2066, 0x206A))
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" or ord(c) in unfit else c for c in text)


def drawn(program, text):
    svg = subprocess.run([program, "--text", text], stdout=subprocess.PIPE, check=True).stdout
    root = xml.etree.ElementTree.fromstring(svg)
    title = root.find(SVG + "title").text
    return title, "".join("".join(t.itertext()) for t in root.iter(SVG + "text"))


def main(program):
    rng = random.Random(11)
    alphabet = [chr(c) for c in range(1, 0x180)] + list("`\"'\\{}<>&|$@%#^_") * 6 + ["\u202e", "\ufeff", "\u2028"]
    texts = KNOWN + ["x" + "".join(rng.choices(alphabet, k=rng.randrange(1, 30))) + "x" for _ in range(15)]
    wrong = 0
    for text in texts:
        title, seen = drawn(program, text)
        if seen != expected(text) or title != expected(text):
            wrong += 1
            print(f"drew {seen!r}, titled {title!r} for {text!r}")
    print(f"{len(texts)} texts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
