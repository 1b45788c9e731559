#include "base/tokenizer/vocabulary.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/tokenizer/byte_alphabet.h"
#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

using nlohmann::json;

// An escaped byte takes four, and an error quotes up to two texts.
constexpr size_t kMaxQuotedBytes = 40;

// Receives the parts of vocab.json from the parser, and stops it at the first bad one.
class VocabularyReader : public nlohmann::json_sax<json> {
 public:
  explicit VocabularyReader(const FileText& file) : file_(file) {}

  absl::StatusOr<Vocabulary> Take() && {
    if (!error_.ok()) return error_;
    return std::move(entries_).Take();
  }

  bool start_object(size_t) override {
    if (inside_) return Value("an object");
    inside_ = true;
    return true;
  }
  bool end_object() override { return true; }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return Check(VocabularyBuilder::CheckName(name_));
  }
  bool number_unsigned(number_unsigned_t id) override {
    return inside_ ? Check(entries_.Add(name_, id)) : Value("");
  }
  bool number_integer(number_integer_t id) override { return Value(absl::StrCat(id)); }
  bool number_float(number_float_t, const string_t& text) override { return Value(text); }
  bool null() override { return Value("null"); }
  bool boolean(bool value) override { return Value(value ? "true" : "false"); }
  bool string(string_t& text) override { return Value(Quoted(text)); }
  bool binary(binary_t&) override { return Value("binary data"); }
  bool start_array(size_t) override { return Value("an array"); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    const absl::string_view read = absl::string_view(file_.text).substr(0, position);
    const auto lines = std::count(read.begin(), read.end(), '\n');
    error_ = absl::InvalidArgumentError(
        absl::StrCat(file_.name, ":", lines + 1, ": not JSON at byte ", position,
                     "; expected an object of tokens and ids in UTF-8"));
    return false;
  }

 private:
  bool Check(const absl::Status& status) {
    if (!status.ok()) {
      error_ = absl::InvalidArgumentError(absl::StrCat(file_.name, ": ", status.message()));
    }
    return status.ok();
  }
  // Refuses a value that isn't an id.
  bool Value(absl::string_view value) {
    return Check(inside_ ? VocabularyBuilder::WrongId(name_, value)
                         : absl::InvalidArgumentError(
                               "not an object; expected an object of tokens and ids"));
  }

  const FileText& file_;
  bool inside_ = false;
  std::string name_;  // of the entry that is being read
  VocabularyBuilder entries_;
  absl::Status error_;
};

// Removes the first line of `text` and returns it without its end.
absl::string_view TakeLine(absl::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  absl::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// Reads the merge of a line; an error has only the problem.
absl::StatusOr<Merge> ParseMerge(absl::string_view line, const Vocabulary& vocabulary) {
  const size_t space = line.find(' ');
  const size_t more = line.find(' ', space == absl::string_view::npos ? space : space + 1);
  if (space == 0 || space >= line.size() - 1 || more != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(line), " isn't a merge; expected two tokens with one space between them"));
  }
  const std::string left(line.substr(0, space)), right(line.substr(space + 1));
  const std::string joined = left + right;
  uint32_t ids[3];
  uint32_t* id = ids;
  for (const std::string* name : {&left, &right, &joined}) {
    const auto found = vocabulary.find(*name);
    if (found == vocabulary.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", Quoted(*name), " of the merge ", Quoted(line),
                       " isn't in the vocabulary; expected files of the same tokenizer"));
    }
    *id++ = found->second;
  }
  if (!BytesOfName(joined).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("token ", Quoted(joined),
                     " has a character that stands for no byte; expected GPT-2's byte alphabet"));
  }
  return Merge{ids[0], ids[1], ids[2]};
}

}  // namespace

std::string Quoted(absl::string_view text) {
  size_t bytes = std::min(text.size(), kMaxQuotedBytes);
  const auto continues = [&] { return (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80; };
  while (bytes > 0 && bytes < text.size() && continues()) --bytes;
  const absl::string_view shown = text.substr(0, bytes);
  return absl::StrCat(
      "\"", text::IsUtf8(shown) ? absl::Utf8SafeCHexEscape(shown) : absl::CHexEscape(shown),
      shown.size() < text.size() ? "…" : "", "\"");
}

absl::StatusOr<FileText> ReadFileText(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; expected a file"));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const int reason = errno != 0 ? errno : EIO;
    return absl::ErrnoToStatus(reason, absl::StrCat(path, ": can't be read"));
  }
  FileText file{path, ""};
  char part[1 << 16];
  while (in.read(part, sizeof(part)) || in.gcount() > 0) {
    file.text.append(part, static_cast<size_t>(in.gcount()));
    if (file.text.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": too large; expected at most ", kMaxFileBytes >> 20, " MiB"));
    }
  }
  if (in.bad()) return absl::DataLossError(absl::StrCat(path, ": reading failed"));
  return file;
}

absl::Status VocabularyBuilder::CheckName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("a token has an empty name; expected at least 1 character");
  }
  if (name.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("token ", Quoted(name), " has a name of ",
                                                 name.size(), " bytes; expected at most ",
                                                 kMaxNameBytes));
}

absl::Status VocabularyBuilder::WrongId(absl::string_view name, absl::string_view value) {
  return absl::InvalidArgumentError(absl::StrCat("token ", Quoted(name), " has the id ", value,
                                                 "; expected an integer of 0 to ",
                                                 text::Grouped(kMaxVocabulary - 1)));
}

absl::Status VocabularyBuilder::Add(const std::string& name, uint64_t id) {
  if (id >= kMaxVocabulary) return WrongId(name, absl::StrCat(id));
  if (!used_.insert(static_cast<uint32_t>(id)).second) {
    return absl::InvalidArgumentError(absl::StrCat("token ", Quoted(name), " has the id ", id,
                                                   " of another token; expected different ids"));
  }
  if (ids_.emplace(name, static_cast<uint32_t>(id)).second) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("token ", Quoted(name), " occurs twice; expected one entry"));
}

absl::Status MergesBuilder::Add(absl::string_view merge, size_t number) {
  ASSIGN_OR_RETURN(const Merge parsed, ParseMerge(merge, vocabulary_));
  const auto [first, is_new] = numbers_.try_emplace({parsed.left, parsed.right}, number);
  if (!is_new) {
    return absl::InvalidArgumentError(absl::StrCat("the merge ", Quoted(merge), " is in ", place_,
                                                   " ", first->second,
                                                   " already; expected each merge once"));
  }
  merges_.push_back(parsed);
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> ParseVocabulary(const FileText& file) {
  VocabularyReader reader(file);
  json::sax_parse(file.text, &reader);
  return std::move(reader).Take();
}

absl::StatusOr<std::vector<Merge>> ParseMerges(const FileText& file, const Vocabulary& vocabulary) {
  MergesBuilder merges(&vocabulary, "line");
  absl::string_view rest = file.text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const absl::string_view line = TakeLine(&rest);
    if (number == 1 && absl::StartsWith(line, "#version")) continue;
    if (line.empty() && rest.find_first_not_of("\r\n") == absl::string_view::npos) break;
    const absl::Status added = merges.Add(line, number);
    if (added.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(file.name, ":", number, ": ", added.message()));
  }
  return std::move(merges).Take();
}

}  // namespace ablate::tokenizer
