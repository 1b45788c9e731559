// Resource names as people give them: `experiments/ID`, a bare ID, or, where nothing is changed,
// the beginning of one.
#include "server/service/names.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"
#include "server/service/limits.h"
#include "server/service/page.h"
#include "text/utf8.h"

namespace ablate::service {
namespace {

using reflect::Quoted;

constexpr uint32_t kShownCandidates = 5;
constexpr uint32_t kNearCandidates = 500;

using Ids = absl::StatusOr<std::vector<std::string>>;

// One kind of resource: how its names look and how they are found.
struct Collection {
  absl::string_view singular, plural;
  absl::string_view characters;  // allowed in an id beside lower-case letters and digits
  absl::string_view looks;       // of an id, in words
  absl::string_view reason;      // of NOT_FOUND
  std::function<Ids(absl::string_view prefix, uint32_t limit)> find;
  std::function<Ids(absl::string_view id)> near;  // what a wrong id may have meant
};

Collection Experiments(storage::Store* store) {
  return {
      "experiment",
      "experiments",
      "-",
      "lower-case letters, digits and hyphens",
      "EXPERIMENT_NOT_FOUND",
      [store](absl::string_view prefix, uint32_t limit) {
        return store->FindExperiments(prefix, limit);
      },
      [store](absl::string_view) -> Ids { return store->FindExperiments("", kNearCandidates); }};
}

Collection Runs(storage::Store* store) {
  return {
      "run",
      "runs",
      ".",
      "lower-case letters, digits and a dot",
      "RUN_NOT_FOUND",
      [store](absl::string_view prefix, uint32_t limit) { return store->FindRuns(prefix, limit); },
      [store](absl::string_view id) -> Ids {
        return store->FindRuns(id.substr(0, 4), kNearCandidates);
      }};
}

bool IsId(absl::string_view id, absl::string_view characters) {
  return !id.empty() && id.size() <= kMostNameBytes &&
         std::all_of(id.begin(), id.end(), [characters](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  absl::StrContains(characters, c);
         });
}

absl::Status NotFound(const Collection& collection, absl::string_view id) {
  std::string message = absl::StrCat("there is no ", collection.singular, " ", Quoted(id));
  if (const Ids near = collection.near(id); near.ok()) {
    const std::string nearest = reflect::Nearest(id, *near);
    if (!nearest.empty()) absl::StrAppend(&message, "; did you mean ", nearest, "?");
  }
  return WithReason(absl::NotFoundError(message), collection.reason);
}

constexpr absl::string_view kOrBeginning = ", an ID or the beginning of one";
constexpr absl::string_view kWhole = " or a whole ID";

// `forms` are allowed beside the full name.
absl::Status Malformed(absl::string_view field, absl::string_view name,
                       const Collection& collection, absl::string_view forms) {
  return InvalidField(field,
                      name.empty()
                          ? "it is missing"
                          : absl::StrCat(Quoted(name), " is no ", collection.singular, "'s name"),
                      absl::StrCat(collection.plural, "/ID", forms, " (", collection.looks, ")"));
}

absl::StatusOr<std::string> Find(const Collection& collection, absl::string_view name,
                                 absl::string_view field) {
  absl::string_view id = name;
  absl::ConsumePrefix(&id, absl::StrCat(collection.plural, "/"));
  if (!IsId(id, collection.characters)) return Malformed(field, name, collection, kOrBeginning);
  Ids found = collection.find(id, kShownCandidates + 1);
  if (!found.ok()) return found.status();
  if (found->empty()) return NotFound(collection, id);
  if (found->size() == 1 || std::find(found->begin(), found->end(), id) != found->end()) {
    return found->size() == 1 ? std::move(found->front()) : std::string(id);
  }
  const bool more = found->size() > kShownCandidates;
  if (more) found->pop_back();
  return InvalidField(field, absl::StrCat(Quoted(name), " begins several ", collection.plural),
                      absl::StrCat(absl::StrJoin(*found, ", "), more ? " and more" : ""));
}

// Never completes an ID: a call that is sent twice must not reach what is left beside its first
// target.
absl::StatusOr<std::string> FindWhole(const Collection& collection, absl::string_view name,
                                      absl::string_view field) {
  absl::string_view id = name;
  absl::ConsumePrefix(&id, absl::StrCat(collection.plural, "/"));
  if (!IsId(id, collection.characters)) return Malformed(field, name, collection, kWhole);
  const Ids found = collection.find(id, 1);  // in order, so that `id` itself would be the first
  if (!found.ok()) return found.status();
  if (found->empty()) return NotFound(collection, id);
  if (found->front() == id) return found->front();
  return WithReason(absl::NotFoundError(absl::StrCat("there is no ", collection.singular, " ",
                                                     Quoted(id), ", but ", found->front(),
                                                     " begins so: the whole ID is needed here")),
                    collection.reason);
}

// The ID in `name`, and whether it can be a data set's.
absl::StatusOr<std::string> DatasetIdIn(absl::string_view name, absl::string_view field,
                                        absl::string_view allowed) {
  absl::string_view id = name;
  absl::ConsumePrefix(&id, "datasets/");
  if (text::IsPrintable(id, kMostNameBytes) && !absl::StrContains(id, '/')) return std::string(id);
  return InvalidField(
      field, name.empty() ? "it is missing" : absl::StrCat(Quoted(name), " is no data set's name"),
      allowed);
}

absl::Status NoDataset(storage::Store* store, absl::string_view id) {
  std::string message = absl::StrCat("there is no data set ", Quoted(id));
  if (const auto all = store->ListDatasets("", kNearCandidates); all.ok()) {
    std::vector<std::string> names;
    for (const storage::DatasetRecord& one : *all) {
      names.push_back(one.id);
      names.push_back(one.display_name);
    }
    const std::string nearest = reflect::Nearest(id, names);
    if (!nearest.empty()) absl::StrAppend(&message, "; did you mean ", nearest, "?");
  }
  return WithReason(absl::NotFoundError(message), "DATASET_NOT_FOUND");
}

}  // namespace

absl::StatusOr<std::string> FindExperiment(storage::Store* store, absl::string_view name,
                                           absl::string_view field) {
  return Find(Experiments(store), name, field);
}

absl::StatusOr<std::string> FindRun(storage::Store* store, absl::string_view name,
                                    absl::string_view field) {
  return Find(Runs(store), name, field);
}

absl::StatusOr<std::string> FindCellRun(storage::Store* store, const std::string& experiment,
                                        absl::string_view cell, absl::string_view field) {
  if (!text::IsPrintable(cell, kMostNameBytes)) {
    return InvalidField(
        field, cell.empty() ? "it is missing" : absl::StrCat(Quoted(cell), " is no cell's name"),
        "a cell of the experiment, such as pre-lr0.01-s42");
  }
  std::vector<std::string> names;
  while (true) {
    const auto page =
        store->ListCells(experiment, static_cast<uint32_t>(names.size()), kCellsAtOnce);
    if (!page.ok()) return page.status();
    for (const storage::CellRecord& record : *page) {
      if (record.name == cell) return record.run;
      names.push_back(record.name);
    }
    if (page->size() < kCellsAtOnce) break;
  }
  const std::string nearest = reflect::Nearest(cell, names);
  return WithReason(absl::NotFoundError(absl::StrCat(
                        "experiment ", experiment, " has no cell ", Quoted(cell),
                        nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"))),
                    "CELL_NOT_FOUND");
}

absl::StatusOr<std::string> FindWholeExperiment(storage::Store* store, absl::string_view name,
                                                absl::string_view field) {
  return FindWhole(Experiments(store), name, field);
}

absl::StatusOr<storage::DatasetRecord> FindDataset(storage::Store* store, absl::string_view name,
                                                   absl::string_view field) {
  const auto id = DatasetIdIn(name, field, "datasets/ID, an ID or a display name");
  if (!id.ok()) return id.status();
  absl::StatusOr<storage::DatasetRecord> dataset = store->FindDataset(*id);
  return absl::IsNotFound(dataset.status()) ? NoDataset(store, *id) : std::move(dataset);
}

absl::StatusOr<std::string> FindWholeDataset(storage::Store* store, absl::string_view name,
                                             absl::string_view field) {
  const auto id = DatasetIdIn(name, field, "datasets/ID or a whole ID");
  if (!id.ok()) return id.status();
  const absl::StatusOr<storage::DatasetRecord> dataset = store->FindDataset(*id);
  if (absl::IsNotFound(dataset.status())) return NoDataset(store, *id);
  if (!dataset.ok()) return dataset.status();
  if (dataset->id == *id) return dataset->id;
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no data set ", Quoted(*id), ", but ", dataset->id,
                                       " has that display name: the whole ID is needed here")),
      "DATASET_NOT_FOUND");
}

absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view name,
                                                   absl::string_view field) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  CheckpointName parsed;
  const bool fits = parts.size() == 4 && parts[0] == "runs" && IsId(parts[1], ".") &&
                    parts[2] == "checkpoints" && absl::SimpleAtoi(parts[3], &parsed.step) &&
                    absl::StrCat(parsed.step) == parts[3];
  if (!fits) {
    return InvalidField(field, absl::StrCat(Quoted(name), " is no artifact's name"),
                        "runs/{run}/checkpoints/{step}");
  }
  parsed.run = std::string(parts[1]);
  return parsed;
}

std::string ExperimentName(absl::string_view id) { return absl::StrCat("experiments/", id); }
std::string RunName(absl::string_view id) { return absl::StrCat("runs/", id); }
std::string DatasetName(absl::string_view id) { return absl::StrCat("datasets/", id); }
std::string CheckpointNameOf(absl::string_view run, uint32_t step) {
  return absl::StrCat("runs/", run, "/checkpoints/", step);
}

}  // namespace ablate::service
