#include "server/report/compare/metric_names.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace ablate::report {
namespace {

struct Known {
  absl::string_view key, text, unit;
};

constexpr Known kKnown[] = {
    {"train/loss", "training loss", "nats"},
    {"train/gradient_norm", "gradient norm", ""},
    {"eval/loss", "held-out loss", "nats"},
    {"eval/accuracy", "held-out accuracy", ""},
    {"eval/ema_loss", "held-out loss of averaged weights", "nats"},
};

// Metrics by block, without what stands behind the /.
constexpr Known kFamilies[] = {
    {"gradient", "gradient norm", ""},
    {"parameter_gradient", "parameter gradient norm", ""},
    {"alignment", "alignment with backprop", "cosine"},
    {"alignment_ratio", "norm ratio to backprop", ""},
};

// Numbers by block of analyses.
constexpr Known kNumbers[] = {
    {"gradient", "gradient norm", ""},
    {"gradient_ratio", "gradient norm by the last block's", ""},
    {"parameter_gradient", "parameter gradient norm", ""},
    {"relative_gradient", "gradient by parameter norm", ""},
    {"cosine", "alignment with backprop", "cosine"},
    {"norm_ratio", "norm ratio to backprop", ""},
    {"r_mean", "share of the mean", ""},
    {"r_radial", "radial share", ""},
};

const Known* Find(absl::Span<const Known> table, absl::string_view key) {
  for (const Known& known : table) {
    if (known.key == key) return &known;
  }
  return nullptr;
}

MetricName NameIn(absl::Span<const Known> table, absl::string_view key) {
  const Known* known = Find(table, key);
  if (known == nullptr) return {std::string(key), ""};
  return {std::string(known->text), std::string(known->unit)};
}

}  // namespace

MetricName NameOfMetric(absl::string_view key) {
  const size_t slash = key.find('/');
  const absl::string_view family = key.substr(0, slash);
  if (slash == absl::string_view::npos || Find(kFamilies, family) == nullptr) {
    return NameIn(kKnown, key);
  }
  MetricName name = NameIn(kFamilies, family);
  absl::StrAppend(&name.text, " at ", key.substr(slash + 1));
  return name;
}

MetricName NameOfFamily(absl::string_view family) {
  const size_t label = family.find('/');
  if (label == absl::string_view::npos) return NameIn(kFamilies, family);
  // Of an analysis: LABEL/NUMBER, or LABEL/NUMBER/block.*.NORM.
  const absl::string_view number = family.substr(label + 1);
  const size_t place = number.find("/block.*.");
  const Known* known = Find(kNumbers, number.substr(0, place));
  if (known == nullptr) return {std::string(family), ""};
  MetricName name{std::string(known->text), std::string(known->unit)};
  if (place != absl::string_view::npos) {
    absl::StrAppend(&name.text, " at ", number.substr(place + std::strlen("/block.*.")));
  }
  return name;
}

}  // namespace ablate::report
