// Why a shared server is not reached: what gRPC says of a failed handshake is one word for all.
#ifndef ABLATE_PROTO_JOIN_TLS_TROUBLE_H_
#define ABLATE_PROTO_JOIN_TLS_TROUBLE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/join/channel.h"

namespace ablate::join {

inline constexpr absl::Duration kDiagnosisTimeout = absl::Seconds(2);

// Tries a handshake with a server of which gRPC said that it is not reached by TLS, so the address
// has an authority. Sends no token and no data, and takes little longer than `timeout`. OK if
// nothing is wrong now. UNAVAILABLE says which of these it is, and what to do about it:
// - the name can't be resolved, nobody listens there, it is not reached, or not in time;
// - who answers speaks no TLS, ends it, or speaks no HTTP/2 in it;
// - the certificate is by another authority than the join file's, is not for the server's name, or
//   is not valid by this machine's clock.
// Thread-safe.
absl::Status DiagnoseTls(const ServerAddress& server, absl::Duration timeout = kDiagnosisTimeout);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_TLS_TROUBLE_H_
