#include "base/tokenizer/byte_pair_encoding.h"

#include <algorithm>

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
  made->SetTexts(vocabulary);
  made->SetMerges(merges);
  made->FindSpecial();
  return made;
}

void BytePairEncoding::SetTexts(const Vocabulary& vocabulary) {
  std::vector<const std::string*> names;
  for (const auto& [name, id] : vocabulary) {
    names.resize(std::max<size_t>(names.size(), id + 1));
    names[id] = &name;
  }
  for (const std::string* name : names) {
    if (name != nullptr) texts_ += BytesOfName(*name).value_or(*name);
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
