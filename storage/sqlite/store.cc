// Store's methods, one request or one page each.
#include "storage/sqlite/store.h"

#include <map>
#include <type_traits>

#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/datasets.h"
#include "storage/sqlite/events.h"
#include "storage/sqlite/experiment_reads.h"
#include "storage/sqlite/experiments.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/metrics.h"
#include "storage/sqlite/runs.h"

namespace ablate::storage {
namespace {

constexpr size_t kPageRuns = 200;

template <typename T>
struct IsStatusOr : std::false_type {};
template <typename T>
struct IsStatusOr<absl::StatusOr<T>> : std::true_type {};

}  // namespace

SqliteStore::SqliteStore(Parts parts, StoreOptions options)
    : options_(std::move(options)),
      lock_(std::move(parts.lock)),
      room_(std::move(parts.room)),
      blobs_(std::move(parts.blobs)),
      generation_(std::move(parts.generation)),
      writer_(std::move(parts.db), {.threaded = parts.readers != nullptr,
                                    .path = std::move(parts.path),
                                    .room = room_.get(),
                                    .now = options_.now,
                                    .on_commit = options_.on_commit,
                                    .on_chores = [this] { maintenance_.Signal(); },
                                    .on_full =
                                        [this] {
                                          if (blobs_ != nullptr)
                                            blobs_->FreeTrash(Blobs::kFreedAtOnce);
                                        },
                                    .fatal = options_.fatal}),
      readers_(std::move(parts.readers)),
      maintenance_(
          &writer_,
          [this](const std::function<absl::Status(Connection&)>& read) { return Read(read); },
          blobs_.get(),
          {.now = options_.now,
           .log = options_.log,
           .sweep_most = options_.sweep_leftovers,
           .room = room_.get()}) {
  if (readers_ == nullptr) return;
  // Every commit looks at the files, and saves what they held.
  readers_->CheckWith(
      [this] { writer_.Run([](Transaction&) { return absl::OkStatus(); }).IgnoreError(); });
  maintenance_.StartThread();
}

SqliteStore::~SqliteStore() {
  // In this order, for the writer's last requests may still signal Maintenance.
  maintenance_.Stop();
  writer_.Stop();
}

absl::Status SqliteStore::Read(const std::function<absl::Status(Connection&)>& read) {
  return readers_ != nullptr ? readers_->Read(read) : writer_.Read(read);
}

template <typename Work>
auto SqliteStore::ReadFor(const Work& work) {
  using Result = std::invoke_result_t<Work, Connection&>;
  using Answer = std::conditional_t<IsStatusOr<Result>::value, Result, absl::StatusOr<Result>>;
  Answer answer = absl::InternalError("the read did not run");
  const absl::Status status = Read([&](Connection& db) {
    answer = work(db);
    return answer.status();
  });
  if (!status.ok()) answer = status;
  return answer;
}

std::string SqliteStore::stalled() const {
  return room_ != nullptr && room_->full() ? "disk full" : "";
}

absl::StatusOr<uint64_t> SqliteStore::FreeBytes() const {
  if (room_ == nullptr) return UINT64_MAX;
  auto free = room_->Free();
  // The trash goes before a write fails.
  if (free.ok()) *free += blobs_->TrashBytes();
  return free;
}

absl::StatusOr<CreatedExperiment> SqliteStore::CreateExperiment(const NewExperiment& experiment) {
  return RunFor(writer_, [&](Transaction& t) { return storage::CreateExperiment(t, experiment); });
}

absl::StatusOr<std::optional<CreatedExperiment>> SqliteStore::FindRequest(absl::string_view id,
                                                                          absl::string_view hash) {
  return ReadFor([&](Connection& db) { return storage::FindRequest(db, id, hash); });
}

absl::StatusOr<std::vector<KnownRun>> SqliteStore::LookUpRuns(const std::vector<NewRun>& runs) {
  std::vector<KnownRun> known;
  known.reserve(runs.size());
  for (size_t begin = 0; begin < runs.size(); begin += kPageRuns) {
    const size_t end = std::min(begin + kPageRuns, runs.size());
    const absl::Status status = Read([&](Connection& db) {
      for (size_t i = begin; i < end; ++i) known.push_back(storage::LookUpRun(db, runs[i]));
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return known;
}

absl::StatusOr<ExperimentRecord> SqliteStore::GetExperiment(absl::string_view id) {
  return ReadFor([&](Connection& db) { return storage::GetExperiment(db, id); });
}

absl::StatusOr<std::vector<std::string>> SqliteStore::FindExperiments(absl::string_view prefix,
                                                                      uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::FindExperiments(db, prefix, limit); });
}

absl::StatusOr<std::vector<ExperimentRecord>> SqliteStore::ListExperiments(absl::string_view after,
                                                                           uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::ListExperiments(db, after, limit); });
}

absl::StatusOr<std::vector<Withdrawal>> SqliteStore::CancelExperiment(absl::string_view id) {
  return FreeFor(writer_, [&](Transaction& t) { return storage::CancelExperiment(t, id); });
}

absl::Status SqliteStore::DeleteExperiment(absl::string_view id) {
  return writer_.Free([&](Transaction& t) { return storage::DeleteExperiment(t, id); });
}

absl::StatusOr<std::vector<CellRecord>> SqliteStore::ListCells(absl::string_view experiment,
                                                               uint32_t first, uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::ListCells(db, experiment, first, limit); });
}

absl::StatusOr<std::vector<CellRecord>> SqliteStore::ChangedCells(absl::string_view experiment,
                                                                  uint64_t after, uint32_t limit) {
  return ReadFor(
      [&](Connection& db) { return storage::ChangedCells(db, experiment, after, limit); });
}

absl::StatusOr<RunRecord> SqliteStore::GetRun(absl::string_view id) {
  return ReadFor([&](Connection& db) { return storage::GetRun(db, id); });
}

absl::StatusOr<std::vector<std::string>> SqliteStore::FindRuns(absl::string_view prefix,
                                                               uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::FindRuns(db, prefix, limit); });
}

absl::StatusOr<std::vector<RunEventRecord>> SqliteStore::RunEvents(absl::string_view run) {
  return ReadFor([&](Connection& db) { return storage::RunEvents(db, run); });
}

absl::StatusOr<std::vector<RunSummaries>> SqliteStore::Summaries(
    const std::vector<std::string>& runs) {
  std::vector<RunSummaries> summaries;
  summaries.reserve(runs.size());
  for (size_t begin = 0; begin < runs.size(); begin += kPageRuns) {
    const size_t end = std::min(begin + kPageRuns, runs.size());
    const absl::Status status = Read([&](Connection& db) {
      for (size_t i = begin; i < end; ++i) {
        auto found = ReadSummaries(db, runs[i]);
        if (!found.ok()) return found.status();
        summaries.push_back(*std::move(found));
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return summaries;
}

absl::StatusOr<std::vector<ArtifactRecord>> SqliteStore::ListArtifacts(absl::string_view run) {
  return ReadFor([&](Connection& db) { return storage::ListArtifacts(db, run); });
}

absl::StatusOr<std::optional<double>> SqliteStore::MeasuredStepTime(absl::string_view shape) {
  return ReadFor([&](Connection& db) { return storage::MeasuredStepTime(db, shape); });
}

absl::StatusOr<std::vector<QueuedRun>> SqliteStore::Queue(absl::string_view device_kind,
                                                          uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::Queue(db, device_kind, limit); });
}

absl::StatusOr<std::vector<std::vector<GrantedRun>>> SqliteStore::Grant(
    const std::vector<NewLease>& leases) {
  return RunFor(writer_, [&](Transaction& t) { return storage::Grant(t, blobs_.get(), leases); });
}

absl::StatusOr<std::vector<Applied>> SqliteStore::Apply(absl::string_view holder_incarnation,
                                                        const std::vector<LeaseEvent>& events) {
  return RunFor(writer_, [&](Transaction& t) {
    return storage::Apply(t, blobs_.get(), holder_incarnation, events);
  });
}

void SqliteStore::ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                             std::function<void(absl::StatusOr<std::vector<Applied>>)> done) {
  auto results = std::make_shared<std::vector<Applied>>();
  writer_.Post(
      [this, results, incarnation = std::move(holder_incarnation),
       events = std::move(events)](Transaction& t) {
        auto applied = storage::Apply(t, blobs_.get(), incarnation, events);
        if (!applied.ok()) return applied.status();
        *results = *std::move(applied);
        return absl::OkStatus();
      },
      [results, done = std::move(done)](const absl::Status& status) {
        if (status.ok()) return done(std::move(*results));
        done(status);
      });
}

absl::StatusOr<LeaseVerdict> SqliteStore::CheckLease(absl::string_view lease,
                                                     absl::string_view incarnation,
                                                     uint64_t first_unacked) {
  return ReadFor(
      [&](Connection& db) { return storage::CheckLease(db, lease, incarnation, first_unacked); });
}

absl::Status SqliteStore::EndLease(absl::string_view lease, LeaseEnd end,
                                   const std::vector<std::string>& stepping,
                                   absl::string_view message) {
  return writer_.Run(
      [&](Transaction& t) { return storage::EndLease(t, lease, end, stepping, message); });
}

absl::StatusOr<std::vector<LeaseRecord>> SqliteStore::ListLeases() {
  return ReadFor([&](Connection& db) { return storage::ListLeases(db); });
}

absl::StatusOr<bool> SqliteStore::LeaseExists(absl::string_view lease) {
  return ReadFor([&](Connection& db) { return FindLease(db, lease).has_value(); });
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> SqliteStore::CountKeys(
    const std::vector<int64_t>& runs) {
  std::map<std::string, uint64_t> counts;
  for (size_t begin = 0; begin < runs.size(); begin += kPageRuns) {
    const size_t end = std::min(begin + kPageRuns, runs.size());
    const absl::Status status = Read([&](Connection& db) {
      for (size_t i = begin; i < end; ++i) {
        // What is damaged is told by whoever reads it.
        AddKeys(db, runs[i], &counts).IgnoreError();
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> SqliteStore::RunKeys(
    absl::string_view run) {
  std::map<std::string, uint64_t> counts;
  const absl::Status read = Read([&](Connection& db) {
    const auto row = FindRunRow(db, run);
    if (!row.ok()) return row.status();
    const absl::Status added = AddKeys(db, *row, &counts);
    return added.ok() ? added : DamagedSummaries(run, added);
  });
  if (!read.ok()) return read;
  return std::vector<std::pair<std::string, uint64_t>>(counts.begin(), counts.end());
}

absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>> SqliteStore::ExperimentKeys(
    absl::string_view experiment) {
  const auto runs = ReadFor([&](Connection& db) { return RunsOfExperiment(db, experiment); });
  if (!runs.ok()) return runs.status();
  return CountKeys(*runs);
}

absl::Status SqliteStore::ReadSeries(
    const SeriesQuery& query,
    const std::function<bool(const std::vector<uint32_t>&, const std::vector<double>&)>& piece) {
  SeriesPage page;
  page.next_step = query.first_step;
  while (!page.at_end) {
    const absl::Status status = Read([&](Connection& db) { return ReadPage(db, query, &page); });
    if (!status.ok()) return status;
    if (page.steps.empty()) continue;
    if (!piece(page.steps, page.values)) return absl::CancelledError("the reader has enough");
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetRecord> SqliteStore::AddDataset(const DatasetRecord& dataset) {
  return RunFor(writer_,
                [&](Transaction& t) { return storage::AddDataset(t, blobs_.get(), dataset); });
}

absl::StatusOr<DatasetRecord> SqliteStore::FindDataset(absl::string_view id_or_name) {
  return ReadFor([&](Connection& db) { return storage::FindDataset(db, id_or_name); });
}

absl::StatusOr<std::vector<DatasetRecord>> SqliteStore::ListDatasets(absl::string_view after,
                                                                     uint32_t limit) {
  return ReadFor([&](Connection& db) { return storage::ListDatasets(db, after, limit); });
}

absl::StatusOr<std::string> SqliteStore::DocumentLengths(absl::string_view id) {
  return ReadFor([&](Connection& db) { return storage::DocumentLengths(db, id); });
}

absl::Status SqliteStore::KeepDocumentLengths(absl::string_view id, absl::string_view lengths) {
  return writer_.Run([&](Transaction& t) { return storage::KeepDocumentLengths(t, id, lengths); });
}

absl::Status SqliteStore::DeleteDataset(absl::string_view id) {
  return writer_.Free([&](Transaction& t) { return storage::DeleteDataset(t, id); });
}

absl::Status SqliteStore::Maintain() {
  const absl::Status status = maintenance_.RunAll();
  if (!status.ok()) return status;
  return writer_.Checkpoint();
}

absl::StatusOr<std::string> SqliteStore::Image() {
  if (readers_ != nullptr) {
    return absl::FailedPreconditionError("an image is made of a store in memory only");
  }
  return ReadFor([](Connection& db) { return db.Image(); });
}

}  // namespace ablate::storage
