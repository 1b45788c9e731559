#include "server/submit/token_datasets.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/conllu.h"
#include "base/decimal.h"
#include "base/file_set.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/tokenizer/encoder.h"
#include "server/analysis/document_facts.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "server/lookup/limits.h"
#include "server/rpc/blob_streams.h"
#include "server/submit/quotas.h"

namespace ablate::submit {
namespace {

constexpr size_t kDigitsInId = 6;
constexpr uint64_t kPieceBytes = 1 << 20;

absl::Status CannotRead(const storage::DatasetRecord& dataset, const absl::Status& why) {
  return absl::DataLossError(
      absl::StrCat("data set ", dataset.id, " can't be read: ", why.message()));
}

// Calls `take` with the pieces of a data set's file in order.
absl::Status ReadPieces(storage::Store* store, const storage::DatasetRecord& dataset,
                        const std::function<void(absl::string_view)>& take) {
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(store));
  for (uint64_t at = 0; at < dataset.bytes; at += kPieceBytes) {
    const auto piece = blobs->Read(dataset.sha256, at, kPieceBytes);
    if (!piece.ok()) return CannotRead(dataset, piece.status());
    take(*piece);
  }
  return absl::OkStatus();
}

// Returns the name of tokens: "tinyshakespeare-gpt2.tokens", "names-gpt2.documents".
std::string DisplayNameOf(const storage::DatasetRecord& text,
                          const storage::DatasetRecord& tokenizer, bool documents) {
  const auto stem = [](absl::string_view name) {
    constexpr size_t kShown = 16;  // so that an ID, which may be a label, has at most 40 characters
    return name.substr(0, std::min(name.rfind('.'), kShown));
  };
  return absl::StrCat(stem(text.display_name), "-", stem(tokenizer.display_name),
                      documents ? ".documents" : ".tokens");
}

std::vector<uint32_t> LengthsOf(const engine::TokenizedDocuments& documents) {
  std::vector<uint32_t> lengths(documents.documents());
  for (size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = static_cast<uint32_t>(documents.starts[i + 1] - documents.starts[i]);
  }
  return lengths;
}

// Divides a text, or each of its documents. Sets the facts and the file of its tokens.
absl::Status Divide(storage::Store* store, const storage::DatasetRecord& text,
                    const storage::DatasetRecord& tokenizer, bool documents, EncodedText* encoded) {
  std::string bytes;
  absl::Status read = ReadPieces(store, tokenizer,
                                 [&](absl::string_view piece) { absl::StrAppend(&bytes, piece); });
  if (!read.ok()) return read;
  const absl::StatusOr<DatasetFile> file = ReadDatasetFile(bytes);
  if (!file.ok()) return CannotRead(tokenizer, file.status());
  const auto encoding = engine::ReadEncoding(file->tokenizer);
  if (!encoding.ok()) return CannotRead(tokenizer, encoding.status());
  const uint32_t vocabulary = (*encoding)->vocabulary();
  if (documents) {
    std::string lines;
    read =
        ReadPieces(store, text, [&](absl::string_view piece) { absl::StrAppend(&lines, piece); });
    if (!read.ok()) return read;
    const auto divided = engine::EncodeDocuments(lines, *encoding);
    if (!divided.ok()) return CannotRead(text, divided.status());
    encoded->facts = engine::FactsOfEncoded(*divided);
    encoded->file =
        WriteTokenFile(file->tokenizer, vocabulary, divided->tokens, LengthsOf(*divided));
    return absl::OkStatus();
  }
  tokenizer::Encoder encoder(*encoding);
  std::vector<uint32_t> tokens;
  read = ReadPieces(store, text, [&](absl::string_view piece) { encoder.Add(piece, &tokens); });
  if (!read.ok()) return read;
  encoder.Finish(&tokens);
  encoded->facts.code_points = tokens.size();
  encoded->facts.characters = vocabulary;
  encoded->file = WriteTokenFile(file->tokenizer, vocabulary, tokens);
  return absl::OkStatus();
}

// Returns the bytes of a file that isn't plain text. INVALID_ARGUMENT if there are too many.
absl::StatusOr<std::string> ReadWhole(storage::Blobs* blobs, const storage::Blobs::Pin& blob) {
  if (blob.size() <= kMaxDatasetFileBytes) return blobs->Read(blob.sha256(), 0, blob.size());
  return absl::InvalidArgumentError(absl::StrCat("the file has ", text::Grouped(blob.size()),
                                                 " bytes and isn't plain text; expected at most ",
                                                 text::Grouped(kMaxDatasetFileBytes)));
}

}  // namespace

absl::StatusOr<FileFacts> InspectFile(storage::Blobs* blobs, const storage::Blobs::Pin& blob) {
  ASSIGN_OR_RETURN(const auto bytes, ReadWhole(blobs, blob));
  ASSIGN_OR_RETURN(DatasetFile file, ReadDatasetFile(bytes));
  if (file.kind == DatasetKind::kFiles) {
    ASSIGN_OR_RETURN(const auto files, ReadFileSet(bytes));
    FileFacts facts{file.kind, {}};
    facts.facts.documents = files.size();
    return facts;
  }
  if (FindIdBytes(file.tokens, 1) > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("every second one of its ", text::Grouped(file.tokens.size()),
                     " tokens is 0, as if ids of 32 bits were read as ids of 16; expected one "
                     "number per id. Read the ids with their own width"));
  }
  FileFacts facts{file.kind, {}};
  if (!file.lengths.empty()) {
    ASSIGN_OR_RETURN(const auto documents, engine::ReadDocuments(bytes));
    facts.facts = engine::FactsOfEncoded(documents);
    return facts;
  }
  // A tokenizer is a file without tokens.
  ASSIGN_OR_RETURN(const auto read, engine::ReadTokens(std::move(file)));
  facts.facts.characters = read.vocabulary();
  facts.facts.code_points = read.tokens.size();
  return facts;
}

absl::StatusOr<TaggedFacts> InspectTagged(storage::Blobs* blobs, const storage::Blobs::Pin& blob) {
  ASSIGN_OR_RETURN(const auto bytes, ReadWhole(blobs, blob));
  ConlluReader reader(bytes);
  TaggedSentence sentence;
  TaggedFacts facts;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, reader.Next(sentence));
    if (!found) break;
    ++facts.sentences;
    facts.text_bytes += sentence.text.size();
  }
  if (facts.sentences == 0) return absl::InvalidArgumentError("it has no sentence");
  if (!IsConllu(bytes)) {  // then analyses wouldn't know it
    return absl::InvalidArgumentError(absl::StrCat("its first word isn't within the first ",
                                                   text::Grouped(kConlluBeginningBytes), " bytes"));
  }
  return facts;
}

std::string DatasetId(absl::string_view display_name, absl::string_view sha256,
                      absl::string_view private_to) {
  const absl::string_view stem = display_name.substr(0, display_name.rfind('.'));
  if (private_to.empty()) return absl::StrCat(stem, "-", sha256.substr(0, kDigitsInId));
  const std::string own = Sha256Hex(
      absl::StrCat("ablate private data set 1\nof=", sha256, "\nuser=", private_to, "\n"));
  return absl::StrCat(stem, "-p", own.substr(0, kDigitsInId - 1));
}

absl::StatusOr<EncodedText> EncodeText(const lookup::View& view, const storage::DatasetRecord& text,
                                       const storage::DatasetRecord& tokenizer, bool documents) {
  const std::string& private_to = text.private_to.empty() ? tokenizer.private_to : text.private_to;
  const std::string from = storage::EncodedFrom(text.sha256, tokenizer.sha256, documents);
  const auto known = view.store->FindEncoded(from, private_to);
  if (!known.ok()) return known.status();
  EncodedText encoded;
  if (known->has_value()) {
    ASSIGN_OR_RETURN(auto facts, analysis::FactsOf(view.store, **known, /*as_text=*/false));
    return EncodedText{**known, std::move(facts), ""};
  }
  if (text.bytes > kMaxEncodedText) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.id, " has ", text::Grouped(text.bytes), " bytes; expected at most ",
        text::Grouped(kMaxEncodedText), " with a tokenizer. Divide it with `ablate data encode`"));
  }
  RETURN_IF_ERROR(Divide(view.store, text, tokenizer, documents, &encoded));
  storage::DatasetRecord& record = encoded.record;
  record.kind = DatasetKind::kTokens;
  record.documents = encoded.facts.documents;
  record.characters = encoded.facts.characters;
  record.display_name = DisplayNameOf(text, tokenizer, documents);
  record.sha256 = Sha256Hex(encoded.file);
  // Kept and published as what they are made of.
  const auto hides = [](const storage::DatasetRecord& input) {
    return !input.private_to.empty() && !input.becomes_public;
  };
  record.becomes_public = !private_to.empty() && !hides(text) && !hides(tokenizer);
  record.expire_time = std::max(text.expire_time, tokenizer.expire_time);
  record.id = DatasetId(record.display_name, record.sha256,
                        record.becomes_public ? std::string() : private_to);
  record.bytes = encoded.file.size();
  record.owner = view.viewer.user;
  record.private_to = private_to;
  record.encoded_from = from;
  return encoded;
}

absl::Status StoreEncoded(const Backend& backend, const EncodedText& encoded) {
  if (encoded.file.empty()) return absl::OkStatus();
  const storage::DatasetRecord& record = encoded.record;
  RETURN_IF_ERROR(CheckQuota(backend, record.owner, {0, record.bytes}));
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(backend.store));
  ASSIGN_OR_RETURN(auto writer, blobs->Create());
  RETURN_IF_ERROR(writer->Append(encoded.file));
  ASSIGN_OR_RETURN(const auto pin, writer->Publish(record.sha256));
  ASSIGN_OR_RETURN(const auto added, backend.store->AddDataset(record));
  return backend.store->KeepCounts(DatasetKey(added), analysis::CountsOf(encoded.facts));
}

}  // namespace ablate::submit
