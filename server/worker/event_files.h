// Reads the numbers that a program left in TensorBoard's event files.
#ifndef ABLATE_SERVER_WORKER_EVENT_FILES_H_
#define ABLATE_SERVER_WORKER_EVENT_FILES_H_

#include <string>

namespace ablate::worker {

// Returns the scalars of all event files below `folder` as lines for program::MetricLines, by
// ascending step. The key is the scalar's tag; if the files are in several folders, their path
// below `folder` stands before it, as TensorBoard names runs. The last value of a key and step
// counts. Follows no links. Skips truncated records, steps over
// 2³² − 1, and files beyond 20 MB in all.
//
// Formats: TensorFlow's TFRecord (length, checksum, data, checksum), which holds an Event
// (tensorflow/core/util/event.proto). Checksums aren't compared.
std::string ReadEventFiles(const std::string& folder);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_EVENT_FILES_H_
