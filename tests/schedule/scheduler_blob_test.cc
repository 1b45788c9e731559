// Tests events that name blobs: pinned until they are durable, refused if the blob is gone.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using ::testing::ElementsAre;

class SchedulerBlobTest : public SchedulerTest {
 protected:
  SchedulerBlobTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/scheduler-blobs-", getpid(), "-",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    auto blobs = storage::Blobs::Open(folder_);
    EXPECT_TRUE(blobs.ok()) << blobs.status();
    blobs_ = *std::move(blobs);
    store_.SetBlobs(blobs_.get());
  }
  ~SchedulerBlobTest() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<storage::Blobs::Pin> Publish(const std::string& bytes) {
    auto writer = blobs_->Create();
    EXPECT_TRUE(writer.ok() && (*writer)->Append(bytes).ok());
    auto pin = (*writer)->Publish("");
    EXPECT_TRUE(pin.ok()) << pin.status();
    return *std::move(pin);
  }

  const std::string folder_;
  std::unique_ptr<storage::Blobs> blobs_;
};

TEST_F(SchedulerBlobTest, PinsABlobUntilTheEventThatNamesItIsCommitted) {
  auto published = Publish("a state");
  const std::string sha256 = published->sha256();
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  store_.HoldBack();
  SendResumeState(peer, grant, 1, sha256);
  published = nullptr;
  EXPECT_EQ(*blobs_->Sweep(sha256, /*keep=*/false), storage::Swept::kHeld);
  store_.Release();
  EXPECT_EQ(peer.acked(grant.lease()), 1u);
  EXPECT_EQ(*blobs_->Sweep(sha256, /*keep=*/false), storage::Swept::kRemoved);
}

TEST_F(SchedulerBlobTest, LosesALeaseWhoseBlobIsGone) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  SendResumeState(peer, grant, 1, std::string(64, 'b'));
  EXPECT_TRUE(peer.open());
  EXPECT_THAT(peer.cancels(), ElementsAre(grant.lease()));
  EXPECT_EQ(Run("a-0").losses, 1u);
}

// The store has cancelled its run, and the scheduler hasn't been told yet.
TEST_F(SchedulerBlobTest, CancelsALeaseThatEndedWhoseBlobIsGone) {
  const std::string experiment = Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  SendStarted(peer, grant, 1);
  ASSERT_TRUE(disk_->CancelExperiment(experiment).ok());
  SendResumeState(peer, grant, 2, std::string(64, 'b'));
  EXPECT_THAT(peer.cancels(), ElementsAre(grant.lease()));
}

}  // namespace
}  // namespace ablate::schedule
