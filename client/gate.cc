#include "client/gate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/output/wrap.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr char kSessionFormat[] = "ablate session 1";

absl::Status WrongSession(const std::string& file) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--session: ", file, " isn't the file of a session; expected one that this option has made, ",
      "or no file yet"));
}

// Adds what the session has judged; nothing without its file.
absl::Status ReadSession(const std::string& file, v1::GateRequest* request) {
  constexpr size_t kMaxBytes = 1 << 20;
  const auto text = process::ReadBoundedFile(file, kMaxBytes, process::Readers::kAll);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return WrongSession(file);
  const auto session = nlohmann::json::parse(*text, nullptr, false);
  const bool good = session.is_object() && session.contains("format") &&
                    session["format"] == kSessionFormat && session.contains("level") &&
                    session["level"].is_number() && session.contains("changes") &&
                    session["changes"].is_array();
  if (!good) return WrongSession(file);
  const double level = session["level"].get<double>();
  if (request->has_level() && request->level() != level) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--level: ", request->level(), " isn't the session's; expected ", level, ", or no level"));
  }
  request->set_level(level);
  for (const auto& change : session["changes"]) {
    if (!change.is_string()) return WrongSession(file);
    request->add_changes(change.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status WriteSession(const std::string& file, double level, const v1::Gate& gate) {
  nlohmann::ordered_json session = {{"format", kSessionFormat}, {"level", level}};
  session["changes"] = nlohmann::json::array();
  for (const std::string& change : gate.changes()) session["changes"].push_back(change);
  return process::ReplaceFile(file, session.dump(2) + "\n");
}

int ExitCodeOf(v1::Gate::Decision decision) {
  switch (decision) {
    case v1::Gate::BETTER:
      return kSuccess;
    case v1::Gate::NOT_SHOWN:
      return kNotShown;
    case v1::Gate::WORSE:
      return kWorse;
    default:
      return kCannotSay;
  }
}

const char* NameOf(v1::Gate::Decision decision) {
  constexpr const char* kNames[] = {"better", "not shown", "worse", "cannot say"};
  return kNames[ExitCodeOf(decision)];
}

}  // namespace

void AddGateOptions(Command* command, GateOptions* options) {
  command->Flag(&options->looks, "--looks",
                "Keep the error rate although the gate is asked again after each new seed");
  command->Option(
      &options->session, "--session", "FILE",
      "Judge changes against a moving baseline, and remember them in FILE: all together "
      "keep one without effect in 5 % of sessions at most");
  command->Option(&options->level, "--level", "LEVEL",
                  "Error rate of the gate, above 0 and at most 0.05 [0.05]");
  command->Flag(&options->next, "--next",
                "Print only the setting that deserves the next seed, or nothing");
}

absl::StatusOr<v1::GateRequest> MakeGateRequest(const GateOptions& options) {
  v1::GateRequest request;
  request.set_looks(options.looks);
  if (options.level.has_value()) request.set_level(*options.level);
  if (options.session.empty()) return request;
  request.set_session(true);
  RETURN_IF_ERROR(ReadSession(options.session, &request));
  return request;
}

absl::StatusOr<int> PrintGate(const v1::Comparison& comparison, const GateOptions& options,
                              bool json, const Context& context) {
  if (!comparison.has_gate()) {
    return absl::FailedPreconditionError("the server is older than this client, and has no gate");
  }
  const v1::Gate& gate = comparison.gate();
  if (!options.session.empty()) {
    ASSIGN_OR_RETURN(const v1::GateRequest request, MakeGateRequest(options));
    const bool same =
        request.changes_size() <= gate.changes_size() &&
        std::equal(request.changes().begin(), request.changes().end(), gate.changes().begin());
    if (!same) {
      return absl::AbortedError(absl::StrCat("--session: ", options.session,
                                             " was changed meanwhile; run the command again"));
    }
    constexpr double kLevel = 0.05;
    RETURN_IF_ERROR(
        WriteSession(options.session, request.has_level() ? request.level() : kLevel, gate));
  }
  const Console& console = context.console;
  if (json) {
    PrintJson(context, comparison);
  } else if (options.next) {
    if (!gate.next().empty()) *console.out << gate.next() << "\n";
  } else {
    const std::string text =
        absl::StrCat(comparison.text(), "gate: ", NameOf(gate.decision()), ". ", gate.text(), "\n");
    *console.out << (console.out_is_terminal ? WrapProse(text, console.width) : text);
  }
  return ExitCodeOf(gate.decision());
}

int RunGate(const Context& context,
            absl::FunctionRef<absl::StatusOr<int>(Connection* connection)> run) {
  // Only a personal server is missed before the first call. If it can't be started, the call fails.
  if (absl::IsUnavailable(Connect(context).status())) StartServer(context);
  return CallServer(context, [&](Connection* connection) -> absl::StatusOr<int> {
    const absl::StatusOr<int> code = run(connection);
    if (code.ok()) return *code;
    const int failure = Fail(context, code.status());
    return failure == kFailure ? kBadData : failure;
  });
}

}  // namespace ablate::client
