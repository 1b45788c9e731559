// `ablate admin check`: is everything stored still there, and whole?
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct StoreCheckOptions {
  bool json = false;
};

absl::StatusOr<int> CheckStored(const StoreCheckOptions& options, const Context& context,
                                Connection* connection) {
  ASSIGN_OR_RETURN(const v1::CheckStoreResponse found, connection->Call(kCheckStore, {}));
  const int code = found.problems().empty() ? kSuccess : kFailure;
  if (options.json) {
    PrintJson(context, found);
    return code;
  }
  for (const std::string& problem : found.problems()) *context.console.out << problem << "\n";
  if (found.left_out() > 0) {
    context.console.Note(absl::StrCat(Count(found.left_out(), "more problem"), " aren't listed"));
  }
  context.console.Info(absl::StrCat(
      "read the database and ", text::Grouped(found.files()), " files: ",
      code == kSuccess
          ? "all whole"
          : Count(static_cast<uint64_t>(found.problems_size()) + found.left_out(), "problem")));
  return code;
}

}  // namespace

Action DefineAdminCheck(Command* command) {
  auto options = std::make_shared<StoreCheckOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "It reads everything, while the server works, and changes nothing. The exit code is 1 if "
      "there are problems. Run it on the server's machine, also on a copy that was restored from a "
      "backup.\n\n"
      "Example:\n  ablate admin check");
  return WithServer(options, CheckStored);
}

}  // namespace ablate::client
