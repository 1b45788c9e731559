// Tests facts of certificates, and texts that aren't certificates.
#include "base/certificate_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/openssl.h"
#include "server/access/certificates.h"

namespace ablate::tls {
namespace {

using access::CertifiedKey;
using access::MakeServerCertificate;
using testing::HasSubstr;
using testing::MatchesRegex;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00:00 UTC

CertifiedKey Authority() { return access::MakeAuthority("box", kNow).value(); }

TEST(CertificateFactsTest, RefusesWhatIsNoPem) {
  const CertifiedKey authority = Authority();
  for (const std::string& text :
       {std::string(), std::string("garbage"), authority.key,
        authority.certificate.substr(0, authority.certificate.size() / 2)}) {
    EXPECT_EQ(ReadFacts(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(CheckKey(text, authority.key).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(CheckIssued(authority.certificate, text).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CheckKey(authority.certificate, authority.certificate).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CertificateFactsTest, AKeyWithAPassphraseAsksNobody) {
  const std::string encrypted =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
      "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_THAT(std::string(ParseKey(encrypted).status().message()),
              HasSubstr("without a passphrase"));
}

TEST(CertificateFactsTest, DescribesACertificateForPeople) {
  const auto server = MakeServerCertificate(Authority(), {"box.example.org"}, kNow);
  const auto facts = ReadFacts(server->certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->fingerprint, MatchesRegex("([0-9A-F][0-9A-F]:){31}[0-9A-F][0-9A-F]"));
  EXPECT_EQ(Describe(*facts),
            absl::StrCat("names        box.example.org, localhost, 127.0.0.1, ::1\n"
                         "made by      ablate box\n"
                         "valid from   2027-01-15 07:00:00 UTC\n"
                         "valid until  2028-02-16 08:00:00 UTC\n"
                         "SHA-256      ",
                         facts->fingerprint, "\n"));
}

}  // namespace
}  // namespace ablate::tls
