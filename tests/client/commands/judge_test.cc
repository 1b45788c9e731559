// Tests `import`, `judge` and `compare --gate`: what is sent, exit codes, sessions, readers.
#include <filesystem>
#include <fstream>

#include "client/context.h"
#include "client/gate.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kTable[] = "norm,seed,loss\npre,0,2\npost,0,1\n";

class JudgeTest : public ClientTest {
 protected:
  JudgeTest() {
    answers_.import = [this](const std::vector<v1::ImportRequest>& requests,
                             v1::ImportResponse* response) {
      sent_ = requests;
      *response = response_;
      return result_;
    };
    answers_.compare = [this](const v1::CompareRequest& request, v1::Comparison* comparison) {
      compared_ = request;
      *comparison = response_.comparison();
      return absl::OkStatus();
    };
    response_.mutable_comparison()->set_text("loss  mean\n");
    Decide(v1::Gate::BETTER);
    StartServer();
  }
  v1::Gate* Decide(v1::Gate::Decision decision) {
    v1::Gate* gate = response_.mutable_comparison()->mutable_gate();
    gate->set_decision(decision);
    gate->set_text("“post”: established better");
    return gate;
  }
  const v1::ImportOptions& options() const { return sent_.at(0).options(); }

  std::vector<v1::ImportRequest> sent_;
  v1::CompareRequest compared_;
  v1::ImportResponse response_;
};

TEST_F(JudgeTest, SendsATableAndPrintsTheComparisonWithItsGate) {
  const Outcome judged = Run({"judge", Write("a.csv", kTable), "--metric", "loss", "--margin", "1",
                              "--baseline", "norm=post", "--at", "best", "--tune", "lr, wd"});
  EXPECT_EQ(judged.code, 0) << judged.err;
  EXPECT_EQ(judged.out, "loss  mean\ngate: better. “post”: established better\n");
  EXPECT_TRUE(options().validate_only());
  EXPECT_TRUE(options().best());
  EXPECT_EQ(options().metric(), "loss");
  EXPECT_EQ(options().baseline().at("norm"), "post");
  EXPECT_EQ(options().source(), "table");
  EXPECT_THAT(options().tune(), ElementsAre("lr", "wd"));
  ASSERT_THAT(sent_, SizeIs(2));
  EXPECT_THAT(sent_[1].runs(), SizeIs(2));
}

TEST_F(JudgeTest, ReturnsTheDecisionAsExitCode) {
  const std::string file = Write("a.csv", kTable);
  const std::pair<v1::Gate::Decision, int> codes[] = {{v1::Gate::BETTER, 0},
                                                      {v1::Gate::NOT_SHOWN, 1},
                                                      {v1::Gate::WORSE, 2},
                                                      {v1::Gate::CANNOT_SAY, 3},
                                                      {v1::Gate::unspecified, 3}};
  for (const auto& [decision, code] : codes) {
    Decide(decision);
    EXPECT_EQ(Run({"judge", file}).code, code);
    EXPECT_EQ(Run({"compare", "small", "--gate"}).code, code);
    EXPECT_EQ(Run({"judge", "small"}).code, code) << "an experiment";
  }
  EXPECT_TRUE(compared_.has_gate());
}

TEST_F(JudgeTest, ReturnsNoDecisionForAnError) {
  EXPECT_EQ(Run({"judge", folder_ + "/none.csv"}).code, kBadData);
  const Outcome bad = Run({"judge", Write("a.csv", "a,b\n1\n")});
  EXPECT_EQ(bad.code, kBadData);
  EXPECT_THAT(bad.err, HasSubstr("a.csv: line 2: 1 cells; expected 2"));
  result_ = absl::InvalidArgumentError("metric: no");
  EXPECT_EQ(Run({"judge", Write("a.csv", kTable)}).code, kBadData);
  EXPECT_THAT(Run({"judge", Write("a.csv", kTable), "--at", "x"}).err,
              HasSubstr("--at: \"x\" is invalid; expected last, best, or a step"));
  EXPECT_EQ(Run({"judge", "small", "--keep"}).code, kBadData);
  result_ = absl::OkStatus();
  server_.reset();
  EXPECT_EQ(Run({"judge", Write("a.csv", kTable)}).code, kNoServer);
}

TEST_F(JudgeTest, RemembersASession) {
  const std::string file = Write("a.csv", kTable), session = folder_ + "/session.json";
  Decide(v1::Gate::CANNOT_SAY)->add_changes("post");
  ASSERT_EQ(Run({"judge", file, "--session", session, "--level", "0.01"}).code, 3);
  EXPECT_TRUE(options().gate().session());
  EXPECT_THAT(options().gate().changes(), IsEmpty());
  ASSERT_EQ(Run({"judge", file, "--session", session}).code, 3);
  EXPECT_THAT(options().gate().changes(), ElementsAre("post"));
  EXPECT_EQ(options().gate().level(), 0.01);
  EXPECT_THAT(Run({"judge", file, "--session", session, "--level", "0.05"}).err,
              HasSubstr("--level: 0.05 isn't the session's"));
  EXPECT_THAT(Run({"judge", file, "--session", folder_}).err, HasSubstr("isn't the file of a"));
  for (const char* damaged : {"", "{}", "[1]", "{\"format\":\"ablate session 1\",\"level\":0.05}",
                              "{\"format\":\"ablate session 1\",\"level\":0.05,\"changes\":[1]}"}) {
    Write("session.json", damaged);
    EXPECT_THAT(Run({"judge", file, "--session", session}).err, HasSubstr("isn't the file of a"));
    EXPECT_EQ(Read(session), damaged) << "it stays as it is";
  }
}

TEST_F(JudgeTest, LosesNoChangeOfASessionThatAnotherJudged) {
  const std::string file = Write("a.csv", kTable), session = folder_ + "/session.json";
  Decide(v1::Gate::CANNOT_SAY)->add_changes("mine");
  answers_.import = [&](const std::vector<v1::ImportRequest>&, v1::ImportResponse* response) {
    Write("session.json", R"({"format":"ablate session 1","level":0.05,"changes":["other"]})");
    *response = response_;
    return absl::OkStatus();
  };
  const Outcome judged = Run({"judge", file, "--session", session});
  EXPECT_EQ(judged.code, kBadData);
  EXPECT_THAT(judged.err, HasSubstr("was changed meanwhile"));
  EXPECT_THAT(Read(session), HasSubstr("other"));
}

TEST_F(JudgeTest, PrintsTheNextSettingAlone) {
  const std::string file = Write("a.csv", kTable);
  Decide(v1::Gate::CANNOT_SAY)->set_next("post");
  const Outcome next = Run({"judge", file, "--next", "--looks"});
  EXPECT_EQ(next.out, "post\n");
  EXPECT_TRUE(options().gate().looks());
}

TEST_F(JudgeTest, ReadsStandardInputAndSeveralTables) {
  EXPECT_EQ(Run({"judge", "-"}, kTable).code, 0);
  EXPECT_THAT(sent_.at(1).runs(), SizeIs(2));
  EXPECT_EQ(
      Run({"judge", Write("b.csv", "seed,loss\n0,2\n1,3\n"), Write("a.csv", "seed,loss\n0,1\n")})
          .code,
      0);
  ASSERT_THAT(sent_.at(1).runs(), SizeIs(3));
  EXPECT_EQ(sent_[1].runs(0).settings().at("file").string_value(), "b");
  EXPECT_EQ(sent_[1].runs(0).name(), "b: line 2");
  EXPECT_EQ(sent_[1].runs(2).name(), "a") << "a table of one run";
}

TEST_F(JudgeTest, TellsFilesOfOneNameApart) {
  for (const char* folder : {"pre-s0", "post-s0"}) {
    std::filesystem::create_directory(folder_ + "/" + folder);
  }
  const std::string a = Write("pre-s0/m.csv", "loss\n2\n"), b = Write("post-s0/m.csv", "loss\n1\n");
  EXPECT_EQ(Run({"judge", a, b}).code, 0);
  EXPECT_EQ(sent_.at(1).runs(0).name(), folder_ + "/pre-s0/m");
  EXPECT_EQ(sent_.at(1).runs(1).name(), folder_ + "/post-s0/m");
  EXPECT_THAT(Run({"judge", a, a}).err, HasSubstr("is given twice"));
}

TEST_F(JudgeTest, DividesLongSeries) {
  std::string text = "key,step,value\n";
  for (int step = 0; step < 100'000; ++step) {
    text += "loss," + std::to_string(step) + "," + std::to_string(step) + "\n";
  }
  EXPECT_EQ(Run({"judge", Write("a.csv", text)}).code, 0);
  ASSERT_THAT(sent_, SizeIs(4));
  uint32_t next = 0;
  for (size_t i = 1; i < sent_.size(); ++i) {
    ASSERT_THAT(sent_[i].runs(), SizeIs(1));
    EXPECT_EQ(sent_[i].runs(0).name(), sent_[1].runs(0).name());
    for (const uint32_t step : sent_[i].runs(0).series(0).steps()) ASSERT_EQ(step, next++);
  }
  EXPECT_EQ(next, 100'000u);
}

TEST_F(JudgeTest, KeepsResultsAndNamesThemAfterTheFile) {
  response_.set_experiment("experiments/my-runs-x");
  response_.set_runs(2);
  response_.add_notes("left out: nothing");
  const Outcome kept = Run({"import", Write("My Runs.csv", kTable), "--tag", "x", "--private"});
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(kept.out, "my-runs-x   2 runs (0 reused)\n");
  EXPECT_THAT(kept.err, HasSubstr("note: left out: nothing"));
  EXPECT_EQ(options().name(), "my-runs");
  EXPECT_FALSE(options().validate_only());
  EXPECT_THAT(options().request_id(), Not(IsEmpty()));
  EXPECT_TRUE(options().private_());
  Run({"judge", Write("runs.csv", kTable), "--keep"});
  EXPECT_EQ(options().name(), "runs-imported");
  EXPECT_FALSE(options().validate_only()) << "after it was judged";
  result_ = absl::InvalidArgumentError("no");
  sent_.clear();
  EXPECT_EQ(Run({"judge", Write("runs.csv", kTable), "--keep"}).code, kBadData);
  EXPECT_TRUE(options().validate_only()) << "nothing is kept";
}

TEST_F(JudgeTest, ReadsOtherFilesByPython) {
  const std::string python = Write("python", "#!/bin/sh\necho \"$@\" >&2\nexit $STATUS\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  std::filesystem::create_directory(folder_ + "/wandb");
  setenv("STATUS", "2", 1);
  const Outcome unreadable = Run({"judge", folder_ + "/wandb", "--python", python});
  EXPECT_EQ(unreadable.code, kBadData);
  EXPECT_THAT(unreadable.err, HasSubstr("nothing was read"));
  setenv("STATUS", "1", 1);
  EXPECT_THAT(Run({"judge", folder_ + "/wandb", "--python", python}).err,
              HasSubstr("pip install client/python"));
  setenv("STATUS", "0", 1);
  EXPECT_THAT(Run({"judge", folder_ + "/wandb", "--python", python}).err,
              HasSubstr("messages that can't be read"));
  unsetenv("STATUS");
  EXPECT_THAT(Run({"judge", folder_ + "/wandb", Write("a.csv", kTable)}).err,
              HasSubstr("are mixed"));
  EXPECT_THAT(sent_, IsEmpty());
}

}  // namespace
}  // namespace ablate::client
