// Collects problems: each sentence once, and a bounded number.
#ifndef ABLATE_SERVER_CONFIG_PROBLEMS_H_
#define ABLATE_SERVER_CONFIG_PROBLEMS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/reflect/from_value.h"

namespace ablate::spec {

using Problem = reflect::FieldProblem;

class Problems {
 public:
  // Further problems are dropped: the author fixes the first ones first.
  static constexpr size_t kMaxProblems = 1000;

  // Adds a problem; see reflect::MakeProblem. A repeated sentence is dropped.
  void Add(const std::string& field, const std::string& value, absl::string_view complaint,
           absl::string_view allowed) {
    Add(reflect::MakeProblem(field, value, complaint, allowed));
  }
  void Add(Problem problem) {
    ++found_;
    if (full() || !known_.insert(problem.message).second) return;
    list_.push_back(std::move(problem));
  }
  void Add(std::vector<Problem> problems) {
    for (Problem& problem : problems) Add(std::move(problem));
  }

  // Returns true if no more are kept, so that a search for problems may stop.
  bool full() const { return list_.size() >= kMaxProblems; }
  bool empty() const { return list_.empty(); }
  // Returns the number of Add calls, including dropped ones: it shows if a check found anything.
  size_t found() const { return found_; }
  std::vector<Problem> Take() { return std::move(list_); }

 private:
  std::set<std::string> known_;
  std::vector<Problem> list_;
  size_t found_ = 0;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_PROBLEMS_H_
