#include "proto/join/tls_trouble.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/certificate_facts.h"
#include "base/file.h"
#include "base/host.h"
#include "base/openssl.h"
#include "base/status_macros.h"
#include "base/tcp.h"

namespace ablate::join {
namespace {

using Context = tls::Owned<SSL_CTX, SSL_CTX_free>;
using Session = tls::Owned<SSL, SSL_free>;
using Store = tls::Owned<X509_STORE, X509_STORE_free>;
using StoreContext = tls::Owned<X509_STORE_CTX, X509_STORE_CTX_free>;
using std::chrono::steady_clock;

constexpr size_t kMaxNamesShown = 8;
constexpr size_t kMaxEscaped = 80;
constexpr unsigned char kH2[] = {2, 'h', '2'};

// Returns text of an untrusted certificate, escaped, on one line.
std::string Escaped(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, kMaxEscaped));
}

template <typename... Parts>
absl::Status Trouble(const Parts&... parts) {
  return absl::UnavailableError(absl::StrCat(parts...));
}

// The time limit of one diagnosis.
class Deadline {
 public:
  explicit Deadline(absl::Duration timeout)
      : end_(steady_clock::now() + absl::ToChronoNanoseconds(timeout)) {}
  std::chrono::milliseconds left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - steady_clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }

 private:
  const steady_clock::time_point end_;
};

// Returns false on timeout.
bool Await(int socket, short events, std::chrono::milliseconds timeout) {
  pollfd waiting = {socket, events, 0};
  return poll(&waiting, 1, static_cast<int>(timeout.count())) > 0;
}

using Endpoints = std::vector<net::Endpoint>;

// Resolves a name. The resolver has no time limit, so that a slow call continues in the background.
absl::StatusOr<Endpoints> Find(const text::HostPort& server, const Deadline& deadline) {
  std::packaged_task<absl::StatusOr<Endpoints>()> task([server] { return net::Resolve(server); });
  std::future<absl::StatusOr<Endpoints>> resolved = task.get_future();
  std::thread(std::move(task)).detach();
  constexpr absl::string_view kToDo =
      ": look at the name in the join file, and at this machine's network";
  if (resolved.wait_for(deadline.left()) != std::future_status::ready) {
    return Trouble("the name ", server.host.text, " was not resolved in time", kToDo);
  }
  absl::StatusOr<Endpoints> endpoints = resolved.get();
  if (endpoints.ok()) return endpoints;
  return Trouble("the name ", server.host.text, " can't be resolved (",
                 endpoints.status().message(), ")", kToDo);
}

// Returns 0, or the errno for which there is no connection.
int ConnectTo(const net::Endpoint& endpoint, std::chrono::milliseconds timeout,
              process::FileDescriptor* connected) {
  *connected = process::FileDescriptor(
      socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!connected->open()) return errno;
  const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (connect(connected->get(), address, endpoint.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!Await(connected->get(), POLLOUT, timeout)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(connected->get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// Connects to the first endpoint that accepts. The remaining endpoints share the remaining time.
absl::StatusOr<process::FileDescriptor> Connect(const std::string& address,
                                                const Endpoints& endpoints,
                                                const Deadline& deadline) {
  int error = EHOSTUNREACH;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    process::FileDescriptor connected;
    error = ConnectTo(endpoints[i], deadline.left() / static_cast<int64_t>(endpoints.size() - i),
                      &connected);
    if (error == 0) return connected;
  }
  if (error == ECONNREFUSED) {
    return Trouble("nobody listens at ", address,
                   ": is the server up, with --listen and that port?");
  }
  return Trouble(address, " is not reached (", std::strerror(error),
                 "): is that machine up, and do firewalls let that port through?");
}

absl::Status EndedByServer(const std::string& address) {
  return Trouble(address,
                 " closes the connection before TLS begins: it isn't a shared server, or the "
                 "server is full or stopping");
}

// Returns the error for a response that OpenSSL can't parse; `error` is its first error.
absl::Status NotUnderstood(const std::string& address, unsigned long error) {
  const char* const text = ERR_reason_error_string(error);
  const std::string reason = text != nullptr ? text : "no reason";
  if (ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET) {
    return Trouble(address, " refuses TLS for HTTP/2 (", reason, "): it isn't a shared server");
  }
  return Trouble(address, " doesn't use TLS 1.2 or later (", reason,
                 "): is that the port of the server's --listen?");
}

// Sends through memory, because OpenSSL's own writes would raise SIGPIPE.
bool SendAll(BIO* bytes, int socket) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bytes, &data);
  const bool sent =
      size == 0 || send(socket, data, static_cast<size_t>(size), MSG_NOSIGNAL) == size;
  return BIO_reset(bytes) == 1 && sent;
}

// Opens TLS, without checking the certificate: no secret is sent afterwards.
absl::Status ShakeHands(const std::string& address, SSL* session, int socket,
                        const Deadline& deadline) {
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(session, in, out);  // owns them
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(session);
    const int state = SSL_get_error(session, result);
    const unsigned long error = ERR_peek_error();
    ERR_clear_error();
    const bool sent = SendAll(out, socket);
    if (result == 1) return absl::OkStatus();
    if (state != SSL_ERROR_WANT_READ) return NotUnderstood(address, error);
    if (!sent) return EndedByServer(address);
    if (!Await(socket, POLLIN, deadline.left())) {
      return Trouble(address,
                     " doesn't begin TLS in time: it isn't a shared server, or the server hangs");
    }
    std::array<char, 16 << 10> bytes;
    const ssize_t size = recv(socket, bytes.data(), bytes.size(), 0);
    if (size <= 0) return EndedByServer(address);
    BIO_write(in, bytes.data(), static_cast<int>(size));
  }
}

// Returns true if the authority signed the certificate, ignoring validity times; otherwise sets
// OpenSSL's reason.
bool IsBy(X509* authority, X509* certificate, STACK_OF(X509) * others, std::string* reason) {
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_add_cert(store.get(), authority);
  X509_STORE_CTX_init(context.get(), store.get(), certificate, others);
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER);
  const bool verified = X509_verify_cert(context.get()) == 1;
  *reason = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  return verified;
}

bool IsFor(X509* certificate, const std::string& name) {
  return X509_check_host(certificate, name.data(), name.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(certificate, name.c_str(), 0) == 1;
}

std::string NamesOf(const tls::CertificateFacts& facts) {
  if (facts.names.empty()) return "nothing";
  const size_t shown = std::min(facts.names.size(), kMaxNamesShown);
  return absl::StrCat(
      absl::StrJoin(
          facts.names.begin(), facts.names.begin() + static_cast<ptrdiff_t>(shown), ", ",
          [](std::string* out, const std::string& name) { absl::StrAppend(out, Escaped(name)); }),
      shown < facts.names.size() ? ", …" : "");
}

// `whose` names the certificate's owner, and `to_do` the remedy if this machine's clock is right.
absl::Status CheckTimes(const tls::CertificateFacts& facts, const std::string& whose,
                        absl::string_view to_do) {
  const absl::Time now = absl::Now();
  if (tls::CheckTimes(facts, now).ok()) return absl::OkStatus();
  const bool late = now > facts.not_after;
  return Trouble(whose, late ? " expired on " : " is not valid before ",
                 tls::FormatDate(late ? facts.not_after : facts.not_before),
                 "; by this machine's clock it is ", tls::FormatDate(now),
                 ": if the clock is right, ", to_do);
}

absl::StatusOr<tls::CertificateFacts> FactsOf(const tls::Certificate& certificate) {
  ASSIGN_OR_RETURN(const std::string pem, tls::ToPem(certificate));
  return tls::ReadFacts(pem);
}

// Checks in gRPC's order: the signature, the validity times, the names.
absl::Status JudgeCertificate(const ServerAddress& server, SSL* session) {
  const std::string distrusted =
      absl::StrCat("the server at ", server.address, " is not trusted: ");
  const tls::Certificate certificate(SSL_get1_peer_certificate(session));
  if (certificate == nullptr) return Trouble(distrusted, "it shows no certificate");
  const auto facts = FactsOf(certificate);
  if (!facts.ok()) return Trouble(distrusted, "its certificate can't be read");
  const auto authority = tls::ParseCertificate(server.authority);
  const auto authority_facts = tls::ReadFacts(server.authority);
  if (!authority.ok() || !authority_facts.ok()) {
    return Trouble("the certificate of the authority in the join file can't be read: an admin of ",
                   "the server makes a new join file");
  }
  std::string reason;
  if (!IsBy(authority->get(), certificate.get(), SSL_get_peer_cert_chain(session), &reason)) {
    const std::string subject = Escaped(authority_facts->subject);
    return Trouble(distrusted, "its certificate, by \"", Escaped(facts->issuer),
                   "\", is not by the authority of the join file, \"", subject, "\"",
                   subject == Escaped(facts->issuer)
                       ? absl::StrCat(" of ", tls::FormatDate(authority_facts->not_before), " (")
                       : " (",
                   reason,
                   "). It is another server, or someone is between; or its tls/ was made again: ",
                   "then its admin has a new join file for you");
  }
  RETURN_IF_ERROR(CheckTimes(*authority_facts,
                             absl::StrCat(distrusted, "the authority of the join file"),
                             "its admin begins with a new one, and has a new join file for you"));
  RETURN_IF_ERROR(CheckTimes(*facts, absl::StrCat(distrusted, "its certificate"),
                             "an admin of the server runs `ablate admin renew`"));
  if (IsFor(certificate.get(), server.server_name)) return absl::OkStatus();
  return Trouble(distrusted, "its certificate is not for ", server.server_name, ", only for ",
                 NamesOf(*facts), ": reach it by one of these, or an admin of the server runs ",
                 "`ablate admin renew --host ", server.server_name, "`");
}

bool AgreedOnH2(const SSL* session) {
  const unsigned char* chosen = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(session, &chosen, &size);
  return absl::string_view(reinterpret_cast<const char*>(chosen), size) == "h2";
}

// Creates a session as gRPC does.
Session MakeSession(const Context& context, const std::string& server_name) {
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // The certificate is checked afterwards.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  Session session(SSL_new(context.get()));
  if (session == nullptr) return nullptr;
  SSL_set_alpn_protos(session.get(), kH2, sizeof kH2);
  const auto name = text::ParseHost(server_name);
  const bool is_dns = name.ok() && name->address.empty();
  if (is_dns) SSL_set_tlsext_host_name(session.get(), server_name.c_str());
  return session;
}

}  // namespace

absl::Status DiagnoseTls(const ServerAddress& server, absl::Duration timeout) {
  const Deadline deadline(timeout);
  const auto reached_at = text::ParseHostPort(server.address);
  if (!reached_at.ok()) {
    return Trouble("the address is ", server.address, ": ", reached_at.status().message());
  }
  ASSIGN_OR_RETURN(const auto endpoints, Find(*reached_at, deadline));
  ASSIGN_OR_RETURN(const auto connected, Connect(server.address, endpoints, deadline));
  const Context context(SSL_CTX_new(TLS_client_method()));
  const Session session = MakeSession(context, server.server_name);
  // No diagnosis is possible; gRPC's message has to do.
  if (session == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(ShakeHands(server.address, session.get(), connected.get(), deadline));
  // Closes TLS properly, so that the server doesn't see a broken connection.
  SSL_shutdown(session.get());
  SendAll(SSL_get_wbio(session.get()), connected.get());
  ERR_clear_error();
  absl::Status trusted = JudgeCertificate(server, session.get());
  if (!trusted.ok() || AgreedOnH2(session.get())) return trusted;
  return Trouble(server.address,
                 " doesn't use HTTP/2 in TLS: it isn't a shared server, or a proxy in between "
                 "doesn't pass HTTP/2 on");
}

}  // namespace ablate::join
