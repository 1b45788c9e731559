"""Writes the enums of runs and the options of analyses for the engine, from spec.proto and analysis_options.proto.

- spec_enums.h: the enums of all fields below BaseSpec.
- analysis_options.h: the enums of options; each kind's struct, whose members have the declared defaults, and
  its ForEachField (config.h); AnalysisOptions, the variant of the structs in the order of AnalysisKind.

Each enum has its table of names (names.h). The protos describe fields and values. They are read as text, so
that an engine built alone needs no protoc; an unknown type ends the program with a KeyError.

Usage: from_protos.py PROTO_FOLDER HEADER_FOLDER
A header that is current is left alone.
"""
import pathlib
import re
import sys

FIELD = re.compile(r"^  (optional|repeated) ([\w.]+) (\w+) = \d+(.*?);$", re.MULTILINE | re.DOTALL)
# The C++ type of a field, and the value of one without a default.
TYPES = {"bool": ("bool", "false"), "double": ("double", "0"), "uint32": ("uint32_t", "0"),
         "string": ("std::string", "{}")}
# Names that differ from the spec's.
ENUMS = {"Optimizer": "OptimizerKind", "Schedule": "ScheduleKind", "Trainer": "TrainerKind"}
ENUMERATORS = {"adamw": "kAdamW"}
# A value that the server resolves, and one that only tests of the engine use.
RESOLVED = "auto"
TESTED = {"Precision": ["float64"]}

HEADER = """// Generated from {proto} by server/engine/from_protos.py.
#ifndef ABLATE_SERVER_ENGINE_{guard}_H_
#define ABLATE_SERVER_ENGINE_{guard}_H_

{includes}
namespace ablate::engine {{

{text}}}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_{guard}_H_
"""
OPTIONS_INCLUDES = """#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/names.h"
"""


def messages_of(proto):
    text = re.sub(r"//.*", "", proto.read_text(encoding="utf-8"))
    return dict(re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))


def enums_below(message, messages):
    for kind in re.findall(r"^ +(?:optional |repeated )?([\w.]+) \w+ = \d+", messages[message], re.MULTILINE):
        if kind.endswith(".Value"):
            yield kind.removesuffix(".Value")
        elif kind in messages:
            yield from enums_below(kind, messages)


def enumerator(value):
    return ENUMERATORS.get(value) or "k" + "".join(part.capitalize() for part in value.split("_"))


def enum_text(message, body):
    name = ENUMS.get(message, message)
    values = [value for value, number in re.findall(r"(\w+) = (\d+);", body) if number != "0" and value != RESOLVED]
    values += TESTED.get(message, [])
    rows = ", ".join(f'{{{name}::{enumerator(value)}, "{value}"}}' for value in values)
    return (f"enum class {name} {{ {', '.join(map(enumerator, values))} }};\n"
            f"template <>\ninline constexpr Named<{name}> kNames<{name}>[] = {{{rows}}};\n\n")


def member_text(label, kind, name, options):
    enum = kind.removesuffix(".Value") if kind.endswith(".Value") else None
    cpp, initial = (enum, "{}") if enum else TYPES[kind]
    default = re.search(r'\bdefault: "([^"]*)"', options)
    if label == "repeated":
        cpp, initial = f"std::vector<{cpp}>", "{}"
    elif default is not None:
        value = default[1]
        initial = f"{enum}::{enumerator(value)}" if enum else f'"{value}"' if kind == "string" else value
    return f"  {cpp} {name} = {initial};\n"


def struct_text(name, body):
    fields = FIELD.findall(body)
    visits = "".join(f'  visit("{field}", options.{field});\n' for _, _, field, _ in fields)
    options, visit = ("options", "visit") if fields else ("", "")
    return (f"struct {name} {{\n{''.join(member_text(*field) for field in fields)}}};\n"
            f"template <typename Visit>\nvoid ForEachField(IsConfig<{name}> auto& {options}, "
            f"Visit&& {visit}) {{\n{visits}}}\n\n")


def spec_text(messages):
    enums = dict.fromkeys(enums_below("BaseSpec", messages))
    return "".join(enum_text(name, messages[name]) for name in enums)


def options_text(messages):
    kinds = re.findall(r"(\w+) \w+ = \d+;", messages["AnalysisKind"])
    text = "".join(enum_text(name, body) for name, body in messages.items() if "enum Value" in body)
    text += "".join(struct_text(name, messages[name]) for name in kinds)
    return f"{text}using AnalysisOptions = std::variant<{', '.join(kinds)}>;\n\n"


def write(folder, proto, name, includes, text):
    header = folder / "server" / "engine" / f"{name}.h"
    text = HEADER.format(proto=proto.name, guard=name.upper(), includes=includes, text=text)
    if header.exists() and header.read_text(encoding="utf-8") == text:
        return
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(text, encoding="utf-8")


def main(protos, headers):
    spec = pathlib.Path(protos) / "spec.proto"
    options = pathlib.Path(protos) / "analysis_options.proto"
    headers = pathlib.Path(headers)
    write(headers, spec, "spec_enums", '#include "server/engine/names.h"\n', spec_text(messages_of(spec)))
    write(headers, options, "analysis_options", OPTIONS_INCLUDES, options_text(messages_of(options)))


main(*sys.argv[1:])
