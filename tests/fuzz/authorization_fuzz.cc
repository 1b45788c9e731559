// libFuzzer on what stands in a call's "authorization": one value, or two.
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
// Where an input stands for the token: libFuzzer does not guess 256 bits.
constexpr absl::string_view kToken = "TOKEN";
// So much of what a caller sends is never said again.
constexpr size_t kTold = 8;

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Users {
  std::string folder;
  std::unique_ptr<storage::AccessStore> store;
  std::string secret;
};

Users MakeUsers() {
  Users users;
  std::string name = (std::filesystem::temp_directory_path() / "authorization-XXXXXX").string();
  Require(mkdtemp(name.data()) != nullptr);
  users.folder = name;
  auto store = storage::AccessStore::Open({name + "/access.db", 100, nullptr});
  Require(store.ok());
  users.store = *std::move(store);
  Require(users.store->Initialize("ada", kNow).ok());
  const auto issued = users.store->IssueToken("ada", "", absl::Hours(1), {"ada", ""}, kNow);
  Require(issued.ok());
  users.secret = issued->secret;
  return users;
}

// Whether an error says some of a value again.
bool Tells(absl::string_view error, absl::string_view value) {
  for (size_t i = 0; i + kTold <= value.size(); ++i) {
    if (absl::StrContains(error, value.substr(i, kTold))) return true;
  }
  return false;
}

void Try(const Users& users, absl::string_view input) {
  std::vector<std::string> values = absl::StrSplit(input, absl::MaxSplits('\n', 1));
  std::multimap<grpc::string_ref, grpc::string_ref> metadata;
  for (std::string& value : values) {
    if (absl::EndsWith(value, kToken)) {
      value.replace(value.size() - kToken.size(), kToken.size(), users.secret);
    }
    metadata.emplace("authorization", grpc::string_ref(value.data(), value.size()));
  }
  const auto secret = SecretIn(metadata);
  absl::Status status = secret.status();
  if (secret.ok()) {
    const auto caller = users.store->Authenticate(*secret, kNow);
    Require(caller.ok() == (*secret == users.secret));
    Require(!caller.ok() || caller->user == "ada");
    status = caller.status();
  }
  const bool right = values.size() == 1 && values[0].size() == 7 + users.secret.size() &&
                     absl::StartsWithIgnoreCase(values[0], "bearer ") &&
                     absl::EndsWith(values[0], users.secret);
  Require(status.ok() == right);
  Require(!Tells(status.message(), users.secret));
  for (const std::string& value : values) {
    // What our own sentences have in common with it says nothing.
    if (!absl::StrContains(value, "authori") && !absl::StrContains(value, "oken")) {
      Require(!Tells(status.message(), value));
    }
  }
}

}  // namespace
}  // namespace ablate::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ablate::rpc::Users users = ablate::rpc::MakeUsers();
  ablate::rpc::Try(users, absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
