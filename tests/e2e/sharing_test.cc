// Tests a shared server with the real programs: a server machine, and users' laptops.
#include <fcntl.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/spawn.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"
#include "tests/test_folder.h"

namespace ablate::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A process of ablate-worker; ended by its id.
class WorkerProgram {
 public:
  WorkerProgram(const std::vector<std::string>& arguments, const std::string& log_file) {
    const process::FileDescriptor log(
        open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const int error = process::SpawnDetached(std::string(ABLATE_BIN) + "/ablate-worker", arguments,
                                             process::OwnEnvironment(), log.get(), &pid_);
    EXPECT_EQ(error, 0);
  }
  ~WorkerProgram() {
    PersonalServer::Kill(pid_);
    waitpid(pid_, nullptr, 0);
  }
  WorkerProgram(const WorkerProgram&) = delete;
  WorkerProgram& operator=(const WorkerProgram&) = delete;
  int pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// A worker process that reaches the server by a join file.
class RemoteWorker : public WorkerProgram {
 public:
  RemoteWorker(const std::string& join, const std::string& log_file)
      : WorkerProgram({"--join", join, "--lanes", "1"}, log_file) {}
};

class SharingTest : public ::testing::Test {
 protected:
  // Starts the server, initialised and listening on a free port.
  void SetUp() override {
    box_.Up();
    const Output made = box_.Ablate({"admin", "init", "localhost:7443", "-o", File("admin.join")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
    Listen();
  }

  void Listen(const std::vector<std::string>& more = {}) {
    const std::string path = box_.home() + "/log/ablated.log";
    // An earlier start has written a port, too, and `up` may return before this one has.
    const size_t begin = std::filesystem::exists(path) ? ReadFile(path).size() : 0;
    std::vector<std::string> arguments = {"--listen", "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    box_.Up(arguments);
    const std::string before = "serving others on 127.0.0.1:0, port ";
    std::string log;
    size_t at = std::string::npos;
    ASSERT_TRUE(Eventually([&] {
      log = ReadFile(path);
      at = log.find(before, begin);
      return log.find('\n', at) != std::string::npos && at != std::string::npos;
    })) << log;
    address_ = "localhost:" + std::to_string(std::stoi(log.substr(at + before.size())));
  }

  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }

  // Runs a command on a user's laptop, which has no server.
  Output On(const std::string& laptop, std::vector<std::string> arguments,
            const std::string& input = "") const {
    arguments.insert(arguments.begin(), std::string(ABLATE_BIN) + "/ablate");
    return RunProgram(arguments, input,
                      {{"HOME", File(laptop)},
                       {"XDG_CONFIG_HOME", File(laptop)},
                       {"ABLATE_HOME", File(laptop) + "/none"}});
  }

  // Adds a user and logs in on a laptop of that name.
  void Join(const std::string& user, const std::string& role = "member") {
    const std::string join = File(user + ".join");
    const Output added = box_.Ablate({"admin", "user", "add", user, "--role", role, "-o", join});
    ASSERT_EQ(added.exit_code, 0) << added.err;
    const Output in = On(user, {"login", address_, "--join", join, "--name", "box"});
    ASSERT_EQ(in.exit_code, 0) << in.err;
    EXPECT_THAT(in.err, HasSubstr("logged in to box (" + address_ + ") as " + user));
  }

  const TestFolder folder_;
  PersonalServer box_;
  std::string address_;
};

TEST_F(SharingTest, AColleagueSubmitsFromElsewhere) {
  Join("ada");
  Join("bob");
  const Output submitted =
      On("ada", {"submit", "-", "--wait"}, SmallNames("hers", 40, "seeds: {list: [1]}\n"));
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(On("ada", {"show", "hers"}).out, HasSubstr("hers-"));
  EXPECT_EQ(On("ada", {"report", "hers", "-o", File("hers.html")}).exit_code, 0);
  const Output removed = On("bob", {"rm", "hers", "--yes"});
  EXPECT_EQ(removed.exit_code, 1);
  EXPECT_THAT(removed.err, HasSubstr("is ada's: only ada or an admin may change it"));
  EXPECT_EQ(On("ada", {"rm", "hers", "--yes"}).exit_code, 0);
  EXPECT_THAT(box_.Ablate({"admin", "audit"}).out,
              AllOf(HasSubstr("Experiments.DeleteExperiment"), HasSubstr("PERMISSION_DENIED")));
}

TEST_F(SharingTest, SaysThatRunsWaitForAQuotasLanes) {
  Join("ada");
  ASSERT_EQ(box_.Ablate({"admin", "quota", "set", "ada", "--lanes", "1"}).exit_code, 0);
  ASSERT_EQ(
      On("ada", {"submit", "-"}, SmallNames("long", 1'000'000, "seeds: {count: 3}\n")).exit_code,
      0);
  EXPECT_TRUE(Eventually([&] {
    const std::string shown = On("ada", {"show", "long"}).out;
    return shown.find("queued runs wait for lanes: 1 of 1 of ada's quota are in use\n") !=
           std::string::npos;
  }));
  EXPECT_EQ(On("ada", {"cancel", "long"}).exit_code, 0);
  EXPECT_THAT(On("ada", {"show", "long"}).out, Not(HasSubstr("wait for lanes")));
}

// Returns the numbers of all points of an experiment, by cell, key and step.
std::string Points(const PersonalServer& server, const std::string& experiment) {
  const Output points = server.Ablate({"metrics", experiment, "--csv"});
  EXPECT_EQ(points.exit_code, 0) << points.err;
  return points.out;
}

TEST_F(SharingTest, AWorkerElsewhereTrainsThroughEverythingThatBreaks) {
  const std::string join = File("gpu2.join");
  ASSERT_EQ(box_.Ablate({"admin", "user", "add", "gpu2", "--role", "worker", "-o", join}).exit_code,
            0);
  // As by an owner who reaches the server through a tunnel.
  nlohmann::json file = nlohmann::json::parse(ReadFile(join));
  file["address"] = address_;
  WriteFile(join, file.dump());
  const std::vector<std::string> submit = {"submit",         "-",     "--json",           "--set",
                                           "model.width=64", "--set", "training.batch=16"};
  const std::string yaml = SmallNames("spread", 2000, "seeds: {count: 8}\n");
  RemoteWorker first(join, File("first.log"));
  const auto attached = [&](const std::string& log) {
    return Eventually([&] { return ReadFile(File(log)).find("attached") != std::string::npos; });
  };
  ASSERT_TRUE(attached("first.log"));
  const std::string experiment = box_.Json(submit, yaml)["experiment"]["name"];
  const auto running = [&](const std::string& worker) {
    const nlohmann::json listed = box_.Json({"workers", "--json"});
    for (const auto& row : listed["workers"]) {
      if (row["name"] == worker) return row.value("runs", nlohmann::json::array()).size() > 0;
    }
    return false;
  };
  ASSERT_TRUE(Eventually([&] { return running("workers/cpu-train@gpu2"); }))
      << box_.Ablate({"workers", "--json"}).out << ReadFile(File("first.log"))
      << box_.Ablate({"ls"}).out;
  PersonalServer::Kill(first.pid());
  RemoteWorker second(join, File("second.log"));
  ASSERT_TRUE(attached("second.log"));
  const std::string port = address_.substr(address_.find(':') + 1);
  PersonalServer::Kill(box_.ServerPid());
  box_.Up({"--listen", "127.0.0.1:" + port});
  ASSERT_EQ(box_.Ablate({"wait", experiment}).exit_code, 0);
  EXPECT_TRUE(PersonalServer::Lives(second.pid())) << ReadFile(File("second.log"));
  std::string history;
  for (int seed = 0; seed < 8; ++seed) {
    history += box_.Ablate({"logs", experiment + "/s" + std::to_string(seed)}).out;
  }
  EXPECT_THAT(history, HasSubstr("cpu-train@gpu2"));

  PersonalServer alone("alone");
  alone.Up();
  alone.Json(submit, yaml);
  ASSERT_EQ(alone.Ablate({"wait", "spread"}).exit_code, 0);
  EXPECT_EQ(Points(box_, "spread"), Points(alone, "spread")) << "the same, bit for bit";
}

TEST_F(SharingTest, AWorkerWithoutARouteTrainsThroughARelay) {
  ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
  Listen({"--lanes", "1"});
  const std::string join = File("node.join"), reached = File("reached.join");
  ASSERT_EQ(box_.Ablate({"admin", "user", "add", "node", "--role", "worker", "-o", join}).exit_code,
            0);
  // The server isn't at the address in the worker's file, localhost:7443.
  nlohmann::json file = nlohmann::json::parse(ReadFile(join));
  file["address"] = address_;
  std::filesystem::copy_file(join, reached);  // with its mode
  WriteFile(reached, file.dump());
  const WorkerProgram relay({"relay", "--listen", "127.0.0.1:0", "--join", reached},
                            File("relay.log"));
  const std::string before = "relaying 127.0.0.1:";
  std::string log;
  ASSERT_TRUE(Eventually([&] {
    log = ReadFile(File("relay.log"));
    return log.find(" to " + address_ + "\n") != std::string::npos;
  })) << log;
  const std::string port = std::to_string(std::stoi(log.substr(log.find(before) + before.size())));
  const WorkerProgram worker({"--join", join, "--through", "127.0.0.1:" + port, "--lanes", "1"},
                             File("worker.log"));
  ASSERT_TRUE(Eventually([&] {
    return ReadFile(File("worker.log")).find("attached") != std::string::npos;
  })) << ReadFile(File("worker.log"))
      << ReadFile(File("relay.log"));
  // Another name than the certificate's, as of a server that pretends to be ours.
  const std::string misled = File("misled.join");
  std::filesystem::copy_file(join, misled);
  file["server_name"] = "other.example.org";
  WriteFile(misled, file.dump());
  const WorkerProgram refused({"--join", misled, "--through", "127.0.0.1:" + port},
                              File("refused.log"));
  EXPECT_TRUE(Eventually([&] {
    return ReadFile(File("refused.log")).find("is not for other.example.org") != std::string::npos;
  })) << ReadFile(File("refused.log"));
  const Output trained =
      box_.Ablate({"submit", "-", "--wait"}, SmallNames("relayed", 400, "seeds: {count: 6}\n"));
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  std::string history;
  for (int seed = 0; seed < 6; ++seed) {
    history += box_.Ablate({"logs", "relayed/s" + std::to_string(seed)}).out;
  }
  EXPECT_THAT(history, HasSubstr("cpu-train@node"));
  const auto logged = [&](const std::string& text) {
    return Eventually([&] { return ReadFile(File("worker.log")).find(text) != std::string::npos; });
  };
  ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
  EXPECT_TRUE(logged("127.0.0.1:" + port + " is a relay (--through): its log may have the reason"))
      << ReadFile(File("worker.log"));
  EXPECT_THAT(ReadFile(File("relay.log")), HasSubstr("can't reach " + address_ + ": "));
}

TEST_F(SharingTest, WhatIsPrivateIsNotThereForAColleague) {
  Join("ada");
  Join("bob");
  const std::string spec = SmallNames("secret", 40, "seeds: {list: [1]}\n");
  const Output submitted = On("ada", {"submit", "-", "--private", "--wait"}, spec);
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(submitted.out, HasSubstr("   private\n"));
  const std::string id = submitted.out.substr(0, submitted.out.find(' '));
  EXPECT_THAT(On("ada", {"ls"}).out, AllOf(HasSubstr(id), HasSubstr("ada, private")));
  EXPECT_THAT(On("ada", {"data", "ls"}).out, HasSubstr("ada, private"));
  EXPECT_EQ(On("ada", {"compare", id}).exit_code, 0);
  EXPECT_THAT(On("bob", {"show", id}).err, HasSubstr("there is no experiment"));
  EXPECT_EQ(On("bob", {"ls"}).out, "");
  EXPECT_THAT(On("bob", {"data", "ls"}).out, Not(HasSubstr("ada")));
  EXPECT_THAT(box_.Ablate({"show", id}).out, HasSubstr("by ada, private"));
  const Output his = On("bob", {"submit", "-", "--json"}, spec);
  ASSERT_EQ(his.exit_code, 0) << his.err;
  EXPECT_EQ(nlohmann::json::parse(his.out)["reused"], 0) << "and with bytes of his own";
  EXPECT_THAT(On("bob", {"data", "ls"}).out, HasSubstr("bob"));
}

TEST_F(SharingTest, ATokenThatIsRevokedEndsAtOnceAndStaysSo) {
  Join("ada");
  const nlohmann::json who = nlohmann::json::parse(On("ada", {"whoami", "--json"}).out);
  const std::string token = who["token"];
  ASSERT_EQ(box_.Ablate({"admin", "token", "revoke", token}).exit_code, 0);
  EXPECT_THAT(On("ada", {"ls"}).err, HasSubstr("revoked"));
  PersonalServer::Kill(box_.ServerPid());
  Listen();
  const Output again = On("ada", {"login", address_, "--join", File("ada.join")});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("revoked"));
}

TEST_F(SharingTest, SaysWhyTheServerIsNotReached) {
  Join("ada");
  const std::string file = File("ada") + "/ablate/servers/box.json";
  const nlohmann::json fine = nlohmann::json::parse(ReadFile(file));
  nlohmann::json other = fine;
  other["server_name"] = "other.example.org";
  WriteFile(file, other.dump());
  const Output misnamed = On("ada", {"ls"});
  EXPECT_EQ(misnamed.exit_code, 69);
  EXPECT_THAT(misnamed.err, HasSubstr("its certificate is not for other.example.org, only for "));
  const RemoteWorker worker(file, File("worker.log"));
  EXPECT_TRUE(Eventually([&] {
    return ReadFile(File("worker.log")).find("is not for other.example.org") != std::string::npos;
  })) << ReadFile(File("worker.log"));
  const Output renewed = box_.Ablate({"admin", "renew", "--host", "other.example.org"});
  EXPECT_EQ(renewed.exit_code, 0) << renewed.err;
  EXPECT_EQ(On("ada", {"ls"}).exit_code, 0) << "without a restart";
  WriteFile(file, fine.dump());
  ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
  EXPECT_THAT(On("ada", {"ls"}).err, HasSubstr("nobody listens at " + address_));
}

TEST_F(SharingTest, NoOtherServerIsTrusted) {
  Join("ada");
  // Another authority, as an attacker in between would have.
  ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
  for (const char* file : {"tls", "shared-address", "access.db", "access.db-wal"}) {
    std::filesystem::remove_all(box_.home() + "/" + file);
  }
  box_.Up();
  const std::string port = address_.substr(address_.find(':') + 1);
  ASSERT_EQ(box_.Ablate({"admin", "init", address_, "-o", File("other.join")}).exit_code, 0);
  ASSERT_EQ(box_.Ablate({"down"}).exit_code, 0);
  box_.Up({"--listen", "127.0.0.1:" + port});
  const Output refused = On("ada", {"ls"});
  EXPECT_EQ(refused.exit_code, 69);
  EXPECT_THAT(refused.err, HasSubstr("is not by the authority of the join file"));
}

TEST_F(SharingTest, SecretsAreTheirOwnersAlone) {
  Join("ada");
  const std::string secret =
      nlohmann::json::parse(ReadFile(File("ada.join")))["token"].get<std::string>();
  ASSERT_THAT(secret, StartsWith("ablate_"));
  namespace fs = std::filesystem;
  for (const auto& entry : fs::recursive_directory_iterator(box_.home())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_THAT(bytes, Not(HasSubstr(secret))) << entry.path();
  }
  const auto others = fs::perms::group_all | fs::perms::others_all;
  for (const std::string& file : {File("ada.join"), File("ada") + "/ablate/servers/box.json",
                                  box_.home() + "/tls/authority.key",
                                  box_.home() + "/tls/server.key", box_.home() + "/access.db"}) {
    EXPECT_EQ(fs::status(file).permissions() & others, fs::perms::none) << file;
  }
}

TEST(UnsharedServerTest, LooksAtTheJoinFileBeforeAnythingIsMade) {
  PersonalServer box;
  const TestFolder folder;
  const std::string file = folder.path() + "/admin.join";
  WriteFile(file, "another's");
  box.Up();
  const Output refused = box.Ablate({"admin", "init", "localhost:7443", "-o", file});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("exists already"));
  EXPECT_EQ(ReadFile(file), "another's");
  std::filesystem::remove(file);
  const Output made = box.Ablate({"admin", "init", "localhost:7443", "-o", file});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.err, StartsWith(file + ": token of the admin "));
}

TEST(UnsharedServerTest, ServesNoAddressWithoutCertificates) {
  const PersonalServer box;
  const Output up = box.Ablate({"up", "--listen", "127.0.0.1:0"});
  EXPECT_NE(up.exit_code, 0);
  EXPECT_THAT(up.err, HasSubstr("this server isn't shared yet. Run `ablate admin init HOST:PORT`"));
}

}  // namespace
}  // namespace ablate::e2e
