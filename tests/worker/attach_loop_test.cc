// Tests how the attach loop uses its stream, with a stream that the test holds up.
#include "server/worker/attach_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

namespace ablate::worker {
namespace {

// Keeps sent messages until the test releases them.
class HeldStream : public AttachStream {
 public:
  explicit HeldStream(const std::atomic<bool>* held) : held_(held) {}
  void Send(v1::FromWorker) override { any_ = true; }
  bool Unsent() const override { return any_ && *held_; }
  void Cancel() override {}

 private:
  const std::atomic<bool>* const held_;
  std::atomic<bool> any_ = false;
};

class HeldClient : public AttachClient {
 public:
  HeldClient(const std::atomic<bool>* held, std::atomic<bool>* opened, AttachCallbacks* callbacks)
      : held_(held), opened_(opened), callbacks_(callbacks) {}
  std::unique_ptr<AttachStream> Open(v1::Hello, AttachCallbacks callbacks) override {
    if (!*opened_) *callbacks_ = std::move(callbacks);
    *opened_ = true;
    return std::make_unique<HeldStream>(held_);
  }

 private:
  const std::atomic<bool>* const held_;
  std::atomic<bool>* const opened_;
  AttachCallbacks* const callbacks_;
};

class AttachLoopTest : public testing::Test {
 protected:
  AttachLoopTest() : loop_({}, std::make_unique<HeldClient>(&held_, &opened_, &callbacks_)) {
    AttachRequests requests;
    requests.start = [](v1::Grant) {};
    requests.abandon = [](const std::string&) {};
    loop_.Run(std::move(requests));
    while (!opened_) std::this_thread::yield();
    loop_.Send({});
  }

  std::atomic<bool> held_ = true;
  std::atomic<bool> opened_ = false;
  AttachCallbacks callbacks_;  // of the first stream, once it is open
  AttachLoop loop_;
};

TEST_F(AttachLoopTest, FlushWaitsUntilAllIsOnItsWay) {
  EXPECT_FALSE(loop_.Flush(absl::ZeroDuration()));
  bool flushed = false;
  std::thread waiting([&] { flushed = loop_.Flush(absl::Minutes(5)); });
  held_ = false;
  callbacks_.sent();
  waiting.join();
  EXPECT_TRUE(flushed);
}

TEST_F(AttachLoopTest, FlushWaitsForNoBrokenStream) {
  callbacks_.ended(absl::UnavailableError("the server is gone"));
  EXPECT_TRUE(loop_.Flush(absl::Minutes(5)));
}

TEST_F(AttachLoopTest, IsIdleExceptDuringALease) {
  EXPECT_GE(loop_.IdleTime(), absl::ZeroDuration());
  v1::ToWorker message;
  message.mutable_grant()->set_lease("l");
  callbacks_.received(message);
  EXPECT_EQ(loop_.IdleTime(), absl::ZeroDuration());
  const absl::Duration before = MonotonicNow();
  message.mutable_cancel()->set_lease("l");
  callbacks_.received(message);
  EXPECT_LE(loop_.IdleTime(), MonotonicNow() - before) << "since the end of the lease";
}

TEST_F(AttachLoopTest, WasAttachedOnceAServerHasWelcomedIt) {
  EXPECT_FALSE(loop_.WasAttached());
  v1::ToWorker message;
  message.mutable_welcome();
  callbacks_.received(message);
  callbacks_.ended(absl::UnavailableError("the server is gone"));
  EXPECT_TRUE(loop_.WasAttached());
}

TEST(AttachLoopEndTest, GivesItsLeasesUpAndLeavesWhenAnotherProcessHasItsName) {
  const std::atomic<bool> held = false;
  std::atomic<bool> opened = false;
  AttachCallbacks callbacks;
  std::atomic<int> abandoned = 0, refused = 0;
  AttachLoop loop({}, std::make_unique<HeldClient>(&held, &opened, &callbacks));
  AttachRequests requests;
  requests.start = [](v1::Grant) {};
  requests.abandon = [&](const std::string& lease) {
    EXPECT_EQ(lease, "l");
    ++abandoned;
  };
  requests.refused = [&](const absl::Status& why) {
    EXPECT_TRUE(absl::IsAlreadyExists(why)) << why;
    ++refused;
  };
  requests.progress = [] { return std::vector<v1::LeaseProgress>(); };
  loop.Run(std::move(requests));
  while (!opened) std::this_thread::yield();
  v1::ToWorker message;
  message.mutable_welcome()->set_heartbeat_ms(60'000);
  callbacks.received(message);
  message.mutable_grant()->set_lease("l");
  message.mutable_grant()->set_credit_bytes(1);
  message.mutable_grant()->mutable_run()->set_run("r");
  callbacks.received(message);
  opened = false;
  callbacks.ended(absl::AlreadyExistsError("another process attached"));
  EXPECT_TRUE(loop.WaitUntilSettled(absl::Minutes(5)));
  while (refused == 0) std::this_thread::yield();
  loop.Stop();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE(opened) << "it must not attach again";
}

// Each attempt fails for the same reason until the test ends.
class FailingClient : public AttachClient {
 public:
  explicit FailingClient(std::atomic<int>* attempts) : attempts_(attempts) {}
  std::unique_ptr<AttachStream> Open(v1::Hello, AttachCallbacks callbacks) override {
    ++*attempts_;
    ended_ = std::thread([callbacks] { callbacks.ended(absl::UnavailableError("no handshake")); });
    return std::make_unique<EndedStream>(&ended_);
  }

 private:
  class EndedStream : public AttachStream {
   public:
    explicit EndedStream(std::thread* ended) : ended_(ended) {}
    ~EndedStream() override { ended_->join(); }
    void Send(v1::FromWorker) override {}
    bool Unsent() const override { return false; }
    void Cancel() override {}

   private:
    std::thread* const ended_;
  };

  std::atomic<int>* const attempts_;
  std::thread ended_;
};

TEST(AttachLoopEndTest, LooksOnceWhyTheServerIsNotReached) {
  std::atomic<int> attempts = 0, diagnoses = 0;
  AttachOptions options;
  options.first_wait = options.longest_wait = absl::Milliseconds(1);
  options.diagnose = [&] {
    ++diagnoses;
    return absl::UnavailableError("its certificate expired");
  };
  AttachLoop loop(std::move(options), std::make_unique<FailingClient>(&attempts));
  loop.Run({});
  while (attempts < 5) std::this_thread::yield();
  loop.Stop();
  EXPECT_EQ(diagnoses, 1);
}

}  // namespace
}  // namespace ablate::worker
