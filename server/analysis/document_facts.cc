#include "server/analysis/document_facts.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace ablate::analysis {
namespace {

constexpr uint64_t kInspectedBytes = 4 << 20;  // at once

// Returns the error if stored data is missing or has changed since it was checked on upload.
absl::Status CannotRead(const storage::DatasetRecord& dataset, const absl::Status& why) {
  return absl::DataLossError(
      absl::StrCat("the text of data set ", dataset.id, " can't be read: ", why.message()));
}

// Formats lengths for the store: "72 3:12 4:80 72:1" is the longest, then LENGTH:DOCUMENTS.
std::string LengthsText(const engine::DocumentFacts& facts) {
  std::string text = absl::StrCat(facts.longest);
  for (size_t length = 0; length < facts.lengths.size(); ++length) {
    if (facts.lengths[length] == 0) continue;
    absl::StrAppend(&text, " ", length, ":", facts.lengths[length]);
  }
  return text;
}

// Sets longest and lengths; returns false if the text has another form.
bool ReadLengths(const std::string& text, engine::DocumentFacts* facts) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (!absl::SimpleAtoi(words[0], &facts->longest)) return false;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(words[i], ':');
    size_t length = 0;
    uint64_t count = 0;
    const bool valid = absl::SimpleAtoi(parts.first, &length) &&
                       length <= engine::DocumentFacts::kCountedLength &&
                       absl::SimpleAtoi(parts.second, &count);
    if (!valid) return false;
    if (length >= facts->lengths.size()) facts->lengths.resize(length + 1);
    facts->lengths[length] = count;
  }
  return true;
}

absl::StatusOr<engine::DocumentFacts> KeptFacts(storage::Store* store,
                                                const storage::DatasetRecord& dataset) {
  ASSIGN_OR_RETURN(const storage::DatasetCounts kept, store->Counts(DatasetKey(dataset)));
  engine::DocumentFacts facts;
  if (!ReadLengths(kept.document_lengths, &facts)) facts = {};
  facts.documents = dataset.documents;
  facts.characters = dataset.characters;
  facts.code_points = kept.code_points;
  facts.line_ends = kept.line_ends;
  return facts;
}

bool HasLengths(const engine::DocumentFacts& facts) { return facts.longest > 0; }
bool HasAll(const engine::DocumentFacts& facts) {
  return HasLengths(facts) && facts.code_points > 0;
}

// Returns the stored facts if they suffice; otherwise counts and stores them.
absl::StatusOr<engine::DocumentFacts> KnownOrCounted(
    storage::Store* store, const storage::DatasetRecord& dataset,
    bool (*enough)(const engine::DocumentFacts& facts)) {
  absl::StatusOr<engine::DocumentFacts> facts = KeptFacts(store, dataset);
  if (!facts.ok() || enough(*facts) || store->blobs() == nullptr) return facts;
  const auto pin = store->blobs()->Find(dataset.sha256);
  if (!pin.ok()) return CannotRead(dataset, pin.status());
  facts = InspectBlob(store->blobs(), **pin);
  if (!facts.ok()) return CannotRead(dataset, facts.status());
  // If they can't be stored they are counted again the next time.
  store->KeepCounts(DatasetKey(dataset), CountsOf(*facts)).IgnoreError();
  return facts;
}

}  // namespace

absl::StatusOr<engine::DocumentFacts> InspectBlob(storage::Blobs* blobs,
                                                  const storage::Blobs::Pin& blob) {
  engine::DocumentInspector inspector;
  for (uint64_t at = 0; at < blob.size(); at += kInspectedBytes) {
    ASSIGN_OR_RETURN(const auto piece, blobs->Read(blob.sha256(), at, kInspectedBytes));
    if (const absl::Status added = inspector.Add(piece); !added.ok()) return added;
  }
  return inspector.Finish();
}

storage::DatasetCounts CountsOf(const engine::DocumentFacts& facts) {
  return {LengthsText(facts), facts.code_points, facts.line_ends};
}

absl::StatusOr<uint64_t> TextBytesOf(storage::Store* store, const storage::DatasetRecord& dataset) {
  if (dataset.kind != DatasetKind::kTagged) return 0;
  ASSIGN_OR_RETURN(const auto counts, store->Counts(DatasetKey(dataset)));
  return counts.code_points;
}

absl::StatusOr<engine::DocumentFacts> FactsOf(storage::Store* store,
                                              const storage::DatasetRecord& dataset, bool as_text) {
  // Those of a file that isn't plain text are always stored.
  if (dataset.kind != DatasetKind::kText) return KeptFacts(store, dataset);
  return KnownOrCounted(store, dataset, as_text ? HasAll : HasLengths);
}

}  // namespace ablate::analysis
