// Tests malformed messages of workers: each is refused with the field's name.
#include "server/schedule/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using ::testing::StartsWith;

wire::Hello GoodHello() {
  wire::Hello hello;
  hello.set_worker("w");
  hello.set_incarnation("i");
  hello.set_device_kind("cpu");
  hello.set_lanes(1);
  return hello;
}

wire::Event GoodPoints() {
  wire::Event event;
  event.set_lease("l");
  event.set_seq(1);
  wire::Column& column = *event.mutable_points()->add_columns();
  column.set_key("train/loss");
  column.add_steps(3);
  column.add_values(0.5);
  event.mutable_points()->set_step(4);
  event.mutable_points()->set_busy_us(7);
  event.mutable_points()->set_contended_us(2);
  event.mutable_points()->set_tokens(31);
  return event;
}

TEST(MessagesTest, TakesAGoodHello) { EXPECT_TRUE(CheckHello(GoodHello()).ok()); }

TEST(MessagesTest, RefusesMalformedHellosByField) {
  struct Case {
    std::function<void(wire::Hello*)> spoil;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto* h) { h->clear_worker(); }, "hello.worker is 0 bytes; expected 1 to 128"},
      {[](auto* h) { h->set_worker(std::string(129, 'x')); }, "hello.worker is 129 bytes"},
      {[](auto* h) { h->clear_incarnation(); }, "hello.incarnation is 0 bytes"},
      {[](auto* h) { h->set_device(std::string(1025, 'x')); }, "hello.device is 1025 bytes"},
      {[](auto* h) { h->set_build(std::string(1025, 'x')); }, "hello.build is 1025 bytes"},
      {[](auto* h) { h->add_trainers(); }, "hello.trainers.name is 0 bytes; expected 1 to 128"},
      {[](auto* h) {
         h->add_trainers()->set_name("torch");
         h->mutable_trainers(0)->set_environment(std::string(1025, 'x'));
       },
       "hello.trainers.environment is 1025 bytes"},
      {[](auto* h) {
         for (int i = 0; i < 17; ++i) h->add_trainers()->set_name("torch");
       },
       "hello.trainers is 17 trainers; expected at most 16"},
      {[](auto* h) { h->set_device_kind("t\npu"); },
       "hello.device_kind is \"t\\npu\"; expected cpu or cuda"},
      {[](auto* h) { h->set_lanes(0); }, "hello.lanes is 0; expected 1 to 4096"},
      {[](auto* h) { h->set_lanes(5000); }, "hello.lanes is 5000"},
      {[](auto* h) {
         for (int i = 0; i <= 100'000; ++i) h->add_held();
       },
       "hello.held is 100001 leases"},
      {[](auto* h) { h->add_held()->set_lease(std::string(129, 'l')); },
       "hello.held.lease is 129 bytes; expected 1 to 128"},
  };
  for (const Case& one : cases) {
    wire::Hello hello = GoodHello();
    one.spoil(&hello);
    const absl::Status status = CheckHello(hello);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << one.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(one.message));
  }
}

TEST(MessagesTest, RefusesMalformedHeartbeatsByField) {
  wire::Heartbeat good;
  wire::LeaseProgress* lease = good.add_leases();
  lease->set_lease("l");
  EXPECT_TRUE(CheckHeartbeat(good).ok());
  wire::Heartbeat bad = good;
  bad.mutable_leases(0)->clear_lease();
  EXPECT_THAT(std::string(CheckHeartbeat(bad).message()),
              StartsWith("heartbeat.leases.lease is 0 bytes; expected 1 to 128"));
  for (int i = 0; i < 4096; ++i) *good.add_leases() = good.leases(0);
  EXPECT_THAT(std::string(CheckHeartbeat(good).message()),
              StartsWith("heartbeat.leases is 4097 leases; expected at most 4096, one a lane"));
}

TEST(MessagesTest, RefusesMalformedEventsByField) {
  struct Case {
    std::function<void(wire::Event*)> spoil;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto* e) { e->clear_lease(); }, "event.lease is 0 bytes"},
      {[](auto* e) { e->set_seq(0); }, "event.seq is 0; expected from 1"},
      {[](auto* e) { e->clear_kind(); }, "event.kind is not set"},
      {[](auto* e) { e->mutable_points()->mutable_columns(0)->clear_key(); },
       "points.columns.key is 0 bytes"},
      {[](auto* e) { e->mutable_points()->mutable_columns(0)->set_key(std::string(201, 'k')); },
       "points.columns.key is 201 bytes; expected 1 to 200"},
      {[](auto* e) { e->mutable_points()->mutable_columns(0)->set_key("a\n\x1b[2Jb"); },
       "points.columns.key is \"a\\x0a\\x1b[2Jb\"; expected printable characters"},
      {[](auto* e) { e->mutable_points()->mutable_columns(0)->add_steps(9); },
       "points.columns.values is 1 of train/loss for 2 steps"},
      {[](auto* e) {
         e->mutable_points()->mutable_columns(0)->add_steps(3);
         e->mutable_points()->mutable_columns(0)->add_values(1);
       },
       "points.columns.steps is out of order for train/loss"},
      {[](auto* e) { *e->mutable_points()->add_columns() = e->points().columns(0); },
       "points.columns.key is twice train/loss"},
      {[](auto* e) { e->mutable_points()->set_busy_us(2592000000001); },
       "points.busy_us is 2592000000001; expected at most 2592000000000"},
      {[](auto* e) { e->mutable_points()->set_contended_us(8); },
       "points.contended_us is 8; expected at most busy_us, 7"},
      {[](auto* e) { e->mutable_points()->set_tokens(1000000000000001); },
       "points.tokens is 1000000000000001; expected at most 1000000000000000"},
      {[](auto* e) { e->mutable_checkpoint()->set_blob("abc"); }, "checkpoint.blob is 3 bytes"},
      {[](auto* e) { e->mutable_resume_state()->set_blob(std::string(64, 'G')); },
       "resume_state.blob is 64 bytes"},
  };
  for (const Case& one : cases) {
    wire::Event event = GoodPoints();
    one.spoil(&event);
    const auto converted = ToLeaseEvent(event);
    EXPECT_TRUE(absl::IsInvalidArgument(converted.status())) << one.message;
    EXPECT_THAT(std::string(converted.status().message()), StartsWith(one.message));
  }
}

TEST(MessagesTest, ConvertsPoints) {
  const auto event = ToLeaseEvent(GoodPoints());
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->lease, "l");
  EXPECT_EQ(event->seq, 1u);
  const auto& points = std::get<storage::PointsEvent>(event->event);
  EXPECT_EQ(points.step, 4u);
  EXPECT_EQ(points.spent.device_time, 7);
  EXPECT_EQ(points.spent.contended_time, 2);
  EXPECT_EQ(points.spent.tokens, 31u);
  ASSERT_EQ(points.columns.size(), 1u);
  EXPECT_EQ(points.columns[0].steps, std::vector<uint32_t>{3});
  EXPECT_EQ(points.columns[0].values, std::vector<double>{0.5});
  EXPECT_FALSE(EndsRun(*event));
  EXPECT_EQ(NamedBlob(*event), "");
}

TEST(MessagesTest, KnowsWhichEventsEndARunAndWhichNameABlob) {
  wire::Event event = GoodPoints();
  event.mutable_finished()->set_diverged(true);
  EXPECT_TRUE(EndsRun(*ToLeaseEvent(event)));
  EXPECT_TRUE(std::get<storage::FinishedEvent>(ToLeaseEvent(event)->event).diverged);
  event.mutable_released();
  EXPECT_TRUE(EndsRun(*ToLeaseEvent(event)));
  event.mutable_failed()->set_message("why");
  EXPECT_TRUE(EndsRun(*ToLeaseEvent(event)));
  event.mutable_checkpoint()->set_blob(std::string(64, 'a'));
  EXPECT_EQ(NamedBlob(*ToLeaseEvent(event)), std::string(64, 'a'));
  event.mutable_resume_state()->set_blob(std::string(64, 'b'));
  EXPECT_EQ(NamedBlob(*ToLeaseEvent(event)), std::string(64, 'b'));
  EXPECT_FALSE(EndsRun(*ToLeaseEvent(event)));
}

}  // namespace
}  // namespace ablate::schedule
