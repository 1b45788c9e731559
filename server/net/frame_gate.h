// Filters what a client sends to gRPC by HTTP/2 frames, because gRPC 1.51 bounds neither the length
// of a header block nor how fast calls are begun and reset.
#ifndef ABLATE_SERVER_NET_FRAME_GATE_H_
#define ABLATE_SERVER_NET_FRAME_GATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::net {

// Limits events per second, with a burst after a pause (token bucket). Not thread-safe.
class Rate {
 public:
  Rate(double per_second, double burst) : per_second_(per_second), burst_(burst), left_(burst) {}
  // Counts one event if there is room; otherwise returns the time until there is.
  absl::Duration Take(absl::Duration now);

 private:
  const double per_second_;
  const double burst_;
  double left_;
  absl::Duration filled_;
};

// Filters one connection in the direction client to server. Passes header blocks only when
// complete, as one frame, with one more header at the end. Delays frames that come too fast; ends
// the connection at frames that none of our clients sends. Not thread-safe.
class FrameGate {
 public:
  // `calls` is shared by the unauthenticated connections of an address, and must outlive this
  // object. `name` and `value`, at most 126 bytes each, are the header that every call gets. A
  // client can forge this header or hide ours, so trust it only if its value is one that the client
  // can't know.
  FrameGate(absl::string_view name, absl::string_view value, Rate* calls);
  // Moves the bytes that may pass at `now` from `in` to `out`; the rest waits in `in`. An error is
  // a sentence about the client's mistake and ends the connection.
  absl::Status Pass(absl::Duration now, absl::string_view* in, std::string* out);
  // Returns how long after the last Pass nothing more passes: zero if nothing waits, infinite if it
  // waits for LetIn.
  absl::Duration wait() const { return wait_; }
  // Lifts the limits of unauthenticated peers after a call with a valid token. Its calls now count
  // in `calls`, which must outlive this object.
  void LetIn(Rate* calls) {
    unauthenticated_ = false;
    calls_ = calls;
  }

 private:
  enum class Part { kPreface, kHead, kPayload, kBlock };
  static constexpr size_t kHeadBytes = 9;
  struct Head {
    size_t length;
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
  };

  absl::Status TakePreface(absl::string_view* in, std::string* out);
  absl::Status TakeHead(absl::Duration now, absl::string_view* in, std::string* out);
  void TakePayload(absl::string_view* in, std::string* out);
  void TakeBlock(absl::string_view* in, std::string* out);
  Head ReadHead() const;
  // Returns OK if a frame with this head is allowed at this point.
  absl::Status CheckFrame(const Head& head) const;
  absl::Status CheckStart(const Head& head) const;
  // Returns how long the frame in `head_` must wait; counts it if zero.
  absl::Duration Admit(absl::Duration now, const Head& head);
  bool WithinUnauthenticatedLimits(const Head& head) const;
  void Begin(const Head& head, std::string* out);
  void EndBlock(std::string* out);

  const std::string stamp_;  // every call's added header, as HPACK
  Rate* calls_;
  Rate control_;
  Rate small_;
  absl::Duration wait_;
  bool unauthenticated_ = true;
  bool settings_acknowledged_ = false;
  size_t unauthenticated_bytes_ = 0;
  uint64_t begun_ = 0;
  Part part_ = Part::kPreface;
  size_t preface_ = 0;  // received bytes of the connection preface
  std::array<unsigned char, kHeadBytes> head_{};
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  // State of the unfinished header block.
  bool in_block_ = false;
  bool last_of_block_ = false;
  uint8_t block_flags_ = 0;
  uint32_t block_stream_ = 0;
  std::string block_;
};

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_FRAME_GATE_H_
