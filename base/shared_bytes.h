// Shares bytes that don't change: those of a string, or of a file without a copy.
#ifndef ABLATE_BASE_SHARED_BYTES_H_
#define ABLATE_BASE_SHARED_BYTES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate {

// A value: copies share the bytes, which live as long as one of them. Thread-safe.
class SharedBytes {
 public:
  SharedBytes() = default;
  // Implicit, so that a string can be given wherever bytes are wanted.
  SharedBytes(std::string bytes)  // NOLINT(google-explicit-constructor)
      : SharedBytes(std::make_shared<const std::string>(std::move(bytes))) {}

  // Maps a file into memory. It may be deleted afterwards, but must not be changed. NOT_FOUND if it
  // can't be read.
  static absl::StatusOr<SharedBytes> OfFile(const std::string& file);

  absl::string_view view() const { return view_; }
  // Keeps the bytes alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  // Returns true for a file's bytes. Writing to them changes this process's memory only.
  bool of_file() const { return of_file_; }

 private:
  explicit SharedBytes(const std::shared_ptr<const std::string>& text)
      : owner_(text), view_(*text) {}

  std::shared_ptr<const void> owner_;
  absl::string_view view_;
  bool of_file_ = false;
};

}  // namespace ablate

#endif  // ABLATE_BASE_SHARED_BYTES_H_
