// Forwards every call to a store's queue and leases, so that a test overrides only the calls that
// it wants to delay or break.
#ifndef ABLATE_TESTS_SCHEDULE_LEASE_STORE_PROXY_H_
#define ABLATE_TESTS_SCHEDULE_LEASE_STORE_PROXY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::schedule {

class LeaseStoreProxy : public storage::LeaseStore {
 public:
  template <typename T>
  using Or = absl::StatusOr<T>;
  using Text = absl::string_view;

  explicit LeaseStoreProxy(storage::Store* target) : target_(target) {}
  storage::Store* target() const { return target_; }
  void SetTarget(storage::Store* target) { target_ = target; }

  storage::Blobs* blobs() override { return target_->blobs(); }
  Or<std::vector<storage::QueuedRun>> Queue(Text device_kind, const std::set<std::string>& trainers,
                                            uint32_t limit) override {
    return target_->Queue(device_kind, trainers, limit);
  }
  Or<storage::DeviceShares> GetShares() override { return target_->GetShares(); }
  Or<std::optional<double>> MeasuredStepTime(Text shape) override {
    return target_->MeasuredStepTime(shape);
  }
  void OnWithdrawn(storage::OnWithdrawnFunction on_withdrawn) override {
    target_->OnWithdrawn(std::move(on_withdrawn));
  }
  void GrantAsync(std::vector<storage::NewLease> leases, Done<storage::Grants> done) override {
    target_->GrantAsync(std::move(leases), std::move(done));
  }
  void ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                  Done<std::vector<storage::Applied>> done) override {
    target_->ApplyAsync(std::move(incarnation), std::move(events), std::move(done));
  }
  Or<storage::HeldLeaseDecision> CheckLease(Text lease, Text incarnation,
                                            uint64_t first_unacked) override {
    return target_->CheckLease(lease, incarnation, first_unacked);
  }
  void EndLeaseAsync(std::string lease, storage::LeaseEnding ending, DoneEnding done) override {
    target_->EndLeaseAsync(std::move(lease), std::move(ending), std::move(done));
  }
  Or<std::vector<storage::LeaseRecord>> ListLeases() override { return target_->ListLeases(); }

 private:
  storage::Store* target_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_TESTS_SCHEDULE_LEASE_STORE_PROXY_H_
