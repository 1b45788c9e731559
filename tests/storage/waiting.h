// Waits for the results of the store's asynchronous writes.
#ifndef ABLATE_TESTS_STORAGE_WAITING_H_
#define ABLATE_TESTS_STORAGE_WAITING_H_

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/lease_store.h"

namespace ablate::storage {

inline absl::StatusOr<Grants> GrantAndWait(LeaseStore& store, std::vector<NewLease> leases) {
  std::promise<absl::StatusOr<Grants>> answer;
  store.GrantAsync(std::move(leases), [&](auto grants) { answer.set_value(std::move(grants)); });
  return answer.get_future().get();
}

inline absl::StatusOr<std::vector<Applied>> ApplyAndWait(LeaseStore& store,
                                                         absl::string_view incarnation,
                                                         std::vector<LeaseEvent> events) {
  std::promise<absl::StatusOr<std::vector<Applied>>> answer;
  store.ApplyAsync(std::string(incarnation), std::move(events),
                   [&](auto applied) { answer.set_value(std::move(applied)); });
  return answer.get_future().get();
}

inline absl::Status EndLeaseAndWait(LeaseStore& store, absl::string_view lease,
                                    LeaseEnding ending) {
  std::promise<absl::Status> answer;
  store.EndLeaseAsync(std::string(lease), std::move(ending),
                      [&](const absl::Status& status) { answer.set_value(status); });
  return answer.get_future().get();
}

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_WAITING_H_
