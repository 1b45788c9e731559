#include "server/worker/program_host.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/folder_walk.h"
#include "base/private_folder.h"
#include "base/status_macros.h"
#include "server/config/program.h"
#include "server/program/sandbox.h"
#include "server/program/warm_start.h"
#include "server/worker/ablate_run.h"  // generated

namespace ablate::worker {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostDataBytes = 2'000'000'000;  // of data sets that no run reads
constexpr char kRunsFolder[] = "runs";
constexpr char kDataFolder[] = "data";
constexpr char kHelpersFolder[] = "helpers";
constexpr char kHelperFile[] = "ablate_run.py";

// Empties the folder, which may hold what a worker left that was killed, and adds the helpers.
absl::Status PrepareFolder(const std::string& folder) {
  RemoveFolder(folder);
  RETURN_IF_ERROR(process::MakePrivateHome(folder).status());
  for (const char* name : {kRunsFolder, kDataFolder}) {
    RETURN_IF_ERROR(process::MakePrivateFolder(absl::StrCat(folder, "/", name)));
  }
  const std::string helpers = absl::StrCat(folder, "/", kHelpersFolder);
  std::error_code error;
  fs::create_directory(helpers, error);
  RETURN_IF_ERROR(
      process::ReplaceFile(absl::StrCat(helpers, "/", program::kWarmStartFile), kWarmStart));
  return process::ReplaceFile(absl::StrCat(helpers, "/", kHelperFile), kAblateRun);
}

// Refuses a folder that holds the server's own: its keys and other users' runs would be readable.
absl::Status CheckDataFolder(const std::string& folder, const ProgramOptions& options) {
  std::error_code ignored;
  const std::string inside = fs::weakly_canonical(options.folder, ignored).string() + "/";
  std::string outside = fs::weakly_canonical(folder, ignored).string();
  if (outside != "/") outside += "/";
  if (!absl::StartsWith(inside, outside)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      folder, " holds the folder of runs, ", options.folder, "; expected a folder of data only"));
}

// Describes the environment with an interpreter and folders of data after it.
absl::StatusOr<program::Environment> Describe(const std::string& name,
                                              const std::vector<std::string>& paths,
                                              const ProgramOptions& options) {
  for (size_t i = 1; i < paths.size(); ++i) RETURN_IF_ERROR(CheckDataFolder(paths[i], options));
  return program::DescribePython(name, paths.front(), {paths.begin() + 1, paths.end()});
}

absl::Status CheckGpu(const ProgramHost& host) {
  if (host.environments.empty()) {
    return absl::FailedPreconditionError("no environment has Python to check the GPU with");
  }
  program::Request request;
  request.folder = absl::StrCat(host.folder, "/gpu");
  RETURN_IF_ERROR(process::MakePrivateFolder(request.folder));
  request.environment = host.environments.begin()->second;
  request.sandboxed = host.sandboxed;
  request.devices = host.gpu.devices;
  request.variables = {{"CUDA_VISIBLE_DEVICES", host.gpu.uuid}};
  return CheckSeesGpu(std::move(request));
}

}  // namespace

absl::StatusOr<ProgramHost> OpenProgramHost(const ProgramOptions& options) {
  if (options.mode == launch::kOff) {
    return absl::FailedPreconditionError("its owner hasn't allowed programs (--programs)");
  }
  ProgramHost host;
  host.sandboxed = options.mode == launch::kSandboxed;
  if (host.sandboxed) {
    RETURN_IF_ERROR(program::ProbeSandbox());
  }
  std::map<std::string, std::vector<std::string>> interpreters;  // each with folders after it
  if (!options.python.empty()) interpreters[spec::kDefaultEnvironment] = {options.python};
  for (const std::string& given : options.environments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(given, absl::MaxSplits('=', 1));
    interpreters[parts.first] = absl::StrSplit(parts.second, ':');
  }
  std::string refused;  // the last environment that can't be offered
  for (const auto& [name, paths] : interpreters) {
    auto environment = Describe(name, paths, options);
    if (environment.ok()) {
      host.environments[name] = *std::move(environment);
    } else {
      refused = absl::StrCat("environment ", name, ": ", environment.status().message());
      spdlog::warn("{}", refused);
    }
  }
  if (host.environments.empty() && !refused.empty()) return absl::FailedPreconditionError(refused);
  RETURN_IF_ERROR(PrepareFolder(options.folder));
  host.folder = absl::StrCat(options.folder, "/", kRunsFolder);
  host.helpers = absl::StrCat(options.folder, "/", kHelpersFolder);
  host.data =
      std::make_shared<ProgramData>(absl::StrCat(options.folder, "/", kDataFolder), kMostDataBytes);
  host.gpu = options.gpu;
  if (!host.gpu.uuid.empty()) {
    RETURN_IF_ERROR(CheckGpu(host));
  }
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
