// Tests costs that must not grow with the number of ended or queued runs: of a grant, of a quota
// check and of a look at the queue.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/storage/step_meter.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::SizeIs;

// In memory: the caller then does all work, including maintenance.
class LeaseCostTest : public ::testing::Test {
 protected:
  LeaseCostTest() : store_(Value(Store::Open({}))) {}

  // Trains so many runs to their end, each under a lease of its own.
  void Settle(int runs) {
    std::vector<std::string> names;
    for (int i = 0; i < runs; ++i) names.push_back(absl::StrCat("r", next_++));
    Value(store_->CreateExperiment(MakeExperiment(names)));
    for (const std::string& name : names) {
      Lease lease(store_.get(), absl::StrCat("lease of ", name), {name});
      ASSERT_EQ(lease.Send(name, FinishedEvent{false, 100}), Applied::kApplied);
    }
    ASSERT_TRUE(store_->Maintain().ok());
  }
  int64_t StepsOfARun() {
    Value(store_->CreateExperiment(MakeExperiment({"measured", "other"})));
    return meter_.StepsOf([this] {
      Lease lease(store_.get(), "lease", {"measured"});
      EXPECT_THAT(Value(store_->ListLeases()), SizeIs(1));
      EXPECT_EQ(lease.Send("measured", FinishedEvent{false, 100}), Applied::kApplied);
      EXPECT_TRUE(store_->Maintain().ok());
      Lease next(store_.get(), "next", {"other"}, "cpu-train", "i2");
      EXPECT_THAT(next.granted(), SizeIs(1));
    });
  }

  StepMeter meter_;
  std::unique_ptr<Store> store_;
  int next_ = 0;
};

TEST_F(LeaseCostTest, DoesNotGrowWithEndedLeases) {
  Settle(10);
  const std::string few = Value(store_->Image());
  const int64_t steps_among_few = StepsOfARun();
  StoreOptions options;
  options.image = few;
  store_ = Value(Store::Open(options));
  Settle(2000);
  EXPECT_LT(StepsOfARun(), steps_among_few * 1.1);
  EXPECT_GT(steps_among_few, 100);
  EXPECT_EQ(Value(store_->CheckLease("lease of r2000", "i1", 1)).acked, 1u);
}

TEST_F(LeaseCostTest, ChecksAQuotaWithoutReadingTheCellsOfEndedExperiments) {
  const auto steps_of_a_submit = [this](const std::string& run) {
    NewExperiment experiment = MakeExperiment({run});
    experiment.max_open_runs = 100;
    return meter_.StepsOf([&] { Value(store_->CreateExperiment(experiment)); });
  };
  Settle(10);
  const int64_t steps_among_few = steps_of_a_submit("a");
  Settle(2000);
  EXPECT_LT(steps_of_a_submit("b"), steps_among_few * 1.5);
  EXPECT_GT(steps_among_few, 100);
}

TEST_F(LeaseCostTest, ReadsOnlyAPageOfTheQueue) {
  const auto steps_of_a_page = [this] {
    return meter_.StepsOf(
        [this] { EXPECT_THAT(Value(store_->Queue("cpu", {"torch"}, 5)), SizeIs(10)); });
  };
  const auto submit = [this](const std::string& user, int runs) {
    std::vector<std::string> names;
    for (int i = 0; i < runs; ++i) names.push_back(absl::StrCat("r", next_++));
    NewExperiment experiment = MakeExperiment(names);
    experiment.owner = user;
    Value(store_->CreateExperiment(experiment));
  };
  for (const char* user : {"ann", "bob"}) submit(user, 10);
  const int64_t steps_among_few = steps_of_a_page();
  for (const char* user : {"ann", "bob"}) submit(user, 2000);
  EXPECT_LT(steps_of_a_page(), steps_among_few * 1.1);
  EXPECT_GT(steps_among_few, 100);
}

}  // namespace
}  // namespace ablate::storage
