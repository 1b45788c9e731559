// Attaches an analysis worker to a fake server.
#ifndef ABLATE_TESTS_WORKER_ANALYST_FIXTURE_H_
#define ABLATE_TESTS_WORKER_ANALYST_FIXTURE_H_

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/worker_fixture.h"

namespace ablate::worker {

// A data set.
inline constexpr char kText[] = "ab\nba\nabba\n";

class AnalystTest : public WorkerTest {
 protected:
  AnalystTest() {
    analysis_options_.server = {server_->address()};
    analysis_options_.attach = options.attach;
    analysis_options_.attach.hello.set_worker("cpu-analysis");
    analysis_options_.attach.hello.set_role(v1::ANALYSIS);
    analysis_options_.prepare_lane = [] { return absl::OkStatus(); };
  }
  ~AnalystTest() override { StopAnalyst(); }

  void StartAnalyst() {
    worker_ = std::make_unique<Worker>(analysis_options_);
    thread_ = std::thread([this] { end_ = worker_->Run(); });
  }
  void StopAnalyst() {
    if (worker_ == nullptr) return;
    worker_->Drain();
    if (thread_.joinable()) thread_.join();
    worker_.reset();
  }
  absl::Status WaitForAnalystsEnd() {
    thread_.join();
    return end_;
  }

  // Requests three samples of a documents run whose checkpoint is "weights".
  v1::ToWorker Samples(const std::string& id) {
    v1::ToWorker message;
    v1::Analyze& analyze = *message.mutable_analyze();
    const v1::GrantedRun run = DocumentsRun(4, 10, AddBlob(kText));
    analyze.set_id(id);
    analyze.set_checkpoint_blob(AddBlob("weights"));
    analyze.set_dataset_blob(run.dataset_blob());
    *analyze.mutable_spec() = run.spec();
    analyze.mutable_samples()->set_count(3);
    analyze.mutable_samples()->set_top_p(1);
    analyze.mutable_samples()->set_prompt("a");
    return message;
  }
  void Cancel(const std::string& id) {
    v1::ToWorker message;
    message.mutable_cancel_analysis()->set_id(id);
    server_->Send(message);
  }

  // Returns all messages about an analysis, in order.
  static std::vector<v1::FromWorker> MessagesAbout(const std::string& id,
                                                   const ServerState& state) {
    std::vector<v1::FromWorker> messages;
    for (const v1::FromWorker& m : state.analyses) {
      const bool ours = m.analysis_part().id() == id || m.analysis_result().id() == id ||
                        m.analysis_failed().id() == id || m.analysis_saved().id() == id;
      if (ours) messages.push_back(m);
    }
    return messages;
  }
  // The same, after waiting for its end.
  std::vector<v1::FromWorker> WaitForAnswer(const std::string& id) {
    const ServerState state = server_->WaitUntil([&](const ServerState& s) {
      return std::any_of(s.analyses.begin(), s.analyses.end(), [&](const v1::FromWorker& m) {
        return m.analysis_result().id() == id || m.analysis_failed().id() == id;
      });
    });
    return MessagesAbout(id, state);
  }

  void ExpectFailure(const std::string& id, absl::StatusCode code, const std::string& words = "") {
    const auto answer = WaitForAnswer(id);
    ASSERT_FALSE(answer.empty());
    EXPECT_EQ(answer.back().analysis_failed().code(), static_cast<uint32_t>(code));
    EXPECT_THAT(answer.back().analysis_failed().message(), testing::HasSubstr(words));
  }

  static constexpr char kText[] = "ab\nba\nabba\n";
  WorkerOptions analysis_options_;

 private:
  std::unique_ptr<Worker> worker_;
  absl::Status end_;
  std::thread thread_;
};

}  // namespace ablate::worker

#endif  // ABLATE_TESTS_WORKER_ANALYST_FIXTURE_H_
