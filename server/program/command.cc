#include "server/program/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/private_folder.h"
#include "base/status_macros.h"

namespace ablate::program {
namespace {

constexpr char kSystemPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr size_t kMaxFirstLine = 256;  // as the kernel's

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string SearchPath(const Request& request) {
  std::string result;
  const Environment& environment = request.environment;
  if (environment.interpreter.empty()) return kSystemPath;
  if (request.sandboxed && !environment.is_virtual) absl::StrAppend(&result, kLinkFolder, ":");
  absl::StrAppend(&result, FolderOf(environment.interpreter), ":", kSystemPath);
  return result;
}

// Returns the interpreter in the first line of a script; nothing if the file isn't a script.
std::optional<std::string> ScriptInterpreter(const std::string& file) {
  std::array<char, kMaxFirstLine> bytes;
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), bytes.size());
  absl::string_view line(bytes.data(), static_cast<size_t>(in.gcount()));
  if (!absl::ConsumePrefix(&line, "#!")) return std::nullopt;
  line = line.substr(0, line.find('\n'));
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  return words.empty() ? std::nullopt : std::optional(words[0]);
}

bool IsExecutable(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0;
}

// Returns the paths at which execvp tries the program, in order.
std::vector<std::string> Candidates(const std::string& program, const std::string& search_path,
                                    const std::string& working_folder) {
  if (absl::StartsWith(program, "/")) return {program};
  if (absl::StrContains(program, '/')) return {absl::StrCat(working_folder, "/", program)};
  std::vector<std::string> result;
  for (absl::string_view folder : absl::StrSplit(search_path, ':')) {
    if (folder.empty()) folder = ".";
    const bool absolute = absl::StartsWith(folder, "/");
    result.push_back(
        absl::StrCat(absolute ? "" : working_folder, absolute ? "" : "/", folder, "/", program));
  }
  return result;
}

absl::Status CheckInterpreter(const Layout& layout, const std::string& program,
                              const std::string& file, const std::string& working_folder) {
  const auto interpreter = ScriptInterpreter(file);
  if (!interpreter.has_value()) return absl::OkStatus();
  const std::string path = absl::StartsWith(*interpreter, "/")
                               ? *interpreter
                               : absl::StrCat(working_folder, "/", *interpreter);
  const auto found = FindFile(layout, path);
  if (found.has_value() && IsExecutable(*found)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      program, ": the interpreter in its first line, ", *interpreter,
      found.has_value() ? ", isn't executable" : ", doesn't exist", " for the program"));
}

}  // namespace

std::map<std::string, std::string> ProgramVariables(const Request& request) {
  std::map<std::string, std::string> result = {
      {"HOME", request.sandboxed ? "/tmp" : process::EnvironmentVariable("HOME").value_or("/tmp")},
      {"LANG", "C.UTF-8"},
      {"PATH", SearchPath(request)},
      {"PYTHONUNBUFFERED", "1"},
  };
  for (const auto& [name, value] : request.variables) result[name] = value;
  if (!request.helpers.empty()) {
    std::string& path = result["PYTHONPATH"];
    path = absl::StrCat(request.sandboxed ? kHelperFolder : request.helpers,
                        path.empty() ? "" : ":", path);
  }
  result["ABLATE_METRICS"] = absl::StrCat(kMetricsDescriptor);
  result["ABLATE_REPLIES"] = absl::StrCat(kRepliesDescriptor);
  return result;
}

absl::StatusOr<std::string> FindCommand(const Layout& layout, const std::string& program,
                                        const std::string& search_path,
                                        const std::string& working_folder) {
  bool exists = false;
  for (const std::string& path : Candidates(program, search_path, working_folder)) {
    const auto file = FindFile(layout, path);
    exists = exists || file.has_value();
    if (!file.has_value() || !IsExecutable(*file)) continue;
    RETURN_IF_ERROR(CheckInterpreter(layout, program, *file, working_folder));
    return path;
  }
  if (!exists) return absl::NotFoundError(absl::StrCat("command not found: ", program));
  return absl::FailedPreconditionError(
      absl::StrCat(program,
                   " isn't executable. Set its mode with chmod +x, or name its "
                   "interpreter: python ",
                   program));
}

}  // namespace ablate::program
