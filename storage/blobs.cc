#include "storage/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/private_file.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace ablate::storage {
namespace {

using process::FileDescriptor;

constexpr absl::string_view kTemporary = "upload-";
constexpr absl::string_view kTrash = "trash";
constexpr absl::string_view kPartials = "partial";
constexpr uint64_t kHashedAtOnce = 1 << 20;

absl::Status NoBlob(absl::string_view sha256) {
  return absl::NotFoundError(
      absl::StrCat("there is no blob '", absl::CHexEscape(sha256.substr(0, 64)), "'"));
}

// Returns the files in the folder that are named as blobs; none if there is no folder.
absl::StatusOr<std::vector<std::string>> BlobsIn(const std::string& folder) {
  std::vector<std::string> blobs;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (IsSha256(name)) blobs.push_back(std::move(name));
  }
  if (!error || error == std::errc::no_such_file_or_directory) return blobs;
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", folder));
}

// Fills `bytes` from a file's offset on.
absl::Status ReadAt(int file, uint64_t offset, const std::string& path, std::string* bytes) {
  for (size_t have = 0; have < bytes->size();) {
    const ssize_t read =
        pread(file, bytes->data() + have, bytes->size() - have, static_cast<off_t>(offset + have));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return FileError("read", path);
    if (read == 0) return absl::DataLossError(absl::StrCat(path, " is cut short"));
    have += static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

// A blob in the trash.
struct Discarded {
  std::string name;
  int64_t swept = 0;  // when, in microseconds
  uint64_t size = 0;
};

std::optional<Discarded> LookAt(const std::string& path, std::string name) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return Discarded{std::move(name),
                   int64_t{found.st_mtim.tv_sec} * 1'000'000 + found.st_mtim.tv_nsec / 1000,
                   static_cast<uint64_t>(found.st_size)};
}

// Removes uploads that an earlier process did not finish.
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

// State that pins and writers share with the folder object, which they may outlive. The trash is a
// folder inside, with the same names, dated by modification time.
struct Blobs::Shelf {
  Shelf(std::string where, BlobsOptions with) : folder(std::move(where)), options(std::move(with)) {
    if (!options.now) options.now = [] { return absl::ToUnixMicros(absl::Now()); };
  }
  // Returns OK if bytes may be added.
  absl::Status MayStore() const {
    return options.room == nullptr ? absl::OkStatus() : options.room->MayStore();
  }
  // Reports the result of adding bytes to DiskRoom and returns it.
  absl::Status Stored(absl::Status status) const {
    if (options.room != nullptr) options.room->Stored(DiskRoom::Kind::kBlobs, status);
    return status;
  }
  std::string PathOf(absl::string_view name) const { return absl::StrCat(folder, "/", name); }
  std::string Trash() const { return PathOf(kTrash); }
  std::string TrashPathOf(absl::string_view name) const {
    return absl::StrCat(folder, "/", kTrash, "/", name);
  }

  // Returns the trash, oldest first.
  absl::StatusOr<std::vector<Discarded>> ListTrash() const;
  // Removes one of them, unless it was taken back or swept again since; returns true if removed.
  bool Discard(const Discarded& blob);
  // As Blobs::FreeTrash.
  uint64_t FreeTrash(uint64_t bytes);

  // Returns the size of a blob; moves it back from the trash if it is there.
  absl::StatusOr<uint64_t> LookUp(absl::string_view sha256) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Sets the date first, so that a crash between the two steps leaves no trash that looks old.
  absl::StatusOr<Swept> MoveToTrash(const std::string& path, absl::string_view sha256) const;
  // The blob must exist.
  static std::shared_ptr<Pin> MakePin(const std::shared_ptr<Shelf>& shelf,
                                      const std::string& sha256, uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shelf->mutex);

  const std::string folder;
  BlobsOptions options;
  std::unique_ptr<PartialUploads> partials;  // set by Open
  // Held during a rename with its pin, and during a sweep with its check for pins, so that these
  // don't interleave.
  Mutex mutex;
  std::map<std::string, int, std::less<>> pins ABSL_GUARDED_BY(mutex);
  std::set<std::string> unpinned ABSL_GUARDED_BY(mutex);
  // Published, but the folder was not synced since; Find must do that first.
  std::set<std::string, std::less<>> unsynced ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<std::vector<Discarded>> Blobs::Shelf::ListTrash() const {
  ASSIGN_OR_RETURN(auto names, BlobsIn(Trash()));
  std::vector<Discarded> trash;
  for (std::string& name : names) {
    const std::string path = TrashPathOf(name);
    if (auto found = LookAt(path, std::move(name))) trash.push_back(*std::move(found));
  }
  std::sort(trash.begin(), trash.end(),
            [](const Discarded& a, const Discarded& b) { return a.swept < b.swept; });
  return trash;
}

bool Blobs::Shelf::Discard(const Discarded& blob) {
  const std::string path = TrashPathOf(blob.name);
  MutexLock lock(&mutex);
  const auto found = LookAt(path, blob.name);
  return found.has_value() && found->swept == blob.swept && unlink(path.c_str()) == 0;
}

uint64_t Blobs::Shelf::FreeTrash(uint64_t bytes) {
  const auto trash = ListTrash();
  if (!trash.ok()) return partials->Free(bytes);
  uint64_t freed = 0;
  size_t blobs = 0;
  for (const Discarded& blob : *trash) {
    if (freed >= bytes) break;
    if (!Discard(blob)) continue;
    freed += blob.size;
    ++blobs;
  }
  if (blobs > 0 && options.log) {
    options.log(absl::StrCat("the disk is full: removed the ", blobs, " oldest blobs of ", Trash(),
                             " for good, ", freed, " bytes"));
  }
  if (freed < bytes) freed += partials->Free(bytes - freed);
  return freed;
}

absl::StatusOr<uint64_t> Blobs::Shelf::LookUp(absl::string_view sha256) {
  // Don't open a path that isn't a hash.
  if (!IsSha256(sha256)) return NoBlob(sha256);
  const std::string path = PathOf(sha256);
  struct stat found;
  if (stat(path.c_str(), &found) == 0) return static_cast<uint64_t>(found.st_size);
  if (errno != ENOENT) return FileError("look at", path);
  if (rename(TrashPathOf(sha256).c_str(), path.c_str()) != 0) {
    return errno == ENOENT ? NoBlob(sha256) : FileError("take back from the trash", path);
  }
  unsynced.insert(std::string(sha256));
  if (stat(path.c_str(), &found) == 0) return static_cast<uint64_t>(found.st_size);
  return FileError("look at", path);
}

absl::StatusOr<Swept> Blobs::Shelf::MoveToTrash(const std::string& path,
                                                absl::string_view sha256) const {
  const int64_t now = options.now();
  const timespec date{now / 1'000'000, now % 1'000'000 * 1000};
  const timespec times[2] = {date, date};
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) {
    if (errno == ENOENT) return Swept::kAbsent;
    return FileError("date", path);
  }
  const std::string place = TrashPathOf(sha256);
  if (rename(path.c_str(), place.c_str()) == 0) return Swept::kTrashed;
  if (errno != ENOENT) return FileError("move to the trash", path);
  const std::string trash = Trash();
  if (mkdir(trash.c_str(), 0700) != 0 && errno != EEXIST) return FileError("create", trash);
  if (rename(path.c_str(), place.c_str()) == 0) return Swept::kTrashed;
  return FileError("move to the trash", path);
}

std::shared_ptr<Blobs::Pin> Blobs::Shelf::MakePin(const std::shared_ptr<Shelf>& shelf,
                                                  const std::string& sha256, uint64_t size) {
  ++shelf->pins[sha256];
  return std::make_shared<Pin>(sha256, size, [shelf, sha256] {
    MutexLock lock(&shelf->mutex);
    const auto found = shelf->pins.find(sha256);
    if (--found->second > 0) return;
    shelf->pins.erase(found);
    shelf->unpinned.insert(sha256);
  });
}

Blobs::Writer::Writer(std::shared_ptr<Shelf> shelf, FileDescriptor file, std::string path,
                      std::unique_ptr<PartialUploads::Hold> partial)
    : shelf_(std::move(shelf)),
      file_(std::move(file)),
      path_(std::move(path)),
      partial_(std::move(partial)) {}

Blobs::Writer::~Writer() {
  if (published_ || (partial_ != nullptr && !discard_)) return;
  Use([this] {
    unlink(path_.c_str());
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status Blobs::Writer::Use(absl::FunctionRef<absl::Status()> work) {
  return partial_ == nullptr ? work() : partial_->While(work);
}

absl::Status Blobs::Writer::Append(absl::string_view bytes) {
  return Use([&] { return Write(bytes); });
}

absl::Status Blobs::Writer::Write(absl::string_view bytes) {
  if (absl::Status room = shelf_->MayStore(); !room.ok()) return broken_ = std::move(room);
  hash_.Add(bytes);
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      if (IsFull(error) && shelf_->FreeTrash(Blobs::kFreedAtOnce) > 0) continue;
      errno = error;
      return broken_ = shelf_->Stored(FileError("write", path_));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status Blobs::Writer::Finish(absl::string_view expected) {
  if (!broken_.ok()) return broken_;
  if (!sha256_.empty()) return absl::FailedPreconditionError("an upload is finished only once");
  sha256_ = hash_.Hex();
  if (partial_ != nullptr) partial_->Finish();
  if (expected.empty() || expected == sha256_) return absl::OkStatus();
  discard_ = true;
  if (continues_) {
    return absl::DataLossError(
        "the bytes that the server kept of an earlier upload don't belong to these, or are "
        "damaged; they are removed. Upload again");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("sha256: '", absl::CHexEscape(expected.substr(0, 64)),
                   "' isn't the hash of the bytes, which is ", sha256_));
}

absl::StatusOr<std::string> Blobs::Writer::Read(uint64_t offset, uint64_t length) {
  std::string bytes(std::min(length, size_ - std::min(offset, size_)), '\0');
  RETURN_IF_ERROR(Use([&] { return ReadAt(file_.get(), offset, path_, &bytes); }));
  return bytes;
}

absl::StatusOr<std::shared_ptr<Blobs::Pin>> Blobs::Writer::Publish(absl::string_view expected) {
  RETURN_IF_ERROR(Finish(expected));
  const bool synced = fsync(file_.get()) == 0;
  if (!synced) {
    discard_ = true;  // the pages that couldn't be written may read as if they were
    return broken_ = shelf_->Stored(FileError("sync", path_));
  }
  shelf_->Stored(absl::OkStatus()).IgnoreError();
  file_ = FileDescriptor();
  std::shared_ptr<Pin> pin;
  RETURN_IF_ERROR(Use([&] {
    MutexLock lock(&shelf_->mutex);
    shelf_->unsynced.insert(sha256_);
    if (rename(path_.c_str(), shelf_->PathOf(sha256_).c_str()) != 0) {
      return broken_ = FileError("rename", path_);
    }
    published_ = true;
    pin = Shelf::MakePin(shelf_, sha256_, size_);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(process::SyncFolder(shelf_->folder));
  MutexLock lock(&shelf_->mutex);
  shelf_->unsynced.erase(sha256_);
  return pin;
}

const std::string& Blobs::folder() const { return shelf_->folder; }

absl::StatusOr<std::unique_ptr<Blobs::Writer>> Blobs::Create() {
  std::string path = shelf_->PathOf(absl::StrCat(kTemporary, "XXXXXX"));
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return FileError("create", path);
  return std::unique_ptr<Writer>(
      new Writer(shelf_, FileDescriptor(descriptor), std::move(path), nullptr));
}

absl::StatusOr<std::unique_ptr<Blobs::Writer>> Blobs::Continue(absl::string_view user,
                                                               absl::string_view sha256,
                                                               uint64_t offset,
                                                               const Cancelled& cancelled) {
  ASSIGN_OR_RETURN(auto taken, shelf_->partials->Take(user, sha256, offset));
  if (taken.hold == nullptr) return Create();
  std::string path = taken.hold->path();
  std::unique_ptr<Writer> writer(
      new Writer(shelf_, std::move(taken.file), std::move(path), std::move(taken.hold)));
  writer->size_ = offset;
  writer->continues_ = offset > 0;
  for (uint64_t at = 0; at < offset; at += kHashedAtOnce) {
    if (cancelled()) return absl::CancelledError("nobody waits for this upload");
    const auto kept = writer->Read(at, kHashedAtOnce);
    if (!kept.ok()) {
      writer->Discard();
      return kept.status();
    }
    writer->hash_.Add(*kept);
  }
  return writer;
}

PartialUploads& Blobs::partials() { return *shelf_->partials; }

absl::StatusOr<std::shared_ptr<Blobs::Pin>> Blobs::Find(absl::string_view sha256) {
  MutexLock lock(&shelf_->mutex);
  ASSIGN_OR_RETURN(const auto size, shelf_->LookUp(sha256));
  if (const auto found = shelf_->unsynced.find(sha256); found != shelf_->unsynced.end()) {
    RETURN_IF_ERROR(process::SyncFolder(shelf_->folder));
    shelf_->unsynced.erase(found);
  }
  return Shelf::MakePin(shelf_, std::string(sha256), size);
}

absl::StatusOr<std::string> Blobs::Read(absl::string_view sha256, uint64_t offset,
                                        uint64_t length) {
  ASSIGN_OR_RETURN(const auto size, Size(sha256));
  if (offset > size) {
    return absl::OutOfRangeError(absl::StrCat("offset: ", offset, "; expected at most ", size,
                                              ", the size of blob ", sha256));
  }
  const std::string path = shelf_->PathOf(sha256);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? NoBlob(sha256) : FileError("open", path);
  std::string bytes(std::min(length, size - offset), '\0');
  RETURN_IF_ERROR(ReadAt(file.get(), offset, path, &bytes));
  return bytes;
}

absl::StatusOr<uint64_t> Blobs::Size(absl::string_view sha256) {
  MutexLock lock(&shelf_->mutex);
  return shelf_->LookUp(sha256);
}

absl::StatusOr<Swept> Blobs::Sweep(absl::string_view sha256, bool keep) {
  if (!IsSha256(sha256)) return Swept::kAbsent;
  const std::string path = shelf_->PathOf(sha256);
  MutexLock lock(&shelf_->mutex);
  if (shelf_->pins.find(sha256) != shelf_->pins.end()) return Swept::kHeld;
  if (keep) {
    const auto trashed = shelf_->MoveToTrash(path, sha256);
    // Without room for a folder there is none for a trash either.
    if (!absl::IsResourceExhausted(trashed.status())) return trashed;
  }
  if (unlink(path.c_str()) == 0) return Swept::kRemoved;
  if (errno == ENOENT) return Swept::kAbsent;
  return FileError("remove", path);
}

absl::StatusOr<std::vector<std::string>> Blobs::List() {
  auto blobs = BlobsIn(shelf_->folder);
  if (!blobs.ok()) return blobs;
  MutexLock lock(&shelf_->mutex);
  blobs->erase(std::remove_if(blobs->begin(), blobs->end(),
                              [this](const std::string& name) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                return shelf_->pins.count(name) > 0;
                              }),
               blobs->end());
  return blobs;
}

absl::StatusOr<size_t> Blobs::EmptyTrash(int64_t before) {
  ASSIGN_OR_RETURN(const auto trash, shelf_->ListTrash());
  size_t removed = 0;
  for (const Discarded& blob : trash) {
    if (blob.swept < before && shelf_->Discard(blob)) ++removed;
  }
  return removed;
}

uint64_t Blobs::FreeTrash(uint64_t bytes) { return shelf_->FreeTrash(bytes); }

absl::StatusOr<std::vector<std::string>> Blobs::ListTrash() { return BlobsIn(shelf_->Trash()); }

uint64_t Blobs::TrashBytes() {
  // A file that Discard removes is out of its folder before its bytes are free.
  MutexLock lock(&shelf_->mutex);
  const auto trash = shelf_->ListTrash();
  if (!trash.ok()) return 0;
  return std::accumulate(trash->begin(), trash->end(), uint64_t{0},
                         [](uint64_t sum, const Discarded& blob) { return sum + blob.size; });
}

std::vector<std::string> Blobs::TakeUnpinned() {
  MutexLock lock(&shelf_->mutex);
  std::vector<std::string> unpinned(shelf_->unpinned.begin(), shelf_->unpinned.end());
  shelf_->unpinned.clear();
  return unpinned;
}

absl::StatusOr<size_t> Blobs::Count(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto blobs, BlobsIn(folder));
  return blobs.size();
}

absl::StatusOr<std::unique_ptr<Blobs>> Blobs::Open(const std::string& folder,
                                                   BlobsOptions options) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return FileError("create", folder);
  absl::Status status = RemoveTemporaries(folder);
  // An earlier process may have ended between a rename and this.
  if (status.ok()) status = process::SyncFolder(folder);
  if (!status.ok()) return status;
  auto shelf = std::make_shared<Shelf>(folder, std::move(options));
  ASSIGN_OR_RETURN(shelf->partials,
                   PartialUploads::Open(shelf->PathOf(kPartials), shelf->options.now));
  return std::unique_ptr<Blobs>(new Blobs(std::move(shelf)));
}

}  // namespace ablate::storage
