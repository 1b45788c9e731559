// Tests that a device has one process.
#include "server/worker/device_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;

class DeviceLockTest : public testing::Test {
 protected:
  DeviceLockTest() : file_(testing::TempDir() + "/ablate-lock-XXXXXX") {
    close(mkstemp(file_.data()));
  }
  ~DeviceLockTest() override { unlink(file_.c_str()); }

  std::string file_;
};

TEST_F(DeviceLockTest, KeepsASecondWorkerOutAndNamesTheFirst) {
  auto first = LockDevice(file_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = LockDevice(file_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("the device is taken: process ", getpid(), " holds ", file_));
}

TEST_F(DeviceLockTest, IsFreeOnceItsOwnerIsGone) {
  {
    auto first = LockDevice(file_);
    ASSERT_TRUE(first.ok());
    const process::FileDescriptor moved(*std::move(first));
    EXPECT_FALSE(LockDevice(file_).ok());
  }
  EXPECT_TRUE(LockDevice(file_).ok());
}

TEST_F(DeviceLockTest, SaysWhichFileCannotBeOpened) {
  const auto lock = LockDevice("/nowhere/at/all/lock");
  EXPECT_THAT(std::string(lock.status().message()), HasSubstr("/nowhere/at/all/lock"));
}

TEST_F(DeviceLockTest, TellsAFileThatCannotBeLockedFromADeviceThatIsTaken) {
  EXPECT_EQ(LockDevice(testing::TempDir()).status().code(), absl::StatusCode::kInternal);
}

TEST_F(DeviceLockTest, HoldsTheDeviceWhereNothingCanBeWritten) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  const auto lock = LockDevice(file_);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(LockDevice(file_).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ablate::worker
