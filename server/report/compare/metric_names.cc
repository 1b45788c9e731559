#include "server/report/compare/metric_names.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace ablate::report {
namespace {

struct Known {
  absl::string_view key, text, unit;
  Scale scale = Scale::kDifference;
  absl::string_view per = "";
};

constexpr Known kKnown[] = {
    {"train/loss", "training loss", "nats", Scale::kDifference, "token"},
    {"train/gradient_norm", "gradient norm", "", Scale::kRatio},
    {"eval/loss", "held-out loss", "nats", Scale::kDifference, "token"},
    {"eval/accuracy", "held-out accuracy", ""},
    {"eval/ema_loss", "held-out loss of EMA weights", "nats", Scale::kDifference, "token"},
};

// Metrics by block, without the part after the /.
constexpr Known kFamilies[] = {
    {"gradient", "gradient norm", "", Scale::kRatio},
    {"parameter_gradient", "parameter gradient norm", "", Scale::kRatio},
    {"alignment", "alignment with backprop", "cosine"},
    {"alignment_ratio", "norm ratio to backprop", "", Scale::kRatio},
};

// Numbers of analyses; one without a text has its key as name.
constexpr Known kNumbers[] = {
    {"gradient", "gradient norm", "", Scale::kRatio},
    {"gradient_ratio", "gradient norm relative to the last block", "", Scale::kRatio},
    {"parameter_gradient", "parameter gradient norm", "", Scale::kRatio},
    {"relative_gradient", "gradient norm relative to parameter norm", "", Scale::kRatio},
    {"cosine", "alignment with backprop", "cosine"},
    {"norm_ratio", "norm ratio to backprop", "", Scale::kRatio},
    {"r_mean", "share of the mean", ""},
    {"r_radial", "radial share", ""},
    {"divergence", "divergence from the model's prediction", "nats"},
    {"gradient_norm", "", "", Scale::kRatio},
    {"l2_norm", "", "", Scale::kRatio},
    {"variance", "", "", Scale::kRatio},
    {"deviation", "", "", Scale::kRatio},
    {"unbiased_deviation", "", "", Scale::kRatio},
    {"largest_singular_value", "", "", Scale::kRatio},
    {"uncentred_largest_singular_value", "", "", Scale::kRatio},
    {"norm_ratio_center_scale", "", "", Scale::kRatio},
    {"norm_ratio_projected", "", "", Scale::kRatio},
    {"norm_ratio_identity", "", "", Scale::kRatio},
    {"sigma_mean", "", "", Scale::kRatio},
    {"input_deviation", "", "", Scale::kRatio},
    {"input_rms", "", "", Scale::kRatio},
    {"input_largest", "", "", Scale::kRatio},
    {"output_deviation", "", "", Scale::kRatio},
    {"output_rms", "", "", Scale::kRatio},
    {"output_largest", "", "", Scale::kRatio},
    {"length", "", "", Scale::kRatio},
    {"displacement", "", "", Scale::kRatio},
    {"induction", "largest induction weight", ""},
    {"recovered", "recovered fraction of the difference", ""},
    {"selectivity", "accuracy beyond random labels of word types", ""},
    {"first_loss", "loss at tokens read for the first time", "nats", Scale::kDifference, "token"},
    {"repeated_loss", "loss at repeated tokens", "nats", Scale::kDifference, "token"},
    {"perplexity", "", "", Scale::kRatio},
    {"embedding_rms", "", "", Scale::kRatio},
};

// Numbers of the analysis robustness at a level of a perturbation, after PERTURBATION@LEVEL/.
constexpr Known kLevelNumbers[] = {
    {"increase", "increase of loss", "nats", Scale::kDifference, "token"},
    {"increase_deviation", "deviation of the increase over draws", "nats"},
    {"loss", "loss", "nats", Scale::kDifference, "token"},
    {"total_loss", "loss of all targets", "nats", Scale::kDifference, "token"},
    {"perplexity", "perplexity", ""},
    {"accuracy", "accuracy", ""},
    {"macro_f1", "macro F1", ""},
};

const Known* Find(absl::Span<const Known> table, absl::string_view key) {
  for (const Known& known : table) {
    if (known.key == key) return &known;
  }
  return nullptr;
}

MetricName NameIn(absl::Span<const Known> table, absl::string_view key) {
  const Known* known = Find(table, key);
  if (known == nullptr) return {std::string(key), "", ""};
  return {std::string(known->text), std::string(known->unit), std::string(known->per)};
}

}  // namespace

MetricName NameOfMetric(absl::string_view key, MetricSource source) {
  if (source == MetricSource::kProgram) return {std::string(key), "", ""};
  const size_t slash = key.find('/');
  const absl::string_view family = key.substr(0, slash);
  if (slash == absl::string_view::npos || Find(kFamilies, family) == nullptr) {
    return NameIn(kKnown, key);
  }
  MetricName name = NameIn(kFamilies, family);
  absl::StrAppend(&name.text, " at ", key.substr(slash + 1));
  return name;
}

MetricName NameOfFamily(absl::string_view family, MetricSource source) {
  if (source == MetricSource::kProgram) return {std::string(family), "", ""};
  const size_t label = family.find('/');
  if (label == absl::string_view::npos) return NameIn(kFamilies, family);
  // An analysis's key: LABEL/NUMBER, or LABEL/NUMBER/block.*.NORM.
  const absl::string_view number = family.substr(label + 1);
  constexpr absl::string_view kLevel = "@*/";
  if (const size_t level = number.find(kLevel); level != absl::string_view::npos) {
    const absl::string_view at_level = number.substr(level + kLevel.size());
    const bool is_known = Find(kLevelNumbers, at_level) != nullptr;
    return is_known ? NameIn(kLevelNumbers, at_level) : MetricName{std::string(family), "", ""};
  }
  const size_t place = number.find("/block.*.");
  const Known* known = Find(kNumbers, number.substr(0, place));
  if (known == nullptr || known->text.empty()) return {std::string(family), "", ""};
  MetricName name{std::string(known->text), std::string(known->unit), ""};
  if (place != absl::string_view::npos) {
    absl::StrAppend(&name.text, " at ", number.substr(place + std::strlen("/block.*.")));
  }
  return name;
}

Scale ScaleOfMetric(absl::string_view key, MetricSource source) {
  if (source == MetricSource::kProgram) return Scale::kDifference;
  if (const Known* known = Find(kKnown, key); known != nullptr) return known->scale;
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return Scale::kDifference;
  absl::string_view behind = key.substr(slash + 1);
  // Numbers of robustness begin with the level: replace_words@0.2/perplexity.
  const size_t end = behind.find('/');
  if (behind.substr(0, end).find('@') != absl::string_view::npos) behind.remove_prefix(end + 1);
  const Known* known = Find(kFamilies, key.substr(0, slash));
  if (known == nullptr) known = Find(kNumbers, behind.substr(0, behind.find('/')));
  return known == nullptr ? Scale::kDifference : known->scale;
}

}  // namespace ablate::report
