#include "server/service/methods.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ablate::service {

using grpc::internal::RpcMethod;

Methods::Methods(const char* service, Backend* backend)
    : service_(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          absl::StrCat("ablate.v1.", service))),
      backend_(backend) {}

const google::protobuf::MethodDescriptor* Methods::Find(
    const google::protobuf::Descriptor* request, const google::protobuf::Descriptor* response) {
  for (int i = 0; i < service_->method_count(); ++i) {
    const auto* method = service_->method(i);
    if (method->input_type() == request && method->output_type() == response) return method;
  }
  spdlog::critical("{} has no method from {} to {}", service_->full_name(), request->full_name(),
                   response->full_name());
  std::abort();
}

void Methods::BeginBytes(const char* method,
                         grpc::ServerUnaryReactor* (*begin)(Backend*, grpc::CallbackServerContext*,
                                                            const grpc::ByteBuffer*,
                                                            grpc::ByteBuffer*)) {
  Add(service_->FindMethodByName(method),
      new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this, begin](auto* context, auto* request, auto* response) {
            return begin(backend_, context, request, response);
          }));
}

void Methods::Add(const google::protobuf::MethodDescriptor* method,
                  grpc::internal::MethodHandler* handler) {
  const auto type = method->client_streaming()   ? RpcMethod::CLIENT_STREAMING
                    : method->server_streaming() ? RpcMethod::SERVER_STREAMING
                                                 : RpcMethod::NORMAL_RPC;
  paths_.push_back(absl::StrCat("/", service_->full_name(), "/", method->name()));
  AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type, nullptr));
  MarkMethodCallback(static_cast<int>(paths_.size()) - 1, handler);
}

}  // namespace ablate::service
