// Tests `ablate artifact`: the choice of a checkpoint, whole files only, streams that break.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_set.h"
#include "base/safetensors.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArtifactTest : public ClientTest {
 protected:
  using Write = std::function<bool(const v1::ArtifactChunk&)>;

  ArtifactTest() {
    for (int i = 0; i < 1000; ++i) content_ += "0123456789abcdef";
    answers_.artifacts = [this](const v1::ListArtifactsRequest& request,
                                v1::ListArtifactsResponse* response) {
      EXPECT_EQ(request.run(), "runs/r");
      for (const uint32_t step : {0u, 100u, 1000u}) {
        v1::Artifact* artifact = response->add_artifacts();
        artifact->set_name("runs/r/checkpoints/" + std::to_string(step));
        artifact->set_kind(kind_);
        artifact->set_step(step);
        artifact->set_bytes(content_.size());
        artifact->set_sha256(Sha256Hex(content_));
      }
      return absl::OkStatus();
    };
    answers_.read_artifact = [this](const v1::ReadArtifactRequest& request, const Write& write) {
      reads_.push_back(request.name() + "@" + std::to_string(request.offset()));
      return read_(request.offset(), write);
    };
    AnswerRun("pre-s1", "runs/r");
    StartServer();
  }

  // Sends up to `most` bytes from `offset` on, in chunks.
  void Send(uint64_t offset, size_t most, const Write& write) const {
    const size_t end = std::min(content_.size(), static_cast<size_t>(offset) + most);
    for (size_t at = offset; at < end; at += 1000) {
      v1::ArtifactChunk chunk;
      chunk.set_data(content_.substr(at, std::min<size_t>(1000, end - at)));
      write(chunk);
    }
  }

  Outcome Get(const std::vector<std::string>& more = {}) {
    return Run(With({"artifact", "get", "small/pre-s1", "checkpoint", "-o", target_}, more));
  }

  size_t FilesInFolder() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.is_regular_file()) ++files;
    }
    return files;
  }

  std::string content_;
  std::string kind_ = "checkpoint";
  std::string target_ = folder_ + "/model.safetensors";
  std::vector<std::string> reads_;
  std::function<absl::Status(uint64_t, const Write&)> read_ = [this](uint64_t offset,
                                                                     const Write& write) {
    Send(offset, content_.size(), write);
    return absl::OkStatus();
  };
};

TEST_F(ArtifactTest, FetchesTheLastCheckpoint) {
  const Outcome outcome = Get();
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Read(target_), content_);
  EXPECT_THAT(reads_, ElementsAre("runs/r/checkpoints/1000@0"));
  EXPECT_EQ(outcome.err, target_ + ": checkpoint at step 1000, 16 kB\n");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(ArtifactTest, FetchesTheCheckpointOfAStep) {
  EXPECT_EQ(Get({"--step", "100"}).code, kSuccess);
  EXPECT_THAT(reads_, ElementsAre("runs/r/checkpoints/100@0"));
  const Outcome none = Get({"--step", "7", "--force"});
  EXPECT_EQ(none.code, kFailure);
  EXPECT_EQ(none.err, "error: small/pre-s1 has no checkpoint at step 7; steps: 0, 100, 1000\n");
}

TEST_F(ArtifactTest, NamesTheKindsThatThereAre) {
  const Outcome none = Run({"artifact", "get", "small/pre-s1", "checkpont", "-o", target_});
  EXPECT_EQ(none.err, "error: small/pre-s1 has no checkpont, but checkpoint\n");
}

TEST_F(ArtifactTest, ReadsABrokenStreamOnFromWhereItBroke) {
  read_ = [this](uint64_t offset, const Write& write) {
    Send(offset, 6000, write);
    return offset + 6000 < content_.size() ? absl::UnavailableError("broken") : absl::OkStatus();
  };
  EXPECT_EQ(Get().code, kSuccess);
  EXPECT_EQ(Read(target_), content_);
  EXPECT_THAT(reads_, ElementsAre("runs/r/checkpoints/1000@0", "runs/r/checkpoints/1000@6000",
                                  "runs/r/checkpoints/1000@12000"));
}

TEST_F(ArtifactTest, ReplacesAFileOnlyIfForced) {
  ClientTest::Write("model.safetensors", "old");
  const Outcome refused = Get();
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + target_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(target_), "old");
  EXPECT_TRUE(reads_.empty());
  EXPECT_EQ(Get({"--force"}).code, kSuccess);
  EXPECT_EQ(Read(target_), content_);
}

TEST_F(ArtifactTest, LeavesTheOldFileWhenNothingMoreComes) {
  ClientTest::Write("model.safetensors", "old");
  read_ = [this](uint64_t offset, const Write& write) {
    if (offset == 0) Send(0, 6000, write);
    return absl::UnavailableError("gone");
  };
  const Outcome outcome = Get({"--force"});
  EXPECT_EQ(outcome.code, kNoServer);
  EXPECT_EQ(Read(target_), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
  EXPECT_LE(reads_.size(), 8u);
}

TEST_F(ArtifactTest, RefusesWhatArrivesDamaged) {
  read_ = [this](uint64_t, const Write& write) {
    v1::ArtifactChunk chunk;
    chunk.set_data(std::string(content_.size(), 'x'));
    write(chunk);
    return absl::OkStatus();
  };
  const Outcome outcome = Get();
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("arrived damaged"));
  EXPECT_EQ(FilesInFolder(), 0u);
}

TEST_F(ArtifactTest, RefusesAStreamThatEndsEarlyWithoutAnError) {
  read_ = [this](uint64_t offset, const Write& write) {
    if (offset == 0) Send(0, 6000, write);
    return absl::OkStatus();
  };
  EXPECT_THAT(Get().err, HasSubstr("fewer bytes than the file has"));
  EXPECT_EQ(FilesInFolder(), 0u);
}

TEST_F(ArtifactTest, SaysWhyTheFileCantBeWritten) {
  target_ = folder_ + "/no/such/folder/model.safetensors";
  const Outcome outcome = Get();
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("No such file or directory"));
  EXPECT_TRUE(reads_.empty());
}

TEST_F(ArtifactTest, WritesTheOutputOfAProgramAsAFolder) {
  kind_ = "output";
  target_ = folder_ + "/kept";
  content_ = *PackFiles({{"out/a.txt", "a\n"}, {"out/sub/run", "#!/bin/sh\n", true}});
  const std::vector<std::string> get = {"artifact", "get", "small/pre-s1", "output", "-o", target_};
  read_ = [this](uint64_t, const Write& write) {
    v1::ArtifactChunk chunk;
    chunk.set_data(content_.substr(1));
    write(chunk);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run(get).code, kFailure);
  EXPECT_FALSE(std::filesystem::exists(target_)) << "all or nothing";
  read_ = [this](uint64_t offset, const Write& write) {
    Send(offset, content_.size(), write);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run(get).err,
            absl::StrCat(target_, ": output at step 1000, 2 files, ", content_.size(), " B\n"));
  EXPECT_EQ(Read(target_ + "/a.txt"), "a\n");
  EXPECT_EQ(Read(target_ + "/sub/run"), "#!/bin/sh\n");
  EXPECT_NE(std::filesystem::status(target_ + "/sub/run").permissions() &
                std::filesystem::perms::owner_exec,
            std::filesystem::perms::none);
  EXPECT_EQ(Run(get).err, "error: " + target_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Run(With(get, {"--force"})).code, kSuccess);
  std::filesystem::remove(target_ + "/.ablate");
  EXPECT_THAT(Run(With(get, {"--force"})).err, HasSubstr("lacks the mark of a folder"));
  EXPECT_THAT(Run({"artifact", "ls", "small/pre-s1"}).out, HasSubstr("output"));
}

TEST_F(ArtifactTest, RefusesAnOutputThatLeadsOutOfTheFolder) {
  kind_ = "output";
  target_ = folder_ + "/kept";
  const std::vector<std::string> get = {"artifact", "get", "small/pre-s1", "output", "-o", target_};
  EXPECT_THAT(Run(get).err, HasSubstr("error: ")) << "it isn't a file set at all";
  const TensorView leads_out = {"out/../../a", TensorType::kU8, {1}, "a"};
  content_ = *WriteSafetensors({leads_out}, {{"ablate.dataset", "files"}});
  EXPECT_THAT(Run(get).err, HasSubstr("can't be the path of a packed file"));
  EXPECT_EQ(FilesInFolder(), 0u);
}

TEST_F(ArtifactTest, ListsARunsArtifacts) {
  const Outcome outcome = Run({"artifact", "ls", "runs/r"});
  EXPECT_THAT(outcome.out, ::testing::StartsWith("kind         step   size  sha256\n"
                                                 "checkpoint      0  16 kB  "));
  EXPECT_THAT(Run({"artifact", "ls", "small/pre-s1", "--json"}).out,
              HasSubstr("\"name\": \"runs/r/checkpoints/1000\""));
}

}  // namespace
}  // namespace ablate::client
