// Tests the worker's side of the lease protocol: numbers, credit, resent and dropped events.
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

v1::ToWorker Grant(const std::string& lease, uint64_t credit = kPlenty) {
  v1::ToWorker message;
  message.mutable_grant()->set_lease(lease);
  message.mutable_grant()->set_credit_bytes(credit);
  message.mutable_grant()->mutable_run()->set_run("run of " + lease);
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
  message.mutable_decision()->set_lease(lease);
  message.mutable_decision()->set_acked(acked);
  message.mutable_decision()->set_credit_bytes(credit);
  return message;
}

v1::ToWorker DropDecision(const std::string& lease) {
  v1::ToWorker message;
  message.mutable_decision()->set_lease(lease);
  message.mutable_decision()->set_drop(true);
  return message;
}

v1::ToWorker Cancel(const std::string& lease) {
  v1::ToWorker message;
  message.mutable_cancel()->set_lease(lease);
  return message;
}

v1::Event Points(const std::string& lease, uint32_t step) {
  v1::Event event;
  event.set_lease(lease);
  event.mutable_points()->set_step(step);
  return event;
}

v1::Event Finished(const std::string& lease) {
  v1::Event event;
  event.set_lease(lease);
  event.mutable_finished();
  return event;
}

// "lease:seq" of each event.
std::vector<std::string> Sent(const std::vector<v1::FromWorker>& messages) {
  std::vector<std::string> sent;
  sent.reserve(messages.size());
  for (const v1::FromWorker& message : messages) {
    sent.push_back(message.event().lease() + ":" + std::to_string(message.event().seq()));
  }
  return sent;
}

uint64_t FirstUnacked(const LeaseBook& book, const std::string& lease) {
  for (const v1::HeldLease& held : book.Held()) {
    if (held.lease() == lease) return held.first_unacked();
  }
  return 0;
}

TEST(LeaseBookTest, StartsTheGrantedRunOnceWhenTheGrantIsRepeated) {
  LeaseBook book;
  const Instructions first = book.Receive(Grant("l"));
  ASSERT_TRUE(first.start.has_value());
  EXPECT_EQ(first.start->lease(), "l");
  EXPECT_EQ(first.start->run().run(), "run of l");
  EXPECT_FALSE(book.Receive(Grant("l")).start.has_value());
}

TEST(LeaseBookTest, NumbersEventsPerLeaseFromOne) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Receive(Grant("m"));
  EXPECT_THAT(Sent(book.Report(Points("l", 1))), ElementsAre("l:1"));
  EXPECT_THAT(Sent(book.Report(Points("l", 2))), ElementsAre("l:2"));
  EXPECT_THAT(Sent(book.Report(Points("m", 1))), ElementsAre("m:1"));
}

TEST(LeaseBookTest, IgnoresEventsOfLeasesThatEndedOrAreUnknown) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Finished("l"));
  EXPECT_THAT(book.Report(Points("l", 9)), IsEmpty());
  EXPECT_THAT(book.Report(Points("z", 9)), IsEmpty());
}

TEST(LeaseBookTest, DropsTheLeaseAndStopsItsRunWhenToldTo) {
  for (const v1::ToWorker& message : {DropDecision("l"), Cancel("l")}) {
    LeaseBook book;
    book.Receive(Grant("l"));
    book.Receive(Grant("m"));
    book.Report(Points("l", 1));
    book.Disconnected();
    const Instructions instructions = book.Receive(message);
    EXPECT_EQ(instructions.stop, "l");
    EXPECT_THAT(instructions.send, IsEmpty());
    EXPECT_EQ(FirstUnacked(book, "l"), 0u);
    EXPECT_EQ(FirstUnacked(book, "m"), 1u) << "others stay";
    EXPECT_THAT(book.Report(Points("l", 2)), IsEmpty());
    EXPECT_EQ(book.Receive(message).stop, "");
  }
}

TEST(LeaseBookTest, SavesOnlyRunsThatItTrains) {
  v1::ToWorker save;
  save.mutable_save()->set_lease("l");
  LeaseBook book;
  EXPECT_EQ(book.Receive(save).save, "");
  book.Receive(Grant("l"));
  EXPECT_EQ(book.Receive(save).save, "l");
  book.Report(Finished("l"));
  EXPECT_EQ(book.Receive(save).save, "");
}

TEST(LeaseBookTest, ForgetsALeaseOnlyWhenItsLastEventIsAcknowledged) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Points("l", 1));
  book.Report(Finished("l"));
  book.Receive(Ack("l", 1));
  EXPECT_FALSE(book.empty());
  EXPECT_EQ(FirstUnacked(book, "l"), 2u);
  book.Receive(Ack("l", 2));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, SendsNothingBetweenReconnectAndDecision) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Points("l", 1));
  book.Disconnected();
  EXPECT_THAT(book.Report(Points("l", 2)), IsEmpty());
  EXPECT_EQ(FirstUnacked(book, "l"), 1u);
  EXPECT_THAT(Sent(book.Receive(Continue("l", 0)).send), ElementsAre("l:1", "l:2"));
}

TEST(LeaseBookTest, TrimsWhatTheDecisionAcknowledges) {
  LeaseBook book;
  book.Receive(Grant("l"));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", step));
  book.Disconnected();
  EXPECT_THAT(Sent(book.Receive(Continue("l", 2)).send), ElementsAre("l:3"));
  EXPECT_EQ(FirstUnacked(book, "l"), 3u);
}

TEST(LeaseBookTest, ForgetsAnEndedLeaseWhenTheDecisionAcknowledgesEverything) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Finished("l"));
  book.Disconnected();
  EXPECT_THAT(book.Receive(Continue("l", 1)).send, IsEmpty());
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, DropsTheLeaseWhenTheServerForgotAcknowledgedEvents) {
  LeaseBook book;
  book.Receive(Grant("l"));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", step));
  book.Receive(Ack("l", 2));
  book.Disconnected();
  EXPECT_EQ(book.Receive(Continue("l", 1)).stop, "l");
  EXPECT_TRUE(book.empty());
}

TEST(LeaseBookTest, DropsTheLeaseWhenTheServerHasEventsThatWereNeverMade) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Points("l", 1));
  book.Disconnected();
  EXPECT_EQ(book.Receive(Continue("l", 2)).stop, "l");
}

TEST(LeaseBookTest, PausesWhenUnacknowledgedBytesReachTheCredit) {
  LeaseBook book;
  book.Receive(Grant("l", 1));
  EXPECT_TRUE(book.HasCredit("l"));
  EXPECT_THAT(Sent(book.Report(Points("l", 1))), ElementsAre("l:1"));
  EXPECT_FALSE(book.HasCredit("l"));
  book.Receive(Ack("l", 1));
  EXPECT_TRUE(book.HasCredit("l"));
  EXPECT_FALSE(book.HasCredit("unknown"));
}

TEST(LeaseBookTest, KeepsBackWhatTheCreditDoesNotCoverAndSendsItOnAck) {
  LeaseBook book;
  v1::FromWorker one;
  *one.mutable_event() = Points("l", 1);
  one.mutable_event()->set_seq(1);
  book.Receive(Grant("l", 2 * one.ByteSizeLong()));
  EXPECT_THAT(Sent(book.Report(Points("l", 1))), ElementsAre("l:1"));
  EXPECT_THAT(Sent(book.Report(Points("l", 2))), ElementsAre("l:2"));
  EXPECT_THAT(book.Report(Points("l", 3)), IsEmpty());
  EXPECT_THAT(book.Report(Points("l", 4)), IsEmpty());
  EXPECT_THAT(Sent(book.Receive(Ack("l", 1)).send), ElementsAre("l:3"));
  EXPECT_THAT(Sent(book.Receive(Ack("l", 3)).send), ElementsAre("l:4"));
}

TEST(LeaseBookTest, TakesTheNewCreditOfADecision) {
  LeaseBook book;
  book.Receive(Grant("l", 1));
  for (uint32_t step = 1; step <= 3; ++step) book.Report(Points("l", step));
  book.Disconnected();
  EXPECT_THAT(Sent(book.Receive(Continue("l", 0)).send), ElementsAre("l:1", "l:2", "l:3"));
}

TEST(LeaseBookTest, CancelOfAnEndedRunForgetsItsUnacknowledgedEnd) {
  LeaseBook book;
  book.Receive(Grant("l"));
  book.Report(Finished("l"));
  EXPECT_EQ(book.Receive(Cancel("l")).stop, "");
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
  book.Receive(Grant("l"));
  book.Receive(Grant("m"));
  book.Receive(Grant("n"));
  book.Report(Finished("m"));
  EXPECT_THAT(book.DropAll(), ElementsAre("l", "n"));
  EXPECT_TRUE(book.empty());
}

}  // namespace
}  // namespace ablate::worker
