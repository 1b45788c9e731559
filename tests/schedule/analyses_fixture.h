// Workers for analyses and those who ask them.
#ifndef ABLATE_TESTS_SCHEDULE_ANALYSES_FIXTURE_H_
#define ABLATE_TESTS_SCHEDULE_ANALYSES_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/schedule/analyses.h"
#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {

// Someone who asks, and what came of it.
struct Asked {
  std::string id;
  std::vector<uint32_t> samples;  // indices, as parts brought them
  std::vector<absl::Status> ends;

  absl::Status end() const { return ends.empty() ? absl::OkStatus() : ends.front(); }
};

inline worker::v1::FromWorker AnalystsHello(const std::string& name) {
  worker::v1::FromWorker message;
  worker::v1::Hello& hello = *message.mutable_hello();
  hello.set_worker(name);
  hello.set_incarnation(name + "#1");
  hello.set_device_kind("cpu");
  hello.set_lanes(1);
  hello.set_role(worker::v1::ANALYSIS);
  return message;
}

class AnalysesTest : public SchedulerTest {
 protected:
  Analyses& analyses() { return scheduler_->analyses(); }

  Peer AttachAnalyst(const std::string& name = "a") { return Attach(AnalystsHello(name)); }

  absl::Status TryAsk(const std::shared_ptr<Asked>& asked) {
    AnalysisRequest request;
    request.message.set_checkpoint_blob("checkpoint");
    request.part = [asked](const worker::v1::AnalysisPart& part) {
      for (const worker::v1::Sample& sample : part.samples())
        asked->samples.push_back(sample.index());
    };
    request.done = [asked](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
      asked->ends.push_back(result.status());
    };
    const auto id = analyses().Submit(std::move(request));
    if (id.ok()) asked->id = *id;
    return id.status();
  }
  std::shared_ptr<Asked> Ask() {
    auto asked = std::make_shared<Asked>();
    EXPECT_TRUE(TryAsk(asked).ok());
    return asked;
  }

  // Ids of what a worker was asked.
  static std::vector<std::string> Given(const Peer& peer) {
    std::vector<std::string> ids;
    for (const worker::v1::ToWorker& message : peer.stream->received) {
      if (message.has_analyze()) ids.push_back(message.analyze().id());
    }
    return ids;
  }
  static std::vector<std::string> Withdrawn(const Peer& peer) {
    std::vector<std::string> ids;
    for (const worker::v1::ToWorker& message : peer.stream->received) {
      if (message.has_cancel_analysis()) ids.push_back(message.cancel_analysis().id());
    }
    return ids;
  }

  void SendPart(const Peer& peer, const std::string& id, uint32_t index) {
    worker::v1::FromWorker message;
    message.mutable_analysis_part()->set_id(id);
    message.mutable_analysis_part()->add_samples()->set_index(index);
    Send(peer, message);
  }
  void SendResult(const Peer& peer, const std::string& id) {
    worker::v1::FromWorker message;
    message.mutable_analysis_result()->set_id(id);
    Send(peer, message);
  }
  void SendFailure(const Peer& peer, const std::string& id, uint32_t code,
                   const std::string& text) {
    worker::v1::FromWorker message;
    message.mutable_analysis_failed()->set_id(id);
    message.mutable_analysis_failed()->set_code(code);
    message.mutable_analysis_failed()->set_message(text);
    Send(peer, message);
  }
};

}  // namespace ablate::schedule

#endif  // ABLATE_TESTS_SCHEDULE_ANALYSES_FIXTURE_H_
