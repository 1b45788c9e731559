// Fuzzes the first bytes of a connection with libFuzzer: what the frame gate passes to gRPC.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/frame_gate.h"
#include "server/net/public_limits.h"

namespace ablate::rpc {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kHeadBytes = 9;
constexpr uint8_t kHeaders = 1, kContinuation = 9, kEndHeaders = 4, kPadded = 8;
// One header, name "n" and value "v", never indexed: the gate adds it to every call.
const std::string kStamp("\0\1n\1v", 5);

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::string passed;
  std::string error;
};

// If the connection ends, bytes before the error may have passed, or not.
bool IsSame(const Outcome& a, const Outcome& b) {
  if (a.error != b.error) return false;
  if (a.error.empty()) return a.passed == b.passed;
  return absl::StartsWith(a.passed, b.passed) || absl::StartsWith(b.passed, a.passed);
}

// Feeds the bytes in pieces of at most `most`, cut by `seed`, and returns the result. Delayed bytes
// wait.
Outcome Feed(absl::string_view bytes, bool let_in, size_t most, uint32_t seed) {
  net::Rate calls(net::kCallsPerSecond, net::kCallBurst);
  net::FrameGate gate("n", "v", &calls);
  if (let_in) gate.LetIn(&calls);
  std::minstd_rand random(seed);
  absl::Duration now = absl::Seconds(1'000);
  Outcome outcome;
  std::string waiting;
  while (!bytes.empty()) {
    const size_t piece = std::min<size_t>(1 + random() % most, bytes.size());
    absl::StrAppend(&waiting, bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    while (true) {
      absl::string_view rest = waiting;
      const absl::Status passed = gate.Pass(now, &rest, &outcome.passed);
      waiting = std::string(rest);
      if (!passed.ok()) {
        outcome.error = std::string(passed.message());
        return outcome;
      }
      if (gate.wait() <= absl::ZeroDuration() || gate.wait() == absl::InfiniteDuration()) break;
      now += gate.wait();
    }
  }
  return outcome;
}

size_t Number(absl::string_view bytes) {
  size_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Checks the preface and the frames, of which the last may be cut in its payload: header blocks are
// whole, within the limit, and have the added header.
void CheckPassed(absl::string_view passed) {
  if (passed.size() < kPreface.size()) return Require(absl::StartsWith(kPreface, passed));
  Require(absl::StartsWith(passed, kPreface));
  passed.remove_prefix(kPreface.size());
  while (!passed.empty()) {
    Require(passed.size() >= kHeadBytes);
    const size_t length = Number(passed.substr(0, 3));
    const auto type = static_cast<uint8_t>(passed[3]), flags = static_cast<uint8_t>(passed[4]);
    passed.remove_prefix(kHeadBytes);
    Require(type != kContinuation);
    if (type == kHeaders) {
      Require((flags & kEndHeaders) != 0 && (flags & kPadded) == 0);
      Require(length <= net::kMaxHeaderBlockBytes + kStamp.size() && length <= passed.size());
      Require(absl::EndsWith(passed.substr(0, length), kStamp));
    }
    passed.remove_prefix(std::min(length, passed.size()));
  }
}

void Try(absl::string_view input) {
  if (input.size() < 3) return;
  const bool let_in = (input[0] & 1) != 0;
  const auto seed = static_cast<uint32_t>(Number(input.substr(0, 3)));
  absl::string_view bytes = input.substr(3);
  // Half of the inputs get the preface added.
  std::string with_preface;
  if ((input[0] & 2) != 0) {
    with_preface = std::string(kPreface) + std::string(bytes);
    bytes = with_preface;
  }
  const Outcome whole = Feed(bytes, let_in, bytes.size() + 1, 1);
  CheckPassed(whole.passed);
  for (const size_t most : {1, 50}) {
    const Outcome cut = Feed(bytes, let_in, most, seed);
    CheckPassed(cut.passed);
    Require(IsSame(whole, cut));
  }
}

}  // namespace
}  // namespace ablate::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::rpc::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
