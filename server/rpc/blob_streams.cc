#include "server/rpc/blob_streams.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"

namespace ablate::rpc {

absl::StatusOr<storage::Blobs*> BlobsOf(storage::Store* store) {
  if (store->blobs() == nullptr) {
    return absl::FailedPreconditionError("this server keeps its data in memory and has no files");
  }
  return store->blobs();
}

absl::StatusOr<BlobReader> BlobReader::Open(storage::Store* store, const std::string& sha256,
                                            uint64_t offset) {
  ASSIGN_OR_RETURN(const auto blobs, BlobsOf(store));
  ASSIGN_OR_RETURN(auto pin, blobs->Find(sha256));
  if (offset > pin->size()) {
    return absl::OutOfRangeError(
        absl::StrCat("offset: ", offset, " is beyond the end; expected at most ", pin->size()));
  }
  BlobReader reader;
  reader.blobs_ = blobs;
  reader.pin_ = std::move(pin);
  reader.offset_ = offset;
  return reader;
}

absl::StatusOr<std::optional<std::string>> BlobReader::Next() {
  const uint64_t size = pin_->size();
  if (position_ == size) {
    if (hash_.Hex() == pin_->sha256()) return std::nullopt;
    return absl::DataLossError(
        absl::StrCat("blob ", pin_->sha256(), " is damaged: its bytes have another hash"));
  }
  const bool before = position_ < offset_;
  const uint64_t end = before ? offset_ : size;
  ASSIGN_OR_RETURN(std::string data,
                   blobs_->Read(pin_->sha256(), position_,
                                std::min<uint64_t>(end - position_, lookup::kMessageBytes)));
  if (data.empty()) {
    return absl::DataLossError(
        absl::StrCat("blob ", pin_->sha256(), " is damaged: it is shorter than it was"));
  }
  hash_.Add(data);
  position_ += data.size();
  return before ? std::string() : std::move(data);
}

absl::StatusOr<bool> HasWhole(storage::Store* store, const std::string& sha256,
                              const std::function<bool()>& cancelled) {
  absl::StatusOr<BlobReader> reader = BlobReader::Open(store, sha256, 0);
  if (absl::IsNotFound(reader.status())) return false;
  if (!reader.ok()) return reader.status();
  while (!cancelled()) {
    const auto piece = reader->Next();
    // For any reason, the disk's too: these bytes can't be read from here.
    if (!piece.ok()) return false;
    if (!piece->has_value()) return true;
  }
  return lookup::CallCancelled();
}

absl::StatusOr<BlobWriter> BlobWriter::Open(storage::Store* store, const std::string& sha256) {
  ASSIGN_OR_RETURN(const auto blobs, BlobsOf(store));
  auto pin = blobs->Find(sha256);
  if (absl::IsNotFound(pin.status())) return Replace(store, sha256);
  if (!pin.ok()) return pin.status();
  BlobWriter opened;
  opened.sha256_ = sha256;
  opened.pin_ = *std::move(pin);
  return opened;
}

absl::StatusOr<BlobWriter> BlobWriter::Replace(storage::Store* store, const std::string& sha256) {
  const auto blobs = BlobsOf(store);
  return blobs.ok() ? Of(sha256, (*blobs)->Create()) : blobs.status();
}

absl::StatusOr<BlobWriter> BlobWriter::Continue(storage::Store* store, const std::string& user,
                                                const std::string& sha256, uint64_t offset,
                                                const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const auto blobs, BlobsOf(store));
  return Of(sha256, blobs->Continue(user, sha256, offset, cancelled));
}

absl::StatusOr<BlobWriter> BlobWriter::Of(
    const std::string& sha256, absl::StatusOr<std::unique_ptr<storage::Blobs::Writer>> writer) {
  if (!writer.ok()) return writer.status();
  BlobWriter opened;
  opened.sha256_ = sha256;
  opened.writer_ = *std::move(writer);
  return opened;
}

absl::Status BlobWriter::Append(const std::string& data, uint64_t max_bytes) {
  if (writer_->size() + data.size() > max_bytes) {
    return lookup::InvalidField("data",
                                absl::StrCat(writer_->size() + data.size(), " bytes received"),
                                absl::StrCat("at most ", max_bytes, " bytes in all"));
  }
  return writer_->Append(data);
}

absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> BlobWriter::Publish() {
  if (writer_ == nullptr) return pin_;
  return writer_->Publish(sha256_);
}

}  // namespace ablate::rpc
