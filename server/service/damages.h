// Stored bytes that turned out to be damaged while the rest of what was asked for is delivered.
#ifndef ABLATE_SERVER_SERVICE_DAMAGES_H_
#define ABLATE_SERVER_SERVICE_DAMAGES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ablate::service {

// One thread.
class Damages {
 public:
  // `status` is DATA_LOSS and names what is damaged.
  void Add(const absl::Status& status) {
    if (named_.size() < kMostNamed) named_.emplace_back(status.message());
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  // DATA_LOSS that names them, if they are many the first.
  absl::Status ToStatus() const {
    const std::string others =
        count_ > named_.size() ? absl::StrCat("; and ", count_ - named_.size(), " more") : "";
    return absl::DataLossError(absl::StrCat(absl::StrJoin(named_, "; "), others));
  }

 private:
  static constexpr size_t kMostNamed = 5;
  std::vector<std::string> named_;
  size_t count_ = 0;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_DAMAGES_H_
