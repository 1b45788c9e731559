// Drives the background work.
#include "storage/sqlite/maintenance.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
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
// Time to notice that an older database was put back.
constexpr int kTrashDays = 7;
constexpr Micros kTrashAge = kTrashDays * Micros{24} * 3600 * 1000000;
constexpr Micros kTrashPause = Micros{3600} * 1000000;
// So few leftovers are a crash's; if more than half of all blobs are leftovers, too, the database
// is not the one that they belong to.
constexpr size_t kFewLeftovers = 5;
constexpr size_t kReadHashes = 500;  // looked for in one read

}  // namespace

Maintenance::Maintenance(Writer* writer, Reader reader, Blobs* blobs, MaintenanceOptions options)
    : writer_(writer), reader_(std::move(reader)), blobs_(blobs), options_(std::move(options)) {}

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
    const bool full = options_.room != nullptr && options_.room->full();
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
  size_t trashed = 0;
  absl::Status status = Repeat(/*frees=*/true, [](Transaction& t) { return RemoveCells(t); });
  status.Update(Repeat(/*frees=*/true, [](Transaction& t) { return RemoveDeadRuns(t); }));
  status.Update(
      Repeat(/*frees=*/true, [&](Transaction& t) { return SweepLoose(t, blobs_, &trashed); }));
  status.Update(SweepFolder(list_folder, &trashed));
  if (trashed > 0) {
    Log(absl::StrCat(trashed, " blobs that nothing in the database names any more went to the ",
                     "trash, where they stay for ", kTrashDays, " days"));
  }
  status.Update(EmptyTrash());
  // What follows stores something.
  status.Update(KeepRoom());
  status.Update(CompactAll());
  status.Update(
      Repeat(/*frees=*/false, [](Transaction& t) { return PruneLeases(t, t.now - kLeaseAge); }));
  return status;
}

absl::Status Maintenance::KeepRoom() {
  if (options_.room == nullptr) return absl::OkStatus();
  if (!options_.room->MayStore().ok()) {
    // What is in the log is in the file, too, after this, and its room is free.
    writer_->Checkpoint().IgnoreError();
    const bool kept = options_.room->Keep().ok();
    // What was deleted is in the trash as a rule, and nothing else asks for its room meanwhile.
    if (!kept && blobs_ != nullptr && blobs_->FreeTrash(Blobs::kFreedAtOnce) > 0) {
      options_.room->Keep().IgnoreError();
    }
  }
  // A page finds room where a row group does not: with so little left nothing is known to fit.
  const auto free = options_.room->Free();
  if (!options_.room->full() || !free.ok() || *free < DiskRoom::kSlack) return free.status();
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
absl::Status Maintenance::SweepFolder(bool list, size_t* trashed) {
  if (blobs_ == nullptr) return absl::OkStatus();
  absl::Status status = SweepAll(blobs_->TakeUnpinned(), trashed);
  if (!status.ok()) folder_listed_ = false;  // which has those that were not looked at
  if (!list || folder_listed_) return status;
  folder_listed_ = true;
  const absl::Status swept = SweepLeftovers(trashed);
  if (!swept.ok()) folder_listed_ = false;
  status.Update(swept);
  return status;
}

absl::Status Maintenance::SweepLeftovers(size_t* trashed) {
  const auto all = blobs_->List();
  if (!all.ok()) return all.status();
  const auto leftovers = Unnamed(*all);
  if (!leftovers.ok()) return leftovers.status();
  const bool most = leftovers->size() > kFewLeftovers && leftovers->size() > all->size() / 2;
  if (most && !options_.sweep_most) {
    Log(absl::StrCat(
        "of the ", all->size(), " blobs beside the database it does not name ", leftovers->size(),
        ": it may be an older one that was put back, so none of them is swept. Put the newer "
        "database in its place, or let them go: ablated --sweep-leftovers"));
    return absl::OkStatus();
  }
  return SweepAll(*leftovers, trashed);
}

absl::StatusOr<std::vector<std::string>> Maintenance::Unnamed(
    const std::vector<std::string>& hashes) {
  std::vector<std::string> unnamed;
  for (size_t begin = 0; begin < hashes.size() && !stopping(); begin += kReadHashes) {
    const absl::Status read = reader_([&](Connection& db) {
      for (size_t i = begin; i < std::min(begin + kReadHashes, hashes.size()); ++i) {
        if (!IsNamed(db, hashes[i])) unnamed.push_back(hashes[i]);
      }
      return absl::OkStatus();
    });
    if (!read.ok()) return read;
  }
  return unnamed;
}

absl::Status Maintenance::SweepAll(const std::vector<std::string>& hashes, size_t* trashed) {
  for (size_t begin = 0; begin < hashes.size() && !stopping(); begin += kSweepHashes) {
    const size_t end = std::min(begin + kSweepHashes, hashes.size());
    const std::vector<std::string> some(hashes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        hashes.begin() + static_cast<std::ptrdiff_t>(end));
    const absl::Status status = writer_->Free([&](Transaction& t) {
      SweepUnnamed(t, blobs_, Worth::kKeeping, some, trashed);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Maintenance::EmptyTrash() {
  const Micros now = options_.now();
  // Either way, for the clock may be set back.
  if (blobs_ == nullptr || std::abs(now - trash_looked_at_) < kTrashPause) return absl::OkStatus();
  trash_looked_at_ = now;
  const auto removed = blobs_->EmptyTrash(now - kTrashAge);
  if (!removed.ok()) return removed.status();
  if (*removed > 0) {
    Log(absl::StrCat(*removed, " blobs were in the trash for ", kTrashDays,
                     " days and are removed for good"));
  }
  return absl::OkStatus();
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
    const absl::Status status = frees ? writer_->Free(next) : writer_->Run(next);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ablate::storage
