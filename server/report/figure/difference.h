// Texts about the figure of paired differences over steps.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DIFFERENCE_H_
#define ABLATE_SERVER_REPORT_FIGURE_DIFFERENCE_H_

#include <string>
#include <vector>

#include "server/report/figure/kinds.h"

namespace ablate::figure {

// Returns sentences about settings whose difference at the end has grade leans or better and had
// the opposite sign after the first tenth of training: "“none” leads on average only from step 700
// on: at step 500 the difference is +0.016 [−0.009, +0.041]". `input` is one of kDifference. Pure.
std::vector<std::string> ReversalTexts(const Input& input);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DIFFERENCE_H_
