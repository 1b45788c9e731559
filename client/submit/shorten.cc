#include "client/submit/shorten.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/output/experiment_text.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

constexpr char kStepsPath[] = "training.steps", kWarmupPath[] = "training.warmup",
               kCheckpointsPath[] = "training.checkpoints";
constexpr size_t kLeastOfTrajectory = 3;  // checkpoints

// Removes the steps beyond `steps` from a list; returns them.
template <typename List>
std::vector<int64_t> RemoveBeyond(uint32_t steps, List* list) {
  std::vector<int64_t> beyond;
  const auto kept = std::remove_if(list->begin(), list->end(), [&](int32_t step) {
    const bool is_beyond = step > 0 && static_cast<uint32_t>(step) > steps;
    if (is_beyond) beyond.push_back(step);
    return is_beyond;
  });
  list->erase(kept, list->end());
  return beyond;
}

// Shortens a value that an axis gives the field at `path`. INVALID_ARGUMENT if that is the steps.
absl::Status ShortenValue(uint32_t steps, const std::string& path, const std::string& axis,
                          Value* value, std::vector<std::string>* left_out) {
  if (path == kStepsPath) {
    return absl::InvalidArgumentError(
        absl::StrCat(axis, " varies ", kStepsPath,
                     "; expected an experiment of one length. Use --axis or --set"));
  }
  if (path == kWarmupPath && value->number_value() > steps) {
    left_out->push_back(absl::StrCat("warmup beyond step ", steps, " of ", axis));
    value->set_number_value(steps);
  }
  if (path != kCheckpointsPath || !value->has_list_value()) return absl::OkStatus();
  auto* values = value->mutable_list_value()->mutable_values();
  for (int i = values->size() - 1; i >= 0; --i) {
    if (values->Get(i).number_value() <= steps) continue;
    left_out->push_back(absl::StrCat("checkpoint ", values->Get(i).number_value(), " of ", axis));
    values->DeleteSubrange(i, 1);
  }
  return absl::OkStatus();
}

absl::Status ShortenAxes(uint32_t steps, v1::ExperimentSpec* spec,
                         std::vector<std::string>* left_out) {
  for (v1::Axis& axis : *spec->mutable_axes()) {
    const std::string name =
        absl::StrCat("axis ", axis.has_name() || !axis.has_field() ? AxisName(axis) : axis.field());
    std::vector<std::pair<std::string, Value*>> values;
    for (Value& value : *axis.mutable_values()) values.emplace_back(axis.field(), &value);
    for (auto* settings : {axis.mutable_settings(), axis.mutable_switches()}) {
      for (v1::Setting& setting : *settings) {
        for (auto& [path, value] : *setting.mutable_set()) values.emplace_back(path, &value);
      }
    }
    for (const auto& [path, value] : values) {
      RETURN_IF_ERROR(ShortenValue(steps, path, name, value, left_out));
    }
  }
  return absl::OkStatus();
}

// Returns the name of the entry's kind; empty if it has none.
std::string KindOf(const v1::AnalysisSpec& entry) {
  const auto* kind = entry.GetReflection()->GetOneofFieldDescriptor(
      entry, entry.GetDescriptor()->FindOneofByName("kind"));
  return kind == nullptr ? "" : std::string(kind->name());
}

// Shortens an entry; returns false if no step is left that it could read.
bool ShortenEntry(const v1::TrainingSpec& training, v1::AnalysisSpec* entry,
                  std::vector<std::string>* left_out) {
  const uint32_t steps = training.steps();
  auto* at = entry->mutable_at();
  const bool had_steps = !at->empty();
  for (const int64_t step : RemoveBeyond(steps, at)) {
    left_out->push_back(
        absl::StrCat("step ", step, " of ", entry->has_name() ? entry->name() : KindOf(*entry)));
  }
  if (had_steps && at->empty()) return false;
  const bool has_last = std::find(at->begin(), at->end(), -1) != at->end();
  const auto last = std::find(at->begin(), at->end(), static_cast<int32_t>(steps));
  if (has_last && last != at->end()) at->erase(last);  // -1 is that step now
  if (!entry->has_trajectory()) return true;
  const auto& read = at->empty() ? training.checkpoints() : *at;
  std::set<int64_t> distinct(read.begin(), read.end());
  if (distinct.erase(-1) > 0) distinct.insert(steps);
  return distinct.size() >= kLeastOfTrajectory;
}

void ShortenAnalyses(v1::ExperimentSpec* spec, ShortenedSpec* shortened) {
  google::protobuf::RepeatedPtrField<v1::AnalysisSpec> left;
  for (int i = 0; i < spec->analyses_size(); ++i) {
    v1::AnalysisSpec* entry = spec->mutable_analyses(i);
    if (ShortenEntry(spec->base().training(), entry, &shortened->left_out)) {
      *left.Add() = std::move(*entry);
      shortened->analyses.push_back(i);
      continue;
    }
    const std::string label = entry->has_name() ? entry->name() : KindOf(*entry);
    shortened->left_out.push_back(absl::StrCat("analysis ", label));
    if (absl::StartsWith(spec->report().primary(), label + "/")) {
      shortened->left_out.push_back(absl::StrCat("report.primary ", spec->report().primary()));
      spec->mutable_report()->clear_primary();
    }
  }
  *spec->mutable_analyses() = std::move(left);
}

}  // namespace

absl::StatusOr<ShortenedSpec> Shorten(uint32_t steps, v1::ExperimentSpec* spec) {
  if (spec->base().has_program()) {
    return absl::InvalidArgumentError(
        "the number of a program's steps is one of its settings; expected an experiment of models. "
        "Use --set settings.NAME=N");
  }
  ShortenedSpec shortened;
  RETURN_IF_ERROR(ShortenAxes(steps, spec, &shortened.left_out));
  v1::TrainingSpec* training = spec->mutable_base()->mutable_training();
  training->set_steps(steps);
  if (training->warmup() > steps) {
    shortened.left_out.push_back(absl::StrCat("warmup beyond step ", steps));
    training->set_warmup(steps);
  }
  for (const int64_t step : RemoveBeyond(steps, training->mutable_checkpoints())) {
    shortened.left_out.push_back(absl::StrCat("checkpoint ", step));
  }
  ShortenAnalyses(spec, &shortened);
  return shortened;
}

}  // namespace ablate::client
