#include "server/analysis/sampled_models.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/analysis/subjects.h"
#include "server/config/fields.h"
#include "server/config/model_spec.h"
#include "server/lookup/errors.h"

namespace ablate::analysis {
namespace {

constexpr char kTokenizerField[] = "tokenizer";

absl::StatusOr<v1::RunSpec> SpecOfRunWithText(const storage::RunRecord& run) {
  ASSIGN_OR_RETURN(v1::RunSpec spec, SpecOf(run));
  RETURN_IF_ERROR(CheckTrainsModel(run.id, spec));
  if (!spec::DatasetOf(spec.spec().task()).path.empty()) return spec;
  return lookup::WithReason(absl::FailedPreconditionError(absl::StrCat(
                                "run ", run.id,
                                " has no text to generate: the tokens of its task are numbers; "
                                "expected a run of a documents or text task")),
                            "TASK_HAS_NO_TEXT");
}

// Checks that the tokens of a data set are tokens of the model.
absl::Status CheckTokenizerFits(const storage::DatasetRecord& tokenizer,
                                const storage::ModelRecord& model) {
  const std::string name = lookup::DatasetName(tokenizer.id);
  if (tokenizer.kind != DatasetKind::kTokenizer && tokenizer.kind != DatasetKind::kTokens) {
    const bool files = tokenizer.kind == DatasetKind::kFiles;
    return lookup::InvalidField(kTokenizerField,
                                absl::StrCat(name, files ? " holds files" : " is a text"),
                                "a tokenizer, or tokens");
  }
  if (tokenizer.characters <= model.vocabulary) return absl::OkStatus();
  const std::string most = text::Grouped(model.vocabulary);
  return lookup::InvalidField(
      kTokenizerField,
      absl::StrCat(name, " has a vocabulary of ", text::Grouped(tokenizer.characters), ", but ",
                   lookup::ModelName(model.name), " has one of ", most),
      absl::StrCat("the model's tokenizer, of at most ", most, " tokens"));
}

// Returns the spec of a run that begins with the model and doesn't train it.
absl::StatusOr<v1::RunSpec> SpecOfImported(const storage::ModelRecord& model,
                                           const storage::DatasetRecord& tokenizer) {
  ASSIGN_OR_RETURN(v1::ModelSpec stored, spec::ReadStoredModel(model.spec));
  v1::RunSpec run;
  run.set_vocabulary(model.vocabulary);
  v1::BaseSpec& base = *run.mutable_spec();
  *base.mutable_model() = std::move(stored);
  base.mutable_task()->mutable_text()->set_dataset(tokenizer.id);
  base.mutable_task()->mutable_text()->set_tokenizer(spec::kStoredTokens);
  base.mutable_training()->set_device(v1::Device::cpu);
  spec::FillFields(&base);
  return run;
}

}  // namespace

absl::StatusOr<SampledModel> FindSampledRun(storage::Store* store, const std::string& run,
                                            std::optional<uint32_t> step) {
  ASSIGN_OR_RETURN(const auto record, store->GetRun(run));
  ASSIGN_OR_RETURN(auto spec, SpecOfRunWithText(record));
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(store, run, step));
  SampledModel model;
  model.run = lookup::RunName(run);
  model.step = checkpoint.step;
  model.spec = std::move(spec);
  model.checkpoint_blob = checkpoint.blob;
  model.dataset_blob = record.dataset_blob;
  model.parameters = record.parameters;
  return model;
}

absl::StatusOr<SampledModel> FindSampledImport(const lookup::View& view, absl::string_view model,
                                               absl::string_view tokenizer) {
  ASSIGN_OR_RETURN(const auto record, lookup::FindModel(view, model, "model"));
  ASSIGN_OR_RETURN(const auto dataset, lookup::FindDataset(view, tokenizer, kTokenizerField));
  RETURN_IF_ERROR(CheckTokenizerFits(dataset, record));
  ASSIGN_OR_RETURN(auto spec, SpecOfImported(record, dataset));
  SampledModel sampled;
  sampled.imported = lookup::ModelName(record.name);
  sampled.spec = std::move(spec);
  sampled.checkpoint_blob = record.sha256;
  sampled.dataset_blob = dataset.sha256;
  sampled.parameters = record.parameters;
  return sampled;
}

}  // namespace ablate::analysis
