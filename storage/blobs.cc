// Blobs in a folder: temporary file, fsync, rename; pins counted in memory.
#include "storage/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/mutex.h"
#include "storage/sha256.h"

namespace ablate::storage {
namespace {

constexpr absl::string_view kTemporary = "upload-";

absl::Status Failed(absl::string_view what, const std::string& path) {
  const int error = errno;
  const std::string message = absl::StrCat("cannot ", what, " ", path);
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk is full: ", message));
  }
  return absl::ErrnoToStatus(error, message);
}

absl::Status NoBlob(absl::string_view sha256) {
  return absl::NotFoundError(
      absl::StrCat("there is no blob '", absl::CHexEscape(sha256.substr(0, 64)), "'"));
}

// Closes on destruction.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  void Close() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

absl::Status SyncFolder(const std::string& folder) {
  const File file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || fsync(file.get()) != 0) return Failed("sync", folder);
  return absl::OkStatus();
}

// What pins and writers share with the folder, which they may outlive.
struct Shelf {
  Shelf(std::string where, DiskRoom* on) : folder(std::move(where)), room(on) {}
  // Whether bytes may be added.
  absl::Status MayStore() const { return room == nullptr ? absl::OkStatus() : room->MayStore(); }
  // Passes the end of adding some on.
  absl::Status Stored(absl::Status status) const {
    if (room != nullptr) room->Stored(DiskRoom::Kind::kBlobs, status);
    return status;
  }
  std::string PathOf(absl::string_view name) const { return absl::StrCat(folder, "/", name); }

  const std::string folder;
  DiskRoom* const room;
  // Held over a rename with its pin and over a sweep with its look at the pins, so that neither
  // happens inside the other.
  Mutex mutex;
  std::map<std::string, int, std::less<>> pins ABSL_GUARDED_BY(mutex);
  std::set<std::string> unpinned ABSL_GUARDED_BY(mutex);
  // Published, but the folder was not synced since: whoever finds one has to do that first.
  std::set<std::string, std::less<>> unsynced ABSL_GUARDED_BY(mutex);
};

class CountedPin final : public Blobs::Pin {
 public:
  // The shelf has counted it.
  CountedPin(std::shared_ptr<Shelf> shelf, std::string sha256, uint64_t size)
      : shelf_(std::move(shelf)), sha256_(std::move(sha256)), size_(size) {}
  ~CountedPin() override {
    MutexLock lock(&shelf_->mutex);
    const auto found = shelf_->pins.find(sha256_);
    if (--found->second > 0) return;
    shelf_->pins.erase(found);
    shelf_->unpinned.insert(sha256_);
  }
  const std::string& sha256() const override { return sha256_; }
  uint64_t size() const override { return size_; }

 private:
  const std::shared_ptr<Shelf> shelf_;
  const std::string sha256_;
  const uint64_t size_;
};

std::shared_ptr<Blobs::Pin> MakePin(const std::shared_ptr<Shelf>& shelf, const std::string& sha256,
                                    uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shelf->mutex) {
  ++shelf->pins[sha256];
  return std::make_shared<CountedPin>(shelf, sha256, size);
}

class Upload final : public Blobs::Writer {
 public:
  Upload(std::shared_ptr<Shelf> shelf, int descriptor, std::string path)
      : shelf_(std::move(shelf)), file_(descriptor), path_(std::move(path)) {}
  ~Upload() override {
    if (!published_) unlink(path_.c_str());
  }

  absl::Status Append(absl::string_view bytes) override {
    if (absl::Status room = shelf_->MayStore(); !room.ok()) return broken_ = std::move(room);
    hash_.Add(bytes);
    size_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return broken_ = shelf_->Stored(Failed("write", path_));
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  uint64_t size() const override { return size_; }

  absl::StatusOr<std::shared_ptr<Blobs::Pin>> Publish(absl::string_view expected) override {
    if (!broken_.ok()) return broken_;
    if (file_.get() < 0) return absl::FailedPreconditionError("a blob is published only once");
    const std::string sha256 = hash_.Hex();
    const bool synced = fsync(file_.get()) == 0;
    if (!synced) return broken_ = shelf_->Stored(Failed("sync", path_));
    shelf_->Stored(absl::OkStatus()).IgnoreError();
    file_.Close();
    if (!expected.empty() && expected != sha256) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sha256: '", absl::CHexEscape(expected.substr(0, 64)), "', but the bytes have ", sha256));
    }
    std::shared_ptr<Blobs::Pin> pin;
    {
      MutexLock lock(&shelf_->mutex);
      shelf_->unsynced.insert(sha256);
      if (rename(path_.c_str(), shelf_->PathOf(sha256).c_str()) != 0) {
        return broken_ = Failed("rename", path_);
      }
      published_ = true;
      pin = MakePin(shelf_, sha256, size_);
    }
    const absl::Status durable = SyncFolder(shelf_->folder);
    if (!durable.ok()) return durable;
    MutexLock lock(&shelf_->mutex);
    shelf_->unsynced.erase(sha256);
    return pin;
  }

 private:
  const std::shared_ptr<Shelf> shelf_;
  File file_;
  const std::string path_;
  Sha256 hash_;
  uint64_t size_ = 0;
  bool published_ = false;
  absl::Status broken_;
};

class FolderBlobs final : public Blobs {
 public:
  FolderBlobs(const std::string& folder, DiskRoom* room)
      : shelf_(std::make_shared<Shelf>(folder, room)) {}

  absl::StatusOr<std::unique_ptr<Writer>> Create() override {
    std::string path = shelf_->PathOf(absl::StrCat(kTemporary, "XXXXXX"));
    const int descriptor = mkostemp(path.data(), O_CLOEXEC);
    if (descriptor < 0) return Failed("create", path);
    return std::make_unique<Upload>(shelf_, descriptor, std::move(path));
  }

  absl::StatusOr<std::shared_ptr<Pin>> Find(absl::string_view sha256) override {
    MutexLock lock(&shelf_->mutex);
    const auto size = Size(sha256);
    if (!size.ok()) return size.status();
    if (const auto found = shelf_->unsynced.find(sha256); found != shelf_->unsynced.end()) {
      const absl::Status durable = SyncFolder(shelf_->folder);
      if (!durable.ok()) return durable;
      shelf_->unsynced.erase(found);
    }
    return MakePin(shelf_, std::string(sha256), *size);
  }

  absl::StatusOr<std::string> Read(absl::string_view sha256, uint64_t offset,
                                   uint64_t length) override {
    const auto size = Size(sha256);
    if (!size.ok()) return size.status();
    if (offset > *size) {
      return absl::OutOfRangeError(
          absl::StrCat("offset: ", offset, "; blob ", sha256, " has ", *size, " bytes"));
    }
    const std::string path = shelf_->PathOf(sha256);
    const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return errno == ENOENT ? NoBlob(sha256) : Failed("open", path);
    std::string bytes(std::min(length, *size - offset), '\0');
    for (size_t have = 0; have < bytes.size();) {
      const ssize_t read = pread(file.get(), bytes.data() + have, bytes.size() - have,
                                 static_cast<off_t>(offset + have));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) return Failed("read", path);
      if (read == 0) return absl::DataLossError(absl::StrCat("blob ", sha256, " is cut short"));
      have += static_cast<size_t>(read);
    }
    return bytes;
  }

  absl::StatusOr<uint64_t> Size(absl::string_view sha256) override {
    struct stat found;
    // A path that is no hash is not opened.
    if (!IsSha256(sha256)) return NoBlob(sha256);
    const std::string path = shelf_->PathOf(sha256);
    if (stat(path.c_str(), &found) == 0) return static_cast<uint64_t>(found.st_size);
    return errno == ENOENT ? NoBlob(sha256) : Failed("look at", path);
  }

  absl::StatusOr<bool> Sweep(absl::string_view sha256) override {
    if (!IsSha256(sha256)) return true;
    const std::string path = shelf_->PathOf(sha256);
    MutexLock lock(&shelf_->mutex);
    if (shelf_->pins.find(sha256) != shelf_->pins.end()) return false;
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
    return Failed("remove", path);
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    std::vector<std::string> blobs;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(shelf_->folder, error), end;
         !error && entry != end; entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (IsSha256(name)) blobs.push_back(std::move(name));
    }
    if (!error) return blobs;
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", shelf_->folder));
  }

  std::vector<std::string> TakeUnpinned() override {
    MutexLock lock(&shelf_->mutex);
    std::vector<std::string> unpinned(shelf_->unpinned.begin(), shelf_->unpinned.end());
    shelf_->unpinned.clear();
    return unpinned;
  }

 private:
  const std::shared_ptr<Shelf> shelf_;
};

// Uploads that an earlier process did not finish.
absl::Status RemoveTemporaries(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, kTemporary)) unlink(entry->path().c_str());
  }
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", folder));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Blobs>> Blobs::Open(const std::string& folder, DiskRoom* room) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Failed("create", folder);
  absl::Status status = RemoveTemporaries(folder);
  // An earlier process may have ended between a rename and this.
  if (status.ok()) status = SyncFolder(folder);
  if (!status.ok()) return status;
  return std::make_unique<FolderBlobs>(folder, room);
}

}  // namespace ablate::storage
