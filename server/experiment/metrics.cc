#include "server/experiment/metrics.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/option.h"
#include "proto/reflect/text.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"

namespace ablate::spec {
namespace {

constexpr absl::string_view kAverageLoss = "eval/ema_loss";
constexpr absl::string_view kEmbeddingGradient = "gradient/embedding";

v1::Record::Value RecordOf(engine::Record record) {
  v1::Record::Value value = v1::Record::unspecified;
  v1::Record::Value_Parse(std::string(engine::NameOf(record)), &value);
  return value;
}

// Returns the block of a key such as gradient/block.3.
std::optional<uint32_t> BlockOf(absl::string_view family, absl::string_view key) {
  static const double kMaxLayers =
      reflect::OptionOf(v1::ModelSpec::descriptor()->FindFieldByName("layers")).max();
  uint32_t block = 0;
  const bool by_block = absl::ConsumePrefix(&key, family) && absl::ConsumePrefix(&key, "/block.") &&
                        absl::SimpleAtoi(key, &block) && absl::StrCat(block) == key &&
                        block < kMaxLayers;
  return by_block ? std::optional<uint32_t>(block) : std::nullopt;
}

}  // namespace

const std::vector<std::string>& Metrics() {
  static const auto* const kMetrics = new std::vector<std::string>{
      "train/loss", "train/gradient_norm", "eval/loss", "eval/accuracy", std::string(kAverageLoss)};
  return *kMetrics;
}

std::string MetricNames() {
  std::vector<std::string> names(Metrics().begin(), Metrics().end());
  names.emplace_back(kEmbeddingGradient);
  for (const engine::BlockMetrics& metrics : engine::kBlockMetrics) {
    names.push_back(absl::StrCat(metrics.family, "/block.N"));
  }
  return reflect::AnyOf(names);
}

std::optional<MetricNeeds> FindMetric(absl::string_view key) {
  MetricNeeds needs;
  if (std::find(Metrics().begin(), Metrics().end(), key) != Metrics().end()) {
    needs.average = key == kAverageLoss;
    return needs;
  }
  if (key == kEmbeddingGradient) {
    needs.record = RecordOf(engine::Record::kGradientByBlock);
    return needs;
  }
  for (const engine::BlockMetrics& metrics : engine::kBlockMetrics) {
    const std::optional<uint32_t> block = BlockOf(metrics.family, key);
    if (!block.has_value()) continue;
    needs.record = RecordOf(metrics.record);
    needs.blocks = *block + 1;
    return needs;
  }
  return std::nullopt;
}

LackedSetting SettingLacked(const MetricNeeds& needs, const v1::BaseSpec& spec) {
  if (needs.average && spec.training().ema() == 0) return {"training.ema", "training.ema above 0"};
  if (needs.record == v1::Record::unspecified) return {};
  const auto& records = spec.evaluation().record();
  if (std::find(records.begin(), records.end(), needs.record) == records.end()) {
    return {"evaluation.record",
            absl::StrCat("evaluation.record with ", v1::Record::Value_Name(needs.record))};
  }
  if (spec.model().layers() >= needs.blocks) return {};
  return {"model.layers", absl::StrCat("at least ", needs.blocks, " layers")};
}

}  // namespace ablate::spec
