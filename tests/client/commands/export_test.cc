// Tests `ablate export`: whole files or none, no overwriting without --force, no path that leads
// out.
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ExportTest : public ClientTest {
 protected:
  ExportTest() {
    answers_.export_points = [this](const v1::ExportRequest& request,
                                    const std::function<bool(const v1::FileChunk&)>& write) {
      requests_.push_back(request.ShortDebugString());
      for (const auto& [path, data] : chunks_) {
        v1::FileChunk chunk;
        chunk.set_path(path);
        chunk.set_data(data);
        write(chunk);
      }
      return result_;
    };
    StartServer();
  }

  Outcome Export(const std::string& format, const std::vector<std::string>& more = {}) {
    return Run(With({"export", "small", "--format", format, "-o", target_}, more));
  }

  // Names beside the target, without the server's socket.
  std::vector<std::string> Beside() const {
    std::vector<std::string> names;
    const auto folder = std::filesystem::path(target_).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string target_ = folder_ + "/out/export";
  std::vector<std::pair<std::string, std::string>> chunks_ = {{"", "cell\n"}, {"", "pre-s1\n"}};
  std::vector<std::string> requests_;

  void SetUp() override { std::filesystem::create_directories(folder_ + "/out"); }
};

TEST_F(ExportTest, WritesOneFile) {
  const Outcome outcome = Export("csv", {"--key", "a", "--key", "b"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Read(target_), "cell\npre-s1\n");
  EXPECT_THAT(outcome.err, HasSubstr("1 file, 12 B"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(requests_,
              ::testing::ElementsAre(
                  "experiment: \"experiments/small\" format: csv keys: \"a\" keys: \"b\""));
}

TEST_F(ExportTest, SaysWhatItWroteAsJson) {
  const Outcome outcome = Export("jsonl", {"--json"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"bytes\": 12"));
  EXPECT_THAT(outcome.out, HasSubstr("\"files\": 1"));
}

TEST_F(ExportTest, RefusesAFormatThatThereIsNot) {
  const Outcome outcome = Export("parquet");
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("csv, jsonl or tensorboard"));
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(ExportTest, OverwritesOnlyWhenForced) {
  Write("out/export", "mine");
  const Outcome refused = Export("csv");
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(Read(target_), "mine");
  EXPECT_EQ(Export("csv", {"--force"}).code, kSuccess);
  EXPECT_EQ(Read(target_), "cell\npre-s1\n");
}

TEST_F(ExportTest, LeavesNothingBehindWhenItFails) {
  result_ = absl::InternalError("a page is broken");
  for (const char* format : {"csv", "tensorboard"}) {
    if (std::string(format) == "tensorboard") chunks_ = {{"pre-s1/events.out.tfevents.1", "x"}};
    const Outcome outcome = Export(format);
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_THAT(outcome.err, HasSubstr("a page is broken"));
    EXPECT_THAT(Beside(), IsEmpty()) << format;
  }
}

TEST_F(ExportTest, KeepsWhatIsWellAndFailsWhenASeriesIsDamaged) {
  result_ = absl::DataLossError("run r: points of x are damaged");
  const Outcome file = Export("csv");
  EXPECT_EQ(file.code, kFailure);
  EXPECT_THAT(file.err, HasSubstr("points of x are damaged"));
  EXPECT_EQ(Read(target_), "cell\npre-s1\n");
  std::filesystem::remove(target_);
  chunks_ = {{"a/events.out.tfevents.1", "12"}};
  EXPECT_EQ(Export("tensorboard").code, kFailure);
  EXPECT_EQ(Read(target_ + "/a/events.out.tfevents.1"), "12");
}

TEST_F(ExportTest, WritesAFolderOfEventFiles) {
  chunks_ = {{"a/events.out.tfevents.1", "12"},
             {"a/events.out.tfevents.1", "34"},
             {"b/events.out.tfevents.2", "56"}};
  target_ += "/";
  const Outcome outcome = Export("tensorboard");
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Read(target_ + "a/events.out.tfevents.1"), "1234");
  EXPECT_EQ(Read(target_ + "b/events.out.tfevents.2"), "56");
  EXPECT_THAT(outcome.err, HasSubstr("2 files, 6 B"));
}

TEST_F(ExportTest, ReplacesAFolderOfEventFilesAndNoOther) {
  std::filesystem::create_directories(target_ + "/old");
  Write("out/export/old/events.out.tfevents.1.ablate", "old");
  chunks_ = {{"a/events.out.tfevents.1.ablate", "new"}};
  EXPECT_EQ(Export("tensorboard").code, kFailure);
  EXPECT_EQ(Export("tensorboard", {"--force"}).code, kSuccess);
  EXPECT_FALSE(std::filesystem::exists(target_ + "/old"));
  EXPECT_EQ(Read(target_ + "/a/events.out.tfevents.1.ablate"), "new");
  for (const std::string other : {"thesis.tex", "events.out.tfevents.1.host"}) {
    Write("out/export/a/" + other, "years");
    const Outcome refused = Export("tensorboard", {"--force"});
    EXPECT_EQ(refused.code, kFailure);
    EXPECT_THAT(refused.err, HasSubstr(other));
    EXPECT_EQ(Read(target_ + "/a/" + other), "years");
    std::filesystem::remove(target_ + "/a/" + other);
  }
  EXPECT_THAT(Beside(), UnorderedElementsAre("export"));
}

TEST_F(ExportTest, TakesNoPathThatLeadsOut) {
  for (const char* path : {"../evil", "/etc/evil", "a/../../evil", "", "a//b", ".", "a/\x1b[31m"}) {
    chunks_ = {{path, "x"}};
    const Outcome outcome = Export("tensorboard");
    EXPECT_EQ(outcome.code, kFailure) << path;
    EXPECT_THAT(outcome.err, HasSubstr("the server sends a file named")) << path;
    EXPECT_THAT(Beside(), IsEmpty()) << path;
  }
  chunks_ = {{"", "x"}, {"elsewhere", "y"}};
  EXPECT_EQ(Export("csv").code, kFailure);
  EXPECT_THAT(Beside(), IsEmpty());
}

}  // namespace
}  // namespace ablate::client
