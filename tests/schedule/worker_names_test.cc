// Tests whose a worker is, by its name.
#include "server/schedule/worker_names.h"

#include <gtest/gtest.h>

namespace ablate::schedule {
namespace {

worker::v1::Hello HelloOf(const std::string& name) {
  worker::v1::Hello hello;
  hello.set_worker(name);
  hello.set_incarnation("one");
  return hello;
}

TEST(WorkerNamesTest, PutTheUserBehindWhatAWorkerSays) {
  worker::v1::Hello hello = HelloOf("cpu-train");
  SetUser("gpu2", &hello);
  EXPECT_EQ(hello.worker(), "cpu-train@gpu2");
  EXPECT_EQ(hello.incarnation(), "one@gpu2");
  EXPECT_TRUE(IsElsewhere(hello.worker()));
}

TEST(WorkerNamesTest, StayAsTheyAreOnThisMachine) {
  worker::v1::Hello hello = HelloOf("cpu-train");
  SetUser("", &hello);
  EXPECT_EQ(hello.worker(), "cpu-train");
  EXPECT_EQ(hello.incarnation(), "one");
  EXPECT_FALSE(IsElsewhere(hello.worker()));
}

TEST(WorkerNamesTest, SayWhoseAWorkerIsWhateverItCallsItself) {
  worker::v1::Hello liar = HelloOf("cpu-train@gpu2");
  SetUser("gpu3", &liar);
  EXPECT_TRUE(IsOfUser(liar.worker(), "gpu3"));
  EXPECT_FALSE(IsOfUser(liar.worker(), "gpu2"));
  EXPECT_FALSE(IsOfUser("cpu-train", "gpu2"));
  EXPECT_FALSE(IsOfUser("gpu2", "gpu2"));
  EXPECT_TRUE(IsOfUser("cpu-train@gpu2", "")) << "the machine's owner";
}

TEST(WorkerNamesTest, HaveTheUserBehindTheLastAt) {
  EXPECT_EQ(UserOf("cpu-train@gpu2@gpu3"), "gpu3");
  EXPECT_EQ(UserOf("cpu-train"), "");
}

TEST(WorkerNamesTest, LeaveAMissingNameMissing) {
  worker::v1::Hello hello;
  SetUser("gpu2", &hello);
  EXPECT_EQ(hello.worker(), "");
}

}  // namespace
}  // namespace ablate::schedule
