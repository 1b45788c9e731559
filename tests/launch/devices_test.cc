// Tests finding GPUs, with small shell scripts as workers.
#include "server/launch/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kLong = absl::Minutes(1);
constexpr char kTwoDevices[] =
    "echo 'a warning of the driver' >&2\n"
    "echo '{\"index\":0,\"uuid\":\"GPU-a\",\"name\":\"one\",\"memory_bytes\":8}'\n"
    "echo '{\"index\":3,\"uuid\":\"GPU-b\",\"name\":\"two\",\"memory_bytes\":8}'\n";

std::vector<std::string> Uuids(const std::vector<ListedDevice>& devices) {
  std::vector<std::string> uuids;
  for (const ListedDevice& device : devices) uuids.push_back(device.uuid);
  return uuids;
}

TEST(DeviceChoiceTest, IsAllNoneOrAList) {
  EXPECT_TRUE(ReadDeviceChoice("all")->all);
  EXPECT_TRUE(ReadDeviceChoice("none")->none());
  const auto some = ReadDeviceChoice("cuda:3,cuda:0,cuda:3");
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_FALSE(some->all || some->none());
  EXPECT_THAT(some->indexes, ElementsAre(0u, 3u));
  for (const char* wrong : {"", "0", "cuda", "cuda:", "cuda:-1", "cuda:0,", "cuda:0,none",
                            "cuda:4000000000", "cuda:5000"}) {
    const absl::Status status = ReadDeviceChoice(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("must be all, none, or a list")) << wrong;
  }
}

TEST(ListDevicesTest, ReadsWhatTheProgramPrints) {
  const TestFolder folder;
  const std::string program = folder.Script(
      "worker", absl::StrCat("[ \"$*\" = --list-devices ] || exit 64\n", kTwoDevices));
  const auto devices = ListDevices(program, kLong);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_THAT(Uuids(*devices), ElementsAre("GPU-a", "GPU-b"));
  EXPECT_EQ(devices->at(1).index, 3u);
}

TEST(ListDevicesTest, SaysWhyThereIsNone) {
  const TestFolder folder;
  const auto reason = [&folder](const std::string& body) {
    return std::string(ListDevices(folder.Script("worker", body), kLong).status().message());
  };
  EXPECT_EQ(reason("echo 'the driver is too old' >&2\nexit 7\n"), "the driver is too old");
  EXPECT_EQ(reason("exit 0\n"), absl::StrCat(folder / "worker", " lists none"));
  EXPECT_THAT(std::string(ListDevices(folder / "none", kLong).status().message()),
              HasSubstr("cannot start"));
}

// A UUID becomes the name of a file.
TEST(ListDevicesTest, TakesNoLineForADeviceThatIsNone) {
  const TestFolder folder;
  for (const char* line : {"{}", "[1]", R"({"index":-1,"uuid":"GPU-a"})",
                           R"({"index":5000,"uuid":"GPU-a"})", R"({"index":0,"uuid":7})",
                           R"({"index":0,"uuid":"../GPU-a"})", R"({"index":0,"uuid":""})"}) {
    const std::string program = folder.Script("worker", absl::StrCat("echo '", line, "'\n"));
    EXPECT_TRUE(absl::IsNotFound(ListDevices(program, kLong).status())) << line;
  }
}

TEST(ListDevicesTest, KillsAProgramThatHangs) {
  const TestFolder folder;
  const std::string program = folder.Script("worker", "echo $$ > \"$0.pid\"\nexec sleep 1000\n");
  const absl::Status status = ListDevices(program, absl::Milliseconds(300)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not end within 300ms"));
  int pid = 0;
  // A slow machine may not have begun the script.
  if (!absl::SimpleAtoi(ReadText(program + ".pid"), &pid)) return;
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(FindDevicesTest, TakesTheChosenOnesThatThereAre) {
  const TestFolder folder;
  const std::string program = folder.Script("worker", kTwoDevices);
  EXPECT_THAT(Uuids(*FindDevices({false, {3}}, program)), ElementsAre("GPU-b"));
  EXPECT_THAT(Uuids(*FindDevices({false, {0, 3}}, program)), ElementsAre("GPU-a", "GPU-b"));
}

TEST(FindDevicesTest, RefusesAChosenOneThatIsNotThere) {
  const TestFolder folder;
  const auto status = FindDevices({false, {1, 3}}, folder.Script("worker", kTwoDevices)).status();
  EXPECT_EQ(status, absl::NotFoundError(
                        "--devices: there is no cuda:1 (2 GPUs are listed); expected GPUs that "
                        "ablate-worker --list-devices prints, all or none"));
  EXPECT_THAT(std::string(FindDevices({false, {0}}, folder / "none").status().message()),
              ::testing::StartsWith("--devices: there is no cuda:0 ("));
}

TEST(FindDevicesTest, DoesNotAskIfNoneIsWanted) {
  const TestFolder folder;
  const std::string program = folder.Script("worker", "touch \"$0.asked\"\n");
  EXPECT_THAT(*FindDevices({false}, program), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(program + ".asked"));
}

}  // namespace
}  // namespace ablate::launch
