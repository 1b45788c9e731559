// Tests runs that a warm parent forks: they end like others, and are apart from others.
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <future>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/program/warm_start.h"
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kPython[] = "/usr/bin/python3";

class WarmTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    if (!std::filesystem::exists(kPython)) GTEST_SKIP() << "no " << kPython;
    const auto environment = DescribePython("test", kPython);
    ASSERT_TRUE(environment.ok()) << environment.status();
    environment_ = *environment;
    helpers_ = folder_ / "helpers";
    std::filesystem::create_directory(helpers_);
    std::filesystem::copy(WARM_START, absl::StrCat(helpers_, "/", kWarmStartFile));
  }

  // Returns a request for a script in a folder of its own.
  Request Python(const std::string& script) {
    Request request = Command({"python", "-c", script});
    request.folder = absl::StrCat(work_, "/", ++runs_);
    std::filesystem::create_directory(request.folder);
    request.environment = environment_;
    request.helpers = helpers_;
    return request;
  }
  std::unique_ptr<program::Run> Fork(Request request) {
    auto run = program::Run::Start(std::move(request), &pool_);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *std::move(run) : nullptr;
  }
  Output ForkToEnd(Request request) { return AwaitEnd(Fork(std::move(request)).get()); }

  Environment environment_;
  std::string helpers_;
  WarmPool pool_;
  int runs_ = 0;
};

TEST_F(WarmTest, EndsAsAColdRunDoes) {
  for (const char* script :
       {"print('all', 'right')", "import sys; sys.exit(3)", "import sys; sys.exit('why')", "1/0",
        "import os; os.kill(os.getpid(), 11)", "import os; os._exit(7)", "this isn't Python",
        "import atexit; atexit.register(print, 'bye'); print('hello', end='')",
        "import threading; threading.Timer(0.05, print, ['late']).start()"}) {
    const Output cold = RunToEnd(Python(script)), warm = ForkToEnd(Python(script));
    EXPECT_EQ(warm.log, cold.log) << script;
    EXPECT_EQ(warm.ended->reason, cold.ended->reason) << script;
    EXPECT_EQ(warm.ended->exit_code, cold.ended->exit_code) << script;
    EXPECT_EQ(warm.ended->signal, cold.ended->signal) << script;
  }
}

TEST_F(WarmTest, SeesOnlyItsOwnFilesAndProcesses) {
  const auto other =
      Fork(Python("import time\nopen('secret', 'w').close()\n"
                  "open('/tmp/secret', 'w').close()\n"
                  "print('ready', flush=True)\ntime.sleep(100)"));
  AwaitLog(other.get(), "ready");
  const Output output = ForkToEnd(
      Python("import os\n"
             "print(os.getcwd(), os.listdir('/program'), os.listdir('/program/..')[:0], "
             "os.listdir('/tmp'))\n"
             "print(sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit()))\n"
             "for path in ('/proc/1/cwd', '/proc/1/root', '/proc/1/environ'):\n"
             "    try: print(os.listdir(path) if path[-3:] != 'ron' else open(path).read())\n"
             "    except OSError as error: print(error.strerror)\n"));
  EXPECT_EQ(output.log,
            "/program [] [] []\n[1, 2]\nPermission denied\nPermission denied\nPermission "
            "denied\n");
}

TEST_F(WarmTest, SeesOnlyItsOwnData) {
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder_ / absl::StrCat("sets/", name));
    folder_.Write(absl::StrCat("sets/", name, "/text"), name);
  }
  const auto with_data = [&](const std::string& name) {
    Request request = Python(
        "import os\nprint(os.listdir('/ablate-data'), *(open('/ablate-data/' + n).read() for n in "
        "os.listdir('/ablate-data')))\ntry: open('/ablate-data/text', 'w')\nexcept OSError as "
        "error: "
        "print(error.strerror)");
    request.data_root = folder_ / "sets";
    if (!name.empty()) request.data = folder_ / absl::StrCat("sets/", name);
    EXPECT_TRUE(MayFork(request));
    return ForkToEnd(request).log;
  };
  EXPECT_EQ(with_data("a"), "['text'] a\nRead-only file system\n");
  EXPECT_EQ(with_data("b"), "['text'] b\nRead-only file system\n");
  EXPECT_EQ(with_data(""), "[]\nRead-only file system\n");
  Request elsewhere = Python("1");
  elsewhere.data = folder_ / "sets/a";
  elsewhere.data_root = folder_ / "other";
  EXPECT_FALSE(MayFork(elsewhere));
}

TEST_F(WarmTest, HasNoRights) {
  const Output output = ForkToEnd(
      Python("import ctypes, os, socket\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "print(libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None), libc.unshare(1 << 28), "
             "libc.umount2(b'/program', 2))\n"
             "for path in ('/usr/x', '/ablate/x', '/x', '/proc/sys/kernel/core_pattern', "
             "'/proc/irq/default_smp_affinity'):\n"
             "    try: open(path, 'a').write('x'); print('wrote', path)\n"
             "    except OSError as error: print(error.strerror)\n"
             "try: socket.create_connection(('127.0.0.1', 22), 1); print('connected')\n"
             "except OSError: print('no network')\n"));
  EXPECT_EQ(output.log,
            "-1 -1 -1\nRead-only file system\nRead-only file system\nRead-only file "
            "system\nRead-only file system\nRead-only file system\nno network\n");
}

TEST_F(WarmTest, SharesNoNetworkMemoryOrTerminalsWithOthers) {
  const std::string script =
      "import ctypes, os, socket, time\n"
      "server = socket.create_server(('127.0.0.1', 29500)); socket.create_connection(('127.0.0.1', "
      "29500)); print('bound')\n"
      "libc = ctypes.CDLL(None)\n"
      "print(libc.shmget(77, 4096, 0), libc.shmget(77, 4096, 0o1600) >= 0)\n"
      "print(os.listdir('/dev/pts'), os.ttyname(os.openpty()[1]), flush=True)\n";
  const std::string expected = "bound\n-1 True\n['ptmx'] /dev/pts/0\n";
  const auto other = Fork(Python(script + "time.sleep(100)"));
  AwaitLog(other.get(), "/dev/pts/0");
  EXPECT_EQ(ForkToEnd(Python(script)).log, expected);
}

TEST_F(WarmTest, HasAKeyringOfItsOwn) {
  const std::string script =
      "import ctypes\nlibc = ctypes.CDLL(None)\n"
      "add, search = 248, 10\n"
      "print(libc.syscall(250, search, -3, b'user', b'ablate-test', 0), "
      "libc.syscall(add, b'user', b'ablate-test', b'secret', 6, -3) > 0)";
#ifndef __x86_64__
  GTEST_SKIP() << "the numbers are those of x86_64";
#endif
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ForkToEnd(Python(script)).log, "-1 True\n");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(RunToEnd(Python(script)).log, "-1 True\n");
}

TEST_F(WarmTest, EndsWhatARunLeavesBehind) {
  Request request = Python(
      "import os, time\n"
      "for _ in range(5):\n"
      "    if os.fork() == 0:\n"
      "        os.setsid()\n"
      "        while True:\n"
      "            open('alive', 'w').close(); time.sleep(0.01)\n"
      "time.sleep(0.1)\n");
  const std::string alive = absl::StrCat(request.folder, "/alive");
  EXPECT_EQ(ForkToEnd(request).ended->exit_code, 0);
  std::filesystem::remove(alive);
  EXPECT_EQ(ForkToEnd(Python("print(1)")).log, "1\n");
  EXPECT_FALSE(std::filesystem::exists(alive));
}

TEST_F(WarmTest, StopsByTheSignalOrTheGrace) {
  const auto polite =
      Fork(Python("import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(4))\n"
                  "print('ready', flush=True)\ntime.sleep(100)"));
  AwaitLog(polite.get(), "ready");
  polite->Terminate();
  EXPECT_EQ(AwaitEnd(polite.get()).ended->exit_code, 4);
  const auto deaf = Fork(
      Python("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\n"
             "time.sleep(100)"));
  AwaitLog(deaf.get(), "ready");
  deaf->Terminate(absl::Milliseconds(20));
  EXPECT_THAT(AwaitEnd(deaf.get()).ended->reason, StartsWith("killed "));
}

TEST_F(WarmTest, KeepsTheLimitsOfARun) {
  Request memory = Python("x = b'x' * 400_000_000\nimport time\ntime.sleep(100)");
  memory.limits.memory_bytes = 100'000'000;
  EXPECT_EQ(ForkToEnd(memory).ended->limit, "memory");
  Request disk = Python("open('big', 'wb').write(b'x' * 3_000_000)");
  disk.limits.disk_bytes = 1'000'000;
  EXPECT_FALSE(ForkToEnd(disk).ended->ok());
  Request processes = Python("import os, time\nwhile os.fork(): pass\ntime.sleep(100)");
  processes.limits.processes = 20;
  EXPECT_EQ(ForkToEnd(processes).ended->limit, "processes");
}

TEST_F(WarmTest, ReportsPointsAndAnswersCheckpoints) {
  const Output output = ForkToEnd(Python(
      "import os\nm, r = int(os.environ['ABLATE_METRICS']), int(os.environ['ABLATE_REPLIES'])\n"
      "os.write(m, b'{\"step\": 3, \"loss\": 0.5}\\n{\"checkpoint\": 3}\\n')\n"
      "print(os.read(r, 100).decode())"));
  EXPECT_THAT(output.points, ElementsAre(Point{"loss", 3, 0.5}));
  EXPECT_THAT(output.log, HasSubstr("ok\n"));
}

TEST_F(WarmTest, RunsManyAtATime) {
  std::vector<std::unique_ptr<program::Run>> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(Fork(Python(absl::StrCat("print(", i, ")"))));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(AwaitEnd(runs[i].get()).log, absl::StrCat(i, "\n"));
}

TEST_F(WarmTest, StartsAProcessWhileAnotherOneIsBeingStarted) {
  // A process that isn't ready before someone has opened the gate and closed it.
  const std::string helpers = folder_ / "slow";
  std::filesystem::create_directory(helpers);
  std::ofstream(absl::StrCat(helpers, "/", kWarmStartFile)) << "open('/program/gate').read()";
  ASSERT_EQ(mkfifo((work_ + "/gate").c_str(), 0600), 0);
  Request slow = Python("1");
  slow.environment.name = "slow";
  slow.helpers = helpers;
  auto blocked = std::async(std::launch::async, [&] { return pool_.StartRun(slow).status(); });
  std::ofstream gate(work_ + "/gate");  // waits for its reader
  EXPECT_EQ(ForkToEnd(Python("print(1)")).log, "1\n");
  EXPECT_EQ(blocked.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.close();
  EXPECT_EQ(blocked.get().code(), absl::StatusCode::kUnavailable);
}

TEST_F(WarmTest, KeepsAProcessWhoseRunsGoOn) {
  const auto first = Fork(Python("import signal\nprint('ready', flush=True)\nsignal.pause()"));
  AwaitLog(first.get(), "ready");
  for (size_t other = 0; other < WarmPool::kMostParents; ++other) {
    Request request = Python("print(1)");
    request.environment.name = absl::StrCat("other ", other);
    EXPECT_EQ(ForkToEnd(request).log, "1\n");
  }
  first->Terminate();
  EXPECT_EQ(AwaitEnd(first.get()).ended->reason, "killed by SIGTERM");
}

TEST_F(WarmTest, ImportsTheModulesOfEachProgramsFiles) {
  std::ofstream(helpers_ + "/numpy.py") << "class random: seed = staticmethod(lambda: None)";
  const auto has_numpy = [this](const char* content) {
    Request request = Python("import sys; print('numpy' in sys.modules)");
    std::ofstream(request.folder + "/a.py") << content;
    return ForkToEnd(request).log;
  };
  EXPECT_EQ(has_numpy("import numpy"), "True\n");
  EXPECT_EQ(has_numpy("pass"), "False\n");
}

TEST_F(WarmTest, ForksOnlyPythonCommandsInTheSandbox) {
  EXPECT_TRUE(MayFork(Python("1")));
  Request request = Python("1");
  request.sandboxed = false;
  EXPECT_FALSE(MayFork(request));
  request = Python("1");
  request.command = {"sh", "-c", "python x.py"};
  EXPECT_FALSE(MayFork(request));
  request.command = {"python", "-u", "x.py"};
  EXPECT_FALSE(MayFork(request));
  request.command = {"python3", "x.py", "-u"};
  EXPECT_TRUE(MayFork(request));
}

TEST(FindImportsTest, FindsLargeModulesOfAllPythonFiles) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "lib");
  std::ofstream(folder / "a.py") << "import os\n  import numpy as np\nimport torchvision\n";
  std::ofstream(folder / "lib/b.py") << "from torch.nn import functional\n";
  std::ofstream(folder / "c.txt") << "import pandas\n";
  EXPECT_EQ(FindImports(folder.path()), (std::set<std::string>{"numpy", "torch"}));
}

}  // namespace
}  // namespace ablate::program
