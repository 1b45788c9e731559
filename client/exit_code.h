// What the program tells the shell when it ends.
#ifndef ABLATE_CLIENT_EXIT_CODE_H_
#define ABLATE_CLIENT_EXIT_CODE_H_

namespace ablate::client {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;      // a problem with the request, or a run FAILED
inline constexpr int kCancelled = 2;    // what was waited for was cancelled
inline constexpr int kUsage = 64;       // EX_USAGE of sysexits.h
inline constexpr int kNoServer = 69;    // EX_UNAVAILABLE
inline constexpr int kWaitFailed = 70;  // EX_SOFTWARE: waiting failed, which says nothing of runs

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_EXIT_CODE_H_
