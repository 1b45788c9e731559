// Maps of the analysis patch, for the kind `matrix`: the recovered fraction by block and by
// position or head, one panel per setting. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_PATCH_MAPS_H_
#define ABLATE_SERVER_REPORT_FIGURE_PATCH_MAPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/token_labels.h"

namespace ablate::figure {

// The columns are heads, patched at all positions, or positions.
inline constexpr ArrayForm kPatchForms[] = {
    {"patch", "recovered_all", "block,head", "", "", false},
    {"patch", "recovered", "depth,position", "", "", false, {}, kTokenArrays},
    {"patch", "recovered", "block,position", "", "", false, {}, kTokenArrays}};

// The functions of a Kind for these forms. The CSV has the columns of `matrix`.
absl::StatusOr<Drawing> DrawPatchMaps(const Input& input);
std::string PatchMapsCaption(const Input& input);
std::string PatchMapsDescription(const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_PATCH_MAPS_H_
