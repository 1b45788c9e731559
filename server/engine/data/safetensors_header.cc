// Parses a safetensors header as the format allows it and nothing else.
#include "server/engine/data/safetensors_header.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "text/utf8.h"

namespace ablate::engine {
namespace {

constexpr size_t kLargestRank = 64;

struct TypeInfo {
  TensorType type;
  absl::string_view name;
  int64_t bytes;  // of one element
};

constexpr TypeInfo kTypes[] = {{TensorType::kF32, "F32", 4},
                               {TensorType::kF64, "F64", 8},
                               {TensorType::kU8, "U8", 1},
                               {TensorType::kI64, "I64", 8},
                               {TensorType::kU64, "U64", 8}};

const TypeInfo& InfoOf(TensorType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const TypeInfo& info) { return info.type == type; });
}

// Receives the header's JSON event by event and accepts only what a header may hold, so that
// nothing is built, however large or deep, that the format does not allow.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Once nlohmann's parser has returned: the header, or what was wrong.
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
    const size_t limit = place_ == Place::kShape ? kLargestRank : 2;
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
      return Fail(Where(), " is ", Quoted(value), ", but must be one of F32, F64, U8, I64, U64");
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
        return true;
      case Place::kMetadata:
        if (header_.metadata.count(key_) != 0) return Fail(Where(), " is there twice");
        return true;
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
    constexpr int kNumberOverflow = 406;  // well-formed JSON, reported this way all the same
    if (error.id == kNumberOverflow) return Unexpected("a number that fits no type");
    return Fail("the header is not JSON at byte ", position);
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kShape, kRange };

  // What the current value belongs to.
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
  std::set<std::string> top_keys_;
  SafetensorsHeader header_;
  absl::Status status_;
};

// Bytes that JSON allows nowhere are refused first: nlohmann takes a NUL for the end of its input.
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

}  // namespace

absl::string_view TensorTypeName(TensorType type) { return InfoOf(type).name; }

bool TensorBytes(TensorType type, const std::vector<int64_t>& shape, int64_t& bytes) {
  bytes = InfoOf(type).bytes;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 64;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...'" : "'");
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json) {
  const absl::Status bytes = CheckBytes(json);
  if (!bytes.ok()) return bytes;
  HeaderReader reader;
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return reader.Take();
}

}  // namespace ablate::engine
