// Hands out read-only connections.
#include "storage/sqlite/readers.h"

#include <utility>

#include "storage/sqlite/statement.h"

namespace ablate::storage {
namespace {

constexpr int kMostReaders = 8;

}  // namespace

Readers::Readers(std::string path, std::function<void(const absl::Status&)> fatal)
    : path_(std::move(path)), fatal_(std::move(fatal)) {}

absl::Status Readers::Read(const std::function<absl::Status(Connection&)>& read) {
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
  // One row that can't be decoded says nothing about the others: only that read fails.
  if (error.code() == absl::StatusCode::kDataLoss) {
    check_();
    fatal_(error);
  }
  return status;
}

absl::StatusOr<std::unique_ptr<Connection>> Readers::Take() {
  {
    MutexLock lock(&mutex_);
    while (in_use_ == kMostReaders) returned_.Wait(&mutex_);
    ++in_use_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  check_();
  auto connection = Connection::OpenFile(path_, Connection::Access::kReadOnly);
  if (!connection.ok()) {
    MutexLock lock(&mutex_);
    --in_use_;
    returned_.Signal();
  }
  return connection;
}

void Readers::GiveBack(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  --in_use_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
  returned_.Signal();
}

}  // namespace ablate::storage
