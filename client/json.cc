// Messages as JSON.
#include "client/json.h"

#include <google/protobuf/util/json_util.h>

namespace ablate::client {
namespace {

std::string Print(const google::protobuf::Message& message, bool several_lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = several_lines;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for messages that no server sends: a Value or Any without content.
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return "null\n";
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) { return Print(message, true); }

std::string ToJsonLine(const google::protobuf::Message& message) { return Print(message, false); }

}  // namespace ablate::client
