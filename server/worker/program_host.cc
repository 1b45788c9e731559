#include "server/worker/program_host.h"

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "base/status_macros.h"
#include "server/config/program.h"
#include "server/program/sandbox.h"
#include "server/program/warm_parent.h"
#include "server/worker/ablate_run.h"  // generated

namespace ablate::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kRunsFolder[] = "runs";
constexpr char kHelpersFolder[] = "helpers";
constexpr char kHelperFile[] = "ablate_run.py";

// Empties the folder, which may hold what a worker left that was killed, and adds the helpers.
absl::Status PrepareFolder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  RETURN_IF_ERROR(process::MakePrivateHome(folder).status());
  RETURN_IF_ERROR(process::MakePrivateFolder(absl::StrCat(folder, "/", kRunsFolder)));
  const std::string helpers = absl::StrCat(folder, "/", kHelpersFolder);
  fs::create_directory(helpers, error);
  RETURN_IF_ERROR(
      process::ReplaceFile(absl::StrCat(helpers, "/", program::kWarmStartFile), kWarmStart));
  return process::ReplaceFile(absl::StrCat(helpers, "/", kHelperFile), kAblateRun);
}

}  // namespace

absl::StatusOr<ProgramHost> OpenProgramHost(const ProgramOptions& options) {
  if (options.mode == kOff) {
    return absl::FailedPreconditionError("its owner hasn't allowed programs (--programs)");
  }
  ProgramHost host;
  host.sandboxed = options.mode == kSandboxed;
  if (host.sandboxed) {
    RETURN_IF_ERROR(program::ProbeSandbox());
  }
  std::map<std::string, std::string> interpreters;
  if (!options.python.empty()) interpreters[spec::kDefaultEnvironment] = options.python;
  for (const std::string& given : options.environments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(given, absl::MaxSplits('=', 1));
    interpreters[parts.first] = parts.second;
  }
  for (const auto& [name, python] : interpreters) {
    ASSIGN_OR_RETURN(host.environments[name], program::DescribePython(name, python));
  }
  RETURN_IF_ERROR(PrepareFolder(options.folder));
  host.folder = absl::StrCat(options.folder, "/", kRunsFolder);
  host.helpers = absl::StrCat(options.folder, "/", kHelpersFolder);
  host.warm = std::make_shared<program::WarmPool>();
  return host;
}

void DescribeHost(const absl::StatusOr<ProgramHost>& host, v1::Hello* hello) {
  if (!host.ok()) {
    return hello->set_no_programs(absl::StrReplaceAll(host.status().message(), {{"\n", " "}}));
  }
  for (const auto& [name, environment] : host->environments) {
    v1::TrainerInfo* trainer = hello->add_trainers();
    trainer->set_name(spec::ProgramTrainer(name));
    trainer->set_environment(environment.version);
  }
}

}  // namespace ablate::worker
