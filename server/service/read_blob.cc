// The bytes of a blob as a stream of chunks, for clients (ReadArtifact) and for workers (ReadBlob).
#include "server/service/read_blob.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/service/limits.h"

namespace ablate::service {

absl::StatusOr<storage::Blobs*> BlobsOf(storage::Store* store) {
  if (store->blobs() == nullptr) {
    return absl::FailedPreconditionError("this server keeps its data in memory and has no files");
  }
  return store->blobs();
}

absl::StatusOr<BlobReader> BlobReader::Open(storage::Store* store, const std::string& sha256,
                                            uint64_t offset) {
  const auto blobs = BlobsOf(store);
  if (!blobs.ok()) return blobs.status();
  auto pin = (*blobs)->Find(sha256);
  if (!pin.ok()) return pin.status();
  if (offset > (*pin)->size()) {
    return absl::OutOfRangeError(
        absl::StrCat("offset is ", offset, ": at most the size, ", (*pin)->size()));
  }
  BlobReader reader;
  reader.blobs_ = *blobs;
  reader.pin_ = *std::move(pin);
  reader.offset_ = offset;
  return reader;
}

absl::StatusOr<std::string> BlobReader::Next() {
  const uint64_t left = pin_->size() - offset_;
  if (left == 0) return std::string();
  absl::StatusOr<std::string> data =
      blobs_->Read(pin_->sha256(), offset_, std::min(left, kChunkBytes));
  if (data.ok() && data->empty()) return absl::DataLossError("a file is shorter than it was");
  if (data.ok()) offset_ += data->size();
  return data;
}

}  // namespace ablate::service
