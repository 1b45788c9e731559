// Returns the names of metrics for sentences and figures, and the scales of their values. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
#define ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/scale.h"

namespace ablate::report {

struct MetricName {
  std::string text;  // in the middle of a sentence: "held-out loss"
  std::string unit;  // "nats"; may be empty
  std::string per;   // unit of the mean: "token"; may be empty
};

// Whose metrics are compared: those of the lab's trainers, whose names and units are known, or
// those of a user's program, where a key such as eval/loss is all that is known.
enum class MetricSource { kTrainer, kProgram };

// Returns a metric's name: "gradient norm at block.3" for `gradient/block.3`. An unknown key, and
// each key of a program, is its own name.
MetricName NameOfMetric(absl::string_view key, MetricSource source);

// Returns the name of a family of metrics: "gradient norm" for `gradient` and for an analysis's
// `flow/gradient`, "increase of loss" for `robustness/fgsm@*/increase`. An unknown one, and
// each of a program, is its own name.
MetricName NameOfFamily(absl::string_view family, MetricSource source);

// Returns the scale of a key: ratios for norms and similar quantities, which are positive and span
// decades; differences for all others. Determined by the key alone, before any value is seen:
// `train/gradient_norm`, `gradient/block.3`, and numbers of analyses by the part after their label,
// as `flow/gradient/block.3`. Differences for a program.
Scale ScaleOfMetric(absl::string_view key, MetricSource source);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_METRIC_NAMES_H_
