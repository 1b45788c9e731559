#include "client/submit/program_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/file_set.h"
#include "base/status_macros.h"
#include "client/submit/allowed_files.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 100'000;
constexpr char kUntracked[] = "--others --exclude-standard";  // of git ls-files
constexpr char kAllowed[] = "paths and patterns of files in the experiment file's folder";

absl::Status TooMany(absl::string_view what, size_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat("more than ", text::Grouped(most), " ", what,
                   "; expected fewer. Name the program's files one by "
                   "one, or by patterns such as *.py"));
}

// Returns the files of a folder that git lists, relative to it; nothing outside of a repository.
std::vector<std::string> FilesOfGit(const fs::path& folder, absl::string_view options) {
  const std::string quoted =
      absl::StrCat("'", absl::StrReplaceAll(folder.string(), {{"'", "'\\''"}}), "'");
  // A repository's own settings may name programs to run: none is needed here.
  const std::string command = absl::StrCat(
      "git -C ", quoted, " -c core.fsmonitor=false ls-files -z ", options, " 2>/dev/null");
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "re"), pclose);
  std::string listed;
  char buffer[64 << 10];
  while (output != nullptr) {
    const size_t got = fread(buffer, 1, sizeof(buffer), output.get());
    if (got == 0) break;
    listed.append(buffer, got);
  }
  return absl::StrSplit(listed, '\0', absl::SkipEmpty());
}

bool IsHidden(const fs::path& path) {
  return std::any_of(path.begin(), path.end(), [](const fs::path& part) {
    return absl::StartsWith(part.string(), ".") && part != ".";
  });
}

// Returns the files below `folder` that aren't hidden, relative to it, without Python's caches.
absl::StatusOr<std::vector<std::string>> ListFolder(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    const bool is_folder = at->is_directory(ignored) && !at->is_symlink(ignored);
    if (absl::StartsWith(name, ".") || name == "__pycache__") {
      if (is_folder) at.disable_recursion_pending();
    } else if (at->is_regular_file(ignored)) {
      if (files.size() == kMaxListed) return TooMany("files in the folder", kMaxListed);
      files.push_back(at->path().lexically_relative(folder).string());
    }
  }
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat(folder.string(), ": ", error.message()));
  }
  return files;
}

class FileFinder {
 public:
  FileFinder(const std::string& folder, const std::string& except,
             const std::vector<std::string>& allowed)
      : folder_(folder.empty() ? "." : folder), except_(except), allowed_(allowed) {}

  absl::Status Add(const std::string& pattern) {
    const fs::path path = fs::path(pattern).lexically_normal();
    const bool leads_out = path.is_absolute() || (!path.empty() && *path.begin() == "..");
    if (leads_out) {
      return absl::InvalidArgumentError(absl::StrCat(reflect::Quoted(pattern),
                                                     " leads out of the experiment file's folder; "
                                                     "expected ",
                                                     kAllowed));
    }
    std::error_code error;
    if (fs::is_directory(folder_ / path, error)) {
      RETURN_IF_ERROR(AddFolder(path == "." ? fs::path() : path));
    } else if (fs::exists(folder_ / path, error)) {
      RETURN_IF_ERROR(AddFile(path));
    } else {
      RETURN_IF_ERROR(AddMatches(path.string()));
    }
    if (std::exchange(matched_, false)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(reflect::Quoted(pattern), " names no file; expected ", kAllowed));
  }

  // Returns the files of folders that git doesn't track and doesn't ignore, unless they are named
  // otherwise.
  std::vector<std::string> LeftOut() const {
    std::vector<std::string> files;
    std::set_difference(left_out_.begin(), left_out_.end(), found_.begin(), found_.end(),
                        std::back_inserter(files));
    return files;
  }

  // Packs what was found.
  absl::StatusOr<std::string> Pack() const {
    std::vector<std::string> bytes;
    std::vector<PackedFile> files;
    bytes.reserve(found_.size());
    for (const std::string& path : found_) {
      std::error_code error;
      const fs::path file = folder_ / path;
      const auto mode = fs::status(file, error).permissions();
      bytes.push_back(process::ReadWholeFile(file));
      if (bytes.back().empty() && fs::file_size(file, error) > 0) {
        return absl::PermissionDeniedError(absl::StrCat(file.string(), ": it can't be read"));
      }
      files.push_back({path, bytes.back(), (mode & fs::perms::owner_exec) != fs::perms::none});
    }
    return PackFiles(std::move(files));
  }

 private:
  absl::Status AddFolder(const fs::path& below) {
    std::vector<std::string> files = FilesOfGit(folder_ / below, "");
    if (files.empty()) {
      ASSIGN_OR_RETURN(files, ListFolder(folder_ / below));
    } else {
      for (const std::string& file : FilesOfGit(folder_ / below, kUntracked))
        AddLeftOut(below / file);
    }
    for (const std::string& file : files) {
      if (IsHidden(file)) continue;
      RETURN_IF_ERROR(AddFile(below / file));
    }
    return absl::OkStatus();
  }

  void AddLeftOut(const fs::path& path) {
    std::error_code error;
    const bool is_experiment = !except_.empty() && fs::equivalent(folder_ / path, except_, error);
    if (is_experiment || IsHidden(path) || absl::StrContains(path.string(), "__pycache__")) return;
    left_out_.insert(path.string());
  }

  absl::Status AddMatches(const std::string& pattern) {
    if (!listed_) {
      ASSIGN_OR_RETURN(all_, ListFolder(folder_));
      listed_ = true;
    }
    for (const std::string& file : all_) {
      if (fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME | FNM_PERIOD) != 0) continue;
      RETURN_IF_ERROR(AddFile(file));
    }
    return absl::OkStatus();
  }

  absl::Status AddFile(const fs::path& path) {
    matched_ = true;
    std::error_code error;
    const fs::path file = folder_ / path;
    if (!fs::is_regular_file(file, error)) return absl::OkStatus();  // deleted, though tracked
    if (!except_.empty() && fs::equivalent(file, except_, error)) return absl::OkStatus();
    RETURN_IF_ERROR(CheckIsAllowed(file, folder_, "the experiment file's folder", allowed_));
    if (!found_.insert(path.string()).second) return absl::OkStatus();
    bytes_ += fs::file_size(file, error);
    if (bytes_ > kMaxPackedBytes) return TooMany("bytes in the program's files", kMaxPackedBytes);
    if (found_.size() > kMaxPackedFiles) return TooMany("files", kMaxPackedFiles);
    return absl::OkStatus();
  }

  const fs::path folder_;
  const fs::path except_;
  const std::vector<std::string>& allowed_;
  std::set<std::string> found_, left_out_;
  uint64_t bytes_ = 0;
  bool matched_ = false;
  bool listed_ = false;
  std::vector<std::string> all_;
};

}  // namespace

absl::StatusOr<std::string> PackProgramFiles(const std::string& folder, absl::string_view patterns,
                                             const std::string& except,
                                             const std::vector<std::string>& allowed,
                                             std::vector<std::string>* left_out) {
  FileFinder finder(folder, except, allowed);
  for (const absl::string_view pattern : absl::StrSplit(patterns, ',', absl::SkipWhitespace())) {
    RETURN_IF_ERROR(finder.Add(std::string(absl::StripAsciiWhitespace(pattern))));
  }
  if (left_out != nullptr) *left_out = finder.LeftOut();
  return finder.Pack();
}

}  // namespace ablate::client
