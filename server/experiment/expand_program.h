// Expands a grid whose runs are programs into cells.
#ifndef ABLATE_SERVER_EXPERIMENT_EXPAND_PROGRAM_H_
#define ABLATE_SERVER_EXPERIMENT_EXPAND_PROGRAM_H_

#include "server/experiment/datasets.h"
#include "server/experiment/expand.h"
#include "server/experiment/resolution.h"

namespace ablate::spec {

// Does what Expand does, for a base with a program. `resolution` gets no configs and no bad paths.
void ExpandProgram(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
                   Problems* problems, Resolution* resolution);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_EXPAND_PROGRAM_H_
