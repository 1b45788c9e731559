// Tests which requests the live page refuses.
#include "client/web/guard.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::web {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint16_t kPort = 8123;

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() {
    request_.method = "GET";
    request_.path = "/";
    request_.host = "127.0.0.1:8123";
    request_.cookies = absl::StrCat("other=1; ablate-8123=", secrets_.cookie);
  }

  // The status of the refusal; 0: the request may be answered.
  int Refused() const {
    const auto refusal = Guard(request_, secrets_, kPort);
    return refusal.has_value() ? refusal->status : 0;
  }

  const Secrets secrets_ = MakeSecrets();
  Request request_;
};

TEST_F(GuardTest, AnswersThePageItself) {
  EXPECT_EQ(Refused(), 0);
  request_.host = "LOCALHOST:8123";
  request_.origin = "http://localhost:8123";
  request_.fetch_site = "same-origin";
  EXPECT_EQ(Refused(), 0);
}

TEST_F(GuardTest, RefusesAHostThatWasReboundToThisMachine) {
  for (const char* host : {"evil.example:8123", "127.0.0.1:80", "127.0.0.1", "",
                           "127.0.0.1.evil.example:8123", "localhost:81233"}) {
    request_.host = host;
    EXPECT_EQ(Refused(), 421) << host;
  }
}

TEST_F(GuardTest, RefusesAnotherOrigin) {
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:8123",
                             "http://127.0.0.1:8124", "http://localhost:8123"}) {
    request_.origin = origin;
    EXPECT_EQ(Refused(), 403) << origin;
  }
}

TEST_F(GuardTest, RefusesRequestsThatOtherSitesSend) {
  for (const char* site : {"cross-site", "same-site"}) {
    request_.fetch_site = site;
    EXPECT_EQ(Refused(), 403) << site;
  }
}

TEST_F(GuardTest, RefusesAGuessedPort) {
  request_.cookies = "";
  EXPECT_EQ(Refused(), 403);
  request_.cookies = "ablate-8123=";
  EXPECT_EQ(Refused(), 403);
  request_.cookies = absl::StrCat("ablate-8124=", secrets_.cookie);
  EXPECT_EQ(Refused(), 403);
  request_.cookies = absl::StrCat("ablate-8123=", secrets_.cookie, "0");
  EXPECT_EQ(Refused(), 403);
  request_.cookies = absl::StrCat("ablate-8123=", secrets_.address);
  EXPECT_EQ(Refused(), 403);
}

TEST_F(GuardTest, ExchangesTheAddressForACookie) {
  request_.cookies = "";
  request_.fetch_site = "cross-site";  // as from a file, which --open makes
  request_.query["token"] = secrets_.address;
  const auto entry = Guard(request_, secrets_, kPort);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, 200);
  std::string headers;
  for (const auto& [name, value] : entry->headers)
    absl::StrAppend(&headers, name, ": ", value, "\n");
  EXPECT_THAT(headers, AllOf(HasSubstr(absl::StrCat("Set-Cookie: ablate-8123=", secrets_.cookie)),
                             HasSubstr("HttpOnly"), HasSubstr("SameSite=Strict"),
                             HasSubstr("Refresh: 0; url=/\n"), Not(HasSubstr(secrets_.address))));
}

TEST_F(GuardTest, RefusesAnotherToken) {
  request_.query["token"] = secrets_.cookie;
  EXPECT_EQ(Refused(), 403);
  request_.query["token"] = "";
  EXPECT_EQ(Refused(), 403);
}

TEST_F(GuardTest, TakesAFormOnlyWithItsSecret) {
  request_.method = "POST";
  request_.content_type = "application/x-www-form-urlencoded";
  EXPECT_EQ(Refused(), 403);
  request_.form["form"] = secrets_.cookie;
  EXPECT_EQ(Refused(), 403);
  request_.form["form"] = secrets_.form;
  EXPECT_EQ(Refused(), 0);
  request_.content_type = "text/plain";  // that another site may send
  EXPECT_EQ(Refused(), 403);
}

TEST_F(GuardTest, TakesTheTokenOfTheAddressOnlyByGet) {
  request_.method = "POST";
  request_.cookies = "";
  request_.query["token"] = secrets_.address;
  EXPECT_EQ(Refused(), 403);
}

TEST_F(GuardTest, RefusesOtherMethods) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "TRACE"}) {
    request_.method = method;
    EXPECT_EQ(Refused(), 405) << method;
  }
}

TEST(PolicyTest, AllowsNoInlineScript) {
  Response response;
  AddPolicy("", &response);
  const std::string policy = response.headers.front().second;
  EXPECT_THAT(policy, AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self';"),
                            HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe")),
                            Not(HasSubstr("*"))));
}

TEST(SecretsTest, DifferFromEachOtherAndEachTime) {
  const Secrets a = MakeSecrets(), b = MakeSecrets();
  EXPECT_EQ(a.cookie.size(), 32u);
  EXPECT_NE(a.cookie, a.address);
  EXPECT_NE(a.cookie, a.form);
  EXPECT_NE(a.address, b.address);
  EXPECT_NE(a.cookie, b.cookie);
}

}  // namespace
}  // namespace ablate::web
