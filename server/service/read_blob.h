// The bytes of a blob as a stream of chunks, for clients (ReadArtifact) and for workers (ReadBlob).
#ifndef ABLATE_SERVER_SERVICE_READ_BLOB_H_
#define ABLATE_SERVER_SERVICE_READ_BLOB_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/service/pull_stream.h"
#include "storage/sha256.h"
#include "storage/store.h"

namespace ablate::service {

// The store's blobs; FAILED_PRECONDITION if it keeps none.
absl::StatusOr<storage::Blobs*> BlobsOf(storage::Store* store);

// A blob that is being read: pinned, so that it stays.
class BlobReader {
 public:
  // NOT_FOUND; OUT_OF_RANGE if `offset` is beyond the end.
  static absl::StatusOr<BlobReader> Open(storage::Store* store, const std::string& sha256,
                                         uint64_t offset);
  // The next bytes, at most kChunkBytes; nothing at the end. Bytes before the offset come as an
  // empty piece: they are only read to be hashed. DATA_LOSS, naming the blob, at the end of one
  // whose bytes are not those that were published.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  storage::Blobs* blobs_ = nullptr;
  std::shared_ptr<storage::Blobs::Pin> pin_;
  uint64_t offset_ = 0;    // asked for
  uint64_t position_ = 0;  // read and hashed
  storage::Sha256 hash_;
};

// Chunk is a message with a field `data`.
template <class Chunk>
class ReadBlobReactor final : public PullStream<Chunk> {
 public:
  // `open` finds the blob, on the pool.
  ReadBlobReactor(const StreamCall& call, std::function<absl::StatusOr<BlobReader>()> open)
      : PullStream<Chunk>(call), open_(std::move(open)) {}

 private:
  absl::StatusOr<bool> Fill(std::deque<Chunk>* batch) override {
    if (!is_open_) {
      absl::StatusOr<BlobReader> reader = open_();
      if (!reader.ok()) return reader.status();
      reader_ = *std::move(reader);
      is_open_ = true;
    }
    absl::StatusOr<std::optional<std::string>> data = reader_.Next();
    if (!data.ok()) return data.status();
    if (!data->has_value()) return false;
    if (!(*data)->empty()) batch->emplace_back().set_data(**std::move(data));
    return true;
  }

  const std::function<absl::StatusOr<BlobReader>()> open_;
  BlobReader reader_;
  bool is_open_ = false;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_READ_BLOB_H_
