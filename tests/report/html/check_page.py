"""Parses pages of write_page as browsers do: strict HTML, SVG as XML, structure, and that no text becomes markup."""
import base64
import collections
import hashlib
import html
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

try:
    import html5lib
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
ELEMENTS = set("""html head meta title style body header main nav article section footer h1 h2 h3 h4 p ul ol li dl dt dd
    div small span strong a code pre details summary script table caption colgroup thead tbody tr th td figure figcaption""".split())
ATTRIBUTES = set("""lang charset name content id class role tabindex aria-label aria-labelledby scope colspan rowspan span href download
    dir open data-title http-equiv""".split())
SVG_ELEMENTS = {"svg", "title", "desc", "clipPath", "rect", "path", "text"}
SVG_ATTRIBUTES = set("""class aria-hidden rx data-steps width height viewBox role aria-labelledby aria-describedby id d x y fill stroke stroke-width stroke-linejoin paint-order
clip-path font-family font-size text-anchor {http://www.w3.org/XML/1998/namespace}space""".split())
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufdd0-\ufdef\ufffe\uffff]")


def made(kind, seed=1):
    done = subprocess.run([sys.argv[1], kind, str(seed)], capture_output=True, check=True)
    return done.stdout.decode("utf-8"), json.loads(done.stderr)


def parse(text):
    """The document, or an error at the first thing that the HTML specification calls one."""
    return html5lib.HTMLParser(strict=True, tree=html5lib.getTreeBuilder("etree")).parse(text)


def check_vocabulary(document):
    """Every element and attribute is one that the page's source names."""
    for element in document.iter():
        if element.tag.startswith(SVG):
            name, elements, attributes = element.tag[len(SVG):], SVG_ELEMENTS, SVG_ATTRIBUTES
        else:
            name, elements, attributes = element.tag[len(HTML):], ELEMENTS, ATTRIBUTES
        assert name in elements, name
        unknown = {a for a in element.attrib if not a.startswith("{http://www.w3.org/2000/xmlns/}")} - attributes
        assert not unknown, (name, unknown)
        for address in (element.get("href", "#"),):
            assert address.startswith(("#", "data:text/csv;", "data:application/x-tex;", "data:application/yaml;")), address[:80]


def check_structure(document):
    ids = [e.get("id") for e in document.iter() if e.get("id")]
    assert len(ids) == len(set(ids)), "ids repeat"
    targets = [e.get("href")[1:] for e in document.iter(HTML + "a") if e.get("href").startswith("#")]
    assert set(targets) <= set(ids), set(targets) - set(ids)
    for attribute in ("aria-labelledby", "aria-describedby"):
        labels = [part for e in document.iter() for part in e.get(attribute, "").split()]
        assert labels and set(labels) <= set(ids)
    assert all(e.get("aria-labelledby") for e in document.iter(HTML + "figure"))
    scrolls = [e for e in document.iter(HTML + "pre")]
    scrolls += [d for f in document.iter(HTML + "figure") if f.get("class") == "wide"
                for d in f.iter(HTML + "div") if d.get("class") == "picture"]
    assert scrolls and all(e.get("tabindex") == "0" and e.get("aria-label") for e in scrolls)
    level = 0
    for element in document.iter():
        if re.fullmatch("h[1-6]", element.tag.removeprefix(HTML)):
            now = int(element.tag[-1])
            assert now <= level + 1, f"h{now} after h{level}"
            level = now
    assert len(list(document.iter(HTML + "h1"))) == 1 and len(list(document.iter(HTML + "main"))) == 1
    for table in document.iter(HTML + "table"):
        assert table[0].tag == HTML + "caption"
        assert all(th.get("scope") for th in table.iter(HTML + "th"))
        widths = set()
        for row in table.iter(HTML + "tr"):
            widths.add(sum(int(cell.get("colspan", 1)) for cell in row))
        assert max(widths) > 1
    for figure in document.iter(HTML + "figure"):
        assert figure[-1].tag == HTML + "figcaption"


def check_pictures(text):
    every = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    chips = [svg for svg in every if svg.startswith('<svg class="chip"')]
    pictures = [svg for svg in every if svg not in chips]
    assert pictures and chips and all('aria-hidden="true"' in chip for chip in chips)
    for picture in pictures:
        root = xml.fromstring(picture)
        assert root.get("role") == "img"
        assert [child.tag for child in root[:2]] == [SVG + "title", SVG + "desc"]
        assert len(root.findall(f"{SVG}title")) == 1
        assert all(len(path) < 2 and path[0].text for path in root.findall(f".//{SVG}path") if len(path))


def check_policy(source):
    """The page allows what it has and nothing else."""
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', source).group(1))
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives.pop(f"{tag}-src") == f"'sha256-{digest}'", tag
    assert directives == {name: "'none'" for name in ("default-src", "base-uri", "form-action")}, directives
    assert not re.search(r"\son\w+=|\sstyle=", re.sub(r"<(style|script)>.*?</\1>", "", source, flags=re.DOTALL))


def cleaned(text):
    return CONTROL.sub("\ufffd", "".join("\ufffd" if ord(c) & 0xfffe == 0xfffe else c for c in text))


def check_hostile(seed):
    page, given = made("hostile", seed)
    assert len(given) >= 10_000
    document = parse(page)
    check_vocabulary(document)
    check_structure(document)
    check_pictures(page)
    lists = [ul for ul in document.iter(HTML + "ul") if ul.get("class") == "texts"]
    # A sample keeps its line ends; all else that controls is replaced.
    shown = ["".join(item.itertext()).replace("\n", "\ufffd") for ul in lists for item in ul]
    expected = [cleaned(text) for text in given]
    assert len(shown) >= 9_900
    changed = collections.Counter(shown) - collections.Counter(expected)
    assert not changed, list(changed)[:3]
    everything = "".join(document.itertext())
    places = [e.get(name, "") for e in document.iter() for name in ("aria-label", "download", "content")]
    everything += "".join(places)
    # The first 100 are labels, captions, paths and so on. Some stand in what is not drawn (a tooltip, the CSV).
    found = sum(text in everything for text in expected[:150])
    assert found >= 60, found
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


for page_kind in ("usual", "several"):
    source, _ = made(page_kind)
    tree = parse(source)
    check_vocabulary(tree)
    check_structure(tree)
    check_pictures(source)
    assert source.count("<script>") == 1 and source.count("<style>") == 1
    assert "http" not in source.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    check_policy(source)
check_hostile(1)
print("3 pages are valid; 10,000 hostile texts stayed texts")
