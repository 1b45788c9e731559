// Keeps the received bytes of uploads that broke, one file per user and hash, so that they can
// continue, also after a restart.
#ifndef ABLATE_STORAGE_PARTIAL_UPLOADS_H_
#define ABLATE_STORAGE_PARTIAL_UPLOADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::storage {

// A folder of partial files. The files are bounded in number, size and age: beyond the limits the
// oldest are removed, except those that an upload holds. Nothing is synced: the hash over all bytes
// decides in the end whether a file can be trusted. Thread-safe.
class PartialUploads {
 public:
  static constexpr size_t kMaxFilesOfUser = 4, kMaxFiles = 64;
  static constexpr uint64_t kMaxBytesOfUser = uint64_t{4} << 30, kMaxBytes = uint64_t{16} << 30;
  static constexpr int64_t kMaxAge = int64_t{24} * 3600 * 1'000'000;  // without progress, in µs
  // An upload without a message for so long, in µs, may have broken without the server's notice.
  // The next upload of these bytes then takes its file over.
  static constexpr int64_t kMaxSilence = 5'000'000;

  struct Found {
    uint64_t bytes = 0;   // 0: there is no file
    bool in_use = false;  // an upload holds it, and isn't silent
  };

 private:
  struct State;
  struct Claim;

 public:
  // The right to write a file. May outlive PartialUploads. For one thread.
  class Hold {
   public:
    // Keeps a file that isn't empty, for the next upload. Doesn't list the folder, because it may
    // run on gRPC's thread.
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    const std::string& path() const { return path_; }
    // Runs `work`, which uses the file. ABORTED if another upload has taken it over.
    absl::Status While(absl::FunctionRef<absl::Status()> work);
    // Doesn't count as silent from now on.
    void Finish();

   private:
    friend class PartialUploads;
    Hold(std::shared_ptr<State> state, std::shared_ptr<Claim> claim, std::string name);

    const std::shared_ptr<State> state_;
    const std::shared_ptr<Claim> claim_;
    const std::string name_;
    const std::string path_;
  };
  struct Opened {
    std::unique_ptr<Hold> hold;
    process::FileDescriptor file;  // for reading, and appending
  };

  // Creates the folder. `now` returns the wall-clock time in microseconds.
  static absl::StatusOr<std::unique_ptr<PartialUploads>> Open(const std::string& folder,
                                                              std::function<int64_t()> now);

  // Returns how much of a user's upload is kept.
  Found Find(absl::string_view user, absl::string_view sha256);
  // Opens the file of a user's upload, to continue after `offset` bytes, or to begin again with 0.
  // OUT_OF_RANGE names the number of kept bytes if it is another one. ABORTED if the file is in
  // use; with offset 0 there is no hold instead. Removes files beyond the limits.
  absl::StatusOr<Opened> Take(absl::string_view user, absl::string_view sha256, uint64_t offset);
  // Removes files beyond the limits.
  void Trim();
  // Removes files that no upload holds, oldest first, until `bytes` are freed or none is left.
  // Returns the number of freed bytes.
  uint64_t Free(uint64_t bytes);

 private:
  explicit PartialUploads(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_PARTIAL_UPLOADS_H_
