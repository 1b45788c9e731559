// Gives access to the database: every read and write of the store, maintenance included, is a
// request to this class.
#ifndef ABLATE_STORAGE_SQLITE_DATABASE_H_
#define ABLATE_STORAGE_SQLITE_DATABASE_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

template <typename T>
struct IsStatusOr : std::false_type {};
template <typename T>
struct IsStatusOr<absl::StatusOr<T>> : std::true_type {};

// One writer, and read-only connections that are lent to one thread at a time. In memory one
// connection serves both. Thread-safe.
class Database {
 public:
  // `db` is the writer's connection. `options.path` is empty in memory.
  Database(std::unique_ptr<Connection> db, const WriterOptions& options);

  bool in_memory() const { return path_.empty(); }
  Writer& writer() { return writer_; }

  // Runs `work` in a transaction of its own, which sees every acknowledged commit. Returns its
  // result: a Status, a StatusOr, or a value, which becomes a StatusOr. Keep it short: an open
  // transaction keeps the log from being emptied.
  template <typename Work>
  auto Read(const Work& work) {
    using Result = std::invoke_result_t<Work, Connection&>;
    if constexpr (std::is_same_v<Result, absl::Status>) {
      return RunRead(work);
    } else {
      using Answer = std::conditional_t<IsStatusOr<Result>::value, Result, absl::StatusOr<Result>>;
      Answer answer = absl::InternalError("the read did not run");
      const absl::Status status = RunRead([&](Connection& db) {
        answer = work(db);
        return answer.status();
      });
      if (!status.ok()) answer = status;
      return answer;
    }
  }

  // Calls `read` for each of `count` places, many in one transaction, until a call fails.
  absl::Status ReadEach(size_t count,
                        const std::function<absl::Status(Connection& db, size_t place)>& read);

  // Runs `work` as a request to the writer and returns its result, a Status or StatusOr.
  template <typename Work>
  auto Write(const Work& work) {
    return RunWrite<&Writer::Run>(work);
  }
  // Like Write without waiting: calls `done` with the result of `work`, a StatusOr, on the
  // committing thread after the commit. `done` must not block.
  template <typename Work, typename Done>
  void WriteAsync(Work work, Done done) {
    using Result = std::invoke_result_t<Work, Transaction&>;
    auto result = std::make_shared<Result>(absl::InternalError("the request did not run"));
    writer_.Post(
        [result, work = std::move(work)](Transaction& transaction) {
          *result = work(transaction);
          return result->status();
        },
        [result, done = std::move(done)](const absl::Status& status) {
          done(status.ok() ? std::move(*result) : Result(status));
        });
  }
  // Like Write, for work that eventually frees room; it may use the ballast of a full disk.
  template <typename Work>
  auto Free(const Work& work) {
    return RunWrite<&Writer::Free>(work);
  }

 private:
  template <absl::Status (Writer::*method)(const Writer::Work&), typename Work>
  auto RunWrite(const Work& work) -> std::invoke_result_t<Work, Transaction&> {
    using Result = std::invoke_result_t<Work, Transaction&>;
    if constexpr (std::is_same_v<Result, absl::Status>) {
      return (writer_.*method)(work);
    } else {
      Result result = absl::InternalError("the request did not run");
      RETURN_IF_ERROR((writer_.*method)([&](Transaction& transaction) {
        result = work(transaction);
        return result.status();
      }));
      return result;
    }
  }

  absl::Status RunRead(const std::function<absl::Status(Connection&)>& read);
  absl::StatusOr<std::unique_ptr<Connection>> Take();
  void GiveBack(std::unique_ptr<Connection> connection);

  const std::string path_;
  const std::function<void(const absl::Status&)> fatal_;
  Writer writer_;
  // Declared after the writer's connection, so that the readers close first and the writer's, the
  // last to close, empties the log.
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
  int in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_DATABASE_H_
