// Stores everything durable: experiments, runs, leases, points, artifacts, analyses, data sets. One
// class over one SQLite file; its methods are in storage/sqlite/, a file per topic.
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
#include "storage/run_query.h"

namespace ablate::storage {

class Database;
class Maintenance;
struct OpenedFiles;

// 2 GB: some thousands of saved training states of the published experiments.
inline constexpr uint64_t kLastStatesBytes = 2'000'000'000;

struct StoreOptions {
  // Folder with ablate.db and blobs/; created with mode 0700. Empty: in memory, without blobs.
  std::string folder;
  // Bytes reserved on the disk so that deletes work when it is full (storage/disk_room.h); 0: none.
  uint64_t ballast_bytes = 0;
  // Limit in bytes of the saved training states of DONE runs, from which equal runs with more steps
  // can continue. The oldest are deleted first, except those that a queued run is to start from. 0:
  // none are kept.
  uint64_t last_states_bytes = kLastStatesBytes;
  // Wall clock for the times in records. Default: the system's.
  std::function<Micros()> now;
  // Returns the free bytes of the disk. Default: as reported by the folder's file system.
  std::function<absl::StatusOr<uint64_t>()> free_bytes;
  // Called on the writer's thread after each group of writes, refused ones too, with the newest
  // change number; must not block.
  std::function<void(uint64_t)> on_commit;
  // Receives one line for each thing that the store does by itself with the user's files.
  // Thread-safe.
  std::function<void(const std::string&)> log;
  // Sweep blobs that no row names even if they are the majority. Otherwise such a sweep, some
  // minutes after a start, removes none, because the database may be an older one.
  bool sweep_leftovers = false;
  // In memory only: start as a copy of the store that Image() was called on.
  std::string image;
  // Called if the disk failed or the file is corrupt; must not return, except in tests, in which
  // the store then refuses all writes. Default: writes the reason to stderr and ends the process.
  std::function<void(const absl::Status&)> fatal;
};

struct CreatedCell {
  std::string run;
  bool reused = false;  // exists and isn't queued again for this experiment
};

struct CreatedExperiment {
  std::string id;
  bool repeated = false;   // this request_id was answered before; nothing was changed
  bool identical = false;  // the new one would only repeat it; nothing was changed
  std::vector<CreatedCell> cells;
  uint32_t reused = 0;  // number of reused cells
};

// Stored facts about a fingerprint, before an experiment is created.
struct KnownRun {
  std::string run;  // newest generation; empty if there is none
  RunState state = RunState::kQueued;
  // True if it is queued or training in an active experiment of the owner who asks.
  bool counts_toward_quota = false;
  std::vector<std::string> same_trajectory;  // runs that differ only in evaluation or checkpoints
  // Runs that it could continue from, longest first; empty if it would not be trained from step 0
  // anyway.
  std::vector<ShorterRun> shorter;
  // The longest run without a saved training state that is longer than these; likewise.
  std::optional<LostState> lost;
  // The saved state from which a cancelled run continues.
  std::optional<SavedState> saved;
};

struct SeriesQuery {
  std::string run;
  std::string key;
  uint32_t first_step = 0;
  uint32_t last_step = UINT32_MAX;
};

// Takes the next points of a series, in ascending steps; returns false to stop.
using SeriesPiece =
    std::function<bool(const std::vector<uint32_t>& steps, const std::vector<double>& values)>;

// Position of a reader in a series, so that it can pause; a new one is at the beginning. Steps
// ascend strictly within a series, so that the next step identifies the position, also while the
// run's row groups are turned into chunks.
struct SeriesPosition {
  uint64_t next_step = 0;
  uint64_t last_group = 0;  // last row group that was read
  uint64_t points = 0;      // number of points read
  uint64_t change = 0;      // change number of the run at the beginning
  bool steady = true;       // the run has not changed since
};

// Work that cancelling an experiment stops elsewhere.
struct CancelledExperiment {
  std::vector<Withdrawal> withdrawals;
  std::vector<std::string> analyses;  // analyses that no other experiment waits for; now CANCELLED
};

// Result of deleting an experiment.
struct Deletion {
  uint32_t runs = 0;      // that no other experiment has
  uint32_t analyses = 0;  // of these runs, also together with others
  Micros device_time = 0;
  uint64_t bytes = 0;  // of rows and blobs that nothing else names
  uint32_t shared_runs = 0;
  std::vector<std::string> shared_with;    // experiments, newest first, at most 20
  std::vector<std::string> checkpoint_of;  // experiments that began with a checkpoint; likewise
};

// The durable state of a server. Thread-safe. One writer thread commits writes in groups (a
// savepoint each, one fsync per group); a write returns after its commit. Reads use read-only
// connections and see every write that has returned. Any write may fail with RESOURCE_EXHAUSTED if
// the disk is full: nothing has changed, try again later; cancelling and deleting work as long as
// there is a ballast. A failed fsync or a corrupt file ends the process, because acknowledged data
// would not be certain any more.
class Store final : public LeaseStore {
 public:
  // Opens a store and applies migrations. FAILED_PRECONDITION if another process holds the folder,
  // the file is newer than this program or is missing although there are blobs, or the folder is on
  // a network file system.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);
  ~Store() override;

  // Returns the random identity of this file, made on its creation; part of watch tokens.
  const std::string& generation() const { return generation_; }
  // Returns why nothing more is stored, so that training pauses ("disk full"); empty if it is.
  std::string stalled() const;
  // Returns the free bytes for new data, and the folder's path. Unlimited in memory.
  absl::StatusOr<uint64_t> FreeBytes() const;
  const std::string& folder() const { return options_.folder; }
  uint64_t last_states_bytes() const { return options_.last_states_bytes; }

  // --- Experiments
  //
  // Creates the experiment, its cells and the missing runs. One of more than 500 cells takes
  // several transactions, so that other writes don't wait; it is visible, and its new runs are
  // granted, once all have succeeded, and otherwise only its `uploads` stay. A fingerprint's newest
  // generation is reused if QUEUED, LEASED, DONE or DIVERGED. It is queued again if FAILED (from
  // step 0: its resume state may be why it failed) or CANCELLED. A run that would start at step 0
  // starts from its `origin` if that still has its saved training state. ALREADY_EXISTS if
  // request_id was used for something else; NOT_FOUND if a dataset_blob isn't a data set's. Creates
  // nothing if an experiment `repeats` the new one with equal cells and runs, and returns the
  // newest of these. `uploads` stay, and those that become public are public from then on.
  absl::StatusOr<CreatedExperiment> CreateExperiment(const NewExperiment& experiment);
  // Returns CreateExperiment's answer to a request_id that its owner has used; nothing if it is
  // new.
  absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(absl::string_view owner,
                                                               absl::string_view id,
                                                               absl::string_view hash);
  absl::StatusOr<ExperimentRecord> GetExperiment(absl::string_view id);
  // Returns up to `limit` ids with this prefix: the equal id, those of this name, newest first,
  // others.
  absl::StatusOr<std::vector<std::string>> FindExperiments(const Viewer& viewer,
                                                           absl::string_view prefix,
                                                           uint32_t limit);
  // Returns experiments, newest first, after the one with id `after` (empty: from the newest).
  // NOT_FOUND if the viewer sees no experiment `after`.
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(const Viewer& viewer,
                                                                const ExperimentFilter& filter,
                                                                absl::string_view after,
                                                                uint32_t limit);
  // Returns the IDs and names of the newest experiments, at most `limit` of them.
  absl::StatusOr<std::vector<std::string>> ExperimentIdsAndNames(const Viewer& viewer,
                                                                 uint32_t limit);
  // Returns the experiments with this name, archived ones last, the newest first of each.
  absl::StatusOr<std::vector<NamedExperiment>> ExperimentsNamed(const Viewer& viewer,
                                                                absl::string_view name,
                                                                uint32_t limit);
  // Returns the public experiments that are active or have ended at `since` or later.
  absl::StatusOr<std::vector<ExperimentNews>> NewsSince(Micros since);
  // Returns the id of an experiment that extends this one; empty if there is none.
  absl::StatusOr<std::string> ExtensionOf(absl::string_view id);
  // Changes what describes an experiment, or when its runs are granted. NOT_FOUND; INVALID_ARGUMENT
  // if it would have more than kMaxTags tags; FAILED_PRECONDITION if it has ended and `update` says
  // when to grant.
  absl::Status UpdateExperiment(absl::string_view id, const ExperimentUpdate& update);
  // Returns what was written since the start. Thread-safe; doesn't wait for a write.
  WriteCounts write_counts() const;
  // Counts the runs of all experiments.
  absl::StatusOr<RunStates> CountRuns();
  // Reads the whole database; returns what is damaged, in words. Takes some seconds a GB.
  absl::StatusOr<Damage> FindDamage();
  // Returns every blob that the database names, by hash.
  absl::StatusOr<std::vector<NamedBlob>> NamedBlobs();
  // Returns the queue by experiment, in the order of their IDs. Takes a time in proportion to the
  // number of queued runs.
  absl::StatusOr<std::vector<QueuedGroup>> QueuedGroups();
  // Returns the lanes that the queued runs of a device kind take, without those of paused
  // experiments. Takes a time in proportion to their number.
  absl::StatusOr<std::vector<QueuedLanes>> CountQueuedLanes(absl::string_view device_kind);
  // Returns the runs that workers have and no other active experiment needs. NOT_FOUND.
  absl::StatusOr<std::vector<Withdrawal>> LeasedOnlyBy(absl::string_view id);
  // Withdraws an active experiment's cells. Runs that no other active experiment needs become
  // CANCELLED and leave their leases; returns those that were leased. Repeating it changes nothing.
  absl::StatusOr<CancelledExperiment> CancelExperiment(absl::string_view id);
  // Deletes an experiment that isn't active; FAILED_PRECONDITION otherwise. Runs that no other
  // experiment has are deleted, too, in slices.
  absl::Status DeleteExperiment(absl::string_view id);
  // Returns what DeleteExperiment would remove, or its error. Names experiments that the viewer
  // sees.
  absl::StatusOr<Deletion> PlanDeletion(const Viewer& viewer, absl::string_view id);
  // Returns cells from grid index `first` on.
  absl::StatusOr<std::vector<CellRecord>> ListCells(absl::string_view experiment, uint32_t first,
                                                    uint32_t limit);
  // Returns cells whose run changed after change number `after`, in ascending order of change
  // number. May return more than `limit`: the cells of one run change together and are never split,
  // so that the last one's number can be the next `after`.
  absl::StatusOr<std::vector<CellRecord>> ChangedCells(absl::string_view experiment, uint64_t after,
                                                       uint32_t limit);
  // Returns experiments without stored fields, from before there were any, newest first; and writes
  // the fields of one. NOT_FOUND.
  absl::StatusOr<std::vector<std::string>> UndescribedExperiments();
  absl::Status DescribeExperiment(absl::string_view id, const CellFields& fields);
  // Returns the newest committed change number. Every write to a run or an analysis takes a new
  // one.
  uint64_t change_number() const;

  // --- Runs
  //
  // Returns what is known of these runs; `owner` is the owner of the experiment to be created.
  absl::StatusOr<std::vector<KnownRun>> LookUpRuns(const std::vector<NewRun>& runs,
                                                   absl::string_view owner = "");
  absl::StatusOr<RunRecord> GetRun(absl::string_view id);
  absl::StatusOr<std::vector<std::string>> FindRuns(const Viewer& viewer, absl::string_view prefix,
                                                    uint32_t limit);
  // Returns the runs that the viewer may see.
  absl::StatusOr<std::vector<std::string>> VisibleRuns(const Viewer& viewer,
                                                       const std::vector<std::string>& runs);
  absl::StatusOr<std::vector<RunEventRecord>> RunEvents(absl::string_view run);
  // Returns the log of a run's program from a position on, some 256 KiB at most. What is no longer
  // kept is skipped.
  absl::StatusOr<RunLog> ReadRunLog(absl::string_view run, uint64_t position);
  // Returns the cells that a query asks for, in its order (run_query.h). NOT_FOUND if it, or
  // its position, names an experiment that doesn't exist or that the viewer doesn't see.
  absl::StatusOr<std::vector<FoundCell>> FindCells(const RunQuery& query);
  // Returns the names that queries of this viewer may have, sorted.
  absl::StatusOr<QueryNames> ListQueryNames(const Viewer& viewer);
  // Returns the labels that cells which the viewer may see have on an axis, sorted.
  absl::StatusOr<std::vector<std::string>> ListLabels(const Viewer& viewer, absl::string_view axis);
  absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(absl::string_view run);

  // --- Queue and leases: see LeaseStore
  Blobs* blobs() override { return blobs_.get(); }
  absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                               const std::set<std::string>& trainers,
                                               uint32_t limit) override;
  absl::StatusOr<DeviceShares> GetShares() override;
  absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) override;
  void OnWithdrawn(OnWithdrawnFunction on_withdrawn) override;
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
  // Returns the rights of a lease; nothing if it has ended.
  absl::StatusOr<std::optional<LeaseRights>> FindLeaseRights(absl::string_view lease);

  // --- Metrics
  //
  // Returns the summaries of each run named. If one run's are damaged, the others are still
  // returned.
  absl::StatusOr<std::vector<RunSummaries>> Summaries(const std::vector<std::string>& runs);
  // Return keys with point counts of one run (DATA_LOSS if they are damaged), or of all runs of an
  // experiment whose keys can be read.
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> RunKeys(absl::string_view run);
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> ExperimentKeys(
      absl::string_view experiment);
  // Passes the series to `piece` in pieces of ascending steps; no read transaction outlives a
  // piece. Stops early, with CANCELLED, if `piece` returns false. DATA_LOSS naming run and key if
  // the rest of the series is damaged; the points passed before are right. A series that is read
  // from its first step to its end is also checked for missing points, unless the run changed
  // meanwhile. Starts at `position` if given, and moves it: after CANCELLED it is after the passed
  // points, and the same query may continue from there.
  absl::Status ReadSeries(const SeriesQuery& query, const SeriesPiece& piece,
                          SeriesPosition* position = nullptr);

  // --- Analyses
  //
  // Creates the analysis with this id if there is none; queues it again, from its beginning, if it
  // FAILED, was CANCELLED or lost its arrays. NOT_FOUND if a subject's run has no checkpoint of
  // that step, or an experiment that labels it is gone; ALREADY_EXISTS if that experiment uses the
  // label for another signature; RESOURCE_EXHAUSTED if `most_open` are waiting or running.
  absl::StatusOr<CreatedAnalysis> CreateAnalysis(const NewAnalysis& analysis, uint32_t most_open);
  // Returns true if it exists and CreateAnalysis would not queue it again.
  absl::StatusOr<bool> IsAnalysisThere(absl::string_view id);
  // Returns CreateAnalysis's error for the first of its labels that is taken; OK if none is.
  absl::Status CheckLabels(const NewAnalysis& analysis);
  absl::StatusOr<AnalysisRecord> GetAnalysis(absl::string_view id);
  absl::StatusOr<std::vector<std::string>> FindAnalyses(const Viewer& viewer,
                                                        absl::string_view prefix, uint32_t limit);
  // Return analyses, newest first, after the one with id `after` (empty: from the newest): all;
  // those with this run as a subject; or those with a run of this experiment as a subject, and
  // those that its spec asks for. NOT_FOUND if the viewer sees no analysis `after`.
  absl::StatusOr<std::vector<AnalysisRecord>> ListAnalyses(const Viewer& viewer,
                                                           absl::string_view after, uint32_t limit);
  absl::StatusOr<std::vector<AnalysisRecord>> RunAnalyses(const Viewer& viewer,
                                                          absl::string_view run,
                                                          absl::string_view after, uint32_t limit);
  absl::StatusOr<std::vector<AnalysisRecord>> ExperimentAnalyses(const Viewer& viewer,
                                                                 absl::string_view experiment,
                                                                 absl::string_view after,
                                                                 uint32_t limit);
  // Returns the DONE analyses of a single run that are of the experiment's runs and have one of its
  // labels, or this one label. Ordered by label, run, step (the last step if there are several),
  // and age, newest last.
  absl::StatusOr<std::vector<LabelledAnalysis>> LabelledAnalyses(absl::string_view experiment,
                                                                 absl::string_view label = "");
  // Returns the experiments whose analyses must be planned.
  absl::StatusOr<Unplanned> UnplannedExperiments();
  // Records that everything an experiment's spec asks for has been requested; it ends with the last
  // of them. `failure` says what could not be requested, and why; or is empty. Does nothing if the
  // experiment isn't ACTIVE, or if one of its runs was queued again after `experiment` was read:
  // then it must be planned again.
  absl::Status PlannedAnalyses(const UnplannedExperiment& experiment, const std::string& failure);
  // Returns them in order of label, then oldest first.
  absl::StatusOr<std::vector<AskedAnalysis>> AskedAnalyses(absl::string_view experiment);
  // Returns the QUEUED and RUNNING analyses, oldest first.
  absl::StatusOr<std::vector<AnalysisRecord>> OpenAnalyses();
  absl::StatusOr<uint32_t> CountQueuedAnalyses();
  // Changes QUEUED to RUNNING. This and the next two change nothing if the analysis has ended or is
  // gone.
  absl::Status BeginAnalysis(absl::string_view id);
  // Saves progress. A new state replaces the previous one, which is deleted. A blob named here must
  // be published.
  absl::Status SaveAnalysis(absl::string_view id, const AnalysisProgress& progress);
  absl::Status EndAnalysis(absl::string_view id, const AnalysisEnd& end);
  // Counts the DONE analyses whose first subject is one of these runs, by signature.
  absl::StatusOr<std::map<std::string, uint64_t>> CountDoneAnalyses(
      const std::vector<std::string>& runs);
  // Returns the group's measured times; zeros if none was made. Removed analyses still count.
  absl::StatusOr<AnalysisTimes> MeasuredAnalysisTimes(absl::string_view group);
  // Cancels an analysis unless it has ended, and returns its record.
  absl::StatusOr<AnalysisRecord> CancelAnalysis(absl::string_view id);
  // Removes an analysis's result and arrays in any state, and its row; if an experiment's spec asks
  // for it, the row stays as CANCELLED. NOT_FOUND.
  absl::Status DeleteAnalysis(absl::string_view id);
  // Returns the experiments whose specs ask for it, without deleted ones, in order of creation.
  absl::StatusOr<std::vector<AnalysisAsker>> AnalysisAskers(absl::string_view analysis);

  // --- Data sets
  //
  // Adds a data set and returns its record; if one with the same hash, private to the same user,
  // exists, returns that. If that one would be deleted unless an experiment uses it, it is kept as
  // long as the new one, and becomes private if the new one is. A public one publishes an upload of
  // its owner that becomes public. ALREADY_EXISTS if another data set has the id;
  // FAILED_PRECONDITION if the blob isn't published.
  absl::StatusOr<DatasetRecord> AddDataset(const DatasetRecord& dataset);
  // Returns true if the user owns an experiment, a data set, a model or an analysis, or one is
  // private to them.
  absl::StatusOr<bool> OwnsAnything(absl::string_view user);
  // Finds a data set by id, or by a display name that only one of the viewer's data sets has or, if
  // none of those does, only one of others; never another user's private one, whoever looks. Only
  // its user finds one that becomes public. NOT_FOUND; FAILED_PRECONDITION if several match.
  absl::StatusOr<DatasetRecord> FindDataset(const Viewer& viewer, absl::string_view id_or_name);
  // Returns the data sets with these bytes that the viewer sees, private ones first.
  absl::StatusOr<std::vector<DatasetRecord>> FindDatasetsOf(const Viewer& viewer,
                                                            absl::string_view sha256);
  // Returns the tokens made of EncodedFrom's result: those private to a user, or public ones;
  // nothing if there are none.
  absl::StatusOr<std::optional<DatasetRecord>> FindEncoded(absl::string_view encoded_from,
                                                           absl::string_view private_to);
  // Returns those with keys after `after`, without others' that become public.
  absl::StatusOr<std::vector<DatasetRecord>> ListDatasets(const Viewer& viewer,
                                                          absl::string_view after, uint32_t limit);
  // Returns what KeepCounts stored for the data set. NOT_FOUND.
  absl::StatusOr<DatasetCounts> Counts(absl::string_view key);
  absl::Status KeepCounts(absl::string_view key, const DatasetCounts& counts);
  // Deletes a data set; FAILED_PRECONDITION while a run names it.
  absl::Status DeleteDataset(absl::string_view key);

  // --- Models
  //
  // Adds a model and returns its record; if one of that name and checkpoint exists, returns that.
  // ALREADY_EXISTS if a model with another checkpoint has the name; FAILED_PRECONDITION if the blob
  // isn't published.
  absl::StatusOr<ModelRecord> AddModel(const ModelRecord& model);
  // Finds a model by its name; a private one of the viewer's also by the name without the user, and
  // before a public one. NOT_FOUND.
  absl::StatusOr<ModelRecord> FindModel(const Viewer& viewer, absl::string_view name);
  // Returns models in order of name, from after `after`.
  absl::StatusOr<std::vector<ModelRecord>> ListModels(const Viewer& viewer, absl::string_view after,
                                                      uint32_t limit);
  // Deletes a model. Runs that begin with it keep its checkpoint. NOT_FOUND.
  absl::Status DeleteModel(absl::string_view name);

  // --- Maintenance
  //
  // Compacts row groups of ended runs into columnar chunks, deletes tombstoned rows in slices,
  // sweeps blobs that no row names, and checkpoints the log. This runs in the background by itself;
  // the call waits until all of it is done.
  absl::Status Maintain();
  // Returns all bytes of a store in memory, from which another can be opened, like a restored
  // backup. FAILED_PRECONDITION for a store on disk.
  absl::StatusOr<std::string> Image();

 private:
  Store(OpenedFiles files, StoreOptions options);

  const StoreOptions options_;
  // In order of dependency: destroyed from last to first. In memory there are no lock, room or
  // blobs.
  const process::FileDescriptor lock_;
  const std::unique_ptr<DiskRoom> room_;
  const std::unique_ptr<Blobs> blobs_;
  const std::string generation_;
  const std::unique_ptr<Database> db_;
  const std::unique_ptr<Maintenance> maintenance_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_STORE_H_
