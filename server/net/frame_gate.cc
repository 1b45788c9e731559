#include "server/net/frame_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Types and flags of frames (RFC 9113, section 6).
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kAck = 0x1;
constexpr uint8_t kEndHeaders = 0x4;
constexpr uint8_t kPadded = 0x8;

// Encodes a header that HPACK puts into no table (RFC 7541, section 6.2.2), without Huffman coding.
std::string Literal(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1), std::string(1, static_cast<char>(name.size())),
                      name, std::string(1, static_cast<char>(value.size())), value);
}

void AppendHead(size_t length, uint8_t type, uint8_t flags, uint32_t stream, std::string* out) {
  const uint32_t parts[] = {static_cast<uint32_t>(length >> 16),
                            static_cast<uint32_t>(length >> 8),
                            static_cast<uint32_t>(length),
                            type,
                            flags,
                            stream >> 24,
                            stream >> 16,
                            stream >> 8,
                            stream};
  for (const uint32_t part : parts) out->push_back(static_cast<char>(part & 0xff));
}

bool IsBlock(uint8_t type) { return type == kHeaders || type == kContinuation; }
bool IsControl(uint8_t type) { return type == kSettings || type == kPing; }

void Move(size_t size, absl::string_view* in, std::string* out) {
  absl::StrAppend(out, in->substr(0, size));
  in->remove_prefix(size);
}

}  // namespace

absl::Duration Rate::Take(absl::Duration now) {
  left_ = std::min(burst_, left_ + absl::ToDoubleSeconds(now - filled_) * per_second_);
  filled_ = now;
  if (left_ < 1) return absl::Seconds((1 - left_) / per_second_);
  left_ -= 1;
  return absl::ZeroDuration();
}

FrameGate::FrameGate(absl::string_view name, absl::string_view value, Rate* calls)
    : stamp_(Literal(name, value)),
      calls_(calls),
      control_(kControlFramesPerSecond, kControlFrameBurst),
      small_(kSmallFramesPerSecond, kSmallFrameBurst) {}

absl::Status FrameGate::Pass(absl::Duration now, absl::string_view* in, std::string* out) {
  wait_ = absl::ZeroDuration();
  // A head whose frame had to wait is complete: continue without another byte.
  while (wait_ == absl::ZeroDuration() && (!in->empty() || head_size_ == kHeadBytes)) {
    absl::Status taken;
    switch (part_) {
      case Part::kPreface:
        taken = TakePreface(in, out);
        break;
      case Part::kHead:
        taken = TakeHead(now, in, out);
        break;
      case Part::kPayload:
        TakePayload(in, out);
        break;
      case Part::kBlock:
        TakeBlock(in, out);
        break;
    }
    if (!taken.ok()) return taken;
  }
  return absl::OkStatus();
}

absl::Status FrameGate::TakePreface(absl::string_view* in, std::string* out) {
  const size_t size = std::min(in->size(), kPreface.size() - preface_);
  if (in->substr(0, size) != kPreface.substr(preface_, size)) {
    return absl::InvalidArgumentError("HTTP/2: wrong connection preface");
  }
  Move(size, in, out);
  preface_ += size;
  if (preface_ == kPreface.size()) part_ = Part::kHead;
  return absl::OkStatus();
}

absl::Status FrameGate::TakeHead(absl::Duration now, absl::string_view* in, std::string* out) {
  const size_t size = std::min(in->size(), kHeadBytes - head_size_);
  std::copy_n(in->begin(), size, head_.begin() + head_size_);
  in->remove_prefix(size);
  head_size_ += size;
  if (head_size_ < kHeadBytes) return absl::OkStatus();
  const Head head = ReadHead();
  RETURN_IF_ERROR(CheckFrame(head));
  wait_ = Admit(now, head);
  if (wait_ == absl::ZeroDuration()) Begin(head, out);
  return absl::OkStatus();
}

FrameGate::Head FrameGate::ReadHead() const {
  const auto number = [this](size_t from, size_t size) {
    uint32_t value = 0;
    for (size_t i = from; i < from + size; ++i) value = value << 8 | head_[i];
    return value;
  };
  return {number(0, 3), head_[3], head_[4], number(5, 4) & 0x7fffffff};
}

absl::Status FrameGate::CheckFrame(const Head& head) const {
  if (in_block_ != (head.type == kContinuation) || (in_block_ && head.stream != block_stream_)) {
    return absl::InvalidArgumentError("HTTP/2: a CONTINUATION frame doesn't follow its headers");
  }
  if (IsBlock(head.type) && block_.size() + head.length > kMaxHeaderBlockBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the headers of a call take more than ", kMaxHeaderBlockBytes, " bytes"));
  }
  if (!IsBlock(head.type) && head.type != kData && head.length > kMaxControlFrameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of type ", head.type, " takes ",
                                                   head.length, " bytes, more than ",
                                                   kMaxControlFrameBytes));
  }
  return head.type == kHeaders ? CheckStart(head) : absl::OkStatus();
}

absl::Status FrameGate::CheckStart(const Head& head) const {
  // Padding would come after the added header.
  if ((head.flags & kPadded) != 0) return absl::InvalidArgumentError("padded headers");
  // Until the client acknowledges SETTINGS, gRPC doesn't limit its number of calls.
  if (!settings_acknowledged_ && begun_ >= uint64_t{kMaxPublicCalls}) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxPublicCalls,
                     " calls before the client acknowledged the server's settings"));
  }
  return absl::OkStatus();
}

bool FrameGate::WithinUnauthenticatedLimits(const Head& head) const {
  if (!unauthenticated_) return true;
  if (head.type == kHeaders && begun_ >= uint64_t{kUnauthenticatedCalls}) return false;
  return unauthenticated_bytes_ + kHeadBytes + head.length <= kUnauthenticatedBytes;
}

absl::Duration FrameGate::Admit(absl::Duration now, const Head& head) {
  if (!WithinUnauthenticatedLimits(head)) return absl::InfiniteDuration();
  if (head.type == kHeaders) return calls_->Take(now);
  if (IsControl(head.type)) return control_.Take(now);
  if (head.length < kSmallFrameBytes) return small_.Take(now);
  return absl::ZeroDuration();
}

void FrameGate::Begin(const Head& head, std::string* out) {
  if (unauthenticated_) unauthenticated_bytes_ += kHeadBytes + head.length;
  if (head.type == kSettings && (head.flags & kAck) != 0) settings_acknowledged_ = true;
  head_size_ = 0;
  payload_left_ = head.length;
  if (!IsBlock(head.type)) {
    AppendHead(head.length, head.type, head.flags, head.stream, out);
    part_ = head.length > 0 ? Part::kPayload : Part::kHead;
    return;
  }
  if (head.type == kHeaders) {
    ++begun_;
    in_block_ = true;
    block_flags_ = head.flags;
    block_stream_ = head.stream;
  }
  last_of_block_ = (head.flags & kEndHeaders) != 0;
  part_ = Part::kBlock;
  if (head.length > 0) return;
  part_ = Part::kHead;
  if (last_of_block_) EndBlock(out);
}

void FrameGate::TakePayload(absl::string_view* in, std::string* out) {
  const size_t size = std::min(in->size(), payload_left_);
  Move(size, in, out);
  payload_left_ -= size;
  if (payload_left_ == 0) part_ = Part::kHead;
}

void FrameGate::TakeBlock(absl::string_view* in, std::string* out) {
  const size_t size = std::min(in->size(), payload_left_);
  Move(size, in, &block_);
  payload_left_ -= size;
  if (payload_left_ > 0) return;
  part_ = Part::kHead;
  if (last_of_block_) EndBlock(out);
}

void FrameGate::EndBlock(std::string* out) {
  AppendHead(block_.size() + stamp_.size(), kHeaders, block_flags_ | kEndHeaders, block_stream_,
             out);
  absl::StrAppend(out, block_, stamp_);
  block_.clear();
  in_block_ = false;
}

}  // namespace ablate::net
