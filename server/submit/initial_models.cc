#include "server/submit/initial_models.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/analysis/inputs.h"
#include "server/analysis/subjects.h"
#include "server/config/model_spec.h"
#include "storage/store.h"

namespace ablate::submit {
namespace {

constexpr char kModelFromField[] = "model_from";
constexpr absl::string_view kImportedPrefix = "models/";

absl::Status CheckUsable(const std::string& name, const std::string& model_private_to,
                         const std::string& private_to) {
  if (model_private_to.empty() || model_private_to == private_to) return absl::OkStatus();
  return absl::FailedPreconditionError(analysis::ForPrivateUse(name, model_private_to));
}

absl::StatusOr<spec::ModelFacts> FindImported(const lookup::View& view,
                                              const std::string& private_to,
                                              const std::string& name) {
  ASSIGN_OR_RETURN(const auto record, lookup::FindModel(view, name, kModelFromField));
  spec::ModelFacts facts;
  facts.name = lookup::ModelName(record.name);
  RETURN_IF_ERROR(CheckUsable(facts.name, record.private_to, private_to));
  ASSIGN_OR_RETURN(auto model, spec::ReadStoredModel(record.spec));
  facts.sha256 = record.sha256;
  facts.vocabulary = record.vocabulary;
  facts.model = std::move(model);
  return facts;
}

}  // namespace

absl::StatusOr<spec::ModelFacts> FindInitialModel(const lookup::View& view,
                                                  const std::string& private_to,
                                                  const std::string& name) {
  if (absl::StartsWith(name, kImportedPrefix)) return FindImported(view, private_to, name);
  const std::vector<std::string> parts =
      absl::StrSplit(absl::StripPrefix(name, "experiments/"), '/');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reflect::Quoted(reflect::ShortText(name)), " doesn't name a model"));
  }
  ASSIGN_OR_RETURN(const auto experiment, lookup::FindExperiment(view, parts[0], kModelFromField));
  ASSIGN_OR_RETURN(const auto run_id,
                   lookup::FindCellRun(view.store, experiment, parts[1], kModelFromField));
  ASSIGN_OR_RETURN(const auto run, view.store->GetRun(run_id));
  spec::ModelFacts facts;
  facts.name = absl::StrCat(experiment, "/", parts[1]);
  if (run.state != storage::RunState::kDone) {
    return absl::FailedPreconditionError(absl::StrCat(facts.name, " is not done"));
  }
  RETURN_IF_ERROR(CheckUsable(facts.name, run.private_to, private_to));
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(view.store, run_id, std::nullopt));
  ASSIGN_OR_RETURN(const auto spec, analysis::SpecOf(run));
  ASSIGN_OR_RETURN(const auto model, analysis::ModelOfRun(view.store, run_id));
  facts.sha256 = checkpoint.blob;
  facts.vocabulary = static_cast<uint32_t>(model.config.model.vocabulary);
  facts.model = spec.spec().model();
  return facts;
}

}  // namespace ablate::submit
