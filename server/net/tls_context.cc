#include "server/net/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace ablate::net {
namespace {

// Chooses h2 or fails: a client that doesn't offer it does not speak gRPC.
int ChooseH2(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
             unsigned int offered_size, void*) {
  static constexpr unsigned char kH2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  const int agreed = SSL_select_next_proto(&found, size, kH2, sizeof(kH2), offered, offered_size);
  *chosen = found;
  return agreed == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

absl::Status UseCertificate(SSL_CTX* context, const std::string& certificate_chain,
                            const std::string& private_key) {
  const tls::Memory chain = tls::Reader(certificate_chain);
  const tls::Certificate own(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return absl::InvalidArgumentError("the server's certificate can't be read as PEM");
  }
  while (tls::Certificate next{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) {
      return absl::InvalidArgumentError(
          "the server's certificate chain can't be used; expected PEM certificates, the server's "
          "own first");
    }
  }
  const auto key = tls::ParseKey(private_key);
  if (!key.ok() || SSL_CTX_use_PrivateKey(context, key->get()) != 1) {
    return absl::InvalidArgumentError(
        "the server's private key can't be read as PEM, or belongs to another certificate");
  }
  return absl::OkStatus();
}

// Makes a connection keep as little as possible: no renegotiation, no sessions, no tickets, and no
// buffers while it is idle.
void UseLittle(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Many clients hang up without saying so in TLS; HTTP/2 detects truncation.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // Records without data are read one at a time, so that no peer delays others with them.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_alpn_select_cb(context, ChooseH2, nullptr);
}

}  // namespace

absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate_chain,
                                          const std::string& private_key) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("OpenSSL can't start");
  UseLittle(context.get());
  const absl::Status used = UseCertificate(context.get(), certificate_chain, private_key);
  // The end of a chain leaves an error in the queue, too.
  ERR_clear_error();
  if (!used.ok()) return used;
  return context;
}

}  // namespace ablate::net
