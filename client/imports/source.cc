#include "client/imports/source.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/spawn.h"
#include "base/status_macros.h"
#include "client/imports/table.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/util/delimited_message_util.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr int kPointsAtOnce = 40'000;  // some 500 kB
constexpr int kRunsAtOnce = 500;
constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;
constexpr char kEnv[] = "/usr/bin/env";  // finds a program in PATH
constexpr char kStandardInput[] = "-";
constexpr int kUnreadable = 2;  // exit code of the package after it has printed an error

// Files of lm-eval, W&B and autoresearch, which look like tables.
bool IsOfTool(const std::string& name) {
  return absl::StartsWith(name, "samples_") || absl::StartsWith(name, "wandb_export_") ||
         name == "results.tsv";
}

bool IsJson(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".jsonl") || absl::EndsWithIgnoreCase(path, ".ndjson");
}

bool IsTable(const std::string& path) {
  if (path == kStandardInput) return true;
  std::error_code error;
  const std::string name = fs::path(path).filename();
  bool has_ending = IsJson(path);
  for (const char* ending : {".csv", ".tsv"}) {
    has_ending = has_ending || absl::EndsWithIgnoreCase(path, ending);
  }
  return has_ending && !IsOfTool(name) && !fs::is_directory(path, error);
}

absl::StatusOr<std::string> ReadText(const std::string& path, const Context& context) {
  if (path == kStandardInput) {
    return std::string(std::istreambuf_iterator<char>(*context.console.in), {});
  }
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  if (bytes > kMaxTableBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is too large; expected at most 2 GB"));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!in.is_open() || in.gcount() != static_cast<std::streamsize>(bytes)) {
    return absl::PermissionDeniedError(absl::StrCat(path, " can't be read"));
  }
  return text;
}

// Returns the names of files: without folders if they differ, and without endings.
std::vector<std::string> NamesOf(const std::vector<std::string>& paths) {
  std::set<std::string> stems;
  for (const std::string& path : paths) stems.insert(fs::path(path).stem());
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const fs::path file(path);
    names.push_back(stems.size() == paths.size() ? file.stem().string()
                                                 : (file.parent_path() / file.stem()).string());
  }
  return names;
}

// Returns the runs of a table; of several tables, with a setting for the file, which has this name.
absl::StatusOr<TableRuns> ReadTable(const SourceOptions& options, const std::string& path,
                                    const std::string& name, const Context& context) {
  ASSIGN_OR_RETURN(std::string text, ReadText(path, context));
  const std::string file = path == kStandardInput ? "standard input" : path;
  ASSIGN_OR_RETURN(const ResultTable table,
                   (IsJson(path) ? ReadJsonLines : ReadCsv)(file, std::move(text)));
  ASSIGN_OR_RETURN(TableRuns runs, RunsOf(table, options.table));
  if (options.paths.size() == 1) return runs;
  for (v1::ImportedRun& run : runs.runs) {
    run.set_name(runs.runs.size() == 1 ? name : absl::StrCat(name, ": ", run.name()));
    (*run.mutable_settings())["file"].set_string_value(name);
  }
  return runs;
}

using Messages = std::vector<v1::ImportRequest>;

// Divides runs into messages.
class Divider {
 public:
  explicit Divider(Messages* messages) : messages_(*messages) {}

  void Add(v1::ImportedRun&& run) {
    std::vector<v1::ImportedSeries> series(run.mutable_series()->begin(),
                                           run.mutable_series()->end());
    const std::string name = run.name();
    run.clear_series();
    *message_.add_runs() = std::move(run);
    for (v1::ImportedSeries& one : series) {
      if (points_ + one.values_size() <= kPointsAtOnce) {
        points_ += one.values_size();
        *Last(name)->add_series() = std::move(one);
        continue;
      }
      for (int begin = 0; begin < one.values_size();) {
        if (points_ >= kPointsAtOnce) Flush();
        const int end = std::min(one.values_size(), begin + kPointsAtOnce - points_);
        AddPart(one, begin, end, Last(name)->add_series());
        points_ += end - begin;
        begin = end;
      }
    }
    if (message_.runs_size() >= kRunsAtOnce) Flush();
  }

  void Flush() {
    points_ = 0;
    if (message_.runs_size() > 0) messages_.push_back(std::exchange(message_, {}));
  }

 private:
  // Returns the run of this name in the message, added if that begins.
  v1::ImportedRun* Last(const std::string& name) {
    if (message_.runs_size() == 0) message_.add_runs()->set_name(name);
    return message_.mutable_runs(message_.runs_size() - 1);
  }

  static void AddPart(const v1::ImportedSeries& whole, int begin, int end,
                      v1::ImportedSeries* part) {
    part->set_key(whole.key());
    const auto copy = [begin, end](const auto& from, auto* to) {
      if (!from.empty()) to->Add(from.begin() + begin, from.begin() + end);
    };
    copy(whole.values(), part->mutable_values());
    copy(whole.steps(), part->mutable_steps());
    copy(whole.items(), part->mutable_items());
    copy(whole.groups(), part->mutable_groups());
  }

  Messages& messages_;
  v1::ImportRequest message_;
  int points_ = 0;
};

absl::StatusOr<Messages> ReadTables(const SourceOptions& options, const Context& context) {
  Messages messages(1);
  messages[0].mutable_options()->set_source("table");
  Divider divider(&messages);
  const std::vector<std::string> names = NamesOf(options.paths);
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("PATH: ", options.paths[i], " is given twice; expected different files"));
    }
    ASSIGN_OR_RETURN(TableRuns table, ReadTable(options, options.paths[i], names[i], context));
    for (const std::string& note : table.notes) messages[0].mutable_options()->add_notes(note);
    for (v1::ImportedRun& run : table.runs) divider.Add(std::move(run));
  }
  divider.Flush();
  return messages;
}

// Waits for the child; returns its error.
absl::Status EndOf(pid_t pid, const std::string& python) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnreadable) {
    return absl::InvalidArgumentError("nothing was read");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(python,
                   " can't read the files; expected the package after `pip install "
                   "client/python`, or --python with another Python. Tables in .csv, .tsv and "
                   ".jsonl need none"));
}

// Returns the messages that the Python package writes.
absl::StatusOr<Messages> ReadByPython(const SourceOptions& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  const process::FileDescriptor own(ends[0]);
  process::FileDescriptor other(ends[1]);
  std::vector<std::string> arguments = {options.python, "-m", "ablate.read"};
  if (!options.tool.empty()) arguments.insert(arguments.end(), {"--tool", options.tool});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.paths.begin(), options.paths.end());
  pid_t pid = 0;
  const int failed =
      process::SpawnConnected(kEnv, arguments, process::OwnEnvironment(), other.get(), &pid);
  other = process::FileDescriptor();
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat(kEnv, " can't be started: ", std::strerror(failed)));
  }
  Messages messages;
  google::protobuf::io::FileInputStream in(own.get());
  bool read = true, at_end = false;
  while (read) {
    v1::ImportRequest message;
    read = google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &in, &at_end);
    if (read) messages.push_back(std::move(message));
  }
  shutdown(own.get(), SHUT_RDWR);  // ends a child that still writes
  RETURN_IF_ERROR(EndOf(pid, options.python));
  if (at_end && !messages.empty()) return messages;
  return absl::DataLossError("the Python package has written messages that can't be read");
}

}  // namespace

absl::StatusOr<std::vector<v1::ImportRequest>> ReadResults(const SourceOptions& options,
                                                           const Context& context) {
  const auto tables = std::count_if(options.paths.begin(), options.paths.end(), IsTable);
  const bool all = tables == static_cast<std::ptrdiff_t>(options.paths.size());
  if (options.tool.empty() && all) return ReadTables(options, context);
  if (options.tool.empty() && tables > 0) {
    return absl::InvalidArgumentError(
        "PATH: tables and files of other tools are mixed; expected files of one kind");
  }
  for (const std::string& path : options.paths) {
    std::error_code error;
    if (fs::exists(path, error)) continue;
    return absl::NotFoundError(
        absl::StrCat(path, ": ", error ? error.message() : "no such file or folder"));
  }
  return ReadByPython(options);
}

}  // namespace ablate::client
