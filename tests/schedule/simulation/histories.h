// Records the computations of a training that never gives the same numbers twice: every start of a
// run is a segment of its own, and every value identifies its segment, so that a mixture of two
// histories shows.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_HISTORIES_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_HISTORIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ablate::simulation {

// The steps from this one on (until the next part's) are of this segment.
struct Part {
  uint32_t first_step = 0;
  uint64_t segment = 0;
};
using History = std::vector<Part>;

// The state of a training after `step` updates, as stored in a blob.
struct TrainingState {
  std::string run;
  std::string environment;  // of the workers that made it
  History history;
  uint32_t step = 0;
  bool ended = false;  // work due at a run's end was done
};

class Histories {
 public:
  // Begins a segment from a state (with an empty history: from step 0).
  uint64_t Begin(const TrainingState& from);
  // Publishes a blob with the segment's state after `step` updates.
  std::string Publish(uint64_t segment, uint32_t step, bool ended = false);

  // Returns null if there is no such segment or blob.
  const TrainingState* FindSegment(uint64_t segment) const;
  const TrainingState* FindBlob(const std::string& blob) const;

  static double Value(uint64_t segment, uint32_t step);
  static uint64_t SegmentOf(double value);
  // Returns the segment of a history that made a step.
  static uint64_t SegmentAt(const History& history, uint32_t step);

 private:
  uint64_t last_segment_ = 0;
  uint64_t last_blob_ = 0;
  std::map<uint64_t, TrainingState> segments_;
  std::map<std::string, TrainingState> blobs_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_HISTORIES_H_
