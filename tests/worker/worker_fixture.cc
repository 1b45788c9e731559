// The worker's surroundings in tests.
#include "tests/worker/worker_fixture.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "absl/strings/escaping.h"

namespace ablate::worker {
namespace {

namespace api = ablate::v1;

void FillModel(api::ModelSpec& model) {
  model.set_layers(1);
  model.set_width(8);
  model.set_heads(2);
  model.set_context(8);
  model.set_positions(api::Positions::learned);
  model.set_bias(true);
  model.set_residual(true);
  model.set_tied_head(false);
  model.set_head_bias(true);
  model.mutable_init()->set_kind(api::InitKind::pytorch);
  model.mutable_init()->set_streams(api::InitStreams::by_name);
  model.mutable_attention()->set_causal(true);
  api::NormSpec& norm = *model.mutable_norm();
  norm.set_kind(api::NormKind::layer);
  norm.set_placement(api::NormPlacement::pre);
  norm.set_attention(true);
  norm.set_feed_forward(true);
  norm.set_final(true);
  norm.set_eps(1e-5);
  norm.set_gain(true);
  norm.set_bias(true);
  model.mutable_feed_forward()->set_hidden(16);
  model.mutable_feed_forward()->set_activation(api::Activation::gelu);
}

void FillTraining(api::TrainingSpec& training, uint32_t steps) {
  training.set_steps(steps);
  training.set_batch(2);
  training.set_optimizer(api::Optimizer::adamw);
  training.set_learning_rate(1e-3);
  training.add_betas(.9);
  training.add_betas(.999);
  training.set_momentum(0);
  training.set_eps(1e-8);
  training.set_weight_decay(0);
  training.set_schedule(api::Schedule::constant);
  training.set_warmup(0);
  training.set_clip(0);
  training.add_checkpoints(-1);
  training.set_device(api::Device::cpu);
}

v1::GrantedRun AnyRun(uint32_t seed, uint32_t steps) {
  v1::GrantedRun run;
  run.set_run("run-" + std::to_string(seed));
  run.mutable_spec()->set_seed(seed);
  api::BaseSpec& spec = *run.mutable_spec()->mutable_spec();
  FillModel(*spec.mutable_model());
  FillTraining(*spec.mutable_training(), steps);
  spec.mutable_evaluation()->set_every(100);
  spec.mutable_evaluation()->set_batches(1);
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
  options.server = server_->address();
  options.attach.hello.set_worker("cpu-train");
  options.attach.hello.set_incarnation("first");
  options.attach.hello.set_lanes(1);
  options.attach.first_wait = absl::Milliseconds(1);
  options.attach.longest_wait = absl::Milliseconds(20);
  options.executor.flush_every = absl::ZeroDuration();
  options.executor.resume_every = absl::InfiniteDuration();
  options.make_trainer = [this](const std::vector<engine::RunConfig>& stack) {
    return trainers_.Make(stack);
  };
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
  v1::GrantedRun run = AnyRun(seed, steps);
  auto& task = *run.mutable_spec()->mutable_spec()->mutable_task()->mutable_legacy_recall();
  task.set_keys(10);
  task.set_draw(4);
  return run;
}

v1::GrantedRun WorkerTest::DocumentsRun(uint32_t seed, uint32_t steps, const std::string& blob) {
  v1::GrantedRun run = AnyRun(seed, steps);
  auto& task = *run.mutable_spec()->mutable_spec()->mutable_task()->mutable_documents();
  task.set_dataset("datasets/names-abc123");
  task.set_held_out(1);
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
