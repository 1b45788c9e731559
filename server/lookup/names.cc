#include "server/lookup/names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "grpcpp/server_context.h"
#include "proto/metadata.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/page.h"

namespace ablate::lookup {
namespace {

using reflect::Quoted;

constexpr uint32_t kShownCandidates = 5;
constexpr uint32_t kNearCandidates = 500;

using Ids = absl::StatusOr<std::vector<std::string>>;

// One kind of resource: the form of its names and how they are found.
struct Collection {
  absl::string_view singular, plural;
  absl::string_view allowed, allowed_whole;  // allowed names, in words, of FindId and FindWholeId
  absl::string_view reason;                  // ErrorInfo's reason if there is none
  absl::string_view partly;  // how a name that isn't a whole ID means a resource, in words
  bool (*is_id)(absl::string_view id);
  // Returns at most `limit` IDs that equal `id` or begin with it, the equal one first.
  Ids (*find)(const View& view, absl::string_view id, uint32_t limit);
  // Returns IDs that a wrong `id` may have meant.
  Ids (*near)(const View& view, absl::string_view id);
  // Returns the resources of this name, the one first that FindId takes it to mean; or is null.
  absl::StatusOr<std::vector<storage::NamedExperiment>> (*named)(const View& view,
                                                                 absl::string_view name) = nullptr;
};

// Returns true if `id` has only lower-case letters, digits and `others`.
bool IsMadeOf(absl::string_view id, absl::string_view others) {
  return !id.empty() && id.size() <= kMaxNameBytes &&
         std::all_of(id.begin(), id.end(), [others](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || absl::StrContains(others, c);
         });
}

bool IsRunId(absl::string_view id) { return IsMadeOf(id, "."); }

// Finds by ID or by a display name that only one data set has.
Ids FindDatasetIds(const View& view, absl::string_view id, uint32_t) {
  const absl::StatusOr<storage::DatasetRecord> dataset = view.store->FindDataset(view.viewer, id);
  if (absl::IsNotFound(dataset.status())) return std::vector<std::string>();
  if (!dataset.ok()) return dataset.status();
  return std::vector<std::string>{dataset->id};
}

Ids DatasetIdsAndNames(const View& view, absl::string_view) {
  ASSIGN_OR_RETURN(const auto all, view.store->ListDatasets(view.viewer, "", kNearCandidates));
  std::vector<std::string> names;
  for (const storage::DatasetRecord& one : all) {
    names.push_back(one.id);
    names.push_back(one.display_name);
  }
  return names;
}

constexpr Collection kExperiments = {
    "experiment",
    "experiments",
    "experiments/ID, an ID, a name or the beginning of an ID (lower-case letters, digits and "
    "hyphens)",
    "experiments/ID or a whole ID (lower-case letters, digits and hyphens)",
    "EXPERIMENT_NOT_FOUND",
    "begins with it",
    [](absl::string_view id) { return IsMadeOf(id, "-"); },
    [](const View& view, absl::string_view id, uint32_t limit) {
      return view.store->FindExperiments(view.viewer, id, limit);
    },
    [](const View& view, absl::string_view) {
      return view.store->ExperimentIdsAndNames(view.viewer, kNearCandidates);
    },
    [](const View& view, absl::string_view name) {
      return view.store->ExperimentsNamed(view.viewer, name, 2);
    }};

constexpr Collection kRuns = {
    "run",
    "runs",
    "runs/ID, an ID or the beginning of one (lower-case letters, digits and a dot)",
    "runs/ID or a whole ID (lower-case letters, digits and a dot)",
    "RUN_NOT_FOUND",
    "begins with it",
    IsRunId,
    [](const View& view, absl::string_view id, uint32_t limit) {
      return view.store->FindRuns(view.viewer, id, limit);
    },
    [](const View& view, absl::string_view id) {
      return view.store->FindRuns(view.viewer, id.substr(0, 4), kNearCandidates);
    }};

constexpr Collection kAnalyses = {
    "analysis",
    "analyses",
    "analyses/ID, an ID or the beginning of one (lower-case letters and digits)",
    "analyses/ID or a whole ID (lower-case letters and digits)",
    "ANALYSIS_NOT_FOUND",
    "begins with it",
    [](absl::string_view id) { return IsMadeOf(id, ""); },
    [](const View& view, absl::string_view id, uint32_t limit) {
      return view.store->FindAnalyses(view.viewer, id, limit);
    },
    [](const View& view, absl::string_view id) {
      return view.store->FindAnalyses(view.viewer, id.substr(0, 4), kNearCandidates);
    }};

constexpr Collection kDatasets = {"data set",
                                  "datasets",
                                  "datasets/ID, an ID or a display name",
                                  "datasets/ID or a whole ID",
                                  "DATASET_NOT_FOUND",
                                  "has that display name",
                                  [](absl::string_view id) {
                                    return text::IsPrintable(id, kMaxNameBytes) &&
                                           !absl::StrContains(id, '/');
                                  },
                                  FindDatasetIds,
                                  DatasetIdsAndNames};

// Finds a public model of exactly this name, or else one that FindModel finds.
Ids FindModelNames(const View& view, absl::string_view name, uint32_t) {
  for (const storage::Viewer& viewer : {storage::Viewer(), view.viewer}) {
    const auto model = view.store->FindModel(viewer, name);
    if (model.ok()) return std::vector<std::string>{model->name};
    if (!absl::IsNotFound(model.status())) return model.status();
  }
  return std::vector<std::string>();
}

Ids ModelNames(const View& view, absl::string_view) {
  ASSIGN_OR_RETURN(const auto all, view.store->ListModels(view.viewer, "", kNearCandidates));
  std::vector<std::string> names;
  for (const storage::ModelRecord& one : all) names.push_back(one.name);
  return names;
}

constexpr Collection kModels = {"model",
                                "models",
                                "models/NAME or a name",
                                "models/NAME or a whole name",
                                "MODEL_NOT_FOUND",
                                "is what you call so",
                                [](absl::string_view id) {
                                  return text::IsPrintable(id, kMaxNameBytes) &&
                                         !absl::StrContains(id, '/');
                                },
                                FindModelNames,
                                ModelNames};

absl::Status NotFound(const View& view, const Collection& collection, absl::string_view id) {
  std::string message = absl::StrCat("there is no ", collection.singular, " ", Quoted(id));
  if (const Ids near = collection.near(view, id); near.ok()) {
    absl::StrAppend(&message, reflect::DidYouMean(id, *near));
  }
  return WithReason(absl::NotFoundError(message), collection.reason);
}

// Returns the ID in `name` if it has the right form; otherwise an error with `allowed`.
absl::StatusOr<absl::string_view> IdIn(const Collection& collection, absl::string_view name,
                                       absl::string_view field, absl::string_view allowed) {
  absl::string_view id = name;
  absl::ConsumePrefix(&id, absl::StrCat(collection.plural, "/"));
  if (collection.is_id(id)) return id;
  return InvalidField(
      field,
      name.empty() ? "missing"
                   : absl::StrCat(Quoted(name), " isn't a valid ", collection.singular, " name"),
      allowed);
}

// Returns the ID of the newest with this name that isn't archived, or is if all are; empty if none
// has the name, or the collection has no names. If lists have several such, the call's metadata
// says which is meant.
absl::StatusOr<std::string> FindNamed(const View& view, const Collection& collection,
                                      absl::string_view name) {
  if (collection.named == nullptr) return "";
  ASSIGN_OR_RETURN(const auto named, collection.named(view, name));
  if (named.empty()) return "";
  const std::string& id = named.front().id;
  const bool several = named.size() > 1 && named.front().archived == named[1].archived;
  if (several && view.call != nullptr) {
    view.call->AddTrailingMetadata(kNewestOf, absl::StrCat(name, " ", id));
  }
  return id;
}

absl::StatusOr<std::string> FindId(const View& view, const Collection& collection,
                                   absl::string_view name, absl::string_view field) {
  ASSIGN_OR_RETURN(const auto id, IdIn(collection, name, field, collection.allowed));
  Ids found = collection.find(view, id, kShownCandidates + 1);
  if (!found.ok()) return found.status();
  if (!found->empty() && found->front() == id) return found->front();
  const auto named = FindNamed(view, collection, id);
  if (!named.ok() || !named->empty()) return named;
  if (found->empty()) return NotFound(view, collection, id);
  if (found->size() == 1) return found->front();
  const bool more = found->size() > kShownCandidates;
  if (more) found->pop_back();
  const std::string candidates = absl::StrCat(absl::StrJoin(*found, ", "), more ? " and more" : "");
  return InvalidFields(
      {{std::string(field), std::string(name), candidates,
        absl::StrCat(field, ": ", Quoted(name), " matches several ", collection.plural, ": ",
                     candidates, ". Use a longer prefix")}});
}

// Finds whole IDs only and never completes one: a call that is sent twice must not reach what is
// left after its first target is gone.
absl::StatusOr<std::string> FindWholeId(const View& view, const Collection& collection,
                                        absl::string_view name, absl::string_view field) {
  ASSIGN_OR_RETURN(const auto id, IdIn(collection, name, field, collection.allowed_whole));
  const Ids found = collection.find(view, id, 1);
  if (!found.ok()) return found.status();
  if (found->empty()) return NotFound(view, collection, id);
  if (found->front() == id) return found->front();
  return WithReason(absl::NotFoundError(absl::StrCat("there is no ", collection.singular, " ",
                                                     Quoted(id), ", but ", found->front(), " ",
                                                     collection.partly, ". Give the whole ID")),
                    collection.reason);
}

}  // namespace

absl::StatusOr<std::string> FindExperiment(const View& view, absl::string_view name,
                                           absl::string_view field) {
  return FindId(view, kExperiments, name, field);
}

absl::StatusOr<std::string> FindRun(const View& view, absl::string_view name,
                                    absl::string_view field) {
  return FindId(view, kRuns, name, field);
}

absl::StatusOr<std::string> FindAnalysis(const View& view, absl::string_view name,
                                         absl::string_view field) {
  return FindId(view, kAnalyses, name, field);
}

absl::StatusOr<std::string> FindCellRun(storage::Store* store, const std::string& experiment,
                                        absl::string_view cell, absl::string_view field) {
  if (!text::IsPrintable(cell, kMaxNameBytes)) {
    return InvalidField(
        field, cell.empty() ? "missing" : absl::StrCat(Quoted(cell), " isn't a valid cell name"),
        "a cell of the experiment, such as pre-lr0.01-s42");
  }
  std::vector<std::string> names;
  std::string run;
  RETURN_IF_ERROR(VisitCells(store, experiment, [&](const std::vector<storage::CellRecord>& page) {
    for (const storage::CellRecord& record : page) {
      if (record.name == cell) run = record.run;
      names.push_back(record.name);
    }
    return run.empty();
  }));
  if (!run.empty()) return run;
  return WithReason(
      absl::NotFoundError(absl::StrCat("experiment ", experiment, " has no cell ", Quoted(cell),
                                       reflect::DidYouMean(cell, names))),
      "CELL_NOT_FOUND");
}

absl::StatusOr<std::string> FindWholeExperiment(const View& view, absl::string_view name,
                                                absl::string_view field) {
  return FindWholeId(view, kExperiments, name, field);
}

absl::StatusOr<std::string> FindWholeAnalysis(const View& view, absl::string_view name,
                                              absl::string_view field) {
  return FindWholeId(view, kAnalyses, name, field);
}

absl::StatusOr<std::string> FindWholeDataset(const View& view, absl::string_view name,
                                             absl::string_view field) {
  return FindWholeId(view, kDatasets, name, field);
}

absl::StatusOr<std::string> FindWholeModel(const View& view, absl::string_view name,
                                           absl::string_view field) {
  return FindWholeId(view, kModels, name, field);
}

absl::StatusOr<storage::DatasetRecord> FindDataset(const View& view, absl::string_view name,
                                                   absl::string_view field) {
  ASSIGN_OR_RETURN(const auto id, IdIn(kDatasets, name, field, kDatasets.allowed));
  absl::StatusOr<storage::DatasetRecord> dataset = view.store->FindDataset(view.viewer, id);
  return absl::IsNotFound(dataset.status()) ? NotFound(view, kDatasets, id) : std::move(dataset);
}

absl::StatusOr<storage::ModelRecord> FindModel(const View& view, absl::string_view name,
                                               absl::string_view field) {
  ASSIGN_OR_RETURN(const auto id, IdIn(kModels, name, field, kModels.allowed));
  absl::StatusOr<storage::ModelRecord> model = view.store->FindModel(view.viewer, id);
  return absl::IsNotFound(model.status()) ? NotFound(view, kModels, id) : std::move(model);
}

absl::Status CheckChosenName(absl::string_view name, absl::string_view kind,
                             absl::string_view field) {
  const bool valid = !name.empty() && name.size() <= kMaxDisplayNameBytes &&
                     absl::ascii_isalnum(name[0]) &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                     });
  if (valid) return absl::OkStatus();
  return InvalidField(
      field,
      name.empty() ? "missing" : absl::StrCat(Quoted(name), " isn't a valid ", kind, " name"),
      absl::StrCat("1 to ", kMaxDisplayNameBytes,
                   " letters, digits, '.', '_' or '-', starting with a letter or digit"));
}

absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view name,
                                                   absl::string_view field) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  CheckpointName parsed;
  const bool fits = parts.size() == 4 && parts[0] == "runs" && IsRunId(parts[1]) &&
                    parts[2] == "checkpoints" && absl::SimpleAtoi(parts[3], &parsed.step) &&
                    absl::StrCat(parsed.step) == parts[3];
  if (!fits) {
    return InvalidField(field, absl::StrCat(Quoted(name), " isn't a valid artifact name"),
                        "runs/{run}/checkpoints/{step}");
  }
  parsed.run = std::string(parts[1]);
  return parsed;
}

absl::StatusOr<storage::ArtifactRecord> FindCheckpoint(storage::Store* store,
                                                       const std::string& run,
                                                       std::optional<uint32_t> step) {
  ASSIGN_OR_RETURN(const auto artifacts, store->ListArtifacts(run));
  if (!step && !artifacts.empty()) return artifacts.back();  // in ascending order of step
  if (!step) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "run ", run, " has no checkpoint. Wait for its end, or set training.checkpoints")),
        "NO_CHECKPOINT");
  }
  std::string steps;
  for (const storage::ArtifactRecord& artifact : artifacts) {
    if (artifact.step == *step) return artifact;
    absl::StrAppend(&steps, steps.empty() ? "; it has steps " : ", ", artifact.step);
  }
  return WithReason(
      absl::NotFoundError(absl::StrCat("run ", run, " has no checkpoint of step ", *step, steps)),
      "ARTIFACT_NOT_FOUND");
}

std::string ExperimentName(absl::string_view id) { return absl::StrCat("experiments/", id); }
std::string RunName(absl::string_view id) { return absl::StrCat("runs/", id); }
std::string AnalysisName(absl::string_view id) { return absl::StrCat("analyses/", id); }

std::string DatasetName(absl::string_view id) { return absl::StrCat("datasets/", id); }
std::string ModelName(absl::string_view id) { return absl::StrCat("models/", id); }
std::string CheckpointNameOf(absl::string_view run, uint32_t step) {
  return absl::StrCat("runs/", run, "/checkpoints/", step);
}

}  // namespace ablate::lookup
