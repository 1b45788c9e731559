"""Checks the Markdown pages, and the words of help, errors and comments.

Usage:
  docs_check.py [--protoc PROTOC]      check all pages and sources; with PROTOC also the generated table
  docs_check.py --cli ABLATE [OTHER…]  compare docs/reference/cli.md with the help that ABLATE prints;
                                       the help of every program must fit 80 columns
  docs_check.py --self-test            show that each rule finds its fault in a made-up page
  docs_check.py --all                  print also what is within its budget
  docs_check.py --budgets              print BUDGETS as the counts are now

Prints each finding as `file:line: text`. Rules that old text still breaks have a budget in BUDGETS:
the check fails if a count rises above it. Lower the budget when a count has fallen.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROSE_WIDTH, CODE_WIDTH, TERMINAL_WIDTH = 100, 120, 80
SENTENCE_WORDS, PARAGRAPH_WORDS = 25, 80

# How often a rule may be broken. Counts may only fall.
BUDGETS = {
    "docs: sentence of more than 25 words": 43,
    "docs: paragraph of more than 80 words": 4,
    "docs: 'what' as a noun": 13,
    "docs: 'behind' in space": 3,
    "docs: 'that of'": 22,
    "comment: opens with What": 11,
    "comment: opens with Of": 0,
    "comment: opens with Where": 1,
    "comment: opens with Whether": 0,
    "string: 'is no …'": 0,
    "string: forbidden words": 0,
}

I = re.IGNORECASE
# Words of style that docs don't use: pattern and advice. Patterns see a paragraph without code.
FORBIDDEN = [
    (re.compile(r"\bbut for\b", I), "write 'except' for 'but for'"),
    (re.compile(r"\banew\b", I), "write 'again' for 'anew'"),
    (re.compile(r"\b(?:is|are|was|were) none of\b", I), "negate the verb: 'isn't one of'"),
    (re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|one\b)[a-z]", I),
     "negate the verb: 'isn't a …'"),
    (re.compile(r"[,;] for (?:it|they|there|nobody|he|she|we|one) [a-z]"), "write 'because' for 'for'"),
    (re.compile(r"\bbeside\b", I), "write 'next to' or 'with' for 'beside'"),
    (re.compile(r"\b(?:server|client|worker|program|scheduler|store|command|engine|page|report)s? "
                r"(?:no longer )?(?:knows?|wants?|tells?|dies?|lets? go)\b", I),
     "software stores, rejects, prints, ends; it doesn't know, want, tell or die"),
    (re.compile(r"\b(?:a|an|one|two|three|\d+|some|so many) "
                r"(?!(?:of|in|for|to|with|behind|as|per|on|by|after|before|from|at|is|has|or|and|than|into|over)\b)\w+ "
                r"a (?:setting|cell|run|row|seed|core|lane|step|block|checkpoint|dimension|file|line|page|part)\b", I),
     "write 'one card per setting'"),
    (re.compile(r"\blast states?\b", I), "write 'saved training state'"),
    (re.compile(r"\blet(?:s|ting)? go\b", I), "write 'delete' or 'release'"),
    (re.compile(r"\bscored alike\b", I), "write 'on the same evaluation data'"),
    (re.compile(r"\bstrangers?\b", I), "write 'unauthenticated peer'"),
    (re.compile(r"\b(?:the|a|this|that|one|each|another) box\b", I), "write 'server machine'"),
    (re.compile(r"\bchoosing again\b", I), "write 'permutation test with reselection'"),
    (re.compile(r"(?:^|(?<=[.!?] ))(?:What|Of|Where|Whether) (?!course\b)[a-z][^?]*?(?:[.!:;]|$)"),
     "a sentence opens with its subject, not with What, Of, Where or Whether"),
]
PROSE_ONLY = 1  # of the last patterns: tables may break it
NO_ZERO = re.compile(r"(?<![\w./…,%)\]])[+−-]?\.\d+\b")  # text, code and printed output alike
ZERO_ADVICE = "a number has its leading zero"
WHAT = re.compile(r"(?<!of )\bwhat\b(?! is\b| are\b)[^?.]*(?=[.,;:]|$)")
BEHIND = re.compile(r"\bbehind\b", I)
THAT_OF = re.compile(r"\b(?:that|those) of\b", I)
# The same for texts in the sources.
STRING_FORBIDDEN = [FORBIDDEN[i] for i in (0, 1, 2, 4, 5, 6)] + [(NO_ZERO, ZERO_ADVICE)]
STRING_IS_NO = FORBIDDEN[3]

FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\S*)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\]|!\[[^\]]*\]\([^)]*\))*+)\]\(\s*<?([^()\s<>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
ONLY_LINK = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+|>\s+)?!?\[[^\]]*\]\(\S+\)[.,;:]?\s*$")
CODE_SPAN = re.compile(r"`+[^`]+`+")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


JOINER = "\u2060"  # around the text of a link, which counts as one word


def words_of(text):
    return re.sub(f"{JOINER}[^{JOINER}]*{JOINER}", "LINK", text).split()


class Page:
    """A Markdown page: its lines, marked as prose, table or code, and its paragraphs."""

    def __init__(self, path, text):
        self.path = path
        self.lines = text.split("\n")
        self.kinds, self.languages = [], []
        fence, language, comment = None, "", False
        for line in self.lines:
            found = FENCE.match(line)
            kind = "code" if fence or found else "prose"
            if found and fence is None:
                fence, language = found[1], found[2]
            elif found and fence is not None and found[1].startswith(fence) and not found[2]:
                fence = None
            elif not fence:
                comment = comment or line.lstrip().startswith("<!--")
                kind = "comment" if comment else kind
                comment = comment and "-->" not in line
                kind = "table" if kind == "prose" and line.lstrip().startswith("|") else kind
            self.kinds.append(kind)
            self.languages.append(language if kind == "code" else "")

    def of(self, *kinds):
        return [(i + 1, line) for i, (line, kind) in enumerate(zip(self.lines, self.kinds)) if kind in kinds]

    def headings(self):
        return [(i, HEADING.match(line)[2]) for i, line in self.of("prose") if HEADING.match(line)]

    def anchors(self):
        names, seen = set(), {}
        for _, title in self.headings():
            text = LINK.sub(r"\1", title).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            names.add(slug if count == 0 else f"{slug}-{count}")
        return names | set(re.findall(r'<a (?:id|name)="([^"]+)"', "\n".join(self.lines)))

    def paragraphs(self):
        """Texts without code and link targets, each with the line of every character."""
        found, text, lines = [], "", []

        def close():
            nonlocal text, lines
            if text.strip():
                found.append((text, lines))
            text, lines = "", []

        for number, line in [(i + 1, line) for i, line in enumerate(self.lines)]:
            kind = self.kinds[number - 1]
            if kind != "prose" or not line.strip() or HEADING.match(line):
                close()
                if kind == "table" and not re.fullmatch(r"[\s|:-]+", line):
                    for cell in self.plain(line).strip().strip("|").split("|"):
                        found.append((cell.strip(), [number] * len(cell)))
                continue
            if LIST_ITEM.match(line):
                close()
                line = LIST_ITEM.sub("", line)
            line = line.strip() + " "
            text += line
            lines += [number] * len(line)
        close()
        return [self.without_code(*paragraph) for paragraph in found]

    def plain(self, line):
        return LINK.sub(r"\1", CODE_SPAN.sub("CODE", line))

    def without_code(self, text, lines):
        """Replaces code by a word and links by their text; the lines of what remains stay right."""
        for pattern, kept in ((CODE_SPAN, None), (LINK, 1)):
            out, places, at = "", [], 0
            for match in pattern.finditer(text):
                new = "CODE" if kept is None else f"{JOINER}{match[kept]}{JOINER}"
                out += text[at:match.start()] + new
                places += lines[at:match.start()] + [lines[match.start()]] * len(new)
                at = match.end()
            text, lines = out + text[at:], places + lines[at:]
        return text.rstrip(), lines


class Findings:
    def __init__(self, root):
        self.root, self.lines, self.counted = root, [], {}

    def add(self, path, line, text):
        self.lines.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def count(self, kind, path, line, text):
        self.counted.setdefault(kind, []).append(f"{path.relative_to(self.root)}:{line}: {text}")


def pages(root):
    names = [root / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    paths = [path for path in names if path.exists()] + sorted((root / "docs").rglob("*.md"))
    return [Page(path, path.read_text()) for path in paths]


def check_links(root, all_pages, findings):
    by_path = {page.path.resolve(): page for page in all_pages}
    for page in all_pages:
        prose = "\n".join(CODE_SPAN.sub(lambda m: "x" * len(m[0]), line) if kind in ("prose", "table") else ""
                          for line, kind in zip(page.lines, page.kinds))
        targets = [(m.start(2), m[2]) for m in LINK.finditer(prose)]
        targets += [(m.start(1), m[1]) for m in re.finditer(r"^\[[^\]]+\]:\s*(?!x+(?:\s|$))(\S+)", prose, re.MULTILINE)]
        for at, target in targets:
            line = prose.count("\n", 0, at) + 1
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.path.parent / name).resolve() if name else page.path.resolve()
            if not path.exists() or not path.is_relative_to(root):
                findings.add(page.path, line, f"the link {target} leads nowhere")
            elif anchor and path in by_path and anchor not in by_path[path].anchors():
                findings.add(page.path, line, f"{name or 'this page'} has no heading #{anchor}")


def check_widths(all_pages, findings):
    for page in all_pages:
        for number, line in page.of("prose", "comment"):
            if len(line) > PROSE_WIDTH and not ONLY_LINK.match(line):
                findings.add(page.path, number, f"{len(line)} columns; prose has at most {PROSE_WIDTH}")
        for number, line in page.of("table", "code"):
            if len(line) > CODE_WIDTH:
                findings.add(page.path, number, f"{len(line)} columns; tables and code have at most {CODE_WIDTH}")


class CommandTable:
    """The commands and options that docs/reference/cli.md lists."""

    def __init__(self, text):
        self.options, self.everywhere = {}, {"--help", "-h"}
        command = None
        for line in text.split("\n"):
            heading = re.match(r"### ablate (.+)", line)
            if heading:
                command = heading[1]
                self.options[command] = set()
            item = re.match(r"- `((?:-\w, )?--[^`]*)`", line)
            if item:
                names = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", item[1].replace(",", " ")))
                (self.options[command] if command else self.everywhere).update(names)
        self.groups = {" ".join(name.split()[:n]) for name in self.options for n in range(1, len(name.split()))}

    def all_options(self):
        return set.union(self.everywhere, *self.options.values())

    def problem(self, words):
        """What is wrong with the words after `ablate`, or None. Upper-case words stand for others."""
        command = []
        while words and " ".join(command + words[:1]) in self.groups | set(self.options):
            command.append(words[0])
            words = words[1:]
        name = " ".join(command)
        if name not in self.options:
            first = words[0] if words else ""
            if first.startswith("-") or re.search(r"[A-Z…|{.<\[$]", first) or not first:
                unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in self.everywhere]
                return f"ablate has no option {unknown[0]}" if unknown and not name else None
            return f"ablate {(name + ' ' + first).strip()} is not a command"
        for word in words:
            if word == "--":
                break  # the rest is another program's
            option = word.split("=")[0].rstrip(",.:")
            if not re.fullmatch(r"--?[a-z][a-z-]*", option) or re.fullmatch(r"-\d.*", option):
                continue
            if option not in self.options[name] | self.everywhere:
                return f"ablate {name} has no option {option}"
        return None


def commands_in(text):
    """The words after each `ablate` in a line of shell, up to what ends a command."""
    for match in re.finditer(r"(?<![\w./-])(?:build/bin/)?ablate(?=[ \t]+[-a-z])", text):
        rest = re.split(r"[|;&()<>`#]|\s>|$", text[match.end():], maxsplit=1)[0]
        yield re.sub(r"'[^']*'|\"[^\"]*\"", "X", rest).split()


def options_of_programs(root):
    """Options of the programs and scripts other than ablate, from their sources."""
    sources = [root / "server/main.cc", root / "server/worker/main.cc", root / "server/worker/relay_command.cc"]
    for folder in ("deploy", "tests", "docs"):
        sources += [p for p in (root / folder).rglob("*") if p.suffix in (".sh", ".py")]
    found = {"--preset", "--build", "--test-dir", "--gtest_filter"}
    for path in sources:
        if path.exists():
            found |= set(OPTION.findall(path.read_text()))
    return found


def check_numbers(all_pages, findings):
    for page in all_pages:
        for number, line in page.of("prose", "table", "code"):
            for match in NO_ZERO.finditer(line):
                findings.add(page.path, number, f"'{match[0]}': {ZERO_ADVICE}")


def check_commands(root, all_pages, findings):
    page = root / "docs" / "reference" / "cli.md"
    if not page.exists():
        findings.add(page, 1, "missing; write it with build/bin/ablate help --markdown")
        return
    table = CommandTable(page.read_text())
    known = table.all_options() | options_of_programs(root)
    for page in all_pages:
        for number, line in page.of("code"):
            if page.languages[number - 1] in ("yaml", "json", "cpp", "c++", "python", "text", "proto"):
                continue
            for words in commands_in(line):
                if problem := table.problem(words):
                    findings.add(page.path, number, problem)
        for number, line in page.of("prose", "table"):
            for span in CODE_SPAN.findall(line):
                code = span.strip("`").strip()
                for words in commands_in(code):
                    if problem := table.problem(words):
                        findings.add(page.path, number, problem)
                if not code.startswith("--"):
                    continue
                for option in OPTION.findall(code):
                    if option not in known:
                        findings.add(page.path, number, f"no program has the option {option}")


def check_methods(root, findings):
    """The API's page lists each service with its methods, as the .proto files do."""
    page = root / "docs/reference/api.md"
    text = " ".join(page.read_text().split()) + " " if page.exists() else ""
    for proto in sorted((root / "proto/ablate/v1").glob("*.proto")):
        for service in re.finditer(r"^service (\w+) \{(.*?)^\}", proto.read_text(), re.DOTALL | re.MULTILINE):
            methods = ", ".join(re.findall(r"^\s*rpc (\w+)\(", service[2], re.MULTILINE))
            if f"- **{service[1]}:** {methods} " not in text:
                findings.add(page, 1, f"service {service[1]}: its methods aren't '{methods}'")


def check_words(all_pages, findings):
    for page in all_pages:
        for text, lines in page.paragraphs():
            def line_at(offset):
                return lines[min(offset, len(lines) - 1)]
            prose = page.kinds[line_at(0) - 1] == "prose"
            for pattern, advice in FORBIDDEN if prose else FORBIDDEN[:-PROSE_ONLY]:
                for match in pattern.finditer(text):
                    findings.add(page.path, line_at(match.start()), f"'{shown(match[0])}': {advice}")
            for match in WHAT.finditer(text):
                findings.count("docs: 'what' as a noun", page.path, line_at(match.start()),
                               f"'{shown(match[0])}': name the thing")
            for match in BEHIND.finditer(text):
                findings.count("docs: 'behind' in space", page.path, line_at(match.start()), "'behind'")
            for match in THAT_OF.finditer(text):
                findings.count("docs: 'that of'", page.path, line_at(match.start()), "repeat the noun")
            if not prose:
                continue
            count = len(words_of(text))
            if count > PARAGRAPH_WORDS:
                findings.count("docs: paragraph of more than 80 words", page.path, line_at(0), f"{count} words")
            start = 0
            for sentence in re.split(r"(?<=[.!?:]) ", text):
                count = len(words_of(sentence))
                if count > SENTENCE_WORDS:
                    findings.count("docs: sentence of more than 25 words", page.path, line_at(start),
                                   f"{count} words: '{shown(sentence)}'")
                start += len(sentence) + 1


def shown(text):
    text = text.replace(JOINER, "")
    return text if len(text) <= 60 else text[:59] + "…"


COMMENT = re.compile(r"^\s*//+\s*(What|Of|Where|Whether)\b")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def check_sources(root, findings):
    for folder in ("base", "client", "proto", "server", "storage", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".proto"):
                continue
            for number, line in enumerate(path.read_text().split("\n"), 1):
                opens = COMMENT.match(line)
                if opens:
                    findings.count(f"comment: opens with {opens[1]}", path, number, line.strip())
                if folder not in ("base", "client", "proto", "server") or path.suffix == ".proto":
                    continue
                if re.match(r"\s*(?://|#)", line):
                    continue
                for text in STRING.findall(line):
                    if STRING_IS_NO[0].search(text):
                        findings.count("string: 'is no …'", path, number, f"'{shown(text)}'")
                    for pattern, advice in STRING_FORBIDDEN:
                        if pattern.search(text):
                            findings.count("string: forbidden words", path, number, f"'{shown(text)}': {advice}")


def find(root):
    findings = Findings(root)
    all_pages = pages(root)
    check_links(root, all_pages, findings)
    check_widths(all_pages, findings)
    check_numbers(all_pages, findings)
    check_commands(root, all_pages, findings)
    check_methods(root, findings)
    check_words(all_pages, findings)
    check_sources(root, findings)
    return findings


def check(root, budgets):
    """Findings about all pages and sources below `root`, those within a budget left out."""
    findings = find(root)
    lines = findings.lines
    for kind in sorted(set(budgets) | set(findings.counted)):
        found = findings.counted.get(kind, [])
        if len(found) > budgets.get(kind, 0):
            lines += found + [f"tests/docs_check.py:1: {kind}: {len(found)} times; the budget is {budgets.get(kind, 0)}"]
        elif len(found) < budgets.get(kind, 0):
            print(f"note: {kind}: {len(found)} times; lower the budget of {budgets[kind]}")
    return lines


def check_programs(ablate, others):
    """The generated page, and the width of every help."""
    page = ROOT / "docs" / "reference" / "cli.md"
    printed = subprocess.run([ablate, "help", "--markdown"], check=True, capture_output=True, text=True).stdout
    findings = []
    if not page.exists() or page.read_text() != printed:
        findings.append("docs/reference/cli.md:1: differs from the program's help; "
                        "run: build/bin/ablate help --markdown > docs/reference/cli.md")
    for program in others:
        text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
        for number, line in enumerate(text.split("\n"), 1):
            default = line.strip().startswith("[") or "/" in line  # a path of this machine
            if len(line) > TERMINAL_WIDTH and not default:
                findings.append(f"{pathlib.Path(program).name} --help:{number}: {len(line)} columns: {line.strip()}")
    return findings


# A fault for each rule: the text of a page, and a part of what is found in it; and text without fault.
FAULTS = [
    ("See [this](gone.md).", "gone.md leads nowhere"),
    ("See [this](docs/other.md#gone).", "no heading #gone"),
    ("See [this](#gone).", "this page has no heading #gone"),
    ("[x]: gone.md", "gone.md leads nowhere"),
    ("word " * 21, "105 columns; prose"),
    ("| " + "x" * 120 + " |", "tables and code have at most 120"),
    ("```\n" + "x" * 121 + "\n```", "tables and code have at most 120"),
    ("```\nablate sumbit x.yaml\n```", "ablate sumbit is not a command"),
    ("```\nid=$(ablate ls --gone | cut -c 1)\n```", "ablate ls has no option --gone"),
    ("Call `ablate data gone`.", "ablate data gone is not a command"),
    ("Give `--gone 3`.", "no program has the option --gone"),
    ("All but for\none.", "but for"),
    ("The mean is that of runs.", "'that of': 1 times"),
    ("It is trained anew.", "anew"),
    ("It is none of these.", "is none of"),
    ("A name is no label.", "is no l"),
    ("It waits, for it is early.", "because"),
    ("The file beside it.", "beside"),
    ("The server no longer knows it.", "doesn't know"),
    ("It draws one card a setting.", "one card per setting"),
    ("What a run leaves is kept.", "opens with its subject"),
    ("It ends. Where there is none, it stops.", "opens with its subject"),
    ("It grew by .03 nats.", "leading zero"),
    ("It prints “smaller than .05”.", "leading zero"),
    ("| p |\n| --- |\n| <.001 |", "leading zero"),
    ("```\npost  +.0311 [+.0183, +.0381]\n```", "leading zero"),
    ("It reads what it finds.", "'what' as a noun: 1 times"),
    ("word " * 13 + "\n" + "word " * 13 + "end.", "sentence of more than 25 words: 1 times"),
    ("\n".join(["Seven words stand in this short sentence."] * 12), "paragraph of more than 80 words: 1 times"),
]
FAULTLESS = """# A page

See [the other](other.md#a-heading) and [`code`](#a-page), or
[a long link text that leads to some other place](https://example.org/a/very/long/path/that/cannot/be/broken/at/all).

![an image with a long text that stands alone on its line, and is therefore left as it is](other.md)

A weight is
[out, in]: `code` comes first.

There is no GPU. What is a cell? It takes 0.05 s, as in `0.05` and v0.2.

```
ablate ls --limit 3 | jq .name   # that of others
ablate help data add && ablate --version
```

```yaml
question: ablate sumbit
```

| option | meaning |
| --- | --- |
| `--limit` | `ablate data add FILE` |
"""
SELF_TEST_CLI = """# The command line

- `--version`: Print the version

### ablate ls

- `-n, --limit N`: List at most N

### ablate help

### ablate data add
"""


def self_test():
    failures = []
    for text, wanted in [(fault, wanted) for fault, wanted in FAULTS] + [(FAULTLESS, None)]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "docs" / "reference").mkdir(parents=True)
            (root / "README.md").write_text(text + "\n")
            (root / "other.md").write_text("# Other\n")
            (root / "docs" / "reference" / "cli.md").write_text(SELF_TEST_CLI)
            (root / "docs" / "other.md").write_text("# Other\n\n## A heading\n")
            if wanted is None:
                (root / "README.md").rename(root / "docs" / "page.md")
            found = check(root, {})
        if wanted is None and found:
            failures.append(f"a page without fault: {found}")
        if wanted is not None and not any(wanted in line for line in found):
            failures.append(f"not found: '{wanted}' in {text!r}; found {found}")
    sources = {"client/a.cc": ('  // What it is.\n  Error("x is none of y");\n  Error("a name is no label");\n',
                               ["comment: opens with What: 1", "string: forbidden words: 1", "string: 'is no …': 1"]),
               "server/b.cc": ('  Text("p < .05");\n', ["string: forbidden words: 1"]),
               "proto/ablate/v1/c.proto": ("service Things {\n  rpc Get(A) returns (B);\n}\n", ["service Things: its methods"])}
    for name, (text, wanted) in sources.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "docs" / "reference").mkdir(parents=True)
            (root / "docs" / "reference" / "cli.md").write_text(SELF_TEST_CLI)
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text)
            found = check(root, {})
            failures += [f"not found: {each}; found {found}" for each in wanted if not any(each in f for f in found)]
            budgets = {each.rpartition(": ")[0]: 1 for each in wanted}
            if name.endswith(".cc") and check(root, budgets):
                failures.append("a count within its budget is found")
    return failures


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--self-test"]:
        found = self_test()
    elif arguments[:1] == ["--budgets"]:
        counted = find(ROOT).counted
        print("\n".join(f'    "{kind}": {len(counted.get(kind, []))},' for kind in BUDGETS))
        found = []
    elif arguments[:1] == ["--all"]:
        found = check(ROOT, {})
    elif arguments[:1] == ["--cli"]:
        found = check_programs(arguments[1], arguments[2:])
    else:
        found = check(ROOT, BUDGETS)
        if arguments[:1] == ["--protoc"]:
            table = [sys.executable, str(ROOT / "docs" / "field_table.py"), "--check", arguments[1]]
            if subprocess.run(table, check=False).returncode != 0:
                found.append("docs/reference/experiment-file.md:1: the generated table is not current")
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
