// The data sets that specs name, each looked up once.
#ifndef ABLATE_SERVER_SPEC_DATASETS_H_
#define ABLATE_SERVER_SPEC_DATASETS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/spec/resolve.h"

namespace ablate::spec {

class Datasets {
 public:
  // `surroundings` must outlive it.
  explicit Datasets(const Surroundings& surroundings) : surroundings_(surroundings) {}

  const absl::StatusOr<DatasetFacts>& Find(const std::string& name);

 private:
  const Surroundings& surroundings_;
  std::map<std::string, absl::StatusOr<DatasetFacts>> found_;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_DATASETS_H_
