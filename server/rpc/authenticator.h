// The door of the public port: which token a call has, and whether its user may call the method.
#ifndef ABLATE_SERVER_RPC_AUTHENTICATOR_H_
#define ABLATE_SERVER_RPC_AUTHENTICATOR_H_

#include <functional>

#include "ablate/v1/access.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// The rule of a method by its path, "/package.Service/Method": the option (access) beside it, and
// for health and reflection, which are gRPC's own, any role and readers. UNIMPLEMENTED if no
// program of ours has such a method; INTERNAL if it has no rule.
absl::StatusOr<v1::Access> RuleOf(absl::string_view path);

// PERMISSION_DENIED, with what is needed, unless the role is enough. Rules that are for the unix
// socket alone are refused to every role.
absl::Status CheckRole(const v1::Access& rule, storage::Role role, absl::string_view path);

// Lets a call in that has exactly one "authorization: Bearer TOKEN" of a user whose role the
// method's rule lets in, before anything of its message is read. UNAUTHENTICATED and
// PERMISSION_DENIED say what is wrong. Thread-safe.
class Authenticator final : public grpc::AuthMetadataProcessor {
 public:
  // `store` outlives it.
  Authenticator(storage::AccessStore* store, std::function<absl::Time()> now);

  // It looks into memory.
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  absl::Status Check(const InputMetadata& metadata) const;

  storage::AccessStore* const store_;
  const std::function<absl::Time()> now_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_AUTHENTICATOR_H_
