// Maps of the analyses patch and remove, for the kind `matrix`: the effect of changing a part of
// the model, by block and by position or head, one panel per setting. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_EFFECT_MAPS_H_
#define ABLATE_SERVER_REPORT_FIGURE_EFFECT_MAPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/token_labels.h"

namespace ablate::figure {

// The columns are heads, changed at all positions, or positions.
inline constexpr ArrayForm kEffectForms[] = {
    {"patch", "recovered_all", "block,head", "", "", false},
    {"patch", "recovered", "depth,position", "", "", false, {}, kTokenArrays},
    {"patch", "recovered", "block,position", "", "", false, {}, kTokenArrays},
    {"remove", "loss_change", "block,head", "", "", false}};

// Returns true if the form that was read is one of these.
bool IsEffect(const Input& input);

// The functions of a Kind for these forms. The CSV has the columns of `matrix`.
absl::StatusOr<Drawing> DrawEffectMaps(const Input& input);
std::string EffectMapsCaption(const Input& input);
std::string EffectMapsDescription(const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_EFFECT_MAPS_H_
