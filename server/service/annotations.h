// Checks what people write about experiments: tags and notes.
#ifndef ABLATE_SERVER_SERVICE_ANNOTATIONS_H_
#define ABLATE_SERVER_SERVICE_ANNOTATIONS_H_

#include <string>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/config/problems.h"
#include "storage/records.h"

namespace ablate::service {

// Add a problem for each tag of `field`, or the note, that isn't valid.
void CheckTags(const std::string& field,
               const google::protobuf::RepeatedPtrField<std::string>& tags,
               spec::Problems* problems);
// The same for tags that are to be added: none may look like an option.
void CheckNewTags(const std::string& field,
                  const google::protobuf::RepeatedPtrField<std::string>& tags,
                  spec::Problems* problems);
void CheckNote(const std::string& note, spec::Problems* problems);

// Returns the changes that a request asks for. INVALID_ARGUMENT lists its problems.
absl::StatusOr<storage::ExperimentUpdate> ReadUpdate(const v1::UpdateExperimentRequest& request);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ANNOTATIONS_H_
