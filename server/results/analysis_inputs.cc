#include "server/results/analysis_inputs.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proto/reflect/text.h"
#include "server/engine/task.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/names.h"

namespace ablate::results {
namespace {

constexpr uint64_t kMostBytesHere = 8 << 20;

// Whether what is read could be refused.
bool DependsOnData(const engine::AnalysisOptions& options, const v1::AnalysisInputs& inputs,
                   const std::vector<engine::RunConfig>& configs) {
  const engine::AnalysisKind& kind = engine::KindOf(options);
  if (configs.empty() || kind.default_tokens == 0) return false;
  if (!inputs.prompt().empty() || !inputs.dataset().empty() || configs.size() > 1) return true;
  constexpr engine::SequenceLengths kSeveral = {2, 1, 2};
  return kind.check_read != nullptr &&
         !kind.check_read(options, configs[0].model, kSeveral).empty();
}

// Data sets as they are needed, each read once.
class SmallData {
 public:
  explicit SmallData(storage::Blobs* blobs) : blobs_(blobs) {}

  // The bytes of a blob; null if they are too many, or can't be read.
  std::shared_ptr<const std::string> Bytes(const std::string& sha256) const {
    const auto pin = blobs_->Find(sha256);
    if (!pin.ok() || (*pin)->size() > kMostBytesHere) return nullptr;
    auto bytes = blobs_->Read(sha256, 0, (*pin)->size());
    if (!bytes.ok()) return nullptr;
    return std::make_shared<const std::string>(*std::move(bytes));
  }

  // Puts the data of a task into it, if it has any. False if that can't be.
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
  std::map<std::pair<absl::string_view, std::string>, std::shared_ptr<const engine::TaskData>>
      read_;
};

}  // namespace

absl::Status FindInputs(storage::Store* store, v1::AnalysisInputs* inputs,
                        spec::Problems* problems) {
  if (inputs->dataset().empty()) return absl::OkStatus();
  const auto dataset = rpc::FindDataset(store, inputs->dataset(), "inputs.dataset");
  if (absl::IsNotFound(dataset.status()) || absl::IsFailedPrecondition(dataset.status())) {
    problems->Add("inputs.dataset", reflect::ShortText(inputs->dataset()),
                  dataset.status().message(), "the ID of a stored data set, or the name of one");
    return absl::OkStatus();
  }
  if (!dataset.ok()) return dataset.status();
  inputs->set_dataset(rpc::DatasetName(dataset->id));
  inputs->set_dataset_sha256(dataset->sha256);
  return absl::OkStatus();
}

absl::Status CheckInputs(storage::Store* store, const engine::AnalysisOptions& options,
                         const v1::AnalysisInputs& inputs,
                         const std::vector<storage::AnalysisSubject>& subjects,
                         std::vector<engine::RunConfig> configs, spec::Problems* problems) {
  if (store->blobs() == nullptr || !DependsOnData(options, inputs, configs)) {
    return absl::OkStatus();
  }
  SmallData small(store->blobs());
  std::vector<const engine::RunConfig*> read;
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto run = store->GetRun(subjects[i].run);
    if (!run.ok()) return run.status();
    if (!small.Fill(run->dataset_blob, &configs[i].task)) return absl::OkStatus();
    read.push_back(&configs[i]);
  }
  engine::AnalysisInputs what;
  what.tokens = inputs.tokens();
  what.prompt = inputs.prompt();
  what.documents = inputs.documents();
  if (!inputs.dataset().empty()) {
    what.text = small.Bytes(inputs.dataset_sha256());
    if (what.text == nullptr) return absl::OkStatus();
  }
  const auto wrong = engine::CheckRead(options, what, read);
  if (!wrong.ok()) return absl::OkStatus();
  for (const engine::OptionProblem& problem : *wrong) {
    problems->Add(problem.field, problem.value, problem.complaint, problem.allowed);
  }
  return absl::OkStatus();
}

}  // namespace ablate::results
