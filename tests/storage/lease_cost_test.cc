// Tests costs that must not grow with the number of ended runs: of a grant and of a quota check.
#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::SizeIs;

// Counts the steps of SQLite's virtual machine on every connection opened while it exists: a
// measure of work that is the same each time.
class StepMeter {
 public:
  StepMeter() {
    steps = 0;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Attach));
  }
  ~StepMeter() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(Attach)); }
  StepMeter(const StepMeter&) = delete;
  StepMeter& operator=(const StepMeter&) = delete;

  template <typename Work>
  int64_t StepsOf(const Work& work) {
    const int64_t before = steps;
    work();
    return steps - before;
  }

 private:
  static int Attach(sqlite3* db, char** /*error*/, const sqlite3_api_routines* /*unused*/) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, Count, nullptr);
  }
  static int Count(unsigned /*event*/, void* /*context*/, void* statement, void* /*time*/) {
    steps += sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP,
                                 /*resetFlg=*/1);
    return 0;
  }

  inline static int64_t steps = 0;  // static: an extension gets no argument of ours
};

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

}  // namespace
}  // namespace ablate::storage
