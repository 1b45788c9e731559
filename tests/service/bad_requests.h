// A table of requests that can't be, each with its exact answer.
#ifndef ABLATE_TESTS_SERVICE_BAD_REQUESTS_H_
#define ABLATE_TESTS_SERVICE_BAD_REQUESTS_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

namespace ablate::service {

struct BadRequest {
  std::string name;     // of the case
  std::string method;   // Service/Method in ablate.v1
  std::string request;  // textproto; the only message
  grpc::StatusCode code;
  std::string message;
  std::string more = "";  // textproto that is merged into the request
};

std::vector<BadRequest> BadRequests();

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_BAD_REQUESTS_H_
