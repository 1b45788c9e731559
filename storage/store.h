// Everything durable: experiments, runs, leases, points, artifacts, analyses, data sets. One class
// over one SQLite file; its methods are in the topics' files of storage/sqlite/.
#ifndef ABLATE_STORAGE_STORE_H_
#define ABLATE_STORAGE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/lease_store.h"
#include "storage/records.h"

namespace ablate::storage {

class Database;
class Maintenance;
struct OpenedFiles;

// 2 GB: some thousands of the published experiments' states.
inline constexpr uint64_t kLastStatesBytes = 2'000'000'000;

struct StoreOptions {
  // Folder with ablate.db and blobs/; created with mode 0700. Empty: in memory, without blobs.
  std::string folder;
  // Bytes kept on the disk so that deletes work when it is full (storage/disk_room.h); 0: none.
  uint64_t ballast_bytes = 0;
  // The most that last states of runs that are done take, so that the same with more steps can go
  // on from there; the oldest go first, but none that a queued run is to begin from. 0: none is
  // kept.
  uint64_t last_states_bytes = kLastStatesBytes;
  // Wall clock, for the times in records. Default: the system's.
  std::function<Micros()> now;
  // Bytes that the disk has left. Default: what the file system of the folder says.
  std::function<absl::StatusOr<uint64_t>()> free_bytes;
  // Called on the writer's thread after each group of writes, refused ones too, with the newest
  // change number; must not block.
  std::function<void(uint64_t)> on_commit;
  // Told what the store does by itself with files that are the user's: a line each. Thread-safe.
  std::function<void(const std::string&)> log;
  // Blobs that no row names are swept even if they are most of those there are. Without it such a
  // sweep, some minutes after a start, takes none: the database may be an older one.
  bool sweep_leftovers = false;
  // In memory only: begins as a copy of the store that Image() was taken of.
  std::string image;
  // Called when the disk failed or the file is corrupt; must not return, except in tests, where the
  // store then refuses all writes. Default: writes the reason to stderr and ends the process.
  std::function<void(const absl::Status&)> fatal;
};

struct CreatedCell {
  std::string run;
  bool reused = false;  // exists and is not queued again for this experiment
};

struct CreatedExperiment {
  std::string id;
  bool repeated = false;  // the request_id was answered before; nothing was changed
  std::vector<CreatedCell> cells;
  uint32_t reused = 0;  // cells
};

// What is known of a fingerprint before an experiment is created.
struct KnownRun {
  std::string run;  // newest generation; empty if there is none
  RunState state = RunState::kQueued;
  // Queued or training, and an active experiment of the owner who asks has it.
  bool counts = false;
  std::vector<std::string> same_trajectory;  // runs that differ only in evaluation or checkpoints
  // Those it could go on from, the longest first; none unless it would be trained from step 0
  // otherwise.
  std::vector<ShorterRun> shorter;
  // The saved state from which a cancelled run goes on.
  std::optional<SavedState> saved;
};

struct SeriesQuery {
  std::string run;
  std::string key;
  uint32_t first_step = 0;
  uint32_t last_step = UINT32_MAX;
};

// Takes the next points of a series, of ascending steps; false stops before the next ones.
using SeriesPiece =
    std::function<bool(const std::vector<uint32_t>& steps, const std::vector<double>& values)>;

// How far the reader of a series has come, so that it can pause; as made, it is at the beginning.
// Steps ascend strictly within a series, so that the next step says where it goes on, also while
// the run's row groups turn into chunks.
struct SeriesPosition {
  uint64_t next_step = 0;
  uint64_t last_group = 0;  // row groups up to this one have been read
  uint64_t points = 0;      // up to here
  uint64_t change = 0;      // the run's change number at the beginning
  bool steady = true;       // the run has not changed since
};

// What cancelling an experiment takes from others.
struct CancelledExperiment {
  std::vector<Withdrawal> withdrawals;
  std::vector<std::string> analyses;  // that no other experiment waits for; CANCELLED
};

// Thread-safe. Writes go through one writer thread that commits them in groups (a savepoint each,
// one fsync a group) and return after the commit; reads use read-only connections and see every
// write that returned. Any write: RESOURCE_EXHAUSTED if the disk is full (nothing changed, try
// again later; cancelling and deleting work as long as there is a ballast). A failed fsync or a
// corrupt file ends the process: what was acknowledged would no longer be certain.
class Store final : public LeaseStore {
 public:
  // FAILED_PRECONDITION if another process holds the folder, the file is newer than this program or
  // is missing beside blobs, or the folder is on a network file system. Applies migrations.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);
  ~Store() override;

  // Random identity of this file, new when it is created; part of watch tokens.
  const std::string& generation() const { return generation_; }
  // Why nothing more is stored, so that training pauses: "disk full". Empty while all is well.
  std::string stalled() const;
  // Bytes that the disk has left for more, and the folder that they are in. All there can be, in
  // memory.
  absl::StatusOr<uint64_t> FreeBytes() const;
  const std::string& folder() const { return options_.folder; }
  uint64_t last_states_bytes() const { return options_.last_states_bytes; }

  // --- Experiments
  // Creates the experiment, its cells and the runs that are missing, in one transaction. A
  // fingerprint's newest generation is reused when QUEUED, LEASED, DONE or DIVERGED and queued
  // again when FAILED (from step 0: its resume state may be why it failed) or CANCELLED. A run that
  // would begin at step 0 begins from its `origin`, if that still has its last state.
  // ALREADY_EXISTS if request_id was used for something else; NOT_FOUND if a dataset_blob is not a
  // data set's.
  absl::StatusOr<CreatedExperiment> CreateExperiment(const NewExperiment& experiment);
  // What CreateExperiment would answer to a request_id that its owner used; nothing if it was not.
  absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(absl::string_view owner,
                                                               absl::string_view id,
                                                               absl::string_view hash);
  absl::StatusOr<ExperimentRecord> GetExperiment(absl::string_view id);
  // Returns up to `limit` ids that begin so: the very id, those of this name, newest first, others.
  absl::StatusOr<std::vector<std::string>> FindExperiments(const Viewer& viewer,
                                                           absl::string_view prefix,
                                                           uint32_t limit);
  // Newest first, after the one with id `after` (empty: from the newest): this owner's, or all if
  // that is empty. NOT_FOUND if there is no such one that the viewer sees.
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(const Viewer& viewer,
                                                                absl::string_view owner,
                                                                absl::string_view after,
                                                                uint32_t limit);
  // Returns the runs that workers have and no other live experiment has. NOT_FOUND.
  absl::StatusOr<std::vector<Withdrawal>> LeasedOnlyBy(absl::string_view id);
  // Withdraws a live experiment's cells. Runs that no other live experiment has become CANCELLED
  // and leave their leases; those that were leased are returned. Repeating it changes nothing.
  absl::StatusOr<CancelledExperiment> CancelExperiment(absl::string_view id);
  // FAILED_PRECONDITION while it is active. Runs that no other experiment has go with it, in
  // slices.
  absl::Status DeleteExperiment(absl::string_view id);
  // Cells from grid index `first` on.
  absl::StatusOr<std::vector<CellRecord>> ListCells(absl::string_view experiment, uint32_t first,
                                                    uint32_t limit);
  // Cells whose run changed after change number `after`, by ascending change number. May return
  // more than `limit`: the cells of one run change together and are never parted, so that the last
  // one's number can be the next `after`.
  absl::StatusOr<std::vector<CellRecord>> ChangedCells(absl::string_view experiment, uint64_t after,
                                                       uint32_t limit);
  // Newest committed change number. Every write to a run or an analysis takes a new one.
  uint64_t change_number() const;

  // --- Runs
  // `owner` is whose experiment would have them.
  absl::StatusOr<std::vector<KnownRun>> LookUpRuns(const std::vector<NewRun>& runs,
                                                   absl::string_view owner = "");
  absl::StatusOr<RunRecord> GetRun(absl::string_view id);
  absl::StatusOr<std::vector<std::string>> FindRuns(const Viewer& viewer, absl::string_view prefix,
                                                    uint32_t limit);
  // Those of the runs that the viewer sees.
  absl::StatusOr<std::vector<std::string>> VisibleRuns(const Viewer& viewer,
                                                       const std::vector<std::string>& runs);
  absl::StatusOr<std::vector<RunEventRecord>> RunEvents(absl::string_view run);
  absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(absl::string_view run);

  // --- Queue and leases: see LeaseStore
  Blobs* blobs() override { return blobs_.get(); }
  absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                               const std::set<std::string>& trainers,
                                               uint32_t limit) override;
  absl::StatusOr<DeviceShares> GetShares() override;
  absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) override;
  void GrantAsync(std::vector<NewLease> leases, Done<Grants> done) override;
  void ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                  Done<std::vector<Applied>> done) override;
  void EndLeaseAsync(std::string lease, LeaseEnding ending, DoneEnding done) override;
  absl::StatusOr<HeldLeaseDecision> CheckLease(absl::string_view lease,
                                               absl::string_view incarnation,
                                               uint64_t first_unacked) override;
  absl::StatusOr<std::vector<LeaseRecord>> ListLeases() override;
  // Returns the holdings of each user who has any.
  absl::StatusOr<std::map<std::string, Holdings>> GetHoldings();
  absl::StatusOr<Holdings> HoldingsOf(absl::string_view user);
  // Of a lease that has not ended; nothing if it has.
  absl::StatusOr<std::optional<LeaseRights>> FindLeaseRights(absl::string_view lease);

  // --- Metrics
  // Of each run named. Those of one may be damaged: the others are well.
  absl::StatusOr<std::vector<RunSummaries>> Summaries(const std::vector<std::string>& runs);
  // Keys with point counts, over one run (DATA_LOSS if they are damaged) or over all runs of an
  // experiment whose keys can be read.
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> RunKeys(absl::string_view run);
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> ExperimentKeys(
      absl::string_view experiment);
  // Hands over the series in pieces of ascending steps; no read transaction outlives a piece. Stops
  // early, with CANCELLED, when `piece` returns false. DATA_LOSS, naming run and key, if the rest
  // of the series is damaged: what was handed over is right. A series that is read to its end from
  // its first step on is damaged, too, if points are missing, unless the run changed meanwhile.
  // From `position` on, if it is given, which goes along: after CANCELLED it is after the points
  // that were handed over, and the same query may go on from there.
  absl::Status ReadSeries(const SeriesQuery& query, const SeriesPiece& piece,
                          SeriesPosition* position = nullptr);

  // --- Analyses
  // Creates the analysis of this id if there is none; queues it again, from its beginning, if it
  // FAILED, was CANCELLED or lost its arrays. NOT_FOUND if a subject's run has no checkpoint of
  // that step, or an experiment that labels it is gone; ALREADY_EXISTS if that calls those of
  // another signature so; RESOURCE_EXHAUSTED if `most_open` wait or run already.
  absl::StatusOr<CreatedAnalysis> CreateAnalysis(const NewAnalysis& analysis, uint32_t most_open);
  // Returns true if it is there and CreateAnalysis would not queue it again.
  absl::StatusOr<bool> IsAnalysisThere(absl::string_view id);
  // Whose label it would be already, as CreateAnalysis says it: the first that is taken, or empty.
  absl::Status CheckLabels(const NewAnalysis& analysis);
  absl::StatusOr<AnalysisRecord> GetAnalysis(absl::string_view id);
  absl::StatusOr<std::vector<std::string>> FindAnalyses(const Viewer& viewer,
                                                        absl::string_view prefix, uint32_t limit);
  // Newest first, after the one with id `after` (empty: from the newest): all; those with a subject
  // that is this run; or with one that is a run of this experiment, and those that its spec asks
  // for. NOT_FOUND if there is no such one that the viewer sees.
  absl::StatusOr<std::vector<AnalysisRecord>> ListAnalyses(const Viewer& viewer,
                                                           absl::string_view after, uint32_t limit);
  absl::StatusOr<std::vector<AnalysisRecord>> RunAnalyses(const Viewer& viewer,
                                                          absl::string_view run,
                                                          absl::string_view after, uint32_t limit);
  absl::StatusOr<std::vector<AnalysisRecord>> ExperimentAnalyses(const Viewer& viewer,
                                                                 absl::string_view experiment,
                                                                 absl::string_view after,
                                                                 uint32_t limit);
  // Those of one run that are DONE, of the experiment's runs and of the signatures that it has
  // given labels, or this one label: by label, run, ascending step, the last where there are
  // several, and age, the newest last.
  absl::StatusOr<std::vector<LabelledAnalysis>> LabelledAnalyses(absl::string_view experiment,
                                                                 absl::string_view label = "");
  // Experiments that ask for analyses which nobody has asked for yet.
  absl::StatusOr<Unplanned> UnplannedExperiments();
  // All that an experiment's spec asks for is asked for: it ends with the last of them. `failure`
  // says what could not be asked for, and why; or it is empty. Nothing of one that is not ACTIVE,
  // and of one a run of which has lived again since `experiment` was read: it is to be planned
  // anew.
  absl::Status PlannedAnalyses(const UnplannedExperiment& experiment, const std::string& failure);
  // By what it calls them, then oldest first.
  absl::StatusOr<std::vector<AskedAnalysis>> AskedAnalyses(absl::string_view experiment);
  // Those that are QUEUED or RUNNING, oldest first.
  absl::StatusOr<std::vector<AnalysisRecord>> OpenAnalyses();
  // QUEUED → RUNNING. This, and the next two, change nothing of one that has ended or is gone.
  absl::Status BeginAnalysis(absl::string_view id);
  // The state that it was saved in before is let go where a new one comes. A blob that is named
  // here must be published.
  absl::Status SaveAnalysis(absl::string_view id, const AnalysisProgress& progress);
  absl::Status EndAnalysis(absl::string_view id, const AnalysisEnd& end);
  // Counts the DONE analyses whose first subject is one of these runs, by signature.
  absl::StatusOr<std::map<std::string, uint64_t>> CountDoneAnalyses(
      const std::vector<std::string>& runs);
  // Returns zeros if no analysis of the group was made. Times of removed analyses still count.
  absl::StatusOr<AnalysisTimes> MeasuredAnalysisTimes(absl::string_view group);
  // As it is then: CANCELLED, unless it had ended.
  absl::StatusOr<AnalysisRecord> CancelAnalysis(absl::string_view id);
  // Removes its result and arrays, whatever its state: its row, too, or it is CANCELLED if an
  // experiment's spec asks for it. NOT_FOUND.
  absl::Status DeleteAnalysis(absl::string_view id);
  // The experiments, deleted ones left out, whose specs ask for it, in the order of their creation.
  absl::StatusOr<std::vector<AnalysisAsker>> AnalysisAskers(absl::string_view analysis);

  // --- Data sets
  // The record as stored; an equal hash, private to the same, returns the data set that is there.
  // ALREADY_EXISTS if the id is another data set's; FAILED_PRECONDITION if the blob is not
  // published.
  absl::StatusOr<DatasetRecord> AddDataset(const DatasetRecord& dataset);
  // Whether an experiment, a data set or an analysis is this user's, or private to them.
  absl::StatusOr<bool> OwnsAnything(absl::string_view user);
  // By id, or by a display name that only one data set of the viewer's has or, if none of those
  // does, one of others: no private one of theirs, whoever looks. NOT_FOUND; FAILED_PRECONDITION if
  // several.
  absl::StatusOr<DatasetRecord> FindDataset(const Viewer& viewer, absl::string_view id_or_name);
  // Those with these bytes that the viewer sees, private ones first.
  absl::StatusOr<std::vector<DatasetRecord>> FindDatasetsOf(const Viewer& viewer,
                                                            absl::string_view sha256);
  absl::StatusOr<std::vector<DatasetRecord>> ListDatasets(const Viewer& viewer,
                                                          absl::string_view after, uint32_t limit);
  // What KeepCounts was given for the data set. NOT_FOUND.
  absl::StatusOr<DatasetCounts> Counts(absl::string_view id);
  absl::Status KeepCounts(absl::string_view id, const DatasetCounts& counts);
  // FAILED_PRECONDITION while a run names it.
  absl::Status DeleteDataset(absl::string_view id);

  // --- Upkeep
  // Compacts row groups of ended runs into columnar chunks, deletes tombstoned rows in slices,
  // sweeps blobs that no row names, checkpoints the log. Runs by itself in the background; this
  // waits until all of it is done.
  absl::Status Maintain();
  // All bytes of a store in memory, to open another with: as a backup that is restored.
  // FAILED_PRECONDITION on file.
  absl::StatusOr<std::string> Image();

 private:
  Store(OpenedFiles files, StoreOptions options);

  const StoreOptions options_;
  // In the order in which they are needed: destroyed from the last to the first. Without a lock,
  // room or blobs in memory.
  const process::FileDescriptor lock_;
  const std::unique_ptr<DiskRoom> room_;
  const std::unique_ptr<Blobs> blobs_;
  const std::string generation_;
  const std::unique_ptr<Database> db_;
  const std::unique_ptr<Maintenance> maintenance_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_STORE_H_
