// Completes a command line: which words may stand in the place of the last one.
#ifndef ABLATE_CLIENT_COMPLETION_COMPLETE_H_
#define ABLATE_CLIENT_COMPLETION_COMPLETE_H_

#include <string>
#include <vector>

#include "client/context.h"

namespace CLI {
class App;
}

namespace ablate::client {

// The first argument of the program by which the scripts of `ablate completion` ask; no help has
// it. `ablate __complete WORD...` has the words after the program's name, of which the last, which
// may be empty, is being typed.
inline constexpr char kCompleteCommand[] = "__complete";

// Prints the answer for such words. Its first line says what the shell does:
//   words    it offers the words of the further lines, WORD<tab>HELP each
//   nospace  the same; a word that is chosen may be typed further
//   files    it offers files, and there are no further lines; folders: it offers folders
void PrintCompletions(const CLI::App& root, const std::vector<std::string>& words,
                      const Context& context);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMPLETION_COMPLETE_H_
