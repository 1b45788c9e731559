// Writes safetensors files and reads them without trusting a byte of them.
#include "server/engine/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/data/safetensors_header.h"
#include "text/utf8.h"

namespace ablate::engine {
namespace {

constexpr size_t kLengthBytes = 8;  // the header's length, little-endian, opens the file
constexpr size_t kAlignment = 8;    // of the data behind the header
constexpr uint64_t kLargestHeader = 100'000'000;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", parts...));
}

std::string Describe(TensorType type, const std::vector<int64_t>& shape) {
  return absl::StrCat(TensorTypeName(type), " [", absl::StrJoin(shape, ","), "]");
}

std::string EncodeLength(uint64_t length) {
  std::string bytes(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return bytes;
}

uint64_t DecodeLength(absl::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

// Splits off the header; INVALID_ARGUMENT if its length does not fit the file or the format.
absl::StatusOr<absl::string_view> HeaderBytes(absl::string_view file) {
  if (file.size() < kLengthBytes) {
    return Invalid("the file has ", file.size(), " bytes, but must have at least ", kLengthBytes);
  }
  const uint64_t length = DecodeLength(file);
  if (length > kLargestHeader) {
    return Invalid("the header's length is ", length, ", but must be at most ", kLargestHeader);
  }
  if (length > file.size() - kLengthBytes) {
    return Invalid("the header's length is ", length, ", but only ", file.size() - kLengthBytes,
                   " bytes follow");
  }
  return file.substr(kLengthBytes, static_cast<size_t>(length));
}

// Whether `entry` begins at byte `next` of the data, as long as its shape says and within
// `available` bytes.
absl::Status CheckRange(const TensorEntry& entry, int64_t next, int64_t available) {
  const int64_t begin = entry.range[0];
  const int64_t end = entry.range[1];
  const std::string name = Quoted(entry.name);
  int64_t bytes = 0;
  if (!TensorBytes(entry.type, entry.shape, bytes)) {
    return Invalid("tensor ", name, " is ", Describe(entry.type, entry.shape),
                   ", which is more than 2^63-1 bytes");
  }
  if (end < begin) {
    return Invalid("data_offsets of tensor ", name, " are [", begin, ",", end,
                   "], which end before they begin");
  }
  if (end - begin != bytes) {
    return Invalid("data_offsets of tensor ", name, " span ", end - begin, " bytes, but ",
                   Describe(entry.type, entry.shape), " has ", bytes);
  }
  if (begin != next) {
    return Invalid("tensor ", name, " begins at byte ", begin, " of the data, which ",
                   begin > next ? "leaves a hole" : "overlaps another", ": expected ", next);
  }
  if (end > available) {
    return Invalid("tensor ", name, " ends at byte ", end, " of the data, which has ", available);
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT if JSON cannot carry `text`.
absl::Status CheckText(absl::string_view what, absl::string_view text) {
  if (text::FindNotUtf8(text) == absl::string_view::npos) return absl::OkStatus();
  return Invalid(what, " ", Quoted(text), " is not UTF-8");
}

absl::Status CheckTensor(const TensorView& tensor, std::set<absl::string_view>& names) {
  const std::string name = Quoted(tensor.name);
  if (tensor.name == kSafetensorsMetadataKey) return Invalid("no tensor may be called ", name);
  if (!names.insert(tensor.name).second) return Invalid("tensor ", name, " is there twice");
  int64_t bytes = 0;
  if (!TensorBytes(tensor.type, tensor.shape, bytes) ||
      static_cast<uint64_t>(bytes) != tensor.bytes.size()) {
    return Invalid("tensor ", name, " is ", Describe(tensor.type, tensor.shape), ", but has ",
                   tensor.bytes.size(), " bytes");
  }
  return CheckText("the tensor name", tensor.name);
}

std::string HeaderOf(const std::vector<TensorView>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  const auto quote = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::vector<std::string> members;
  if (!metadata.empty()) {
    members.push_back(
        absl::StrCat("\"", kSafetensorsMetadataKey, "\":", nlohmann::json(metadata).dump()));
  }
  size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const size_t end = offset + tensor.bytes.size();
    members.push_back(absl::StrCat(
        quote(tensor.name), ":{\"dtype\":\"", TensorTypeName(tensor.type), "\",\"shape\":[",
        absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", offset, ",", end, "]}"));
    offset = end;
  }
  std::string header = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return header;
}

}  // namespace

const TensorView* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> WriteSafetensors(const std::vector<TensorView>& tensors,
                                             const std::map<std::string, std::string>& metadata) {
  std::set<absl::string_view> names;
  size_t data = 0;
  for (const TensorView& tensor : tensors) {
    const absl::Status status = CheckTensor(tensor, names);
    if (!status.ok()) return status;
    data += tensor.bytes.size();
  }
  for (const auto& [key, value] : metadata) {
    for (const std::string& text : {key, value}) {
      const absl::Status status = CheckText("the metadata", text);
      if (!status.ok()) return status;
    }
  }
  const std::string header = HeaderOf(tensors, metadata);
  if (header.size() > kLargestHeader) {
    return Invalid("the header would have ", header.size(), " bytes, but must have at most ",
                   kLargestHeader);
  }
  std::string file;
  file.reserve(kLengthBytes + header.size() + data);
  file += EncodeLength(header.size());
  file += header;
  for (const TensorView& tensor : tensors) file.append(tensor.bytes.data(), tensor.bytes.size());
  return file;
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view file) {
  const absl::StatusOr<absl::string_view> json = HeaderBytes(file);
  if (!json.ok()) return json.status();
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(*json);
  if (!header.ok()) return header.status();
  const absl::string_view data = file.substr(kLengthBytes + json->size());
  // A header may list tensors in another order than their data.
  std::stable_sort(header->tensors.begin(), header->tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) { return a.range < b.range; });
  SafetensorsFile parsed;
  parsed.metadata = std::move(header->metadata);
  int64_t next = 0;
  for (TensorEntry& entry : header->tensors) {
    const absl::Status status = CheckRange(entry, next, static_cast<int64_t>(data.size()));
    if (!status.ok()) return status;
    next = entry.range[1];
    const absl::string_view bytes = data.substr(static_cast<size_t>(entry.range[0]),
                                                static_cast<size_t>(next - entry.range[0]));
    parsed.tensors.push_back({std::move(entry.name), entry.type, std::move(entry.shape), bytes});
  }
  if (static_cast<size_t>(next) != data.size()) {
    return Invalid(data.size() - static_cast<size_t>(next), " bytes follow the last tensor's data");
  }
  return parsed;
}

}  // namespace ablate::engine
