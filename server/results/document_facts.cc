#include "server/results/document_facts.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ablate::results {
namespace {

constexpr uint64_t kInspectedBytes = 4 << 20;  // at once

// What is stored is missing or no longer what was checked when it came.
absl::Status CannotRead(const storage::DatasetRecord& dataset, const absl::Status& why) {
  return absl::DataLossError(
      absl::StrCat("the text of data set ", dataset.id, " can't be read: ", why.message()));
}

}  // namespace

absl::StatusOr<engine::DocumentFacts> InspectBlob(storage::Blobs* blobs,
                                                  const storage::Blobs::Pin& blob) {
  engine::DocumentInspector inspector;
  for (uint64_t at = 0; at < blob.size(); at += kInspectedBytes) {
    const auto piece = blobs->Read(blob.sha256(), at, kInspectedBytes);
    if (!piece.ok()) return piece.status();
    if (const absl::Status added = inspector.Add(*piece); !added.ok()) return added;
  }
  return inspector.Finish();
}

std::string LengthsText(const DocumentLengths& lengths) {
  std::string text = absl::StrCat(lengths.longest);
  for (size_t length = 0; length < lengths.counts.size(); ++length) {
    if (lengths.counts[length] == 0) continue;
    absl::StrAppend(&text, " ", length, ":", lengths.counts[length]);
  }
  return text;
}

DocumentLengths ReadLengths(const std::string& text) {
  DocumentLengths lengths;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (!absl::SimpleAtoi(words[0], &lengths.longest)) return {};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(words[i], ':');
    size_t length = 0;
    uint64_t count = 0;
    const bool valid = absl::SimpleAtoi(parts.first, &length) &&
                       length <= engine::DocumentFacts::kCountedLength &&
                       absl::SimpleAtoi(parts.second, &count);
    if (!valid) return {};
    if (length >= lengths.counts.size()) lengths.counts.resize(length + 1);
    lengths.counts[length] = count;
  }
  return lengths;
}

absl::StatusOr<DocumentLengths> LengthsOf(storage::Store* store,
                                          const storage::DatasetRecord& dataset) {
  const auto kept = store->DocumentLengths(dataset.id);
  if (!kept.ok()) return kept.status();
  if (!kept->empty()) {
    DocumentLengths lengths = ReadLengths(*kept);
    if (lengths.longest > 0) return lengths;
  }
  if (store->blobs() == nullptr) return DocumentLengths();
  const auto pin = store->blobs()->Find(dataset.sha256);
  if (!pin.ok()) return CannotRead(dataset, pin.status());
  auto facts = InspectBlob(store->blobs(), **pin);
  if (!facts.ok()) return CannotRead(dataset, facts.status());
  DocumentLengths lengths{facts->longest, std::move(facts->lengths)};
  // If they can't be kept they are counted again the next time.
  store->KeepDocumentLengths(dataset.id, LengthsText(lengths)).IgnoreError();
  return lengths;
}

}  // namespace ablate::results
