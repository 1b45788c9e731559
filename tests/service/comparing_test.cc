// Comparisons take cores for seconds; tests that reads are answered meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "ablate/v1/experiment.grpc.pb.h"
#include "ablate/v1/metric.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/service/services.h"
#include "tests/results/stored_grid.h"

namespace ablate::service {
namespace {

TEST(ComparingTest, KeepsNoReaderWaiting) {
  results::StoredGrid stored(absl::StrCat(results::SmallGrid(2), results::kPlacementAxis));
  rpc::WorkPool reading({1, 1}, {10, 10}), comparing({1, 1}, {10, 10});
  Backend backend;
  backend.store = stored.store();
  backend.pool = &reading;
  backend.comparing = &comparing;
  const auto experiments = MakeExperimentsService(&backend);
  const auto metrics = MakeMetricsService(&backend);
  grpc::ServerBuilder builder;
  builder.RegisterService(experiments.get()).RegisterService(metrics.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto channel = server->InProcessChannel({});

  std::promise<void> release;
  comparing.Post([&release] { release.get_future().wait(); });
  std::atomic<bool> compared = false;
  std::thread comparer([&] {
    grpc::ClientContext context;
    v1::CompareRequest request;
    request.set_experiment("experiments/" + stored.experiment());
    v1::Comparison comparison;
    const grpc::Status status =
        v1::Metrics::NewStub(channel)->Compare(&context, request, &comparison);
    EXPECT_TRUE(status.ok()) << status.error_message();
    compared = true;
  });
  grpc::ClientContext context;
  v1::ListExperimentsResponse listed;
  const grpc::Status status =
      v1::Experiments::NewStub(channel)->ListExperiments(&context, {}, &listed);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(listed.experiments_size(), 1);
  EXPECT_FALSE(compared);
  release.set_value();
  comparer.join();
  EXPECT_TRUE(compared);
  server->Shutdown();
}

}  // namespace
}  // namespace ablate::service
