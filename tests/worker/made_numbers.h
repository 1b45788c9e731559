// Returns the names of the numbers that analyses make. Separate from code that uses messages,
// because no file includes both torch's and protobuf's headers.
#ifndef ABLATE_TESTS_WORKER_MADE_NUMBERS_H_
#define ABLATE_TESTS_WORKER_MADE_NUMBERS_H_

#include <map>
#include <set>
#include <string>

namespace ablate::engine {

struct MadeNames {
  std::set<std::string> numbers;
  std::set<std::string> defined;      // of these, the ones that have a value for some model
  std::set<std::string> by_sequence;  // numbers with an array by_sequence/NUMBER
};

// Returns the names by kind, for every kind: for models with many settings, and for several models
// at once.
std::map<std::string, MadeNames> MadeNumbers();

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_WORKER_MADE_NUMBERS_H_
