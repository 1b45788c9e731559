// Everything durable: experiments, runs, leases, points, artifacts, data sets. One class over one
// SQLite file.
#ifndef ABLATE_STORAGE_STORE_H_
#define ABLATE_STORAGE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/leases.h"
#include "storage/records.h"

namespace ablate::storage {

struct StoreOptions {
  // Folder with ablate.db and blobs/; created with mode 0700. Empty: in memory, without blobs.
  std::string folder;
  // Bytes kept on the disk so that deletes work when it is full (storage/disk_room.h); 0: none.
  uint64_t ballast_bytes = 0;
  // Wall clock, for the times in records. Default: the system's.
  std::function<Micros()> now;
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
  std::vector<std::string> same_trajectory;  // runs that differ only in evaluation or checkpoints
};

// A run to stop on a worker.
struct Withdrawal {
  std::string lease;
  std::string run;
  std::string worker;
};

struct QueuedRun {
  std::string run;
  std::string shape;
  std::string device_kind;
  int priority = 1;  // the best of its live experiments'
  uint32_t steps = 0;
};

struct SeriesQuery {
  std::string run;
  std::string key;
  uint32_t first_step = 0;
  uint32_t last_step = UINT32_MAX;
};

// Thread-safe. Writes go through one writer thread that commits them in groups (a savepoint each,
// one fsync a group) and return after the commit; reads use read-only connections and see every
// write that returned. Any write: RESOURCE_EXHAUSTED if the disk is full (nothing changed, try
// again later; cancelling and deleting work as long as there is a ballast). A failed fsync or a
// corrupt file ends the process: what was acknowledged would no longer be certain.
class Store {
 public:
  // FAILED_PRECONDITION if another process holds the folder, the file is newer than this program or
  // is missing beside blobs, or the folder is on a network file system. Applies migrations.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);
  virtual ~Store() = default;

  // Random identity of this file, new when it is created; part of watch tokens.
  virtual std::string generation() const = 0;
  // Null in memory.
  virtual Blobs* blobs() = 0;
  // Why nothing more is stored, so that training pauses: "disk full". Empty while all is well.
  virtual std::string stalled() const = 0;
  // Bytes that the disk has left for more, and the folder that they are in. All there can be, in
  // memory.
  virtual absl::StatusOr<uint64_t> FreeBytes() const = 0;
  virtual std::string folder() const = 0;

  // --- Experiments
  // Creates the experiment, its cells and the runs that are missing, in one transaction. A
  // fingerprint's newest generation is reused when QUEUED, LEASED, DONE or DIVERGED and queued
  // again when FAILED (from step 0: its resume state may be why it failed) or CANCELLED.
  // ALREADY_EXISTS if request_id was used for something else; NOT_FOUND if a dataset_blob is not a
  // data set's.
  virtual absl::StatusOr<CreatedExperiment> CreateExperiment(const NewExperiment& experiment) = 0;
  // What CreateExperiment would answer to a request_id that was used; nothing if it was not.
  virtual absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(absl::string_view id,
                                                                       absl::string_view hash) = 0;
  virtual absl::StatusOr<std::vector<KnownRun>> LookUpRuns(const std::vector<NewRun>& runs) = 0;
  virtual absl::StatusOr<ExperimentRecord> GetExperiment(absl::string_view id) = 0;
  // Ids that begin with `prefix`, at most `limit`.
  virtual absl::StatusOr<std::vector<std::string>> FindExperiments(absl::string_view prefix,
                                                                   uint32_t limit) = 0;
  // Newest first, after the one with id `after` (empty: from the newest).
  virtual absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(absl::string_view after,
                                                                        uint32_t limit) = 0;
  // Withdraws a live experiment's cells. Runs that no other live experiment has become CANCELLED
  // and leave their leases; those that were leased are returned. Repeating it changes nothing.
  virtual absl::StatusOr<std::vector<Withdrawal>> CancelExperiment(absl::string_view id) = 0;
  // FAILED_PRECONDITION while it is active. Runs that no other experiment has go with it, in
  // slices.
  virtual absl::Status DeleteExperiment(absl::string_view id) = 0;
  // Cells from grid index `first` on.
  virtual absl::StatusOr<std::vector<CellRecord>> ListCells(absl::string_view experiment,
                                                            uint32_t first, uint32_t limit) = 0;
  // Cells whose run changed after change number `after`, by ascending change number. May return
  // more than `limit`: the cells of one run change together and are never parted.
  virtual absl::StatusOr<std::vector<CellRecord>> ChangedCells(absl::string_view experiment,
                                                               uint64_t after, uint32_t limit) = 0;
  // Newest committed change number. Every write to a run takes a new one.
  virtual uint64_t change_number() const = 0;

  // --- Runs
  virtual absl::StatusOr<RunRecord> GetRun(absl::string_view id) = 0;
  virtual absl::StatusOr<std::vector<std::string>> FindRuns(absl::string_view prefix,
                                                            uint32_t limit) = 0;
  virtual absl::StatusOr<std::vector<RunEventRecord>> RunEvents(absl::string_view run) = 0;
  // Of each run named. Those of one may be damaged: the others are well.
  virtual absl::StatusOr<std::vector<RunSummaries>> Summaries(
      const std::vector<std::string>& runs) = 0;
  virtual absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(absl::string_view run) = 0;
  // Mean lane microseconds a step of finished runs of this shape; nothing if there is none.
  virtual absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) = 0;

  // --- Queue and leases (storage/leases.h; service.md's invariants hold inside these transactions)
  // Queued runs for a device kind, best priority first, then oldest.
  virtual absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                                       uint32_t limit) = 0;
  // New leases, in one transaction, over those of their runs that are still QUEUED, each rewound to
  // its resume state's place (later row groups, checkpoints go; the summaries stored with it
  // return), or to step 0 if the state's blob is gone. One result each; empty: no lease was made.
  virtual absl::StatusOr<std::vector<std::vector<GrantedRun>>> Grant(
      const std::vector<NewLease>& leases) = 0;
  // Applies events in order; one result each. `holder_incarnation` must be the lease's. A blob
  // named by an event must be published and pinned by the caller until this returns.
  virtual absl::StatusOr<std::vector<Applied>> Apply(absl::string_view holder_incarnation,
                                                     const std::vector<LeaseEvent>& events) = 0;
  // The same without waiting: `done` is called on the writer's thread after the commit; must not
  // block.
  virtual void ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                          std::function<void(absl::StatusOr<std::vector<Applied>>)> done) = 0;
  // DROP if the lease is gone, another incarnation's, or the worker lacks events that this file
  // never had (first_unacked > last + 1: a restored backup).
  virtual absl::StatusOr<LeaseVerdict> CheckLease(absl::string_view lease,
                                                  absl::string_view incarnation,
                                                  uint64_t first_unacked) = 0;
  // Ends a lease. Its runs go back to the queue; by `end` it counts against them (`stepping`: the
  // runs that a died worker was training; empty: all). `message` is kept in their history.
  virtual absl::Status EndLease(absl::string_view lease, LeaseEnd end,
                                const std::vector<std::string>& stepping,
                                absl::string_view message) = 0;
  // Those under which a run is LEASED, in the order of granting.
  virtual absl::StatusOr<std::vector<LeaseRecord>> ListLeases() = 0;
  // What blobs a lease may read or write is for the service to decide.
  virtual absl::StatusOr<bool> LeaseExists(absl::string_view lease) = 0;

  // --- Metrics
  // Keys with point counts, over one run (DATA_LOSS if they are damaged) or over all runs of an
  // experiment whose keys can be read.
  virtual absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> RunKeys(
      absl::string_view run) = 0;
  virtual absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> ExperimentKeys(
      absl::string_view experiment) = 0;
  // Hands over the series in pieces of ascending steps; no read transaction outlives a piece. Stops
  // early, with CANCELLED, when `piece` returns false. DATA_LOSS, naming run and key, if the rest
  // of the series is damaged: what was handed over is right.
  virtual absl::Status ReadSeries(
      const SeriesQuery& query,
      const std::function<bool(const std::vector<uint32_t>& steps,
                               const std::vector<double>& values)>& piece) = 0;

  // --- Data sets
  // The record as stored; an equal hash returns the data set that is there.
  virtual absl::StatusOr<DatasetRecord> AddDataset(const DatasetRecord& dataset) = 0;
  // By id, or by a display name that only one data set has. NOT_FOUND; FAILED_PRECONDITION if
  // several.
  virtual absl::StatusOr<DatasetRecord> FindDataset(absl::string_view id_or_name) = 0;
  virtual absl::StatusOr<std::vector<DatasetRecord>> ListDatasets(absl::string_view after,
                                                                  uint32_t limit) = 0;
  // What KeepDocumentLengths was given for the data set, "" before. NOT_FOUND.
  virtual absl::StatusOr<std::string> DocumentLengths(absl::string_view id) = 0;
  virtual absl::Status KeepDocumentLengths(absl::string_view id, absl::string_view lengths) = 0;
  // FAILED_PRECONDITION while a run names it.
  virtual absl::Status DeleteDataset(absl::string_view id) = 0;

  // --- Upkeep
  // Compacts row groups of ended runs into columnar chunks, deletes tombstoned rows in slices,
  // sweeps blobs that no row names, checkpoints the log. Runs by itself in the background; this
  // waits until all of it is done.
  virtual absl::Status Maintain() = 0;
  // All bytes of a store in memory, to open another with: as a backup that is restored.
  // FAILED_PRECONDITION on file.
  virtual absl::StatusOr<std::string> Image() = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_STORE_H_
