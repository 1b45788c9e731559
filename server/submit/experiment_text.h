// Replaces the text of a submission by the spec that it stands for.
#ifndef ABLATE_SERVER_SUBMIT_EXPERIMENT_TEXT_H_
#define ABLATE_SERVER_SUBMIT_EXPERIMENT_TEXT_H_

#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "proto/yaml/source_text.h"
#include "server/config/problems.h"

namespace ablate::submit {

struct TakenText {
  std::vector<v1::Problem> problems;  // of the text, with their places
  std::vector<v1::NamedFile> files;   // that the request gives no data set for
  yaml::SourceMap positions;

  bool complete() const { return problems.empty() && files.empty(); }
};

// Reads the text into the request's spec, puts the request's seeds and name there, and replaces
// paths of data sets in the spec and in overrides, and shorthands. The text is cleared.
TakenText TakeText(v1::CreateExperimentRequest* request);

// Returns what is wrong as problems of an error, which has no places for them: messages say them.
std::vector<spec::Problem> ProblemsOf(const TakenText& text);

// Fills in the places of problems that are about fields of the text.
void Place(const TakenText& text, const v1::CreateExperimentRequest& request,
           google::protobuf::RepeatedPtrField<v1::Problem>* problems);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_EXPERIMENT_TEXT_H_
