#include "base/tokenizer/json_reader.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::tokenizer {
namespace {

using nlohmann::json;

constexpr size_t kMaxValues = 100'000;

// Receives the values of the file from the parser, and stops it at the first bad one.
class Reader : public nlohmann::json_sax<json> {
 public:
  explicit Reader(const FileText& file) : file_(file) {}

  absl::StatusOr<JsonParts> Take() && {
    if (!error_.ok()) return error_;
    parts_.vocabulary = std::move(entries_).Take();
    return std::move(parts_);
  }

  bool start_object(size_t) override {
    if (place_ != Place::kRest) return Scalar(json::object());
    if (IsModelField("vocab")) {
      place_ = Place::kVocabulary;
      return true;
    }
    return Open(json::object());
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override {
    if (place_ == Place::kMerges) {
      place_ = Place::kPair;
      pair_.clear();
      return true;
    }
    if (place_ != Place::kRest) return Scalar(json::array());
    if (IsModelField("merges")) {
      place_ = Place::kMerges;
      parts_.has_merges = true;
      return true;
    }
    return Open(json::array());
  }
  bool end_array() override {
    if (place_ != Place::kPair) return Close();
    place_ = Place::kMerges;
    if (pair_.size() != 2) return NotAMerge();
    return AddMerge(absl::StrCat(pair_[0], " ", pair_[1]));
  }
  bool key(string_t& name) override {
    name_ = std::move(name);
    if (place_ != Place::kVocabulary) return true;
    return Check("model.vocab", VocabularyBuilder::CheckName(name_));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kVocabulary) return Check("model.vocab", entries_.Add(name_, value));
    return Scalar(value);
  }
  bool number_integer(number_integer_t value) override { return Scalar(value); }
  bool number_float(number_float_t value, const string_t&) override { return Scalar(value); }
  bool null() override { return Scalar(nullptr); }
  bool boolean(bool value) override { return Scalar(value); }
  bool binary(binary_t&) override { return Scalar(nullptr); }
  bool string(string_t& text) override {
    if (place_ == Place::kMerges) return AddMerge(text);
    if (place_ != Place::kPair) return Scalar(std::move(text));
    if (pair_.size() == 2) return NotAMerge();
    pair_.push_back(std::move(text));
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    const absl::string_view read = absl::string_view(file_.text).substr(0, position);
    const auto lines = std::count(read.begin(), read.end(), '\n');
    error_ = absl::InvalidArgumentError(absl::StrCat(
        file_.name, ":", lines + 1, ": not JSON at byte ", position, "; expected JSON in UTF-8"));
    return false;
  }

 private:
  enum class Place { kRest, kVocabulary, kMerges, kPair };

  bool Check(absl::string_view field, const absl::Status& status) {
    if (!status.ok()) {
      error_ =
          absl::InvalidArgumentError(absl::StrCat(file_.name, ": ", field, ": ", status.message()));
    }
    return status.ok();
  }
  bool Fail(absl::string_view field, absl::string_view problem) {
    return Check(field, absl::InvalidArgumentError(problem));
  }

  bool IsModelField(absl::string_view name) const {
    return open_.size() == 2 && model_ == open_.back() && name_ == name;
  }

  bool AddMerge(absl::string_view merge) {
    if (merge.empty() || merge.find_first_of("\r\n") != absl::string_view::npos) {
      return NotAMerge();
    }
    absl::StrAppend(&parts_.merges, merge, "\n");
    ++merges_;
    return true;
  }
  bool NotAMerge() {
    return Fail(absl::StrCat("model.merges:", merges_ + 1),
                "not a merge; expected \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]");
  }

  // Adds a value to the array or object that is open, and returns its place.
  json* Insert(json value) {
    if (open_.empty()) {
      parts_.rest = std::move(value);
      return &parts_.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[name_] = std::move(value));
  }
  bool IsFull() { return ++values_ > kMaxValues; }
  bool TooMany() {
    return Fail("the file", absl::StrCat("more than ", kMaxValues,
                                         " values besides the vocabulary and the merges"));
  }
  bool Open(json value) {
    if (IsFull()) return TooMany();
    json* const inserted = Insert(std::move(value));
    open_.push_back(inserted);
    if (open_.size() == 2 && open_[0]->is_object() && name_ == "model") model_ = inserted;
    return true;
  }
  bool Close() {
    if (place_ != Place::kRest) {
      place_ = Place::kRest;
    } else {
      open_.pop_back();
    }
    return true;
  }
  bool Scalar(json value) {
    if (place_ == Place::kMerges || place_ == Place::kPair) return NotAMerge();
    if (place_ == Place::kVocabulary) {
      return Check("model.vocab", VocabularyBuilder::WrongId(name_, Shown(value)));
    }
    if (IsFull()) return TooMany();
    Insert(std::move(value));
    return true;
  }

  const FileText& file_;
  Place place_ = Place::kRest;
  std::string name_;         // the last key
  std::vector<json*> open_;  // arrays and objects of `rest` that haven't ended
  const json* model_ = nullptr;
  std::vector<std::string> pair_;
  size_t merges_ = 0, values_ = 0;
  VocabularyBuilder entries_;
  JsonParts parts_;
  absl::Status error_;
};

}  // namespace

std::string Shown(const json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return value.dump();
}

absl::StatusOr<JsonParts> ReadJsonParts(const FileText& file) {
  Reader reader(file);
  json::sax_parse(file.text, &reader);
  return std::move(reader).Take();
}

}  // namespace ablate::tokenizer
