#include "server/service/convert.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "server/config/fields.h"
#include "server/config/model_spec.h"

namespace ablate::service {
namespace {

struct ExperimentState {
  storage::ExperimentState stored;
  v1::ExperimentState::Value proto;
};

constexpr ExperimentState kExperimentStates[] = {
    {storage::ExperimentState::kActive, v1::ExperimentState::ACTIVE},
    {storage::ExperimentState::kEnded, v1::ExperimentState::ENDED},
    {storage::ExperimentState::kCancelled, v1::ExperimentState::CANCELLED},
};

struct RunState {
  storage::RunState stored;
  v1::RunState::Value proto;
  uint32_t storage::RunCounts::*count;
};

constexpr RunState kRunStates[] = {
    {storage::RunState::kQueued, v1::RunState::QUEUED, &storage::RunCounts::queued},
    {storage::RunState::kLeased, v1::RunState::RUNNING, &storage::RunCounts::running},
    {storage::RunState::kDone, v1::RunState::DONE, &storage::RunCounts::done},
    {storage::RunState::kDiverged, v1::RunState::DIVERGED, &storage::RunCounts::diverged},
    {storage::RunState::kFailed, v1::RunState::FAILED, &storage::RunCounts::failed},
    {storage::RunState::kCancelled, v1::RunState::CANCELLED, &storage::RunCounts::cancelled},
};

struct AnalysisState {
  storage::AnalysisState stored;
  v1::AnalysisState::Value proto;
};

constexpr AnalysisState kAnalysisStates[] = {
    {storage::AnalysisState::kQueued, v1::AnalysisState::QUEUED},
    {storage::AnalysisState::kRunning, v1::AnalysisState::RUNNING},
    {storage::AnalysisState::kDone, v1::AnalysisState::DONE},
    {storage::AnalysisState::kFailed, v1::AnalysisState::FAILED},
    {storage::AnalysisState::kCancelled, v1::AnalysisState::CANCELLED},
};

// Returns the row of `table` with this state, or null.
template <class Row, size_t rows, class State>
const Row* FindState(const Row (&table)[rows], State stored) {
  for (const Row& row : table) {
    if (row.stored == stored) return &row;
  }
  return nullptr;
}

template <class Message>
void AddSummaries(const storage::RunSummaries& summaries, Message* message) {
  message->mutable_summaries()->Reserve(static_cast<int>(summaries.keys.size()));
  for (const storage::Summary& one : summaries.keys) *message->add_summaries() = ToProto(one);
  // A reader who looks for the missing numbers finds the reason here.
  if (message->failure().empty()) message->set_failure(summaries.damage);
}

}  // namespace

v1::AnalysisState::Value ToProto(storage::AnalysisState state) {
  const AnalysisState* row = FindState(kAnalysisStates, state);
  return row == nullptr ? v1::AnalysisState::unspecified : row->proto;
}

v1::RunState::Value ToProto(storage::RunState state) {
  const RunState* row = FindState(kRunStates, state);
  return row == nullptr ? v1::RunState::unspecified : row->proto;
}

void CountCell(storage::RunState state, storage::RunCounts* counts) {
  const RunState* row = FindState(kRunStates, state);
  if (row != nullptr) ++(counts->*row->count);
}

v1::RunCounts ToProto(const storage::RunCounts& counts) {
  v1::RunCounts message;
  message.set_queued(counts.queued);
  message.set_running(counts.running);
  message.set_done(counts.done);
  message.set_diverged(counts.diverged);
  message.set_failed(counts.failed);
  message.set_cancelled(counts.cancelled);
  return message;
}

google::protobuf::Duration ToDuration(absl::Duration time) {
  google::protobuf::Duration duration;
  duration.set_seconds(absl::IDivDuration(time, absl::Seconds(1), &time));
  duration.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time)));
  return duration;
}

namespace {

// Clamps a time from a worker or a damaged file to the range that a message can have.
google::protobuf::Duration DeviceTime(storage::Micros time) {
  return ToDuration(
      absl::Microseconds(std::clamp<storage::Micros>(time, 0, storage::kMaxDeviceTime)));
}

}  // namespace

google::protobuf::Timestamp ToTimestamp(storage::Micros time) {
  constexpr int64_t kSecond = 1'000'000;
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(time / kSecond);
  timestamp.set_nanos(static_cast<int32_t>(time % kSecond) * 1'000);
  return timestamp;
}

void SetLabels(const Labels& labels, google::protobuf::Map<std::string, std::string>* map) {
  for (const auto& [axis, label] : labels) (*map)[axis] = label;
}

v1::AnalysisCounts ToProto(const storage::AnalysisCounts& counts) {
  v1::AnalysisCounts message;
  message.set_planned(counts.planned);
  message.set_queued(counts.queued);
  message.set_running(counts.running);
  message.set_done(counts.done);
  message.set_failed(counts.failed);
  message.set_cancelled(counts.cancelled);
  message.set_failure(counts.failure);
  return message;
}

v1::Experiment ToProto(const storage::ExperimentRecord& record, const std::string& stalled) {
  v1::Experiment message;
  if (record.state == storage::ExperimentState::kActive) message.set_stalled(stalled);
  message.set_why_cancelled(record.why_cancelled);
  message.set_name(lookup::ExperimentName(record.id));
  message.set_owner(record.owner);
  message.set_private_(!record.private_to.empty());
  if (message.mutable_spec()->ParseFromString(record.spec)) {
    message.mutable_spec()->set_name(record.name);
  }
  const ExperimentState* state = FindState(kExperimentStates, record.state);
  message.set_state(state == nullptr ? v1::ExperimentState::unspecified : state->proto);
  *message.mutable_counts() = ToProto(record.counts);
  if (record.analyses.any) *message.mutable_analyses() = ToProto(record.analyses);
  *message.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.end_time != 0) *message.mutable_end_time() = ToTimestamp(record.end_time);
  message.mutable_tags()->Add(record.tags.begin(), record.tags.end());
  message.set_note(record.note);
  message.set_archived(record.archived);
  message.set_paused(record.paused);
  message.set_priority(ToPriority(record.priority));
  if (!record.extends.empty()) message.set_extends(lookup::ExperimentName(record.extends));
  message.mutable_changes()->Add(record.changes.begin(), record.changes.end());
  return message;
}

v1::Cell ToProto(const storage::CellRecord& record) {
  v1::Cell message;
  message.set_name(record.name);
  SetLabels(record.labels, message.mutable_labels());
  message.set_seed(record.seed);
  message.set_run(lookup::RunName(record.run));
  message.set_state(ToProto(record.state));
  message.set_reused(record.reused);
  SetOrigin(record.origin, record.origin_step, &message);
  return message;
}

v1::Run ToProto(const storage::RunRecord& record, const storage::RunSummaries& summaries,
                const std::string& stalled) {
  v1::Run message;
  const bool goes_on =
      record.state == storage::RunState::kQueued || record.state == storage::RunState::kLeased;
  if (goes_on) message.set_stalled(stalled);
  message.set_name(lookup::RunName(record.id));
  const bool waits = record.state == storage::RunState::kLeased && !record.begun;
  message.set_state(waits ? v1::RunState::QUEUED : ToProto(record.state));
  message.set_trajectory(record.trajectory);
  const bool read = spec::ReadStoredRun(record.spec, message.mutable_resolved_spec());
  if (!read) message.clear_resolved_spec();
  message.set_step(record.step);
  message.set_steps(record.steps);
  message.set_attempts(record.failures);
  message.set_failure(read || !record.failure.empty()
                          ? record.failure
                          : std::string("its spec is damaged in the database"));
  message.set_parameters(record.parameters);
  v1::Provenance* provenance = message.mutable_provenance();
  provenance->set_trainer(record.trainer);
  provenance->set_device(record.device);
  provenance->set_build(record.build);
  if (!record.worker.empty()) provenance->set_worker(absl::StrCat("workers/", record.worker));
  *provenance->mutable_device_time() = DeviceTime(record.spent.device_time);
  *provenance->mutable_contended_time() = DeviceTime(record.spent.contended_time);
  provenance->set_environment(record.environment);
  provenance->set_tokens(record.spent.tokens);
  SetOrigin(record.origin, record.origin_step, provenance);
  *message.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != 0) *message.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != 0) *message.mutable_end_time() = ToTimestamp(record.end_time);
  AddSummaries(summaries, &message);
  return message;
}

v1::RunRow ToRow(const storage::CellRecord& record, const storage::RunSummaries& summaries) {
  v1::RunRow row;
  row.set_cell(record.name);
  SetLabels(record.labels, row.mutable_labels());
  row.set_seed(record.seed);
  row.set_run(lookup::RunName(record.run));
  row.set_state(ToProto(record.state));
  row.set_step(record.step);
  row.set_steps(record.steps);
  row.set_failure(record.failure);
  SetOrigin(record.origin, record.origin_step, &row);
  AddSummaries(summaries, &row);
  return row;
}

v1::Summary ToProto(const storage::Summary& summary) {
  v1::Summary message;
  message.set_key(summary.key);
  message.set_count(summary.count);
  message.set_nonfinite(summary.nonfinite);
  if (summary.count > summary.nonfinite) {
    message.set_first(summary.first);
    message.set_min(summary.min);
    message.set_max(summary.max);
    message.set_mean(summary.mean);
    if (std::isfinite(summary.last)) message.set_last(summary.last);
  }
  if (summary.first_nonfinite_step.has_value()) {
    message.set_first_nonfinite_step(*summary.first_nonfinite_step);
  }
  return message;
}

v1::RunEvent ToProto(const storage::RunEventRecord& record) {
  v1::RunEvent message;
  *message.mutable_time() = ToTimestamp(record.time);
  message.set_kind(record.kind);
  message.set_step(record.step);
  if (!record.worker.empty()) message.set_worker(absl::StrCat("workers/", record.worker));
  message.set_message(record.message);
  return message;
}

v1::Artifact ToProto(const storage::ArtifactRecord& record) {
  v1::Artifact message;
  message.set_name(lookup::CheckpointNameOf(record.run, record.step));
  message.set_run(lookup::RunName(record.run));
  message.set_kind(record.kind);
  message.set_step(record.step);
  message.set_sha256(record.blob);
  message.set_bytes(record.bytes);
  return message;
}

v1::Analysis ToProto(const storage::AnalysisRecord& record, double progress) {
  // Merges the request and the result, which set different fields.
  v1::Analysis message;
  message.ParseFromString(record.request);
  message.MergeFromString(record.result);
  message.set_name(lookup::AnalysisName(record.id));
  message.set_state(ToProto(record.state));
  message.set_progress(record.state == storage::AnalysisState::kDone ? 1 : progress);
  message.set_artifact(record.artifact);
  message.set_artifact_bytes(record.artifact_bytes);
  message.set_failure(record.failure);
  message.set_owner(record.owner);
  message.set_private_(!record.private_to.empty());
  message.mutable_labels()->Assign(record.labels.begin(), record.labels.end());
  *message.mutable_device_time() = DeviceTime(record.device_time);
  *message.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != 0) *message.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != 0) *message.mutable_end_time() = ToTimestamp(record.end_time);
  return message;
}

absl::StatusOr<v1::Model> ToProto(const storage::ModelRecord& record) {
  ASSIGN_OR_RETURN(auto spec, spec::ReadStoredModel(record.spec));
  v1::Model message;
  message.set_name(lookup::ModelName(record.name));
  *message.mutable_model() = std::move(spec);
  message.set_vocabulary(record.vocabulary);
  message.set_parameters(record.parameters);
  message.set_sha256(record.sha256);
  message.set_bytes(record.bytes);
  for (const absl::string_view note : absl::StrSplit(record.notes, '\n', absl::SkipEmpty())) {
    message.add_notes(std::string(note));
  }
  message.set_owner(record.owner);
  message.set_private_(!record.private_to.empty());
  *message.mutable_create_time() = ToTimestamp(record.create_time);
  return message;
}

v1::Dataset ToProto(const storage::DatasetRecord& record) {
  v1::Dataset message;
  message.set_name(lookup::DatasetName(record.id));
  message.set_display_name(record.display_name);
  message.set_sha256(record.sha256);
  message.set_bytes(record.bytes);
  switch (record.kind) {
    case DatasetKind::kText:
      message.set_kind(v1::DatasetKind::text);
      message.set_documents(record.documents);
      message.set_characters(record.characters);
      break;
    case DatasetKind::kTagged:
      message.set_kind(v1::DatasetKind::tagged);
      message.set_documents(record.documents);
      break;
    case DatasetKind::kTokenizer:
      message.set_kind(v1::DatasetKind::tokenizer);
      message.set_vocabulary(record.characters);
      break;
    case DatasetKind::kFiles:
      message.set_kind(v1::DatasetKind::files);
      message.set_documents(record.documents);
      break;
    case DatasetKind::kTokens:
      message.set_kind(v1::DatasetKind::tokens);
      message.set_documents(record.documents);
      message.set_vocabulary(record.characters);
      break;
  }
  *message.mutable_create_time() = ToTimestamp(record.create_time);
  message.set_owner(record.owner);
  message.set_private_(!record.private_to.empty() && !record.becomes_public);
  if (record.expire_time != 0) *message.mutable_expire_time() = ToTimestamp(record.expire_time);
  return message;
}

v1::TrainingRun ToProto(const schedule::WorkerInfo::Training& training) {
  v1::TrainingRun message;
  message.set_run(lookup::RunName(training.run));
  message.set_steps_per_second(training.steps_per_second);
  message.mutable_losses()->Assign(training.losses.begin(), training.losses.end());
  return message;
}

v1::Worker ToProto(const schedule::WorkerInfo& worker, const std::string& stalled) {
  v1::Worker message;
  if (worker.attached && !worker.analysis) message.set_stalled(stalled);
  if (!worker.unusable.empty()) message.set_stalled(worker.unusable);
  message.set_name(absl::StrCat("workers/", worker.name));
  message.set_device(worker.device);
  message.set_lanes(worker.lanes);
  message.set_build(worker.build);
  message.set_role(worker.analysis ? v1::WorkerRole::analysis : v1::WorkerRole::train);
  for (const std::string& run : worker.runs) message.add_runs(lookup::RunName(run));
  for (const auto& training : worker.training) *message.add_training() = ToProto(training);
  message.set_busy_lanes(worker.busy_lanes);
  if (worker.device_use.has_value()) {
    v1::DeviceUse* use = message.mutable_device_use();
    use->set_utilization(worker.device_use->utilization());
    use->set_used_bytes(worker.device_use->used_bytes());
    use->set_others(worker.device_use->others());
    use->set_watts(worker.device_use->watts());
    use->set_ecc_errors(worker.device_use->ecc_errors());
  }
  if (worker.attached) {
    message.set_state(worker.busy ? v1::WorkerState::BUSY : v1::WorkerState::IDLE);
    *message.mutable_attach_time() = ToTimestamp(worker.attach_time);
    if (worker.end_time > 0) *message.mutable_end_time() = ToTimestamp(worker.end_time);
  } else {
    message.set_state(v1::WorkerState::AWAY);
  }
  return message;
}

v1::Priority::Value ToPriority(int priority) {
  return static_cast<v1::Priority::Value>(v1::Priority::interactive + priority);
}

int FromPriority(v1::Priority::Value priority) { return priority - v1::Priority::interactive; }

v1::PendingPilot ToProto(const schedule::PendingPilot& pilot) {
  v1::PendingPilot message;
  message.set_worker(absl::StrCat("workers/", pilot.worker));
  message.set_cluster(pilot.cluster);
  message.set_reason(pilot.reason);
  *message.mutable_since() = ToTimestamp(pilot.since);
  return message;
}

v1::Problem ToProto(const spec::Problem& problem) {
  v1::Problem message;
  message.set_field(problem.field);
  message.set_value(problem.value);
  message.set_allowed(problem.allowed);
  message.set_message(problem.message);
  return message;
}

}  // namespace ablate::service
