// Calls the server's methods: deadlines, retries, lists page by page, and errors as absl::Status.
#ifndef ABLATE_CLIENT_CONNECTION_H_
#define ABLATE_CLIENT_CONNECTION_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "client/rpcs.h"
#include "google/protobuf/message.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/join/channel.h"

namespace ablate::client {

using Sleep = std::function<void(absl::Duration)>;

// Takes each message of a stream. An error ends the stream and is the result of the call.
template <typename Message>
using OnMessage = std::function<absl::Status(const Message&)>;

// Returns the next message of a stream, nothing at its end. An error ends the stream and is the
// result of the call.
template <typename Message>
using NextMessage = std::function<absl::StatusOr<std::optional<Message>>()>;

using join::ServerAddress;

// Returns the kind of the server's error, such as RUN_NOT_FOUND; empty if the server gave none.
std::string ReasonOf(const absl::Status& status);

// Returns true if the same call may succeed later: the server is away, or its error says so.
bool MayTryAgain(const absl::Status& status);

// Takes a name that several experiments have, once, and the ID of the newest, which the server
// used.
using OnNewestOf = std::function<void(const std::string& name, const std::string& id)>;

// Returns the path of the method that takes the request, as /ablate.v1.Runs/GetRun. `service` is
// the method's one, null for the one in the request's file.
std::string PathOf(const google::protobuf::Message& request, const char* service);

// Calls the methods of rpcs.h. A call that may be repeated is tried three times while the answer is
// UNAVAILABLE. Streams have no deadline and are not repeated. Errors have the server's message; if
// the server gave no answer, UNAVAILABLE names the next step. Not thread-safe, except for Cancel.
class Connection {
 public:
  // Connects with the first call.
  Connection(const ServerAddress& server, Sleep sleep, OnNewestOf on_newest = nullptr);
  Connection(const Connection&) = delete;

  // Returns true for a server of a login, which others may use, too.
  bool is_elsewhere() const { return !server_.login.empty(); }

  // From now on, unary calls are made once, end within `timeout`, and fail without an explanation.
  void LimitCalls(absl::Duration timeout) { limit_ = timeout; }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const Rpc<Request, Response>& rpc, const Request& request) {
    Response response;
    RETURN_IF_ERROR(CallPath(PathOf(request, rpc.service), rpc.options, request, &response));
    return response;
  }

  // Calls once, to find out if a server runs.
  absl::StatusOr<v1::ListWorkersResponse> ListWorkersWithin(absl::Duration timeout) {
    return Call(decltype(kListWorkers){{timeout, /*may_repeat=*/false}}, {});
  }

  // Reads a stream to its end or until `on_message` returns an error.
  template <typename Request, typename Message>
  absl::Status Stream(const StreamRpc<Request, Message>&, const Request& request,
                      const std::type_identity_t<OnMessage<Message>>& on_message) {
    Message message;
    return ReadStream(request, &message, [&] { return on_message(message); });
  }

  // Ends the stream that another thread reads, and all later ones, with CANCELLED.
  void Cancel();

  // Writes a stream of the messages that `next` returns, until it returns none or an error.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Send(const UploadRpc<Request, Response>& rpc,
                                const std::type_identity_t<NextMessage<Request>>& next) {
    Request message;
    Response response;
    const auto read = [&]() -> absl::StatusOr<bool> {
      ASSIGN_OR_RETURN(auto given, next());
      if (given.has_value()) message = *std::move(given);
      return given.has_value();
    };
    RETURN_IF_ERROR(WriteStream(PathOf(message, rpc.service), read, message, &response));
    return response;
  }

 private:
  absl::Status CallPath(const std::string& path, CallOptions options,
                        const google::protobuf::Message& request,
                        google::protobuf::Message* response);
  // Calls `on_message` after each message that was read into `message`.
  absl::Status ReadStream(const google::protobuf::Message& request,
                          google::protobuf::Message* message,
                          const std::function<absl::Status()>& on_message);
  // `next` changes `message` to the next one; false at the end.
  absl::Status WriteStream(const std::string& path,
                           const std::function<absl::StatusOr<bool>()>& next,
                           const google::protobuf::Message& message,
                           google::protobuf::Message* response);
  // Tells of names in the request that several experiments have; with `only` they are an error.
  absl::Status Tell(const grpc::ClientContext& context, bool only);

  const ServerAddress server_;
  const Sleep sleep_;
  const OnNewestOf on_newest_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::optional<absl::Duration> limit_;  // of each call
  std::set<std::string> told_;           // names passed to on_newest_

  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* reading_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the stream; null: none
};

// Returns all pages of a list from `request` on as one response without a token: `list` fetches a
// page, `rows` returns its rows.
template <typename Request, typename Response, typename Row>
absl::StatusOr<Response> ListAll(Connection* connection, const Rpc<Request, Response>& list,
                                 google::protobuf::RepeatedPtrField<Row>* (Response::*rows)(),
                                 Request request = {}) {
  Response all;
  do {
    ASSIGN_OR_RETURN(Response page, connection->Call(list, request));
    request.set_page_token(page.next_page_token());
    for (Row& row : *(page.*rows)()) *(all.*rows)()->Add() = std::move(row);
  } while (!request.page_token().empty());
  return all;
}

// Returns the first `limit` rows, 0 for all, over as many pages as needed. The token of the last
// page stays as a sign that there are more.
template <typename Request, typename Response, typename Row>
absl::StatusOr<Response> ListFirst(Connection* connection, const Rpc<Request, Response>& list,
                                   google::protobuf::RepeatedPtrField<Row>* (Response::*rows)(),
                                   Request request, uint32_t limit) {
  constexpr uint32_t kPageSize = 1000;
  const uint32_t most = limit > 0 ? limit : std::numeric_limits<int32_t>::max();
  Response all;
  auto* found = (all.*rows)();
  do {
    request.set_page_size(std::min(kPageSize, most - static_cast<uint32_t>(found->size())));
    ASSIGN_OR_RETURN(Response page, connection->Call(list, request));
    request.set_page_token(page.next_page_token());
    for (Row& row : *(page.*rows)()) *found->Add() = std::move(row);
  } while (!request.page_token().empty() && static_cast<uint32_t>(found->size()) < most);
  all.set_next_page_token(request.page_token());
  return all;
}

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONNECTION_H_
