// Converts records of the store to messages of the API.
#ifndef ABLATE_SERVER_SERVICE_CONVERT_H_
#define ABLATE_SERVER_SERVICE_CONVERT_H_

#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/artifact.pb.h"
#include "ablate/v1/dataset.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/model.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/map.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"
#include "server/schedule/scheduler.h"
#include "storage/records.h"

namespace ablate::service {

using Labels = std::vector<std::pair<std::string, std::string>>;

v1::RunState::Value ToProto(storage::RunState state);
v1::AnalysisState::Value ToProto(storage::AnalysisState state);
v1::RunCounts ToProto(const storage::RunCounts& counts);
v1::AnalysisCounts ToProto(const storage::AnalysisCounts& counts);
// `stalled`: why training pauses, from Store::stalled; added to objects that would otherwise
// progress.
v1::Experiment ToProto(const storage::ExperimentRecord& record, const std::string& stalled);
v1::Cell ToProto(const storage::CellRecord& record);
v1::Run ToProto(const storage::RunRecord& record, const storage::RunSummaries& summaries,
                const std::string& stalled);
v1::RunRow ToRow(const storage::CellRecord& record, const storage::RunSummaries& summaries);
v1::Summary ToProto(const storage::Summary& summary);
v1::RunEvent ToProto(const storage::RunEventRecord& record);
v1::Artifact ToProto(const storage::ArtifactRecord& record);
v1::Dataset ToProto(const storage::DatasetRecord& record);
// DATA_LOSS if the stored description can't be read.
absl::StatusOr<v1::Model> ToProto(const storage::ModelRecord& record);
// `progress`: from AnalysisRunner.
v1::Analysis ToProto(const storage::AnalysisRecord& record, double progress);
v1::TrainingRun ToProto(const schedule::WorkerInfo::Training& training);
v1::Worker ToProto(const schedule::WorkerInfo& worker, const std::string& stalled);
v1::PendingPilot ToProto(const schedule::PendingPilot& pilot);
// Convert NewExperiment::priority.
v1::Priority::Value ToPriority(int priority);
int FromPriority(v1::Priority::Value priority);
v1::Problem ToProto(const spec::Problem& problem);

void SetLabels(const Labels& labels, google::protobuf::Map<std::string, std::string>* map);
// Sets the shorter run that a run continues from, if any, and its step.
template <class Message>
void SetOrigin(const std::string& origin, uint32_t step, Message* message) {
  if (origin.empty()) return;
  message->set_continued_from(lookup::RunName(origin));
  message->set_continued_step(step);
}
// Counts one cell whose run is in `state`.
void CountCell(storage::RunState state, storage::RunCounts* counts);
// `time` must not be negative.
google::protobuf::Duration ToDuration(absl::Duration time);
// `time` must not be 0.
google::protobuf::Timestamp ToTimestamp(storage::Micros time);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CONVERT_H_
