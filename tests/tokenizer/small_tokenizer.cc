#include "tests/tokenizer/small_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/tokenizer/byte_alphabet.h"

namespace ablate::tokenizer {

FileText SmallTokenizer::VocabularyFile() const {
  nlohmann::json ids = nlohmann::json::object();
  for (unsigned byte = 0; byte < 256; ++byte) {
    ids[NameOfByte(static_cast<unsigned char>(byte))] = byte;
  }
  const auto add = [&ids](const std::string& name) {
    if (!ids.contains(name)) ids[name] = ids.size();
  };
  for (const std::string& merge : merges) add(absl::StrReplaceAll(merge, {{" ", ""}}));
  for (const std::string& name : special) add(name);
  return {"vocab.json", ids.dump()};
}

FileText SmallTokenizer::MergesFile() const {
  return {"merges.txt", absl::StrCat("#version: 0.2\n", absl::StrJoin(merges, "\n"), "\n")};
}

FileText SmallTokenizer::JsonFile() const {
  nlohmann::json added = nlohmann::json::array();
  SmallTokenizer ordinary = *this;
  ordinary.special.clear();
  nlohmann::json vocabulary = nlohmann::json::parse(ordinary.VocabularyFile().text);
  for (const std::string& name : special) {
    added.push_back(
        {{"id", vocabulary.size() + added.size()}, {"content", name}, {"special", true}});
  }
  constexpr char kRegex[] =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const nlohmann::json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kRegex}}}, {"behavior", "Isolated"}};
  const nlohmann::json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const nlohmann::json file = {
      {"added_tokens", added},
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  return {"tokenizer.json", file.dump()};
}

std::shared_ptr<const BytePairEncoding> SmallTokenizer::Make() const {
  return *BytePairEncoding::Parse(VocabularyFile(), MergesFile());
}

std::vector<std::string> RandomMerges(unsigned seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<std::string> tokens = {"a", "b", "c", NameOfByte(' ')};
  std::set<std::string> used;
  std::vector<std::string> merges;
  while (merges.size() < count) {
    const std::string& left = tokens[random() % tokens.size()];
    const std::string& right = tokens[random() % tokens.size()];
    const std::string merge = absl::StrCat(left, " ", right), result = left + right;
    if (result.size() > 8 || !used.insert(merge).second) continue;
    merges.push_back(merge);
    tokens.push_back(result);
  }
  std::shuffle(merges.begin(), merges.end(), random);
  return merges;
}

}  // namespace ablate::tokenizer
