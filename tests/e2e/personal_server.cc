// Starts, calls, kills and cleans up the real programs.
#include "tests/e2e/personal_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "gtest/gtest.h"

extern char** environ;

namespace ablate::e2e {
namespace {

std::string NewFolder() {
  static std::atomic<int> counter{0};
  const std::string folder = ::testing::TempDir() + "ablate-e2e-" + std::to_string(::getpid()) +
                             "-" + std::to_string(counter++);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (added.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int ReadPid(const std::string& path) {
  std::ifstream file(path);
  int pid = 0;
  file >> pid;
  return pid > 0 && PersonalServer::Lives(pid) ? pid : 0;
}

}  // namespace

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    // Other processes can only be polled; sleep to leave the core to them.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Output RunProgram(const std::vector<std::string>& command, const std::string& input,
                  const std::map<std::string, std::string>& environment) {
  const std::string folder = NewFolder();
  WriteFile(folder + "/in", input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, (folder + "/in").c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (folder + "/out").c_str(), O_WRONLY | O_CREAT,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, 2, (folder + "/err").c_str(), O_WRONLY | O_CREAT,
                                   0600);
  // Experiments on standard input may read data sets from this folder only.
  posix_spawn_file_actions_addchdir_np(&actions, ABLATE_SOURCE);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = Environment(environment);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, command[0].c_str(), &actions, nullptr,
                                   Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failed, 0) << command[0];
  Output output;
  int status = 0;
  if (failed == 0 && ::waitpid(pid, &status, 0) == pid) {
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    output.out = ReadFile(folder + "/out");
    output.err = ReadFile(folder + "/err");
  }
  std::filesystem::remove_all(folder);
  return output;
}

PersonalServer::PersonalServer(const std::string& name)
    : root_(NewFolder()), home_(root_ + "/" + name) {}

PersonalServer::~PersonalServer() {
  const int server = ServerPid();
  if (server != 0) Ablate({"down"});
  Kill(ServerPid());
  Kill(WorkerPid());
  Kill(AnalystPid());
  std::filesystem::remove_all(root_);
}

Output PersonalServer::Ablate(const std::vector<std::string>& arguments,
                              const std::string& input) const {
  std::vector<std::string> command = {ABLATE_BIN "/ablate"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProgram(command, input, {{"ABLATE_HOME", home_}, {"ABLATE_SERVER", ""}});
}

nlohmann::json PersonalServer::Json(const std::vector<std::string>& arguments,
                                    const std::string& input) const {
  const Output output = Ablate(arguments, input);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  nlohmann::json parsed = nlohmann::json::parse(output.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << output.out;
  return parsed;
}

void PersonalServer::Up(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"up"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Output output = Ablate(command);
  ASSERT_EQ(output.exit_code, 0) << output.err << output.out;
}

int PersonalServer::ServerPid() const { return ReadPid(home_ + "/run/ablated.pid"); }
int PersonalServer::WorkerPid() const { return ReadPid(home_ + "/run/cpu-train.pid"); }
int PersonalServer::AnalystPid() const { return ReadPid(home_ + "/run/cpu-analysis.pid"); }

// A killed process that nobody has waited for is a zombie: it counts as gone.
bool PersonalServer::Lives(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end + 2, 1, "Z") != 0;
}

void PersonalServer::Kill(int pid) {
  if (pid <= 0 || ::kill(pid, SIGKILL) != 0) return;
  Eventually([pid] { return !Lives(pid); });
}

std::string SmallNames(const std::string& name, int steps, const std::string& rest) {
  return "name: " + name +
         "\n"
         "base:\n"
         "  task: {documents: {dataset: " ABLATE_SOURCE
         "/examples/data/names.txt, held_out: 100}}\n"
         "  model: {layers: 1, width: 16, heads: 2, context: 16}\n"
         "  training: {steps: " +
         std::to_string(steps) +
         ", batch: 2, checkpoints: [0, -1]}\n"
         "  evaluation: {every: 50}\n" +
         rest;
}

std::string SubmitEndlessRun(const PersonalServer& server, const std::string& name) {
  const std::string yaml = SmallNames(name, 10'000'000, "seeds: {count: 1}\n");
  return server.Json({"submit", "-", "--json"}, yaml)["experiment"]["name"];
}

}  // namespace ablate::e2e
