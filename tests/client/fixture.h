// Runs the program as a shell would: arguments in; exit code, output and messages out. The clock
// moves only when the program sleeps.
#ifndef ABLATE_TESTS_CLIENT_FIXTURE_H_
#define ABLATE_TESTS_CLIENT_FIXTURE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/join.pb.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/context.h"
#include "client/logins.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace ablate::client {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest();
  ~ClientTest() override;

  // Starts `server_` and lets the program find it.
  void StartServer();
  Outcome Run(const std::vector<std::string>& arguments, const std::string& input = "");
  // `arguments` with `more` at the end.
  static std::vector<std::string> With(std::vector<std::string> arguments,
                                       const std::vector<std::string>& more);
  // Writes a file in `folder_`; the result is its path.
  std::string Write(const std::string& name, absl::string_view text);
  static std::string Read(const std::string& path);
  // Ends each with every code that a server refuses with: in `result_`, which must be an answer's.
  void ExpectRefusals(const std::vector<std::vector<std::string>>& command_lines);

  // Returns ada's join file for the server `name`.
  static v1::JoinFile JoinOf(const std::string& name);
  // The servers that the program has logged in to.
  Logins Known() const { return *Logins::Of(Variables()); }
  // An experiment of one cell.
  void AnswerRun(const std::string& cell, const std::string& run);

  std::string folder_;  // of this test alone; removed at its end
  std::map<std::string, std::string> environment_;
  Console console_;  // its streams are set by Run
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration slept_;
  bool output_fails_ = false;  // as on a full disk
  bool real_clock_ = false;    // for processes, which know nothing of ours
  Answers answers_;
  absl::Status result_;             // of the answers that a test lets end so
  std::vector<std::string> asked_;  // the requests that a test notes
  std::unique_ptr<FakeServer> server_;

 private:
  Environment Variables() const;
};

}  // namespace ablate::client

#endif  // ABLATE_TESTS_CLIENT_FIXTURE_H_
