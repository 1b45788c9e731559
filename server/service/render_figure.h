// RenderFigure: a figure of a comparison, and drawing one from stored curves.
#ifndef ABLATE_SERVER_SERVICE_RENDER_FIGURE_H_
#define ABLATE_SERVER_SERVICE_RENDER_FIGURE_H_

#include <string>

#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/service/backend.h"
#include "server/service/compare.h"

namespace ablate::service {

struct FigureOptions {
  std::string key;  // of the curves; "": the kind's own
  double width = figure::kColumnWidth;
};

// All of it but the curves, in the width of a column. `compared` outlives it.
figure::Input InputOf(const ComparedGrid& compared, const figure::Kind& kind);

// The curves of one row's runs, one a seed that has points, in the row's colour. RESOURCE_EXHAUSTED
// if they have more than kMostCurvePoints. Blocks on the store.
absl::StatusOr<figure::SettingCurves> ReadSetting(storage::Store* store,
                                                  const ComparedGrid& compared, size_t row,
                                                  const std::string& key,
                                                  const Cancelled& cancelled);

// The figure as data. Reads the curves setting by setting, so that memory is bounded by one
// setting's. Errors as figure::Draw's. Blocks on the store.
absl::StatusOr<figure::Drawing> DrawFigure(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const Cancelled& cancelled);

// Errors as CompareGrid's, DrawFigure's and Gnuplot::Render's; RESOURCE_EXHAUSTED for a picture
// larger than kPageBytes, and while kMostReports are made. Blocks on the store and on gnuplot.
absl::Status RenderFigure(Backend* backend, const v1::RenderFigureRequest& request,
                          const Cancelled& cancelled, v1::RenderFigureResponse* response);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RENDER_FIGURE_H_
