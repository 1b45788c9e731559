// Computes the identity of runs: a canonical text and its hash. Any change here makes every stored
// run unfindable.
//
// The canonical text is lines of `key=value`, each ended by a line feed, sorted by bytes, after one
// line with the type of text: "ablate run 1", "ablate growth 1", "ablate trajectory 1" or "ablate
// shape 1". The keys of a run:
//   numerics      engine::kNumericsVersion
//   trainer       training.trainer as resolved: native or torch
//   device        cpu or cuda
//   seed          the run's seed
//   task          documents, legacy_recall, recall or text
//   initial       SHA-256 of the checkpoint whose parameters the run begins with, if any
//   data          SHA-256 of the data set, 64 hex digits, if the task has one; its name is left out
//   and every other field of the resolved spec by its path below BaseSpec (model.norm.eps), unless
//   it is equal to its default given the others, has no effect in this spec, or is absent with a
//   meaning of its own (fields.h).
// Numbers are shortest decimals (text::ShortestDecimal), booleans true or false, enums their names.
// training.betas is written 0.85,0.99 and left out if 0.9,0.999; training.checkpoints likewise,
// ascending with -1 last, left out if -1 alone; evaluation.record by names in the order of their
// numbers, left out if empty.
//
// A growth is a run without training.steps: runs with equal growths are the same training, ended
// sooner or later. A trajectory is a run without evaluation.* and training.checkpoints. A shape,
// for which runs take equally long per step with their evaluations, has device, trainer, task,
// data, the fields of the task, of the model except init, training.batch, optimizer, accumulation,
// ema and rule, and evaluation.*. The hash is the first 60 bits of the text's SHA-256 in base 32,
// digits a-z and 2-7.
#ifndef ABLATE_SERVER_EXPERIMENT_FINGERPRINT_H_
#define ABLATE_SERVER_EXPERIMENT_FINGERPRINT_H_

#include <map>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "base/decimal.h"

namespace ablate::spec {

// Holds the canonical lines of one combination, ready for its seeds.
class Canonical {
 public:
  // `filled` is FillDefaults' result with its trainer resolved; `dataset_sha256` is empty if the
  // task has no data set.
  // `initial_sha256` is of the checkpoint that the run begins with; empty if parameters are drawn.
  Canonical(const v1::BaseSpec& filled, const std::string& dataset_sha256,
            const std::string& initial_sha256 = "");

  // Change the trainer of the run, and the kind of its device.
  void SetTrainer(absl::string_view trainer) { lines_["trainer"] = std::string(trainer); }
  void SetDevice(absl::string_view kind) { lines_["device"] = std::string(kind); }

  std::string RunText(uint32_t seed) const;
  std::string TrajectoryText(uint32_t seed) const;
  // Returns the growth; empty if a step's computation depends on the total number of steps.
  std::string GrowthText(uint32_t seed) const;
  std::string ShapeText() const;
  // Returns the part of the shape that determines the parameters: task, data and model.
  std::string ModelText() const;

 private:
  std::map<std::string, std::string> lines_;  // without seed
  bool grows_ = false;
};

// Returns 12 characters of [a-z2-7].
std::string ShortHash(absl::string_view text);

// Returns a user's own hash for private objects, which equals no other user's and no public one.
// Returns `hash` if either argument is empty.
std::string PrivateTo(absl::string_view user, absl::string_view hash);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_FINGERPRINT_H_
