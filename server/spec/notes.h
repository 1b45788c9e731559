// Things worth knowing about a grid that are no problems.
#ifndef ABLATE_SERVER_SPEC_NOTES_H_
#define ABLATE_SERVER_SPEC_NOTES_H_

#include <string>
#include <vector>

#include "server/spec/axes.h"
#include "server/spec/datasets.h"
#include "server/spec/resolve.h"

namespace ablate::spec {

// "post, none also change model.norm.final": settings that change more than the one path their axis
// is about, of the paths that it or the baseline writes: what merely follows from another field, as
// model.heads from an attention kind of none, is no change. That path is the one named like the
// axis, else the one with the most different values, else the one that most settings change: give
// another value than the axis's baseline has, with `base` below both.
std::vector<std::string> ExtraChanges(const std::vector<AxisPlan>& axes, const v1::BaseSpec& base);

// "placement: parameters differ: pre 25,968, post 25,952, none 25,696": learned parameters along
// each axis, with the other axes at their baselines.
std::vector<std::string> ParameterMismatches(const std::vector<AxisPlan>& axes,
                                             const std::vector<v1::SettingParameters>& parameters);

// "a-s1 and b-s1 are one run, trained once, and 11 more cells likewise".
std::vector<std::string> SharedRuns(const std::vector<ResolvedCell>& cells);

// "96 % of documents are longer than context 16 and are cut; longest 72", a data set and context
// each; with the data set's name where the cells have several. Lengths are in tokens: a document
// has one more than characters, for the token that ends it.
std::vector<std::string> CutNotes(const std::vector<ResolvedCell>& cells, const Datasets& datasets);

// "evaluation scores 111,488 tokens in 1,742 windows of context 64; the last 51 of 111,540
// validation tokens are left out", a data set, share, context and evaluation.batches each; that is
// named where it leaves windows out.
std::vector<std::string> TextNotes(const std::vector<ResolvedCell>& cells,
                                   const Datasets& datasets);

// A loss before the first step is far above that of a uniform guess, ln of the vocabulary's size,
// if it is more than so many nats above it.
inline constexpr double kFarAboveUniform = 1;

// "the loss before the first step will be far above …: head=tied": settings whose initial scores
// are so large, as far as the model's initial values and its last norm tell. `configs` are one a
// setting, as `parameters`.
std::vector<std::string> StartNotes(const std::vector<v1::SettingParameters>& parameters,
                                    const std::vector<engine::RunConfig>& configs);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_NOTES_H_
