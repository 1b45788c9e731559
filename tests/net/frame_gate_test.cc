// Tests what a client may send, frame by frame.
#include "server/net/frame_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

using absl::string_view;
using testing::HasSubstr;

constexpr string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9;
constexpr uint8_t kNone = 0, kAck = 1, kEndHeaders = 4, kPadded = 8;
const std::string kStamp("\0\1n\1v", 5);

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, string_view payload) {
  const auto byte = [](size_t value) { return std::string(1, static_cast<char>(value & 0xff)); };
  return absl::StrCat(byte(payload.size() >> 16), byte(payload.size() >> 8), byte(payload.size()),
                      byte(type), byte(flags), byte(stream >> 24), byte(stream >> 16),
                      byte(stream >> 8), byte(stream), payload);
}

std::string Call(uint32_t stream) { return Frame(kHeaders, kEndHeaders, stream, "path"); }
std::string Passed(uint32_t stream) {
  return Frame(kHeaders, kEndHeaders, stream, "path" + kStamp);
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

class FrameGateTest : public testing::Test {
 protected:
  FrameGateTest() { EXPECT_EQ(Send(kPreface), kPreface); }

  // Sends after the waiting bytes; returns what passed.
  std::string Send(string_view bytes) {
    absl::StrAppend(&waiting_, bytes);
    string_view rest = waiting_;
    std::string out;
    status_ = gate_.Pass(now_, &rest, &out);
    waiting_ = std::string(rest);
    return out;
  }
  // Acts as an authenticated client that has the server's settings.
  void Settle() {
    gate_.LetIn(&calls_);
    const std::string acknowledgement = Frame(kSettings, kAck, 0, "");
    EXPECT_EQ(Send(acknowledgement), acknowledgement);
  }

  absl::Duration now_ = absl::Seconds(1'000);
  Rate calls_{kCallsPerSecond, kCallBurst};
  FrameGate gate_{"n", "v", &calls_};
  std::string waiting_;
  absl::Status status_;
};

TEST_F(FrameGateTest, AddsItsHeaderToEveryCall) {
  EXPECT_EQ(Send(Call(1) + Call(3)), Passed(1) + Passed(3));
}

TEST_F(FrameGateTest, PassesDataUnchanged) {
  const std::string data = Frame(kData, kNone, 1, std::string(70'000, 'd'));
  gate_.LetIn(&calls_);
  EXPECT_EQ(Send(data), data);
}

TEST_F(FrameGateTest, PassesTheSameInWhateverPiecesItComes) {
  const std::string sent = Frame(kHeaders, kNone, 1, "pa") + Frame(kContinuation, kNone, 1, "") +
                           Frame(kContinuation, kEndHeaders, 1, "th") +
                           Frame(kData, kNone, 1, "data") + Frame(kPing, kNone, 0, "12345678");
  std::string passed;
  for (const char byte : sent) passed += Send(string_view(&byte, 1));
  EXPECT_EQ(passed,
            Passed(1) + Frame(kData, kNone, 1, "data") + Frame(kPing, kNone, 0, "12345678"));
}

TEST_F(FrameGateTest, HoldsHeadersUntilTheyEnd) {
  EXPECT_EQ(Send(Frame(kHeaders, kNone, 1, "pa")), "");
  EXPECT_EQ(Send(Frame(kContinuation, kEndHeaders, 1, "th")), Passed(1));
}

TEST_F(FrameGateTest, EndsConnectionsWhoseHeadersDoNotEnd) {
  Send(Frame(kHeaders, kNone, 1, std::string(kMaxHeaderBlockBytes, 'h')));
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(Send(Frame(kContinuation, kNone, 1, "h")), "");
  EXPECT_EQ(status_.message(), "the headers of a call take more than 12000 bytes");
}

TEST_F(FrameGateTest, EndsConnectionsThatPutAnythingBetweenHeadersAndTheirContinuation) {
  Send(Frame(kHeaders, kNone, 1, "pa"));
  Send(Frame(kContinuation, kEndHeaders, 3, "th"));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("CONTINUATION"));
}

TEST_F(FrameGateTest, EndsConnectionsThatContinueNothing) {
  Send(Frame(kContinuation, kEndHeaders, 1, "th"));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("CONTINUATION"));
}

TEST_F(FrameGateTest, EndsConnectionsThatPadHeaders) {
  Send(Frame(kHeaders, kEndHeaders | kPadded, 1, "path"));
  EXPECT_EQ(status_.message(), "padded headers");
}

TEST_F(FrameGateTest, EndsConnectionsWithLongFramesThatAreNoData) {
  gate_.LetIn(&calls_);
  Send(Frame(kSettings, kNone, 0, std::string(kMaxControlFrameBytes + 1, 's')));
  EXPECT_EQ(status_.message(), "a frame of type 4 takes 16385 bytes, more than 16384");
}

TEST_F(FrameGateTest, EndsConnectionsThatBeginCallsWithoutTheServersSettings) {
  gate_.LetIn(&calls_);
  EXPECT_EQ(Send(Repeat(Call(1), kMaxPublicCalls)), Repeat(Passed(1), kMaxPublicCalls));
  Send(Call(1));
  EXPECT_EQ(status_.message(),
            "more than 100 calls before the client acknowledged the server's settings");
}

TEST_F(FrameGateTest, LetsUnauthenticatedPeersBeginFewCalls) {
  EXPECT_EQ(Send(Repeat(Call(1), kUnauthenticatedCalls + 1)),
            Repeat(Passed(1), kUnauthenticatedCalls));
  EXPECT_EQ(gate_.wait(), absl::InfiniteDuration());
  gate_.LetIn(&calls_);
  EXPECT_EQ(Send(""), Passed(1));
  EXPECT_EQ(gate_.wait(), absl::ZeroDuration());
}

TEST_F(FrameGateTest, LetsUnauthenticatedPeersSendLittle) {
  const std::string data = Frame(kData, kNone, 1, std::string(kUnauthenticatedBytes - 8, 'd'));
  EXPECT_EQ(Send(data), "");
  gate_.LetIn(&calls_);
  EXPECT_EQ(Send(""), data);
}

TEST_F(FrameGateTest, PassesCallsAtARate) {
  Settle();
  const int burst = static_cast<int>(kCallBurst);
  EXPECT_EQ(Send(Repeat(Call(1), burst + 3)), Repeat(Passed(1), burst));
  EXPECT_EQ(gate_.wait(), absl::Seconds(1 / kCallsPerSecond));
  now_ += absl::Seconds(2 / kCallsPerSecond);
  EXPECT_EQ(Send(""), Passed(1) + Passed(1));
}

TEST_F(FrameGateTest, CountsCallsOfAllConnectionsOfAnAddress) {
  Settle();
  while (calls_.Take(now_) == absl::ZeroDuration()) {
  }
  EXPECT_EQ(Send(Call(1)), "");
  EXPECT_GT(gate_.wait(), absl::ZeroDuration());
}

TEST_F(FrameGateTest, CountsCallsWithThoseOfItsUserOnceItIsLetIn) {
  while (calls_.Take(now_) == absl::ZeroDuration()) {
  }
  EXPECT_EQ(Send(Call(1)), "") << "its address' calls are used up";
  Rate users{kCallsPerSecond, kCallBurst};
  gate_.LetIn(&users);
  EXPECT_EQ(Send(""), Passed(1));
  while (users.Take(now_) == absl::ZeroDuration()) {
  }
  EXPECT_EQ(Send(Call(1)), "");
}

TEST_F(FrameGateTest, PassesPingsAndSettingsAtARate) {
  Settle();
  const std::string ping = Frame(kPing, kNone, 0, "12345678");
  const int left = static_cast<int>(kControlFrameBurst) - 1;
  EXPECT_EQ(Send(Repeat(ping, left + 1)), Repeat(ping, left));
  EXPECT_EQ(gate_.wait(), absl::Seconds(1 / kControlFramesPerSecond));
}

TEST_F(FrameGateTest, PassesSmallFramesAtARateAndLargeOnesAtAny) {
  Settle();
  const std::string reset = Frame(kReset, kNone, 1, "1234");
  const int burst = static_cast<int>(kSmallFrameBurst);
  EXPECT_EQ(Send(Repeat(reset, burst + 1)), Repeat(reset, burst));
  EXPECT_EQ(gate_.wait(), absl::Seconds(1 / kSmallFramesPerSecond));
  now_ += gate_.wait();
  EXPECT_EQ(Send(""), reset);
  const std::string data = Frame(kData, kNone, 1, std::string(kSmallFrameBytes, 'd'));
  EXPECT_EQ(Send(Repeat(data, burst)), Repeat(data, burst));
}

TEST(FrameGatePrefaceTest, EndsConnectionsThatBeginOtherwise) {
  Rate calls(1, 1);
  FrameGate gate("n", "v", &calls);
  string_view in = "PRI * HTTP/1.1";
  std::string out;
  const absl::Status status = gate.Pass(absl::ZeroDuration(), &in, &out);
  EXPECT_EQ(status.message(), "HTTP/2: wrong connection preface");
}

TEST(RateTest, GivesBackNoMoreThanItsBurst) {
  Rate rate(10, 2);
  const absl::Duration later = absl::Seconds(100);
  EXPECT_EQ(rate.Take(later), absl::ZeroDuration());
  EXPECT_EQ(rate.Take(later), absl::ZeroDuration());
  EXPECT_EQ(rate.Take(later), absl::Milliseconds(100));
}

}  // namespace
}  // namespace ablate::net
