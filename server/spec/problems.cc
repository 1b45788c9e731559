#include "server/spec/problems.h"

#include <utility>

namespace ablate::spec {

void Problems::Add(const std::string& field, const std::string& value, absl::string_view complaint,
                   absl::string_view allowed) {
  Add(reflect::MakeProblem(field, value, complaint, allowed));
}

void Problems::Add(Problem problem) {
  ++found_;
  if (list_.size() >= kMaxProblems || !known_.insert(problem.message).second) return;
  list_.push_back(std::move(problem));
}

void Problems::Add(std::vector<Problem> problems) {
  for (Problem& problem : problems) Add(std::move(problem));
}

}  // namespace ablate::spec
