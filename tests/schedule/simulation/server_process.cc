// Starts, kills and restores the simulated server.
#include "tests/schedule/simulation/server_process.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ablate::simulation {
namespace {

std::unique_ptr<storage::Store> OpenStore(storage::StoreOptions options) {
  absl::StatusOr<std::unique_ptr<storage::Store>> store = storage::Store::Open(std::move(options));
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

// Returns the image of an empty store: copying it is faster than creating one.
const std::string& EmptyImage() {
  static const std::string image = *OpenStore({})->Image();
  return image;
}

}  // namespace

ServerProcess::ServerProcess(const schedule::FakeClock* clock, Mutation mutation, Random* random)
    : clock_(clock), random_(random), store_(Open(EmptyImage())), delayed_(store_.get(), mutation) {
  options_.step_watchdog = absl::Minutes(1);
  // With 40 bytes nearly every event of a lease waits for the previous one's acknowledgement. Less
  // would not do: a stream may have about 20 times as much, which the events of two lanes must fit.
  const uint64_t credits[] = {40, 400, 4 << 20};
  options_.credit_bytes = credits[random->Below(3)];
}

void ServerProcess::Start() {
  drained_ = false;
  scheduler_ = std::make_unique<schedule::Scheduler>(
      &delayed_, clock_, options_, [this] { return absl::StrCat("lease-", ++leases_); });
  scheduler_->SetPost([this](std::function<void()> work) { posted_.push_back(std::move(work)); });
  EXPECT_TRUE(scheduler_->Start().ok());
}

void ServerProcess::Kill() {
  for (size_t n = random_->Below(static_cast<uint32_t>(delayed_.waiting()) + 1); n > 0; --n) {
    delayed_.Commit();
  }
  delayed_.Crash();
  posted_.clear();
  scheduler_ = nullptr;
}

void ServerProcess::Drain() {
  scheduler_->DrainAll();
  drained_ = true;
}

void ServerProcess::RunPosted() {
  const std::function<void()> work = std::move(posted_.front());
  posted_.pop_front();
  work();
}

std::string ServerProcess::Backup() {
  const absl::StatusOr<std::string> image = store_->Image();
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? *image : "";
}

void ServerProcess::Restore(const std::string& backup) {
  store_ = Open(backup);
  delayed_.SetTarget(store_.get());
}

std::unique_ptr<storage::Store> ServerProcess::Open(const std::string& image) const {
  storage::StoreOptions options;
  options.image = image;
  options.now = [this] { return absl::ToInt64Microseconds(clock_->Now()); };
  return OpenStore(std::move(options));
}

}  // namespace ablate::simulation
