// Tests `ablate report`: requests, whole pages only, no overwriting without --force.
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class ReportTest : public ClientTest {
 protected:
  ReportTest() {
    answers_.report = [this](const v1::RenderReportRequest& request,
                             const std::function<bool(const v1::FileChunk&)>& write) {
      request_ = request.ShortDebugString();
      for (const char* data : {"<!DOCTYPE html>\n", "<html>"}) {
        v1::FileChunk chunk;
        chunk.set_data(data);
        write(chunk);
      }
      return result_;
    };
    StartServer();
  }

  Outcome Report(const std::vector<std::string>& more = {}) {
    return Run(With({"report", "a", "b", "-o", target_}, more));
  }

  std::string target_ = folder_ + "/report.html";
  std::string request_;
};

TEST_F(ReportTest, WritesThePage) {
  const Outcome outcome = Report({"--by", "lr", "--key", "k", "--at", "5", "--baseline", "p=x"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Read(target_), "<!DOCTYPE html>\n<html>");
  EXPECT_THAT(outcome.err, HasSubstr("report.html: 22 B"));
  EXPECT_EQ(request_,
            "experiments: \"experiments/a\" experiments: \"experiments/b\" key: \"k\" by: \"lr\" "
            "baseline { key: \"p\" value: \"x\" } at: 5 output: \"report.html\"");
}

TEST_F(ReportTest, NamesItsFileToThePage) {
  target_ = folder_ + "/my page.html";
  EXPECT_EQ(Report().code, kSuccess);
  EXPECT_THAT(request_, HasSubstr("output: \"my page.html\""));
  target_ = folder_ + "/-.html";
  EXPECT_EQ(Report().code, kSuccess);
  EXPECT_THAT(request_, HasSubstr("output: \"./-.html\""));
}

TEST_F(ReportTest, IsWrittenAgainWhileRunsEnd) {
  // What each look at the experiment finds; the server is away at the fourth.
  const std::vector<uint32_t> ended = {1, 1, 2, 2, 3};
  size_t looks = 0, pages = 0;
  answers_.get = [&](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
    const size_t look = looks++;
    if (look == 3) return absl::UnavailableError("shutting down");
    experiment->set_name(request.name());
    experiment->mutable_counts()->set_done(ended[look]);
    experiment->mutable_counts()->set_running(3 - ended[look]);
    experiment->set_state(ended[look] == 3 ? v1::ExperimentState::ENDED
                                           : v1::ExperimentState::ACTIVE);
    return absl::OkStatus();
  };
  answers_.report = [&](const v1::RenderReportRequest&,
                        const std::function<bool(const v1::FileChunk&)>& write) {
    v1::FileChunk chunk;
    chunk.set_data("<!DOCTYPE html>\n" + std::to_string(++pages));
    write(chunk);
    return absl::OkStatus();
  };
  const Outcome watched = Run({"report", "a", "-o", target_, "--watch"});
  EXPECT_EQ(watched.code, kSuccess) << watched.err;
  EXPECT_EQ(Read(target_), "<!DOCTYPE html>\n3");
  EXPECT_EQ(watched.err, target_ + ": 17 B, 1 of 3 runs, preliminary\n" + target_ +
                             ": 17 B, 2 of 3 runs, preliminary\n" + target_ +
                             ": 17 B, 3 of 3 runs\n");
  EXPECT_EQ(Report({"--watch", "--force"}).err,
            "error: ablate report: --watch: 2 experiments are named; expected one\n");
}

TEST_F(ReportTest, WatchingEndsWhereThePageCannotBeWritten) {
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
    experiment->set_state(v1::ExperimentState::ACTIVE);
    return absl::OkStatus();
  };
  Write("report.html", "mine");
  const Outcome refused = Run({"report", "a", "-o", target_, "--watch"});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + target_ + " exists already: --force replaces it\n");
}

TEST_F(ReportTest, TellsABusyServerFromAFault) {
  result_ = absl::ResourceExhaustedError("too many reports and figures at once");
  EXPECT_EQ(Report().code, kFailure) << "nobody says that it may pass";
  google::rpc::Status details;
  details.add_details()->PackFrom(google::rpc::RetryInfo());
  result_.SetPayload(kDetails, absl::Cord(details.SerializeAsString()));
  const Outcome busy = Report();
  EXPECT_EQ(busy.code, kNoServer);
  EXPECT_EQ(busy.err, "error: too many reports and figures at once\n");
}

TEST_F(ReportTest, WritesNothingThatIsCalledOtherwiseThanAPage) {
  for (const char* name : {"report.pdf", "names.PNG", "report.md"}) {
    const Outcome refused = Run({"report", "a", "-o", folder_ + "/" + name});
    EXPECT_EQ(refused.code, kUsage);
    EXPECT_THAT(refused.err,
                HasSubstr("does not fit a page; expected a name that ends in .html or .htm"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + name));
  }
  EXPECT_EQ(request_, "");
  EXPECT_EQ(Run({"report", "a", "-o", folder_ + "/REPORT.HTM"}).code, kSuccess);
  EXPECT_EQ(Run({"report", "a", "-o", folder_ + "/report"}).code, kSuccess);
}

TEST_F(ReportTest, ReplacesAFileOnlyIfForced) {
  Write("report.html", "<!DOCTYPE html>\n<html><head><title>mine");
  const Outcome refused = Report();
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + target_ + " exists already: --force replaces it\n");
  EXPECT_EQ(request_, "") << "nobody should wait for a page that can't be written";
  EXPECT_THAT(Report({"--force", "--json"}).out, HasSubstr("\"bytes\": 22"));
  EXPECT_EQ(Read(target_), "<!DOCTYPE html>\n<html>");
}

TEST_F(ReportTest, WritesThePageToStandardOutput) {
  const Outcome outcome = Run({"report", "a", "-o", "-"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, "<!DOCTYPE html>\n<html>");
  EXPECT_EQ(outcome.err, "standard output: 22 B\n");
  EXPECT_EQ(Run({"report", "a", "-o", "-", "--watch"}).err,
            "error: ablate report: --watch: can't be combined with -o -; expected the name of a "
            "file\n");
}

TEST_F(ReportTest, LeavesNothingBehindWhenItFails) {
  result_ = absl::InvalidArgumentError("by: \"lr\" is tuned");
  const Outcome outcome = Report();
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("\"lr\" is tuned"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }
}

TEST_F(ReportTest, NamesAnOptionThatMakesNoSense) {
  const Outcome outcome = Report({"--at", "-7"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--at"));
}

}  // namespace
}  // namespace ablate::client
