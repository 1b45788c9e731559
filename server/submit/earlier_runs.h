// Finds what a plan can take over from stored runs, by the devices that are known, and notes it.
#ifndef ABLATE_SERVER_SUBMIT_EARLIER_RUNS_H_
#define ABLATE_SERVER_SUBMIT_EARLIER_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/experiment/resolution.h"
#include "server/schedule/scheduler_thread.h"
#include "server/submit/plan.h"
#include "storage/store.h"

namespace ablate::submit {

struct Devices {
  bool cuda = false;                                 // a GPU worker is known
  uint32_t most_lanes = 0;                           // of a worker on cores; 0: unknown
  std::map<std::string, uint32_t> lanes;             // of all workers that train, by LaneKind
  std::map<std::string, spec::DeviceMemory> memory;  // as in spec::Surroundings
  // Environments of the attached training workers, by kind and trainer; "" for an unknown one.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> environments;
  // By kind of device: why the last worker on it takes no programs.
  std::map<std::string, std::string> no_programs;
};

// Returns the kind of the lanes that a run waits for: its device's. A GPU's programs have lanes of
// their own.
std::string LaneKind(const std::string& device_kind, absl::string_view trainer);

// Returns the devices of all usable workers that train; before the first one has attached, this
// machine's cores. Waits for the scheduler.
Devices KnownDevices(schedule::SchedulerThread* scheduler);

// Returns true if a run with this fingerprint is stored that needn't be trained again.
bool IsReusable(const storage::KnownRun& known);

// Selects the longest shorter run that this one may start from. Returns that step; 0 if there is
// none.
uint32_t ChooseOrigin(const Devices& devices, const storage::KnownRun& known, storage::NewRun* run);

// Returns the step of the saved state from which a cancelled run continues; 0 if there is none.
uint32_t SavedStep(const Devices& devices, const storage::KnownRun& known,
                   const storage::NewRun& run);

// Add notes: runs that continue shorter ones; `runs` cancelled runs that continue from saved
// states; and runs that train steps again because a shorter run's saved training state is gone.
void NoteOrigins(Plan* plan);
void NoteSaved(size_t runs, Plan* plan);
void NoteLost(Plan* plan);

// Notes if an experiment gets another trainer or device than its runs had, because its grid grew or
// shrank, or a GPU came or went; none of their stored results can then be used.
absl::Status NoteTrainedAgain(storage::Store* store, const Devices& devices, Plan* plan);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_EARLIER_RUNS_H_
