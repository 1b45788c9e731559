#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/submit/document.h"
#include "text/utf8.h"

namespace ablate::client {
namespace {

class Parser {
 public:
  Parser(const SourceText& source, Document* document)
      : source_(source), rest_(source.text()), document_(*document), builder_(document) {}

  void Run() {
    if (!ParseValue(0)) return;
    SkipSpace();
    if (!rest_.empty()) Fail("expected nothing after the outermost '}'");
  }

 private:
  Position Here() const { return source_.At(source_.text().size() - rest_.size()); }

  // Reports the first syntax error; always false.
  bool Fail(std::string message) {
    if (!document_.syntax_error) builder_.Problem(Here(), std::move(message));
    document_.syntax_error = true;
    return false;
  }

  void SkipSpace() {
    const auto* end = std::find_if_not(rest_.begin(), rest_.end(), [](char c) {
      return c == ' ' || c == '\t' || c == '\n' || c == '\r';
    });
    rest_.remove_prefix(static_cast<size_t>(end - rest_.begin()));
  }

  bool Consume(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool ParseValue(int depth) {
    SkipSpace();
    if (rest_.empty()) return Fail("expected a value, but the file ends");
    const bool nested = rest_[0] == '{' || rest_[0] == '[';
    if (nested && depth == kMaxDepth) {
      return Fail(absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    if (rest_[0] == '{') return ParseMap(depth);
    if (rest_[0] == '[') return ParseList(depth);
    const Position position = Here();
    if (rest_[0] == '"') {
      std::string text;
      if (!ParseString(&text)) return false;
      builder_.Scalar(StringValue(text), position);
      return true;
    }
    return ParseWord(position);
  }

  bool ParseMap(int depth) {
    builder_.BeginMap(Here());
    Consume('{');
    if (!Consume('}')) {
      do {
        if (!ParseMember(depth)) return false;
      } while (Consume(','));
      if (!Consume('}')) return Fail("expected ',' or '}'");
    }
    builder_.End();
    return true;
  }

  bool ParseMember(int depth) {
    SkipSpace();
    const Position position = Here();
    std::string key;
    if (!absl::StartsWith(rest_, "\"")) return Fail("expected a field's name in double quotes");
    if (!ParseString(&key)) return false;
    builder_.Key(key, position);
    if (!Consume(':')) return Fail("expected ':'");
    return ParseValue(depth + 1);
  }

  bool ParseList(int depth) {
    builder_.BeginList(Here());
    Consume('[');
    if (!Consume(']')) {
      do {
        if (!ParseValue(depth + 1)) return false;
      } while (Consume(','));
      if (!Consume(']')) return Fail("expected ',' or ']'");
    }
    builder_.End();
    return true;
  }

  // true, false, null or a number.
  bool ParseWord(Position position) {
    const size_t length = std::min(rest_.find_first_of(" \t\r\n,:]}[{\""), rest_.size());
    const absl::string_view word = rest_.substr(0, length);
    double number = 0;
    google::protobuf::Value value;
    if (word == "null") {
      value.set_null_value(google::protobuf::NULL_VALUE);
    } else if (word == "true" || word == "false") {
      value.set_bool_value(word == "true");
    } else if (ParseJsonNumber(word, &number)) {
      value.set_number_value(number);
    } else {
      return Fail("expected a value: a text stands in double quotes, a number like 0.001");
    }
    builder_.Scalar(std::move(value), position);
    rest_.remove_prefix(length);
    return true;
  }

  bool ParseString(std::string* out) {
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\') {
        if (!ParseEscape(out)) return false;
        continue;
      }
      if (rest_[0] == '\n') return Fail("a text that is not closed before the line ends");
      *out += rest_[0];
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return Fail("a text that is not closed before the file ends");
    rest_.remove_prefix(1);
    return true;
  }

  bool ParseEscape(std::string* out) {
    constexpr absl::string_view kLetters = "\"\\/bfnrt";
    constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t index = rest_.size() < 2 ? kLetters.npos : kLetters.find(rest_[1]);
    if (index != kLetters.npos) {
      *out += kMeanings[index];
      rest_.remove_prefix(2);
      return true;
    }
    std::optional<uint32_t> code = TakeUnicodeEscape();
    if (code && *code >= 0xD800 && *code < 0xDC00) {  // the first half of a pair
      const std::optional<uint32_t> low = TakeUnicodeEscape();
      const bool paired = low && *low >= 0xDC00 && *low < 0xE000;
      code = paired ? std::optional(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00))
                    : std::nullopt;
    } else if (code && *code >= 0xDC00 && *code < 0xE000) {
      code = std::nullopt;
    }
    if (!code) return Fail("unknown escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX exist");
    *out += text::EncodeUtf8(*code);
    return true;
  }

  // The number of \uXXXX, or nothing.
  std::optional<uint32_t> TakeUnicodeEscape() {
    uint32_t code = 0;
    const absl::string_view digits = rest_.size() < 6 ? "" : rest_.substr(2, 4);
    const bool hex = std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
    if (!absl::StartsWith(rest_, "\\u") || !hex || !absl::SimpleHexAtoi(digits, &code)) {
      return std::nullopt;
    }
    rest_.remove_prefix(6);
    return code;
  }

  const SourceText& source_;
  absl::string_view rest_;
  Document& document_;
  TreeBuilder builder_;
};

}  // namespace

Document ParseJson(const SourceText& source) {
  Document document;
  Parser(source, &document).Run();
  return document;
}

}  // namespace ablate::client
