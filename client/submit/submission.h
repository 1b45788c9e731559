// From a file and the command line to a request that the server understands, and from the server's
// problems back to the lines that cause them.
#ifndef ABLATE_CLIENT_SUBMIT_SUBMISSION_H_
#define ABLATE_CLIENT_SUBMIT_SUBMISSION_H_

#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/submit/experiment_file.h"

namespace ablate::client {

struct SubmitOptions {
  std::string file;
  std::vector<std::string> set;
  std::vector<std::string> data;  // files and folders outside the file's, which it may name
  std::string seeds;
  bool fresh = false;
  bool is_private = false;
  bool dry_run = false;
  bool wait = false;
  bool json = false;
};

struct Submission {
  ExperimentFile file;
  Overrides overrides;
  bool seeds_given = false;  // on the command line
};

// Reads the file and applies the command line; `file.problems` has what is wrong. INVALID_ARGUMENT
// if --seeds or --set makes no sense, whatever the file.
absl::StatusOr<Submission> ReadSubmission(const SubmitOptions& options, std::istream& in);

// Uploads the data sets that the submission names by a path, private ones if it is, and says which
// and how large before each.
// Problems with files are added to `file.problems`; other errors are returned.
absl::Status UploadDatasets(Connection* connection, const Context& context,
                            const SubmitOptions& options, Submission* submission);

// The same, but uploads nothing: data sets that the server lacks stay unread.
absl::Status FindDatasets(Connection* connection, const SubmitOptions& options,
                          Submission* submission);

// With a new request id unless it is a dry run.
v1::CreateExperimentRequest MakeRequest(const Submission& submission, const SubmitOptions& options);

// Overrides unread fields of base by values that no field takes, so that a dry run does not hold
// other fields against their defaults.
void MarkUnread(const ExperimentFile& file, v1::CreateExperimentRequest* request);

// The problems of the file and the server's, at their lines or at the option of the command line
// that causes them, each once. Left out is what the server finds only because a field is unread:
// problems of that field, of what is below or around it, and of the one that a misspelt one means.
std::vector<Diagnostic> Locate(const google::protobuf::RepeatedPtrField<v1::Problem>& problems,
                               const Submission& submission);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_SUBMISSION_H_
