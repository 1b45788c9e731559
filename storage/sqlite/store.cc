#include "storage/store.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "storage/disk_room.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/experiments.h"
#include "storage/sqlite/folder.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/migrations.h"

namespace ablate::storage {

// Results of Open; in memory all except `db` and `generation` are null or empty.
struct OpenedFiles {
  process::FileDescriptor lock;
  std::unique_ptr<DiskRoom> room;
  std::unique_ptr<Blobs> blobs;
  std::unique_ptr<Connection> db;
  std::string path;  // the database's path
  std::string generation;
};

namespace {

// Ends without destructors: nothing more may be written.
void EndProcess(const absl::Status& why) {
  std::fprintf(stderr,
               "ablate: the database cannot be trusted any more, so this process ends: %s; if it "
               "does so again, the file is damaged: put a backup of ablate.db in its place\n",
               why.ToString().c_str());
  std::_Exit(EXIT_FAILURE);
}

// Refuses blobs without a database: a new database names none, so that all would be swept.
absl::Status CheckNoBlobs(const std::string& folder) {
  const std::string blobs = absl::StrCat(folder, "/blobs");
  ASSIGN_OR_RETURN(const auto count, Blobs::Count(blobs));
  if (count == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("folder ", folder, " has no database (ablate.db), but ", count, " blobs in ",
                   blobs, ", which a new database would delete. Restore the database, or move ",
                   blobs, " away to start again"));
}

// Opens the database, or creates it if there is no earlier data.
absl::StatusOr<std::unique_ptr<Connection>> OpenDatabase(const std::string& folder,
                                                         const std::string& path) {
  // Checked before SQLite does, which drops the log of a file that it creates.
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size == 0) {
    if (absl::Status fresh = CheckNoBlobs(folder); !fresh.ok()) return fresh;
  }
  auto db = Connection::OpenFile(path, Connection::Access::kReadWrite);
  if (!db.ok()) return db.status();
  // Before the log, which rewrites the file's header.
  absl::Status status = CheckSchema(**db, StoreSchema());
  if (status.ok() && IsEmpty(**db)) status = CheckNoBlobs(folder);
  if (status.ok()) status = (*db)->UseLog();
  if (!status.ok()) return status;
  return db;
}

// Takes named blobs back from the trash, where the maintenance of an older database may have put
// them; the trash is emptied without checking names.
absl::Status TakeBackFromTrash(Connection& db, Blobs* blobs,
                               const std::function<void(const std::string&)>& log) {
  ASSIGN_OR_RETURN(const auto trash, blobs->ListTrash());
  size_t taken = 0;
  for (const std::string& hash : trash) {
    if (!IsNamed(db, hash)) continue;
    RETURN_IF_ERROR(blobs->Find(hash).status());
    ++taken;
  }
  if (taken > 0 && log) {
    log(absl::StrCat(taken, " blobs that the database names were in the trash and are back"));
  }
  return db.error();
}

// Refuses a link, through which two folders, each with its own lock, would share one database.
// SQLite keeps the log next to the file, not next to the link.
absl::Status CheckIsFile(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  if (error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": it is a symbolic link (", target.string(), "); expected the database itself. Move ",
      "the file here, or put the whole folder elsewhere and link that."));
}

absl::Status OpenFiles(const StoreOptions& options, OpenedFiles* files) {
  files->db.reset();  // of an earlier attempt
  const std::string path = absl::StrCat(options.folder, "/ablate.db");
  RETURN_IF_ERROR(CheckIsFile(path));
  ASSIGN_OR_RETURN(files->db, OpenDatabase(options.folder, path));
  files->path = path;
  RETURN_IF_ERROR(Migrate(*files->db, StoreSchema()));
  ASSIGN_OR_RETURN(files->blobs, Blobs::Open(absl::StrCat(options.folder, "/blobs"),
                                             {options.now, options.log, files->room.get()}));
  return TakeBackFromTrash(*files->db, files->blobs.get(), options.log);
}

absl::Status OpenFolder(const StoreOptions& options, OpenedFiles* files) {
  if (!options.image.empty()) {
    return absl::InvalidArgumentError("image: only a store in memory begins as one");
  }
  ASSIGN_OR_RETURN(files->lock, LockFolder(options.folder));
  files->room =
      std::make_unique<DiskRoom>(options.folder, options.ballast_bytes, options.free_bytes);
  const auto free = files->room->Free();
  if (free.ok() && *free < process::kLeastRoom) files->room->Release();
  const absl::Status opened = files->room->Try([&] { return OpenFiles(options, files); });
  // If there is no room, maintenance tries again.
  if (opened.ok()) files->room->Keep().IgnoreError();
  return opened;
}

absl::Status OpenMemory(const StoreOptions& options, OpenedFiles* files) {
  ASSIGN_OR_RETURN(files->db, Connection::OpenMemory(options.image));
  return Migrate(*files->db, StoreSchema());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  if (!options.now) options.now = [] { return absl::ToUnixMicros(absl::Now()); };
  if (!options.fatal) options.fatal = EndProcess;
  OpenedFiles files;
  RETURN_IF_ERROR(options.folder.empty() ? OpenMemory(options, &files)
                                         : OpenFolder(options, &files));
  {
    Statement read(*files.db, "SELECT generation FROM store");
    if (read.Row()) files.generation = read.Text(0);
  }
  RemoveHalfCreated(*files.db);
  // On a full disk they stay hidden until the next time.
  if (absl::IsResourceExhausted(files.db->error())) files.db->ClearError();
  if (!files.db->error().ok()) return files.db->error();
  options.image.clear();
  return std::unique_ptr<Store>(new Store(std::move(files), std::move(options)));
}

Store::Store(OpenedFiles files, StoreOptions options)
    : options_(std::move(options)),
      lock_(std::move(files.lock)),
      room_(std::move(files.room)),
      blobs_(std::move(files.blobs)),
      generation_(std::move(files.generation)),
      db_(std::make_unique<Database>(
          std::move(files.db),
          WriterOptions{.path = std::move(files.path),
                        .room = room_.get(),
                        .now = options_.now,
                        .on_commit = options_.on_commit,
                        .on_maintenance_needed = [this] { maintenance_->Signal(); },
                        .on_full =
                            [this] {
                              if (blobs_ != nullptr) blobs_->FreeTrash(Blobs::kFreedAtOnce);
                            },
                        .fatal = options_.fatal})),
      maintenance_(std::make_unique<Maintenance>(
          db_.get(), blobs_.get(),
          MaintenanceOptions{.now = options_.now,
                             .log = options_.log,
                             .sweep_leftovers = options_.sweep_leftovers,
                             .last_states_bytes = options_.last_states_bytes,
                             .room = room_.get()})) {
  if (!db_->in_memory()) maintenance_->StartThread();
}

Store::~Store() {
  // In this order, because the writer's last requests may still signal Maintenance.
  maintenance_->Stop();
  db_->writer().Stop();
}

std::string Store::stalled() const { return room_ != nullptr && room_->full() ? "disk full" : ""; }

absl::StatusOr<uint64_t> Store::FreeBytes() const {
  if (room_ == nullptr) return UINT64_MAX;
  // Trash is removed before a write fails. It is read first: if it is removed meanwhile, it counts
  // twice rather than not at all.
  const uint64_t trash = blobs_->TrashBytes();
  auto free = room_->Free();
  if (free.ok()) *free += trash;
  return free;
}

WriteCounts Store::write_counts() const { return db_->writer().counts(); }

uint64_t Store::change_number() const { return db_->writer().change_number(); }

absl::Status Store::Maintain() {
  RETURN_IF_ERROR(maintenance_->RunAll());
  return db_->writer().Checkpoint();
}

absl::StatusOr<std::string> Store::Image() {
  if (!db_->in_memory()) {
    return absl::FailedPreconditionError("an image can only be made of a store in memory");
  }
  return db_->Read([](Connection& db) { return db.Image(); });
}

}  // namespace ablate::storage
