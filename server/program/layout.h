// Lays out the files that a program sees, and finds files in that layout.
#ifndef ABLATE_SERVER_PROGRAM_LAYOUT_H_
#define ABLATE_SERVER_PROGRAM_LAYOUT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/program/request.h"

namespace ablate::program {

// The program's paths in the sandbox.
inline constexpr char kWorkFolder[] =
    "/program";                                 // the run's folder, the only one on disk to write
inline constexpr char kDataFolder[] = "/data";  // Request::data by their names
inline constexpr char kHelperFolder[] = "/ablate";    // Request::helpers
inline constexpr char kLinkFolder[] = "/ablate-bin";  // python and python3, unless virtual

enum class Access { kRead, kWrite, kDevice };

struct Bind {
  std::string source;  // path on the host
  std::string target;  // path for the program
  Access access = Access::kRead;
};

struct Layout {
  std::vector<Bind> binds;                   // later ones cover earlier ones
  std::map<std::string, std::string> links;  // symbolic links that the sandbox makes, to their text
};

// Returns the layout in the sandbox: system folders, a few files of /etc, and the request's
// folders. Without /proc, /dev and /tmp, which the sandbox makes.
Layout SandboxLayout(const Request& request);

// Returns the layout without a sandbox: the host's files.
Layout HostLayout();

// Returns an error for a request that can't be laid out: INVALID_ARGUMENT if a field is malformed,
// FAILED_PRECONDITION, naming a folder, if a folder is missing or can't be entered.
absl::Status CheckRequest(const Request& request);

// Returns the host's path of the file that is at `path`, an absolute path, for the program. Follows
// symbolic links as the program would. Nothing if the program sees no file there.
std::optional<std::string> FindFile(const Layout& layout, const std::string& path);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_LAYOUT_H_
