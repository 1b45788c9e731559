#include "server/service/check_store.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/rpc/blob_streams.h"

namespace ablate::service {
namespace {

constexpr int kMaxProblems = 1'000;

// Adds the problem, or counts it.
void Add(const std::string& problem, v1::CheckStoreResponse* response) {
  if (response->problems_size() < kMaxProblems) {
    response->add_problems(problem);
  } else {
    response->set_left_out(response->left_out() + 1);
  }
}

}  // namespace

absl::Status CheckStore(const lookup::View& view, const v1::CheckStoreRequest&,
                        const lookup::Cancelled& cancelled, v1::CheckStoreResponse* response) {
  ASSIGN_OR_RETURN(const auto damage, view.store->FindDamage());
  for (const std::string& problem : damage.problems) {
    Add(absl::StrCat("database: ", problem), response);
  }
  if (!damage.readable) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto named, view.store->NamedBlobs());
  for (const storage::NamedBlob& blob : named) {
    const absl::StatusOr<bool> whole = rpc::HasWhole(view.store, blob.sha256, cancelled);
    if (absl::IsCancelled(whole.status())) return whole.status();
    response->set_files(response->files() + 1);
    if (whole.ok() && *whole) continue;
    const bool missing = absl::IsNotFound(view.store->blobs()->Size(blob.sha256).status());
    const std::string why = !whole.ok() ? std::string(whole.status().message())
                            : missing   ? "is missing"
                                        : "is damaged";
    Add(absl::StrCat(blob.what, ": file ", blob.sha256, " ", why), response);
  }
  return absl::OkStatus();
}

}  // namespace ablate::service
