// WatchExperiment.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "grpcpp/support/server_callback.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/services.h"
#include "server/service/snapshots.h"
#include "server/service/watch_feed.h"
#include "server/service/watch_stream.h"

namespace ablate::service {
namespace {

absl::Status CheckKeyCount(const v1::WatchExperimentRequest& request) {
  if (request.keys_size() <= lookup::kMaxWatchKeys) return absl::OkStatus();
  return lookup::TooMany("keys", request.keys_size(), lookup::kMaxWatchKeys);
}

std::vector<std::string> WatchedKeys(const v1::WatchExperimentRequest& request) {
  if (request.keys().empty()) return std::vector<std::string>{"train/loss", "eval/loss"};
  return std::vector<std::string>(request.keys().begin(), request.keys().end());
}

class ExperimentWatch final : public WatchStream<v1::ExperimentEvent> {
 public:
  // The pointers outlive the call.
  ExperimentWatch(Backend* backend, grpc::CallbackServerContext* context,
                  const v1::WatchExperimentRequest* request)
      : WatchStream(backend->Stream(context, &backend->watches)),
        backend_(backend),
        context_(context),
        request_(request) {}

 private:
  using Events = std::deque<v1::ExperimentEvent>;

  absl::Status Check() const override { return CheckKeyCount(*request_); }
  absl::StatusOr<NextRound> Round(Events* batch) override;
  absl::Status Open();
  absl::Status MakeEvents(const std::vector<storage::CellRecord>& cells,
                          const storage::RunCounts& counts, Events* batch);
  // Reports a stall or its end, or the experiment's analyses, if no cell's event does.
  void TellOfAll(const storage::RunCounts& counts, Events* batch);
  // Sets the fields about the whole experiment, which every event has.
  void AddOfAll(const storage::RunCounts& counts, v1::ExperimentEvent* event) const;

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchExperimentRequest* const request_;
  std::string experiment_;  // empty before the first round
  std::vector<std::string> keys_;
  WatchFeed feed_{0};
  uint64_t token_ = 0;                          // of the messages before this round
  bool has_ended_ = false;                      // before this round's reads
  std::string stalled_;                         // as last sent
  std::optional<v1::AnalysisCounts> analyses_;  // likewise; nothing if it asks for none
};

absl::Status ExperimentWatch::Open() {
  storage::Store* store = backend_->store;
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
  ASSIGN_OR_RETURN(const auto experiment, lookup::FindExperiment(view, request_->name(), "name"));
  keys_ = WatchedKeys(*request_);
  ASSIGN_OR_RETURN(const auto token,
                   ParseWatchToken(request_->token(), store->generation(), store->change_number()));
  feed_ = WatchFeed(token);
  token_ = token;
  experiment_ = experiment;
  return absl::OkStatus();
}

absl::StatusOr<NextRound> ExperimentWatch::Round(Events* batch) {
  if (experiment_.empty()) {
    if (absl::Status opened = Open(); !opened.ok()) return opened;
  }
  ASSIGN_OR_RETURN(const auto changed,
                   backend_->store->ChangedCells(experiment_, feed_.seen(), lookup::kCellsAtOnce));
  feed_.Changed(changed);
  const bool full = changed.size() >= lookup::kCellsAtOnce;
  // Read after the cells, so that counts are never older than they. The end must be known before
  // the cells are read, or a last change could be missed.
  ASSIGN_OR_RETURN(const auto record, backend_->store->GetExperiment(experiment_));
  NextRound next;
  next.final = has_ended_ && !full;
  has_ended_ = record.state != storage::ExperimentState::kActive;
  next.at_once = full || (has_ended_ && !next.final);
  const std::string stalled = has_ended_ ? "" : backend_->store->stalled();
  bool news = std::exchange(stalled_, stalled) != stalled;
  if (record.analyses.any) {
    v1::AnalysisCounts analyses = ToProto(record.analyses);
    news |=
        !analyses_.has_value() || analyses_->SerializeAsString() != analyses.SerializeAsString();
    analyses_ = std::move(analyses);
  }
  RETURN_IF_ERROR(MakeEvents(feed_.Take(Now(), next.final), record.counts, batch));
  if (batch->empty() && news) TellOfAll(record.counts, batch);
  next.at = feed_.next_time();
  return next;
}

void ExperimentWatch::AddOfAll(const storage::RunCounts& counts, v1::ExperimentEvent* event) const {
  event->set_stalled(stalled_);
  *event->mutable_counts() = ToProto(counts);
  if (analyses_.has_value()) *event->mutable_analyses() = *analyses_;
}

void ExperimentWatch::TellOfAll(const storage::RunCounts& counts, Events* batch) {
  v1::ExperimentEvent& event = batch->emplace_back();
  event.set_token(WatchToken(backend_->store->generation(), token_));
  AddOfAll(counts, &event);
}

absl::Status ExperimentWatch::MakeEvents(const std::vector<storage::CellRecord>& cells,
                                         const storage::RunCounts& counts, Events* batch) {
  if (cells.empty()) return absl::OkStatus();
  std::vector<std::string> runs;
  for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
  ASSIGN_OR_RETURN(const auto summaries, backend_->store->Summaries(runs));
  const std::string before = WatchToken(backend_->store->generation(), token_);
  for (size_t i = 0; i < cells.size(); ++i) {
    v1::ExperimentEvent& event = batch->emplace_back();
    event.set_cell(cells[i].name);
    event.set_run(lookup::RunName(cells[i].run));
    event.set_state(ToProto(cells[i].state));
    event.set_step(cells[i].step);
    event.set_steps(cells[i].steps);
    event.set_token(before);
    AddOfAll(counts, &event);
    for (const storage::Summary& summary : summaries[i].keys) {
      const bool wanted = std::find(keys_.begin(), keys_.end(), summary.key) != keys_.end();
      if (wanted) (*event.mutable_last())[summary.key] = summary.last;
    }
    if (!summaries[i].keys.empty()) feed_.ToldValues(cells[i].index);
  }
  token_ = feed_.token();
  batch->back().set_token(WatchToken(backend_->store->generation(), token_));
  return absl::OkStatus();
}

class SnapshotWatch final : public WatchStream<v1::ExperimentEvent> {
 public:
  // The pointers outlive the call.
  SnapshotWatch(Backend* backend, grpc::CallbackServerContext* context,
                const v1::WatchExperimentRequest* request)
      : WatchStream(backend->Stream(context, &backend->watches)),
        backend_(backend),
        context_(context),
        request_(request) {}

 private:
  absl::StatusOr<NextRound> Round(std::deque<v1::ExperimentEvent>* batch) override {
    if (experiment_ == nullptr) {
      ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
      ASSIGN_OR_RETURN(const auto id, lookup::FindExperiment(view, request_->name(), "name"));
      experiment_ = backend_->watched.Find(backend_, id);
    }
    ASSIGN_OR_RETURN(auto reading, experiment_->Read(Now()));
    if (reading.event != sent_) batch->push_back(*reading.event);
    sent_ = std::move(reading.event);
    return reading.next;
  }

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchExperimentRequest* const request_;
  std::shared_ptr<WatchedExperiment> experiment_;    // null before the first round
  std::shared_ptr<const v1::ExperimentEvent> sent_;  // the last one
};

}  // namespace

grpc::ServerWriteReactor<v1::ExperimentEvent>* StartWatch(
    Backend* backend, grpc::CallbackServerContext* context,
    const v1::WatchExperimentRequest* request) {
  if (request->snapshots()) {
    return SnapshotWatch::Begin(std::make_shared<SnapshotWatch>(backend, context, request));
  }
  return ExperimentWatch::Begin(std::make_shared<ExperimentWatch>(backend, context, request));
}

}  // namespace ablate::service
