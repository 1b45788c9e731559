#include "server/spec/metrics.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"

namespace ablate::spec {
namespace {

constexpr uint32_t kMaxLayers = 200;
constexpr absl::string_view kAverageLoss = "eval/ema_loss";
constexpr absl::string_view kEmbeddingGradient = "gradient/embedding";

// One that is recorded by block.
struct ByBlock {
  engine::Record record;
  uint32_t blocks = 0;  // that a model must have
};

std::optional<ByBlock> FindByBlock(absl::string_view key) {
  if (key == kEmbeddingGradient) return ByBlock{engine::Record::kGradientByBlock, 1};
  for (const engine::BlockMetrics& metrics : engine::kBlockMetrics) {
    absl::string_view number = key;
    uint32_t block = 0;
    const bool by_block = absl::ConsumePrefix(&number, absl::StrCat(metrics.family, "/block.")) &&
                          absl::SimpleAtoi(number, &block) && absl::StrCat(block) == number &&
                          block < kMaxLayers;
    if (by_block) return ByBlock{metrics.record, block + 1};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<std::string>& Metrics() {
  static const auto* const kMetrics = new std::vector<std::string>{
      "train/loss", "train/gradient_norm", "eval/loss", "eval/accuracy", std::string(kAverageLoss)};
  return *kMetrics;
}

bool IsMetric(absl::string_view key) {
  return std::find(Metrics().begin(), Metrics().end(), key) != Metrics().end() ||
         FindByBlock(key).has_value();
}

std::string MetricNames() {
  std::string names = absl::StrCat(absl::StrJoin(Metrics(), ", "), ", ", kEmbeddingGradient);
  for (const engine::BlockMetrics& metrics : engine::kBlockMetrics) {
    absl::StrAppend(&names, ", ", metrics.family, "/block.N");
  }
  return names;
}

std::string SettingLackedFor(absl::string_view key, const v1::BaseSpec& spec) {
  if (key == kAverageLoss && spec.training().ema() == 0) return "training.ema above 0";
  const std::optional<ByBlock> metric = FindByBlock(key);
  if (!metric.has_value()) return "";
  const absl::string_view name = engine::NameOf(metric->record);
  const auto& records = spec.evaluation().record();
  const auto is_asked = [name](int record) {
    return v1::Record::Value_Name(static_cast<v1::Record::Value>(record)) == name;
  };
  if (std::none_of(records.begin(), records.end(), is_asked)) {
    return absl::StrCat("evaluation.record with ", name);
  }
  if (spec.model().layers() >= metric->blocks) return "";
  return absl::StrCat("at least ", metric->blocks, " layers");
}

}  // namespace ablate::spec
