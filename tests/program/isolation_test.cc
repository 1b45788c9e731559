// Tests that a program in the sandbox sees and changes only its own things.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class IsolationTest : public RunTest {
 protected:
  // Returns the lines of the script's log that aren't "denied".
  std::string Allowed(const std::string& script) const {
    const Output output = RunToEnd(
        Shell(absl::StrCat("try() { if \"$@\" 2>/dev/null; then echo \"allowed: $*\"; fi; }\n",
                           "append() { echo x >>\"$1\"; }\n", script)));
    EXPECT_TRUE(output.ended.has_value());
    return output.log;
  }
};

TEST_F(IsolationTest, HidesOtherFilesOfTheHost) {
  const std::string secret = folder_.Write("secret", "x");
  EXPECT_EQ(Allowed(absl::StrCat(
                "try cat ", secret, "; try ls ", folder_.path(),
                "; try ls /root; try ls /home; try ls /var; try cat /etc/shadow\n"
                "try ls /etc/ssh; try ls /etc/ssl/private; try ls /sys; try ls /run; true")),
            "");
}

TEST_F(IsolationTest, KeepsSystemFoldersReadOnly) {
  EXPECT_EQ(Allowed("try append /usr/x; try append /etc/passwd; try append /x; try append /dev/x\n"
                    "try append /bin/x; try append /proc/sys/kernel/core_pattern\n"
                    "try append /proc/sysrq-trigger; try append /proc/1/oom_score_adj/x; true"),
            "");
}

TEST_F(IsolationTest, LetsTheProgramWriteItsFolderAndMemoryFolders) {
  EXPECT_EQ(
      Allowed("try append /program/a; try append /tmp/b; try append /dev/shm/c; echo >/dev/null"),
      "allowed: append /program/a\nallowed: append /tmp/b\nallowed: append /dev/shm/c\n");
}

TEST_F(IsolationTest, GivesNoCapabilitiesAndNoNamespaces) {
  EXPECT_EQ(Allowed("grep Cap /proc/self/status | grep -v 0000000000000000\n"
                    "grep NoNewPrivs:.0 /proc/self/status; try unshare -U true\n"
                    "try unshare -m true; try mount -t tmpfs x /tmp; true"),
            "");
}

TEST_F(IsolationTest, HidesOtherProcesses) {
  EXPECT_EQ(Allowed(absl::StrCat("try test -e /proc/", getpid(), "\nset -- /proc/[0-9]*; echo $#")),
            "2\n")
      << "its first process and the shell";
}

TEST_F(IsolationTest, HasNoNetwork) {
  const process::FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  Request request =
      Command({"bash", "-c", absl::StrCat("exec 9<>/dev/tcp/127.0.0.1/", ntohs(address.sin_port))});
  const Output inside = RunToEnd(request);
  EXPECT_FALSE(inside.ended->ok());
  EXPECT_THAT(inside.log, HasSubstr("refused"));
  request.sandboxed = false;
  EXPECT_TRUE(RunToEnd(request).ended->ok()) << "the command itself works";
}

TEST_F(IsolationTest, MountsDataAndHelpersReadOnly) {
  std::filesystem::create_directories(folder_ / "sets/set");
  std::filesystem::create_directory(folder_ / "modules");
  folder_.Write("sets/set/text", "words\n");
  folder_.Write("modules/helper.py", "x = 1\n");
  Request request = Shell(
      "cat /ablate-data/text /ablate/helper.py; echo $PYTHONPATH; ls /ablate-data\n"
      "echo >/ablate-data/text; echo >/ablate/new; echo >/ablate-data/new; true");
  request.data = folder_ / "sets/set";
  request.helpers = folder_ / "modules";
  request.variables["PYTHONPATH"] = "/program/lib";
  EXPECT_THAT(RunToEnd(request).log,
              ::testing::StartsWith("words\nx = 1\n/ablate:/program/lib\ntext\n"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "sets/set/text"), 6u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sets/set/new"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "modules/new"));
}

TEST_F(IsolationTest, BindsDevices) {
  Request request = Shell("test -c /dev/kmsg && test -d /sys/class && ls -l /dev/kmsg");
  if (!std::filesystem::exists("/dev/kmsg")) GTEST_SKIP() << "no /dev/kmsg";
  EXPECT_FALSE(RunToEnd(request).ended->ok());
  request.devices = {"/dev/kmsg"};
  EXPECT_TRUE(RunToEnd(request).ended->ok());
}

TEST(SandboxTest, ExplainsErrors) {
  EXPECT_THAT(ExplainSandboxError("bwrap: setting up uid map: Permission denied\n"),
              HasSubstr("AppArmor profile bwrap-userns-restrict"));
  EXPECT_THAT(ExplainSandboxError("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"),
              HasSubstr("AppArmor"));
  EXPECT_THAT(ExplainSandboxError("bwrap: Unknown option --disable-userns"), HasSubstr("0.8.0"));
  EXPECT_THAT(ExplainSandboxError(""), HasSubstr("without a message"));
}

}  // namespace
}  // namespace ablate::program
