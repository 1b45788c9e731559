// Tests the scheduler on its own thread, over a store on disk with its own writer thread.
#include "server/schedule/scheduler_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/random.h"
#include "storage/store.h"
#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using ::testing::ElementsAre;

// Stands for a worker's transport: written by the scheduler's thread, read by the test's.
class WaitingStream : public WorkerStream {
 public:
  void Send(const wire::ToWorker& message) override {
    MutexLock lock(&mutex_);
    received_.push_back(message);
    changed_.SignalAll();
  }
  void Close(const absl::Status&) override {}

  wire::ToWorker WaitFor(const std::function<bool(const wire::ToWorker&)>& wanted) {
    MutexLock lock(&mutex_);
    while (true) {
      for (const wire::ToWorker& message : received_) {
        if (wanted(message)) return message;
      }
      changed_.Wait(&mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<wire::ToWorker> received_ ABSL_GUARDED_BY(mutex_);
};

class SchedulerThreadTest : public ::testing::Test {
 protected:
  SchedulerThreadTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/scheduler-thread-", getpid(), "-",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    storage::StoreOptions options;
    options.folder = folder_;
    auto store = storage::Store::Open(std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    SchedulerOptions one_run_a_lane;
    one_run_a_lane.runs_per_lane = 1;
    one_run_a_lane.work_per_lane = absl::ZeroDuration();
    scheduler_ = std::make_unique<Scheduler>(store_.get(), &SteadyClock(), one_run_a_lane,
                                             process::RandomId);
    EXPECT_TRUE(scheduler_->Start().ok());
  }
  ~SchedulerThreadTest() override {
    scheduler_ = nullptr;
    store_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  void QueueRun(const std::string& name, uint32_t steps) {
    storage::NewRun run;
    run.fingerprint = run.trajectory = name;
    run.steps = steps;
    run.device_kind = "cpu";
    run.trainer = "torch";
    run.spec = RecallSpec(0, steps).SerializeAsString();
    storage::NewExperiment experiment;
    experiment.name = name;
    experiment.request_id = name;
    experiment.cells.push_back({name, {}, 0, name});
    experiment.runs.push_back(std::move(run));
    ASSERT_TRUE(store_->CreateExperiment(experiment).ok());
  }

  static wire::FromWorker Hello(const std::string& name) {
    wire::FromWorker message;
    message.mutable_hello()->set_worker(name);
    message.mutable_hello()->set_incarnation(name + "#1");
    message.mutable_hello()->set_device_kind("cpu");
    message.mutable_hello()->set_lanes(1);
    message.mutable_hello()->add_trainers()->set_name("torch");
    message.mutable_hello()->set_numerics_version(engine::kNumericsVersion);
    message.mutable_hello()->set_config_version(engine::kConfigVersion);
    return message;
  }

  const std::string folder_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerThreadTest, RunsTasksInTheOrderPosted) {
  std::vector<int> order;
  {
    SchedulerThread thread(scheduler_.get());
    for (int i = 0; i < 3; ++i) thread.Post([&order, i](Scheduler&) { order.push_back(i); });
    thread.Run([&order](Scheduler&) { order.push_back(3); });
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
    thread.Post([&order](Scheduler&) { order.push_back(4); });
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(SchedulerThreadTest, AnswersManyWorkersFromManyThreads) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint32_t kSteps = 200;
  // Each worker trains one run; one more may be granted to it when that has ended.
  for (uint32_t i = 0; i < 2 * kWorkers; ++i) QueueRun(absl::StrCat("run-", i), kSteps);
  SchedulerThread scheduler(scheduler_.get());
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&scheduler, i] {
      const auto stream = std::make_shared<WaitingStream>();
      Scheduler::Session session = 0;
      const wire::FromWorker hello = Hello(absl::StrCat("worker-", i));
      scheduler.Run([&](Scheduler& s) {
        session = s.Open(stream);
        s.Receive(session, hello);
      });
      const wire::Grant grant =
          stream->WaitFor([](const auto& m) { return m.has_grant(); }).grant();
      for (uint64_t seq = 1; seq <= kSteps + 1; ++seq) {
        wire::FromWorker message;
        wire::Event& event = *message.mutable_event();
        event.set_lease(grant.lease());
        event.set_seq(seq);
        if (seq <= kSteps) {
          event.mutable_points()->set_step(static_cast<uint32_t>(seq));
          wire::Column& column = *event.mutable_points()->add_columns();
          column.set_key("train/loss");
          column.add_steps(static_cast<uint32_t>(seq) - 1);
          column.add_values(1);
        } else {
          event.mutable_finished()->set_step(kSteps);
        }
        scheduler.Post([session, message](Scheduler& s) { s.Receive(session, message); });
      }
      stream->WaitFor([](const auto& m) { return m.has_ack() && m.ack().seq() == kSteps + 1; });
    });
  }
  for (std::thread& worker : workers) worker.join();
  scheduler.Run([](Scheduler&) {});
  uint32_t done = 0;
  for (uint32_t i = 0; i < 2 * kWorkers; ++i) {
    const auto run = store_->GetRun(absl::StrCat("run-", i));
    ASSERT_TRUE(run.ok());
    if (run->state == storage::RunState::kDone) ++done;
  }
  EXPECT_EQ(done, kWorkers);
}

TEST_F(SchedulerThreadTest, TicksWhileNothingIsPosted) {
  // A tick grants queued runs without a call to the scheduler.
  SchedulerThread scheduler(scheduler_.get());
  const auto stream = std::make_shared<WaitingStream>();
  const wire::FromWorker hello = Hello("worker");
  scheduler.Run([&](Scheduler& s) { s.Receive(s.Open(stream), hello); });
  QueueRun("run", 1);
  EXPECT_EQ(stream->WaitFor([](const auto& m) { return m.has_grant(); }).grant().run().run(),
            "run");
}

TEST_F(SchedulerThreadTest, DropsAnswersThatComeAfterItsEnd) {
  QueueRun("run", 1);
  const auto stream = std::make_shared<WaitingStream>();
  {
    SchedulerThread scheduler(scheduler_.get());
    const wire::FromWorker hello = Hello("worker");
    Scheduler::Session session = 0;
    scheduler.Run([&](Scheduler& s) {
      session = s.Open(stream);
      s.Receive(session, hello);
    });
    wire::FromWorker message;
    const auto grant = stream->WaitFor([](const auto& m) { return m.has_grant(); }).grant();
    message.mutable_event()->set_lease(grant.lease());
    message.mutable_event()->set_seq(1);
    message.mutable_event()->mutable_finished()->set_step(1);
    scheduler.Post([session, message](Scheduler& s) { s.Receive(session, message); });
  }
  scheduler_ = nullptr;
  // Closing the store waits for its writer, whose answers nobody receives.
  store_ = nullptr;
  storage::StoreOptions options;
  options.folder = folder_;
  const auto reopened = storage::Store::Open(std::move(options));
  ASSERT_TRUE(reopened.ok());
  EXPECT_EQ((*reopened)->GetRun("run")->state, storage::RunState::kDone);
}

}  // namespace
}  // namespace ablate::schedule
