// Makes a report with everything in it from a small synthetic grid.
#ifndef ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_
#define ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_

#include <string>
#include <vector>

#include "server/report/html/page.h"

namespace ablate::html {

// Provides texts for every place in a page.
class Texts {
 public:
  virtual ~Texts() = default;
  // Returns `usual`, or its replacement.
  virtual std::string Next(const std::string& usual) = 0;
};

// Returns three placements × two rates × six seeds. Every text (labels, questions, captions,
// samples, paths) comes from `texts`. Compared labels get a number appended, because they must be
// distinct. The pictures' ids begin with `prefix`, distinct in a page.
Experiment ExampleExperiment(Texts* texts, const std::string& prefix = "");

// Returns the whole page.
std::string WholePage(const Page& page, const std::vector<Experiment>& experiments);

}  // namespace ablate::html

#endif  // ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_
