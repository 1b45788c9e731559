// A scripted worker: attaches, takes runs, reports events, writes blobs.
#include "tests/service/fake_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "base/sha256.h"
#include "server/engine/trainer.h"

namespace ablate::service {
namespace {

using worker::v1::FromWorker;
using worker::v1::ToWorker;

std::chrono::system_clock::time_point Deadline() {
  return std::chrono::system_clock::now() + std::chrono::minutes(1);
}

}  // namespace

FakeWorker::FakeWorker(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                       uint32_t lanes, worker::v1::Role role, const std::string& environment)
    : stub_(worker::v1::WorkerChannel::NewStub(channel)) {
  context_.set_deadline(Deadline());
  stream_ = stub_->Attach(&context_);
  FromWorker message;
  worker::v1::Hello* hello = message.mutable_hello();
  hello->set_worker(name);
  hello->set_incarnation("incarnation of " + name);
  hello->set_device("an abacus, 2 lanes");
  const bool cuda = absl::StartsWith(name, "cuda-");
  hello->set_device_kind(cuda ? "cuda" : "cpu");
  hello->set_lanes(lanes);
  hello->set_memory_bytes(4'000'000'000);
  hello->set_role(role);
  hello->set_build("test");
  const bool programs = absl::StrContains(name, "programs-");
  for (const char* kind : {"torch", "native"}) {
    if (cuda && (programs || kind == absl::string_view("native"))) continue;
    worker::v1::TrainerInfo* trainer = hello->add_trainers();
    trainer->set_name(kind);
    trainer->set_environment(environment);
  }
  if (programs) {
    worker::v1::TrainerInfo* trainer = hello->add_trainers();
    trainer->set_name("program");
    trainer->set_environment("python 3");
  } else {
    hello->set_no_programs("bwrap isn't installed");
  }
  hello->set_numerics_version(engine::kNumericsVersion);
  hello->set_config_version(engine::kConfigVersion);
  stream_->Write(message);
  while (!welcome_ && Receive()) {
  }
  EXPECT_TRUE(welcome_);
}

FakeWorker::~FakeWorker() { context_.TryCancel(); }

bool FakeWorker::Receive() {
  ToWorker message;
  if (ended_ || !stream_->Read(&message)) return false;
  if (message.has_welcome()) welcome_ = true;
  if (message.has_save()) saves_.push_back(message.save());
  if (message.has_cancel()) cancels_.push_back(message.cancel());
  if (message.has_analyze()) analyses_.push_back(message.analyze());
  if (message.has_cancel_analysis()) withdrawn_.push_back(message.cancel_analysis().id());
  if (message.has_yield_analysis()) yielding_.push_back(message.yield_analysis().id());
  if (message.has_ack()) {
    uint64_t& acknowledged = acknowledged_[message.ack().lease()];
    acknowledged = std::max(acknowledged, message.ack().seq());
  }
  if (message.has_grant()) granted_.push_back({message.grant().lease(), message.grant().run()});
  return true;
}

FakeWorker::Leased FakeWorker::NextRun() {
  while (granted_.empty() && Receive()) {
  }
  EXPECT_FALSE(granted_.empty()) << "no run was granted";
  if (granted_.empty()) return {};
  Leased next = std::move(granted_.front());
  granted_.pop_front();
  return next;
}

worker::v1::Analyze FakeWorker::NextAnalysis() {
  while (analyses_.empty() && Receive()) {
  }
  EXPECT_FALSE(analyses_.empty()) << "no analysis was asked for";
  if (analyses_.empty()) return {};
  worker::v1::Analyze next = std::move(analyses_.front());
  analyses_.pop_front();
  return next;
}

void FakeWorker::AnalysisPart(const worker::v1::Analyze& analysis,
                              const std::vector<worker::v1::Sample>& samples) {
  FromWorker message;
  message.mutable_analysis_part()->set_id(analysis.id());
  for (const worker::v1::Sample& sample : samples) {
    *message.mutable_analysis_part()->add_samples() = sample;
  }
  EXPECT_TRUE(Send(message));
}

void FakeWorker::AnalysisResult(const worker::v1::Analyze& analysis, uint32_t distinct,
                                uint32_t found) {
  FromWorker message;
  message.mutable_analysis_result()->set_id(analysis.id());
  message.mutable_analysis_result()->mutable_samples()->set_distinct(distinct);
  message.mutable_analysis_result()->mutable_samples()->set_in_training_data(found);
  EXPECT_TRUE(Send(message));
}

void FakeWorker::AnalysisFailed(const worker::v1::Analyze& analysis, const absl::Status& status) {
  FromWorker message;
  message.mutable_analysis_failed()->set_id(analysis.id());
  message.mutable_analysis_failed()->set_code(static_cast<uint32_t>(status.code()));
  message.mutable_analysis_failed()->set_message(std::string(status.message()));
  EXPECT_TRUE(Send(message));
}

std::string FakeWorker::AnalysisSaved(const worker::v1::Analyze& analysis, double progress,
                                      const std::string& state, bool yielded, uint64_t busy_us) {
  FromWorker message;
  worker::v1::AnalysisSaved& saved = *message.mutable_analysis_saved();
  saved.set_id(analysis.id());
  saved.set_progress(progress);
  if (!state.empty()) saved.set_state_blob(Publish(analysis.id(), state));
  saved.set_state_bytes(state.size());
  saved.set_busy_us(busy_us);
  saved.set_yielded(yielded);
  EXPECT_TRUE(Send(message));
  return saved.state_blob();
}

void FakeWorker::ComputationResult(const worker::v1::Analyze& analysis, v1::Analysis result,
                                   const std::string& arrays, uint64_t busy_us) {
  if (!arrays.empty()) {
    result.set_artifact(Publish(analysis.id(), arrays));
    result.set_artifact_bytes(arrays.size());
  }
  FromWorker message;
  message.mutable_analysis_result()->set_id(analysis.id());
  worker::v1::ComputationResult& end = *message.mutable_analysis_result()->mutable_computation();
  *end.mutable_analysis() = std::move(result);
  end.set_busy_us(busy_us);
  EXPECT_TRUE(Send(message));
}

void FakeWorker::WaitForYield(const worker::v1::Analyze& analysis) {
  const auto asked = [&] {
    return std::find(yielding_.begin(), yielding_.end(), analysis.id()) != yielding_.end();
  };
  while (!asked() && Receive()) {
  }
  EXPECT_TRUE(asked());
}

void FakeWorker::WaitForWithdrawal(const worker::v1::Analyze& analysis) {
  const auto withdrawn = [&] {
    return std::find(withdrawn_.begin(), withdrawn_.end(), analysis.id()) != withdrawn_.end();
  };
  while (!withdrawn() && Receive()) {
  }
  EXPECT_TRUE(withdrawn());
}

void FakeWorker::Crash() {
  context_.TryCancel();
  while (Receive()) {
  }
}

bool FakeWorker::Send(const FromWorker& message) { return !ended_ && stream_->Write(message); }

void FakeWorker::Report(const Leased& run, worker::v1::Event event) {
  FromWorker message;
  *message.mutable_event() = std::move(event);
  message.mutable_event()->set_lease(run.lease);
  message.mutable_event()->set_seq(++sent_[run.lease]);
  EXPECT_TRUE(Send(message));
}

void FakeWorker::Started(const Leased& run) {
  worker::v1::Event event;
  event.mutable_started();
  Report(run, event);
}

void FakeWorker::Points(const Leased& run, const std::vector<Series>& series, uint32_t step) {
  worker::v1::Event event;
  for (const Series& one : series) {
    if (!one.steps.empty()) step = std::max(step, one.steps.back());
  }
  event.mutable_points()->set_step(step);
  event.mutable_points()->set_busy_us(1'000);
  event.mutable_points()->set_contended_us(50);
  event.mutable_points()->set_tokens(9);
  for (const Series& one : series) {
    worker::v1::Column* column = event.mutable_points()->add_columns();
    column->set_key(one.key);
    column->mutable_steps()->Add(one.steps.begin(), one.steps.end());
    column->mutable_values()->Add(one.values.begin(), one.values.end());
  }
  Report(run, event);
}

std::string FakeWorker::Publish(const std::string& grant, const std::string& bytes) {
  const std::string sha256 = Sha256Hex(bytes);
  const grpc::Status written = WriteBlob(grant, sha256, {bytes});
  EXPECT_TRUE(written.ok()) << written.error_message();
  return sha256;
}

std::string FakeWorker::Checkpoint(const Leased& run, uint32_t step, const std::string& bytes) {
  const std::string sha256 = Publish(run.lease, bytes);
  worker::v1::Event event;
  event.mutable_checkpoint()->set_step(step);
  event.mutable_checkpoint()->set_blob(sha256);
  event.mutable_checkpoint()->set_bytes(bytes.size());
  Report(run, event);
  return sha256;
}

std::string FakeWorker::State(const Leased& run, uint32_t step, const std::string& bytes) {
  const std::string sha256 = Publish(run.lease, bytes);
  worker::v1::Event event;
  event.mutable_resume_state()->set_step(step);
  event.mutable_resume_state()->set_blob(sha256);
  event.mutable_resume_state()->set_bytes(bytes.size());
  Report(run, event);
  return sha256;
}

void FakeWorker::Finished(const Leased& run, uint32_t step, bool diverged) {
  worker::v1::Event event;
  event.mutable_finished()->set_step(step);
  event.mutable_finished()->set_diverged(diverged);
  Report(run, event);
}

void FakeWorker::Failed(const Leased& run, const std::string& message, bool is_final) {
  worker::v1::Event event;
  event.mutable_failed()->set_message(message);
  event.mutable_failed()->set_is_final(is_final);
  Report(run, event);
}

void FakeWorker::Log(const Leased& run, const std::string& text) {
  worker::v1::Event event;
  event.mutable_log()->set_text(text);
  Report(run, event);
}

void FakeWorker::Settle() {
  const auto settled = [this] {
    return std::all_of(sent_.begin(), sent_.end(), [this](const auto& lease) {
      return acknowledged_[lease.first] >= lease.second;
    });
  };
  while (!settled() && Receive()) {
  }
  EXPECT_TRUE(settled()) << "the stream ended: " << WaitForEnd().error_message();
}

void FakeWorker::WaitForSave(const Leased& run) {
  const auto asked = [this, &run] {
    return std::any_of(saves_.begin(), saves_.end(),
                       [&run](const worker::v1::Save& save) { return save.lease() == run.lease; });
  };
  while (!asked() && Receive()) {
  }
  EXPECT_TRUE(asked());
}

void FakeWorker::WaitForCancel(const Leased& run) {
  const auto cancelled = [this, &run] {
    return std::any_of(cancels_.begin(), cancels_.end(), [&run](const worker::v1::Cancel& cancel) {
      return cancel.lease() == run.lease;
    });
  };
  while (!cancelled() && Receive()) {
  }
  EXPECT_TRUE(cancelled());
}

grpc::Status FakeWorker::WaitForEnd() {
  while (Receive()) {
  }
  ended_ = true;
  return stream_->Finish();
}

grpc::Status FakeWorker::WriteBlob(const std::string& lease, const std::string& sha256,
                                   const std::vector<std::string>& chunks) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  worker::v1::WriteBlobResponse response;
  auto writer = stub_->WriteBlob(&context, &response);
  worker::v1::WriteBlobRequest request;
  request.set_lease(lease);
  request.set_sha256(sha256);
  for (const std::string& chunk : chunks) {
    request.set_data(chunk);
    if (!writer->Write(request)) break;
    request.Clear();
  }
  writer->WritesDone();
  return writer->Finish();
}

grpc::Status FakeWorker::ReadBlob(const std::string& lease, const std::string& sha256,
                                  std::string* bytes) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  worker::v1::ReadBlobRequest request;
  request.set_lease(lease);
  request.set_sha256(sha256);
  auto reader = stub_->ReadBlob(&context, request);
  worker::v1::BlobChunk chunk;
  bytes->clear();
  while (reader->Read(&chunk)) *bytes += chunk.data();
  return reader->Finish();
}

}  // namespace ablate::service
