// Recognises files that ablate wrote itself by their first bytes: a command that is run again
// replaces them, and no others.
#ifndef ABLATE_CLIENT_OUTPUT_OWN_FILE_H_
#define ABLATE_CLIENT_OUTPUT_OWN_FILE_H_

#include <string>

#include "client/output/part_file.h"

namespace ablate::client {

enum class FileKind { kSvg, kPdf, kPng, kPage, kArrays };

// Returns kReplace if `force`, or if the file at `path` is empty or a file of ours of this kind;
// otherwise kRefuse. PNG files have no mark: each counts as ours.
IfExists ReplaceOwn(const std::string& path, FileKind kind, bool force);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_OWN_FILE_H_
