#include "server/rpc/connection_table.h"

#include <sys/random.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"

namespace ablate::rpc {
namespace {

std::string RandomId() {
  unsigned char bytes[16];
  // Nothing can be served safely without random numbers, TLS least of all.
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

// The value that the server added: it comes after all that the client may have sent. Empty if there
// is none.
template <typename Metadata>
std::string ConnectionOf(const Metadata& metadata) {
  const grpc::string_ref name(kConnectionHeader.data(), kConnectionHeader.size());
  const auto range = metadata.equal_range(name);
  std::string id;
  for (auto it = range.first; it != range.second; ++it) {
    id.assign(it->second.data(), it->second.size());
  }
  return id;
}

class LettingInProcessor final : public grpc::AuthMetadataProcessor {
 public:
  LettingInProcessor(std::shared_ptr<grpc::AuthMetadataProcessor> inner,
                     std::shared_ptr<ConnectionTable> table)
      : inner_(std::move(inner)), table_(std::move(table)) {}

  bool IsBlocking() const override { return inner_->IsBlocking(); }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override {
    const std::string id = ConnectionOf(metadata);
    if (!table_->Contains(id)) {
      return {grpc::StatusCode::UNAUTHENTICATED, "the headers of the call are cut off"};
    }
    grpc::Status status = inner_->Process(metadata, context, consumed, response);
    if (status.ok()) table_->LetIn(id);
    return status;
  }

 private:
  const std::shared_ptr<grpc::AuthMetadataProcessor> inner_;
  const std::shared_ptr<ConnectionTable> table_;
};

}  // namespace

std::string ConnectionTable::Add(absl::string_view address) {
  std::string id = RandomId();
  MutexLock lock(&mutex_);
  connections_[id].address = std::string(address);
  return id;
}

void ConnectionTable::Remove(const std::string& id) {
  MutexLock lock(&mutex_);
  connections_.erase(id);
}

bool ConnectionTable::IsStranger(const std::string& id) const {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  return found == connections_.end() || found->second.stranger;
}

bool ConnectionTable::Contains(const std::string& id) const {
  MutexLock lock(&mutex_);
  return connections_.count(id) > 0;
}

void ConnectionTable::LetIn(const std::string& id) {
  {
    MutexLock lock(&mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end() || !found->second.stranger) return;
    found->second.stranger = false;
  }
  on_let_in_();
}

std::string ConnectionTable::AddressOf(const grpc::ServerContextBase& context) const {
  const std::string id = ConnectionOf(context.client_metadata());
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  return found == connections_.end() ? "" : found->second.address;
}

std::shared_ptr<grpc::AuthMetadataProcessor> LettingIn(
    std::shared_ptr<grpc::AuthMetadataProcessor> inner, std::shared_ptr<ConnectionTable> table) {
  return std::make_shared<LettingInProcessor>(std::move(inner), std::move(table));
}

}  // namespace ablate::rpc
