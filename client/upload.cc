#include "client/upload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

// The delays grow from half a second, and are 95.5 s in all: a server may need 80 s to notice that
// a connection broke, and until then counts its call as one of the user's.
constexpr int kMaxVainTries = 15;
constexpr absl::Duration kFirstDelay = absl::Milliseconds(500), kLongestDelay = absl::Seconds(8);

// Returns true for a call after which the upload may continue: it broke or found no room, another
// upload holds the server's bytes, or the server has other bytes than it had.
bool MayContinue(const absl::Status& status, uint64_t offset) {
  return MayTryAgain(status) || absl::IsAborted(status) || absl::IsOutOfRange(status) ||
         (absl::IsDataLoss(status) && offset > 0);
}

absl::Status GivesUp(const absl::Status& broke) {
  return absl::Status(broke.code(), absl::StrCat(broke.message(),
                                                 ". The server keeps the bytes that it received "
                                                 "for a day: run the same command again to "
                                                 "continue"));
}

}  // namespace

absl::Status UploadAll(Connection* connection, const Context& context, const LocalBytes& local,
                       const SendFrom& send) {
  v1::GetUploadRequest request;
  request.set_sha256(local.sha256);
  uint64_t most = 0;  // bytes that the server had
  absl::Status broke;
  for (int vain = 0;; ++vain) {
    const absl::StatusOr<v1::PartialUpload> kept = connection->Call(kGetUpload, request);
    if (absl::IsUnimplemented(kept.status())) return send(0);
    const bool lost = MayTryAgain(kept.status()) || absl::IsDeadlineExceeded(kept.status());
    if (!kept.ok() && (broke.ok() || !lost)) return kept.status();
    // Our own broken upload may hold the bytes for some seconds.
    if (kept.ok() && (broke.ok() || vain >= kMaxVainTries || !kept->in_use())) {
      const uint64_t offset = kept->in_use() ? 0 : kept->bytes();
      if (offset > most) vain = 0;
      most = std::max(most, offset);
      if (offset > 0) {
        context.console.Note(absl::StrCat("continuing the upload of ", local.name, " at ",
                                          Bytes(offset), " of ", Bytes(local.bytes)));
      }
      const absl::Status sent = send(offset);
      if (!MayContinue(sent, offset)) return sent;
      broke = sent;
    }
    if (vain >= kMaxVainTries) return GivesUp(broke);
    if (vain == 0) {
      context.console.Note(absl::StrCat("trying the upload of ", local.name,
                                        " again, because it broke: ", broke.message()));
    }
    context.sleep(std::min(kFirstDelay * (1 << vain), kLongestDelay));
  }
}

}  // namespace ablate::client
