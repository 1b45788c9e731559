#include "storage/partial_uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "storage/disk_room.h"

namespace ablate::storage {
namespace {

constexpr size_t kUserDigits = 16;  // of the hash that stands for a user's name

std::string PartialName(absl::string_view user, absl::string_view sha256) {
  return absl::StrCat(Sha256Hex(user).substr(0, kUserDigits), "-", sha256);
}

struct PartialFile {
  std::string name;
  int64_t date = 0;  // of the last progress, in microseconds
  uint64_t bytes = 0;
};

// Returns the files of a folder, the oldest first.
std::vector<PartialFile> PartialsIn(const std::string& folder) {
  std::vector<PartialFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat found;
    if (stat(entry->path().c_str(), &found) != 0) continue;
    files.push_back({entry->path().filename().string(),
                     int64_t{found.st_mtim.tv_sec} * 1'000'000 + found.st_mtim.tv_nsec / 1000,
                     static_cast<uint64_t>(found.st_size)});
  }
  std::sort(files.begin(), files.end(),
            [](const PartialFile& a, const PartialFile& b) { return a.date < b.date; });
  return files;
}

struct PartialSum {
  size_t files = 0;
  uint64_t bytes = 0;
};

absl::Status WrongOffset(uint64_t offset, uint64_t kept) {
  return absl::OutOfRangeError(
      absl::StrCat("offset: the upload can't continue at ", offset, "; expected ", kept,
                   ", the number of bytes that the server has, or 0 to begin again"));
}

}  // namespace

// An upload's claim to a file. The file is used only under `mutex`, and not once the claim is lost.
struct PartialUploads::Claim {
  Mutex mutex;
  bool lost ABSL_GUARDED_BY(mutex) = false;
  std::atomic<int64_t> active = 0;  // time of the last message
};

struct PartialUploads::State {
  bool IsSilent(const Claim& claim) const { return now() - claim.active > kMaxSilence; }
  // Removes a file that nobody holds.
  bool Remove(const std::string& name) {
    MutexLock lock(&mutex);
    return claims.count(name) == 0 && unlink(absl::StrCat(folder, "/", name).c_str()) == 0;
  }
  void Trim();

  std::string folder;
  std::function<int64_t()> now;
  Mutex mutex;
  std::map<std::string, std::shared_ptr<Claim>> claims ABSL_GUARDED_BY(mutex);  // by file name
};

void PartialUploads::State::Trim() {
  std::vector<PartialFile> files = PartialsIn(folder);
  std::reverse(files.begin(), files.end());  // the newest stay
  std::map<std::string, PartialSum> of_users;
  PartialSum all;
  for (const PartialFile& file : files) {
    PartialSum& own = of_users[file.name.substr(0, kUserDigits)];
    const bool fits = own.files < kMaxFilesOfUser && all.files < kMaxFiles &&
                      own.bytes + file.bytes <= kMaxBytesOfUser &&
                      all.bytes + file.bytes <= kMaxBytes;
    // In both directions, because the clock may be set back.
    const bool fresh = std::abs(now() - file.date) <= kMaxAge;
    if ((!fits || !fresh) && Remove(file.name)) continue;
    for (PartialSum* sum : {&own, &all}) {
      ++sum->files;
      sum->bytes += file.bytes;
    }
  }
}

PartialUploads::Hold::Hold(std::shared_ptr<State> state, std::shared_ptr<Claim> claim,
                           std::string name)
    : state_(std::move(state)),
      claim_(std::move(claim)),
      name_(std::move(name)),
      path_(absl::StrCat(state_->folder, "/", name_)) {}

PartialUploads::Hold::~Hold() {
  While([this] {
    struct stat found;
    if (stat(path_.c_str(), &found) == 0 && found.st_size == 0) unlink(path_.c_str());
    return absl::OkStatus();
  }).IgnoreError();
  MutexLock lock(&state_->mutex);
  const auto found = state_->claims.find(name_);
  if (found != state_->claims.end() && found->second == claim_) state_->claims.erase(found);
}

absl::Status PartialUploads::Hold::While(absl::FunctionRef<absl::Status()> work) {
  MutexLock lock(&claim_->mutex);
  if (claim_->lost) {
    return absl::AbortedError(
        "another upload of the same bytes has continued this one; expected one at a time. Ask "
        "GetUpload how many bytes the server has, and continue there once they aren't in use");
  }
  claim_->active = std::max<int64_t>(claim_->active, state_->now());
  return work();
}

void PartialUploads::Hold::Finish() { claim_->active = std::numeric_limits<int64_t>::max(); }

absl::StatusOr<std::unique_ptr<PartialUploads>> PartialUploads::Open(const std::string& folder,
                                                                     std::function<int64_t()> now) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return FileError("create", folder);
  auto state = std::make_shared<State>();
  state->folder = folder;
  state->now = std::move(now);
  state->Trim();
  return std::unique_ptr<PartialUploads>(new PartialUploads(std::move(state)));
}

PartialUploads::Found PartialUploads::Find(absl::string_view user, absl::string_view sha256) {
  const std::string name = PartialName(user, sha256);
  MutexLock lock(&state_->mutex);
  const auto claim = state_->claims.find(name);
  struct stat found;
  if (stat(absl::StrCat(state_->folder, "/", name).c_str(), &found) != 0) return {};
  return {static_cast<uint64_t>(found.st_size),
          claim != state_->claims.end() && !state_->IsSilent(*claim->second)};
}

absl::StatusOr<PartialUploads::Opened> PartialUploads::Take(absl::string_view user,
                                                            absl::string_view sha256,
                                                            uint64_t offset) {
  const std::string name = PartialName(user, sha256);
  const auto claim = std::make_shared<Claim>();
  claim->active = state_->now();
  std::shared_ptr<Claim> before;
  {
    MutexLock lock(&state_->mutex);
    std::shared_ptr<Claim>& place = state_->claims[name];
    if (place != nullptr && !state_->IsSilent(*place)) {
      if (offset == 0) return Opened{};
      return absl::AbortedError(
          "offset: another upload of these bytes is in progress; expected 0, to upload beside it. "
          "To continue, wait until GetUpload says that they aren't in use");
    }
    before = std::exchange(place, claim);
  }
  if (before != nullptr) {
    MutexLock lock(&before->mutex);
    before->lost = true;
  }
  Opened opened;
  opened.hold.reset(new Hold(state_, claim, name));
  RETURN_IF_ERROR(opened.hold->While([&]() -> absl::Status {
    const std::string& path = opened.hold->path();
    const int begin = offset == 0 ? O_CREAT | O_TRUNC : 0;
    opened.file =
        process::FileDescriptor(open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | begin, 0600));
    struct stat found {};
    if (!opened.file.open() && errno != ENOENT) return FileError("open", path);
    if (opened.file.open() && fstat(opened.file.get(), &found) != 0) {
      return FileError("look at", path);
    }
    const auto kept = static_cast<uint64_t>(found.st_size);
    return kept == offset ? absl::OkStatus() : WrongOffset(offset, kept);
  }));
  state_->Trim();
  return opened;
}

void PartialUploads::Trim() { state_->Trim(); }

uint64_t PartialUploads::Free(uint64_t bytes) {
  uint64_t freed = 0;
  for (const PartialFile& file : PartialsIn(state_->folder)) {
    if (freed >= bytes) break;
    if (state_->Remove(file.name)) freed += file.bytes;
  }
  return freed;
}

}  // namespace ablate::storage
