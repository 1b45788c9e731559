// Fuzzes a call's "authorization" with libFuzzer: one value, or two.
#include <grpcpp/support/string_ref.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/identity.h"
#include "storage/access_store.h"

namespace ablate::rpc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
// Stands for the token in inputs, because libFuzzer doesn't guess 256 bits.
constexpr absl::string_view kToken = "TOKEN";
void Require(bool holds) {
  if (!holds) std::abort();
}

struct Users {
  std::unique_ptr<storage::AccessStore> store;
  std::string secret;
};

Users MakeUsers() {
  Users users;
  std::string name = (std::filesystem::temp_directory_path() / "authorization-XXXXXX").string();
  Require(mkdtemp(name.data()) != nullptr);
  auto store = storage::AccessStore::Open({name + "/access.db", 100, nullptr});
  Require(store.ok());
  users.store = *std::move(store);
  Require(users.store->Initialize("ada", kNow).ok());
  const auto issued = users.store->IssueToken("ada", "", absl::Hours(1), {"ada", ""}, kNow);
  Require(issued.ok());
  users.secret = issued->secret;
  // The open file suffices.
  std::filesystem::remove_all(name);
  return users;
}

// Returns the answer to a call with these values.
absl::StatusOr<storage::Caller> Ask(const Users& users, const std::vector<std::string>& values) {
  std::multimap<grpc::string_ref, grpc::string_ref> metadata;
  for (const std::string& value : values) {
    metadata.emplace("authorization", grpc::string_ref(value.data(), value.size()));
  }
  const auto secret = SecretIn(metadata);
  if (!secret.ok()) return secret.status();
  return users.store->Identify(*secret, kNow);
}

void Try(const Users& users, absl::string_view input) {
  std::vector<std::string> values = absl::StrSplit(input, absl::MaxSplits('\n', 1));
  for (std::string& value : values) {
    if (absl::EndsWith(value, kToken)) {
      value.replace(value.size() - kToken.size(), kToken.size(), users.secret);
    }
  }
  const auto caller = Ask(users, values);
  constexpr absl::string_view kScheme = "bearer ";
  const std::string& value = values[0];
  const bool bearer = absl::StartsWithIgnoreCase(value, kScheme);
  const bool right = values.size() == 1 && bearer && value.substr(kScheme.size()) == users.secret;
  Require(caller.ok() == right);
  if (right) return Require(caller->user == "ada");
  // One of three sentences, which don't contain the input.
  const std::vector<std::string> alike = values.size() > 1 ? std::vector<std::string>{"x", "y"}
                                         : bearer          ? std::vector<std::string>{"Bearer x"}
                                                           : std::vector<std::string>{"Basic x"};
  Require(caller.status() == Ask(users, alike).status());
}

}  // namespace
}  // namespace ablate::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ablate::rpc::Users users = ablate::rpc::MakeUsers();
  ablate::rpc::Try(users, absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
