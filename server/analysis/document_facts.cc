#include "server/analysis/document_facts.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ablate::analysis {
namespace {

constexpr uint64_t kInspectedBytes = 4 << 20;  // at once

// What is stored is missing or no longer what was checked when it came.
absl::Status CannotRead(const storage::DatasetRecord& dataset, const absl::Status& why) {
  return absl::DataLossError(
      absl::StrCat("the text of data set ", dataset.id, " can't be read: ", why.message()));
}

absl::StatusOr<engine::DocumentFacts> KeptFacts(storage::Store* store,
                                                const storage::DatasetRecord& dataset) {
  const absl::StatusOr<storage::DatasetCounts> kept = store->Counts(dataset.id);
  if (!kept.ok()) return kept.status();
  DocumentLengths lengths = ReadLengths(kept->document_lengths);
  engine::DocumentFacts facts;
  facts.documents = dataset.documents;
  facts.characters = dataset.characters;
  facts.longest = lengths.longest;
  facts.lengths = std::move(lengths.counts);
  facts.code_points = kept->code_points;
  facts.line_ends = kept->line_ends;
  return facts;
}

bool HasLengths(const engine::DocumentFacts& facts) { return facts.longest > 0; }
bool HasAll(const engine::DocumentFacts& facts) {
  return HasLengths(facts) && facts.code_points > 0;
}

// What is kept of a data set if that is enough, else what its text has, which is kept then.
absl::StatusOr<engine::DocumentFacts> KnownOrCounted(
    storage::Store* store, const storage::DatasetRecord& dataset,
    bool (*enough)(const engine::DocumentFacts& facts)) {
  absl::StatusOr<engine::DocumentFacts> facts = KeptFacts(store, dataset);
  if (!facts.ok() || enough(*facts) || store->blobs() == nullptr) return facts;
  const auto pin = store->blobs()->Find(dataset.sha256);
  if (!pin.ok()) return CannotRead(dataset, pin.status());
  facts = InspectBlob(store->blobs(), **pin);
  if (!facts.ok()) return CannotRead(dataset, facts.status());
  // If they can't be kept they are counted again the next time.
  store->KeepCounts(dataset.id, CountsOf(*facts)).IgnoreError();
  return facts;
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

storage::DatasetCounts CountsOf(const engine::DocumentFacts& facts) {
  return {LengthsText({facts.longest, facts.lengths}), facts.code_points, facts.line_ends};
}

absl::StatusOr<DocumentLengths> LengthsOf(storage::Store* store,
                                          const storage::DatasetRecord& dataset) {
  auto facts = FactsOf(store, dataset, /*as_text=*/false);
  if (!facts.ok()) return facts.status();
  return DocumentLengths{facts->longest, std::move(facts->lengths)};
}

absl::StatusOr<engine::DocumentFacts> FactsOf(storage::Store* store,
                                              const storage::DatasetRecord& dataset, bool as_text) {
  return KnownOrCounted(store, dataset, as_text ? HasAll : HasLengths);
}

}  // namespace ablate::analysis
