// Makes notes about a grid that aren't problems.
#ifndef ABLATE_SERVER_EXPERIMENT_NOTES_H_
#define ABLATE_SERVER_EXPERIMENT_NOTES_H_

#include <string>
#include <vector>

#include "server/experiment/axes.h"
#include "server/experiment/datasets.h"
#include "server/experiment/resolution.h"

namespace ablate::spec {

// Returns notes such as "post, none also change model.norm.final": settings that change more than
// the axis's main path, among the paths that it or the baseline writes. A value that only follows
// from another field, as model.heads from an attention kind of none, doesn't count. The main path
// is the one named like the axis, else the one with the most different values, else the one that
// most settings change. A change is a value other than that of the axis's baseline, with `base`
// below both.
std::vector<std::string> ExtraChanges(const std::vector<AxisPlan>& axes, const v1::BaseSpec& base);

// Returns notes such as "placement: parameters differ: pre 25,968, post 25,952, none 25,696":
// learned parameters along each axis, with the other axes at their baselines.
std::vector<std::string> ParameterMismatches(const std::vector<AxisPlan>& axes,
                                             const std::vector<v1::SettingParameters>& parameters);

// Returns notes such as "a-s1 and b-s1 are one run, trained once, and 11 more cells likewise".
std::vector<std::string> SharedRuns(const std::vector<ResolvedCell>& cells);

// Returns notes such as "96 % of documents are longer than context 16 and are cut; longest 72", one
// for each data set and context, with the data set's name if there are several. Lengths are in
// tokens: a document has one more than characters, for the token that ends it.
std::vector<std::string> CutNotes(const std::vector<ResolvedCell>& cells, const Datasets& datasets);

// Returns notes such as "evaluation scores 111,488 tokens in 1,742 windows of context 64; the last
// 51 of 111,540 validation tokens are left out", one for each data set, share, context and
// evaluation.batches, which is named if it leaves windows out.
std::vector<std::string> TextNotes(const std::vector<ResolvedCell>& cells,
                                   const Datasets& datasets);

// Nats by which a loss before the first step exceeds that of a uniform guess, ln of the
// vocabulary's size, to count as far above it.
inline constexpr double kFarAboveUniform = 1;

// Returns notes such as "the loss before the first step will be far above …: head=tied": settings
// with so large initial logits, as far as the model's initial values and its last norm determine.
// `configs` has one per setting, like `parameters`.
std::vector<std::string> StartNotes(const std::vector<v1::SettingParameters>& parameters,
                                    const std::vector<engine::RunConfig>& configs);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_NOTES_H_
