// Implements an SQLite VFS in front of the real one.
#include "tests/storage/failing_disk.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace ablate::storage {
namespace {

// The real file follows it in memory.
struct File {
  sqlite3_file base;
  FailingDisk* disk;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }

// A method that only passes its arguments on.
template <auto Method>
struct Forward;
template <typename Result, typename... Arguments,
          Result (*sqlite3_io_methods::*Method)(sqlite3_file*, Arguments...)>
struct Forward<Method> {
  static Result Call(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* real = Of(file)->real();
    return (real->pMethods->*Method)(real, arguments...);
  }
};

bool Fits(FailingDisk* disk, int size) {
  if ((disk->room -= size) >= 0) return true;
  const bool ballast_gone = !disk->ballast.empty() && ::access(disk->ballast.c_str(), F_OK) != 0;
  if (!ballast_gone || disk->ballast_used.exchange(true)) return false;
  disk->room = disk->ballast_bytes - size;
  return true;
}

int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  if (!Fits(Of(file)->disk, size)) {
    if (!Of(file)->disk->by_quota) return SQLITE_FULL;
    errno = EDQUOT;
    return SQLITE_IOERR_WRITE;
  }
  sqlite3_file* real = Of(file)->real();
  return real->pMethods->xWrite(real, bytes, size, offset);
}

int Sync(sqlite3_file* file, int flags) {
  ++Of(file)->disk->syncs;
  if (Of(file)->disk->fail_sync) return SQLITE_IOERR_FSYNC;
  sqlite3_file* real = Of(file)->real();
  return real->pMethods->xSync(real, flags);
}

int ShmMap(sqlite3_file* file, int region, int size, int grow, void volatile** place) {
  sqlite3_file* real = Of(file)->real();
  if (grow != 0 && region > 0 && Of(file)->disk->fail_index) return SQLITE_IOERR_SHMSIZE;
  return real->pMethods->xShmMap(real, region, size, grow, place);
}

const sqlite3_io_methods kMethods = {
    3,
    Forward<&sqlite3_io_methods::xClose>::Call,
    Forward<&sqlite3_io_methods::xRead>::Call,
    Write,
    Forward<&sqlite3_io_methods::xTruncate>::Call,
    Sync,
    Forward<&sqlite3_io_methods::xFileSize>::Call,
    Forward<&sqlite3_io_methods::xLock>::Call,
    Forward<&sqlite3_io_methods::xUnlock>::Call,
    Forward<&sqlite3_io_methods::xCheckReservedLock>::Call,
    Forward<&sqlite3_io_methods::xFileControl>::Call,
    Forward<&sqlite3_io_methods::xSectorSize>::Call,
    Forward<&sqlite3_io_methods::xDeviceCharacteristics>::Call,
    ShmMap,
    Forward<&sqlite3_io_methods::xShmLock>::Call,
    Forward<&sqlite3_io_methods::xShmBarrier>::Call,
    Forward<&sqlite3_io_methods::xShmUnmap>::Call,
    Forward<&sqlite3_io_methods::xFetch>::Call,
    Forward<&sqlite3_io_methods::xUnfetch>::Call,
};

}  // namespace

struct FailingDisk::Vfs {
  sqlite3_vfs vfs;
  sqlite3_vfs* real;
  FailingDisk* disk;

  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    const Vfs* self = static_cast<Vfs*>(vfs->pAppData);
    File* opened = new (file) File{{nullptr}, self->disk};
    const int code = self->real->xOpen(self->real, name, opened->real(), flags, out);
    if (opened->real()->pMethods != nullptr) opened->base.pMethods = &kMethods;
    return code;
  }
};

FailingDisk::FailingDisk() : vfs_(std::make_unique<Vfs>()) {
  vfs_->real = sqlite3_vfs_find(nullptr);
  vfs_->disk = this;
  vfs_->vfs = *vfs_->real;  // what is about names and time goes to the real one as it is
  vfs_->vfs.zName = "failing-disk";
  vfs_->vfs.szOsFile = static_cast<int>(sizeof(File)) + vfs_->real->szOsFile;
  vfs_->vfs.pAppData = vfs_.get();
  vfs_->vfs.xOpen = Vfs::Open;
  sqlite3_vfs_register(&vfs_->vfs, /*makeDflt=*/1);
}

FailingDisk::~FailingDisk() { sqlite3_vfs_unregister(&vfs_->vfs); }

}  // namespace ablate::storage
