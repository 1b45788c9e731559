#include "base/conllu.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace ablate {
namespace {

constexpr absl::string_view kNoLabel = "_";
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The columns of a line.
enum Column {
  kId,
  kForm,
  kLemma,
  kUpos,
  kXpos,
  kFeatures,
  kHead,
  kRelation,
  kDeps,
  kMisc,
  kColumns
};
using Columns = std::array<absl::string_view, kColumns>;

// An ID: a word's number, a range of words (a multiword token), or an empty node after a word.
struct LineId {
  enum Kind { kWord, kRange, kEmptyNode } kind = kWord;
  uint32_t first = 0;
  uint32_t second = 0;  // last word of a range; number of the empty node
};

// A multiword token whose words are being read.
struct OpenRange {
  size_t line = 0;    // 0: there is none
  uint32_t last = 0;  // word
  absl::string_view form;
  bool space_after = true;
  size_t first_word = 0;  // index among the sentence's words
};

absl::string_view TakeLine(absl::string_view* rest) {
  const size_t end = rest->find('\n');
  absl::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == absl::string_view::npos ? rest->size() : end + 1);
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// Returns nullopt if the line has another number of columns.
std::optional<Columns> SplitColumns(absl::string_view line) {
  Columns columns;
  size_t count = 0;
  for (const absl::string_view column : absl::StrSplit(line, '\t')) {
    if (count == kColumns) return std::nullopt;
    columns[count++] = column;
  }
  return count == kColumns ? std::optional(columns) : std::nullopt;
}

// Reads a number without sign, spaces and leading zeros.
bool ReadNumber(absl::string_view text, uint32_t* number) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return digits && (text == "0" || text[0] != '0') && absl::SimpleAtoi(text, number);
}

std::optional<LineId> ReadId(absl::string_view text) {
  LineId id;
  if (ReadNumber(text, &id.first)) return id;
  const size_t mark = text.find_first_of("-.");
  if (mark == absl::string_view::npos) return std::nullopt;
  id.kind = text[mark] == '-' ? LineId::kRange : LineId::kEmptyNode;
  const bool numbers =
      ReadNumber(text.substr(0, mark), &id.first) && ReadNumber(text.substr(mark + 1), &id.second);
  return numbers ? std::optional(id) : std::nullopt;
}

bool IsSpaceAfter(absl::string_view misc) {
  for (const absl::string_view item : absl::StrSplit(misc, '|')) {
    if (item == "SpaceAfter=No") return false;
  }
  return true;
}

// Reads the lines of one sentence.
class SentenceParser {
 public:
  explicit SentenceParser(TaggedSentence* sentence) : sentence_(sentence) {}

  // Adds the line with that number, which is neither empty nor a comment.
  absl::Status Add(absl::string_view line, size_t number) {
    line_ = number;
    const std::optional<Columns> columns = SplitColumns(line);
    if (!columns.has_value()) {
      return Problem(absl::StrCat("the number of its columns is ",
                                  std::count(line.begin(), line.end(), '\t') + 1,
                                  "; expected 10, separated by tabs"));
    }
    const std::optional<LineId> id = ReadId((*columns)[kId]);
    if (!id.has_value()) {
      return Problem("its ID isn't a number; expected one such as 3, 3-4 or 3.1");
    }
    if ((*columns)[kForm].empty()) return Problem("its form is empty; expected text");
    switch (id->kind) {
      case LineId::kEmptyNode:
        return AddEmptyNode(*id);
      case LineId::kRange:
        return AddRange(*id, *columns);
      case LineId::kWord:
        break;
    }
    return AddWord(*id, *columns);
  }

  // Ends the sentence.
  absl::Status Finish() const {
    if (range_.line == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("line ", range_.line, ": its words end at ",
                                                   range_.last, ", those of the sentence at ",
                                                   Words()));
  }

  bool begun() const { return Words() > 0 || range_.line > 0 || empty_nodes_ > 0; }

 private:
  uint32_t Words() const { return static_cast<uint32_t>(sentence_->words.size()); }

  absl::Status Problem(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", problem));
  }

  absl::Status AddEmptyNode(const LineId& id) {
    if (id.first != Words() || id.second != empty_nodes_ + 1) {
      return Problem(absl::StrCat("its ID is ", id.first, ".", id.second, "; expected ", Words(),
                                  ".", empty_nodes_ + 1, " for an empty node here"));
    }
    ++empty_nodes_;
    return absl::OkStatus();
  }

  absl::Status AddRange(const LineId& id, const Columns& columns) {
    if (range_.line > 0) {
      return Problem(absl::StrCat("it is inside the multiword token of line ", range_.line));
    }
    if (id.first != Words() + 1 || id.second < id.first) {
      return Problem(absl::StrCat("its ID is ", id.first, "-", id.second,
                                  "; expected a range that begins with the next word, ",
                                  Words() + 1));
    }
    // Two are always allowed: "à" is "a a" in Portuguese.
    const size_t words = size_t{id.second} - id.first + 1;
    if (const size_t most = std::max<size_t>(2, columns[kForm].size()); words > most) {
      return Problem(absl::StrCat("its ID is ", id.first, "-", id.second, "; expected at most ",
                                  most, " words in such a short form"));
    }
    range_ = {line_, id.second, columns[kForm], IsSpaceAfter(columns[kMisc]), Words()};
    return absl::OkStatus();
  }

  absl::Status AddWord(const LineId& id, const Columns& columns) {
    if (id.first != Words() + 1) {
      return Problem(absl::StrCat("its ID is ", id.first, "; expected ", Words() + 1));
    }
    if (Words() == kMaxSentenceWords) {
      return Problem(absl::StrCat("its sentence has more than ", kMaxSentenceWords, " words"));
    }
    RETURN_IF_ERROR(CheckFeatures(columns[kFeatures]));
    if (Words() == 0) sentence_->line = line_;
    empty_nodes_ = 0;
    TaggedWord word = {columns[kForm],     columns[kUpos], columns[kXpos],
                       columns[kFeatures], columns[kHead], columns[kRelation]};
    if (range_.line == 0) Append(word.form, IsSpaceAfter(columns[kMisc]), &word);
    sentence_->words.push_back(word);
    if (range_.line > 0 && Words() == range_.last) CloseRange();
    return absl::OkStatus();
  }

  absl::Status CheckFeatures(absl::string_view features) const {
    if (features == kNoLabel) return absl::OkStatus();
    std::vector<absl::string_view> names;
    for (const absl::string_view pair : absl::StrSplit(features, '|')) {
      const size_t equals = pair.find('=');
      if (equals == 0 || equals == absl::string_view::npos || equals + 1 == pair.size()) {
        return Problem("a feature isn't a pair; expected _, or Name=Value separated by |");
      }
      names.push_back(pair.substr(0, equals));
    }
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) == names.end()) return absl::OkStatus();
    return Problem("two features have the same name");
  }

  // Appends a form to the text, and sets the word's place.
  void Append(absl::string_view form, bool space_after, TaggedWord* word) {
    if (space_) sentence_->text.push_back(' ');
    word->begin = sentence_->text.size();
    absl::StrAppend(&sentence_->text, form);
    word->end = sentence_->text.size();
    space_ = space_after;
  }

  void CloseRange() {
    TaggedWord whole;
    Append(range_.form, range_.space_after, &whole);
    std::string together;
    for (size_t i = range_.first_word; i < sentence_->words.size(); ++i) {
      absl::StrAppend(&together, sentence_->words[i].form);
    }
    size_t begin = whole.begin;
    for (size_t i = range_.first_word; i < sentence_->words.size(); ++i) {
      TaggedWord& word = sentence_->words[i];
      word.begin = whole.begin;
      word.end = whole.end;
      if (together != range_.form) continue;
      word.begin = begin;
      word.end = begin += word.form.size();
    }
    range_ = {};
  }

  TaggedSentence* const sentence_;
  size_t line_ = 0;
  uint32_t empty_nodes_ = 0;  // after the last word
  bool space_ = false;        // before the next form
  OpenRange range_;
};

}  // namespace

absl::string_view LabelOf(const TaggedWord& word, absl::string_view label) {
  const auto given = [](absl::string_view value) {
    return value == kNoLabel ? absl::string_view() : value;
  };
  if (label == "upos") return given(word.upos);
  if (label == "xpos") return given(word.xpos);
  for (absl::string_view pair : absl::StrSplit(word.features, '|')) {
    if (absl::ConsumePrefix(&pair, label) && absl::ConsumePrefix(&pair, "=")) return given(pair);
  }
  return {};
}

bool IsConllu(absl::string_view beginning) {
  beginning = beginning.substr(0, kConlluBeginningBytes);
  absl::ConsumePrefix(&beginning, kByteOrderMark);
  while (!beginning.empty()) {
    const absl::string_view line = TakeLine(&beginning);
    if (line.empty() || line[0] == '#') continue;
    const std::optional<Columns> columns = SplitColumns(line);
    if (!columns.has_value()) return false;
    const std::optional<LineId> id = ReadId((*columns)[kId]);
    return id.has_value() && id->first == (id->kind == LineId::kEmptyNode ? 0u : 1u);
  }
  return false;
}

ConlluReader::ConlluReader(absl::string_view file) : rest_(file) {
  absl::ConsumePrefix(&rest_, kByteOrderMark);
}

absl::StatusOr<bool> ConlluReader::Next(TaggedSentence& sentence) {
  sentence = {};
  SentenceParser parser(&sentence);
  while (!rest_.empty()) {
    const absl::string_view line = TakeLine(&rest_);
    ++line_;
    const auto problem = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", what));
    };
    if (line.size() > kMaxConlluLineBytes) {
      return problem(absl::StrCat("it has ", text::Grouped(line.size()),
                                  " bytes; expected at most ", text::Grouped(kMaxConlluLineBytes)));
    }
    if (!text::IsUtf8(line)) return problem("it is not UTF-8");
    if (text::HasControlCharacter(line, "\t")) {
      return problem("it has a control character; only tabs and line ends are allowed");
    }
    if (line.empty()) {
      if (!parser.begun()) continue;
      break;
    }
    if (line[0] == '#') {
      if (parser.begun()) return problem("a comment is inside a sentence; expected an empty line");
      continue;
    }
    if (absl::Status wrong = parser.Add(line, line_); !wrong.ok()) return wrong;
  }
  if (!parser.begun()) return false;
  RETURN_IF_ERROR(parser.Finish());
  if (sentence.words.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": the sentence has no words"));
  }
  return true;
}

}  // namespace ablate
