// Limits of a port that anybody on the network may reach; docs/adr/0010 has the measurements.
#ifndef ABLATE_SERVER_NET_PUBLIC_LIMITS_H_
#define ABLATE_SERVER_NET_PUBLIC_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace ablate::net {

// Connections. A peer is unauthenticated until one of its calls has had a valid token.

// Each has three descriptors and, open and idle, about 100 kB.
inline constexpr size_t kMaxPublicConnections = 4'096;
// Per address: a team behind one router shares it, and all nodes of a cluster behind one relay.
inline constexpr size_t kMaxConnectionsOfAddress = 2'048;
// Per user, from all addresses; connections with tokens of several users count for no user.
inline constexpr size_t kMaxConnectionsOfUser = 2'048;
// If all of these are taken, the one that has waited longest is closed: an honest client needs its
// place for a few round trips only.
inline constexpr size_t kMaxUnauthenticatedPeers = 512;
// Part of these per address, so that an address displaces its own and not those from elsewhere.
inline constexpr size_t kMaxUnauthenticatedPeersOfAddress = 128;
// Time from accepting the connection, over TLS, to the first call with a valid token.
inline constexpr absl::Duration kLetInTimeout = absl::Seconds(10);

// Bytes that an unauthenticated peer may send until then; the rest waits. The first call is
// answered at its headers, so that no client depends on the rest.
inline constexpr size_t kUnauthenticatedBytes = 64 << 10;
inline constexpr int kUnauthenticatedCalls = 8;

// Limits for everybody.

// Per call, compressed: gRPC holds an unfinished header block without a limit.
inline constexpr size_t kMaxHeaderBlockBytes = 12'000;
// Per call, uncompressed, by gRPC's count; it refuses a call with more.
inline constexpr int kMaxMetadataBytes = 8 << 10;
// Limit of frames other than data and headers: HTTP/2's default, which nobody may exceed.
inline constexpr size_t kMaxControlFrameBytes = 16 << 10;
// At once per connection; an open call holds about 12 kB, and up to kMaxMetadataBytes more.
inline constexpr int kMaxPublicCalls = 100;
// Calls of all connections of a user, from any address, and of all unauthenticated connections of
// an address. gRPC handles some thousands a second, and later callers wait for them; with a burst
// of 2,000 that was half a second. Connections with tokens of several users, such as a proxy's,
// count with their address.
inline constexpr double kCallsPerSecond = 1'000;
inline constexpr double kCallBurst = 250;
// PING and SETTINGS frames per connection; gRPC answers each and keeps much of what they make. A
// client that measures its bandwidth pings ten times a second.
inline constexpr double kControlFramesPerSecond = 50;
inline constexpr double kControlFrameBurst = 100;
// Frames of less than kSmallFrameBytes per connection, which cost more to read than to send. A fast
// download acknowledges with some thousands a second.
inline constexpr size_t kSmallFrameBytes = 1'024;
inline constexpr double kSmallFramesPerSecond = 10'000;
inline constexpr double kSmallFrameBurst = 10'000;

// Output that waits for a client: the client must read this much of it, or all, in this time.
inline constexpr size_t kDrainBytes = 64 << 10;
inline constexpr absl::Duration kDrainTimeout = absl::Seconds(60);
// Shortest time between two log lines about closed connections.
inline constexpr absl::Duration kSayHangUpsEvery = absl::Seconds(10);
// Buffer of one connection between the network and gRPC, in each direction.
inline constexpr size_t kPipeBytes = 64 << 10;

// Memory that gRPC may use for messages and windows in transfer before it shrinks windows and ends
// calls. Requests of 4 MiB by some dozens of clients at once fit.
inline constexpr size_t kPublicQuotaBytes = size_t{256} << 20;
// Threads of gRPC's own services that take one per open call: reflection, which any reader may hold
// open. Our services need none of these.
inline constexpr int kMaxPublicServiceThreads = 32;
// A client without calls for this long is disconnected, and reconnects for its next call.
inline constexpr absl::Duration kMaxPublicIdle = absl::Minutes(10);
// A silent peer is pinged after this time, and disconnected if it doesn't answer.
inline constexpr absl::Duration kPublicPingAfter = absl::Minutes(1);
inline constexpr absl::Duration kPublicPingTimeout = absl::Seconds(20);
// Clients may ping this often without data; gRPC counts strikes for more, and then disconnects.
inline constexpr absl::Duration kMinPublicPingInterval = absl::Seconds(10);

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_PUBLIC_LIMITS_H_
