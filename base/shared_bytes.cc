#include "base/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace ablate {

absl::StatusOr<SharedBytes> SharedBytes::OfFile(const std::string& file) {
  const auto unreadable = [&] {
    return absl::NotFoundError(absl::StrCat(file, ": ", strerror(errno)));
  };
  const process::FileDescriptor from(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat known {};
  if (!from.open() || fstat(from.get(), &known) != 0) return unreadable();
  SharedBytes bytes;
  bytes.of_file_ = true;
  const auto size = static_cast<size_t>(known.st_size);
  if (size == 0) return bytes;  // nothing to map
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, from.get(), 0);
  if (memory == MAP_FAILED) return unreadable();
#ifdef MADV_POPULATE_READ
  madvise(memory, size, MADV_POPULATE_READ);  // all pages by one call; older kernels refuse it
#endif
  bytes.owner_ = std::shared_ptr<const void>(
      memory, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  bytes.view_ = {static_cast<const char*>(memory), size};
  return bytes;
}

}  // namespace ablate
