// Calls any method with any bytes.
#ifndef ABLATE_TESTS_SERVICE_RAW_CALL_H_
#define ABLATE_TESTS_SERVICE_RAW_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ablate::service {

struct RawAnswer {
  grpc::Status status;
  std::vector<std::string> messages;
};

// Sends `messages` to `method` ("/package.Service/Method"), then nothing more, and reads to the
// end. `metadata` goes with it.
RawAnswer RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& messages,
                  const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_RAW_CALL_H_
