// Tests blobs over a channel that fails: retries, rejections, caching.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "tests/test_folder.h"
#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;

constexpr char kNames[] = "emma\nolivia\nava\nisabella\nsophia\n";

class BlobTest : public WorkerTest {
 protected:
  std::string FailureOf(uint32_t seed) {
    return EventsOf(WaitForRun(seed), NameOf(seed)).back().failed().message();
  }
};

TEST_F(BlobTest, WritesAgainUntilTheServerHasRoomAndIsThere) {
  server_->Change([](ServerState& state) {
    state.write_errors = {grpc::RESOURCE_EXHAUSTED, grpc::UNAVAILABLE, grpc::INTERNAL,
                          grpc::CANCELLED, grpc::UNKNOWN};
  });
  Start();
  server_->Grant({RecallRun(1, 10)});
  const ServerState state = WaitForRun(1);
  EXPECT_TRUE(Has(state, NameOf(1), v1::Event::kCheckpoint));
  EXPECT_TRUE(EventsOf(state, NameOf(1)).back().has_finished());
  EXPECT_TRUE(state.write_errors.empty());
}

TEST_F(BlobTest, FailsTheRunWhenAWriteIsRefused) {
  server_->Change([](ServerState& state) { state.write_errors = {grpc::INVALID_ARGUMENT}; });
  Start();
  server_->Grant({RecallRun(1, 10)});
  EXPECT_EQ(FailureOf(1), "as the test asked");
}

TEST_F(BlobTest, ReadsFromTheServersFolderIfItMay) {
  const TestFolder folder;
  const std::string bytes(3 << 20, 'a'), sha256 = Sha256Hex(bytes);
  const auto channel = BlobChannel::Make({server_->address()}, folder.path());
  RunControl control;
  EXPECT_TRUE(absl::IsNotFound(channel->Read("lease", sha256, control).status()));
  std::ofstream(folder.path() + "/" + sha256) << bytes;
  EXPECT_EQ(channel->Read("lease", sha256, control)->view(), bytes);
  // Damage in the file: the server is asked.
  std::ofstream(folder.path() + "/" + sha256) << "other bytes";
  EXPECT_TRUE(absl::IsNotFound(channel->Read("lease", sha256, control).status()));
  server_->Change([&](ServerState& state) { state.blobs[sha256] = bytes; });
  EXPECT_EQ(channel->Read("lease", sha256, control)->view(), bytes);
}

TEST_F(BlobTest, GivesUpOnAServerThatNeverStopsFailing) {
  BlobRetries retries;
  retries.first_wait = retries.longest_wait = absl::Milliseconds(1);
  retries.max_server_errors = 3;
  const auto channel = BlobChannel::Make({server_->address()}, "", retries);
  for (const int code : {grpc::INTERNAL, grpc::UNKNOWN}) {
    server_->Change([&](ServerState& state) {
      state.write_errors = {code, code, grpc::UNAVAILABLE, code, code, code, code};
    });
    RunControl control;
    EXPECT_EQ(channel->Write("lease", "bytes", control).status().raw_code(), code);
    EXPECT_EQ(server_->state().write_errors.size(), 1u) << "three in a row";
  }
}

TEST_F(BlobTest, FailsTheRunWhenTheServersBlobIsDamaged) {
  const std::string blob = AddBlob(kNames);
  server_->Change([](ServerState& state) { state.read_errors = {grpc::DATA_LOSS}; });
  Start();
  server_->Grant({DocumentsRun(1, 5, blob)});
  EXPECT_EQ(FailureOf(1), "cannot use data set datasets/names-abc123: as the test asked");
}

TEST_F(BlobTest, ACancelledRunStopsWaitingForRoom) {
  server_->Change(
      [](ServerState& state) { state.write_errors.assign(100'000, grpc::RESOURCE_EXHAUSTED); });
  Start();
  server_->Grant({RecallRun(1, 10)});
  server_->WaitUntil([](const ServerState& state) { return state.write_errors.size() < 100'000; });
  server_->Cancel(NameOf(1));
  trainers_.WaitUntilGone(1);
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  server_->Grant({RecallRun(2, 10)});
  EXPECT_TRUE(EventsOf(WaitForRun(2), NameOf(2)).back().has_finished());
}

TEST_F(BlobTest, ReadsADataSetOnceForManyRuns) {
  const std::string blob = AddBlob(kNames);
  Start();
  server_->Grant({DocumentsRun(1, 5, blob), DocumentsRun(2, 5, blob), DocumentsRun(3, 5, blob)});
  const ServerState state = WaitForRun(3);
  EXPECT_EQ(state.reads, 1u);
  EXPECT_TRUE(EventsOf(state, NameOf(3)).back().has_finished());
}

TEST_F(BlobTest, ReadsAgainWhenTheServerStumbles) {
  const std::string blob = AddBlob(kNames);
  server_->Change([](ServerState& state) {
    state.read_errors = {grpc::UNAVAILABLE, grpc::ABORTED};
  });
  Start();
  server_->Grant({DocumentsRun(1, 5, blob)});
  const ServerState state = WaitForRun(1);
  EXPECT_TRUE(EventsOf(state, NameOf(1)).back().has_finished());
  EXPECT_EQ(state.reads, 3u);
}

TEST_F(BlobTest, MovesBlobsOfManyChunks) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "name" + std::to_string(i % 7) + "\n";
  const std::string blob = AddBlob(text);
  Start();
  server_->Grant({DocumentsRun(1, 5, blob)});
  EXPECT_TRUE(EventsOf(WaitForRun(1), NameOf(1)).back().has_finished());
}

TEST_F(BlobTest, NamesADataSetThatIsNotThere) {
  Start();
  server_->Grant({DocumentsRun(1, 5, Sha256Of("nowhere"))});
  EXPECT_EQ(FailureOf(1), "cannot use data set datasets/names-abc123: as the test asked");
}

TEST_F(BlobTest, DoesNotTrainOnOtherBytes) {
  const std::string blob = Sha256Of("the right text\n");
  server_->Change([&](ServerState& state) { state.blobs[blob] = "another text\n"; });
  Start();
  server_->Grant({DocumentsRun(1, 5, blob)});
  EXPECT_THAT(FailureOf(1), HasSubstr("arrives with other bytes"));
}

TEST_F(BlobTest, SaysWhatIsWrongWithADataSet) {
  Start();
  server_->Grant({DocumentsRun(1, 5, AddBlob("caf\xe9\n"))});
  EXPECT_THAT(FailureOf(1), HasSubstr("UTF-8"));
}

// Blobs whose bytes are derived from their hash.
struct MadeBlobs : BlobChannel {
  absl::StatusOr<SharedBytes> Read(const std::string&, const std::string& sha256,
                                   RunControl&) override {
    asked.push_back(sha256);
    if (const auto once = std::exchange(on_read, nullptr)) once();
    return sha256 + "\n" + std::string(40, 'x') + "\n";
  }
  absl::StatusOr<std::string> Write(const std::string&, absl::string_view, RunControl&) override {
    return absl::UnimplementedError("not needed");
  }
  std::vector<std::string> asked;
  std::function<void()> on_read;  // called once
};

class DataSetsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const engine::TaskData> Get(DataSets& data_sets, const std::string& sha256) {
    auto data = data_sets.Get({"lease", sha256}, engine::KindOf(engine::DocumentsTask()), control_);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *data : nullptr;
  }

  MadeBlobs blobs_;
  RunControl control_;
};

TEST_F(DataSetsTest, ForgetsWhatWasUsedLongestAgo) {
  DataSets any(&blobs_, 0);
  const uint64_t each = Get(any, "a")->bytes();
  blobs_.asked.clear();
  DataSets data_sets(&blobs_, 2 * each);
  for (const char* sha256 : {"a", "b", "a", "c", "a", "b"}) Get(data_sets, sha256);
  EXPECT_THAT(blobs_.asked, testing::ElementsAre("a", "b", "c", "b"));
}

TEST_F(DataSetsTest, KeepsOneOfThoseThatLanesReadAtTheSameTime) {
  DataSets data_sets(&blobs_, 1 << 20);
  std::shared_ptr<const engine::TaskData> faster;
  blobs_.on_read = [&] { faster = Get(data_sets, "a"); };
  EXPECT_EQ(Get(data_sets, "a"), faster);
  EXPECT_EQ(Get(data_sets, "a"), faster);
  EXPECT_EQ(blobs_.asked.size(), 2u);
}

}  // namespace
}  // namespace ablate::worker
