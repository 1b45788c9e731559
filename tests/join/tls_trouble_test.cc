// Tests diagnoses of connection failures, with listeners on this machine that each make one
// mistake.
#include "proto/join/tls_trouble.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/certificate_facts.h"
#include "base/file.h"
#include "base/openssl.h"
#include "server/access/certificates.h"

namespace ablate::join {
namespace {

using access::CertifiedKey;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

// Enough on a busy machine, because no test waits for its end.
constexpr absl::Duration kLong = absl::Minutes(1);

// A port on loopback for this test only. If it listens, connections wait until they are accepted;
// otherwise they are refused.
class Port {
 public:
  explicit Port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), any, size), 0);
    EXPECT_EQ(getsockname(socket_.get(), any, &size), 0);
    if (listens) {
      EXPECT_EQ(listen(socket_.get(), 8), 0);
    }
    number_ = ntohs(address.sin_port);
  }
  int socket() const { return socket_.get(); }
  std::string address() const { return absl::StrCat("127.0.0.1:", number_); }

 private:
  process::FileDescriptor socket_;
  int number_ = 0;
};

// Passes the first connection to `serve`, then closes it.
class Listener {
 public:
  explicit Listener(std::function<void(int)> serve)
      : port_(true), thread_([this, serve = std::move(serve)] {
          const process::FileDescriptor client(accept(port_.socket(), nullptr, nullptr));
          if (client.open()) serve(client.get());
        }) {}
  ~Listener() {
    shutdown(port_.socket(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return port_.address(); }

 private:
  const Port port_;
  std::thread thread_;
};

enum class Alpn { kH2, kNone, kRefused };

int Choose(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char*,
           unsigned int, void* alpn) {
  *chosen = reinterpret_cast<const unsigned char*>("h2");
  *size = 2;
  switch (*static_cast<Alpn*>(alpn)) {
    case Alpn::kH2:
      return SSL_TLSEXT_ERR_OK;
    case Alpn::kNone:
      return SSL_TLSEXT_ERR_NOACK;
    case Alpn::kRefused:
      return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Performs a handshake; returns how the client ends it, as SSL_get_error does.
int ServeTls(int socket, const CertifiedKey& pair, Alpn alpn) {
  const tls::Owned<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_use_certificate(context.get(), tls::ParseCertificate(pair.certificate).value().get());
  SSL_CTX_use_PrivateKey(context.get(), tls::ParseKey(pair.key).value().get());
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_alpn_select_cb(context.get(), Choose, &alpn);
  const tls::Owned<SSL, SSL_free> session(SSL_new(context.get()));
  SSL_set_fd(session.get(), socket);
  if (SSL_accept(session.get()) != 1) return SSL_ERROR_SSL;
  char byte = 0;
  return SSL_get_error(session.get(), SSL_read(session.get(), &byte, 1));
}

class TlsTroubleTest : public testing::Test {
 protected:
  CertifiedKey Server(absl::Time made, absl::Duration lifetime = access::kServerLifetime) const {
    return access::MakeServerCertificate(authority_, {"box.example.org"}, made, lifetime).value();
  }

  // Returns the diagnosis for a client with a join file by the authority at the address.
  absl::Status Diagnose(const std::string& address, const std::string& name = "box.example.org",
                        absl::Duration timeout = kLong) const {
    return DiagnoseTls({address, "box", name, authority_.certificate, "secret"}, timeout);
  }

  // The same for a server with that certificate.
  absl::Status DiagnoseServer(const CertifiedKey& pair, const std::string& name = "box.example.org",
                              Alpn alpn = Alpn::kH2) const {
    const Listener listener([&](int socket) { ServeTls(socket, pair, alpn); });
    return Diagnose(listener.address(), name);
  }

  const absl::Time now_ = absl::Now();
  const CertifiedKey authority_ = access::MakeAuthority("box", now_ - absl::Hours(72)).value();
};

void ExpectTrouble(const absl::Status& status, const testing::Matcher<std::string>& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), message);
}

TEST_F(TlsTroubleTest, FindsNothingWhereAllIsRight) {
  for (const std::string name : {"box.example.org", "localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(DiagnoseServer(Server(now_), name), absl::OkStatus()) << name;
  }
}

TEST_F(TlsTroubleTest, SendsNothingBehindTheHandshake) {
  int end = SSL_ERROR_NONE;
  {
    const Listener listener([&](int socket) { end = ServeTls(socket, Server(now_), Alpn::kH2); });
    EXPECT_EQ(Diagnose(listener.address()), absl::OkStatus());
  }
  EXPECT_EQ(end, SSL_ERROR_ZERO_RETURN) << "TLS's own goodbye";
}

TEST_F(TlsTroubleTest, TellsThatNobodyListens) {
  const Port port(false);
  ExpectTrouble(Diagnose(port.address()),
                AllOf(HasSubstr("nobody listens at " + port.address()), HasSubstr("--listen")));
}

TEST_F(TlsTroubleTest, TellsThatANameIsNotResolved) {
  ExpectTrouble(Diagnose("no-such-box.invalid:7443"),
                HasSubstr("the name no-such-box.invalid can't be resolved ("));
}

TEST_F(TlsTroubleTest, TellsThatItTookTooLong) {
  const Port silent(true);
  ExpectTrouble(Diagnose(silent.address(), "box.example.org", absl::Milliseconds(50)),
                AnyOf(HasSubstr("doesn't begin TLS in time"), HasSubstr("not resolved in time"),
                      HasSubstr("is not reached")));
}

TEST_F(TlsTroubleTest, TellsThatTheAnswerIsNoTls) {
  const Listener listener([](int socket) {
    char hello[4096];
    EXPECT_GT(recv(socket, hello, sizeof hello, 0), 0);
    const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_EQ(send(socket, answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    while (recv(socket, hello, sizeof hello, 0) > 0) continue;
  });
  ExpectTrouble(Diagnose(listener.address()),
                AllOf(HasSubstr("doesn't use TLS 1.2 or later"), HasSubstr(listener.address())));
}

TEST_F(TlsTroubleTest, TellsThatTheConnectionIsEnded) {
  const Listener listener([](int) {});
  ExpectTrouble(Diagnose(listener.address()), HasSubstr("closes the connection before TLS begins"));
}

TEST_F(TlsTroubleTest, TellsThatHttp2IsNotSpoken) {
  ExpectTrouble(DiagnoseServer(Server(now_), "box.example.org", Alpn::kNone),
                HasSubstr("doesn't use HTTP/2 in TLS"));
  ExpectTrouble(DiagnoseServer(Server(now_), "box.example.org", Alpn::kRefused),
                HasSubstr("refuses TLS for HTTP/2"));
}

TEST_F(TlsTroubleTest, TellsThatAnotherAuthoritySigned) {
  const CertifiedKey other = access::MakeAuthority("box", now_).value();
  const CertifiedKey theirs =
      access::MakeServerCertificate(other, {"box.example.org"}, now_).value();
  ExpectTrouble(DiagnoseServer(theirs),
                AllOf(HasSubstr("is not trusted"),
                      HasSubstr("not by the authority of the join file"), HasSubstr("made again")));
}

TEST_F(TlsTroubleTest, AnotherAuthorityIsToldBeforeAnExpiry) {
  const CertifiedKey other = access::MakeAuthority("other", now_ - absl::Hours(72)).value();
  const CertifiedKey theirs = access::MakeServerCertificate(other, {"box.example.org"},
                                                            now_ - absl::Hours(48), absl::Hours(1))
                                  .value();
  ExpectTrouble(DiagnoseServer(theirs),
                AllOf(HasSubstr("by \"ablate other\""),
                      HasSubstr("of the join file, \"ablate box\""), Not(HasSubstr("expired on"))));
}

TEST_F(TlsTroubleTest, TellsForWhichNamesTheCertificateIs) {
  for (const std::string name : {"other.example.org", "10.0.0.8", "::2"}) {
    ExpectTrouble(
        DiagnoseServer(Server(now_), name),
        AllOf(HasSubstr(absl::StrCat("is not for ", name, ", only for box.example.org, ")),
              HasSubstr(absl::StrCat("`ablate admin renew --host ", name, "`"))));
  }
}

TEST_F(TlsTroubleTest, TellsWhenTheCertificateExpired) {
  const CertifiedKey expired = Server(now_ - absl::Hours(48), absl::Hours(24));
  const std::string end = tls::FormatDate(tls::ReadFacts(expired.certificate)->not_after);
  ExpectTrouble(DiagnoseServer(expired),
                AllOf(HasSubstr("its certificate expired on " + end),
                      HasSubstr("by this machine's clock it is "), HasSubstr("admin renew")));
}

TEST_F(TlsTroubleTest, TellsFromWhenTheCertificateIsValid) {
  const CertifiedKey early = Server(now_ + absl::Hours(48));
  const std::string begin = tls::FormatDate(tls::ReadFacts(early.certificate)->not_before);
  ExpectTrouble(DiagnoseServer(early),
                AllOf(HasSubstr("its certificate is not valid before " + begin),
                      HasSubstr("by this machine's clock it is ")));
}

TEST_F(TlsTroubleTest, TellsThatTheAuthorityExpired) {
  const absl::Time long_ago = now_ - access::kAuthorityLifetime - absl::Hours(48);
  const CertifiedKey old = access::MakeAuthority("box", long_ago).value();
  const CertifiedKey pair =
      access::MakeServerCertificate(old, {"box.example.org"}, long_ago).value();
  const Listener listener([&](int socket) { ServeTls(socket, pair, Alpn::kH2); });
  ExpectTrouble(
      DiagnoseTls({listener.address(), "box", "box.example.org", old.certificate, ""}, kLong),
      AllOf(HasSubstr("the authority of the join file expired on"), HasSubstr("new join file")));
}

TEST_F(TlsTroubleTest, ListsNoMoreThanTheFirstNames) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 40; ++i) hosts.push_back(absl::StrCat("box", i, ".example.org"));
  const CertifiedKey many = access::MakeServerCertificate(authority_, hosts, now_).value();
  ExpectTrouble(DiagnoseServer(many, "other"),
                AllOf(HasSubstr("box7.example.org, …"), Not(HasSubstr("box8.example.org"))));
}

}  // namespace
}  // namespace ablate::join
