// A store in front of another: every call goes through, so that a test overrides only what it wants
// to delay or to break.
#ifndef ABLATE_TESTS_SCHEDULE_STORE_PROXY_H_
#define ABLATE_TESTS_SCHEDULE_STORE_PROXY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::schedule {

class StoreProxy : public storage::Store {
 public:
  template <typename T>
  using Or = absl::StatusOr<T>;
  using Text = absl::string_view;
  using Names = std::vector<std::string>;

  explicit StoreProxy(storage::Store* target) : target_(target) {}
  storage::Store* target() const { return target_; }
  void SetTarget(storage::Store* target) { target_ = target; }

  std::string generation() const override { return target_->generation(); }
  storage::Blobs* blobs() override { return target_->blobs(); }

  Or<storage::CreatedExperiment> CreateExperiment(const storage::NewExperiment& e) override {
    return target_->CreateExperiment(e);
  }
  Or<std::optional<storage::CreatedExperiment>> FindRequest(Text id, Text hash) override {
    return target_->FindRequest(id, hash);
  }
  Or<std::vector<storage::KnownRun>> LookUpRuns(const std::vector<storage::NewRun>& r) override {
    return target_->LookUpRuns(r);
  }
  Or<storage::ExperimentRecord> GetExperiment(Text id) override {
    return target_->GetExperiment(id);
  }
  Or<Names> FindExperiments(Text prefix, uint32_t limit) override {
    return target_->FindExperiments(prefix, limit);
  }
  Or<std::vector<storage::ExperimentRecord>> ListExperiments(Text after, uint32_t limit) override {
    return target_->ListExperiments(after, limit);
  }
  Or<std::vector<storage::Withdrawal>> CancelExperiment(Text id) override {
    return target_->CancelExperiment(id);
  }
  absl::Status DeleteExperiment(Text id) override { return target_->DeleteExperiment(id); }
  Or<std::vector<storage::CellRecord>> ListCells(Text experiment, uint32_t first,
                                                 uint32_t limit) override {
    return target_->ListCells(experiment, first, limit);
  }
  Or<std::vector<storage::CellRecord>> ChangedCells(Text experiment, uint64_t after,
                                                    uint32_t limit) override {
    return target_->ChangedCells(experiment, after, limit);
  }
  uint64_t change_number() const override { return target_->change_number(); }

  Or<storage::RunRecord> GetRun(Text id) override { return target_->GetRun(id); }
  Or<Names> FindRuns(Text prefix, uint32_t limit) override {
    return target_->FindRuns(prefix, limit);
  }
  Or<std::vector<storage::RunEventRecord>> RunEvents(Text run) override {
    return target_->RunEvents(run);
  }
  Or<std::vector<storage::RunSummaries>> Summaries(const Names& runs) override {
    return target_->Summaries(runs);
  }
  Or<std::vector<storage::ArtifactRecord>> ListArtifacts(Text run) override {
    return target_->ListArtifacts(run);
  }
  Or<std::optional<double>> MeasuredStepTime(Text shape) override {
    return target_->MeasuredStepTime(shape);
  }

  Or<std::vector<storage::QueuedRun>> Queue(Text device_kind, uint32_t limit) override {
    return target_->Queue(device_kind, limit);
  }
  Or<std::vector<std::vector<storage::GrantedRun>>> Grant(
      const std::vector<storage::NewLease>& leases) override {
    return target_->Grant(leases);
  }
  Or<std::vector<storage::Applied>> Apply(Text incarnation,
                                          const std::vector<storage::LeaseEvent>& e) override {
    return target_->Apply(incarnation, e);
  }
  void ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                  std::function<void(Or<std::vector<storage::Applied>>)> done) override {
    target_->ApplyAsync(std::move(incarnation), std::move(events), std::move(done));
  }
  Or<storage::LeaseVerdict> CheckLease(Text lease, Text incarnation,
                                       uint64_t first_unacked) override {
    return target_->CheckLease(lease, incarnation, first_unacked);
  }
  absl::Status EndLease(Text lease, storage::LeaseEnd end, const Names& stepping,
                        Text message) override {
    return target_->EndLease(lease, end, stepping, message);
  }
  std::string stalled() const override { return target_->stalled(); }
  absl::StatusOr<uint64_t> FreeBytes() const override { return target_->FreeBytes(); }
  std::string folder() const override { return target_->folder(); }
  Or<std::vector<storage::LeaseRecord>> ListLeases() override { return target_->ListLeases(); }
  Or<bool> LeaseExists(Text lease) override { return target_->LeaseExists(lease); }

  Or<std::vector<std::pair<std::string, uint64_t>>> RunKeys(Text run) override {
    return target_->RunKeys(run);
  }
  Or<std::vector<std::pair<std::string, uint64_t>>> ExperimentKeys(Text experiment) override {
    return target_->ExperimentKeys(experiment);
  }
  absl::Status ReadSeries(const storage::SeriesQuery& query,
                          const std::function<bool(const std::vector<uint32_t>&,
                                                   const std::vector<double>&)>& piece) override {
    return target_->ReadSeries(query, piece);
  }

  Or<storage::DatasetRecord> AddDataset(const storage::DatasetRecord& dataset) override {
    return target_->AddDataset(dataset);
  }
  Or<storage::DatasetRecord> FindDataset(Text id_or_name) override {
    return target_->FindDataset(id_or_name);
  }
  Or<std::vector<storage::DatasetRecord>> ListDatasets(Text after, uint32_t limit) override {
    return target_->ListDatasets(after, limit);
  }
  Or<std::string> DocumentLengths(Text id) override { return target_->DocumentLengths(id); }
  absl::Status KeepDocumentLengths(Text id, Text lengths) override {
    return target_->KeepDocumentLengths(id, lengths);
  }
  absl::Status DeleteDataset(Text id) override { return target_->DeleteDataset(id); }
  absl::Status Maintain() override { return target_->Maintain(); }
  Or<std::string> Image() override { return target_->Image(); }

 private:
  storage::Store* target_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_TESTS_SCHEDULE_STORE_PROXY_H_
