"""Writes what the annotations of spec.proto and analysis_options.proto declare into the reference pages.

- docs/reference/experiment-file.md: every field of an experiment file.
- docs/reference/switches.md: the fields that can be ablated, by part (switch_table.py).
- docs/reference/analyses.md: the list of kinds.
- docs/reference/analyses/KIND.md: the options of each kind. A kind without its page is an error, and so
  is a number that its page doesn't name.

Usage: build/venv/bin/python docs/field_table.py [--check] "$(which protoc)"
--check writes nothing and fails if a page differs from its source.
"""
import functools
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import switch_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
KINDS = REFERENCE / "analyses"
COLUMNS = 100
Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {Field.TYPE_STRING: "text", Field.TYPE_BOOL: "true or false", Field.TYPE_UINT32: "whole number",
           Field.TYPE_INT32: "whole number", Field.TYPE_UINT64: "whole number", Field.TYPE_DOUBLE: "number"}
SPECIAL = {"Value": "value", "Struct": "names and values", "Duration": "seconds, as `7200s`"}
# Pages of analyses/ that describe something else than a kind of AnalysisKind.
OTHER_PAGES = {"samples"}


class Protos:
    """The messages and enums of spec.proto and analysis_options.proto, with their comments and options."""

    def __init__(self, protoc):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run([protoc, f"--proto_path={ROOT / 'proto'}", "--proto_path=/usr/include",
                            "--include_source_info", "--include_imports", f"--descriptor_set_out={out.name}",
                            "ablate/v1/spec.proto"], check=True)
            written = pathlib.Path(out.name).read_bytes()
        pool = descriptor_pool.Default()
        for file in descriptor_pb2.FileDescriptorSet.FromString(written).file:
            if file.name != "google/protobuf/descriptor.proto":  # it is there
                pool.AddSerializedFile(file.SerializeToString())
        for name in ("option", "number"):
            extension = pool.FindExtensionByName(f"ablate.v1.{name}")
            message_factory.GetMessageClass(extension.message_type)
            setattr(self, name, extension)
        self.messages, self.comments = {}, {}
        # Parsed again, because the extensions are known only now.
        for file in descriptor_pb2.FileDescriptorSet.FromString(written).file:
            if not file.name.startswith("ablate/"):
                continue
            comments = {tuple(l.path): " ".join((l.leading_comments or l.trailing_comments).split())
                        for l in file.source_code_info.location}
            for i, message in enumerate(file.message_type):
                self.messages[message.name] = message
                self.comments[message.name] = comments.get((4, i), "")
                for j, field in enumerate(message.field):
                    self.comments[message.name, field.name] = comments.get((4, i, 2, j), "")
                for value in range(len(message.enum_type[0].value) if message.enum_type else 0):
                    name = message.enum_type[0].value[value].name
                    self.comments[message.name, name] = comments.get((4, i, 4, 0, 2, value), "")

    def info(self, field):
        return field.options.Extensions[self.option]

    def numbers(self, message):
        return self.messages[message].options.Extensions[self.number]


def named(field):
    """Name of the field's message, or of the message that wraps its enum."""
    parts = field.type_name.rsplit(".", 2)
    return parts[-2] if field.type == Field.TYPE_ENUM else parts[-1]


def is_list(field):
    return field.label == Field.LABEL_REPEATED and not named(field).endswith("Entry")


def number(value):
    whole = value == int(value)
    return f"{int(value):,}" if whole else repr(value)


def range_text(info):
    """As RangeText of proto/reflect/option.h."""
    low = number(info.min) if info.HasField("min") else f"above {number(info.above)}" if info.HasField("above") else ""
    high = number(info.max if info.HasField("max") else info.below)
    if info.range:
        return info.range.replace("{min}", low).replace("{max}", high)
    if info.HasField("max"):
        return f"{low} to {high}" if info.HasField("min") else f"{low}, at most {high}"
    if info.HasField("below"):
        return f"{low} to below {high}" if info.HasField("min") else f"{low} and below {high}"
    return f"at least {low}" if info.HasField("min") else low


def values_of(field, protos):
    return [v.name for v in protos.messages[named(field)].enum_type[0].value if v.number]


def type_text(field, protos):
    """How a value of the field is written: the names of an enum, otherwise the kind of value; then its range."""
    info = protos.info(field)
    if field.type == Field.TYPE_ENUM:
        names = [f"`{name}`" for name in values_of(field, protos)]
        text = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
    elif field.type == Field.TYPE_MESSAGE:
        name = named(field)
        text = "map" if name.endswith("Entry") else SPECIAL.get(name, "fields")
    else:
        text = SCALARS[field.type]
    if is_list(field):
        plural = text in ("value", *SCALARS.values())
        text = f"list of {text}s" if plural else f"list of {text}"
    limits = [range_text(info), f"at most {info.most:,} values" if info.most else ""]
    return ", ".join(part for part in [text, *limits] if part)


def list_or(values):
    *others, last = values
    return f"{', '.join(others)}{' or ' if others else ''}{last}"


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def wrapped(text, indent):
    """Lines of at most COLUMNS. No line begins with what Markdown would read as a list, a quote or a heading."""
    glued = re.sub(r" (?=([-+*>#=]+|\d+[.)]) )", "\0", text)
    lines = textwrap.wrap(glued, COLUMNS, initial_indent=indent, subsequent_indent=indent,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def item(path, field, protos, owner):
    """A list item: name, values, range, condition and default; then what it means; then its enum's values."""
    info = protos.info(field)
    head = f"`{path}`: {type_text(field, protos)}"
    if info.HasField("only_with"):
        head += f"; only with `{info.only_with.field}` {list_or(info.only_with.value)}"
    if info.default:
        head += f"; default `{info.default}`"
    meaning = info.help or protos.comments[owner, field.name]
    lines = wrapped(head + "\\", "  ") + wrapped(sentence(meaning), "  ")  # the backslash is a line break
    lines[0] = "- " + lines[0][2:]
    if field.type == Field.TYPE_ENUM:
        notes = [(name, protos.comments[named(field), name]) for name in values_of(field, protos)]
        for name, note in notes:
            if note:
                said = wrapped(f"`{name}`: {note}", "    ")
                lines += ["  - " + said[0][4:], *said[1:]]
    return lines


def section(title, lines, depth):
    return [f"{'#' * depth} {title}", "", *lines, ""]


def fields_of(message, prefix, protos):
    """List items of the fields of a message and of those below it. A field that holds others has no item of its own
    unless something is to be known about it."""
    lines = []
    for field in protos.messages[message].field:
        if field.name == "dataset_sha256":  # set by the server
            continue
        path = prefix + field.name + ("[]" if is_list(field) and field.type == Field.TYPE_MESSAGE else "")
        target = named(field)
        if field.type == Field.TYPE_MESSAGE and target.endswith("Options"):
            kind = field.name
            lines.append(f"- `{path}`: options of [{kind}](analyses/{page_name(kind)})")
            continue
        if not (protos.info(field).help or protos.comments[message, field.name]):
            sys.exit(f"spec.proto: {path} has no comment")
        lines += item(path, field, protos, message)
        if field.type == Field.TYPE_MESSAGE and target in protos.messages:
            lines += fields_of(target, path + ".", protos)
    return lines


def experiment_fields(protos):
    """A section for each top-level group of fields."""
    groups = [("The experiment", "ExperimentSpec", ("name", "question", "base")),
              ("Task", "BaseSpec", ("task",)), ("Model", "BaseSpec", ("model", "model_from")),
              ("Training", "BaseSpec", ("training",)), ("Evaluation", "BaseSpec", ("evaluation",)),
              ("Program", "BaseSpec", ("program", "settings")),
              ("Imported results", "BaseSpec", ("imported",)),
              ("Axes, exclusions, seeds", "ExperimentSpec", ("axes", "exclude", "seeds")),
              ("Analyses", "ExperimentSpec", ("analyses",)), ("Report", "ExperimentSpec", ("report",)),
              ("Limits", "ExperimentSpec", ("limits",))]
    lines, seen = [], set()
    for title, owner, names in groups:
        body = []
        for field in protos.messages[owner].field:
            if field.name not in names:
                continue
            seen.add((owner, field.name))
            prefix = "base." if owner == "BaseSpec" else ""
            many = is_list(field) and field.type == Field.TYPE_MESSAGE
            path = prefix + field.name + ("[]" if many else "")
            body += item(path, field, protos, owner)
            if named(field) in protos.messages and field.type == Field.TYPE_MESSAGE and field.name != "base":
                body += fields_of(named(field), path + ".", protos)
        lines += section(title, body, 3)
    for owner in ("ExperimentSpec", "BaseSpec"):
        for field in protos.messages[owner].field:
            if (owner, field.name) not in seen:
                sys.exit(f"docs/field_table.py: {owner}.{field.name} is in no section")
    return "\n".join(lines).rstrip()


def switches(protos):
    """The fields of a model and its training that hold a value, each with a function of a sentence about its source."""
    found = []

    def add(message, prefix):
        for field in protos.messages[message].field:
            path, target = prefix + field.name, named(field)
            if field.type == Field.TYPE_MESSAGE:
                add(target, path + ".")
            else:
                found.append((path, functools.partial(switch, path, field, protos, message)))

    add("ModelSpec", "model.")
    add("TrainingSpec", "training.")
    return switch_table.sections(found)


def switch(path, field, protos, owner, source):
    """A list item as on the page of all fields, without the meaning of an enum's values."""
    lines = item(path, field, protos, owner)
    end = next((i for i, line in enumerate(lines) if line.startswith("  - ")), len(lines))
    return [line.replace("](#", "](experiment-file.md#") for line in lines[:end]] + wrapped(source, "  ")


def page_name(kind):
    return kind.replace("_", "-") + ".md"


def kinds(protos):
    return [(field.name, named(field)) for field in protos.messages["AnalysisKind"].field]


def kind_list(protos):
    lines = []
    for kind, message in kinds(protos):
        text = wrapped(f"[`{kind}`](analyses/{page_name(kind)}): {protos.comments[message]}", "  ")
        lines += ["- " + text[0][2:], *text[1:]]
    return "\n".join(lines)


def kind_options(message, protos):
    fields = protos.messages[message].field
    if not fields:
        return "It has no options."
    return "\n".join(line for field in fields for line in item(field.name, field, protos, message))


def check_numbers(kind, message, page, protos):
    """Each number that the kind declares is on its page, at least by the part of its name before a slash."""
    for info in protos.numbers(message):
        for name in info.name:
            if not re.search(rf"`{re.escape(name.split('/')[0])}[`/]", page):
                sys.exit(f"docs/reference/analyses/{page_name(kind)} doesn't name the number {name}")


def replaced(page, name, text, path):
    begin, end = f"<!-- {name}: generated by docs/field_table.py -->", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{path.relative_to(ROOT)} needs one line \"{begin}\" and one line \"{end}\"")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def wanted_pages(protos):
    """Each page as it should be, by its path."""
    wanted = {}

    def put(path, name, text):
        if not path.exists():
            sys.exit(f"{path.relative_to(ROOT)} is missing: every kind of AnalysisKind has a page")
        wanted[path] = replaced(path.read_text(encoding="utf-8"), name, text, path)

    put(REFERENCE / "experiment-file.md", "fields", experiment_fields(protos))
    put(REFERENCE / "switches.md", "switches", switches(protos))
    put(REFERENCE / "analyses.md", "kinds", kind_list(protos))
    for kind, message in kinds(protos):
        path = KINDS / page_name(kind)
        put(path, "options", kind_options(message, protos))
        check_numbers(kind, message, wanted[path], protos)
    known = {page_name(kind) for kind, _ in kinds(protos)} | {page_name(name) for name in OTHER_PAGES}
    for path in sorted(KINDS.glob("*.md")):
        if path.name not in known:
            sys.exit(f"{path.relative_to(ROOT)} belongs to no kind of AnalysisKind")
    return wanted


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    if len(arguments) != (2 if check else 1):
        sys.exit(__doc__)
    protoc = arguments[-1]
    for path, wanted in wanted_pages(Protos(protoc)).items():
        if not check:
            path.write_text(wanted, encoding="utf-8")
        elif wanted != path.read_text(encoding="utf-8"):
            sys.exit(f"{path.relative_to(ROOT)} differs from the annotations. Run: build/venv/bin/python "
                     f"docs/field_table.py {protoc}\n"
                     "If a default changed, change it back: see \"Defaults never change\" in ARCHITECTURE.md.")


if __name__ == "__main__":
    main()
