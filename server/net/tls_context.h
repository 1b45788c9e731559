// Configures TLS of the public port.
#ifndef ABLATE_SERVER_NET_TLS_CONTEXT_H_
#define ABLATE_SERVER_NET_TLS_CONTEXT_H_

#include <openssl/ssl.h>

#include <string>

#include "absl/status/statusor.h"
#include "base/openssl.h"

namespace ablate::net {

using TlsContext = tls::Owned<SSL_CTX, SSL_CTX_free>;
using TlsSession = tls::Owned<SSL, SSL_free>;

// Returns a server's context: TLS 1.2 or later, HTTP/2 only. Both texts are PEM, the server's own
// certificate first in its chain. INVALID_ARGUMENT if they can't be read or do not belong together.
absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate_chain,
                                          const std::string& private_key);

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_TLS_CONTEXT_H_
