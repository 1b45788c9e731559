#include "client/submit/prepare.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/output/format.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

// Prints every problem on a line of its own, then how many there are; returns the exit code.
int ReportProblems(const Context& context, const std::string& file,
                   const std::vector<yaml::Diagnostic>& problems) {
  for (const yaml::Diagnostic& problem : problems) {
    context.console.Info(Printable(yaml::ToString(problem, file)));
  }
  context.console.Error(absl::StrCat(Count(problems.size(), "problem"), "; nothing was created"));
  return kFailure;
}

// For a file with problems of its own: nothing is uploaded.
absl::StatusOr<v1::CreateExperimentResponse> AskForTheRest(const Context& context,
                                                           const SubmitOptions& options,
                                                           Submission* submission) {
  ASSIGN_OR_RETURN(const auto connection, Connect(context));
  const size_t unread = submission->file.unread.size();
  RETURN_IF_ERROR(FindDatasets(connection.get(), context, options, submission));
  if (submission->file.unread.size() > unread) {
    context.console.Note(
        "the server lacks data sets of the file; fix the problems below to upload them and to "
        "check the fields that depend on them");
  }
  v1::CreateExperimentRequest request = MakeRequest(*submission, options);
  MarkUnread(submission->file, &request);
  return Check(connection.get(), std::move(request));
}

}  // namespace

int Prepare(const SubmitOptions& options, const v1::Experiment* stored, const Context& context,
            ReadySubmission* ready) {
  absl::StatusOr<Submission> submission = ReadSubmission(options, *context.console.in, stored);
  if (!submission.ok()) {
    context.console.Error(submission.status().message());
    return kUsage;
  }
  if (!submission->shortened.left_out.empty()) {
    context.console.Note(absl::StrCat("--steps ", *options.steps, " leaves out ",
                                      absl::StrJoin(submission->shortened.left_out, ", ")));
  }
  const ExperimentFile& file = submission->file;
  if (!file.readable) return ReportProblems(context, file.name, file.problems);
  if (!file.problems.empty()) {
    const auto checked = AskForTheRest(context, options, &*submission);
    return ReportAll(context, *submission, checked);
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect(context);
  if (!connection.ok()) return FailSettings(context, connection.status());
  const absl::Status uploaded = UploadDatasets(connection->get(), context, options, &*submission);
  if (!uploaded.ok()) return Fail(context, uploaded);
  if (!file.problems.empty()) {
    return ReportAll(context, *submission,
                     Check(connection->get(), MakeRequest(*submission, options)));
  }
  *ready = {*std::move(submission), *std::move(connection)};
  return kSuccess;
}

absl::StatusOr<v1::CreateExperimentResponse> Check(Connection* connection,
                                                   v1::CreateExperimentRequest request) {
  request.set_validate_only(true);
  request.clear_request_id();
  return connection->Call(kCreateExperiment, request);
}

int ReportAll(const Context& context, const Submission& submission,
              const absl::StatusOr<v1::CreateExperimentResponse>& checked) {
  const ExperimentFile& file = submission.file;
  if (checked.ok()) {
    return ReportProblems(context, file.name, Locate(checked->problems(), submission));
  }
  context.console.Note(absl::StrCat("the server could not be asked for further problems: ",
                                    checked.status().message()));
  return ReportProblems(context, file.name, file.problems);
}

int Explain(Connection* connection, const Context& context, const Submission& submission,
            const v1::CreateExperimentRequest& request, const absl::Status& refusal) {
  if (!absl::IsInvalidArgument(refusal)) return Fail(context, refusal);
  const auto checked = Check(connection, request);
  if (!checked.ok() || checked->problems().empty()) return Fail(context, refusal);
  return ReportAll(context, submission, checked);
}

}  // namespace ablate::client
