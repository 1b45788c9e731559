// Segments, their ancestors and their blobs.
#include "tests/schedule/simulation/histories.h"

#include "absl/strings/str_format.h"

namespace ablate::simulation {
namespace {

constexpr double kStepsPerSegment = 4096;

}  // namespace

uint64_t Histories::Begin(const TrainingState& from) {
  const uint64_t segment = ++last_segment_;
  TrainingState state = from;
  state.history.push_back({from.step, segment});
  state.ended = false;
  segments_.emplace(segment, std::move(state));
  return segment;
}

std::string Histories::Publish(uint64_t segment, uint32_t step, bool ended) {
  std::string blob = absl::StrFormat("%064x", ++last_blob_);
  TrainingState state = segments_.at(segment);
  state.step = step;
  state.ended = ended;
  blobs_.emplace(blob, std::move(state));
  return blob;
}

const TrainingState* Histories::FindSegment(uint64_t segment) const {
  const auto found = segments_.find(segment);
  return found == segments_.end() ? nullptr : &found->second;
}

const TrainingState* Histories::FindBlob(const std::string& blob) const {
  const auto found = blobs_.find(blob);
  return found == blobs_.end() ? nullptr : &found->second;
}

double Histories::Value(uint64_t segment, uint32_t step) {
  return static_cast<double>(segment) * kStepsPerSegment + step;
}

uint64_t Histories::SegmentOf(double value) {
  return static_cast<uint64_t>(value / kStepsPerSegment);
}

uint64_t Histories::SegmentAt(const History& history, uint32_t step) {
  uint64_t segment = 0;
  for (const Part& part : history) {
    if (part.first_step <= step) segment = part.segment;
  }
  return segment;
}

}  // namespace ablate::simulation
