#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "proto/yaml/document.h"

namespace ablate::yaml {
namespace {

// A message of the parser, and ours with the next step.
struct Wording {
  absl::string_view parser;
  const char* ours;
};
const Wording kWordings[] = {
    {YAML::ErrorMsg::END_OF_MAP,
     "this does not belong to the mapping above it: indent it like the other fields"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "expected ',' or '}': a '{' is not closed before this"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "this does not belong to the list above it: begin it with '- ' in the same column"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "expected ',' or ']': a '[' is not closed before this"},
    {YAML::ErrorMsg::MAP_VALUE,
     "a ':' where no field can begin: check the indentation, or put the text in quotes"},
    {YAML::ErrorMsg::MAP_KEY, "a '?' where no field can begin: check the indentation"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a '- ' where no list can begin: check the indentation"},
    {YAML::ErrorMsg::FLOW_END, "a ']' or '}' that closes nothing"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "a text that begins with @, ` or % must be in quotes"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "an alias (*name) without an anchor (&name) before it"},
    {"bad file", "nested too deeply"}};

std::string InOurWords(absl::string_view message) {
  const auto* found = std::find_if(std::begin(kWordings), std::end(kWordings),
                                   [&](const Wording& w) { return w.parser == message; });
  return found == std::end(kWordings) ? std::string(message) : found->ours;
}

// Returns the text at the front of `text` without its anchor.
absl::string_view WithoutAnchor(absl::string_view text) {
  if (!absl::StartsWith(text, "&")) return text;
  text.remove_prefix(std::min(text.find_first_of(" \n"), text.size()));
  return absl::StripLeadingAsciiWhitespace(text);
}

// Returns true if a value at the front of `text` is written as null.
bool BeginsWithNull(absl::string_view text) {
  const size_t end = std::min(text.find_first_of(" \t\r\n,]}"), text.size());
  return end > 0 && PlainScalar(text.substr(0, end)).has_null_value();
}

// Returns true if the quoted text at the front of `text` ends.
bool IsClosed(absl::string_view text) {
  const char quote = text[0];
  for (size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'';
      if (!doubled) return true;
      ++i;
    }
  }
  return false;
}

// Returns the ASCII character that a character looks like but isn't: a space, ':' or '\0' for none.
char LooksLike(char32_t c) {
  if (c == 0xFF1A || c == 0xFE55 || c == 0x2236) return ':';
  const bool space = c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200B) || c == 0x202F ||
                     c == 0x205F || c == 0x3000 || c == 0xFEFF;
  return space ? ' ' : '\0';
}

// A character in place of a space or ':' that the parser needs.
struct Lookalike {
  size_t offset = 0;  // in bytes
  std::string message;
};

// Finds such a character around the name of the field that `text` begins with.
std::optional<Lookalike> FindLookalike(absl::string_view text) {
  size_t at = std::min(text.find_first_not_of("- "), text.size());
  while (at < text.size() && (absl::ascii_isalnum(text[at]) || text[at] == '_')) ++at;
  if (at < text.size() && text[at] == ':') ++at;
  size_t after = at;
  const char32_t point = at < text.size() ? text::DecodeUtf8(text, after) : 0;
  const char meant = LooksLike(point);
  if (meant == '\0') return std::nullopt;
  const char* const name = meant == ' ' ? "a space" : "':'";
  return Lookalike{at, absl::StrFormat("the character U+%04X looks like %s, but isn't one: write "
                                       "%s in place of it",
                                       static_cast<uint32_t>(point), name, name)};
}

// Passes the parser's events to a TreeBuilder and reports features that aren't allowed.
class Handler : public YAML::EventHandler {
 public:
  Handler(const SourceText& source, Document* document)
      : source_(source), document_(*document), builder_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const bool stray = absl::StartsWith(Raw(mark), ",");
    Stop(mark, stray ? "a ',' where no value can begin"
                     : "a second document: a file holds one experiment");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (stopped_) return;
    TakeExtras(mark, "", anchor);
    if (builder_.ExpectsKey()) return Stop(mark, "a field's name is missing");
    const bool written = BeginsWithNull(WithoutAnchor(Raw(mark)));
    if (builder_.InList() && !written) {
      return Refuse(mark, "an empty list item: write null or a value");
    }
    const bool lone = !builder_.InList() && lone_key_;
    if (lone) {
      Refuse(key_mark_, absl::StrCat("\"", key_, "\" has no value: write ", key_, ": and a value"));
    }
    // A value that is missing has no kind.
    builder_.Scalar(written || lone ? PlainScalar("") : google::protobuf::Value(), At(mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (stopped_) return;
    if (builder_.ExpectsKey()) return Stop(mark, "an alias where a field's name is expected");
    builder_.Alias(anchor, At(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (stopped_) return;
    TakeExtras(mark, tag, anchor);
    const absl::string_view raw = WithoutAnchor(Raw(mark));
    const bool quoted = absl::StartsWith(raw, "\"") || absl::StartsWith(raw, "'");
    if (quoted && !IsClosed(raw)) return Stop(mark, "a quote that is never closed");
    if (builder_.ExpectsKey()) return TakeKey(mark, text, quoted);
    google::protobuf::Value value = tag == "?" ? PlainScalar(text) : StringValue(text);
    if (const std::string problem = text::DecimalProblem(text);
        value.has_number_value() && !problem.empty()) {
      const std::string where = builder_.Where();
      Refuse(mark, absl::StrCat(where, where.empty() ? "" : ": ", text, " ", problem));
      value.set_number_value(0);
    }
    builder_.Scalar(std::move(value), At(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (MayNest(mark, tag, anchor)) builder_.BeginList(At(mark));
  }
  void OnSequenceEnd() override {
    if (!stopped_) builder_.End();
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (MayNest(mark, tag, anchor)) builder_.BeginMap(At(mark));
  }
  void OnMapEnd() override {
    if (!stopped_) builder_.End();
  }

  // The parser gave up. Its word counts more than a suspicion.
  void GiveUp(const YAML::Mark& mark, absl::string_view message) {
    if (stopped_ && !suspicion_) return;
    suspicion_.reset();
    if (RefuseLookalike(mark.line)) return;
    const bool at_end = Raw(mark).empty();
    const bool early =
        message == YAML::ErrorMsg::END_OF_MAP_FLOW || message == YAML::ErrorMsg::END_OF_SEQ_FLOW;
    if (at_end && early) {
      Refuse(mark, "the file ends, but a '{' or '[' is not closed");
    } else {
      Refuse(mark, InOurWords(message));
    }
    document_.syntax_error = true;
  }

  // The parser reached the end.
  void Finish() {
    if (suspicion_) document_.problems.push_back(*suspicion_);
  }

 private:
  Position At(const YAML::Mark& mark) const {
    return source_.At(source_.Offset(mark.line, mark.column));
  }

  absl::string_view Raw(const YAML::Mark& mark) const {
    return source_.text().substr(source_.Offset(mark.line, mark.column));
  }

  // Refuses a lookalike in a line, from 0, or in the text before it, which may belong to the same
  // scalar; returns false if there is none.
  bool RefuseLookalike(int line) {
    const auto text_of = [this](int number) {
      const size_t begin = source_.Offset(number, 0);
      return source_.text().substr(begin, source_.Offset(number + 1, 0) - begin);
    };
    int before = line - 1;
    while (before > 0 && absl::StripAsciiWhitespace(text_of(before)).empty()) --before;
    for (const int number : {line, before}) {
      const auto found = number < 0 ? std::nullopt : FindLookalike(text_of(number));
      if (!found.has_value()) continue;
      builder_.Problem(source_.At(source_.Offset(number, static_cast<int>(found->offset))),
                       found->message);
      return stopped_ = document_.syntax_error = true;
    }
    return false;
  }

  void Stop(const YAML::Mark& mark, std::string message) {
    Refuse(mark, std::move(message));
    stopped_ = document_.syntax_error = true;
  }

  void Refuse(const YAML::Mark& mark, std::string message) {
    builder_.Problem(At(mark), std::move(message));
  }

  void TakeKey(const YAML::Mark& mark, const std::string& text, bool quoted) {
    const auto lookalike = quoted ? std::nullopt : FindLookalike(text);
    if (lookalike.has_value()) {
      YAML::Mark place = mark;
      place.column += static_cast<int>(lookalike->offset);
      return Stop(place, lookalike->message);
    }
    absl::string_view after = Raw(mark);
    after.remove_prefix(std::min(text.size(), after.size()));
    after.remove_prefix(std::min(after.find_first_not_of(' '), after.size()));
    lone_key_ = !quoted && !absl::StartsWith(after, ":");
    key_ = text;
    key_mark_ = mark;
    builder_.Key(text, At(mark));
  }

  // Refuses tags, and anchors of field names.
  void TakeExtras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0 && builder_.ExpectsKey()) {
      Refuse(mark, "an anchor (&name) of a field's name: write it before the value");
    } else if (anchor != 0) {
      builder_.Anchor(anchor);
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      absl::string_view raw = Raw(mark);
      raw = raw.substr(0, raw.find_first_of(" \n"));
      Refuse(mark, absl::StrCat("tags such as ", raw, " are not supported: write the value alone"));
    }
  }

  bool MayNest(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (stopped_) return false;
    TakeExtras(mark, tag, anchor);
    if (!builder_.ExpectsKey()) return true;
    // Otherwise a '{' that is never closed: only the parser can tell.
    suspicion_ = Diagnostic{At(mark), "a field's name must be a word", ""};
    stopped_ = document_.syntax_error = true;
    return false;
  }

  const SourceText& source_;
  Document& document_;
  TreeBuilder builder_;
  int documents_ = 0;
  bool stopped_ = false;
  std::optional<Diagnostic> suspicion_;
  bool lone_key_ = false;  // the newest key has no ':' after it
  std::string key_;
  YAML::Mark key_mark_;
};

// Returns true if a block text, | or >, begins after `line`.
bool OpensBlockText(absl::string_view line) {
  if (absl::StartsWith(line, "#")) return false;
  line = absl::StripTrailingAsciiWhitespace(line.substr(0, line.find(" #")));
  const size_t space = line.rfind(' ');
  const absl::string_view last = space == line.npos ? line : line.substr(space + 1);
  return (absl::StartsWith(last, "|") || absl::StartsWith(last, ">")) &&
         last.find_first_not_of("+-123456789", 1) == last.npos;
}

// Tells lines of a text of its own, in which a tab is a character like others, from the rest. Goes
// by indentation, as YAML does.
class BlockTexts {
 public:
  // Returns true if the next line, `indent` spaces and then `rest`, is within such a text.
  bool Contain(size_t indent, absl::string_view rest) {
    const bool blank = rest.find_first_not_of(" \r") == rest.npos;
    if (min_indent_ > 0 && (blank || indent >= min_indent_)) {
      if (!blank && !std::exchange(begun_, true)) min_indent_ = indent;
      return true;
    }
    min_indent_ = OpensBlockText(rest) ? indent + 1 : 0;
    begun_ = false;
    return false;
  }

 private:
  size_t min_indent_ = 0;  // indentation of the text's lines; 0 outside of any
  bool begun_ = false;     // a first line has said how much that is
};

// Refuses tabs in the indentation: YAML forbids them, and parsers treat them differently.
void RefuseTabs(const SourceText& source, Document* document) {
  const absl::string_view text = source.text();
  BlockTexts block_texts;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const size_t first = std::min(text.find_first_not_of(' ', start), end);
    const absl::string_view rest = text.substr(first, end - first);
    if (!block_texts.Contain(first - start, rest) && absl::StartsWith(rest, "\t")) {
      document->problems.push_back(
          {source.At(first), "a tab in the indentation: YAML needs spaces", ""});
      document->syntax_error = true;
      return;
    }
    start = end + 1;
  }
}

// The number of the \uXXXX that `text` begins with; 0 if it begins with none.
uint32_t UnicodeEscape(absl::string_view text) {
  uint32_t code = 0;
  const bool escape = absl::ConsumePrefix(&text, "\\u") && text.size() >= 4;
  return escape && absl::SimpleHexAtoi(text.substr(0, 4), &code) ? code : 0;
}

// Joins surrogates: JSON writes a character beyond the first 65,536 as a pair of escapes, YAML as
// one. Columns after it on its line are then two too small.
std::string JoinSurrogates(absl::string_view json) {
  std::string joined;
  while (!json.empty()) {
    const uint32_t high = UnicodeEscape(json);
    const uint32_t low = high >> 10 == 0x36 ? UnicodeEscape(json.substr(6)) : 0;
    size_t taken = json[0] == '\\' ? 2 : 1;
    if (low >> 10 == 0x37) {
      absl::StrAppendFormat(&joined, "\\U%08x", 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
      taken = 12;
    } else {
      absl::StrAppend(&joined, json.substr(0, taken));
    }
    json.remove_prefix(std::min(taken, json.size()));
  }
  return joined;
}

}  // namespace

Document ParseYaml(const SourceText& source) {
  Document document;
  const bool is_json = absl::StartsWith(absl::StripLeadingAsciiWhitespace(source.text()), "{");
  if (!is_json) RefuseTabs(source, &document);
  if (document.syntax_error) return document;
  // Without a line break at the end the parser reports wrong positions there.
  std::istringstream in(
      absl::StrCat(is_json ? JoinSurrogates(source.text()) : source.text(), "\n"));
  Handler handler(source, &document);
  try {
    YAML::Parser parser(in);
    // Not more than two: on a stray ',' the parser would find empty documents without end.
    for (int i = 0; i < 2 && parser.HandleNextDocument(handler); ++i) {
    }
    handler.Finish();
  } catch (const YAML::Exception& exception) {  // the library's only way to report a syntax error
    handler.GiveUp(exception.mark, exception.msg);
  }
  return document;
}

absl::StatusOr<google::protobuf::Value> ParseValue(absl::string_view text) {
  if (text.find_first_not_of(' ') == absl::string_view::npos) {
    return absl::InvalidArgumentError("no value after the '='; write null to clear the field");
  }
  const SourceText source{std::string(text)};
  std::vector<Diagnostic> problems = source.Check();
  Document document;
  if (problems.empty()) {
    document = ParseYaml(source);
    problems = std::move(document.problems);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems.front().message);
  return std::move(document.root);
}

}  // namespace ablate::yaml
