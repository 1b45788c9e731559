#include "client/cluster/tool.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr size_t kShownBytes = 500;  // of the output of a program that failed
constexpr int kTimedOut = 124;       // exit code of timeout

}  // namespace

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words,
                                    const std::string& input) {
  const std::string line = absl::StrJoin(
      words, " ",
      [](std::string* text, const std::string& word) { text->append(ShellWord(word)); });
  const std::string command =
      absl::StrCat("printf %s ", ShellWord(input), " | timeout -k 5 30 ", line, " 2>&1");
  FILE* const opened = popen(command.c_str(), "re");
  if (opened == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("can't run ", words[0]));
  std::string output;
  char buffer[4096];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, opened)) > 0;) {
    output.append(buffer, got);
  }
  const int status = pclose(opened);
  if (status == 0) return output;
  const bool timed_out = WIFEXITED(status) && WEXITSTATUS(status) == kTimedOut;
  const std::string shown = reflect::ShortText(absl::StripAsciiWhitespace(output), kShownBytes);
  return absl::UnavailableError(absl::StrCat(words[0],
                                             timed_out ? " took longer than 30 s" : " failed", ": ",
                                             shown.empty() ? "it said nothing" : shown));
}

}  // namespace ablate::client
