// What the store keeps, as plain values. Specs are serialized messages that the store never looks
// into.
#ifndef ABLATE_STORAGE_RECORDS_H_
#define ABLATE_STORAGE_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ablate::storage {

// Microseconds since the Unix epoch; 0 where it has not happened.
using Micros = int64_t;

// Who looks at experiments, runs, analyses and data sets. Each is `private_to` somebody or, if that
// is empty, everybody's.
struct Viewer {
  std::string user;
  bool sees_all = false;  // also what is private to others
};

// For what the server does by itself.
inline const Viewer kServer{"", true};

inline bool Sees(const Viewer& viewer, const std::string& private_to) {
  return viewer.sees_all || private_to.empty() || private_to == viewer.user;
}

enum class RunState { kQueued, kLeased, kDone, kDiverged, kFailed, kCancelled };

// No run and no analysis has more device time than a hundred years, whatever its worker says: sums
// and durations of it stay in range.
inline constexpr Micros kMaxDeviceTime = Micros{36'525} * 24 * 3600 * 1'000'000;

// What training a run took.
struct Spent {
  Micros device_time = 0;     // lane time on a CPU
  Micros contended_time = 0;  // of device_time, while other threads had the lane's core
  uint64_t tokens = 0;        // trained on in that time
};

struct Summary {
  std::string key;
  // Over finite values, in arrival order; meaningless while count == nonfinite.
  double first = 0, last = 0, min = 0, max = 0, mean = 0;
  uint64_t count = 0;
  uint64_t nonfinite = 0;
  std::optional<uint32_t> first_nonfinite_step;
};

// A run's metrics, by key.
struct RunSummaries {
  std::vector<Summary> keys;
  std::string damage;  // why the stored ones can't be read; they can if it is empty
};

// A run that may have to be trained. Its id is the fingerprint, with ".2", ".3", … for later
// generations.
struct NewRun {
  std::string fingerprint;
  std::string trajectory;
  std::string growth;  // of the runs that differ from it in their steps alone; empty: it can't grow
  uint32_t seed = 0;
  uint32_t steps = 0;
  uint64_t parameters = 0;
  std::string device_kind;        // "cpu" or "cuda"
  std::string trainer;            // of those that workers have
  std::string shape;              // runs of equal shape cost the same: key of measured step times
  std::string spec;               // serialized RunSpec
  uint32_t numerics_version = 0;  // in which the fingerprint was made; 0: any worker trains it
  std::string dataset_blob;       // sha256, or empty
  std::string origin;             // a shorter run, from whose last state it is to begin; or empty
  uint64_t expected_bytes = 0;    // that it leaves for good, about; 0: not known
};

// A run that is done, with a last state from which the same with more steps can go on.
struct ShorterRun {
  std::string run;
  uint32_t steps = 0;
  std::string environment;  // in which it can; empty if that is not known
};

// The state that a cancelled run goes on from.
struct SavedState {
  uint32_t step = 0;
  std::string environment;  // in which it can go on; empty if that is not known
};

struct NewCell {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // axis name, label; in axis order
  uint32_t seed = 0;
  std::string fingerprint;
};

struct NewExperiment {
  std::string name;
  std::string owner;
  std::string private_to;      // its runs, too; of those the fingerprints must be nobody else's
  std::string request_id;      // the owner's
  std::string request_hash;    // of everything that must be equal for request_id to be a repetition
  std::string spec;            // serialized ExperimentSpec
  int priority = 1;            // 0 interactive, 1 normal, 2 background
  bool fresh = false;          // a new generation of every run
  bool analyses = false;       // its spec asks for analyses, once every run has ended
  std::vector<NewCell> cells;  // grid order, distinct names
  std::vector<NewRun> runs;    // one per distinct fingerprint
  // The most runs that active experiments of the owner may have queued or training, with these.
  std::optional<int64_t> max_open_runs = {};
};

// Sums that are compared with a user's quota.
struct Holdings {
  // Runs that are queued or training in active experiments of the user, whoever is charged.
  uint64_t open_runs = 0;
  // Of checkpoints, resume states, data sets and arrays of analyses, and what open runs are
  // expected to leave. What several users' things name counts for each.
  uint64_t bytes = 0;
};

struct RunCounts {
  uint32_t queued = 0, running = 0, done = 0, diverged = 0, failed = 0, cancelled = 0;
};

enum class ExperimentState { kActive, kEnded, kCancelled };

// Analyses that an experiment's spec asks for.
struct AnalysisCounts {
  bool any = false;      // it asks for some
  bool planned = false;  // which they are is known: every run has ended
  uint32_t queued = 0, running = 0, done = 0, failed = 0, cancelled = 0;
  std::string failure;  // why they are not planned, or not all of them
};

struct ExperimentRecord {
  std::string id;  // name plus four base-32 characters
  std::string name;
  std::string owner;
  std::string private_to;
  std::string spec;
  ExperimentState state = ExperimentState::kActive;
  RunCounts counts;  // over cells
  AnalysisCounts analyses;
  Micros create_time = 0;
  Micros end_time = 0;
};

struct CellRecord {
  uint32_t index = 0;  // in grid order
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  uint32_t seed = 0;
  std::string run;
  bool reused = false;
  // Of the run:
  RunState state = RunState::kQueued;
  uint32_t step = 0;
  uint32_t steps = 0;
  std::string failure;
  uint64_t change = 0;  // change number of the last write to the run
  std::string origin;   // as RunRecord's
  uint32_t origin_step = 0;
};

struct RunRecord {
  std::string id;
  std::string private_to;
  std::string trajectory;
  uint32_t seed = 0;
  uint32_t step = 0;  // updates made and stored
  uint32_t steps = 0;
  uint64_t parameters = 0;
  RunState state = RunState::kQueued;
  std::string spec;
  std::string dataset_blob;
  uint32_t failures = 0;  // in a row without progress
  uint32_t losses = 0;    // lost workers in a row without progress
  std::string failure;    // why it FAILED
  std::string trainer;
  std::string device, build, worker, environment;  // empty before its first lease
  // The shorter run whose last state it began from, or will if it is queued, and the step of that;
  // empty: it begins at step 0. That run may be gone.
  std::string origin;
  uint32_t origin_step = 0;
  Spent spent;  // what an origin took to come there included
  Micros create_time = 0, start_time = 0, end_time = 0;
};

struct RunEventRecord {
  Micros time = 0;
  std::string kind;
  uint32_t step = 0;
  std::string worker;
  std::string message;
};

struct ArtifactRecord {
  std::string run;
  std::string kind;  // "checkpoint"
  uint32_t step = 0;
  std::string blob;  // sha256
  uint64_t bytes = 0;
};

struct DatasetRecord {
  std::string id;  // stem of the name plus six digits
  std::string display_name;
  std::string sha256;
  uint64_t bytes = 0;
  uint64_t documents = 0;
  uint32_t characters = 0;
  Micros create_time = 0;
  std::string owner = {};  // who uploaded it
  std::string private_to = {};
};

// What somebody has counted of a data set's text; the store never looks into it. Empty before.
struct DatasetCounts {
  std::string document_lengths;
  uint64_t code_points = 0;
  uint64_t line_ends = 0;
};

enum class AnalysisState { kQueued, kRunning, kDone, kFailed, kCancelled };

// A run at the step of a checkpoint.
struct AnalysisSubject {
  std::string run;
  uint32_t step = 0;

  bool operator==(const AnalysisSubject&) const = default;
};

// An experiment's name for analyses of one signature.
struct AnalysisLabel {
  std::string experiment;
  std::string label;
};

// A computation on stored models. Its id is the fingerprint of all that is asked.
struct NewAnalysis {
  std::string id;
  std::string signature;  // fingerprint of all but its subjects
  std::string request;    // serialized, for whoever makes it
  std::vector<AnalysisSubject> subjects;
  std::vector<AnalysisLabel> labels;
  // The experiment whose spec asks for it, as the label says that it is called there; or empty.
  std::string asked_by = {};
  std::string asked_as = {};
  std::string owner = {};
  std::string private_to = {};
  // Its guessed time in microseconds, and the group of analyses that it adds its time to
  // (AnalysisTimes); empty: to none.
  std::string time_group = {};
  double guessed_time = 0;
};

// Times of a group's DONE analyses, measured and guessed.
struct AnalysisTimes {
  uint64_t analyses = 0;
  double device_time = 0;   // microseconds, of all together
  double guessed_time = 0;  // of the same
  double largest = 0;       // the largest guess among them
};

struct AnalysisRecord {
  std::string id;
  std::string request;
  std::vector<AnalysisSubject> subjects;
  AnalysisState state = AnalysisState::kQueued;
  double progress = 0;     // 0 to 1
  std::string state_blob;  // to go on from; empty: from the beginning
  std::string result;      // serialized; of one that is done
  std::string artifact;    // sha256 of its arrays, or empty
  uint64_t artifact_bytes = 0;
  std::string failure;     // why it FAILED
  Micros device_time = 0;  // that it took
  Micros create_time = 0, start_time = 0, end_time = 0;
  std::string owner;  // who asked first
  std::string private_to;
  std::vector<std::string> labels;  // of ExperimentAnalyses alone: the experiment's, in order
};

// An analysis of one run that is done, by what an experiment calls it.
struct LabelledAnalysis {
  std::string label;
  std::string id;
  AnalysisSubject subject;
  std::string result;
};

// An experiment all of whose runs have ended, and of whose analyses none is asked for yet.
struct UnplannedExperiment {
  std::string id;
  int64_t last_place = 0;  // in the queue, of its runs: another once one of them lives again
};

// Experiments whose analyses are to be planned.
struct Unplanned {
  std::vector<UnplannedExperiment> ready;
  bool others = false;  // there are more, whose runs have not
};

// One that an experiment's spec asks for.
struct AskedAnalysis {
  std::string label;
  std::string id;
  AnalysisState state = AnalysisState::kQueued;
};

// An experiment whose spec asks for an analysis.
struct AnalysisAsker {
  std::string experiment;
  std::string owner;
  bool active = false;
};

struct CreatedAnalysis {
  AnalysisRecord record;
  bool reused = false;  // it was there, and is not queued again
};

// How far an analysis has come.
struct AnalysisProgress {
  double progress = 0;
  Micros device_time = 0;  // since the last of these
  // Saved to go on from; empty: what was saved before still is.
  std::string state_blob;
  uint64_t state_bytes = 0;
  bool yielded = false;  // it waits again
};

// How it ended: DONE with a result, or FAILED with a failure.
struct AnalysisEnd {
  Micros device_time = 0;  // since its last progress
  std::string result;
  std::string artifact;
  uint64_t artifact_bytes = 0;
  std::string failure;
};

inline constexpr size_t kMaxKeyBytes = 200;  // bytes of a metric's key

// Points of one key in one row group.
struct Column {
  std::string key;
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // may be non-finite; bits are kept
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_RECORDS_H_
