#include "storage/sqlite/maintenance.h"

#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/status_macros.h"
#include "storage/sqlite/datasets.h"
#include "storage/sqlite/last_states.h"

namespace ablate::storage {
namespace {

constexpr std::chrono::minutes kPause(1);
constexpr std::chrono::seconds kFullPause(5);  // while the disk is full
// Least time between passes, whoever asks: short runs end every few milliseconds, and the leftovers
// of several take one commit, like those of one.
constexpr std::chrono::seconds kPace(1);
// Longer than the scheduler's start_grace: a worker that published a blob before a restart of the
// server comes back within that time and sends the event that names it.
constexpr std::chrono::minutes kLeftoverGrace(2);

}  // namespace

Maintenance::Maintenance(Database* db, Blobs* blobs, MaintenanceOptions options)
    : db_(db), blobs_(blobs), options_(std::move(options)) {}

Maintenance::~Maintenance() { Stop(); }

void Maintenance::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Maintenance::StartThread() {
  thread_ = std::thread([this] { Loop(); });
}

void Maintenance::Signal() {
  MutexLock lock(&mutex_);
  signalled_ = true;
  wake_.Signal();
}

bool Maintenance::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void Maintenance::Loop() {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    // A failure, usually for lack of space, is retried after the pause.
    Pass(now - start >= kLeftoverGrace).IgnoreError();
    const bool full = options_.room != nullptr && options_.room->full();
    MutexLock lock(&mutex_);
    if (!signalled_ && !stopping_) wake_.WaitFor(&mutex_, full ? kFullPause : kPause);
    const auto next = now + kPace;
    while (!stopping_ && std::chrono::steady_clock::now() < next) {
      wake_.WaitFor(&mutex_, std::chrono::ceil<std::chrono::milliseconds>(
                                 next - std::chrono::steady_clock::now()));
    }
    signalled_ = false;
    if (stopping_) return;
  }
}

absl::Status Maintenance::RunAll() { return Pass(/*list_folder=*/true); }

absl::Status Maintenance::Pass(bool list_folder) {
  MutexLock lock(&pass_);
  // Frees space first, and tries each part regardless of the others: on a full disk some need more
  // room before they free any. The first error counts.
  absl::Status status = RemoveDeleted();
  // An earlier start may have allowed more; states that only save time must not stop training.
  const bool full = options_.room != nullptr && options_.room->full();
  const uint64_t last_states_bytes = full ? 0 : options_.last_states_bytes;
  status.Update(Repeat(/*frees=*/true, [last_states_bytes, full](Transaction& t) {
    return TrimLastStates(t, last_states_bytes, full ? kDiskFull : kBeyondBudget);
  }));
  status.Update(Repeat(/*frees=*/true, [](Transaction& t) {
    DeleteUnusedUploads(t);
    return false;
  }));
  status.Update(SweepBlobs(list_folder));
  // The rest stores something.
  status.Update(KeepRoom());
  status.Update(CompactAll());
  return status;
}

absl::Status Maintenance::KeepRoom() {
  if (options_.room == nullptr) return absl::OkStatus();
  if (!options_.room->MayStore().ok()) {
    // Afterwards the log's content is in the file, and its room is free.
    db_->writer().Checkpoint().IgnoreError();
    const bool kept = options_.room->Keep().ok();
    // Deleted data is usually in the trash, and nothing else removes it meanwhile.
    if (!kept && blobs_ != nullptr && blobs_->FreeTrash(Blobs::kFreedAtOnce) > 0) {
      options_.room->Keep().IgnoreError();
    }
  }
  // A page may fit where a row group doesn't: with so little left, no write is known to fit.
  const auto free = options_.room->Free();
  if (!options_.room->full() || !free.ok() || *free < process::kLeastRoom) return free.status();
  return db_->Write([](Transaction& t) {
    Statement(t.db, "UPDATE store SET change = change").Run();
    return absl::OkStatus();
  });
}

void Maintenance::Log(const std::string& line) {
  if (options_.log) options_.log(line);
}

absl::Status Maintenance::Repeat(bool frees, const std::function<bool(Transaction&)>& slice) {
  bool more = true;
  const auto next = [&](Transaction& t) {
    more = slice(t);
    return absl::OkStatus();
  };
  while (more && !stopping()) {
    RETURN_IF_ERROR(frees ? db_->Free(next) : db_->Write(next));
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
