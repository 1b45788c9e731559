// Benchmarks the real programs: time to the first point, overhead of the service, latency while it
// trains. Run by hand; each prints one line of JSON.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/experiment.grpc.pb.h"
#include "ablate/v1/run.grpc.pb.h"
#include "ablate/v1/worker.grpc.pb.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double Quantile(std::vector<double> values, double level) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(level * static_cast<double>(values.size() - 1))];
}

// The first setting of the grid in examples/names-norm.yaml.
std::string Names(const std::string& name) {
  return "name: " + name +
         "\n"
         "base:\n"
         "  task: {documents: {dataset: " ABLATE_SOURCE
         "/examples/data/names.txt, held_out: 2000}}\n"
         "  model: {layers: 8, width: 16, heads: 4, context: 16, bias: false,\n"
         "          init: {kind: pytorch, streams: sequential},\n"
         "          norm: {kind: rms, placement: pre, final: true, eps: 1.0e-5},\n"
         "          feed_forward: {hidden: 64, activation: relu}}\n"
         "  training: {steps: 1000, batch: 1, optimizer: adamw, learning_rate: 0.01,\n"
         "             betas: [0.85, 0.99], weight_decay: 0.01, schedule: linear,\n"
         "             checkpoints: [0, 100, 500, -1]}\n"
         "  evaluation: {every: 100}\n";
}

class ProgramsBench : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "2"});
    const std::string address = ReadFile(server_.home() + "/run/address");
    channel_ = grpc::CreateChannel(address.substr(0, address.find('\n')),
                                   grpc::InsecureChannelCredentials());
    experiments_ = v1::Experiments::NewStub(channel_);
    runs_ = v1::Runs::NewStub(channel_);
    ASSERT_TRUE(Eventually([this] { return WorkerIsIdle(); }));
  }

  bool WorkerIsIdle() {
    grpc::ClientContext context;
    v1::ListWorkersResponse response;
    const auto status =
        v1::Workers::NewStub(channel_)->ListWorkers(&context, v1::ListWorkersRequest(), &response);
    return status.ok() && response.workers_size() > 0 &&
           response.workers(0).state() == v1::WorkerState::IDLE;
  }

  // Returns the spec of a file as the server resolves it, after a short run with it, so that the
  // data set is uploaded and the worker is warm.
  v1::ExperimentSpec WarmSpec() {
    const std::string name =
        server_.Json({"submit", "-", "--wait", "--json", "--set", "training.steps=100", "--set",
                      "training.checkpoints=[-1]"},
                     Names("warm"))["experiment"]["name"];
    grpc::ClientContext context;
    v1::GetExperimentRequest request;
    request.set_name(name);
    v1::Experiment experiment;
    EXPECT_TRUE(experiments_->GetExperiment(&context, request, &experiment).ok());
    return experiment.spec();
  }

  std::string Create(v1::ExperimentSpec spec, uint32_t seed, uint32_t seeds, uint32_t steps) {
    spec.mutable_seeds()->set_first(seed);
    spec.mutable_seeds()->set_count(seeds);
    spec.mutable_base()->mutable_training()->set_steps(steps);
    v1::CreateExperimentRequest request;
    request.set_request_id("bench-" + std::to_string(seed));
    *request.mutable_spec() = std::move(spec);
    grpc::ClientContext context;
    v1::CreateExperimentResponse response;
    const grpc::Status status = experiments_->CreateExperiment(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.experiment().name();
  }

  // Reads events until one has a value of train/loss.
  void WaitForFirstPoint(const std::string& experiment) {
    grpc::ClientContext context;
    v1::WatchExperimentRequest request;
    request.set_name(experiment);
    auto reader = experiments_->WatchExperiment(&context, request);
    v1::ExperimentEvent event;
    while (reader->Read(&event) && event.last().count("train/loss") == 0) {
    }
    EXPECT_EQ(event.last().count("train/loss"), 1u);
    context.TryCancel();
  }

  void Cancel(const std::string& experiment) {
    grpc::ClientContext context;
    v1::CancelExperimentRequest request;
    request.set_name(experiment);
    v1::Experiment cancelled;
    EXPECT_TRUE(experiments_->CancelExperiment(&context, request, &cancelled).ok());
  }

  PersonalServer server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Experiments::Stub> experiments_;
  std::unique_ptr<v1::Runs::Stub> runs_;
};

TEST_F(ProgramsBench, FirstPointAtAWatcher) {
  const v1::ExperimentSpec spec = WarmSpec();
  std::vector<double> milliseconds;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    const Clock::time_point begin = Clock::now();
    const std::string experiment = Create(spec, seed, 1, 1000);
    WaitForFirstPoint(experiment);
    milliseconds.push_back(MillisecondsSince(begin));
    Cancel(experiment);
  }
  std::printf(
      "{\"bench\": \"first_point\", \"runs\": %zu, \"median_ms\": %.1f, \"p90_ms\": %.1f}\n",
      milliseconds.size(), Quantile(milliseconds, .5), Quantile(milliseconds, .9));
}

TEST_F(ProgramsBench, StatusCallsWhileBothLanesTrain) {
  const std::string experiment = Create(WarmSpec(), 1000, 180, 1000);
  WaitForFirstPoint(experiment);
  std::vector<double> get, list;
  for (int call = 0; call < 3000; ++call) {
    {
      grpc::ClientContext context;
      v1::GetExperimentRequest request;
      request.set_name(experiment);
      v1::Experiment response;
      const Clock::time_point begin = Clock::now();
      ASSERT_TRUE(experiments_->GetExperiment(&context, request, &response).ok());
      get.push_back(MillisecondsSince(begin));
    }
    if (call % 10 != 0) continue;
    grpc::ClientContext context;
    v1::ListRunsRequest request;
    request.set_experiment(experiment);
    v1::ListRunsResponse response;
    const Clock::time_point begin = Clock::now();
    ASSERT_TRUE(runs_->ListRuns(&context, request, &response).ok());
    list.push_back(MillisecondsSince(begin));
  }
  std::printf(
      "{\"bench\": \"status\", \"get_experiment_ms\": {\"p50\": %.2f, \"p99\": %.2f}, "
      "\"list_180_runs_ms\": {\"p50\": %.2f, \"p99\": %.2f}}\n",
      Quantile(get, .5), Quantile(get, .99), Quantile(list, .5), Quantile(list, .99));
  Cancel(experiment);
}

// Trains the same runs alternately in the service and with the engine alone.
TEST_F(ProgramsBench, ServiceOverBareEngine) {
  const v1::ExperimentSpec spec = WarmSpec();
  constexpr uint32_t kSeeds = 4;
  std::vector<double> ratios;
  for (uint32_t round = 0; round < 7; ++round) {
    const Clock::time_point begin = Clock::now();
    const std::string experiment = Create(spec, 42 + round * kSeeds, kSeeds, 1000);
    EXPECT_EQ(server_.Ablate({"wait", experiment}).exit_code, 0);
    const double service = MillisecondsSince(begin);
    const Output bare =
        RunProgram({ABLATE_BENCH "/engine_grid", "2", std::to_string(kSeeds)}, "", {});
    ASSERT_EQ(bare.exit_code, 0) << bare.err;
    ratios.push_back(service / (1e3 * std::stod(bare.out)));
    std::printf("{\"round\": %u, \"service_s\": %.2f, \"engine_s\": %.2f}\n", round, service / 1e3,
                std::stod(bare.out));
  }
  std::printf("{\"bench\": \"service_over_engine\", \"median_ratio\": %.3f}\n",
              Quantile(ratios, .5));
}

}  // namespace
}  // namespace ablate::e2e
