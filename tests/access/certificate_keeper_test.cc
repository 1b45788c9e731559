// Tests the certificate over the years that a server runs.
#include "server/access/certificate_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/test_folder.h"

namespace ablate::access {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00:00 UTC
constexpr absl::Duration kDay = absl::Hours(24);

class CertificateKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    auto sharing = Sharing::Open(home_.path());
    ASSERT_TRUE(sharing.ok()) << sharing.status();
    sharing_ = *std::move(sharing);
    const absl::Status made =
        sharing_->Initialize("box.example.org:7443", {"10.0.0.7"}, "ada", kStart);
    ASSERT_TRUE(made.ok()) << made;
    CertificateKeeperOptions options;
    options.now = [this] { return now_; };
    options.elapsed = [this] { return elapsed_; };
    options.use = [this](const ServerTls& tls) {
      used_.push_back(tls.facts.fingerprint);
      return refusal_;
    };
    options.log = [](const std::string&) {};
    options.warn = [this](const std::string& what) { warnings_.push_back(what); };
    keeper_ = std::make_unique<CertificateKeeper>(sharing_.get(), options);
  }

  void Pass(absl::Duration time) {
    now_ += time;
    elapsed_ += time;
  }

  // Advances by days until another certificate is used; returns the number of days, or 0.
  int DaysUntilUsed(int most) {
    used_.clear();
    for (int day = 1; day <= most; ++day) {
      Pass(kDay);
      keeper_->Check();
      if (!used_.empty()) return day;
    }
    return 0;
  }

  const TestFolder home_;
  absl::Time now_ = kStart;
  absl::Duration elapsed_ = absl::Hours(100);
  absl::Status refusal_;
  std::vector<std::string> used_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Sharing> sharing_;
  std::unique_ptr<CertificateKeeper> keeper_;
};

TEST_F(CertificateKeeperTest, LoadsWhatIsThereWhileTimeIsLeft) {
  const auto tls = keeper_->Load();
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->facts.not_after, kStart + kServerLifetime);
  EXPECT_THAT(used_, IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CertificateKeeperTest, RenewsAtAStartWhatHasExpired) {
  now_ = kStart + kServerLifetime + kDay;
  const auto tls = keeper_->Load();
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->facts.not_after, now_ + kServerLifetime);
  EXPECT_THAT(tls->facts.names,
              ElementsAre("box.example.org", "10.0.0.7", "localhost", "127.0.0.1", "::1"));
}

TEST_F(CertificateKeeperTest, LooksOnceADay) {
  ASSERT_TRUE(keeper_->Load().ok());
  EXPECT_FALSE(keeper_->due());
  const auto by_hand = Renew(home_ / "tls", {}, now_);
  ASSERT_TRUE(by_hand.ok()) << by_hand.status();
  Pass(kDay - absl::Seconds(1));
  keeper_->Check();
  EXPECT_THAT(used_, IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_TRUE(keeper_->due());
  keeper_->Check();
  EXPECT_FALSE(keeper_->due());
  Pass(kDay);
  keeper_->Check();
  EXPECT_THAT(used_, ElementsAre(by_hand->facts.fingerprint)) << "once, for it is the same";
}

TEST_F(CertificateKeeperTest, RenewsWhileTheServerRuns) {
  ASSERT_TRUE(keeper_->Load().ok());
  EXPECT_EQ(DaysUntilUsed(500), 397 - 30 + 1);
  EXPECT_EQ(used_.back(), sharing_->LoadTls(now_)->facts.fingerprint);
  EXPECT_EQ(DaysUntilUsed(500), 397 - 30 + 1) << "and again";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CertificateKeeperTest, RenewsNothingByAClockThatIsAheadForAWhile) {
  ASSERT_TRUE(keeper_->Load().ok());
  Pass(kDay);
  keeper_->Check();
  now_ += 390 * kDay;
  EXPECT_TRUE(keeper_->due()) << "the clock was set";
  keeper_->Check();
  EXPECT_FALSE(keeper_->due());
  now_ -= 390 * kDay;
  Pass(absl::Minutes(5));
  EXPECT_TRUE(keeper_->due());
  keeper_->Check();
  EXPECT_THAT(used_, IsEmpty());
  EXPECT_EQ(sharing_->LoadTls(now_)->facts.not_after, kStart + kServerLifetime);
}

TEST_F(CertificateKeeperTest, RenewsByAClockThatStaysAhead) {
  ASSERT_TRUE(keeper_->Load().ok());
  Pass(kDay);
  now_ += 390 * kDay;
  keeper_->Check();
  EXPECT_THAT(used_, IsEmpty());
  Pass(CertificateKeeper::kSettled);
  EXPECT_TRUE(keeper_->due());
  keeper_->Check();
  EXPECT_THAT(used_, SizeIs(1));
  EXPECT_EQ(sharing_->LoadTls(now_)->facts.not_after, now_ + kServerLifetime);
}

TEST_F(CertificateKeeperTest, UsesTheOldOneWhenAClockThatWasAheadGoesBack) {
  const auto first = keeper_->Load();
  ASSERT_TRUE(first.ok());
  Pass(kDay);
  now_ += 390 * kDay;
  keeper_->Check();
  Pass(CertificateKeeper::kSettled);
  keeper_->Check();
  ASSERT_THAT(used_, SizeIs(1)) << "it was renewed";
  now_ -= 390 * kDay;
  keeper_->Check();
  ASSERT_THAT(used_, SizeIs(2));
  EXPECT_EQ(used_.back(), first->facts.fingerprint);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_GT(DaysUntilUsed(500), 300) << "the old one is renewed in its time";
  EXPECT_EQ(sharing_->LoadTls(now_)->facts.not_after, now_ + kServerLifetime);
}

TEST_F(CertificateKeeperTest, RenewsNothingAtAStartWhileItIsValid) {
  now_ = kStart + 390 * kDay;
  const auto tls = keeper_->Load();
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->facts.not_after, kStart + kServerLifetime);
  EXPECT_FALSE(keeper_->due());
  Pass(CertificateKeeper::kSettled);
  keeper_->Check();
  EXPECT_THAT(used_, SizeIs(1));
}

TEST_F(CertificateKeeperTest, WarnsWhereTheKeyIsKeptElsewhere) {
  std::filesystem::remove(home_ / "tls/authority.key");
  now_ = kStart + kServerLifetime - kDay;
  EXPECT_TRUE(keeper_->Load().ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("tls/authority.key is missing")));
  EXPECT_EQ(DaysUntilUsed(1), 0);
  Pass(kDay);
  keeper_->Check();
  EXPECT_THAT(warnings_, Contains(HasSubstr("keeps its present certificate")));
  EXPECT_EQ(keeper_->Load().status().code(), absl::StatusCode::kFailedPrecondition) << "expired";
}

TEST_F(CertificateKeeperTest, UsesAtOnceWhatAnAdminRenewed) {
  ASSERT_TRUE(keeper_->Load().ok());
  sharing_->OnRenewal([this] { keeper_->Reload(); });
  const auto renewed = sharing_->Renew({"new.example"}, now_);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_THAT(used_, ElementsAre(renewed->fingerprint));
  sharing_->OnRenewal(nullptr);
  EXPECT_TRUE(sharing_->Renew({}, now_).ok());
  EXPECT_EQ(used_.size(), 1u);
}

TEST_F(CertificateKeeperTest, WarnsOfWhatCanNotBeUsed) {
  ASSERT_TRUE(keeper_->Load().ok());
  ASSERT_TRUE(Renew(home_ / "tls", {}, now_).ok());
  refusal_ = absl::InvalidArgumentError("no such curve");
  keeper_->Reload();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("present certificate: no such curve")));
  refusal_ = absl::OkStatus();
  keeper_->Reload();
  EXPECT_EQ(used_.size(), 2u) << "it is tried again";
}

}  // namespace
}  // namespace ablate::access
