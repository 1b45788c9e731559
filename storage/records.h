// Plain values of everything that the store keeps. Specs are serialized messages that the store
// never parses.
#ifndef ABLATE_STORAGE_RECORDS_H_
#define ABLATE_STORAGE_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/dataset_file.h"

namespace ablate::storage {

// Microseconds: a time since the Unix epoch (0: it has not happened), or a duration.
using Micros = int64_t;

// The user who reads experiments, runs, analyses and data sets. Each of those is private to the
// user in `private_to`, or visible to everybody if that is empty.
struct Viewer {
  std::string user;
  bool sees_all = false;  // sees what is private to others, too
};

// The viewer for the server's own work.
inline const Viewer kServer{"", true};

inline bool Sees(const Viewer& viewer, const std::string& private_to) {
  return viewer.sees_all || private_to.empty() || private_to == viewer.user;
}

// Cells, counts and queries have kLeased only once a lane has begun the run; before that they have
// kQueued.
enum class RunState { kQueued, kLeased, kDone, kDiverged, kFailed, kCancelled };

// Bound on the device time of a run or analysis, whatever its worker reports: a hundred years. It
// keeps sums and durations in range.
inline constexpr Micros kMaxDeviceTime = Micros{36'525} * 24 * 3600 * 1'000'000;

// Cost of a run's training.
struct Spent {
  Micros device_time = 0;     // lane time on a CPU
  Micros contended_time = 0;  // part of device_time during which other threads had the lane's core
  uint64_t tokens = 0;        // trained in that time
};

struct Summary {
  std::string key;
  // Over finite values, in order of arrival; meaningless if count == nonfinite. `last` is the last
  // point's value, finite or not; NaN if the run ended before its last step because its training
  // loss or gradient norm wasn't finite.
  double first = 0, last = 0, min = 0, max = 0, mean = 0;
  uint64_t count = 0;
  uint64_t nonfinite = 0;
  std::optional<uint32_t> first_nonfinite_step;
};

// A run's metrics, by key.
struct RunSummaries {
  std::vector<Summary> keys;
  std::string damage;  // why the stored ones can't be read; empty if they can
};

// Points of one key in one row group.
struct Column {
  std::string key;
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // may be non-finite; bits are preserved
};

// The result of a run that was trained elsewhere. The run is created as it ended.
struct ImportedResult {
  RunState state = RunState::kDone;  // or kDiverged
  Micros start_time = 0, end_time = 0;
  std::vector<Column> series;  // at least one
};

// A run that may have to be trained. Its id is the fingerprint, with ".2", ".3", … for later
// generations.
struct NewRun {
  std::string fingerprint;
  std::string trajectory;
  std::string growth;  // fingerprint shared by runs that differ only in their steps; empty: it
                       // can't be extended
  uint32_t seed = 0;
  uint32_t steps = 0;
  uint64_t parameters = 0;
  std::string device_kind;        // "cpu" or "cuda"
  std::string trainer;            // one that workers have
  std::string shape;              // runs of equal shape cost the same: key of measured step times
  std::string spec;               // serialized RunSpec
  uint32_t numerics_version = 0;  // in which the fingerprint was made; 0: any worker may train it
  std::string dataset_blob;       // sha256, or empty
  std::string data_blob;          // sha256 of a program's data, or empty
  std::string initial_blob;  // sha256 of the checkpoint whose parameters it begins with, or empty
  std::string origin;        // a shorter run from whose saved training state it starts; or empty
  uint64_t expected_bytes = 0;  // estimate of what it stores permanently; 0: unknown
  uint32_t lanes = 1;           // that train it together
  // Its number of steps isn't known before it ends: `steps` is 0.
  bool open_steps = false;
  // The most seconds that it takes if it can't continue from a saved state, or kUnknownSeconds; 0:
  // it can continue.
  uint32_t whole_seconds = 0;
  std::shared_ptr<const ImportedResult> result;  // null: it has to be trained
};
inline constexpr uint32_t kUnknownSeconds = UINT32_MAX;

// A DONE run with a saved training state, from which an equal run with more steps can continue.
struct ShorterRun {
  std::string run;
  uint32_t steps = 0;
  std::string environment;  // in which it can; empty if unknown
};

// A DONE run from which an equal run with more steps could continue if it had its state.
struct LostState {
  uint32_t steps = 0;
  std::string why;  // "was deleted because the disk was full"
};

// The resume state from which a cancelled run continues.
struct SavedState {
  uint32_t step = 0;
  std::string environment;  // in which it can continue; empty if unknown
};

struct NewCell {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // axis name, label; in axis order
  uint32_t seed = 0;
  std::string fingerprint;
};

// A field of a run's resolved spec: its path, and its value as people write it.
struct SpecField {
  std::string path;
  std::string value;
};

// The resolved specs of an experiment's runs, without seeds. A variant is the cells with equal
// labels, whose specs differ in the seed alone; variants are in the order of their first cells.
struct CellFields {
  std::vector<SpecField> common;                   // fields that are equal in all variants
  std::vector<std::vector<SpecField>> of_variant;  // the others, by variant
};

struct ExperimentRecord;

struct NewExperiment {
  std::string name;
  std::string owner;
  std::string private_to;  // its runs, too; nobody else may have their fingerprints
  std::string request_id;  // unique for the owner
  std::string
      request_hash;       // hash of everything that must be equal for request_id to be a repetition
  std::string spec;       // serialized ExperimentSpec
  int priority = 1;       // 0 interactive, 1 normal, 2 background
  bool fresh = false;     // trains a new generation of every run
  bool analyses = false;  // its spec asks for analyses after all runs have ended
  uint32_t max_failed = 0;     // number of FAILED cells with which it is cancelled; 0: none
  std::vector<NewCell> cells;  // grid order, distinct names
  CellFields fields = {};      // without common ones they aren't known, and may be given later
  std::vector<NewRun> runs;    // one for each distinct fingerprint
  // Limit on the queued and training runs of the owner's active experiments, including these.
  std::optional<int64_t> max_open_runs = {};
  std::vector<std::string> tags = {};  // sorted, distinct
  std::string note = {};
  // Id of an experiment, or empty: it is archived, and this one takes over the labels of its
  // analyses, except those that `labels` has.
  std::string extends = {};
  std::vector<std::string> labels = {};   // that its spec declares
  std::vector<std::string> changes = {};  // of its file, in words without line breaks
  // Returns true for an experiment of this name, owner and privacy that the new one would only
  // repeat if every cell has the same run; then nothing is created. Null: it is created anyway.
  std::function<bool(const ExperimentRecord& experiment)> repeats = nullptr;
  // Keys (DatasetKey) of the data sets that it uses and that would be deleted otherwise.
  std::vector<std::string> uploads = {};
};

// Sums that are compared with a user's quota.
struct Holdings {
  // Queued and training runs in active experiments of the user, whoever is charged.
  uint64_t open_runs = 0;
  // Bytes of checkpoints, resume states, data sets and arrays of analyses, and the expected bytes
  // of open runs. Data shared by several users counts for each.
  uint64_t bytes = 0;
};

struct RunCounts {
  uint32_t queued = 0, running = 0, done = 0, diverged = 0, failed = 0, cancelled = 0;
};

enum class ExperimentState { kActive, kEnded, kCancelled };

// Analyses that an experiment's spec asks for.
struct AnalysisCounts {
  bool any = false;      // it asks for some
  bool planned = false;  // the list is known: every run has ended
  uint32_t queued = 0, running = 0, done = 0, failed = 0, cancelled = 0;
  std::string failure;  // why they aren't planned, or not all of them
};

struct ExperimentRecord {
  std::string id;  // name plus four base-32 characters
  std::string name;
  std::string owner;
  std::string private_to;
  std::string spec;
  ExperimentState state = ExperimentState::kActive;
  RunCounts counts;  // counts cells
  AnalysisCounts analyses;
  Micros create_time = 0;
  Micros end_time = 0;
  // As in NewExperiment.
  std::vector<std::string> tags;
  std::string note;
  std::string extends;
  std::vector<std::string> changes;
  bool archived = false;
  std::string why_cancelled;  // empty if a user cancelled it
  bool paused = false;
  int priority = 1;  // as in NewExperiment
};

// How far an experiment is.
struct ExperimentNews {
  std::string id, name, owner;
  ExperimentState state = ExperimentState::kActive;
  RunCounts counts;  // counts cells
};

// Queued runs of an experiment that differ in nothing that the queue considers. A run that several
// experiments have is in a group of each.
struct QueuedGroup {
  std::string experiment;  // id
  std::string title, owner, private_to;
  int priority = 1;  // of the experiment, as in NewExperiment
  bool paused = false;
  uint32_t running = 0;  // its cells whose runs lanes have begun
  std::string user;      // who is charged
  std::string device_kind, trainer, shape;
  uint32_t lanes = 1;          // of a run
  uint32_t whole_seconds = 0;  // as in NewRun
  int64_t place = 0;           // of the first run in its user's queue
  uint32_t runs = 0;
  uint64_t steps = 0;  // that are left, of all runs; 1 for each with open steps
};

// Counts of what a store has written since its start.
struct WriteCounts {
  uint64_t commits = 0;
  double commit_seconds = 0;  // of all commits, each with its sync of the disk
  double longest_commit = 0;  // in seconds
  uint64_t points = 0;        // values of metrics
  uint64_t losses = 0;        // leases that were lost
};

// Numbers of runs by state.
struct RunStates {
  uint64_t queued = 0, leased = 0, done = 0, diverged = 0, failed = 0, cancelled = 0;
};

// Damage of a database, in words.
struct Damage {
  std::vector<std::string> problems;
  bool readable = true;  // false: its pages are damaged, and the process ends when it reads them
};

// A blob that the database names.
struct NamedBlob {
  std::string sha256;
  std::string what;  // in words, such as "checkpoint of run r-12 at step 100"; one of its names
};

// Lanes that a user's queued runs take, those of paused experiments left out.
struct QueuedLanes {
  std::string user, trainer;
  uint64_t lanes = 0;
};

// Selects experiments of a list.
struct ExperimentFilter {
  std::string owner = {};  // empty: everybody's
  std::string tag = {};    // empty: any or none
  bool archived = true;    // also archived ones that aren't active
};

// An experiment of a certain name.
struct NamedExperiment {
  std::string id;
  bool archived = false;
};

// Changes of an experiment; absent and empty fields leave it as it is.
struct ExperimentUpdate {
  std::string name;
  std::vector<std::string> add_tags, remove_tags;
  std::optional<std::string> note;
  std::optional<bool> archived;
  std::optional<bool> paused;
  std::optional<int> priority;  // as in NewExperiment
  // The place of its queued runs among its owner's of that priority.
  enum class Place { kUnchanged, kFirst, kLast } place = Place::kUnchanged;
};
inline constexpr size_t kMaxTags = 20;  // of an experiment

struct CellRecord {
  uint32_t index = 0;  // in grid order
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  uint32_t seed = 0;
  std::string run;
  bool reused = false;
  // Number of the experiment that first had the run, or another run of the same growth; earlier
  // ones have lower numbers.
  int64_t first_experiment = 0;
  // State of the run:
  RunState state = RunState::kQueued;
  uint32_t step = 0;
  uint32_t steps = 0;
  std::string failure;
  uint64_t change = 0;  // change number of the last write to the run
  std::string origin;   // as in RunRecord
  uint32_t origin_step = 0;
};

// How far a run is, and on what it was trained.
struct RunStatus {
  RunState state = RunState::kQueued;  // kLeased from the grant on
  uint32_t step = 0;                   // updates made and stored
  uint32_t steps = 0;
  uint32_t failures = 0;  // in a row without progress
  uint32_t losses = 0;    // consecutive lost workers without progress
  std::string failure;    // why it FAILED
  std::string trainer;
  std::string device, build, worker, environment;  // empty before its first lease
  Spent spent;  // includes the cost of reaching the origin's step
  Micros start_time = 0, end_time = 0;
};

struct RunRecord : RunStatus {
  std::string id;
  std::string private_to;
  std::string trajectory;
  std::string growth;  // as in NewRun
  uint32_t seed = 0;
  uint64_t parameters = 0;
  bool begun = false;  // a lane has begun it under its present lease
  std::string spec;
  std::string dataset_blob;
  std::string data_blob;
  std::string initial_blob;
  // The shorter run from whose saved training state it started, or will start if it is queued, and
  // that state's step; empty: it starts at step 0. That run may be gone.
  std::string origin;
  uint32_t origin_step = 0;
  Micros create_time = 0;
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
  uint32_t characters = 0;  // of a tokenizer and of tokens: the size of the vocabulary
  Micros create_time = 0;
  std::string owner = {};  // the uploader
  std::string private_to = {};
  DatasetKind kind = DatasetKind::kText;
  std::string encoded_from = {};  // EncodedFrom(); empty for all others
  // When it is deleted unless an experiment uses it; 0: it stays. AddDataset makes any other value
  // kKeepUnused from then.
  Micros expire_time = 0;
  // It is private_to the uploader only until a public experiment uses it; has an expire_time. Its
  // ID is already that of a public data set, so that several users may have one.
  bool becomes_public = false;
};

inline constexpr Micros kKeepUnused = Micros{3600} * 1'000'000;

// Returns the name by which the store knows a data set: its ID, after the user and a slash if it
// becomes public.
std::string DatasetKey(const DatasetRecord& dataset);

// Names the text and the tokenizer, by their hashes, that tokens were made of: of the whole text,
// or of each of its documents.
std::string EncodedFrom(absl::string_view text_sha256, absl::string_view tokenizer_sha256,
                        bool documents);

// Counts of a data set's text, opaque to the store; empty if not counted yet.
struct DatasetCounts {
  std::string document_lengths;
  uint64_t code_points = 0;  // of tokens: their number; of tagged sentences: bytes of their texts
  uint64_t line_ends = 0;
};

// A model that was imported.
struct ModelRecord {
  std::string name;    // without "models/"; PrivateModelName() if it is private
  std::string sha256;  // of its checkpoint
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  uint32_t vocabulary = 0;
  std::string spec;   // opaque to the store
  std::string notes;  // sentences about the import, one a line
  std::string owner;  // the uploader
  std::string private_to;
  Micros create_time = 0;
};

// Returns the name of a user's private model. Public models' names have no '@', so that nobody can
// find out by a name that is taken.
std::string PrivateModelName(absl::string_view name, absl::string_view user);

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

// A computation on stored models. Its id is the fingerprint of the whole request.
struct NewAnalysis {
  std::string id;
  std::string signature;  // fingerprint of everything except its subjects
  std::string request;    // serialized, for the code that computes it
  std::vector<AnalysisSubject> subjects;
  std::vector<AnalysisLabel> labels;
  // The experiment whose spec asks for it, under the name in the label; or empty.
  std::string asked_by = {};
  std::string asked_as = {};
  std::string owner = {};
  std::string private_to = {};
  // Guessed time in microseconds, and the group whose AnalysisTimes include this analysis; empty:
  // none.
  std::string time_group = {};
  double guessed_time = 0;
};

// Measured and guessed times of a group's DONE analyses.
struct AnalysisTimes {
  uint64_t analyses = 0;
  double device_time = 0;   // total in microseconds
  double guessed_time = 0;  // total guess for the same analyses
  double largest = 0;       // the largest guess among them
};

struct AnalysisRecord {
  std::string id;
  std::string request;
  std::vector<AnalysisSubject> subjects;
  AnalysisState state = AnalysisState::kQueued;
  double progress = 0;     // 0 to 1
  std::string state_blob;  // state to continue from; empty: start at the beginning
  std::string result;      // serialized; set if DONE
  std::string artifact;    // sha256 of its arrays, or empty
  uint64_t artifact_bytes = 0;
  std::string failure;     // why it FAILED
  Micros device_time = 0;  // total so far
  Micros create_time = 0, start_time = 0, end_time = 0;
  std::string owner;  // who asked first
  std::string private_to;
  std::optional<bool> state_on_gpu = {};  // whether the state is from a GPU; nothing: unknown
  std::vector<std::string>
      labels;  // set by ExperimentAnalyses only: the experiment's labels, in order
};

// A DONE analysis of one run, with its label in an experiment.
struct LabelledAnalysis {
  std::string label;
  std::string id;
  AnalysisSubject subject;
  std::string result;
};

// An experiment whose runs have all ended and whose analyses aren't requested yet.
struct UnplannedExperiment {
  std::string id;
  int64_t last_place = 0;  // last queue place of its runs; changes if one is queued again
};

// Experiments whose analyses are to be planned.
struct Unplanned {
  std::vector<UnplannedExperiment> ready;
  bool others = false;  // there are others, whose runs haven't all ended
};

// An analysis that an experiment's spec asks for.
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
  bool reused = false;  // it existed, and isn't queued again
};

// Progress of an analysis.
struct AnalysisProgress {
  double progress = 0;
  Micros device_time = 0;  // since the previous report
  // Saved state to continue from; empty: the previous one stays.
  std::string state_blob;
  uint64_t state_bytes = 0;
  bool state_on_gpu = false;
  bool restarted = false;  // it has lost its progress: the previous state is deleted
  bool yielded = false;    // it waits again
};

// Result of an analysis: DONE with a result, or FAILED with a failure.
struct AnalysisEnd {
  Micros device_time = 0;  // since the last progress report
  std::string result;
  std::string artifact;
  uint64_t artifact_bytes = 0;
  std::string failure;
};

// Part of what a run's program has written to its standard output and error.
struct RunLog {
  std::string text;
  uint64_t next = 0;      // position behind it
  bool complete = false;  // the run has ended, and nothing follows
};

// Bound on the stored log of a run; its end is kept.
inline constexpr int64_t kMaxLogBytes = 4 << 20;

inline constexpr size_t kMaxKeyBytes = 200;  // bytes of a metric's key
}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_RECORDS_H_
