// Layers of one setting's curve in a panel: lines, bands, and marks at seeds that diverged.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_

#include "server/report/figure/curves.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

// Adds thin lines of the seeds, at the back.
void AddSeedLines(const ReducedCurve& curve, Color color, Panel* panel);

// Adds the mean's interval: a band, or at a single point a bar.
void AddBand(const ReducedCurve& curve, Color color, Panel* panel);

// Adds the mean's line; a single point becomes a dot.
void AddMeanLine(const ReducedCurve& curve, Color color, const Dash& dash, double width,
                 Panel* panel);

// Adds the style's marker at the mean's end, if it is within the panel.
void AddEndMarker(const ReducedCurve& curve, const Style& style, Panel* panel);

// Adds, in front, a cross at the last finite point of each diverged seed; a triangle at the panel's
// edge if that point is beyond the panel's values, at which a cross would show a wrong value.
void AddDivergences(const ReducedCurve& curve, Color color, Panel* panel);

// Kinds of divergence marks in a panel.
struct DivergenceMarks {
  bool crosses = false, above = false, below = false;
};
void FindDivergences(const ReducedCurve& curve, const Panel& panel, DivergenceMarks* marks);

// Sets the point for the setting's label: the mean's last point, otherwise that of the longest
// seed. Returns false if there is none.
bool EndOf(const ReducedCurve& curve, double* x, double* y);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
