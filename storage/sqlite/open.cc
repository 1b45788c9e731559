// Opens a store: lock, file, schema, in this order.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/statement.h"
#include "storage/sqlite/store.h"

namespace ablate::storage {
namespace {

Micros SystemNow() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

// Without destructors: nothing more may be written.
void EndProcess(const absl::Status& why) {
  std::fprintf(stderr,
               "ablate: the database cannot be trusted any more, so this process ends: %s\n",
               why.ToString().c_str());
  std::_Exit(EXIT_FAILURE);
}

// A new database names no blob, so that all there are would be swept.
absl::Status CheckNoBlobs(const std::string& folder) {
  const std::string blobs = absl::StrCat(folder, "/blobs");
  const auto count = Blobs::Count(blobs);
  if (!count.ok()) return count.status();
  if (*count == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("folder ", folder, " has no database (ablate.db), but ", *count, " blobs in ",
                   blobs, " that a new one would not know: put the database back, or move ", blobs,
                   " away to begin anew"));
}

// Opens the database, or creates it where there is nothing that it ought to know.
absl::StatusOr<std::unique_ptr<Connection>> OpenDatabase(const std::string& folder,
                                                         const std::string& path) {
  // Looked at before SQLite does, which drops the log beside a file that it creates.
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size == 0) {
    if (absl::Status fresh = CheckNoBlobs(folder); !fresh.ok()) return fresh;
  }
  auto db = Connection::OpenFile(path, Connection::Access::kReadWrite);
  if (!db.ok()) return db.status();
  // Before the log, which rewrites the file's header.
  absl::Status status = CheckSchema(**db, Migrations());
  if (status.ok() && IsEmpty(**db)) status = CheckNoBlobs(folder);
  if (status.ok()) status = (*db)->UseLog();
  if (!status.ok()) return status;
  return db;
}

// What the database names comes back from the trash, where the upkeep of an older one may have sent
// it: the trash is emptied without asking who names what.
absl::Status TakeBackFromTrash(Connection& db, Blobs* blobs,
                               const std::function<void(const std::string&)>& log) {
  const auto trash = blobs->ListTrash();
  if (!trash.ok()) return trash.status();
  size_t taken = 0;
  for (const std::string& hash : *trash) {
    if (!IsNamed(db, hash)) continue;
    if (absl::Status found = blobs->Find(hash).status(); !found.ok()) return found;
    ++taken;
  }
  if (taken > 0 && log) {
    log(absl::StrCat(taken, " blobs that the database names were in the trash and are back"));
  }
  return db.error();
}

// A start writes: the index of the log, a schema, and outside the store an address and logs.
constexpr uint64_t kStartBytes = 1 << 20;

absl::Status OpenFiles(const StoreOptions& options, SqliteStore::Parts* parts) {
  parts->db.reset();  // of an earlier try
  const std::string path = absl::StrCat(options.folder, "/ablate.db");
  auto db = OpenDatabase(options.folder, path);
  if (!db.ok()) return db.status();
  parts->db = *std::move(db);
  parts->path = path;
  if (absl::Status status = Migrate(*parts->db, Migrations()); !status.ok()) return status;
  auto blobs = Blobs::Open(absl::StrCat(options.folder, "/blobs"),
                           {options.now, options.log, parts->room.get()});
  if (!blobs.ok()) return blobs.status();
  parts->blobs = *std::move(blobs);
  if (absl::Status taken = TakeBackFromTrash(*parts->db, parts->blobs.get(), options.log);
      !taken.ok()) {
    return taken;
  }
  parts->readers = std::make_unique<Readers>(path, options.fatal);
  return absl::OkStatus();
}

absl::Status OpenFolder(const StoreOptions& options, SqliteStore::Parts* parts) {
  if (!options.image.empty()) {
    return absl::InvalidArgumentError("image: only a store in memory begins as one");
  }
  auto lock = FolderLock::Take(options.folder);
  if (!lock.ok()) return lock.status();
  parts->lock = *std::move(lock);
  parts->room = std::make_unique<DiskRoom>(options.folder, options.ballast_bytes);
  const auto free = parts->room->Free();
  if (free.ok() && *free < kStartBytes) parts->room->Release();
  const absl::Status opened = parts->room->Try([&] { return OpenFiles(options, parts); });
  // For want of room, as a rule: the upkeep tries again.
  if (opened.ok()) parts->room->Keep().IgnoreError();
  return opened;
}

absl::Status OpenMemory(const StoreOptions& options, SqliteStore::Parts* parts) {
  auto db = Connection::OpenMemory(options.image);
  if (!db.ok()) return db.status();
  parts->db = *std::move(db);
  return Migrate(*parts->db, Migrations());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  if (!options.now) options.now = SystemNow;
  if (!options.fatal) options.fatal = EndProcess;
  SqliteStore::Parts parts;
  absl::Status status =
      options.folder.empty() ? OpenMemory(options, &parts) : OpenFolder(options, &parts);
  if (!status.ok()) return status;
  {
    Statement read(*parts.db, "SELECT generation FROM store");
    if (read.Row()) parts.generation = read.Text(0);
  }
  if (!parts.db->error().ok()) return parts.db->error();
  options.image.clear();
  return std::make_unique<SqliteStore>(std::move(parts), std::move(options));
}

}  // namespace ablate::storage
