#include "base/tokenizer/tokenizer_json.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/tokenizer/byte_alphabet.h"
#include "base/tokenizer/json_reader.h"

namespace ablate::tokenizer {
namespace {

using nlohmann::json;

// Tokens that are found in each text. The limits bound the time per byte.
constexpr size_t kMaxFoundTokens = 256, kMaxFoundBytes = 4096;

// Returns a field of an object; null if it has no such field, or isn't an object.
const json& FieldOf(const json& object, const char* name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

absl::Status Wrong(absl::string_view field, const json& value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", Shown(value), " isn't supported; expected ", expected));
}

// The values that a field may have.
struct FieldRule {
  const char* field;
  std::initializer_list<json> values;
  const char* expected;
};

// Checks the fields of an object at `path`.
absl::Status CheckFields(const json& object, absl::string_view path,
                         std::initializer_list<FieldRule> rules) {
  for (const FieldRule& rule : rules) {
    const json& value = FieldOf(object, rule.field);
    bool allowed = false;
    for (const json& one : rule.values) allowed = allowed || value == one;
    if (!allowed) return Wrong(absl::StrCat(path, rule.field), value, rule.expected);
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const json& model) {
  return CheckFields(model, "model.",
                     {{"type", {"BPE", nullptr}, "\"BPE\""},
                      {"dropout", {nullptr, 0}, "null"},
                      {"continuing_subword_prefix", {nullptr, ""}, "null"},
                      {"end_of_word_suffix", {nullptr, ""}, "null"},
                      {"byte_fallback", {nullptr, false}, "false"},
                      {"ignore_merges", {nullptr, false, true}, "true or false"}});
}

absl::StatusOr<bool> ReadNormalizer(const json& normalizer) {
  if (normalizer.is_null()) return false;
  RETURN_IF_ERROR(CheckFields(normalizer, "normalizer.",
                              {{"type", {"NFC"}, "\"NFC\", or null for the normalizer"}}));
  return true;
}

// Returns the pattern of the step that splits, the only one or the first of two.
absl::StatusOr<WordPattern> ReadPreTokenizer(const json& pre_tokenizer) {
  constexpr char kExpected[] =
      "\"ByteLevel\", or \"Sequence\" of \"Split\" and \"ByteLevel\" with use_regex: false";
  std::string path = "pre_tokenizer.";
  const json* bytes = &pre_tokenizer;
  const json* split = nullptr;
  if (FieldOf(pre_tokenizer, "type") == "Sequence") {
    const json& steps = FieldOf(pre_tokenizer, "pretokenizers");
    if (!steps.is_array() || steps.empty() || steps.size() > 2) {
      return Wrong(absl::StrCat(path, "pretokenizers"), steps, "an array of one or two steps");
    }
    bytes = &steps.back();
    if (steps.size() == 2) split = &steps.front();
    path = absl::StrCat(path, "pretokenizers[", steps.size() - 1, "].");
  }
  RETURN_IF_ERROR(CheckFields(
      *bytes, path, {{"type", {"ByteLevel"}, kExpected}, {"add_prefix_space", {false}, "false"}}));
  if (split == nullptr) {
    RETURN_IF_ERROR(
        CheckFields(*bytes, path, {{"use_regex", {nullptr, true}, "true without a \"Split\""}}));
    return WordPattern();
  }
  RETURN_IF_ERROR(CheckFields(*bytes, path, {{"use_regex", {false}, "false after a \"Split\""}}));
  path = "pre_tokenizer.pretokenizers[0].";
  RETURN_IF_ERROR(CheckFields(*split, path,
                              {{"type", {"Split"}, kExpected},
                               {"behavior", {"Isolated"}, "\"Isolated\""},
                               {"invert", {nullptr, false}, "false"}}));
  const json& regex = FieldOf(FieldOf(*split, "pattern"), "Regex");
  path = absl::StrCat(path, "pattern.Regex");
  if (!regex.is_string()) return Wrong(path, regex, "a regular expression");
  auto pattern = ParseWordPattern(regex.get_ref<const std::string&>());
  if (pattern.ok()) return pattern;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", pattern.status().message()));
}

// Checks that a post-processor does nothing but add special tokens.
absl::Status CheckPostProcessor(const json& processor, bool is_step = false) {
  const json& type = FieldOf(processor, "type");
  if (type == "Sequence" && !is_step) {
    const json& steps = FieldOf(processor, "processors");
    if (!steps.is_array()) return Wrong("post_processor.processors", steps, "an array");
    for (const json& step : steps) RETURN_IF_ERROR(CheckPostProcessor(step, true));
    return absl::OkStatus();
  }
  if (processor.is_null() || type == "ByteLevel" || type == "TemplateProcessing") {
    return absl::OkStatus();
  }
  return Wrong("post_processor.type", type,
               "\"ByteLevel\", \"TemplateProcessing\" or a \"Sequence\" of them");
}

absl::Status CheckDecoder(const json& decoder) {
  if (decoder.is_null()) return absl::OkStatus();
  return CheckFields(decoder, "decoder.", {{"type", {"ByteLevel"}, "\"ByteLevel\""}});
}

// Reads an entry of added_tokens; an error doesn't name its place.
absl::StatusOr<AddedToken> ReadAddedToken(const json& entry) {
  const json& content = FieldOf(entry, "content");
  if (!content.is_string()) return Wrong("content", content, "a text");
  AddedToken token;
  token.text = content.get<std::string>();
  RETURN_IF_ERROR(VocabularyBuilder::CheckName(token.text));
  const json& id = FieldOf(entry, "id");
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxVocabulary) {
    return VocabularyBuilder::WrongId(token.text, Shown(id));
  }
  token.id = id.get<uint32_t>();
  RETURN_IF_ERROR(CheckFields(entry, "",
                              {{"single_word", {nullptr, false}, "false"},
                               {"lstrip", {nullptr, false}, "false"},
                               {"rstrip", {nullptr, false}, "false"},
                               {"normalized", {nullptr, false, true}, "true or false"},
                               {"special", {nullptr, false, true}, "true or false"}}));
  token.is_special = FieldOf(entry, "special") == true;
  return token;
}

// Checks an added token against the token of its name in the vocabulary, if there is one.
absl::Status CheckName(const Vocabulary& vocabulary, const AddedToken& token) {
  const auto found = vocabulary.find(token.text);
  if (found == vocabulary.end()) return absl::OkStatus();
  if (found->second != token.id) {
    return absl::InvalidArgumentError(absl::StrCat("token ", Quoted(token.text), " has the id ",
                                                   token.id, "; expected ", found->second,
                                                   ", its id in model.vocab"));
  }
  if (BytesOfName(token.text).value_or(token.text) == token.text) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "token ", Quoted(token.text), " stands for other bytes in model.vocab; expected another id"));
}

absl::Status ReadAddedTokens(const json& entries, TokenizerJson* read) {
  if (entries.is_null()) return absl::OkStatus();
  if (!entries.is_array()) return Wrong("added_tokens", entries, "an array");
  if (entries.size() > kMaxAddedTokens) {
    return absl::InvalidArgumentError(absl::StrCat("added_tokens: ", entries.size(),
                                                   " tokens; expected at most ", kMaxAddedTokens));
  }
  absl::flat_hash_map<uint32_t, absl::string_view> names;  // by id
  for (const auto& [name, id] : read->vocabulary) names.emplace(id, name);
  absl::flat_hash_set<absl::string_view> texts;
  read->added.reserve(entries.size());  // so that texts stay where they are
  for (size_t place = 0; place < entries.size(); ++place) {
    const auto fail = [&](absl::string_view problem) {
      return absl::InvalidArgumentError(absl::StrCat("added_tokens[", place, "]: ", problem));
    };
    auto token = ReadAddedToken(entries[place]);
    if (!token.ok()) return fail(token.status().message());
    if (const absl::Status name = CheckName(read->vocabulary, *token); !name.ok()) {
      return fail(name.message());
    }
    const AddedToken& added = read->added.emplace_back(*std::move(token));
    const absl::string_view name = names.try_emplace(added.id, added.text).first->second;
    if (name != added.text || !texts.insert(added.text).second) {
      return fail(absl::StrCat("token ", Quoted(added.text), " has the id ", added.id, " of ",
                               Quoted(name), "; expected different tokens and ids"));
    }
  }
  return absl::OkStatus();
}

// Checks that finding the added tokens in a text takes little time.
absl::Status CheckFoundTokens(const std::vector<AddedToken>& added) {
  size_t tokens = 0, bytes = 0;
  for (const AddedToken& token : added) {
    if (token.is_special) continue;
    ++tokens;
    bytes += token.text.size();
  }
  if (tokens <= kMaxFoundTokens && bytes <= kMaxFoundBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("added_tokens: ", tokens, " tokens with special: false, of ", bytes,
                   " bytes together; expected at most ", kMaxFoundTokens, " tokens of at most ",
                   kMaxFoundBytes, " bytes"));
}

absl::StatusOr<std::vector<Merge>> ReadMerges(absl::string_view lines,
                                              const Vocabulary& vocabulary) {
  MergesBuilder merges(&vocabulary, "entry");
  for (size_t number = 1; !lines.empty(); ++number) {
    const size_t end = lines.find('\n');
    if (const absl::Status added = merges.Add(lines.substr(0, end), number); !added.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.merges:", number, ": ", added.message()));
    }
    lines.remove_prefix(end + 1);
  }
  return std::move(merges).Take();
}

// Reads the parts of a file; an error doesn't name the file.
absl::StatusOr<TokenizerJson> ReadParts(JsonParts parts) {
  const json& rest = parts.rest;
  if (!rest.is_object()) {
    return absl::InvalidArgumentError("not an object; expected a tokenizer of tokenizers");
  }
  const json& model = FieldOf(rest, "model");
  RETURN_IF_ERROR(CheckModel(model));
  if (!parts.has_merges) {
    return absl::InvalidArgumentError("model.merges: missing; expected an array of merges");
  }
  TokenizerJson read;
  read.vocabulary = std::move(parts.vocabulary);
  ASSIGN_OR_RETURN(read.merges, ReadMerges(parts.merges, read.vocabulary));
  read.ignores_merges = FieldOf(model, "ignore_merges") == true;
  ASSIGN_OR_RETURN(read.has_nfc, ReadNormalizer(FieldOf(rest, "normalizer")));
  ASSIGN_OR_RETURN(read.pattern, ReadPreTokenizer(FieldOf(rest, "pre_tokenizer")));
  RETURN_IF_ERROR(CheckPostProcessor(FieldOf(rest, "post_processor")));
  RETURN_IF_ERROR(CheckDecoder(FieldOf(rest, "decoder")));
  RETURN_IF_ERROR(ReadAddedTokens(FieldOf(rest, "added_tokens"), &read));
  RETURN_IF_ERROR(CheckFoundTokens(read.added));
  return read;
}

}  // namespace

absl::StatusOr<TokenizerJson> ParseTokenizerJson(const FileText& file) {
  ASSIGN_OR_RETURN(JsonParts parts, ReadJsonParts(file));
  auto read = ReadParts(std::move(parts));
  if (read.ok()) return read;
  return absl::InvalidArgumentError(absl::StrCat(file.name, ": ", read.status().message()));
}

}  // namespace ablate::tokenizer
