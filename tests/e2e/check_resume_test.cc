// Tests `ablate check-resume` with the real programs, in the real sandbox; skipped where there is
// none.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A random walk of `settings.steps` steps that stores its place each 100 and, with `exact`, its
// random state. It pauses at step `settings.hang`.
constexpr char kWalk[] = R"(import json, random, time
import ablate_run as run

walk, settings = random.Random(run.seed), run.settings
place, file = 0.0, run.state / "state.json"
if run.step:
    stored = json.loads(file.read_text())
    place = stored["place"]
    if settings.exact:
        walk.setstate((stored["random"][0], tuple(stored["random"][1]), stored["random"][2]))
for step in range(run.step, settings.steps):
    if step == settings.hang:
        print("hangs", flush=True)
        time.sleep(600)
    place += walk.gauss(0, 1)
    run.log({"place": place, "norm": {"l1": abs(place)}}, step=step)
    if settings.every and step % settings.every == settings.every - 1:
        file.write_text(json.dumps({"place": place, "random": walk.getstate()}))
        run.checkpoint(step + 1)
(run.out / "place.txt").write_text(f"{place}\n")
(run.out / f"events.out.tfevents.{time.time_ns()}").write_bytes(b"")  # isn't compared
)";

class CheckResumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "2"});
    folder_ = server_.home() + "/walk";
    ASSERT_EQ(RunProgram({"/bin/mkdir", folder_}, "", {}).exit_code, 0);
    WriteFile(folder_ + "/walk.py", kWalk);
    Write("true");
    const Output planned = server_.Ablate({"submit", file_, "--dry-run"});
    if (planned.err.find("no worker takes programs: sandbox") != std::string::npos) {
      GTEST_SKIP() << planned.err;
    }
  }
  void Write(const std::string& checkpoint) {
    file_ = folder_ + "/walk.yaml";
    WriteFile(file_,
              "name: walk\n"
              "base:\n"
              "  program: {command: [python, walk.py], files: [walk.py], arguments: none, "
              "checkpoint: " +
                  checkpoint +
                  "}\n"
                  "  settings: {steps: 1000, every: 100, exact: true, hang: -1}\n"
                  "axes:\n"
                  "  - {field: settings.every, values: [100, 1000]}\n"
                  "  - {name: kind, settings: [{label: exact}, {label: forgetful, set: "
                  "{settings.exact: false}}]}\n"
                  "seeds: 3..4\n"
                  "report: {primary: place}\n");
  }
  Output Check(const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"check-resume", file_};
    command.insert(command.end(), more.begin(), more.end());
    return server_.Ablate(command);
  }
  size_t Experiments() { return server_.Json({"ls", "--json"})["experiments"].size(); }

  PersonalServer server_{"check"};
  std::string folder_, file_;
};

TEST_F(CheckResumeTest, FindsAnExactProgramEqual) {
  const Output output = Check();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  // The program waits at the checkpoint of step 500, so that it can't be killed later.
  EXPECT_EQ(output.out,
            "equal: 2,000 points of 2 keys, killed at step 499, resumed from step 400\n");
  EXPECT_THAT(output.err, HasSubstr("every100-exact-s3"));
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CheckResumeTest, NamesTheFirstPointAfterAForgottenRandomState) {
  const Output output = Check({"--cell", "every100-forgetful-s4", "--keep"});
  EXPECT_EQ(output.exit_code, 1) << output.err;
  EXPECT_THAT(
      output.out,
      StartsWith("different: 1,200 of 2,000 points of 2 keys, and 1 file: out/place.txt, killed "
                 "at step 499, resumed from step 400\n"));
  EXPECT_THAT(output.out, ContainsRegex("resumed\n +400  norm/l1 +[0-9.]+ +[0-9.]+\n"));
  EXPECT_THAT(output.err, HasSubstr("every100-forgetful-s4"));
  EXPECT_EQ(Experiments(), 2u);
  const auto events = server_.Json({"logs", "walk-resumed/every100-forgetful-s4", "--json"});
  EXPECT_EQ(events["events"][3]["kind"], "failed") << events;
  EXPECT_EQ(events["events"][3]["message"],
            "killed at step 499 because of program.interrupt_at: 499");
}

TEST_F(CheckResumeTest, PrintsTheComparisonAsJson) {
  const auto equal = server_.Json({"check-resume", file_, "--json"});
  EXPECT_EQ(equal["equal"], true);
  EXPECT_EQ(equal["resumed_from"], 400);
  EXPECT_EQ(equal["differences"].size(), 0u);
  const Output output = Check({"--cell", "every100-forgetful-s3", "--json"});
  EXPECT_EQ(output.exit_code, 1);
  const auto different = nlohmann::json::parse(output.out);
  EXPECT_EQ(different["different_files"].size(), 1u);
  EXPECT_EQ(different["differences"][0]["step"], 400);
  EXPECT_EQ(different["differences"][0]["key"], "norm/l1");
  EXPECT_NE(different["differences"][0]["whole"], different["differences"][0]["resumed"]);
}

TEST_F(CheckResumeTest, SaysThatNothingWasStoredInTime) {
  const Output output = Check({"--cell", "every1000-exact-s3"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("not killed: the program reported no step from 499 to its "
                                    "last, 999, after a stored checkpoint"));
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CheckResumeTest, RefusesAProgramWithoutCheckpoints) {
  Write("false");
  const Output output = Check();
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("walk.yaml:3:"));
  EXPECT_THAT(output.err, HasSubstr("base.program.checkpoint: "));
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CheckResumeTest, PrintsTheFailureOfTheRun) {
  const Output output = Check({"--set", "program.command=[\"sh\", \"-c\", \"echo bad; exit 3\"]"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("every100-exact-s3: exit code 3\n  bad\n"));
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CheckResumeTest, SuggestsTheCellThatIsMeant) {
  const Output output = Check({"--cell", "every100-exat-s3"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("did you mean every100-exact-s3?"));
}

TEST_F(CheckResumeTest, CancelsAndRemovesWhatItSubmittedWhenItIsStopped) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("ABLATE_HOME", server_.home().c_str(), 1);
    setenv("ABLATE_SERVER", "", 1);
    execl(ABLATE_BIN "/ablate", "ablate", "check-resume", file_.c_str(), "--set", "settings.hang=7",
          nullptr);
    _exit(127);
  }
  ASSERT_GT(pid, 0);
  ASSERT_TRUE(Eventually([&] {
    return server_.Ablate({"logs", "walk-whole/every100-exact-s3"}).out == "hangs\n";
  }));
  kill(pid, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(Experiments(), 0u);
}

}  // namespace
}  // namespace ablate::e2e
