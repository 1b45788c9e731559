// A shared server, and its clients with tokens on its public port.
#ifndef ABLATE_TESTS_SERVICE_SHARING_FIXTURE_H_
#define ABLATE_TESTS_SERVICE_SHARING_FIXTURE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/service/raw_call.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {

inline const storage::Actor kRoot = {"ada", ""};

// Returns all of our methods, by this program's descriptors.
inline std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const std::string folder : {"ablate/v1", "ablate/worker/v1"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(absl::StrCat(ABLATE_SOURCE, "/proto/", folder))) {
      const auto* file =
          pool->FindFileByName(absl::StrCat(folder, "/", entry.path().filename().string()));
      EXPECT_NE(file, nullptr) << entry.path();
      for (int i = 0; file != nullptr && i < file->service_count(); ++i) {
        for (int j = 0; j < file->service(i)->method_count(); ++j) {
          methods.push_back(file->service(i)->method(j));
        }
      }
    }
  }
  return methods;
}

inline std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

class SharingTest : public ServiceTest {
 protected:
  SharingTest() {
    v1::InitializeSharingRequest request;
    request.set_address("localhost:7443");
    root_ = AnswerOf(*admin_, &v1::Admin::Stub::InitializeSharing, request);
    public_address_ = "127.0.0.1:0";
    Restart();
    public_channel_ = Channel(root_.certificate_authority());
  }

  std::shared_ptr<grpc::Channel> Channel(const std::string& authority) {
    return Channel(TlsCredentials(authority));
  }
  // Returns a channel that adds the token to every call.
  std::shared_ptr<grpc::Channel> ChannelAs(const std::string& secret) {
    return Channel(grpc::CompositeChannelCredentials(TlsCredentials(root_.certificate_authority()),
                                                     grpc::AccessTokenCredentials(secret)));
  }
  static std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(const std::string& authority) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority;
    return grpc::SslCredentials(options);
  }
  std::shared_ptr<grpc::Channel> Channel(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    // A connection for each channel: one has room for a hundred calls.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", public_port()), credentials,
                                     arguments);
  }

  // Creates a user and returns a token.
  storage::IssuedToken Join(const std::string& user, storage::Role role,
                            absl::Duration lifetime = absl::Hours(1)) {
    storage::AccessStore& store = sharing().store();
    if (!store.GetUser(user).ok()) {
      EXPECT_TRUE(store.CreateUser(user, role, {}, kRoot, absl::Now()).ok());
    }
    auto issued = store.IssueToken(user, "", lifetime, kRoot, absl::Now());
    EXPECT_TRUE(issued.ok()) << issued.status();
    return *std::move(issued);
  }
  std::string SecretOf(const std::string& user, storage::Role role) {
    return Join(user, role).secret;
  }

  static std::pair<std::string, std::string> Bearer(const std::string& secret) {
    return {"authorization", "Bearer " + secret};
  }
  grpc::Status Call(const std::string& path, const std::string& secret) {
    return RawCall(public_channel_, path, {""}, {Bearer(secret)}).status;
  }
  // Calls a method of a stub with a token.
  template <typename Stub, typename Request, typename Response>
  grpc::Status CallAs(const std::string& secret, Method<Stub, Request, Response> method,
                      const Request& request, Response* response = nullptr) {
    Stub stub(public_channel_);
    Context context;
    context.AddMetadata("authorization", "Bearer " + secret);
    Response ignored;
    return (stub.*method)(&context, request, response == nullptr ? &ignored : response);
  }
  std::string CreateAs(const std::string& secret, const std::string& name) {
    v1::CreateExperimentRequest request;
    *request.mutable_spec() = SmallSpec(1, name);
    request.set_request_id(absl::StrCat("00000000-0000-4000-8000-", name));
    v1::CreateExperimentResponse response;
    const grpc::Status made =
        CallAs(secret, &v1::Experiments::Stub::CreateExperiment, request, &response);
    EXPECT_TRUE(made.ok()) << made.error_message();
    return response.experiment().name();
  }
  grpc::Status CancelAs(const std::string& secret, const std::string& name) {
    return CallAs(secret, &v1::Experiments::Stub::CancelExperiment,
                  Named<v1::CancelExperimentRequest>(name));
  }

  v1::JoinFile root_;
  std::shared_ptr<grpc::Channel> public_channel_;
};

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_SHARING_FIXTURE_H_
