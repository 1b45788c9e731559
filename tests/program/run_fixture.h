// Runs short shell programs to their end.
#ifndef ABLATE_TESTS_PROGRAM_RUN_FIXTURE_H_
#define ABLATE_TESTS_PROGRAM_RUN_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "server/program/run.h"
#include "server/program/sandbox.h"
#include "tests/test_folder.h"

namespace ablate::program {

inline constexpr absl::Duration kTestDeadline = absl::Seconds(30);

// Adds a later output to an earlier one.
inline void Append(Output more, Output* all) {
  all->points.insert(all->points.end(), more.points.begin(), more.points.end());
  all->log += more.log;
  if (more.checkpoint.has_value()) all->checkpoint = more.checkpoint;
  if (more.progress.has_value()) all->progress = more.progress;
  if (more.ended.has_value()) all->ended = std::move(more.ended);
}

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status probe = ProbeSandbox();
    if (!probe.ok()) GTEST_SKIP() << probe.message();
    std::filesystem::create_directory(work_);
  }

  // Returns a request for a command in a folder of its own.
  Request Command(std::vector<std::string> command) const {
    Request request;
    request.command = std::move(command);
    request.folder = work_;
    return request;
  }
  Request Shell(const std::string& script) const { return Command({"sh", "-c", script}); }

  static std::unique_ptr<program::Run> Start(Request request) {
    auto run = program::Run::Start(std::move(request));
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *std::move(run) : nullptr;
  }

  // Polls until the outputs together satisfy `enough`, and answers checkpoints by "ok".
  static Output Await(program::Run* run, const std::function<bool(const Output&)>& enough) {
    Output all;
    const absl::Duration deadline = MonotonicNow() + kTestDeadline;
    while (run != nullptr && !enough(all)) {
      if (MonotonicNow() > deadline) {
        ADD_FAILURE() << "nothing came in time; log: " << all.log;
        break;
      }
      Output output = run->Poll(absl::Seconds(1));
      const bool ended = output.ended.has_value();
      if (output.checkpoint.has_value()) run->Reply("ok");
      Append(std::move(output), &all);
      if (ended) break;
    }
    return all;
  }
  static Output AwaitLog(program::Run* run, const std::string& text) {
    return Await(run,
                 [&text](const Output& all) { return all.log.find(text) != std::string::npos; });
  }
  static Output AwaitEnd(program::Run* run) {
    Output all = Await(run, [](const Output& output) { return output.ended.has_value(); });
    if (!all.ended.has_value()) {
      ADD_FAILURE() << "it hasn't ended; log: " << all.log;
      all.ended.emplace();
    }
    return all;
  }
  static Output RunToEnd(Request request) { return AwaitEnd(Start(std::move(request)).get()); }

  const TestFolder folder_;
  const std::string work_ = folder_ / "work";
};

}  // namespace ablate::program

#endif  // ABLATE_TESTS_PROGRAM_RUN_FIXTURE_H_
