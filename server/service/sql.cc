// Sql: the rows of a statement, which a process of its own reads from the store.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/lookup/errors.h"
#include "server/rpc/streams.h"
#include "server/service/services.h"
#include "server/sql/process.h"
#include "storage/sql_query.h"

namespace ablate::service {
namespace {

// A call waits for its process on the pool for so long at once.
constexpr absl::Duration kSqlSlice = absl::Milliseconds(20);

absl::Status CheckStatement(const std::string& statement) {
  const auto refuse = [](const std::string& problem, const std::string& expected) {
    return lookup::InvalidField("statement", problem, expected);
  };
  if (statement.empty()) {
    return refuse("it is empty", "one SELECT, such as SELECT * FROM experiments");
  }
  if (statement.size() > storage::kMaxSqlBytes) {
    return refuse(absl::StrCat("it has ", statement.size(), " bytes"),
                  absl::StrCat("at most ", storage::kMaxSqlBytes));
  }
  if (statement.find('\0') != std::string::npos) {
    return refuse("it has a NUL character", "text without one");
  }
  return absl::OkStatus();
}

class SqlReactor final : public rpc::PullStream<v1::SqlRows> {
 public:
  // `context` and `request` outlive the call.
  SqlReactor(Backend* backend, grpc::CallbackServerContext* context, const v1::SqlRequest* request)
      : PullStream(backend->Stream(context, &backend->statements)),
        backend_(backend),
        context_(context),
        request_(request) {}

 private:
  absl::Status Check() const override { return CheckStatement(request_->statement()); }

  absl::StatusOr<bool> Fill(std::deque<v1::SqlRows>* batch) override {
    if (process_ == nullptr) {
      if (!error_.ok()) return error_;
      if (absl::Status started = Start(); !started.ok()) return started;
    }
    const absl::Duration end = MonotonicNow() + kSqlSlice;
    size_t bytes = 0;
    while (bytes < lookup::kBatchBytes && MonotonicNow() < end && !ended()) {
      auto part = process_->Read(end - MonotonicNow());
      if (!part.ok()) {
        process_.reset();
        if (batch->empty()) return part.status();
        error_ = part.status();  // after what was read before
        return true;
      }
      if (part->last) return false;
      if (!part->rows.has_value()) continue;
      bytes += part->rows->ByteSizeLong();
      batch->push_back(*std::move(part->rows));
    }
    return true;
  }

  absl::Status Start() {
    ASSIGN_OR_RETURN(const auto view, backend_->FindView(*context_));
    if (view.store->folder().empty()) {
      return absl::FailedPreconditionError("a store in memory answers no SQL");
    }
    ASSIGN_OR_RETURN(process_,
                     sql::SqlProcess::Start(backend_->sql_program,
                                            {view.store->folder(), view.viewer,
                                             backend_->sql_processor_time, request_->statement()}));
    return absl::OkStatus();
  }

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::SqlRequest* const request_;
  std::unique_ptr<sql::SqlProcess> process_;
  absl::Status error_;  // of the process, which is gone then
};

}  // namespace

grpc::ServerWriteReactor<v1::SqlRows>* StartSql(Backend* backend,
                                                grpc::CallbackServerContext* context,
                                                const v1::SqlRequest* request) {
  return (new SqlReactor(backend, context, request))->Begin();
}

}  // namespace ablate::service
