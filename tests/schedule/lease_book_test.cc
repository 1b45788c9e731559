// The worker's side of the lease protocol: numbers, credit, what is sent again and what is dropped.
#include "server/worker/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ablate::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kPlenty = 1 << 20;

v1::ToWorker Grant(const std::string& lease, const std::vector<std::string>& runs,
                   uint64_t credit = kPlenty) {
  v1::ToWorker message;
  message.mutable_grant()->set_lease(lease);
  message.mutable_grant()->set_credit_bytes(credit);
  for (const std::string& run : runs) message.mutable_grant()->add_runs()->set_run(run);
  return message;
}

v1::ToWorker Ack(const std::string& lease, uint64_t seq) {
  v1::ToWorker message;
  message.mutable_ack()->set_lease(lease);
  message.mutable_ack()->set_seq(seq);
  return message;
}

v1::ToWorker Continue(const std::string& lease, uint64_t acked, uint64_t credit = kPlenty) {
  v1::ToWorker message;
  message.mutable_verdict()->set_lease(lease);
  message.mutable_verdict()->set_acked(acked);
  message.mutable_verdict()->set_credit_bytes(credit);
  return message;
}

v1::ToWorker DropVerdict(const std::string& lease) {
  v1::ToWorker message;
  message.mutable_verdict()->set_lease(lease);
  message.mutable_verdict()->set_drop(true);
  return message;
}

v1::ToWorker Cancel(const std::string& lease, const std::string& run) {
  v1::ToWorker message;
  message.mutable_cancel()->set_lease(lease);
  message.mutable_cancel()->set_run(run);
  return message;
}

v1::Event Points(const std::string& lease, const std::string& run, uint32_t step) {
  v1::Event event;
  event.set_lease(lease);
  event.set_run(run);
  event.mutable_points()->set_step(step);
  return event;
}

v1::Event Finished(const std::string& lease, const std::string& run) {
  v1::Event event;
  event.set_lease(lease);
  event.set_run(run);
  event.mutable_finished();
  return event;
}

// "lease/run:seq" of each event.
std::vector<std::string> Sent(const std::vector<v1::FromWorker>& messages) {
  std::vector<std::string> sent;
  sent.reserve(messages.size());
  for (const v1::FromWorker& message : messages) {
    const v1::Event& event = message.event();
    sent.push_back(event.lease() + "/" + event.run() + ":" + std::to_string(event.seq()));
  }
  return sent;
}

std::vector<std::string> Names(const std::vector<Instructions::RunKey>& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const Instructions::RunKey& key : keys) names.push_back(key.lease + "/" + key.run);
  return names;
}

uint64_t FirstUnacked(const LeaseBook& book, const std::string& lease) {
  for (const v1::HeldLease& held : book.Held()) {
    if (held.lease() == lease) return held.first_unacked();
  }
  return 0;
}

TEST(LeaseBookTest, StartsGrantedRunsOnceWhenTheGrantIsRepeated) {
  LeaseBook book;
  const Instructions first = book.Receive(Grant("l", {"a", "b"}));
  ASSERT_EQ(first.start.size(), 2u);
  EXPECT_EQ(first.start[0].lease, "l");
  EXPECT_EQ(first.start[0].run.run(), "a");
  EXPECT_THAT(book.Receive(Grant("l", {"a", "b"})).start, IsEmpty());
  EXPECT_THAT(Sent(book.Report(Points("l", "b", 1))), ElementsAre("l/b:1"));
}

TEST(LeaseBookTest, NumbersEventsPerLeaseFromOne) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  book.Receive(Grant("m", {"c"}));
  EXPECT_THAT(Sent(book.Report(Points("l", "a", 1))), ElementsAre("l/a:1"));
  EXPECT_THAT(Sent(book.Report(Points("l", "b", 1))), ElementsAre("l/b:2"));
  EXPECT_THAT(Sent(book.Report(Points("m", "c", 1))), ElementsAre("m/c:1"));
}

TEST(LeaseBookTest, IgnoresEventsOfRunsThatEndedOrAreUnknown) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  book.Report(Finished("l", "a"));
  EXPECT_THAT(book.Report(Points("l", "a", 9)), IsEmpty());
  EXPECT_THAT(book.Report(Points("l", "z", 9)), IsEmpty());
  EXPECT_THAT(book.Report(Points("z", "a", 9)), IsEmpty());
  EXPECT_THAT(Sent(book.Report(Points("l", "b", 1))), ElementsAre("l/b:2"));
}

TEST(LeaseBookTest, ForgetsALeaseOnlyWhenItsLastEventIsAcknowledged) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Points("l", "a", 1));
  book.Report(Finished("l", "a"));
  book.Receive(Ack("l", 1));
  EXPECT_FALSE(book.empty());
  EXPECT_EQ(FirstUnacked(book, "l"), 2u);
  book.Receive(Ack("l", 2));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, SendsNothingBetweenReconnectAndVerdict) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Points("l", "a", 1));
  book.Disconnected();
  EXPECT_THAT(book.Report(Points("l", "a", 2)), IsEmpty());
  EXPECT_EQ(FirstUnacked(book, "l"), 1u);
  EXPECT_THAT(Sent(book.Receive(Continue("l", 0)).send), ElementsAre("l/a:1", "l/a:2"));
}

TEST(LeaseBookTest, TrimsWhatTheVerdictAcknowledges) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", "a", step));
  book.Disconnected();
  EXPECT_THAT(Sent(book.Receive(Continue("l", 2)).send), ElementsAre("l/a:3"));
  EXPECT_EQ(FirstUnacked(book, "l"), 3u);
}

TEST(LeaseBookTest, ForgetsAnEndedLeaseWhenTheVerdictAcknowledgesEverything) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Finished("l", "a"));
  book.Disconnected();
  EXPECT_THAT(book.Receive(Continue("l", 1)).send, IsEmpty());
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, DropsTheLeaseAndStopsItsTrainingRunsWhenToldTo) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  book.Report(Finished("l", "a"));
  book.Disconnected();
  const Instructions instructions = book.Receive(DropVerdict("l"));
  EXPECT_THAT(Names(instructions.stop), ElementsAre("l/b"));
  EXPECT_THAT(instructions.send, IsEmpty());
  EXPECT_TRUE(book.empty());
  EXPECT_THAT(book.Report(Points("l", "b", 1)), IsEmpty());
}

TEST(LeaseBookTest, DropsTheLeaseWhenTheServerForgotAcknowledgedEvents) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", "a", step));
  book.Receive(Ack("l", 2));
  book.Disconnected();
  EXPECT_THAT(Names(book.Receive(Continue("l", 1)).stop), ElementsAre("l/a"));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, DropsTheLeaseWhenTheServerHasEventsThatWereNeverMade) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Points("l", "a", 1));
  book.Disconnected();
  EXPECT_THAT(Names(book.Receive(Continue("l", 2)).stop), ElementsAre("l/a"));
}

TEST(LeaseBookTest, PausesWhenUnacknowledgedBytesReachTheCredit) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}, 1));
  EXPECT_TRUE(book.HasCredit("l"));
  EXPECT_THAT(Sent(book.Report(Points("l", "a", 1))), ElementsAre("l/a:1"));
  EXPECT_FALSE(book.HasCredit("l"));
  book.Receive(Ack("l", 1));
  EXPECT_TRUE(book.HasCredit("l"));
  EXPECT_FALSE(book.HasCredit("unknown"));
}

TEST(LeaseBookTest, KeepsBackWhatTheCreditDoesNotCoverAndSendsItOnAck) {
  LeaseBook book;
  v1::FromWorker one;
  *one.mutable_event() = Points("l", "a", 1);
  one.mutable_event()->set_seq(1);
  book.Receive(Grant("l", {"a"}, 2 * one.ByteSizeLong()));
  EXPECT_THAT(Sent(book.Report(Points("l", "a", 1))), ElementsAre("l/a:1"));
  EXPECT_THAT(Sent(book.Report(Points("l", "a", 2))), ElementsAre("l/a:2"));
  EXPECT_THAT(book.Report(Points("l", "a", 3)), IsEmpty());
  EXPECT_THAT(book.Report(Points("l", "a", 4)), IsEmpty());
  EXPECT_THAT(Sent(book.Receive(Ack("l", 1)).send), ElementsAre("l/a:3"));
  EXPECT_THAT(Sent(book.Receive(Ack("l", 3)).send), ElementsAre("l/a:4"));
}

TEST(LeaseBookTest, TakesTheNewCreditOfAVerdict) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}, 1));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", "a", step));
  book.Disconnected();
  EXPECT_THAT(Sent(book.Receive(Continue("l", 0)).send), ElementsAre("l/a:1", "l/a:2", "l/a:3"));
}

TEST(LeaseBookTest, StopsACancelledRunAndKeepsTheOthers) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  EXPECT_THAT(Names(book.Receive(Cancel("l", "a")).stop), ElementsAre("l/a"));
  EXPECT_THAT(book.Report(Points("l", "a", 1)), IsEmpty());
  EXPECT_THAT(Sent(book.Report(Points("l", "b", 1))), ElementsAre("l/b:1"));
  EXPECT_THAT(book.Receive(Cancel("l", "a")).stop, IsEmpty());
}

TEST(LeaseBookTest, SavesOnlyRunsThatItHolds) {
  v1::ToWorker save;
  save.mutable_save()->set_lease("l");
  save.mutable_save()->set_run("a");
  LeaseBook book;
  EXPECT_THAT(book.Receive(save).save, IsEmpty());
  book.Receive(Grant("l", {"a", "b"}));
  EXPECT_THAT(Names(book.Receive(save).save), ElementsAre("l/a"));
  book.Report(Finished("l", "a"));
  EXPECT_THAT(book.Receive(save).save, IsEmpty());
}

TEST(LeaseBookTest, ForgetsTheLeaseWhenItsLastRunIsCancelled) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Points("l", "a", 1));
  EXPECT_THAT(Names(book.Receive(Cancel("l", "a")).stop), ElementsAre("l/a"));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, CancelWithoutARunEndsTheWholeLease) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  EXPECT_THAT(Names(book.Receive(Cancel("l", "")).stop), ElementsAre("l/a", "l/b"));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, KeepsNumbersWithoutGapsWhenACancelledRunHadUnsentEvents) {
  LeaseBook book;
  book.Receive(Grant("l", {"a", "b"}));
  book.Report(Points("l", "a", 1));
  book.Disconnected();
  book.Report(Points("l", "a", 2));
  book.Report(Points("l", "b", 1));
  book.Receive(Cancel("l", "a"));
  EXPECT_THAT(Sent(book.Receive(Continue("l", 0)).send), ElementsAre("l/a:1", "l/b:2"));
  EXPECT_THAT(Sent(book.Report(Points("l", "b", 2))), ElementsAre("l/b:3"));
}

TEST(LeaseBookTest, CancelOfAnEndedRunForgetsItsUnacknowledgedEnd) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Report(Finished("l", "a"));
  EXPECT_THAT(book.Receive(Cancel("l", "a")).stop, IsEmpty());
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, PassesTheDrainOn) {
  LeaseBook book;
  v1::ToWorker message;
  message.mutable_drain();
  EXPECT_TRUE(book.Receive(message).drain);
}

TEST(LeaseBookTest, DropAllStopsEveryRunThatHasNotEnded) {
  LeaseBook book;
  book.Receive(Grant("l", {"a"}));
  book.Receive(Grant("m", {"b"}));
  book.Receive(Grant("n", {"c"}));
  book.Report(Finished("m", "b"));
  EXPECT_THAT(Names(book.DropAll()), ElementsAre("l/a", "n/c"));
  EXPECT_TRUE(book.empty());
}

}  // namespace
}  // namespace ablate::worker
