#include "server/analysis/inputs.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/analysis/document_facts.h"
#include "server/engine/task.h"
#include "server/experiment/analysis.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"

namespace ablate::analysis {
namespace {

constexpr uint64_t kMostBytesHere = 8 << 20;

// Returns true if the data that a model by itself reads could be refused.
bool DependsOnData(const engine::AnalysisOptions& options, const v1::AnalysisInputs& inputs,
                   const engine::ModelConfig& model) {
  const engine::AnalysisKind& kind = engine::KindOf(options);
  if (kind.check_data != nullptr) return true;
  if (kind.default_tokens == 0) return false;
  if (!inputs.prompt().empty() || !inputs.dataset().empty()) return true;
  constexpr engine::SequenceSummary kSeveral = {2, 1, 2};
  return kind.check_read != nullptr && !kind.check_read(options, model, kSeveral).empty();
}

// Loads data sets on demand, each once.
class SmallData {
 public:
  // `blobs` and `unstored` must outlive it.
  SmallData(storage::Blobs* blobs, const UnstoredData& unstored)
      : blobs_(blobs), unstored_(unstored) {}

  // Returns the bytes of a blob; null if there are too many or they can't be read.
  std::shared_ptr<const std::string> Bytes(const std::string& sha256) const {
    if (const auto made = unstored_.find(sha256); made != unstored_.end()) {
      if (made->second.size() > kMostBytesHere) return nullptr;
      return std::make_shared<const std::string>(made->second);
    }
    const auto pin = blobs_->Find(sha256);
    if (!pin.ok() || (*pin)->size() > kMostBytesHere) return nullptr;
    auto bytes = blobs_->Read(sha256, 0, (*pin)->size());
    if (!bytes.ok()) return nullptr;
    return std::make_shared<const std::string>(*std::move(bytes));
  }

  // Puts the data of a task into it, if it has any. Returns false on failure.
  bool Fill(const std::string& sha256, engine::TaskConfig* task) {
    const engine::TaskKind& kind = engine::KindOf(*task);
    if (kind.read == nullptr) return true;
    std::shared_ptr<const engine::TaskData>& data = read_[{kind.name, sha256}];
    if (data == nullptr) {
      const auto bytes = Bytes(sha256);
      if (bytes == nullptr) return false;
      auto read = kind.read(*bytes);
      if (!read.ok()) return false;
      data = *std::move(read);
    }
    kind.set_data(data, task);
    return true;
  }

 private:
  storage::Blobs* const blobs_;
  const UnstoredData& unstored_;
  std::map<std::pair<absl::string_view, std::string>, std::shared_ptr<const engine::TaskData>>
      read_;
};

// Returns what a worker would refuse of the inputs of these models (at least one); nothing if that
// can't be known here.
std::vector<engine::OptionProblem> FindWrong(const engine::AnalysisOptions& options,
                                             const v1::AnalysisInputs& inputs,
                                             const std::vector<AnalyzedModel>& models,
                                             SmallData* small) {
  std::vector<engine::RunConfig> configs;
  for (const AnalyzedModel& model : models) {
    configs.push_back(model.config);
    if (!small->Fill(model.data_blob, &configs.back().task)) return {};
  }
  engine::AnalysisInputs what;
  what.tokens = inputs.tokens();
  what.prompt = inputs.prompt();
  what.documents = inputs.documents();
  if (!inputs.dataset().empty()) {
    what.text = small->Bytes(inputs.dataset_sha256());
    if (what.text == nullptr) return {};
  }
  std::vector<const engine::RunConfig*> read;
  for (const engine::RunConfig& config : configs) read.push_back(&config);
  auto wrong = engine::CheckRead(options, what, read);
  return wrong.ok() ? *std::move(wrong) : std::vector<engine::OptionProblem>();
}

// Adds each problem that several subjects share once, for the first, with the number of others.
void AddOnce(const std::vector<engine::OptionProblem>& wrong, spec::Problems* problems) {
  std::map<std::pair<std::string, std::string>, size_t> alike;
  for (const engine::OptionProblem& each : wrong) ++alike[{each.complaint, each.allowed}];
  for (const engine::OptionProblem& each : wrong) {
    const size_t count = std::exchange(alike[{each.complaint, each.allowed}], 0);
    if (count == 0) continue;
    const std::string more =
        count == 1 ? "" : absl::StrCat(count == 2 ? " (so does " : " (so do ", count - 1, " more)");
    problems->Add(each.field, each.value, absl::StrCat(each.complaint, more), each.allowed);
  }
}

// A run's inputs, except those that analyses replace: equal values mean equal inputs.
struct RunInputs {
  std::string task;
  int64_t context = 0;
  uint32_t seed = 0;  // determines what is held out

  bool operator<(const RunInputs& other) const {
    return std::tie(task, context, seed) < std::tie(other.task, other.context, other.seed);
  }
};

// Number of different inputs that are checked of one grid for one entry.
constexpr size_t kMostInputs = 100;

// Returns the problems of a resolved entry's inputs, for the first run of a grid that has any. The
// setting is set.
std::vector<engine::OptionProblem> FindWrongInGrid(const engine::AnalysisOptions& options,
                                                   const spec::AskedAnalysis& asked,
                                                   const spec::Resolution& resolution,
                                                   SmallData* small, std::string* setting) {
  if (resolution.configs.empty()) return {};
  const bool held_out = engine::KindOf(options).default_tokens > 0 &&
                        asked.inputs.prompt().empty() && asked.inputs.dataset().empty();
  const size_t seeds = resolution.cells.size() / resolution.configs.size();
  std::set<RunInputs> looked_at;
  for (size_t i = 0; i < resolution.configs.size(); ++i) {
    const engine::RunConfig& config = resolution.configs[i];
    if (spec::AnyBad(resolution.bad[i], {"model", "task"})) continue;
    // Most kinds read no data and end here.
    if (!DependsOnData(options, asked.inputs, config.model)) continue;
    if (!spec::CanBeAskedOf(asked, options, config)) continue;
    const spec::ResolvedCell* const cells = &resolution.cells[i * seeds];
    const std::string task = cells->run.spec().task().SerializeAsString();
    for (size_t seed = 0; seed < (held_out ? seeds : 1); ++seed) {
      if (looked_at.size() >= kMostInputs) return {};
      AnalyzedModel model{config, cells->dataset_sha256};
      model.config.seed = cells[seed].seed;
      const uint32_t order = held_out ? model.config.seed : 0;
      if (!looked_at.insert({task, config.model.context, order}).second) continue;
      auto wrong = FindWrong(options, asked.inputs, {std::move(model)}, small);
      if (wrong.empty()) continue;
      *setting = spec::NameOfSetting(resolution.parameters[i]);
      for (engine::OptionProblem& problem : wrong) {
        if (held_out) absl::StrAppend(&problem.complaint, ", with seed ", order);
      }
      return wrong;
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<FoundInputs> FindInputs(const lookup::View& view, const v1::AnalysisKind& analysis,
                                       v1::AnalysisInputs* inputs, spec::Problems* problems) {
  if (inputs->dataset().empty()) return FoundInputs();
  const auto dataset = lookup::FindDataset(view, inputs->dataset(), "inputs.dataset");
  if (absl::IsNotFound(dataset.status()) || absl::IsFailedPrecondition(dataset.status())) {
    problems->Add("inputs.dataset", reflect::ShortText(inputs->dataset()),
                  dataset.status().message(), "the ID of a stored data set, or the name of one");
    return FoundInputs();
  }
  if (!dataset.ok()) return dataset.status();
  inputs->set_dataset(lookup::DatasetName(dataset->id));
  inputs->set_dataset_sha256(dataset->sha256);
  if (spec::KindField(analysis) != nullptr) {
    spec::CheckDatasetKind(analysis, inputs->dataset(), dataset->kind, problems);
  }
  ASSIGN_OR_RETURN(const auto text_bytes, TextBytesOf(view.store, *dataset));
  return FoundInputs{dataset->private_to, dataset->becomes_public, text_bytes};
}

absl::StatusOr<std::optional<std::string>> SignatureOf(const lookup::View& view,
                                                       spec::AskedAnalysis asked) {
  if (!spec::ResolveAsked(&asked).has_value()) return std::nullopt;
  spec::Problems problems;
  ASSIGN_OR_RETURN(const auto found, FindInputs(view, asked.analysis, &asked.inputs, &problems));
  if (!problems.empty()) return std::nullopt;
  v1::Analysis analysis;
  *analysis.mutable_analysis() = asked.analysis;
  *analysis.mutable_inputs() = asked.inputs;
  analysis.set_seed(asked.seed);
  return spec::AnalysisSignature(analysis);
}

void CheckPrivacy(const std::string& dataset_private_to, const std::string& private_to,
                  const v1::AnalysisInputs& inputs, spec::Problems* problems) {
  if (dataset_private_to.empty() || dataset_private_to == private_to) return;
  problems->Add("inputs.dataset", inputs.dataset(),
                ForPrivateUse(inputs.dataset(), dataset_private_to),
                "a public data set, or analyses of private runs");
}

std::string ForPrivateUse(absl::string_view dataset, absl::string_view private_to) {
  return absl::StrCat(dataset, " is private: only private experiments of ", private_to,
                      " can use it (--private)");
}

void CheckInputs(storage::Store* store, const engine::AnalysisOptions& options,
                 const v1::AnalysisInputs& inputs, const std::vector<AnalyzedModel>& models,
                 spec::Problems* problems) {
  if (store->blobs() == nullptr || models.empty()) return;
  // Several models must read the same data.
  if (models.size() == 1 && !DependsOnData(options, inputs, models[0].config.model)) return;
  const UnstoredData none;
  SmallData small(store->blobs(), none);
  AddOnce(FindWrong(options, inputs, models, &small), problems);
}

absl::Status CheckAskedInputs(const lookup::View& view, const std::string& private_to,
                              const spec::Resolution& resolution, const UnstoredData& unstored,
                              spec::Problems* problems) {
  storage::Store* const store = view.store;
  std::vector<spec::AskedAnalysis> entries = spec::AskedAnalyses(resolution.spec);
  if (store->blobs() == nullptr || entries.empty()) return absl::OkStatus();
  SmallData small(store->blobs(), unstored);
  for (spec::AskedAnalysis& asked : entries) {
    const auto options = spec::ResolveAsked(&asked);
    if (!options.has_value()) continue;
    spec::Problems found;
    ASSIGN_OR_RETURN(const auto named, FindInputs(view, asked.analysis, &asked.inputs, &found));
    asked.text_bytes = named.text_bytes;
    // Creating the experiment publishes an upload that becomes public.
    CheckPrivacy(named.becomes_public ? std::string() : named.private_to, private_to, asked.inputs,
                 &found);
    if (!found.empty()) {  // Resolve has reported it, unless the data set went since then
      if (problems->empty()) spec::AddProblemsOf(asked, "", std::move(found), problems);
      continue;
    }
    std::string setting;
    for (const engine::OptionProblem& problem :
         FindWrongInGrid(*options, asked, resolution, &small, &setting)) {
      const absl::string_view field = absl::StripPrefix(problem.field, "analysis.");
      found.Add(std::string(field), problem.value, problem.complaint, problem.allowed);
    }
    spec::AddProblemsOf(asked, setting, std::move(found), problems);
  }
  return absl::OkStatus();
}

}  // namespace ablate::analysis
