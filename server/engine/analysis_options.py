"""Writes the options of analyses as structs and enums of the engine, from analysis_options.proto.

The header declares, in namespace ablate::engine: each enum with its table of names (names.h); each kind's
struct, whose members have the declared defaults, and its ForEachField (config.h); AnalysisOptions, the
variant of the structs in the order of AnalysisKind. It reads the text, so that an engine built alone needs
no protoc. An unknown type ends it with a KeyError.

Usage: analysis_options.py PROTO HEADER
HEADER is left alone if it is current.
"""
import pathlib
import re
import sys

FIELD = re.compile(r"^  (optional|repeated) ([\w.]+) (\w+) = \d+(.*?);$", re.MULTILINE | re.DOTALL)
# The C++ type of a field, and the value of one without a default.
TYPES = {"bool": ("bool", "false"), "double": ("double", "0"), "uint32": ("uint32_t", "0"),
         "string": ("std::string", "{}")}

HEADER = """// Generated from analysis_options.proto by server/engine/analysis_options.py.
#ifndef ABLATE_SERVER_ENGINE_ANALYSIS_OPTIONS_H_
#define ABLATE_SERVER_ENGINE_ANALYSIS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/names.h"

namespace ablate::engine {{

{}
using AnalysisOptions = std::variant<{}>;

}}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYSIS_OPTIONS_H_
"""


def enumerator(name):
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def enum_text(name, body):
    values = [value for value, number in re.findall(r"(\w+) = (\d+);", body) if number != "0"]
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


def header_of(proto):
    proto = re.sub(r"//.*", "", proto)
    messages = dict(re.findall(r"^message (\w+) \{\n(.*?)^\}", proto, re.MULTILINE | re.DOTALL))
    kinds = re.findall(r"(\w+) \w+ = \d+;", messages["AnalysisKind"])
    enums = [name for name, body in messages.items() if "enum Value" in body]
    text = "".join(enum_text(name, messages[name]) for name in enums)
    text += "".join(struct_text(name, messages[name]) for name in kinds)
    return HEADER.format(text, ", ".join(kinds))


def main(proto, header):
    text = header_of(pathlib.Path(proto).read_text(encoding="utf-8"))
    header = pathlib.Path(header)
    if header.exists() and header.read_text(encoding="utf-8") == text:
        return
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(text, encoding="utf-8")


main(*sys.argv[1:])
