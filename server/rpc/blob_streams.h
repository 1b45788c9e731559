// Streams blobs in chunks to and from clients and workers. One call at a time uses an object of
// these classes. Errors are storage::Blobs' unless they are named here.
#ifndef ABLATE_SERVER_RPC_BLOB_STREAMS_H_
#define ABLATE_SERVER_RPC_BLOB_STREAMS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/rpc/streams.h"
#include "storage/blobs.h"
#include "storage/store.h"

namespace ablate::rpc {

// Returns the store's blobs; FAILED_PRECONDITION if it keeps none.
absl::StatusOr<storage::Blobs*> BlobsOf(storage::Store* store);

// Reads a blob, which stays pinned meanwhile.
class BlobReader {
 public:
  // Opens a blob at a byte offset. NOT_FOUND; OUT_OF_RANGE if `offset` is beyond the end.
  static absl::StatusOr<BlobReader> Open(storage::Store* store, const std::string& sha256,
                                         uint64_t offset);
  // Returns the next bytes, at most kMessageBytes; nothing at the end. Bytes before the offset are
  // only hashed and come as an empty piece. At the end, DATA_LOSS naming the blob if its bytes
  // aren't those that were published.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  storage::Blobs* blobs_ = nullptr;
  std::shared_ptr<storage::Blobs::Pin> pin_;
  uint64_t offset_ = 0;    // where the caller's bytes begin
  uint64_t position_ = 0;  // end of what was read and hashed
  Sha256 hash_;
};

// Returns true if the store has the blob and all of it can be read with the bytes that were
// published. Calls `cancelled` between chunks; CANCELLED if that returns true.
absl::StatusOr<bool> HasWhole(storage::Store* store, const std::string& sha256,
                              const std::function<bool()>& cancelled);

// Receives a blob; writes nothing if the store has it already.
class BlobWriter {
 public:
  // Opens a blob for writing. Pins it if it exists, so that it can't be deleted meanwhile.
  static absl::StatusOr<BlobWriter> Open(storage::Store* store, const std::string& sha256);
  // Opens a blob that exists but is damaged, so that its bytes are wanted again.
  static absl::StatusOr<BlobWriter> Replace(storage::Store* store, const std::string& sha256);
  // Does the same for an upload of a user, after the first `offset` bytes; they are kept for the
  // user if the upload breaks. Calls `cancelled` and fails as storage::Blobs::Continue.
  static absl::StatusOr<BlobWriter> Continue(storage::Store* store, const std::string& user,
                                             const std::string& sha256, uint64_t offset,
                                             const std::function<bool()>& cancelled);

  // Returns true if the blob's bytes are wanted.
  bool wanted() const { return writer_ != nullptr; }
  // Appends bytes; only if wanted(). INVALID_ARGUMENT in field `data` once there are more than
  // `max_bytes`.
  absl::Status Append(const std::string& data, uint64_t max_bytes);
  // Publishes the complete blob. INVALID_ARGUMENT if the bytes have another hash.
  absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> Publish();
  // Returns the number of bytes, including those of `offset`.
  uint64_t size() const { return writer_ == nullptr ? 0 : writer_->size(); }
  // Removes the bytes of a refused upload.
  void Discard() {
    if (writer_ != nullptr) writer_->Discard();
  }

 private:
  static absl::StatusOr<BlobWriter> Of(
      const std::string& sha256, absl::StatusOr<std::unique_ptr<storage::Blobs::Writer>> writer);

  std::string sha256_;
  std::unique_ptr<storage::Blobs::Writer> writer_;  // null if no bytes are wanted
  std::shared_ptr<storage::Blobs::Pin> pin_;        // of the blob, if it exists already
};

// Streams a blob to a client. Chunk is a message with a field `data`.
template <class Chunk>
class ReadBlobReactor final : public PullStream<Chunk> {
 public:
  // `open` finds the blob; it runs on the pool.
  ReadBlobReactor(const StreamCall& call, std::function<absl::StatusOr<BlobReader>()> open)
      : PullStream<Chunk>(call), open_(std::move(open)) {}

 private:
  absl::StatusOr<bool> Fill(std::deque<Chunk>* batch) override {
    if (!is_open_) {
      ASSIGN_OR_RETURN(reader_, open_());
      is_open_ = true;
    }
    ASSIGN_OR_RETURN(std::optional<std::string> data, reader_.Next());
    if (!data.has_value()) return false;
    if (!data->empty()) batch->emplace_back().set_data(*std::move(data));
    return true;
  }

  const std::function<absl::StatusOr<BlobReader>()> open_;
  BlobReader reader_;
  bool is_open_ = false;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_BLOB_STREAMS_H_
