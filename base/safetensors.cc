#include "base/safetensors.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace ablate {
namespace {

// The key of a file's metadata, which therefore can't name a tensor.
constexpr absl::string_view kSafetensorsMetadataKey = "__metadata__";

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  // extents ≥ 0
  std::vector<int64_t> range;  // data_offsets: the first byte and the end, ≥ 0, unchecked
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in header order
  std::map<std::string, std::string> metadata;
};

constexpr size_t kMaxRank = 64;

// Bounds of what a header costs to read. A GPT-2 with 48 layers has 580 tensors and a header of
// 60 kB; the largest models of ablate have some thousand tensors.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr size_t kMaxTensors = 16'384;  // and as many metadata

struct TypeInfo {
  TensorType type;
  absl::string_view name;
  int64_t width;  // bytes of one element
};

constexpr TypeInfo kTypes[] = {{TensorType::kF32, "F32", 4},   {TensorType::kF64, "F64", 8},
                               {TensorType::kF16, "F16", 2},   {TensorType::kBF16, "BF16", 2},
                               {TensorType::kBool, "BOOL", 1}, {TensorType::kU8, "U8", 1},
                               {TensorType::kU16, "U16", 2},   {TensorType::kU32, "U32", 4},
                               {TensorType::kI64, "I64", 8},   {TensorType::kU64, "U64", 8}};

const TypeInfo& InfoOf(TensorType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const TypeInfo& info) { return info.type == type; });
}

// Computes a tensor's size in bytes. Returns false if an extent is negative or the size exceeds 63
// bits.
bool TensorBytes(TensorType type, const std::vector<int64_t>& shape, int64_t& bytes) {
  bytes = WidthOf(type);
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

// Receives the header's JSON event by event and accepts only what a header may contain. Nothing is
// built that the format doesn't allow, independent of the input's size or depth.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Call it after nlohmann's parser has returned. Returns the header, or the error.
  absl::StatusOr<SafetensorsHeader> Take() {
    if (!status_.ok()) return status_;
    return std::move(header_);
  }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(absl::StrCat("the number ", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected(absl::StrCat("the number ", Quoted(text)));
  }
  bool binary(binary_t&) override { return Unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kRange)
      return Unexpected(absl::StrCat("the number ", value));
    std::vector<int64_t>& list = place_ == Place::kShape ? entry_.shape : entry_.range;
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail(Where(), " has ", value, ", which is above 2^63-1");
    }
    const size_t limit = place_ == Place::kShape ? kMaxRank : 2;
    if (list.size() == limit) return Fail(Where(), " has more than ", limit, " numbers");
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::kEntry || key_ != "dtype") return Unexpected("a string");
    const auto* info = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeInfo& known) { return known.name == value; });
    if (info == std::end(kTypes)) {
      const auto append_name = [](std::string* names, const TypeInfo& known) {
        absl::StrAppend(names, known.name);
      };
      return Fail(Where(), " is ", Quoted(value), ", but must be one of ",
                  absl::StrJoin(kTypes, ", ", append_name));
    }
    entry_.type = info->type;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        place_ = key_ == kSafetensorsMetadataKey ? Place::kMetadata : Place::kEntry;
        entry_ = TensorEntry{key_, TensorType::kF32, {}, {}};
        fields_.clear();
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    key_ = name;
    switch (place_) {
      case Place::kTop:
        if (!top_keys_.insert(key_).second)
          return Fail("the key ", Quoted(key_), " is there twice");
        return key_ == kSafetensorsMetadataKey || Fits("tensors", header_.tensors.size());
      case Place::kMetadata:
        if (header_.metadata.count(key_) != 0) return Fail(Where(), " is there twice");
        return Fits("metadata", header_.metadata.size());
      default:
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
          return Fail("tensor ", Quoted(entry_.name), " has the field ", Quoted(key_),
                      "; allowed are dtype, shape, data_offsets");
        }
        if (!fields_.insert(key_).second) return Fail(Where(), " is there twice");
        return true;
    }
  }

  bool end_object() override {
    if (place_ == Place::kEntry) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (fields_.count(field) == 0)
          return Fail("tensor ", Quoted(entry_.name), " has no ", field);
      }
      header_.tensors.push_back(std::move(entry_));
    }
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kEntry || key_ == "dtype") return Unexpected("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kRange;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kRange && entry_.range.size() != 2) {
      return Fail(Where(), " has ", entry_.range.size(), " numbers, but must have 2");
    }
    place_ = Place::kEntry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    constexpr int kNumberOverflow = 406;  // nlohmann's code for a number out of range, which is
                                          // well-formed JSON
    if (error.id == kNumberOverflow) return Unexpected("a number that fits no type");
    return Fail("the header is not JSON at byte ", position);
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kShape, kRange };

  // Returns the name of what the current value belongs to.
  std::string Where() const {
    switch (place_) {
      case Place::kOutside:
        return "the header";
      case Place::kTop:
        return key_ == kSafetensorsMetadataKey ? key_ : absl::StrCat("tensor ", Quoted(key_));
      case Place::kMetadata:
        return absl::StrCat(kSafetensorsMetadataKey, " ", Quoted(key_));
      default:
        return absl::StrCat(key_, " of tensor ", Quoted(entry_.name));
    }
  }

  absl::string_view Allowed() const {
    switch (place_) {
      case Place::kOutside:
      case Place::kTop:
        return "an object";
      case Place::kMetadata:
        return "a string";
      case Place::kEntry:
        return key_ == "dtype" ? "a string" : "a list of non-negative integers";
      default:
        return "a list of non-negative integers";
    }
  }

  // Refuses one more entry than the limit.
  bool Fits(absl::string_view entries, size_t read) {
    if (read < kMaxTensors) return true;
    return Fail("the header has more ", entries, " than the ", kMaxTensors, " that it may have");
  }

  bool Unexpected(absl::string_view what) {
    return Fail(Where(), " holds ", what, ", but must be ", Allowed());
  }

  template <typename... Parts>
  bool Fail(const Parts&... parts) {
    status_ = absl::InvalidArgumentError(absl::StrCat("safetensors: ", parts...));
    return false;
  }

  Place place_ = Place::kOutside;
  std::string key_;  // the last one, on any level
  TensorEntry entry_;
  std::set<std::string> fields_;  // of entry_ so far
  absl::flat_hash_set<std::string> top_keys_;
  SafetensorsHeader header_;
  absl::Status status_;
};

// Rejects bytes that JSON allows nowhere, because nlohmann takes a NUL for the end of its input.
absl::Status CheckBytes(absl::string_view json) {
  const size_t ill_formed = text::FindNotUtf8(json);
  if (ill_formed != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: the header is not UTF-8 at byte ", ill_formed));
  }
  const size_t nul = json.find('\0');
  if (nul != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: the header has a NUL at byte ", nul));
  }
  if (json.empty() || json.front() != '{') {
    return absl::InvalidArgumentError("safetensors: the header does not begin with '{'");
  }
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT with the problem, in a message of bounded length.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json) {
  RETURN_IF_ERROR(CheckBytes(json));
  HeaderReader reader;
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return reader.Take();
}

constexpr size_t kLengthBytes = 8;  // the header's length, little-endian, at the start of the file
constexpr size_t kAlignment = 8;    // of the data after the header

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", parts...));
}

std::string Describe(TensorType type, const std::vector<int64_t>& shape) {
  return absl::StrCat(NameOf(type), " [", absl::StrJoin(shape, ","), "]");
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

// Splits off the header. Returns INVALID_ARGUMENT if its length doesn't fit the file or the format.
absl::StatusOr<absl::string_view> HeaderBytes(absl::string_view file) {
  if (file.size() < kLengthBytes) {
    return Invalid("the file has ", file.size(), " bytes, but must have at least ", kLengthBytes);
  }
  const uint64_t length = DecodeLength(file);
  if (length > kMaxHeaderBytes) {
    return Invalid("the header's length is ", length, ", but must be at most ", kMaxHeaderBytes);
  }
  if (length > file.size() - kLengthBytes) {
    return Invalid("the header's length is ", length, ", but only ", file.size() - kLengthBytes,
                   " bytes follow");
  }
  return file.substr(kLengthBytes, static_cast<size_t>(length));
}

// Checks that `entry` begins at byte `next` of the data, has the length of its shape, and fits in
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

// Returns INVALID_ARGUMENT if JSON can't represent `text`.
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
    members.push_back(absl::StrCat(quote(tensor.name), ":{\"dtype\":\"", NameOf(tensor.type),
                                   "\",\"shape\":[", absl::StrJoin(tensor.shape, ","),
                                   "],\"data_offsets\":[", offset, ",", end, "]}"));
    offset = end;
  }
  std::string header = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return header;
}

}  // namespace

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...'" : "'");
}

absl::string_view NameOf(TensorType type) { return InfoOf(type).name; }

int64_t WidthOf(TensorType type) { return InfoOf(type).width; }

const TensorView* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> WriteSafetensors(const std::vector<TensorView>& tensors,
                                             const std::map<std::string, std::string>& metadata) {
  if (std::max(tensors.size(), metadata.size()) > kMaxTensors) {
    return Invalid("the file would have ", tensors.size(), " tensors and ", metadata.size(),
                   " metadata, but must have at most ", kMaxTensors, " of each");
  }
  std::set<absl::string_view> names;
  size_t data = 0;
  for (const TensorView& tensor : tensors) {
    RETURN_IF_ERROR(CheckTensor(tensor, names));
    data += tensor.bytes.size();
  }
  for (const auto& [key, value] : metadata) {
    for (const std::string& text : {key, value}) {
      RETURN_IF_ERROR(CheckText("the metadata", text));
    }
  }
  const std::string header = HeaderOf(tensors, metadata);
  if (header.size() > kMaxHeaderBytes) {
    return Invalid("the header would have ", header.size(), " bytes, but must have at most ",
                   kMaxHeaderBytes);
  }
  std::string file;
  file.reserve(kLengthBytes + header.size() + data);
  file += EncodeLength(header.size());
  file += header;
  for (const TensorView& tensor : tensors) file.append(tensor.bytes.data(), tensor.bytes.size());
  return file;
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view file) {
  ASSIGN_OR_RETURN(const absl::string_view json, HeaderBytes(file));
  ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(json));
  const absl::string_view data = file.substr(kLengthBytes + json.size());
  // A header may list tensors in another order than their data.
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) { return a.range < b.range; });
  SafetensorsFile parsed;
  parsed.metadata = std::move(header.metadata);
  int64_t next = 0;
  for (TensorEntry& entry : header.tensors) {
    RETURN_IF_ERROR(CheckRange(entry, next, static_cast<int64_t>(data.size())));
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

}  // namespace ablate
