// Formats analyses: their numbers, progress and cost.
#ifndef ABLATE_CLIENT_OUTPUT_ANALYSIS_TEXT_H_
#define ABLATE_CLIENT_OUTPUT_ANALYSIS_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/time/time.h"

namespace ablate::client {

struct LabelledAnalysis {
  std::string label;  // of its model, as people know it; empty if it has none
  v1::Analysis analysis;
  std::vector<std::string> models = {};  // labels of its subjects, where it is of several
};

struct LabelledResponse {
  std::string label;
  v1::CreateAnalysisResponse response;
  std::vector<std::string> models = {};
};

// Returns four significant digits, or a dash with the reason in words.
std::string NumberText(const v1::AnalysisNumber& number);

// Returns the fraction of pieces that are done, such as 43 %; never 100 % before all are.
std::string ProgressText(const v1::Analysis& analysis);

// Returns a table with a row per number, sorted by name with block.2 before block.10. Several
// analyses have a column each, or a table each if the columns exceed `width` > 0.
std::string NumbersText(const std::vector<LabelledAnalysis>& analyses, int width);

// Returns a table of the names of several models in numbers: subject.0, and the label with the step
// of its checkpoint.
std::string ModelsText(const LabelledAnalysis& analysis, int width);

// Returns a duration, in seconds with two digits below a minute: 0.083 s.
std::string TookText(absl::Duration took);

// Returns a table of costs, a row for each analysis: time, forward passes, memory, arrays, and if
// it is stored already. For several, a last row sums up those that are not. `width` is Table's.
std::string CostText(const std::vector<LabelledResponse>& responses, int width);

// Messages about models, each printed once for all its models, in the order of arrival.
class Remarks {
 public:
  void Add(const std::string& label, const std::string& message);
  // Such as "pre-s1, post-s1: it has no checkpoint". At most three labels are named.
  std::vector<std::string> Lines() const;
  bool empty() const { return remarks_.empty(); }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> remarks_;  // labels by message
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_ANALYSIS_TEXT_H_
