// Tests certificates with OpenSSL's own verification.
#include "server/access/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <set>

#include "absl/strings/str_split.h"
#include "base/certificate_facts.h"
#include "base/openssl.h"
#include "tests/access/now.h"
#include "tests/status_message.h"
#include "tests/test_folder.h"

namespace ablate::access {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tls::Certificate;
using tls::CheckIssued;
using tls::Owned;
using tls::ParseCertificate;
using tls::ReadFacts;

CertifiedKey Authority() { return MakeAuthority("box", kNow).value(); }

Certificate Parsed(const CertifiedKey& pair) { return ParseCertificate(pair.certificate).value(); }

// Returns OpenSSL's strict verification result for a TLS server at `now`: X509_V_OK or an error.
int Verify(const CertifiedKey& authority, const CertifiedKey& server, absl::Time now,
           const std::string& dns = "", const std::string& address = "") {
  const Certificate root = Parsed(authority);
  const Certificate leaf = Parsed(server);
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), root.get());
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  if (!dns.empty()) X509_VERIFY_PARAM_set1_host(parameters, dns.c_str(), dns.size());
  if (!address.empty()) X509_VERIFY_PARAM_set1_ip_asc(parameters, address.c_str());
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

TEST(CertificatesTest, ServesUnderEachOfItsNamesAndNoOther) {
  const CertifiedKey authority = Authority();
  const auto server =
      MakeServerCertificate(authority, {"Box.Example.org", "10.0.0.7", "[2001:db8::7]"}, kNow);
  ASSERT_TRUE(server.ok()) << server.status();
  for (const std::string name : {"box.example.org", "BOX.example.org", "localhost"}) {
    EXPECT_EQ(Verify(authority, *server, kNow, name), X509_V_OK) << name;
  }
  for (const std::string address : {"10.0.0.7", "127.0.0.1", "::1", "2001:db8:0::7"}) {
    EXPECT_EQ(Verify(authority, *server, kNow, "", address), X509_V_OK) << address;
  }
  // The subject's common name isn't a host's.
  for (const std::string name : {"other.example.org", "a.box.example.org", "10.0.0.7", "ablated"}) {
    EXPECT_EQ(Verify(authority, *server, kNow, name), X509_V_ERR_HOSTNAME_MISMATCH) << name;
  }
  for (const std::string address : {"10.0.0.8", "::2", "127.0.0.2"}) {
    EXPECT_EQ(Verify(authority, *server, kNow, "", address), X509_V_ERR_IP_ADDRESS_MISMATCH);
  }
}

TEST(CertificatesTest, IsValidBetweenItsTimes) {
  const CertifiedKey authority = Authority();
  const auto server = MakeServerCertificate(authority, {}, kNow, absl::Hours(10));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(Verify(authority, *server, kNow - kClockSkew), X509_V_OK);
  EXPECT_EQ(Verify(authority, *server, kNow + absl::Hours(10) - absl::Seconds(1)), X509_V_OK);
  EXPECT_EQ(Verify(authority, *server, kNow + absl::Hours(10) + absl::Seconds(1)),
            X509_V_ERR_CERT_HAS_EXPIRED);
  EXPECT_EQ(Verify(authority, *server, kNow - kClockSkew - absl::Seconds(1)),
            X509_V_ERR_CERT_NOT_YET_VALID);
}

TEST(CertificatesTest, ServersAreNotTrustedByAnotherAuthority) {
  const CertifiedKey ours = Authority();
  const CertifiedKey theirs = Authority();  // of the same name
  const auto server = MakeServerCertificate(theirs, {}, kNow);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE(Verify(ours, *server, kNow), X509_V_OK);
  EXPECT_EQ(CheckIssued(ours.certificate, server->certificate).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(CheckIssued(theirs.certificate, server->certificate).ok());
  // A server's certificate signs nothing.
  EXPECT_FALSE(CheckIssued(server->certificate, server->certificate).ok());
}

TEST(CertificatesTest, TheAuthoritySignsServersAndNothingBelow) {
  const CertifiedKey authority = Authority();
  const Certificate root = Parsed(authority);
  EXPECT_EQ(X509_check_ca(root.get()), 1);
  EXPECT_EQ(X509_get_pathlen(root.get()), 0);
  EXPECT_EQ(X509_get_key_usage(root.get()), static_cast<uint32_t>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  EXPECT_NE(X509_get0_subject_key_id(root.get()), nullptr);
  EXPECT_EQ(X509_get_version(root.get()), X509_VERSION_3);
  const auto facts = ReadFacts(authority.certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->authority);
  EXPECT_EQ(facts->subject, "ablate box");
  EXPECT_EQ(facts->issuer, "ablate box");
  EXPECT_EQ(facts->not_after, kNow + kAuthorityLifetime);

  const auto server = MakeServerCertificate(authority, {}, kNow);
  const Certificate leaf = Parsed(*server);
  EXPECT_EQ(X509_check_ca(leaf.get()), 0);
  EXPECT_EQ(X509_get_key_usage(leaf.get()), static_cast<uint32_t>(KU_DIGITAL_SIGNATURE));
  EXPECT_EQ(X509_get_extended_key_usage(leaf.get()), static_cast<uint32_t>(XKU_SSL_SERVER));
  EXPECT_EQ(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf.get()),
                                  X509_get0_subject_key_id(root.get())),
            0);
  const auto misused = MakeServerCertificate(*server, {}, kNow);
  EXPECT_EQ(misused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(misused.status()), HasSubstr("isn't an authority's"));
}

TEST(CertificatesTest, SerialsAndKeysAreNeverTheSame) {
  const CertifiedKey authority = Authority();
  std::set<std::string> keys = {authority.key};
  std::set<int64_t> serials;
  int longest = 0;
  for (int i = 0; i < 20; ++i) {
    const auto server = MakeServerCertificate(authority, {}, kNow);
    keys.insert(server->key);
    const Certificate leaf = Parsed(*server);
    const ASN1_INTEGER* serial = X509_get0_serialNumber(leaf.get());
    longest = std::max(longest, ASN1_STRING_length(serial));
    EXPECT_NE(ASN1_STRING_type(serial), V_ASN1_NEG_INTEGER);
    int64_t first = 0;
    memcpy(&first, ASN1_STRING_get0_data(serial), sizeof first);
    serials.insert(first);
  }
  EXPECT_EQ(keys.size(), 21u);
  EXPECT_EQ(serials.size(), 20u);
  EXPECT_EQ(longest, 16);
}

TEST(CertificatesTest, SaysWhichHostIsWrong) {
  const CertifiedKey authority = Authority();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"10.0.0.256", "host \"10.0.0.256\": ends in a number"},
      {"box,DNS:evil.example", "host \"box,DNS:evil.example\""},
      {"a b", "not a DNS name"},
      {"", "host \"\""},
      {"0.0.0.0", "a client can't connect"},
      {"[::]", "a client can't connect"}};
  for (const auto& [host, what] : cases) {
    const auto server = MakeServerCertificate(authority, {"fine.example", host}, kNow);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument) << host;
    EXPECT_THAT(Message(server.status()), HasSubstr(what));
  }
  const std::vector<std::string> many(kMaxHosts + 1, "box");
  EXPECT_THAT(Message(MakeServerCertificate(authority, many, kNow).status()),
              HasSubstr("65 hosts; expected at most 64"));
}

TEST(CertificatesTest, ListsEachNameOnceAndThoseOfThisMachineLast) {
  const auto server =
      MakeServerCertificate(Authority(), {"box", "BOX", "::1", "box", "10.0.0.7"}, kNow);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(ReadFacts(server->certificate)->names,
              ElementsAre("box", "::1", "10.0.0.7", "localhost", "127.0.0.1"));
}

TEST(CertificatesTest, EndsWithItsAuthority) {
  const CertifiedKey authority = Authority();
  const absl::Time end = kNow + kAuthorityLifetime;
  const auto server = MakeServerCertificate(authority, {}, end - absl::Hours(24));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(ReadFacts(server->certificate)->not_after, end);
  const auto late = MakeServerCertificate(authority, {}, end + absl::Seconds(1));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(late.status()), HasSubstr("expired on 2037-01-14 08:00:00 UTC"));
}

TEST(CertificatesTest, RefusesAnAuthorityWithAnothersKey) {
  CertifiedKey authority = Authority();
  authority.key = Authority().key;
  EXPECT_THAT(Message(MakeServerCertificate(authority, {}, kNow).status()),
              HasSubstr("not the certificate's"));
}

TEST(CertificatesTest, AnAuthoritysNameHasABound) {
  EXPECT_TRUE(MakeAuthority(std::string(57, 'a'), kNow).ok());
  for (const std::string& name : {std::string(58, 'a'), std::string(), std::string("a\nb")}) {
    EXPECT_EQ(MakeAuthority(name, kNow).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Returns the output of a command, including standard error.
std::string Output(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  pclose(pipe);
  return text;
}

TEST(CertificatesTest, TheOpensslCommandAgrees) {
  if (std::system("openssl version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no openssl command here";
  const TestFolder folder;
  const absl::Time now = absl::Now();
  const auto authority = MakeAuthority("box", now);
  const auto server = MakeServerCertificate(*authority, {"box.example.org", "10.0.0.7"}, now);
  const std::string root = folder.Write("authority.pem", authority->certificate);
  const std::string leaf = folder.Write("server.pem", server->certificate);
  const std::string key = folder.Write("server.key", server->key);
  const std::string verify = "openssl verify -x509_strict -purpose sslserver -CAfile " + root;
  EXPECT_EQ(Output(verify + " " + leaf), leaf + ": OK\n");
  EXPECT_EQ(Output(verify + " -verify_hostname box.example.org " + leaf), leaf + ": OK\n");
  EXPECT_EQ(Output(verify + " -verify_ip 10.0.0.7 " + leaf), leaf + ": OK\n");
  EXPECT_EQ(Output(verify + " -verify_ip ::1 " + leaf), leaf + ": OK\n");
  EXPECT_THAT(Output(verify + " -verify_hostname other.example.org " + leaf),
              HasSubstr("ostname mismatch"));
  EXPECT_THAT(Output("openssl x509 -noout -fingerprint -sha256 -in " + leaf),
              HasSubstr(ReadFacts(server->certificate)->fingerprint));
  EXPECT_EQ(Output("openssl pkey -pubout -in " + key),
            Output("openssl x509 -noout -pubkey -in " + leaf));
  const std::string text = Output("openssl x509 -noout -text -in " + root);
  EXPECT_THAT(text, HasSubstr("CA:TRUE, pathlen:0"));
  EXPECT_THAT(text, HasSubstr("NIST CURVE: P-256"));
  EXPECT_THAT(text, Not(HasSubstr("rror")));
}

}  // namespace
}  // namespace ablate::access
