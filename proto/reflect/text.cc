#include "proto/reflect/text.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/decimal.h"
#include "base/utf8.h"

namespace ablate::reflect {
namespace {

constexpr absl::string_view kEllipsis = "…";

// Collects pieces until they no longer fit, then ends with an ellipsis.
class Shortened {
 public:
  explicit Shortened(size_t limit) : limit_(std::max(limit, kEllipsis.size())) {}

  bool full() const { return full_; }

  void Add(absl::string_view piece) {
    if (full_) return;
    if (text_.size() + piece.size() > limit_) {
      text_.resize(cut_);
      absl::StrAppend(&text_, kEllipsis);
      full_ = true;
      return;
    }
    absl::StrAppend(&text_, piece);
    if (text_.size() + kEllipsis.size() <= limit_) cut_ = text_.size();
  }

  // Character by character, so that none is split.
  void AddEscaped(absl::string_view text) {
    while (!text.empty() && !full_) {
      const size_t length = text::CharacterLength(text);
      const absl::string_view character = text.substr(0, std::max<size_t>(length, 1));
      if (length == 0 || text::HasControlCharacter(character)) {
        std::string escaped;
        for (const unsigned char byte : character) absl::StrAppendFormat(&escaped, "\\x%02x", byte);
        Add(escaped);
      } else {
        Add(character);
      }
      text.remove_prefix(character.size());
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  size_t limit_;
  size_t cut_ = 0;  // position of the ellipsis, if needed
  bool full_ = false;
  std::string text_;
};

void AddValue(const google::protobuf::Value& value, int depth, Shortened* out);

void AddList(const google::protobuf::ListValue& list, int depth, Shortened* out) {
  out->Add("[");
  for (int i = 0; i < list.values_size() && !out->full(); ++i) {
    if (i > 0) out->Add(", ");
    AddValue(list.values(i), depth + 1, out);
  }
  out->Add("]");
}

void AddStruct(const google::protobuf::Struct& fields, int depth, Shortened* out) {
  std::map<absl::string_view, const google::protobuf::Value*> sorted;
  for (const auto& [key, value] : fields.fields()) sorted.emplace(key, &value);
  out->Add("{");
  bool first = true;
  for (const auto& [key, value] : sorted) {
    if (out->full()) break;
    if (!first) out->Add(", ");
    first = false;
    out->AddEscaped(key);
    out->Add(": ");
    AddValue(*value, depth + 1, out);
  }
  out->Add("}");
}

void AddValue(const google::protobuf::Value& value, int depth, Shortened* out) {
  using google::protobuf::Value;
  if (depth > kMaxDepth) return out->Add(kEllipsis);
  switch (value.kind_case()) {
    case Value::kNullValue:
      return out->Add("null");
    case Value::kNumberValue:
      return out->Add(text::ShortestDecimal(value.number_value()));
    case Value::kBoolValue:
      return out->Add(value.bool_value() ? "true" : "false");
    case Value::kStringValue:
      return out->AddEscaped(value.string_value());
    case Value::kListValue:
      return AddList(value.list_value(), depth, out);
    case Value::kStructValue:
      return AddStruct(value.struct_value(), depth, out);
    case Value::KIND_NOT_SET:
      return out->Add("nothing");
  }
}

// Returns the edit distance with insertions, deletions, substitutions and swaps of neighbours.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kMaxLength = 64;  // longer names aren't misspelt by accident; bounds the work
  if (word.empty() || word.size() > kMaxLength) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength) continue;
    const size_t enough = std::max<size_t>(1, std::min(word.size(), candidate.size()) / 3);
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance <= enough && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view before, absl::string_view after) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat(before, "did you mean ", nearest, "?", after);
}

std::string ShortText(const google::protobuf::Value& value, size_t limit) {
  Shortened out(limit);
  AddValue(value, 0, &out);
  return out.Take();
}

std::string ShortText(absl::string_view text, size_t limit) {
  Shortened out(limit);
  out.AddEscaped(text);
  return out.Take();
}

std::string Quoted(const google::protobuf::Value& value) {
  return value.has_string_value() ? Quoted(value.string_value()) : ShortText(value);
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", ShortText(text), "\""); }

std::string AnyOf(const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool last = i + 1 == values.size();
    absl::StrAppend(&text, i == 0 ? "" : last ? " or " : ", ", values[i]);
  }
  return text;
}

std::string Subscript(absl::string_view key) {
  return absl::StrCat("[\"", ShortText(key, 100), "\"]");
}

}  // namespace ablate::reflect
