// WriteBlob: a worker publishes a checkpoint or a resume state.
#include "server/service/write_blob.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"
#include "server/service/limits.h"
#include "server/service/read_blob.h"

namespace ablate::service {

absl::Status CheckLease(storage::Store* store, const std::string& lease) {
  const absl::StatusOr<bool> exists = store->LeaseExists(lease);
  if (!exists.ok()) return exists.status();
  if (*exists) return absl::OkStatus();
  return WithReason(
      absl::NotFoundError(absl::StrCat("lease ", reflect::Quoted(lease), " has ended")),
      "LEASE_NOT_FOUND");
}

WriteBlobReactor::WriteBlobReactor(const StreamCall& call, storage::Store* store, BlobPins* pins,
                                   worker::v1::WriteBlobResponse* response)
    : PushStream(call), store_(store), pins_(pins), response_(response) {}

absl::StatusOr<bool> WriteBlobReactor::Take(const worker::v1::WriteBlobRequest& request) {
  if (!open_) {
    const absl::StatusOr<bool> wanted = Open(request);
    if (!wanted.ok() || !*wanted) return wanted;
  }
  if (writer_->size() + request.data().size() > kMostBlobBytes) {
    return InvalidField("data",
                        absl::StrCat(writer_->size() + request.data().size(), " bytes have come"),
                        absl::StrCat("at most ", kMostBlobBytes, " bytes in all"));
  }
  if (const absl::Status appended = writer_->Append(request.data()); !appended.ok()) {
    return appended;
  }
  return true;
}

absl::StatusOr<bool> WriteBlobReactor::Open(const worker::v1::WriteBlobRequest& request) {
  open_ = true;
  if (const absl::Status sha = CheckSha256(request.sha256()); !sha.ok()) return sha;
  if (const absl::Status lease = CheckLease(store_, request.lease()); !lease.ok()) return lease;
  lease_ = request.lease();
  sha256_ = request.sha256();
  const auto blobs = BlobsOf(store_);
  if (!blobs.ok()) return blobs.status();
  auto pin = (*blobs)->Find(sha256_);
  if (pin.ok()) {
    pin_ = *std::move(pin);
    return false;
  }
  if (!absl::IsNotFound(pin.status())) return pin.status();
  auto writer = (*blobs)->Create();
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return true;
}

absl::Status WriteBlobReactor::Complete() {
  if (!open_) return CheckSha256("");
  if (writer_ != nullptr) {
    auto pin = writer_->Publish(sha256_);
    if (!pin.ok()) return pin.status();
    pin_ = *std::move(pin);
  }
  response_->set_sha256(sha256_);
  response_->set_bytes(pin_->size());
  pins_->Hold(lease_, std::move(pin_));
  return Prune();
}

absl::Status WriteBlobReactor::Prune() {
  const std::vector<std::string> holding = pins_->Leases();
  if (holding.size() == 1) return absl::OkStatus();  // this one's
  const auto leases = store_->ListLeases();
  if (!leases.ok()) return leases.status();
  std::set<std::string> training;
  for (const storage::LeaseRecord& lease : *leases) training.insert(lease.lease);
  for (const std::string& lease : holding) {
    if (training.count(lease) == 0) pins_->DropLease(lease);
  }
  return absl::OkStatus();
}

}  // namespace ablate::service
