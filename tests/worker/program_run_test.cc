// Tests a granted program from its files to its end, in the real sandbox; skipped where there is
// none.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_set.h"
#include "server/config/program.h"
#include "server/program/sandbox.h"
#include "server/worker/program_host.h"
#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kPython[] = "/usr/bin/python3";
constexpr char kRun[] = "run-5";

class ProgramRunTest : public WorkerTest {
 protected:
  void SetUp() override {
    const absl::Status probe = program::ProbeSandbox();
    if (!probe.ok()) GTEST_SKIP() << probe.message();
    ProgramOptions host;
    host.mode = launch::kSandboxed;
    host.folder = folder_ + "/programs";
    host.python = std::filesystem::exists(kPython) ? kPython : "";
    absl::StatusOr<ProgramHost> opened = OpenProgramHost(host);
    ASSERT_TRUE(opened.ok()) << opened.status();
    options.executor.programs = *opened;
  }

  // Returns a run of a shell script, which has no files.
  static v1::GrantedRun Script(const std::string& script) {
    v1::GrantedRun run;
    run.set_run(kRun);
    run.mutable_spec()->set_seed(5);
    ablate::v1::BaseSpec& spec = *run.mutable_spec()->mutable_spec();
    for (const char* part : {"sh", "-c"}) spec.mutable_program()->add_command(part);
    spec.mutable_program()->add_command(script);
    spec.mutable_program()->set_arguments(ablate::v1::Arguments::none);
    (*spec.mutable_settings()->mutable_fields())["lr"].set_number_value(0.5);
    spec::FillProgram(&spec);
    return run;
  }

  // Grants the run and waits for its end.
  ServerState Run(const v1::GrantedRun& run) {
    Start();
    server_->Grant({run});
    return WaitForRun(5);
  }

  std::string AddFiles(const std::vector<PackedFile>& files) {
    const auto packed = PackFiles(files);
    EXPECT_TRUE(packed.ok()) << packed.status();
    return AddBlob(*packed);
  }

  static std::string LogOf(const ServerState& state) {
    std::string log;
    for (const v1::Event& event : EventsOf(state, kRun)) log += event.log().text();
    return log;
  }

  // Returns the files of the last blob that an event of this kind names.
  static std::vector<std::pair<std::string, std::string>> FilesOf(const ServerState& state,
                                                                  v1::Event::KindCase kind) {
    std::string blob;
    for (const v1::Event& event : EventsOf(state, kRun)) {
      if (event.kind_case() != kind) continue;
      blob = event.has_checkpoint() ? event.checkpoint().blob() : event.resume_state().blob();
    }
    const auto stored = state.blobs.find(blob);
    std::vector<std::pair<std::string, std::string>> files;
    if (stored == state.blobs.end()) return files;
    const auto unpacked = ReadFileSet(stored->second);
    EXPECT_TRUE(unpacked.ok()) << unpacked.status();
    for (const PackedFile& file : *unpacked) files.emplace_back(file.path, file.bytes);
    return files;
  }

  // Returns the step of the last stored state.
  static uint32_t StateStep(const ServerState& state) {
    uint32_t step = 0;
    for (const v1::Event& event : EventsOf(state, kRun)) {
      if (event.has_resume_state()) step = event.resume_state().step();
    }
    return step;
  }

  static v1::Failed FailureOf(const ServerState& state) {
    const auto events = EventsOf(state, kRun);
    EXPECT_TRUE(!events.empty() && events.back().has_failed());
    return events.empty() ? v1::Failed() : events.back().failed();
  }
};

using Files = std::vector<std::pair<std::string, std::string>>;

TEST_F(ProgramRunTest, ReadsItsDataAmongItsFiles) {
  v1::GrantedRun run = Script(
      "cat corpus.bin lib/words lib/own; ls -L lib | wc -l; echo x 2>/dev/null >corpus.bin || echo "
      "unchanged; cat \"$ABLATE_DATA/corpus.bin\"; test -d out -a ! -L out && echo own out");
  run.set_dataset_blob(AddFiles({{"lib/own", "own\n"}}));
  run.set_data_blob(AddFiles(
      {{"corpus.bin", "many\n"}, {"lib/own", "not this\n"}, {"lib/words", "w\n"}, {"out/x", "x"}}));
  const ServerState state = Run(run);
  ASSERT_TRUE(EventsOf(state, kRun).back().has_finished()) << LogOf(state);
  EXPECT_EQ(LogOf(state),
            "many\nw\nown\n2\nunchanged\nmany\nown out\nablate: the program reported no points\n");
}

TEST_F(ProgramRunTest, SeesTheFilesOfItsGpu) {
  const v1::GrantedRun run = Script("ls /dev/null* /dev/kmsg; echo \"$CUDA_VISIBLE_DEVICES\"");
  if (!std::filesystem::exists("/dev/kmsg")) GTEST_SKIP() << "no /dev/kmsg";
  options.executor.programs.gpu = {"GPU-11aa", {"/dev/kmsg"}};
  EXPECT_EQ(LogOf(Run(run)),
            "/dev/kmsg\n/dev/null\nGPU-11aa\nablate: the program reported no points\n");
}

TEST_F(ProgramRunTest, ReportsEventFilesIfNothingElseWasLogged) {
  // A record of TensorBoard's: loss 2 at step 2.
  constexpr char kLoss[] =
      "\x11\0\0\0\0\0\0\0crc.\x10\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x40"
      "crc.";
  v1::GrantedRun run = Script("cp events.out.tfevents.1.host out");
  run.set_dataset_blob(AddFiles({{"events.out.tfevents.1.host", {kLoss, sizeof(kLoss) - 1}}}));
  ServerState state = Run(run);
  EXPECT_EQ(Series(state, kRun, "loss"), (std::vector<std::pair<uint32_t, double>>{{2, 2}}));
  EXPECT_EQ(EventsOf(state, kRun).back().finished().step(), 2u);
}

TEST_F(ProgramRunTest, OffersTheOtherEnvironmentsWhenOneIsRefused) {
  ProgramOptions offer;
  offer.mode = launch::kSandboxed;
  offer.folder = folder_ + "/programs";
  offer.environments = {absl::StrCat("runs=", kPython, ":", folder_), "absent=/no/python",
                        absl::StrCat("whole=", kPython)};
  const absl::StatusOr<ProgramHost> host = OpenProgramHost(offer);
  ASSERT_TRUE(host.ok()) << host.status();
  ASSERT_EQ(host->environments.size(), 1u);
  EXPECT_EQ(host->environments.begin()->first, "whole");
  offer.environments.pop_back();
  offer.environments.pop_back();
  EXPECT_THAT(std::string(OpenProgramHost(offer).status().message()),
              HasSubstr(absl::StrCat("environment runs: ", folder_, " holds the folder of runs")));
}

TEST_F(ProgramRunTest, SaysWhyItsDataCannotBeRead) {
  v1::GrantedRun run = Script("echo ran");
  run.set_data_blob(AddBlob("not a file set"));
  const ServerState state = Run(run);
  EXPECT_THAT(FailureOf(state).message(), HasSubstr("its data can't be read: "));
  EXPECT_EQ(LogOf(state), "");
}

TEST_F(ProgramRunTest, ReportsPointsLogAndOutput) {
  v1::GrantedRun run = Script(
      "cat data.txt; eval \"exec 9>&$ABLATE_METRICS\"; echo '{\"step\": 0, \"loss\": 3}' >&9; "
      "echo '{\"step\": 7, \"loss\": 2}' >&9; echo result > out/r.txt; cat $ABLATE_SETTINGS; "
      "echo \" $ABLATE_SEED $ABLATE_STEP\"");
  run.set_dataset_blob(AddFiles({{"data.txt", "words\n"}}));
  const ServerState state = Run(run);
  EXPECT_TRUE(EventsOf(state, kRun).front().has_started());
  ASSERT_TRUE(EventsOf(state, kRun).back().has_finished()) << LogOf(state);
  EXPECT_EQ(EventsOf(state, kRun).back().finished().step(), 7u);
  EXPECT_EQ(Series(state, kRun, "loss"),
            (std::vector<std::pair<uint32_t, double>>{{0, 3}, {7, 2}}));
  EXPECT_EQ(LogOf(state), "words\n{\"lr\": 0.5, \"seed\": 5} 5 0\n");
  EXPECT_EQ(FilesOf(state, v1::Event::kCheckpoint), (Files{{"out/r.txt", "result\n"}}));
  EXPECT_TRUE(std::filesystem::is_empty(options.executor.programs.folder));
}

TEST_F(ProgramRunTest, RunsAScriptThatIsExecutable) {
  v1::GrantedRun run = Script("./go.sh");
  run.set_dataset_blob(AddFiles({{"go.sh", "#!/bin/sh\necho gone\n", true}, {"a/b.txt", "x"}}));
  EXPECT_EQ(LogOf(Run(run)), "gone\nablate: the program reported no points\n");
}

TEST_F(ProgramRunTest, FailsForGoodWithTheLastLines) {
  const ServerState state = Run(Script("echo first; echo last >&2; exit 3"));
  EXPECT_TRUE(FailureOf(state).is_final());
  EXPECT_EQ(FailureOf(state).message(), "exit code 3\nfirst\nlast");
}

TEST_F(ProgramRunTest, NamesACommandThatDoesNotExist) {
  v1::GrantedRun run = Script("");
  *run.mutable_spec()->mutable_spec()->mutable_program()->mutable_command(0) = "no-such-command";
  EXPECT_THAT(FailureOf(Run(run)).message(), HasSubstr("command not found: no-such-command"));
}

TEST_F(ProgramRunTest, NamesALimit) {
  v1::GrantedRun run = Script("while :; do :; done");
  auto* limits = run.mutable_spec()->mutable_spec()->mutable_program()->mutable_limits();
  limits->mutable_time()->set_seconds(1);
  EXPECT_THAT(FailureOf(Run(run)).message(), StartsWith("time: "));
}

TEST_F(ProgramRunTest, RefusesAnEnvironmentThatItLacks) {
  v1::GrantedRun run = Script("true");
  run.mutable_spec()->mutable_spec()->mutable_program()->set_environment("jax");
  EXPECT_EQ(FailureOf(Run(run)).message(), "this worker has no environment jax");
}

TEST_F(ProgramRunTest, RefusesFilesThatAreNoFileSet) {
  v1::GrantedRun run = Script("true");
  run.set_dataset_blob(AddBlob("garbage"));
  EXPECT_TRUE(FailureOf(Run(run)).is_final());
}

constexpr char kSaves[] =
    "exec 9>&$(printenv ABLATE_METRICS) 8<&$(printenv ABLATE_REPLIES); cat state/s.txt; "
    "echo '{\"step\": 4, \"loss\": 1}' >&9; echo four > state/s.txt; echo kept > out/o.txt; "
    "echo '{\"checkpoint\": 5}' >&9; read answer <&8; echo \"$answer\"; ";

TEST_F(ProgramRunTest, StoresItsFoldersWhenTheProgramSaysThatTheyAreWhole) {
  v1::GrantedRun run = Script(std::string(kSaves) + "echo later > state/s.txt");
  run.mutable_spec()->mutable_spec()->mutable_program()->set_checkpoint(true);
  const ServerState state = Run(run);
  EXPECT_THAT(LogOf(state), HasSubstr("checkpoint 5\n"));
  EXPECT_EQ(FilesOf(state, v1::Event::kResumeState),
            (Files{{"out/o.txt", "kept\n"}, {"state/s.txt", "four\n"}}));
  uint32_t points = 0;
  for (const v1::Event& event : EventsOf(state, kRun)) {
    if (event.has_points()) points = event.points().step();
  }
  EXPECT_GE(points, 4u);  // everything before the checkpoint was reported before it
  EXPECT_EQ(StateStep(state), 5u);
}

TEST_F(ProgramRunTest, StoresTheStepOfTheCheckpointIfItsProgressCountsOtherwise) {
  v1::GrantedRun run = Script(std::string("exec 7>&$(printenv ABLATE_METRICS); "
                                          "echo '{\"progress\": 500, \"of\": 1000}' >&7; ") +
                              kSaves);
  run.mutable_spec()->mutable_spec()->mutable_program()->set_checkpoint(true);
  const ServerState state = Run(run);
  EXPECT_EQ(StateStep(state), 5u);
  EXPECT_EQ(EventsOf(state, kRun).back().finished().step(), 500u);
}

// Saves at step 5, then logs steps until it is killed, or to 99.
constexpr char kGoesOn[] =
    "echo '{\"step\": 6, \"loss\": 1}' >&9; i=7; while [ $i -lt 100 ]; do "
    "echo \"{\\\"step\\\": $i, \\\"loss\\\": 0}\" >&9; i=$((i + 1)); done";

TEST_F(ProgramRunTest, IsKilledAtAStepAfterACheckpointAndQueuedAgain) {
  v1::GrantedRun run = Script("trap '' TERM; " + std::string(kSaves) + kGoesOn + "; sleep 999");
  ablate::v1::ProgramSpec& program = *run.mutable_spec()->mutable_spec()->mutable_program();
  program.set_checkpoint(true);
  program.set_interrupt_at(7);
  const ServerState state = Run(run);
  const v1::Failed failed = FailureOf(state);
  EXPECT_FALSE(failed.is_final());
  EXPECT_THAT(failed.message(), testing::ContainsRegex("killed at step [0-9]+ because of "
                                                       "program.interrupt_at: 7"));
  EXPECT_EQ(StateStep(state), 5u);
  EXPECT_GE(Series(state, kRun, "loss").back().first, 7u) << "reported, to be rewound";
}

TEST_F(ProgramRunTest, IsNotKilledBeforeItHasStoredACheckpoint) {
  v1::GrantedRun run = Script(std::string(kSaves) + "exit 0");
  ablate::v1::ProgramSpec& program = *run.mutable_spec()->mutable_spec()->mutable_program();
  program.set_checkpoint(true);
  program.set_interrupt_at(1);
  EXPECT_TRUE(EventsOf(Run(run), kRun).back().has_finished());
}

TEST_F(ProgramRunTest, IsNotKilledAgainAfterItHasContinued) {
  v1::GrantedRun run = Script(std::string(kSaves) + kGoesOn);
  run.set_resume_blob(AddFiles({{"state/s.txt", "four\n"}}));
  run.set_resume_step(3);
  ablate::v1::ProgramSpec& program = *run.mutable_spec()->mutable_spec()->mutable_program();
  program.set_checkpoint(true);
  program.set_interrupt_at(7);
  const ServerState state = Run(run);
  ASSERT_TRUE(EventsOf(state, kRun).back().has_finished());
  EXPECT_EQ(EventsOf(state, kRun).back().finished().step(), 99u);
}

TEST_F(ProgramRunTest, AnswersACheckpointOfAProgramThatCannotContinue) {
  const ServerState state = Run(Script(kSaves));
  EXPECT_THAT(LogOf(state), HasSubstr("checkpoint 5\n"));
  EXPECT_FALSE(Has(state, kRun, v1::Event::kResumeState));
}

TEST_F(ProgramRunTest, ContinuesFromAState) {
  v1::GrantedRun run = Script("cat state/s.txt out/o.txt; echo $ABLATE_STEP");
  run.set_resume_blob(AddFiles({{"state/s.txt", "four\n"}, {"out/o.txt", "kept\n"}}));
  run.set_resume_step(5);
  const ServerState state = Run(run);
  EXPECT_EQ(LogOf(state), "four\nkept\n5\n");
  EXPECT_EQ(EventsOf(state, kRun).back().finished().step(), 5u);
}

TEST_F(ProgramRunTest, LetsAProgramSaveBeforeItIsReleased) {
  v1::GrantedRun run = Script(
      "exec 9>&$(printenv ABLATE_METRICS) 8<&$(printenv ABLATE_REPLIES); "
      "trap 'echo saved > state/s.txt; echo \"{\\\"checkpoint\\\": 9}\" >&9; read a <&8; exit 0' "
      "TERM; echo ready; while :; do sleep 0.01; done");
  run.mutable_spec()->mutable_spec()->mutable_program()->set_checkpoint(true);
  Start();
  server_->Grant({run});
  server_->WaitUntil([](const ServerState& state) { return Has(state, kRun, v1::Event::kLog); });
  server_->Drain();
  const ServerState state = WaitForRun(5);
  EXPECT_TRUE(EventsOf(state, kRun).back().has_released());
  EXPECT_EQ(FilesOf(state, v1::Event::kResumeState), (Files{{"state/s.txt", "saved\n"}}));
}

TEST_F(ProgramRunTest, KillsAProgramThatIgnoresTheRequestToStop) {
  options.executor.programs.grace = absl::Milliseconds(50);
  Start();
  server_->Grant({Script("trap '' TERM; echo ready; while :; do sleep 0.01; done")});
  server_->WaitUntil([](const ServerState& state) { return Has(state, kRun, v1::Event::kLog); });
  server_->Drain();
  EXPECT_TRUE(EventsOf(WaitForRun(5), kRun).back().has_released());
}

TEST_F(ProgramRunTest, EndsAProgramThatIsCancelled) {
  Start();
  server_->Grant({Script("echo ready; while :; do sleep 0.01; done")});
  server_->WaitUntil([](const ServerState& state) { return Has(state, kRun, v1::Event::kLog); });
  server_->Cancel(kRun);
  v1::GrantedRun next = Script("echo next");
  next.set_run("run-6");
  server_->Grant({next});
  const ServerState state = WaitForRun(6);
  EXPECT_TRUE(EventsOf(state, "run-6").back().has_finished());
  EXPECT_FALSE(Has(state, kRun, v1::Event::kFailed));
}

TEST_F(ProgramRunTest, ForksPythonProgramsThatBehaveAsColdOnes) {
  if (options.executor.programs.environments.empty()) GTEST_SKIP() << "no " << kPython;
  const std::string code =
      "import ablate_run as run, os, sys\n"
      "run.log({'x': run.settings['lr']}, step=1)\n"
      "print(sorted(os.listdir('.')), os.getcwd(), sys.argv, os.environ['ABLATE_SEED'])\n"
      "sys.exit('no more')\n";
  std::vector<std::string> logs, failures;
  Start();
  for (const auto start : {ablate::v1::ProgramStart::cold, ablate::v1::ProgramStart::warm}) {
    v1::GrantedRun run = Script("");
    run.set_run("run-" + std::to_string(start));
    ablate::v1::ProgramSpec& spec = *run.mutable_spec()->mutable_spec()->mutable_program();
    spec.clear_command();
    for (const char* part : {"python", "-c", code.c_str(), "a b"}) spec.add_command(part);
    spec.set_start(start);
    server_->Grant({run});
    const ServerState state = WaitForRun(start);
    const auto events = EventsOf(state, run.run());
    std::string log;
    for (const v1::Event& event : events) log += event.log().text();
    logs.push_back(log);
    failures.push_back(events.back().failed().message());
    EXPECT_EQ(Series(state, run.run(), "x").size(), 1u);
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_THAT(logs[0], StartsWith("['.ablate', 'out', 'state'] /program ['-c', 'a b'] 5\nno more"));
  EXPECT_EQ(failures[0], failures[1]);
  EXPECT_THAT(failures[0], StartsWith("exit code 1"));
}

}  // namespace
}  // namespace ablate::worker
