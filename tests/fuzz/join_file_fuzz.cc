// Fuzzes join files with libFuzzer: as text, and as fields without the JSON around them.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/join/join_file.h"

namespace ablate::join {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Checks that a join file that was read is valid, and equal after a round trip through JSON.
void CheckRead(const v1::JoinFile& file) {
  Require(CheckJoinFile(file).ok());
  std::string json;
  Require(google::protobuf::util::MessageToJsonString(file, &json).ok());
  const auto again = ParseJoinFile(json);
  Require(again.ok());
  Require(google::protobuf::util::MessageDifferencer::Equals(*again, file));
}

// Reads fields with zero bytes between them.
v1::JoinFile FromFields(absl::string_view text) {
  const std::vector<std::string> fields = absl::StrSplit(text, absl::MaxSplits('\0', 4));
  v1::JoinFile file;
  file.mutable_expire_time()->set_seconds(static_cast<int64_t>(text.size()));
  void (*const set[])(v1::JoinFile&, const std::string&) = {
      [](v1::JoinFile& f, const std::string& value) { f.set_address(value); },
      [](v1::JoinFile& f, const std::string& value) { f.set_server_name(value); },
      [](v1::JoinFile& f, const std::string& value) { f.set_certificate_authority(value); },
      [](v1::JoinFile& f, const std::string& value) { f.set_user(value); },
      [](v1::JoinFile& f, const std::string& value) { f.set_token(value); }};
  for (size_t i = 0; i < fields.size(); ++i) set[i](file, fields[i]);
  return file;
}

void Try(absl::string_view text) {
  if (const auto read = ParseJoinFile(text); read.ok()) CheckRead(*read);
  const v1::JoinFile file = FromFields(text);
  if (CheckJoinFile(file).ok()) CheckRead(file);
}

}  // namespace
}  // namespace ablate::join

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::join::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
