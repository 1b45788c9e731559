// Distinguishes out-of-memory errors, which a later call may survive, from errors that end a
// trainer and from errors that end the process.
#include "server/engine/torch/train/boundary.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ablate::engine {
namespace {

// Recognised by the text, because the CPU allocator throws a plain c10::Error and CUDA's libraries
// throw others. Without memory for its handle, a library isn't initialized.
bool NamesOutOfMemory(const std::string& message) {
  return absl::StrContains(message, "not enough memory") ||
         absl::StrContains(message, "can't allocate memory") ||
         absl::StrContains(message, "out of memory") ||
         absl::StrContains(message, "ALLOC_FAILED") ||
         absl::StrContains(message, "STATUS_NOT_INITIALIZED");
}

// Such an error is sticky: every later call of the process would also fail. CUDA's libraries throw
// a plain c10::Error.
bool IsOfDevice(const c10::Error& error, const std::string& message) {
  return dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr ||
         absl::StartsWith(message, "CUDA error") ||
         absl::StartsWith(message, "CUDA driver error") || absl::StartsWith(message, "cuDNN error");
}

}  // namespace

bool IsOutOfMemory() { return absl::IsResourceExhausted(StatusOfCurrentException()); }

absl::Status StatusOfCurrentException() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (NamesOutOfMemory(message)) return absl::ResourceExhaustedError("out of memory: " + message);
    if (IsOfDevice(error, message)) return absl::UnavailableError("the device is lost: " + message);
    return absl::InternalError("LibTorch: " + message);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace ablate::engine
