// Kills the worker for analyses during a request, while the other one trains: only the request is
// affected.
#include <signal.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

class AnalysisFaultTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "1"});
    const std::string trained =
        server_.Json({"submit", "-", "--wait", "--json"},
                     SmallNames("trained", 5, "seeds: {count: 1}\n"))["experiment"]["name"];
    cell_ = trained + "/s0";
    training_ =
        server_.Json({"submit", "-", "--json"},
                     SmallNames("training", 60000, "seeds: {count: 1}\n"))["experiment"]["name"];
    ASSERT_EQ(server_.Ablate({"generate", cell_}).exit_code, 0) << "its worker is attached";
  }

  // Returns true if the worker for analyses has work.
  bool AnalystIsBusy() const {
    const nlohmann::json list = server_.Json({"workers", "--json"});
    for (const nlohmann::json& worker : list["workers"]) {
      if (worker["role"] == "analysis") return worker["state"] == "BUSY";
    }
    return false;
  }

  PersonalServer server_;
  std::string cell_, training_;
};

TEST_P(AnalysisFaultTest, EndsTheRequestAndTouchesNoRun) {
  const int trainer = server_.WorkerPid();
  const int analyst = server_.AnalystPid();
  ASSERT_EQ(::kill(analyst, SIGSTOP), 0);  // so that it dies during the request
  Output output;
  std::thread request([&] { output = server_.Ablate({"generate", cell_}); });
  EXPECT_TRUE(Eventually([&] { return AnalystIsBusy(); }));
  ::kill(analyst, GetParam());
  ::kill(analyst, SIGCONT);
  request.join();
  EXPECT_EQ(output.exit_code, 69);
  EXPECT_THAT(output.err, HasSubstr("error: the worker for analyses ended (killed by SIG"));
  EXPECT_THAT(output.err, HasSubstr("retry"));

  EXPECT_EQ(server_.Ablate({"generate", cell_}).exit_code, 0) << "it is started again";
  EXPECT_NE(server_.AnalystPid(), analyst);
  EXPECT_EQ(server_.WorkerPid(), trainer);
  EXPECT_EQ(server_.Ablate({"wait", training_}).exit_code, 0);
  const Output history = server_.Ablate({"logs", training_ + "/s0"});
  EXPECT_THAT(history.out, Not(HasSubstr("lost")));
  EXPECT_THAT(history.out, Not(HasSubstr("failed")));
}

INSTANTIATE_TEST_SUITE_P(Signals, AnalysisFaultTest, testing::Values(SIGSEGV, SIGKILL),
                         [](const auto& signal) {
                           return signal.param == SIGSEGV ? "SIGSEGV" : "SIGKILL";
                         });

}  // namespace
}  // namespace ablate::e2e
