// How a setting's curves look in a panel: seeds, band, mean, and where a run diverged.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_

#include <vector>

#include "server/report/figure/description.h"
#include "server/report/figure/palette.h"
#include "server/report/figure/ticks.h"
#include "server/report/figure/track.h"

namespace ablate::figure {

// Behind everything: thin lines of the seeds.
void AddSeedLines(const Track& track, Color color, Panel* panel);
void AddBand(const Track& track, Color color, Panel* panel);
// A curve of a single point is a dot.
void AddMean(const Track& track, Color color, const Dash& dash, double width, Panel* panel);
// In front: a cross at the last point of each diverged seed.
void AddDivergences(const Track& track, Color color, Panel* panel);

// The range of values to show. Seeds may leave it: one that explodes must not flatten the others.
Extent ValuesOf(const std::vector<const Track*>& tracks);

// Where the setting's label points to: the mean's last point, else a diverged seed's.
bool EndOf(const Track& track, double* x, double* y);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_LAYERS_H_
