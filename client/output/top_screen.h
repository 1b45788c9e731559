// Draws the live screen of a server as lines of text: workers, lanes, and the queue by experiment.
// Pure.
#ifndef ABLATE_CLIENT_OUTPUT_TOP_SCREEN_H_
#define ABLATE_CLIENT_OUTPUT_TOP_SCREEN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/output/screen_parts.h"

namespace ablate::client {

struct WorkerRow {
  std::string worker;
  std::string state;
  uint32_t training = 0;  // of its lanes; private runs of others count
  uint32_t lanes = 0;     // 0: it computes analyses
  std::string device;
};

struct ActiveExperiment {
  std::string experiment;
  std::string owner;  // empty: not shown
  uint64_t ended = 0;
  uint64_t all = 0;
  uint64_t training = 0;
  uint64_t queued = 0;
  uint64_t failed = 0;
  uint64_t analyses = 0;  // queued and running
};

struct TopView {
  std::vector<WorkerRow> workers;
  Lanes lanes;                                // each cell as EXP/CELL
  std::vector<ActiveExperiment> experiments;  // that aren't ended
  std::string stalled;                        // why nothing proceeds; empty unless stalled
  std::optional<absl::Time> lost;             // when the server was first missed
  uint64_t queued_analyses = 0;
  bool live = false;  // a key leaves it
};

// Returns the screen in at most `width` columns and `height` lines; 0 stands for any number.
std::vector<std::string> TopScreen(const TopView& view, int width, int height, absl::Time now);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_TOP_SCREEN_H_
