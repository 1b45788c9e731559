// The store over SQLite: dispatches each method to the writer or to a reader.
#ifndef ABLATE_STORAGE_SQLITE_STORE_H_
#define ABLATE_STORAGE_SQLITE_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/disk_room.h"
#include "storage/sqlite/folder.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/readers.h"
#include "storage/sqlite/writer.h"
#include "storage/store.h"

namespace ablate::storage {

class SqliteStore final : public Store {
 public:
  // What Open made; in memory all but `db` are null.
  struct Parts {
    std::unique_ptr<FolderLock> lock;
    std::unique_ptr<DiskRoom> room;
    std::unique_ptr<Blobs> blobs;
    std::unique_ptr<Readers> readers;
    std::unique_ptr<Connection> db;
    std::string path;  // of the database
    std::string generation;
  };
  SqliteStore(Parts parts, StoreOptions options);
  ~SqliteStore() override;

  std::string generation() const override { return generation_; }
  Blobs* blobs() override { return blobs_.get(); }
  std::string stalled() const override;
  absl::StatusOr<uint64_t> FreeBytes() const override;
  std::string folder() const override { return options_.folder; }
  uint64_t change_number() const override { return writer_.change_number(); }

  absl::StatusOr<CreatedExperiment> CreateExperiment(const NewExperiment& experiment) override;
  absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(absl::string_view id,
                                                               absl::string_view hash) override;
  absl::StatusOr<std::vector<KnownRun>> LookUpRuns(const std::vector<NewRun>& runs) override;
  absl::StatusOr<ExperimentRecord> GetExperiment(absl::string_view id) override;
  absl::StatusOr<std::vector<std::string>> FindExperiments(absl::string_view prefix,
                                                           uint32_t limit) override;
  absl::StatusOr<std::vector<ExperimentRecord>> ListExperiments(absl::string_view after,
                                                                uint32_t limit) override;
  absl::StatusOr<std::vector<Withdrawal>> CancelExperiment(absl::string_view id) override;
  absl::Status DeleteExperiment(absl::string_view id) override;
  absl::StatusOr<std::vector<CellRecord>> ListCells(absl::string_view experiment, uint32_t first,
                                                    uint32_t limit) override;
  absl::StatusOr<std::vector<CellRecord>> ChangedCells(absl::string_view experiment, uint64_t after,
                                                       uint32_t limit) override;

  absl::StatusOr<RunRecord> GetRun(absl::string_view id) override;
  absl::StatusOr<std::vector<std::string>> FindRuns(absl::string_view prefix,
                                                    uint32_t limit) override;
  absl::StatusOr<std::vector<RunEventRecord>> RunEvents(absl::string_view run) override;
  absl::StatusOr<std::vector<RunSummaries>> Summaries(
      const std::vector<std::string>& runs) override;
  absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(absl::string_view run) override;
  absl::StatusOr<std::optional<double>> MeasuredStepTime(absl::string_view shape) override;

  absl::StatusOr<std::vector<QueuedRun>> Queue(absl::string_view device_kind,
                                               uint32_t limit) override;
  absl::StatusOr<std::vector<std::vector<GrantedRun>>> Grant(
      const std::vector<NewLease>& leases) override;
  absl::StatusOr<std::vector<Applied>> Apply(absl::string_view holder_incarnation,
                                             const std::vector<LeaseEvent>& events) override;
  void ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                  std::function<void(absl::StatusOr<std::vector<Applied>>)> done) override;
  absl::StatusOr<LeaseVerdict> CheckLease(absl::string_view lease, absl::string_view incarnation,
                                          uint64_t first_unacked) override;
  absl::Status EndLease(absl::string_view lease, LeaseEnd end,
                        const std::vector<std::string>& stepping,
                        absl::string_view message) override;
  absl::StatusOr<std::vector<LeaseRecord>> ListLeases() override;
  absl::StatusOr<bool> LeaseExists(absl::string_view lease) override;

  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> RunKeys(
      absl::string_view run) override;
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> ExperimentKeys(
      absl::string_view experiment) override;
  absl::Status ReadSeries(const SeriesQuery& query,
                          const std::function<bool(const std::vector<uint32_t>&,
                                                   const std::vector<double>&)>& piece) override;

  absl::StatusOr<DatasetRecord> AddDataset(const DatasetRecord& dataset) override;
  absl::StatusOr<DatasetRecord> FindDataset(absl::string_view id_or_name) override;
  absl::StatusOr<std::vector<DatasetRecord>> ListDatasets(absl::string_view after,
                                                          uint32_t limit) override;
  absl::StatusOr<std::string> DocumentLengths(absl::string_view id) override;
  absl::Status KeepDocumentLengths(absl::string_view id, absl::string_view lengths) override;
  absl::Status DeleteDataset(absl::string_view id) override;

  absl::Status Maintain() override;
  absl::StatusOr<std::string> Image() override;

 private:
  // Runs `read` on a connection in a transaction of its own.
  absl::Status Read(const std::function<absl::Status(Connection&)>& read);
  // The same for functions that return a value or a StatusOr.
  template <typename Work>
  auto ReadFor(const Work& work);
  absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> CountKeys(
      const std::vector<int64_t>& runs);

  const StoreOptions options_;
  // In the order in which they are needed: destroyed from the last to the first.
  const std::unique_ptr<FolderLock> lock_;
  const std::unique_ptr<DiskRoom> room_;
  const std::unique_ptr<Blobs> blobs_;
  const std::string generation_;
  Writer writer_;
  // After the writer's connection, so that theirs close first and the last one, which empties the
  // log, is the writer's.
  const std::unique_ptr<Readers> readers_;
  Maintenance maintenance_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_STORE_H_
