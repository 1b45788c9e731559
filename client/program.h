// The whole program but for main: so that tests can run it as a shell would.
#ifndef ABLATE_CLIENT_PROGRAM_H_
#define ABLATE_CLIENT_PROGRAM_H_

#include <string>
#include <vector>

#include "client/context.h"

namespace ablate::client {

// `arguments` without the program's name; the result is the exit code (context.h).
int RunProgram(const std::vector<std::string>& arguments, const Context& context);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PROGRAM_H_
