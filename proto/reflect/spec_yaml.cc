#include "proto/reflect/spec_yaml.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "proto/reflect/read.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Value;

constexpr size_t kMaxLine = 100;
constexpr uint64_t kMaxExact = uint64_t{1} << 53;

// A message or map as names and values in flow style; keeps the values' own messages, to break long
// lines.
struct Entry;
struct Node {
  std::string scalar;      // if a leaf
  std::vector<Entry> map;  // in order
  std::vector<Node> list;
  enum class Kind { kScalar, kMap, kList } kind = Kind::kScalar;
};
struct Entry {
  std::string name;
  Node value;
};

Node Scalar(std::string text) { return {std::move(text), {}, {}, Node::Kind::kScalar}; }

// Returns true for text that isn't another kind of scalar and needs no quotes, also inside
// brackets.
bool IsPlain(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text[0]))) return false;
  const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_./-+", c);
  });
  // YAML 1.1 has more words for booleans; numbers begin with a digit or a point.
  for (const char* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  return simple;
}

// Escapes characters that a page would not show unchanged, so that readers can copy the spec.
std::string Escaped(absl::string_view character) {
  const auto code = static_cast<uint32_t>(text::TakeCharacter(&character));
  if (code <= 0xFF) return absl::StrFormat("\\x%02x", code);
  return code <= 0xFFFF ? absl::StrFormat("\\u%04X", code) : absl::StrFormat("\\U%08X", code);
}

std::string InQuotes(const std::string& text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = absl::string_view(text).substr(at);
    const size_t length = std::max<size_t>(1, text::CharacterLength(rest));
    const absl::string_view character = rest.substr(0, length);
    if (character == "\"" || character == "\\") {
      absl::StrAppend(&quoted, "\\", character);
    } else if (text::CleanText(character) != character) {
      quoted.append(Escaped(character));
    } else {
      absl::StrAppend(&quoted, character);
    }
    at += length;
  }
  return quoted + '"';
}

std::string Text(const std::string& text) { return IsPlain(text) ? text : InQuotes(text); }

Node OfValue(const Value& value) {
  Node node;
  switch (value.kind_case()) {
    case Value::kNumberValue:
      return Scalar(text::ShortestDecimal(value.number_value()));
    case Value::kStringValue:
      return Scalar(Text(value.string_value()));
    case Value::kBoolValue:
      return Scalar(value.bool_value() ? "true" : "false");
    case Value::kListValue:
      node.kind = Node::Kind::kList;
      for (const Value& one : value.list_value().values()) node.list.push_back(OfValue(one));
      return node;
    case Value::kStructValue: {
      node.kind = Node::Kind::kMap;
      const auto& fields = value.struct_value().fields();
      const std::map<std::string, Value> sorted(fields.begin(), fields.end());
      for (const auto& [name, one] : sorted) node.map.push_back({Text(name), OfValue(one)});
      return node;
    }
    default:
      return Scalar("null");
  }
}

Node OfMessage(const Message& message);

Node OfSubmessage(const Message& message) {
  if (const auto* value = dynamic_cast<const Value*>(&message)) return OfValue(*value);
  if (const auto* free = dynamic_cast<const google::protobuf::Struct*>(&message)) {
    Value value;
    *value.mutable_struct_value() = *free;
    return OfValue(value);
  }
  if (dynamic_cast<const google::protobuf::Duration*>(&message) != nullptr) {
    std::string json;
    const bool written = google::protobuf::util::MessageToJsonString(message, &json).ok();
    return Scalar(written ? json : "0s");  // "7200s": a text
  }
  return OfMessage(message);
}

Node Of(const FieldValue& value) {
  if (const auto* message = std::get_if<const Message*>(&value)) return OfSubmessage(**message);
  if (const auto* text = std::get_if<std::string>(&value)) return Scalar(Text(*text));
  // A plain number is read as a double, which has only 53 bits.
  const auto* whole = std::get_if<uint64_t>(&value);
  const std::string text = TextOf(value);
  return Scalar(whole != nullptr && *whole > kMaxExact ? InQuotes(text) : text);
}

// A map's entries are messages of a key and a value.
Node OfMap(const Message& message, const FieldDescriptor* field) {
  std::map<std::string, Node> sorted;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
    const auto* type = field->message_type();
    const auto key = std::get<std::string>(Read(entry, type->map_key()));
    sorted[Text(key)] = Of(Read(entry, type->map_value()));
  }
  Node node;
  node.kind = Node::Kind::kMap;
  for (auto& [name, value] : sorted) node.map.push_back({name, std::move(value)});
  return node;
}

Node OfMessage(const Message& message) {
  Node node;
  node.kind = Node::Kind::kMap;
  for (const FieldDescriptor* field : SetFields(message)) {
    if (field->is_map()) {
      node.map.push_back({field->name(), OfMap(message, field)});
    } else if (field->is_repeated()) {
      Node list;
      list.kind = Node::Kind::kList;
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        list.list.push_back(Of(Read(message, field, i)));
      }
      node.map.push_back({field->name(), std::move(list)});
    } else {
      node.map.push_back({field->name(), Of(Read(message, field))});
    }
  }
  return node;
}

std::string Flow(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return node.scalar;
  std::vector<std::string> parts;
  for (const Node& one : node.list) parts.push_back(Flow(one));
  for (const auto& [name, value] : node.map) parts.push_back(absl::StrCat(name, ": ", Flow(value)));
  const std::string inside = absl::StrJoin(parts, ", ");
  return node.kind == Node::Kind::kList ? absl::StrCat("[", inside, "]")
                                        : absl::StrCat("{", inside, "}");
}

void Block(const Node& node, const std::string& indent, std::string* out);

// Writes a node; `front` begins its line, such as "  name:" or "  -".
void Line(const std::string& front, const Node& node, const std::string& indent, std::string* out) {
  const std::string flow = Flow(node);
  // Lists of plain values stay on one line, however long: hundreds of seeds would fill pages.
  const bool has_parts =
      !node.map.empty() || std::any_of(node.list.begin(), node.list.end(), [](const Node& one) {
        return one.kind != Node::Kind::kScalar;
      });
  if (!has_parts || front.size() + 1 + flow.size() <= kMaxLine) {
    absl::StrAppend(out, front, " ", flow, "\n");
    return;
  }
  absl::StrAppend(out, front, "\n");
  Block(node, absl::StrCat(indent, "  "), out);
}

void Block(const Node& node, const std::string& indent, std::string* out) {
  for (const auto& [name, value] : node.map) {
    Line(absl::StrCat(indent, name, ":"), value, indent, out);
  }
  for (const Node& one : node.list) Line(absl::StrCat(indent, "-"), one, indent, out);
}

}  // namespace

std::string SpecYaml(const v1::ExperimentSpec& spec) {
  std::string yaml;
  Block(OfMessage(spec), "", &yaml);
  return yaml;
}

std::string FlowYaml(const Message& part) { return Flow(OfMessage(part)); }

}  // namespace ablate::reflect
