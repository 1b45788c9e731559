#include "base/tokenizer/byte_pair_encoding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/tokenizer/byte_alphabet.h"

namespace ablate::tokenizer {

absl::StatusOr<std::shared_ptr<const BytePairEncoding>> BytePairEncoding::Read(
    const std::string& vocab_json, const std::string& merges_txt) {
  ASSIGN_OR_RETURN(const FileText vocabulary, ReadFileText(vocab_json));
  ASSIGN_OR_RETURN(const FileText merges, ReadFileText(merges_txt));
  return Parse(vocabulary, merges);
}

absl::StatusOr<std::shared_ptr<const BytePairEncoding>> BytePairEncoding::Parse(
    const FileText& vocab_json, const FileText& merges_txt) {
  ASSIGN_OR_RETURN(const Vocabulary vocabulary, ParseVocabulary(vocab_json));
  const std::shared_ptr<BytePairEncoding> made(new BytePairEncoding);
  RETURN_IF_ERROR(made->SetBytes(vocabulary, vocab_json.name));
  ASSIGN_OR_RETURN(const std::vector<Merge> merges, ParseMerges(merges_txt, vocabulary));
  made->SetTexts(vocabulary, {});
  made->SetMerges(merges);
  made->FindSpecial();
  return made;
}

absl::StatusOr<std::shared_ptr<const BytePairEncoding>> BytePairEncoding::ParseJson(
    const FileText& file) {
  ASSIGN_OR_RETURN(const TokenizerJson read, ParseTokenizerJson(file));
  const std::shared_ptr<BytePairEncoding> made(new BytePairEncoding);
  RETURN_IF_ERROR(made->SetBytes(read.vocabulary, absl::StrCat(file.name, ": model.vocab")));
  made->SetTexts(read.vocabulary, read.added);
  made->SetMerges(read.merges);
  made->SetAdded(read.added);
  if (read.ignores_merges) made->SetWords(read.vocabulary);
  if (read.has_nfc) made->nfc_.emplace();
  made->splitter_ = WordSplitter(read.pattern);
  return made;
}

void BytePairEncoding::SetTexts(const Vocabulary& vocabulary,
                                const std::vector<AddedToken>& added) {
  std::vector<std::string> texts;
  const auto set = [&texts](uint32_t id, std::string text) {
    if (texts.size() <= id) texts.resize(id + 1);
    texts[id] = std::move(text);
  };
  for (const auto& [name, id] : vocabulary) set(id, BytesOfName(name).value_or(name));
  for (const AddedToken& token : added) set(token.id, token.text);
  for (const std::string& text : texts) {
    texts_ += text;
    ends_.push_back(static_cast<uint32_t>(texts_.size()));
  }
}

absl::Status BytePairEncoding::SetBytes(const Vocabulary& vocabulary, const std::string& file) {
  for (unsigned byte = 0; byte < tokens_of_bytes_.size(); ++byte) {
    const std::string name = NameOfByte(static_cast<unsigned char>(byte));
    const auto found = vocabulary.find(name);
    if (found == vocabulary.end()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: no token for the byte 0x%02X; expected a token %s and one for each other byte", file,
          byte, Quoted(name)));
    }
    tokens_of_bytes_[byte] = found->second;
  }
  return absl::OkStatus();
}

void BytePairEncoding::SetMerges(const std::vector<Merge>& merges) {
  for (const Merge& merge : merges) {
    ranks_.emplace(PairKey(merge.left, merge.right), static_cast<uint32_t>(results_.size()));
    results_.push_back(merge.result);
  }
}

void BytePairEncoding::FindSpecial() {
  std::vector<bool> is_ordinary(vocabulary());
  for (const uint32_t id : tokens_of_bytes_) is_ordinary[id] = true;
  for (const uint32_t id : results_) is_ordinary[id] = true;
  for (uint32_t id = 0; id < vocabulary(); ++id) {
    if (!is_ordinary[id] && !TextOf(id).empty()) special_.push_back(id);
  }
}

void BytePairEncoding::SetAdded(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added) (token.is_special ? special_ : added_).push_back(token.id);
  std::sort(special_.begin(), special_.end());
  std::sort(added_.begin(), added_.end());
}

void BytePairEncoding::SetWords(const Vocabulary& vocabulary) {
  for (const auto& [name, id] : vocabulary) {
    if (BytesOfName(name).has_value()) words_.emplace(TextOf(id), id);
  }
}

absl::string_view BytePairEncoding::TextOf(uint32_t id) const {
  if (id >= ends_.size()) return "";
  const uint32_t begin = id == 0 ? 0 : ends_[id - 1];
  return absl::string_view(texts_).substr(begin, ends_[id] - begin);
}

absl::StatusOr<std::string> BytePairEncoding::Decode(absl::Span<const uint32_t> ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    const absl::string_view token = TextOf(ids[i]);
    if (token.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", ids[i], " at position ", i,
                       " has no token; expected ids of a vocabulary of ", vocabulary()));
    }
    absl::StrAppend(&text, token);
  }
  return text;
}

}  // namespace ablate::tokenizer
