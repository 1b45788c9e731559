// What a client may send to gRPC, judged by HTTP/2's frames: gRPC 1.51 bounds neither the length
// of a header block nor how fast calls are begun and reset.
#ifndef ABLATE_SERVER_RPC_FRAME_GATE_H_
#define ABLATE_SERVER_RPC_FRAME_GATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::rpc {

// So many things in a second, and a burst of them after a pause. Not thread-safe.
class Rate {
 public:
  Rate(double per_second, double burst) : per_second_(per_second), burst_(burst), left_(burst) {}
  // Counts one if there is room for it; otherwise returns for how long there is none.
  absl::Duration Take(absl::Duration now);

 private:
  const double per_second_;
  const double burst_;
  double left_;
  absl::Duration filled_;
};

// One direction of one connection, client to server. Header blocks pass when they are whole, as
// one frame, and with one more header at their end. Frames that come too fast wait; what no client
// of ours sends ends the connection. Not thread-safe.
class FrameGate {
 public:
  // `calls` is shared by the strangers of an address, and must outlive this. `name` and `value`,
  // of at most 126 bytes each, are the header that every call gets. What stands before it may keep
  // it from being read as one, and may look like it: only a value that the client can't know is
  // worth anything.
  FrameGate(absl::string_view name, absl::string_view value, Rate* calls);
  // Appends to `out` what may pass at `now` and takes it off `in`. What is left waits. An error is
  // a sentence about what the client did, and the end of its connection.
  absl::Status Pass(absl::Duration now, absl::string_view* in, std::string* out);
  // For how long after the last Pass nothing more passes: zero if nothing waits, infinite if it
  // waits for LetIn.
  absl::Duration wait() const { return wait_; }
  // One of its calls had a token that is good: the limits of strangers end, and its calls count
  // with those that `calls` counts, which must outlive this.
  void LetIn(Rate* calls) {
    stranger_ = false;
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
  // Whether a frame may come at all, in what it is and where it stands.
  absl::Status CheckFrame(const Head& head) const;
  absl::Status CheckStart(const Head& head) const;
  // For how long the frame in `head_` must wait; zero counts it.
  absl::Duration Admit(absl::Duration now, const Head& head);
  bool WithinStrangersLimits(const Head& head) const;
  void Begin(const Head& head, std::string* out);
  void EndBlock(std::string* out);

  const std::string stamp_;  // the header of every call, as HPACK
  Rate* calls_;
  Rate control_;
  Rate small_;
  absl::Duration wait_;
  bool stranger_ = true;
  bool settings_acknowledged_ = false;
  size_t strangers_bytes_ = 0;
  uint64_t begun_ = 0;
  Part part_ = Part::kPreface;
  size_t preface_ = 0;  // bytes of it that came
  std::array<unsigned char, kHeadBytes> head_{};
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  // The header block that has not ended.
  bool in_block_ = false;
  bool last_of_block_ = false;
  uint8_t block_flags_ = 0;
  uint32_t block_stream_ = 0;
  std::string block_;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_FRAME_GATE_H_
