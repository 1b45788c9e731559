#include "server/program/request.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/private_folder.h"
#include "base/status_macros.h"

namespace ablate::program {
namespace {

constexpr char kSystemPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr size_t kMaxFirstLine = 256;  // as the kernel's

std::string SearchPath(const Request& request) {
  const Environment& environment = request.environment;
  const std::string& interpreter = environment.interpreter;
  if (interpreter.empty()) return kSystemPath;
  const bool has_links = request.sandboxed && !environment.is_virtual;
  return absl::StrCat(has_links ? absl::StrCat(kLinkFolder, ":") : "",
                      interpreter.substr(0, interpreter.rfind('/')), ":", kSystemPath);
}

// A zero byte would end an argument, and the rest would become an option of the sandbox.
bool HasZeroByte(const Request& request) {
  std::vector<absl::string_view> texts(request.command.begin(), request.command.end());
  for (const auto& [name, value] : request.variables) texts.insert(texts.end(), {name, value});
  texts.push_back(request.data);
  return std::any_of(texts.begin(), texts.end(),
                     [](absl::string_view text) { return absl::StrContains(text, '\0'); });
}

// Returns the file of the program, found as execvp does, as far as this machine shows the same
// folders as the sandbox; empty if there is none.
std::string ProgramFile(const Request& request) {
  const std::string& program = request.command[0];
  std::vector<std::string> folders = {request.folder};
  if (!absl::StrContains(program, '/')) {
    folders = absl::StrSplit(ProgramVariables(request).at("PATH"), ':');
  }
  for (const std::string& folder : folders) {
    std::string file = absl::StrCat(folder, "/", program);
    if (access(file.c_str(), F_OK) == 0) return file;
  }
  return "";
}

// Returns the interpreter in the first line of a script; empty if the file isn't a script.
std::string ScriptInterpreter(const std::string& file) {
  std::array<char, kMaxFirstLine> bytes{};
  std::ifstream(file).getline(bytes.data(), bytes.size());
  absl::string_view line = bytes.data();
  if (!absl::ConsumePrefix(&line, "#!")) return "";
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  return words.empty() ? "" : words[0];
}

}  // namespace

absl::Status CheckRequest(const Request& request) {
  if (request.command.empty() || request.command[0].empty()) {
    return absl::InvalidArgumentError("command: it is empty; expected a program");
  }
  if (HasZeroByte(request)) {
    return absl::InvalidArgumentError("command, variables or data: a text has a zero byte");
  }
  std::vector<std::string> sources = request.environment.folders;
  sources.push_back(request.folder);
  if (!request.helpers.empty()) sources.push_back(request.helpers);
  if (!request.data.empty()) sources.push_back(request.data);
  for (const std::string& source : sources) RETURN_IF_ERROR(CheckReachable(source));
  return absl::OkStatus();
}

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

std::string ExplainExec(const Request& request, absl::string_view error) {
  const std::string& program = request.command[0];
  if (absl::EndsWith(error, std::strerror(EACCES))) {
    return absl::StrCat(program, " isn't executable. Set its mode with chmod +x, or name its ",
                        "interpreter: python ", program);
  }
  if (!absl::EndsWith(error, std::strerror(ENOENT))) return std::string(error);
  const std::string file = ProgramFile(request);
  if (file.empty()) return absl::StrCat("command not found: ", program);
  const std::string interpreter = ScriptInterpreter(file);
  if (interpreter.empty()) {
    return absl::StrCat(program, ": the loader that it names doesn't exist for the program");
  }
  return absl::StrCat(program, ": the interpreter in its first line, ", interpreter,
                      ", doesn't exist for the program");
}

}  // namespace ablate::program
