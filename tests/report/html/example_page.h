// A report with everything in it, made of a small synthetic grid.
#ifndef ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_
#define ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_

#include <string>
#include <vector>

#include "server/report/html/page.h"

namespace ablate::html {

// Gives texts for every place where a page shows one.
class Texts {
 public:
  virtual ~Texts() = default;
  // `usual`, or what is to stand in its place.
  virtual std::string Next(const std::string& usual) = 0;
};

// Three placements × two rates × six seeds. Labels, questions, captions, samples, paths: every text
// comes through `texts`. Labels that are compared get a number behind them, for they must be
// distinct. The pictures' ids begin with `prefix`, distinct in a page.
Experiment ExampleExperiment(Texts* texts, const std::string& prefix = "");

// All of the page.
std::string WholePage(const Page& page, const std::vector<Experiment>& experiments);

}  // namespace ablate::html

#endif  // ABLATE_TESTS_REPORT_HTML_EXAMPLE_PAGE_H_
