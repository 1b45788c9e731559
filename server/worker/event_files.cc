#include "server/worker/event_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/folder_walk.h"
#include "google/protobuf/unknown_field_set.h"
#include "nlohmann/json.hpp"

namespace ablate::worker {
namespace {

namespace fs = std::filesystem;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr uint64_t kMostBytes = 20'000'000;
constexpr char kInName[] = ".tfevents.";
// Numbers of fields, in Event, Summary, Summary.Value and TensorProto.
constexpr int kStep = 2, kSummary = 5, kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8;
constexpr int kType = 1, kContent = 4, kFloats = 5, kDoubles = 6;
constexpr uint64_t kFloatType = 1, kDoubleType = 2;
constexpr size_t kLengthBytes = 8, kChecksumBytes = 4;

// Values by step and key.
using Scalars = std::map<uint32_t, std::map<std::string, double>>;

// Returns the last field with this number and type; null if there is none.
const UnknownField* Find(const UnknownFieldSet& fields, int number, UnknownField::Type type) {
  const UnknownField* found = nullptr;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == type) found = &field;
  }
  return found;
}

template <typename Number>
std::optional<double> OneNumber(absl::string_view bytes) {
  Number number;
  if (bytes.size() != sizeof(number)) return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

// Returns the number of a tensor with one element.
std::optional<double> NumberOf(const std::string& tensor) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(tensor)) return std::nullopt;
  const auto bytes = [&fields](int number) {
    const UnknownField* const field = Find(fields, number, UnknownField::TYPE_LENGTH_DELIMITED);
    return field == nullptr ? absl::string_view() : absl::string_view(field->length_delimited());
  };
  const UnknownField* const type = Find(fields, kType, UnknownField::TYPE_VARINT);
  if (type != nullptr && type->varint() == kFloatType) {
    return OneNumber<float>(bytes(bytes(kFloats).empty() ? kContent : kFloats));
  }
  if (type != nullptr && type->varint() == kDoubleType) {
    return OneNumber<double>(bytes(bytes(kDoubles).empty() ? kContent : kDoubles));
  }
  return std::nullopt;
}

void AddValue(const std::string& text, const std::string& prefix,
              std::map<std::string, double>* values) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(text)) return;
  const UnknownField* const tag = Find(fields, kTag, UnknownField::TYPE_LENGTH_DELIMITED);
  if (tag == nullptr) return;
  std::optional<double> number;
  if (const auto* simple = Find(fields, kSimpleValue, UnknownField::TYPE_FIXED32)) {
    number = std::bit_cast<float>(simple->fixed32());
  } else if (const auto* tensor = Find(fields, kTensor, UnknownField::TYPE_LENGTH_DELIMITED)) {
    number = NumberOf(tensor->length_delimited());
  }
  if (number.has_value()) (*values)[absl::StrCat(prefix, tag->length_delimited())] = *number;
}

void AddEvent(const std::string& text, const std::string& prefix, Scalars* scalars) {
  UnknownFieldSet event, summary;
  if (!event.ParseFromString(text)) return;
  const UnknownField* const step = Find(event, kStep, UnknownField::TYPE_VARINT);
  const UnknownField* const field = Find(event, kSummary, UnknownField::TYPE_LENGTH_DELIMITED);
  const uint64_t at = step == nullptr ? 0 : step->varint();
  if (field == nullptr || at > std::numeric_limits<uint32_t>::max()) return;
  if (!summary.ParseFromString(field->length_delimited())) return;
  std::map<std::string, double> values;
  for (int i = 0; i < summary.field_count(); ++i) {
    const UnknownField& value = summary.field(i);
    if (value.number() != kValue || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    AddValue(value.length_delimited(), prefix, &values);
  }
  for (auto& [key, value] : values) (*scalars)[static_cast<uint32_t>(at)][key] = value;
}

void AddFile(absl::string_view bytes, const std::string& prefix, Scalars* scalars) {
  while (bytes.size() >= kLengthBytes + kChecksumBytes) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), kLengthBytes);
    bytes.remove_prefix(kLengthBytes + kChecksumBytes);
    if (length > bytes.size()) return;
    AddEvent(std::string(bytes.substr(0, length)), prefix, scalars);
    bytes.remove_prefix(std::min<size_t>(length + kChecksumBytes, bytes.size()));
  }
}

// Reads a file that was found in an open folder; empty if it is gone or a link by now.
std::string ReadFound(const FolderEntry& entry) {
  const process::FileDescriptor file(
      openat(entry.folder, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string bytes(static_cast<size_t>(entry.info.st_size), '\0');
  size_t done = 0;
  while (file.get() >= 0 && done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

// Returns the contents of event files by their paths, which end with the time of their making.
std::map<fs::path, std::string> FindFiles(const std::string& folder) {
  std::map<fs::path, std::string> files;
  uint64_t bytes = 0;
  // A program may have put a link in the folder's place: nothing behind links is read.
  WalkFolder(AT_FDCWD, folder, [&](const FolderEntry& entry) {
    const bool is_file = S_ISREG(entry.info.st_mode) && absl::StrContains(entry.name, kInName);
    if (!is_file) return absl::OkStatus();
    bytes += static_cast<uint64_t>(entry.info.st_size);
    if (bytes > kMostBytes) return absl::ResourceExhaustedError("too many event files");
    files[entry.path] = ReadFound(entry);
    return absl::OkStatus();
  }).IgnoreError();
  return files;
}

}  // namespace

std::string ReadEventFiles(const std::string& folder) {
  const std::map<fs::path, std::string> files = FindFiles(folder);
  std::set<fs::path> folders;
  for (const auto& [file, bytes] : files) folders.insert(file.parent_path());
  Scalars scalars;
  for (const auto& [file, bytes] : files) {
    const fs::path below = file.parent_path().lexically_relative(folder);
    const bool named = folders.size() > 1 && below != ".";
    AddFile(bytes, named ? absl::StrCat(below.string(), "/") : "", &scalars);
  }
  std::string lines;
  for (const auto& [step, values] : scalars) {
    for (const auto& [key, value] : values) {
      nlohmann::json line = {{"step", step}, {key, value}};
      if (!std::isfinite(value)) {
        line[key] = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      }
      absl::StrAppend(&lines, line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                      "\n");
    }
  }
  return lines;
}

}  // namespace ablate::worker
