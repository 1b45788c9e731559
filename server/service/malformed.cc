// Says what is wrong when a request's bytes are no message.
#include "server/service/malformed.h"

#include "server/service/errors.h"

namespace ablate::service {
namespace {

using grpc::experimental::InterceptionHookPoints;

class Explainer final : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(ToGrpc(MalformedRequest()));
      }
    }
    methods->Proceed();
  }
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    // Methods that really do not exist come as bidirectional; those that are have no first request
    // to parse.
    if (info->type() == grpc::experimental::ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new Explainer;
  }
};

}  // namespace

absl::Status MalformedRequest() {
  return WithReason(
      absl::InvalidArgumentError("the request is malformed: it does not parse as this "
                                 "method's message, or a text in it is not UTF-8"),
      "MALFORMED_REQUEST");
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ExplainMalformedRequests() {
  return std::make_unique<Factory>();
}

}  // namespace ablate::service
