// Brings an experiment file to the point at which it can be created, and prints its problems.
#ifndef ABLATE_CLIENT_SUBMIT_PREPARE_H_
#define ABLATE_CLIENT_SUBMIT_PREPARE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/submit/submission.h"

namespace ablate::client {

// A submission without problems of its own, whose data sets and files the server has.
struct ReadySubmission {
  Submission submission;
  std::unique_ptr<Connection> connection;
};

// Reads the file (ReadSubmission), connects and uploads. If there are problems, prints all that the
// file and the server have, and returns an exit code other than kSuccess.
int Prepare(const SubmitOptions& options, const v1::Experiment* stored, const Context& context,
            ReadySubmission* ready);

// Asks for a dry run of the request.
absl::StatusOr<v1::CreateExperimentResponse> Check(Connection* connection,
                                                   v1::CreateExperimentRequest request);

// Prints the problems of the file and, if it answered, of the server; returns the exit code.
int ReportAll(const Context& context, const Submission& submission,
              const absl::StatusOr<v1::CreateExperimentResponse>& checked);

// Prints why the server refused the request; returns the exit code. Asks again for all problems,
// because an error carries only a few.
int Explain(Connection* connection, const Context& context, const Submission& submission,
            const v1::CreateExperimentRequest& request, const absl::Status& refusal);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_PREPARE_H_
