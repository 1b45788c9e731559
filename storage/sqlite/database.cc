#include "storage/sqlite/database.h"

#include <utility>

#include "base/status_macros.h"

namespace ablate::storage {
namespace {

constexpr int kMaxReaders = 8;
constexpr size_t kReadTogether = 200;  // places in one transaction

}  // namespace

Database::Database(std::unique_ptr<Connection> db, const WriterOptions& options)
    : path_(options.path), fatal_(options.fatal), writer_(std::move(db), options) {}

absl::Status Database::RunRead(const std::function<absl::Status(Connection&)>& read) {
  if (in_memory()) return writer_.Read(read);
  auto taken = Take();
  if (!taken.ok()) return taken.status();
  Connection& db = **taken;
  Statement(db, "BEGIN").Run();
  absl::Status status = read(db);
  const absl::Status error = db.error();
  if (!error.ok()) {
    status = error;
    db.ClearError();
  }
  if (db.in_transaction()) Statement(db, "COMMIT").Run();
  if (!db.error().ok()) taken->reset();
  GiveBack(*std::move(taken));
  // A row that can't be decoded doesn't affect the others: only that read fails.
  if (error.code() == absl::StatusCode::kDataLoss) fatal_(error);
  return status;
}

absl::Status Database::ReadEach(
    size_t count, const std::function<absl::Status(Connection& db, size_t place)>& read) {
  for (size_t begin = 0; begin < count; begin += kReadTogether) {
    RETURN_IF_ERROR(RunRead([&](Connection& db) {
      absl::Status each;
      for (size_t i = begin; i < std::min(begin + kReadTogether, count) && each.ok(); ++i) {
        each = read(db, i);
      }
      return each;
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Connection>> Database::Take() {
  {
    MutexLock lock(&mutex_);
    while (in_use_ == kMaxReaders) returned_.Wait(&mutex_);
    ++in_use_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  // It is opened by name, which may be another file's by now; every commit checks that.
  writer_.Run([](Transaction&) { return absl::OkStatus(); }).IgnoreError();
  auto connection = Connection::OpenFile(path_, Connection::Access::kReadOnly);
  if (!connection.ok()) {
    MutexLock lock(&mutex_);
    --in_use_;
    returned_.Signal();
  }
  return connection;
}

void Database::GiveBack(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  --in_use_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
  returned_.Signal();
}

}  // namespace ablate::storage
