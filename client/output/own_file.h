// Files that ablate wrote itself, known again by how they begin: a command that is run once more
// refreshes them, and nothing else.
#ifndef ABLATE_CLIENT_OUTPUT_OWN_FILE_H_
#define ABLATE_CLIENT_OUTPUT_OWN_FILE_H_

#include <string>

#include "client/output/part_file.h"

namespace ablate::client {

enum class FileKind { kSvg, kPdf, kPng, kPage, kArrays };

// kReplace if `force`, or if the file at `path` is empty or of this kind and ours; else kRefuse. A
// PNG has no mark of ours: each is taken for one.
IfExists ReplaceOwn(const std::string& path, FileKind kind, bool force);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_OWN_FILE_H_
