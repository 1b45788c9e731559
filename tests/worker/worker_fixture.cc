// Implements the worker's environment in tests.
#include "tests/worker/worker_fixture.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "server/config/fields.h"

namespace ablate::worker {
namespace {

namespace api = ablate::v1;

// Returns a small run, with its other fields as a server resolves them.
v1::GrantedRun RunOf(const api::TaskSpec& task, uint32_t seed, uint32_t steps) {
  v1::GrantedRun run;
  run.set_run("run-" + std::to_string(seed));
  run.mutable_spec()->set_seed(seed);
  api::BaseSpec& spec = *run.mutable_spec()->mutable_spec();
  *spec.mutable_task() = task;
  api::ModelSpec& model = *spec.mutable_model();
  model.set_layers(1);
  model.set_width(8);
  model.set_heads(2);
  model.set_context(8);
  model.mutable_feed_forward()->set_hidden(16);
  spec.mutable_training()->set_steps(steps);
  spec.mutable_training()->set_batch(2);
  spec.mutable_evaluation()->set_batches(1);
  spec.mutable_training()->set_trainer(api::Trainer::torch);
  spec::FillDefaults(false, &spec);
  return run;
}

bool Ended(const ServerState& state, const std::string& run) {
  return Has(state, run, v1::Event::kFinished) || Has(state, run, v1::Event::kFailed) ||
         Has(state, run, v1::Event::kReleased);
}

}  // namespace

std::string Sha256Of(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

WorkerTest::WorkerTest() : folder_(testing::TempDir() + "/ablate-worker-XXXXXX") {
  if (mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "cannot make " << folder_;
  server_ = std::make_unique<FakeServer>(folder_ + "/s");
  options.server = {server_->address()};
  options.attach.hello.set_worker("cpu-train");
  options.attach.hello.set_incarnation("first");
  options.attach.hello.set_lanes(1);
  options.attach.first_wait = absl::Milliseconds(1);
  options.attach.longest_wait = absl::Milliseconds(20);
  options.executor.flush_every = absl::ZeroDuration();
  options.executor.resume_every = absl::InfiniteDuration();
  options.make_trainer = [this](const engine::RunConfig& run) { return trainers_.Make(run); };
  options.prepare_lane = [] { return absl::OkStatus(); };
}

WorkerTest::~WorkerTest() {
  if (worker_ != nullptr) {
    worker_->Drain();
    if (thread_.joinable()) thread_.join();
    worker_.reset();
  }
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void WorkerTest::Start() {
  worker_ = std::make_unique<Worker>(options);
  thread_ = std::thread([this] { end_ = worker_->Run(); });
}

absl::Status WorkerTest::WaitForEnd() {
  thread_.join();
  return end_;
}

v1::GrantedRun WorkerTest::RecallRun(uint32_t seed, uint32_t steps) {
  api::TaskSpec task;
  task.mutable_legacy_recall()->set_keys(10);
  task.mutable_legacy_recall()->set_draw(4);
  return RunOf(task, seed, steps);
}

v1::GrantedRun WorkerTest::DocumentsRun(uint32_t seed, uint32_t steps, const std::string& blob) {
  api::TaskSpec task;
  task.mutable_documents()->set_dataset("datasets/names-abc123");
  task.mutable_documents()->set_held_out(1);
  v1::GrantedRun run = RunOf(task, seed, steps);
  run.set_dataset_blob(blob);
  return run;
}

std::string WorkerTest::AddBlob(const std::string& bytes) {
  const std::string sha256 = Sha256Of(bytes);
  server_->Change([&](ServerState& state) { state.blobs[sha256] = bytes; });
  return sha256;
}

ServerState WorkerTest::WaitForRun(uint32_t seed) {
  return server_->WaitUntil([&](const ServerState& state) { return Ended(state, NameOf(seed)); });
}

void WorkerTest::ExpectWholeSeries(const ServerState& state, uint32_t seed, uint32_t first,
                                   uint32_t last) {
  const auto series = Series(state, NameOf(seed), "train/loss");
  ASSERT_EQ(series.size(), last - first);
  for (uint32_t i = 0; i < series.size(); ++i) {
    ASSERT_EQ(series[i].first, first + i);
    ASSERT_EQ(series[i].second, FakeLoss(seed, first + i));
  }
}

}  // namespace ablate::worker
