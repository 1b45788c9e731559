#include "server/worker/program_data.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file_set.h"
#include "base/private_folder.h"
#include "base/status_macros.h"

namespace ablate::worker {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(const fs::path& path, const std::error_code& error) {
  return absl::InternalError(absl::StrCat(path.string(), ": ", error.message()));
}

}  // namespace

ProgramData::Set::~Set() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

absl::Status ProgramData::Set::Unpack(const Read& read) {
  MutexLock lock(&mutex_);
  if (unpacked_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SharedBytes packed, read());
  RETURN_IF_ERROR(process::MakePrivateFolder(folder_));
  if (const absl::Status failed = UnpackFiles(packed.view(), folder_); !failed.ok()) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);  // a full disk needs the room
    return failed;
  }
  bytes_ = packed.view().size();
  unpacked_ = true;
  return absl::OkStatus();
}

uint64_t ProgramData::Set::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

absl::StatusOr<std::shared_ptr<const ProgramData::Set>> ProgramData::Open(const std::string& sha256,
                                                                          const Read& read) {
  const std::shared_ptr<Set> set = Find(sha256);
  RETURN_IF_ERROR(set->Unpack(read));
  RemoveUnused();
  return set;
}

std::shared_ptr<ProgramData::Set> ProgramData::Find(const std::string& sha256) {
  MutexLock lock(&mutex_);
  const std::string folder = absl::StrCat(root_, "/", sha256);
  const auto known =
      std::find_if(recent_.begin(), recent_.end(),
                   [&folder](const std::shared_ptr<Set>& set) { return set->folder() == folder; });
  if (known != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, known);
  } else {
    recent_.push_front(std::make_shared<Set>(folder));
  }
  return recent_.front();
}

void ProgramData::RemoveUnused() {
  MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (auto at = recent_.begin(); at != recent_.end();) {
    const bool in_use = at->use_count() > 1;  // only Find, under the lock, makes more users
    // A set that is in use may be unpacking, which holds its lock.
    if (!in_use) bytes += (*at)->bytes();
    at = !in_use && bytes > most_bytes_ ? recent_.erase(at) : std::next(at);
  }
}

absl::Status LinkData(const std::string& set, const std::string& seen, const std::string& folder) {
  std::error_code error;
  for (auto at = fs::directory_iterator(set, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename();
    const fs::path place = fs::path(folder) / name;
    const std::string target = absl::StrCat(seen, "/", name);
    std::error_code failed;
    const fs::file_status there = fs::symlink_status(place, failed);
    if (there.type() == fs::file_type::not_found) {
      fs::create_symlink(target, place, failed);
      if (failed) return Failed(place, failed);
    } else if (fs::is_directory(there) && fs::is_directory(at->symlink_status(failed))) {
      RETURN_IF_ERROR(LinkData(at->path(), target, place));
    }
  }
  return error ? Failed(set, error) : absl::OkStatus();
}

}  // namespace ablate::worker
