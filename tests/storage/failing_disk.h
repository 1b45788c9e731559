// A disk below SQLite that is full or fails on request.
#ifndef ABLATE_TESTS_STORAGE_FAILING_DISK_H_
#define ABLATE_TESTS_STORAGE_FAILING_DISK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ablate::storage {

// Used by every database opened while it exists. Thread-safe.
class FailingDisk {
 public:
  FailingDisk();
  ~FailingDisk();
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;

  // Bytes that may still be written before the disk is full.
  std::atomic<int64_t> room = INT64_MAX;
  // A full disk refuses as a user's quota does.
  std::atomic<bool> by_quota = false;
  // The index of the log can't grow.
  std::atomic<bool> fail_index = false;
  std::atomic<bool> fail_sync = false;
  std::atomic<int> syncs = 0;
  // A file of so many bytes, which become room when it is removed. Set it before there is a
  // database.
  std::string ballast;
  int64_t ballast_bytes = 0;
  std::atomic<bool> ballast_used = false;

 private:
  struct Vfs;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_FAILING_DISK_H_
