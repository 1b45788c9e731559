// Diagnoses why a shared server can't be reached, because gRPC reports every failed handshake
// alike.
#ifndef ABLATE_PROTO_JOIN_TLS_TROUBLE_H_
#define ABLATE_PROTO_JOIN_TLS_TROUBLE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/join/channel.h"

namespace ablate::join {

inline constexpr absl::Duration kDiagnosisTimeout = absl::Seconds(2);

// Tries a handshake with a server that gRPC couldn't reach by TLS; the address must have an
// authority. Sends no token and no data, and takes little longer than `timeout`. Returns OK if
// nothing is wrong now, and otherwise UNAVAILABLE with the cause and a remedy:
// - the name can't be resolved, nothing listens there, or it can't be reached, or not in time;
// - the peer doesn't speak TLS, closes it, or doesn't speak HTTP/2 in it;
// - the certificate is by another authority than the join file's, isn't for the server's name, or
//   isn't valid by this machine's clock.
//
// Thread-safe.
absl::Status DiagnoseTls(const ServerAddress& server, absl::Duration timeout = kDiagnosisTimeout);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_TLS_TROUBLE_H_
