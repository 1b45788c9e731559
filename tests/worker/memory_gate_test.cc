// Tests the admission of runs to a device by memory.
#include "server/worker/memory_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/clock.h"

namespace ablate::worker {
namespace {

// A run that enters in a thread of its own.
class Entrant {
 public:
  Entrant(MemoryGate* gate, double bytes) : share_(gate) { Enter(bytes); }
  ~Entrant() {
    control_.Halt();
    thread_.join();
  }
  bool Waits() {
    absl::SleepFor(absl::Milliseconds(300));  // longer than the gate's pause
    return !entered_;
  }
  // Returns once it has entered.
  MemoryGate::Share& Entered() {
    while (!entered_) absl::SleepFor(absl::Milliseconds(1));
    return share_;
  }
  // Returns false if it was alone; otherwise it waits again.
  bool RetreatAndEnter(double bytes) {
    if (!Entered().Retreat()) return false;
    thread_.join();
    entered_ = false;
    Enter(bytes);
    return true;
  }
  RunControl& control() { return control_; }

 private:
  void Enter(double bytes) {
    thread_ = std::thread([this, bytes] { entered_ = share_.Enter(bytes, control_); });
  }

  RunControl control_;
  MemoryGate::Share share_;
  std::atomic<bool> entered_ = false;
  std::thread thread_;
};

class MemoryGateTest : public testing::Test {
 protected:
  std::unique_ptr<Entrant> Make(double bytes) { return std::make_unique<Entrant>(&gate_, bytes); }

  std::atomic<uint64_t> free_ = 100;
  std::atomic<uint64_t> kept_ = 0;  // by ended runs
  std::atomic<int> releases_ = 0;
  MemoryGate gate_{{[this] {
                      return engine::DeviceMemory{free_, 100};
                    },
                    [this] {
                      ++releases_;
                      free_ += kept_.exchange(0);
                    }}};
};

TEST_F(MemoryGateTest, AdmitsRunsThatFitBesideWhatOthersHaventAllocated) {
  const auto a = Make(60), b = Make(40);
  a->Entered();
  b->Entered();
  const auto c = Make(30);
  EXPECT_TRUE(c->Waits());
  a->Entered().Settle();
  free_ = 40;  // a has allocated
  EXPECT_TRUE(c->Waits()) << "b hasn't";
  b->Entered().Settle();
  EXPECT_FALSE(c->Waits());
}

TEST_F(MemoryGateTest, StartsARunThatDoesntFitIfNothingElseTrains) {
  const auto large = Make(1000);
  large->Entered();
  const auto next = Make(1000);
  EXPECT_TRUE(next->Waits());
  large->Entered().Leave();
  next->Entered();
}

TEST_F(MemoryGateTest, ReleasesWhatEndedRunsHaveLeftIfARunDoesntFit) {
  free_ = 50;
  kept_ = 50;
  const auto a = Make(10);
  a->Entered().Settle();
  const auto b = Make(20);
  b->Entered().Settle();
  EXPECT_EQ(releases_, 0) << "it fits";
  const auto c = Make(80);
  c->Entered();
  EXPECT_EQ(releases_, 1);
  const auto d = Make(80);
  EXPECT_TRUE(d->Waits());
  EXPECT_EQ(releases_, 1) << "nothing has ended since";
  c->Entered().Settle();
  free_ = 20;
  EXPECT_TRUE(d->Waits());
  EXPECT_EQ(releases_, 2) << "a run keeps memory of its first passes";
}

TEST_F(MemoryGateTest, LetsOnlySomeRunsOvertake) {
  const auto first = Make(90);
  first->Entered();
  const auto waiting = Make(90);
  EXPECT_TRUE(waiting->Waits());
  for (int run = 0; run < 8; ++run) Make(5)->Entered();
  const auto later = Make(5);
  EXPECT_TRUE(later->Waits());
  first->Entered().Leave();
  waiting->Entered();
  later->Entered();
}

TEST_F(MemoryGateTest, TriesARunAgainWhenFewerTrain) {
  const auto a = Make(10), b = Make(10);
  a->Entered(), b->Entered();
  const auto unlucky = Make(10);
  unlucky->Entered();
  EXPECT_TRUE(unlucky->RetreatAndEnter(10));
  EXPECT_EQ(gate_.failures(), 1);
  EXPECT_TRUE(unlucky->Waits());
  a->Entered().Leave();
  EXPECT_FALSE(unlucky->Waits());
  const auto c = Make(10);
  EXPECT_TRUE(c->Waits()) << "otherwise as many would train as before";
  EXPECT_TRUE(unlucky->RetreatAndEnter(10));
  c->Entered();
  EXPECT_TRUE(unlucky->Waits());
  c->Entered().Leave();
  b->Entered().Leave();
  unlucky->Entered();
  EXPECT_FALSE(unlucky->RetreatAndEnter(10)) << "it was alone";
  EXPECT_EQ(gate_.failures(), 2);
}

TEST_F(MemoryGateTest, TriesAgainAloneIfTheOtherLeftMeanwhile) {
  const auto a = Make(10), b = Make(10);
  a->Entered(), b->Entered();
  a->Entered().Leave();
  EXPECT_TRUE(b->RetreatAndEnter(10)) << "a may have had the memory";
  b->Entered();
  EXPECT_FALSE(b->RetreatAndEnter(10));
}

TEST(UncheckedMemoryTest, AdmitsEverythingAndRetriesNothing) {
  MemoryGate gate({});
  EXPECT_FALSE(gate.checks());
  EXPECT_EQ(gate.total(), 0u);
  Entrant a(&gate, 1e18), b(&gate, 1e18);
  a.Entered(), b.Entered();
  EXPECT_FALSE(a.RetreatAndEnter(1));
}

}  // namespace
}  // namespace ablate::worker
