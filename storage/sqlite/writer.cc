#include "storage/sqlite/writer.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace ablate::storage {
namespace {

// Bounds how long an answer waits for others in its group.
constexpr size_t kMaxGroupRequests = 512;
constexpr int kLogPages = 4000;  // 16 MB
// Continuous readers keep the log from being restarted; then the writer waits.
constexpr int kMaxLogPages = 16 * kLogPages;

}  // namespace

Writer::Writer(std::unique_ptr<Connection> db, WriterOptions options)
    : options_(std::move(options)), db_(std::move(db)) {
  {
    MutexLock lock(&db_mutex_);
    Statement read(*db_, "SELECT change FROM store");
    if (read.Row()) stored_change_ = read.As<uint64_t>(0);
    change_number_ = stored_change_;
  }
  if (!in_memory()) thread_ = std::thread([this] { Loop(); });
}

Writer::~Writer() { Stop(); }

void Writer::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void Writer::Post(Work work, Done done) { Enqueue({std::move(work), std::move(done)}); }

void Writer::Enqueue(Request request) {
  if (in_memory()) {
    Group group;
    group.push_back(std::move(request));
    Serve(std::move(group));
    return;
  }
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(request));
  wake_.Signal();
}

absl::Status Writer::Run(const Work& work) { return RunRequest(work, /*frees=*/false); }

absl::Status Writer::Free(const Work& work) {
  const auto run = [&] { return RunRequest(work, /*frees=*/true); };
  return options_.room != nullptr ? options_.room->Try(run) : run();
}

absl::Status Writer::RunRequest(const Work& work, bool frees) {
  struct Answer {
    Mutex mutex;
    CondVar changed;
    std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
  } answer;
  Enqueue({[&work](Transaction& transaction) { return work(transaction); },
           [&answer](const absl::Status& status) {
             MutexLock lock(&answer.mutex);
             answer.status = status;
             answer.changed.Signal();
           },
           frees});
  MutexLock lock(&answer.mutex);
  while (!answer.status.has_value()) answer.changed.Wait(&answer.mutex);
  return *answer.status;
}

absl::Status Writer::Read(const std::function<absl::Status(Connection&)>& read) {
  MutexLock lock(&db_mutex_);
  if (!dead_.ok()) return dead_;
  const absl::Status status = read(*db_);
  if (db_->error().ok()) return status;
  const absl::Status error = db_->error();
  db_->ClearError();
  return error;
}

absl::Status Writer::Checkpoint() {
  MutexLock lock(&db_mutex_);
  if (!dead_.ok()) return dead_;
  const absl::Status status = db_->Checkpoint(/*truncate=*/true);
  NoteFailure(status);
  return status;
}

void Writer::Loop() {
  while (true) {
    Group group = NextGroup();
    if (group.empty()) return;
    Serve(std::move(group));
  }
}

// Waits for requests. Returns an empty group only if the writer stops and nothing is left.
Writer::Group Writer::NextGroup() {
  MutexLock lock(&mutex_);
  while (queue_.empty() && !stopping_) wake_.Wait(&mutex_);
  // Requests that free room and those that need it are never in one group: if one of the latter
  // found the disk full, it would be mistaken for the former's failure, and the ballast would be
  // wasted.
  size_t count = 0;
  while (count < std::min(queue_.size(), kMaxGroupRequests) &&
         queue_[count].frees == queue_.front().frees) {
    ++count;
  }
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  Group group(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return group;
}

void Writer::OnWithdrawn(OnWithdrawnFunction on_withdrawn) {
  MutexLock lock(&db_mutex_);
  on_withdrawn_ = std::move(on_withdrawn);
}

void Writer::Serve(Group group) {
  bool needs_maintenance = false;
  std::vector<Withdrawal> withdrawals;
  OnWithdrawnFunction on_withdrawn;
  {
    MutexLock lock(&db_mutex_);
    Transaction transaction{*db_, options_.now(), stored_change_};
    const int64_t changed_rows = db_->changed_rows();
    Commit(&group, &transaction);
    needs_maintenance = transaction.needs_maintenance;
    withdrawals = std::move(transaction.withdrawals);
    on_withdrawn = on_withdrawn_;
    NoteRoom(group, db_->changed_rows() != changed_rows);
  }
  // Outside the lock, because in memory these may use the store again.
  if (!withdrawals.empty() && on_withdrawn) on_withdrawn(std::move(withdrawals));
  for (Request& request : group) request.done(request.status);
  if (options_.on_commit) options_.on_commit(change_number_);
  if (needs_maintenance && options_.on_maintenance_needed) options_.on_maintenance_needed();
  if (in_memory()) return;
  MutexLock lock(&db_mutex_);
  KeepLogShort();
}

// Work that may use the ballast doesn't show if other work has room.
void Writer::NoteRoom(const Group& group, bool changed) {
  if (options_.room == nullptr) return;
  for (const Request& request : group) {
    if (request.frees || (request.status.ok() && !changed)) continue;
    options_.room->Stored(DiskRoom::Kind::kRows, request.status);
  }
}

void Writer::Commit(Group* group, Transaction* transaction) {
  absl::Status status = dead_;
  if (status.ok()) status = RunRequests(group, transaction);
  if (status.ok()) {
    stored_change_ = transaction->change;
    change_number_ = stored_change_;
    for (const auto& action : transaction->after_commit) action();
    return;
  }
  if (db_->in_transaction()) {
    db_->ClearError();
    db_->Execute("ROLLBACK");
  }
  db_->ClearError();
  transaction->needs_maintenance = false;
  transaction->withdrawals.clear();
  // One request's result may depend on another of the group: all of them are void.
  for (Request& request : *group) request.status = status;
  NoteFailure(status);
}

void Writer::NoteFailure(const absl::Status& status) {
  if (absl::IsResourceExhausted(status) && options_.on_full) options_.on_full();
  if (!absl::IsDataLoss(status) || !dead_.ok()) return;
  dead_ = status;
  options_.fatal(status);
}

// There may be room again since the last maintenance.
absl::Status Writer::RoomToStore() {
  if (options_.room == nullptr || options_.room->MayStore().ok()) return absl::OkStatus();
  options_.room->Keep().IgnoreError();
  return options_.room->MayStore();
}

// Leaves a transaction open only if it fails.
absl::Status Writer::RunRequests(Group* group, Transaction* transaction) {
  const bool stores =
      std::any_of(group->begin(), group->end(), [](const Request& r) { return !r.frees; });
  const absl::Status room = stores ? RoomToStore() : absl::OkStatus();
  Statement(*db_, "BEGIN IMMEDIATE").Run();
  const uint64_t first_change = transaction->change;
  for (Request& request : *group) {
    if (!room.ok() && !request.frees) {
      request.status = room;
      continue;
    }
    request.status = RunOne(request.work, group->size() == 1, transaction);
    // SQLite rolls the whole transaction back after some errors.
    if (!db_->in_transaction() || !db_->error().ok()) {
      return db_->error().ok() ? request.status : db_->error();
    }
  }
  if (group->size() == 1 && !group->front().status.ok()) {
    transaction->needs_maintenance = false;
    db_->Execute("ROLLBACK");
    return db_->error();
  }
  if (transaction->change != first_change) {
    Statement(*db_, "UPDATE store SET change = ?1", transaction->change).Run();
  }
  const absl::Duration begin = MonotonicNow();
  Statement(*db_, "COMMIT").Run();
  if (db_->error().ok()) CountCommit(*transaction, MonotonicNow() - begin);
  // After the commit: acknowledged data is in a file that was still in its place after the sync.
  return db_->error().ok() ? CheckPlace() : db_->error();
}

void Writer::CountCommit(const Transaction& transaction, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  MutexLock lock(&counts_mutex_);
  ++counts_.commits;
  counts_.commit_seconds += seconds;
  counts_.longest_commit = std::max(counts_.longest_commit, seconds);
  counts_.points += transaction.points;
  counts_.losses += transaction.losses;
}

WriteCounts Writer::counts() const {
  MutexLock lock(&counts_mutex_);
  return counts_;
}

// SQLite would continue to write to a file that was removed or replaced.
absl::Status Writer::CheckPlace() {
  if (in_memory() || !db_->Moved()) return absl::OkStatus();
  // Applies the log to this file, not to another one that is now in its place.
  db_->Checkpoint(/*truncate=*/true).IgnoreError();
  return absl::DataLossError(absl::StrCat(options_.path,
                                          " was moved, removed or replaced while the server had it "
                                          "open. Restore it and start the server again"));
}

// Rolls a failed request back, unless it is alone in its transaction or the error affects the whole
// group (then the connection keeps it).
absl::Status Writer::RunOne(const Work& work, bool alone, Transaction* transaction) {
  const size_t actions = transaction->after_commit.size();
  const size_t withdrawals = transaction->withdrawals.size();
  const uint64_t change = transaction->change;
  const uint64_t points = transaction->points, losses = transaction->losses;
  if (!alone) Statement(*db_, "SAVEPOINT request").Run();
  absl::Status status = work(*transaction);
  const absl::Status error = db_->error();
  if (!error.ok()) status = error;
  if (!status.ok()) {
    transaction->after_commit.resize(actions);
    transaction->withdrawals.resize(withdrawals);
    transaction->change = change;
    transaction->points = points;
    transaction->losses = losses;
  }
  if (error.code() == absl::StatusCode::kDataLoss || !db_->in_transaction()) return status;
  db_->ClearError();
  if (alone) return status;
  if (!status.ok()) Statement(*db_, "ROLLBACK TO request").Run();
  Statement(*db_, "RELEASE request").Run();
  return status;
}

void Writer::KeepLogShort() {
  if (!dead_.ok() || db_->log_pages() < kLogPages) return;
  NoteFailure(db_->Checkpoint(/*truncate=*/db_->log_pages() >= kMaxLogPages));
}

}  // namespace ablate::storage
