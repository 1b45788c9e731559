// What one setting's curve adds to a panel: lines, bands, and marks where seeds diverged.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_

#include "server/report/figure/curves.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

// Behind everything: thin lines of the seeds.
void AddSeedLines(const ReducedCurve& curve, Color color, Panel* panel);

// The mean's interval.
void AddBand(const ReducedCurve& curve, Color color, Panel* panel);

// A curve of a single point is a dot.
void AddMeanLine(const ReducedCurve& curve, Color color, const Dash& dash, double width,
                 Panel* panel);

// The style's marker where the mean ends, if it is within the panel.
void AddEndMarker(const ReducedCurve& curve, const Style& style, Panel* panel);

// In front: a cross at the last finite point of each diverged seed. One that lies beyond the
// panel's values has a triangle at its edge: a cross there would stand at a value that the seed
// never had.
void AddDivergences(const ReducedCurve& curve, Color color, Panel* panel);

// Which of these marks a panel has.
struct DivergenceMarks {
  bool crosses = false, above = false, below = false;
};
void FindDivergences(const ReducedCurve& curve, const Panel& panel, DivergenceMarks* marks);

// Where the setting's label points to: the mean's last point, else that of the longest seed. False
// if there is none.
bool EndOf(const ReducedCurve& curve, double* x, double* y);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
