// Drives the background work.
#include "storage/sqlite/maintenance.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "storage/sqlite/compaction.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/removal.h"
#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

constexpr std::chrono::minutes kPause(1);
constexpr std::chrono::seconds kFullPause(5);  // while the disk is full
// Longer than the scheduler's start_grace: a worker that published a blob before a restart of the
// server comes back within that and sends the event that names it.
constexpr std::chrono::minutes kLeftoverGrace(2);
constexpr Micros kLeaseAge = Micros{24} * 3600 * 1000000;
constexpr size_t kSweepHashes = 20;  // removed on the writer's thread, as in removal.cc

}  // namespace

Maintenance::Maintenance(Writer* writer, Reader reader, Blobs* blobs, DiskRoom* room)
    : writer_(writer), reader_(std::move(reader)), blobs_(blobs), room_(room) {}

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
    // What fails, for want of space as a rule, is tried again after the pause.
    Pass(std::chrono::steady_clock::now() - start >= kLeftoverGrace).IgnoreError();
    const bool full = room_ != nullptr && room_->full();
    MutexLock lock(&mutex_);
    if (!signalled_ && !stopping_) wake_.WaitFor(&mutex_, full ? kFullPause : kPause);
    signalled_ = false;
    if (stopping_) return;
  }
}

absl::Status Maintenance::RunAll() { return Pass(/*list_folder=*/true); }

absl::Status Maintenance::Pass(bool list_folder) {
  MutexLock lock(&pass_);
  // What frees space comes first, and each part is tried whatever became of the others: on a full
  // disk some need more room before they free any. The first error counts.
  absl::Status status = Repeat([](Transaction& t) { return RemoveCells(t); });
  status.Update(Repeat([](Transaction& t) { return RemoveDeadRuns(t); }));
  status.Update(Repeat([this](Transaction& t) { return SweepLoose(t, blobs_); }));
  status.Update(SweepFolder(list_folder));
  status.Update(CompactAll());
  status.Update(Repeat([](Transaction& t) { return PruneLeases(t, t.now - kLeaseAge); }));
  status.Update(KeepRoom());
  return status;
}

absl::Status Maintenance::KeepRoom() {
  if (room_ == nullptr) return absl::OkStatus();
  if (!room_->MayStore().ok()) {
    // What is in the log is in the file, too, after this, and its room is free.
    writer_->Checkpoint().IgnoreError();
    room_->Keep().IgnoreError();
  }
  if (!room_->full()) return absl::OkStatus();
  return writer_->Run([](Transaction& t) {
    Statement(t.db, "UPDATE store SET change = change").Run();
    return absl::OkStatus();
  });
}

absl::Status Maintenance::CompactAll() {
  while (!stopping()) {
    std::optional<CompactedSlice> slice;
    absl::Status status = reader_([&](Connection& db) {
      auto next = NextSlice(db);
      if (!next.ok()) return next.status();
      slice = *std::move(next);
      return absl::OkStatus();
    });
    if (!status.ok() || !slice.has_value()) return status;
    status = writer_->Run([&](Transaction& t) {
      StoreSlice(t, *slice);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Looks at blobs that were never named: those a crash left, once, and those that were let go since.
absl::Status Maintenance::SweepFolder(bool list) {
  if (blobs_ == nullptr) return absl::OkStatus();
  std::vector<std::string> hashes = blobs_->TakeUnpinned();
  if (list && !folder_listed_) {
    auto all = blobs_->List();
    if (!all.ok()) return all.status();
    hashes = *std::move(all);
    folder_listed_ = true;
  }
  for (size_t begin = 0; begin < hashes.size() && !stopping(); begin += kSweepHashes) {
    const size_t end = std::min(begin + kSweepHashes, hashes.size());
    const std::vector<std::string> some(hashes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        hashes.begin() + static_cast<std::ptrdiff_t>(end));
    const absl::Status status = writer_->Free([&](Transaction& t) {
      SweepUnnamed(t, blobs_, some);
      return absl::OkStatus();
    });
    if (status.ok()) continue;
    folder_listed_ = false;  // which has those that were not looked at
    return status;
  }
  return absl::OkStatus();
}

absl::Status Maintenance::Repeat(const std::function<bool(Transaction&)>& slice) {
  bool more = true;
  while (more && !stopping()) {
    const absl::Status status = writer_->Free([&](Transaction& t) {
      more = slice(t);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
