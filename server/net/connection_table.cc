#include "server/net/connection_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "server/lookup/errors.h"
#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

// Returns the header value that the server added, which follows everything the client may have
// sent. Empty if there is none.
std::string ConnectionOf(const CallMetadata& metadata) {
  const grpc::string_ref name(kConnectionHeader.data(), kConnectionHeader.size());
  const auto range = metadata.equal_range(name);
  std::string id;
  for (auto it = range.first; it != range.second; ++it) {
    id.assign(it->second.data(), it->second.size());
  }
  return id;
}

// Tells the client that this was its last call; otherwise it would wait for another answer until
// the port hangs up.
absl::Status ForTheLastTime(const absl::Status& refused) {
  absl::Status status(
      refused.code(),
      absl::StrCat(refused.message(), "; this was the last of ", kUnauthenticatedCalls,
                   " calls that a connection may make without a valid token. Connect again"));
  refused.ForEachPayload([&status](absl::string_view type, const absl::Cord& payload) {
    status.SetPayload(type, payload);
  });
  return status;
}

class CallAuthenticator final : public grpc::AuthMetadataProcessor {
 public:
  CallAuthenticator(AuthenticateCall authenticate, std::shared_ptr<ConnectionTable> table)
      : authenticate_(std::move(authenticate)), table_(std::move(table)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    const std::string id = ConnectionOf(metadata);
    const std::optional<std::string> address = table_->AddressOf(id);
    if (!address.has_value()) {
      return {grpc::StatusCode::UNAUTHENTICATED, "the headers of the call are cut off"};
    }
    const CheckedCall call = authenticate_(metadata, *address);
    absl::Status status = call.user.empty() ? call.status : table_->LetIn(id, call.user);
    if (status.ok()) status = call.status;
    if (status.ok()) return grpc::Status::OK;
    const bool last = table_->CountRefused(id) == kUnauthenticatedCalls;
    return lookup::ToGrpc(last ? ForTheLastTime(status) : status);
  }

 private:
  const AuthenticateCall authenticate_;
  const std::shared_ptr<ConnectionTable> table_;
};

}  // namespace

std::string ConnectionTable::Add(absl::string_view address) {
  std::string id = process::RandomId();
  MutexLock lock(&mutex_);
  connections_[id].address = std::string(address);
  return id;
}

void ConnectionTable::Remove(const std::string& id) {
  MutexLock lock(&mutex_);
  connections_.erase(id);
}

std::optional<std::string> ConnectionTable::UserOf(const std::string& id) const {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  return found == connections_.end() ? std::nullopt : found->second.user;
}

absl::Status ConnectionTable::LetIn(const std::string& id, const std::string& user) {
  {
    MutexLock lock(&mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end()) return absl::OkStatus();
    std::optional<std::string>& known = found->second.user;
    if (known == user || known == "") return absl::OkStatus();
    if (!known.has_value()) {
      const size_t has = std::count_if(connections_.begin(), connections_.end(),
                                       [&](const auto& each) { return each.second.user == user; });
      if (has >= kMaxConnectionsOfUser) {
        return lookup::TooManyOfUser("connections", user, has,
                                     {kMaxPublicConnections, kMaxConnectionsOfUser});
      }
    }
    known = known.has_value() ? "" : user;
  }
  on_let_in_();
  return absl::OkStatus();
}

int ConnectionTable::CountRefused(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.user.has_value()) return 0;
  return ++found->second.refused;
}

std::optional<std::string> ConnectionTable::AddressOf(const std::string& id) const {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return std::nullopt;
  return found->second.address;
}

std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallAuthenticator(
    AuthenticateCall authenticate, std::shared_ptr<ConnectionTable> table) {
  return std::make_shared<CallAuthenticator>(std::move(authenticate), std::move(table));
}

}  // namespace ablate::net
