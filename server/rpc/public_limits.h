// What a port bears that anybody on the network may reach: docs/adr/0010 has what was measured.
#ifndef ABLATE_SERVER_RPC_PUBLIC_LIMITS_H_
#define ABLATE_SERVER_RPC_PUBLIC_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace ablate::rpc {

// Connections. A stranger is a connection of which no call has had a token that is good.

// Each has three descriptors and, open and idle, about 100 kB.
inline constexpr size_t kMaxPublicConnections = 512;
// Of one address: a team behind one router or tunnel shares it, workers included.
inline constexpr size_t kMaxConnectionsOfAddress = 64;
// Of one user, from wherever they come; connections with tokens of several users are no one's.
inline constexpr size_t kMaxConnectionsOfUser = 128;
// When these are taken the one who has waited longest makes room: an honest client needs its place
// for a few round trips.
inline constexpr size_t kMaxStrangers = 128;
// Of these, so that one address pushes out its own and not those from elsewhere.
inline constexpr size_t kMaxStrangersOfAddress = 16;
// From being accepted over TLS to the first call with a token that is good.
inline constexpr absl::Duration kLetInTimeout = absl::Seconds(10);

// What a stranger may send until then; the rest waits. The answer to its first call comes at the
// call's headers, so that nobody waits for the rest.
inline constexpr size_t kStrangerBytes = 64 << 10;
inline constexpr int kStrangerCalls = 8;

// Everybody.

// Of one call, compressed: gRPC holds a header block that has not ended without a limit.
inline constexpr size_t kMaxHeaderBlockBytes = 12'000;
// Of one call, as they are spelt out, in gRPC's count; it refuses a call with more.
inline constexpr int kMaxMetadataBytes = 8 << 10;
// Of frames that are neither data nor headers: HTTP/2's default, beyond which nobody may go.
inline constexpr size_t kMaxControlFrameBytes = 16 << 10;
// At once on a connection; an open call holds about 12 kB, and up to kMaxMetadataBytes more.
inline constexpr int kMaxPublicCalls = 100;
// Calls of all connections of a user, wherever they come from, and of all strangers of an address:
// gRPC does some thousands in a second, and whoever comes behind waits for them. With a burst of
// 2,000 that was half a second. Connections with tokens of several users, as a proxy's, count with
// their address.
inline constexpr double kCallsPerSecond = 1'000;
inline constexpr double kCallBurst = 250;
// PING and SETTINGS of a connection, each of which makes gRPC write and much of which it keeps. A
// client that measures its bandwidth pings ten times a second.
inline constexpr double kControlFramesPerSecond = 50;
inline constexpr double kControlFrameBurst = 100;
// Frames of less than kSmallFrameBytes of a connection, which cost more to read than to send. A
// fast download acknowledges with some thousands in a second.
inline constexpr size_t kSmallFrameBytes = 1'024;
inline constexpr double kSmallFramesPerSecond = 10'000;
inline constexpr double kSmallFrameBurst = 10'000;

// What waits for a client that doesn't read: it must take so much, or all, in that time.
inline constexpr size_t kDrainBytes = 64 << 10;
inline constexpr absl::Duration kDrainTimeout = absl::Seconds(60);
// The log gets a sentence so often, whatever happens.
inline constexpr absl::Duration kSayHangUpsEvery = absl::Seconds(10);
// Of one connection between the network and gRPC, in each direction.
inline constexpr size_t kPipeBytes = 64 << 10;

// Memory that gRPC may use for messages and windows on the way before it shrinks windows and ends
// calls. Requests of 4 MiB by some dozens of clients at once fit.
inline constexpr size_t kPublicQuotaBytes = size_t{256} << 20;
// Threads of gRPC's own services that have one for each open call: reflection, which any reader may
// hold open. Calls of ours have none of these.
inline constexpr int kMaxPublicServiceThreads = 32;
// A client without calls for so long reconnects when it has one.
inline constexpr absl::Duration kMaxPublicIdle = absl::Minutes(10);
// A peer that is gone without a word: pinged after this time, and cut off when it doesn't answer.
inline constexpr absl::Duration kPublicPingAfter = absl::Minutes(1);
inline constexpr absl::Duration kPublicPingTimeout = absl::Seconds(20);
// Clients may ping so often without data; after that come strikes, and the end.
inline constexpr absl::Duration kMinPublicPingInterval = absl::Seconds(10);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_PUBLIC_LIMITS_H_
