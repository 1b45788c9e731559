// Runs a personal server of the real programs in a temporary folder, for end-to-end and fault
// tests.
#ifndef ABLATE_TESTS_E2E_PERSONAL_SERVER_H_
#define ABLATE_TESTS_E2E_PERSONAL_SERVER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace ablate::e2e {

struct Output {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs programs of build/bin with ABLATE_HOME set to a folder of its own; the destructor stops the
// server and kills what is left of it, by process id.
class PersonalServer {
 public:
  // `name` names its folder.
  explicit PersonalServer(const std::string& name = "home");
  ~PersonalServer();
  PersonalServer(const PersonalServer&) = delete;
  PersonalServer& operator=(const PersonalServer&) = delete;

  const std::string& home() const { return home_; }
  // Runs `ablate` with these arguments; `input` is its standard input.
  Output Ablate(const std::vector<std::string>& arguments, const std::string& input = "") const;
  // Like Ablate, and expects exit code 0 and JSON on standard output.
  nlohmann::json Json(const std::vector<std::string>& arguments,
                      const std::string& input = "") const;
  // Runs `ablate up` with these further arguments and expects success.
  void Up(const std::vector<std::string>& arguments = {});

  // Return the process ids of the server, of the worker that trains and of the one for analyses, or
  // 0.
  int ServerPid() const;
  int WorkerPid() const;
  int AnalystPid() const;
  // Returns true if the process exists and has not ended.
  static bool Lives(int pid);
  // Sends SIGKILL and waits until the process is gone.
  static void Kill(int pid);

 private:
  std::string root_;
  std::string home_;
};

// Calls `condition` until it is true or a minute has passed; sleeps between calls.
bool Eventually(const std::function<bool()>& condition);

// Runs a program to its end, in the source folder. `environment` is added to ours.
Output RunProgram(const std::vector<std::string>& command, const std::string& input,
                  const std::map<std::string, std::string>& environment);

// Returns the text of a file; fails the test if it can't be read.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& text);

// Returns a small names experiment as YAML, with `rest` added as it is.
std::string SmallNames(const std::string& name, int steps, const std::string& rest);

// Submits one such run, which ends in no test; returns experiments/ID.
std::string SubmitEndlessRun(const PersonalServer& server, const std::string& name);

}  // namespace ablate::e2e

#endif  // ABLATE_TESTS_E2E_PERSONAL_SERVER_H_
