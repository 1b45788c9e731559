// A gRPC service as a table: each method has a line that names its handler.
#ifndef ABLATE_SERVER_SERVICE_METHODS_H_
#define ABLATE_SERVER_SERVICE_METHODS_H_

#include <list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/service/services.h"

namespace ablate::service {

// Adds handlers, whose messages determine their methods. One whose messages belong to no method of
// the service ends the program. Handlers may be called on any thread.
class Methods final : public grpc::Service {
 public:
  // `service` is a name in ablate.v1, such as Runs. The backend must outlive the methods.
  Methods(const char* service, Backend* backend);

  // Adds a unary method: Backend::Answer calls its handler.
  template <class Request, class Response>
  void Answer(absl::Status (*handler)(const Backend&, const lookup::View&, const Request&,
                                      Response*)) {
    Unary<Request, Response>([this, handler](auto* context, auto* request, auto* response) {
      return backend_->Answer(context, [this, handler, request, response](const auto& view) {
        return handler(*backend_, view, *request, response);
      });
    });
  }
  // The same with the caller instead of the view.
  template <class Request, class Response>
  void Answer(absl::Status (*handler)(const Backend&, const storage::Caller&, const Request&,
                                      Response*)) {
    Unary<Request, Response>([this, handler](auto* context, auto* request, auto* response) {
      return rpc::Answer(backend_->pool, context, [this, handler, context, request, response] {
        const auto caller = backend_->FindCaller(*context);
        return caller.ok() ? handler(*backend_, *caller, *request, response) : caller.status();
      });
    });
  }
  // The same for a comparison, by Backend::AnswerByComparing.
  template <class Request, class Response>
  void Compare(absl::Status (*handler)(const lookup::View&, const Request&,
                                       const lookup::Cancelled&, Response*)) {
    Unary<Request, Response>([this, handler](auto* context, auto* request, auto* response) {
      return backend_->AnswerByComparing(
          context, [handler, request, response](const auto& view, const auto& cancelled) {
            return handler(view, *request, cancelled, response);
          });
    });
  }
  // The same for a change, by Backend::AnswerChange.
  template <class Request, class Response>
  void Change(absl::Status (*handler)(Backend&, const storage::Caller&, const Request&,
                                      std::string* resource, Response*)) {
    const auto* method = Find(Request::descriptor(), Response::descriptor());
    const std::string logged = method->service()->name() + "." + method->name();
    Unary<Request, Response>([this, handler, logged](auto* context, auto* request, auto* response) {
      return backend_->AnswerChange(
          context, logged, [this, handler, request, response](const auto& caller, auto* resource) {
            return handler(*backend_, caller, *request, resource, response);
          });
    });
  }

  // Adds a unary method that begins in its own way.
  template <class Request, class Response>
  void Begin(grpc::ServerUnaryReactor* (*begin)(Backend*, grpc::CallbackServerContext*,
                                                const Request*, Response*)) {
    Unary<Request, Response>([this, begin](auto* context, auto* request, auto* response) {
      return begin(backend_, context, request, response);
    });
  }
  // The same for a method whose messages stay bytes.
  void BeginBytes(const char* method,
                  grpc::ServerUnaryReactor* (*begin)(Backend*, grpc::CallbackServerContext*,
                                                     const grpc::ByteBuffer*, grpc::ByteBuffer*));

  // Adds a method whose response is a stream.
  template <class Request, class Message>
  void Stream(grpc::ServerWriteReactor<Message>* (*begin)(Backend*, grpc::CallbackServerContext*,
                                                          const Request*)) {
    Streamed<Request, Message>(
        [this, begin](auto* context, auto* request) { return begin(backend_, context, request); });
  }
  // The same for the bytes of a blob.
  template <class Chunk, class Request>
  void Download(absl::StatusOr<rpc::BlobReader> (*open)(const Backend&,
                                                        const grpc::ServerContextBase&,
                                                        const Request&)) {
    Streamed<Request, Chunk>([this, open](auto* context, auto* request) {
      auto* reactor = new rpc::ReadBlobReactor<Chunk>(
          backend_->Stream(context, &backend_->downloads),
          [this, open, context, request] { return open(*backend_, *context, *request); });
      return reactor->Begin();
    });
  }

  // Adds a method whose request is a stream.
  template <class Request, class Response>
  void Upload(grpc::ServerReadReactor<Request>* (*begin)(Backend*, grpc::CallbackServerContext*,
                                                         Response*)) {
    Add(Find(Request::descriptor(), Response::descriptor()),
        new grpc::internal::CallbackClientStreamingHandler<Request, Response>(
            [this, begin](auto* context, auto* response) {
              return begin(backend_, context, response);
            }));
  }

 private:
  template <class Request, class Response, class Handler>
  void Unary(Handler handler) {
    Add(Find(Request::descriptor(), Response::descriptor()),
        new grpc::internal::CallbackUnaryHandler<Request, Response>(std::move(handler)));
  }
  template <class Request, class Message, class Handler>
  void Streamed(Handler handler) {
    Add(Find(Request::descriptor(), Message::descriptor()),
        new grpc::internal::CallbackServerStreamingHandler<Request, Message>(std::move(handler)));
  }
  // Returns the method with these messages.
  const google::protobuf::MethodDescriptor* Find(const google::protobuf::Descriptor* request,
                                                 const google::protobuf::Descriptor* response);
  void Add(const google::protobuf::MethodDescriptor* method,
           grpc::internal::MethodHandler* handler);

  const google::protobuf::ServiceDescriptor* const service_;
  Backend* const backend_;
  std::list<std::string> paths_;  // gRPC keeps pointers to them
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_METHODS_H_
