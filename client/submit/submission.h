// Turns a file and the command line into a request, and maps problems that the server finds back to
// lines and options.
#ifndef ABLATE_CLIENT_SUBMIT_SUBMISSION_H_
#define ABLATE_CLIENT_SUBMIT_SUBMISSION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/submit/experiment_file.h"
#include "client/submit/shorten.h"

namespace ablate::client {

struct SubmitOptions {
  std::string file;    // empty: the stored spec of `again` or `extend`
  std::string again;   // experiment to submit again
  std::string extend;  // experiment to extend
  std::string name;    // in place of the file's
  std::vector<std::string> tags;
  std::string note;
  std::vector<std::string> set;
  std::vector<std::string> axes;
  std::vector<std::string> data;  // files and folders outside the file's, which it may name
  std::string seeds;
  std::optional<uint32_t> steps;  // to train; what lies beyond is left out
  bool fresh = false;
  bool is_private = false;
  bool dry_run = false;
  bool wait = false;
  bool json = false;
};

struct Submission {
  ExperimentFile file;
  std::string extends;               // experiments/ID
  std::vector<std::string> changes;  // of the file, by --seeds and --axis or earlier submissions
  Overrides overrides;
  bool seeds_given = false;         // on the command line
  bool name_given = false;          // likewise
  bool steps_given = false;         // likewise
  ShortenedSpec shortened;          // by --steps
  std::map<int, std::string> axes;  // options that gave axes their values, by index
};

// Reads the file and applies the command line. `file.problems` has the problems of the file.
// `stored` is the experiment of --again or --extend; its spec stands for a missing file. Null:
// neither is given. INVALID_ARGUMENT if --seeds, --set or --axis is invalid for any file.
absl::StatusOr<Submission> ReadSubmission(const SubmitOptions& options, std::istream& in,
                                          const v1::Experiment* stored = nullptr);

// Uploads the data sets that the submission names by a path, to be kept if an experiment uses them,
// as private ones if the submission is private, and prints name and size before each. Problems with
// files are added to `file.problems`; other errors are returned.
absl::Status UploadDatasets(Connection* connection, const Context& context,
                            const SubmitOptions& options, Submission* submission);

// Does the same without uploading: data sets that the server lacks stay unread.
absl::Status FindDatasets(Connection* connection, const Context& context,
                          const SubmitOptions& options, Submission* submission);

// Returns the request, with a new request id unless it is a dry run.
v1::CreateExperimentRequest MakeRequest(const Submission& submission, const SubmitOptions& options);

// Overrides unread fields of base by values that no field takes, so that a dry run doesn't check
// other fields against their defaults.
void MarkUnread(const ExperimentFile& file, v1::CreateExperimentRequest* request);

// Returns the problems of the file and of the server, each once, at their lines or at the options
// that cause them. Leaves out problems that the server finds only because a field is unread:
// problems of that field, of fields below or around it, and of the field that a misspelt one means.
std::vector<yaml::Diagnostic> Locate(
    const google::protobuf::RepeatedPtrField<v1::Problem>& problems, const Submission& submission);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_SUBMISSION_H_
