// Tests the files of a shared server's certificates: permissions, damage, and states after a crash.
#include "server/access/tls_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/access/now.h"
#include "tests/status_message.h"
#include "tests/test_folder.h"

namespace ablate::access {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

mode_t Mode(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

class TlsFolderTest : public testing::Test {
 protected:
  TlsFolderTest() : tls_(home_ / "tls"), files_(tls_) {}

  void SetUp() override {
    const auto made = Initialize(tls_, {"box.example.org"}, kNow);
    ASSERT_TRUE(made.ok()) << made.status();
    first_ = *made;
  }

  void Replace(const std::string& file, const std::string& content) const {
    const mode_t mode = Mode(file);
    std::ofstream(file, std::ios::trunc) << content;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }

  absl::Status Loaded(absl::Time now = kNow) const { return Load(tls_, now).status(); }

  const TestFolder home_;
  const std::string tls_;
  const TlsFiles files_;
  ServerTls first_;
};

TEST_F(TlsFolderTest, MakesWhatItLoads) {
  EXPECT_EQ(Mode(tls_), 0700u);
  EXPECT_EQ(Mode(files_.authority_key), 0600u);
  EXPECT_EQ(Mode(files_.server_key), 0600u);
  EXPECT_THAT(Names(tls_),
              UnorderedElementsAre("authority.pem", "authority.key", "server.pem", "server.key"));
  EXPECT_THAT(Names(home_.path()), ElementsAre("tls"));
  const auto loaded = Load(tls_, kNow + absl::Hours(24));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->authority, ReadText(files_.authority_certificate));
  EXPECT_EQ(loaded->server.certificate, ReadText(files_.server_certificate));
  EXPECT_EQ(loaded->server.key, ReadText(files_.server_key));
  EXPECT_THAT(loaded->facts.names, ElementsAre("box.example.org", "localhost", "127.0.0.1", "::1"));
  EXPECT_EQ(loaded->facts.not_after, kNow + kServerLifetime);
  EXPECT_EQ(loaded->facts.fingerprint, first_.facts.fingerprint);
}

TEST_F(TlsFolderTest, NeverOverwritesAnAuthority) {
  const auto again = Initialize(tls_, {"box.example.org"}, kNow);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Message(again.status()), HasSubstr(tls_ + " exists, and join files"));
  EXPECT_EQ(ReadText(files_.authority_certificate), first_.authority);
  EXPECT_THAT(Names(home_.path()), ElementsAre("tls"));
}

TEST_F(TlsFolderTest, OneOfManyThatBeginTogetherMakesTheAuthority) {
  const std::string shared = home_ / "shared";
  std::vector<absl::Status> outcomes(8);
  std::vector<std::thread> threads;
  for (absl::Status& outcome : outcomes) {
    threads.emplace_back([&] { outcome = Initialize(shared, {}, kNow).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  int made = 0;
  for (const absl::Status& outcome : outcomes) {
    made += outcome.ok();
    EXPECT_TRUE(outcome.ok() || absl::IsAlreadyExists(outcome)) << outcome;
  }
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(Load(shared, kNow).ok());
  EXPECT_THAT(Names(home_.path()), UnorderedElementsAre("tls", "shared"));
}

TEST_F(TlsFolderTest, LeavesNothingWhereAHostIsWrong) {
  const auto made = Initialize(home_ / "other", {"0.0.0.0"}, kNow);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Names(home_.path()), ElementsAre("tls"));
  const auto nowhere = Initialize(home_ / "none/tls", {}, kNow);
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TlsFolderTest, SaysWhatIsMissing) {
  const auto none = Load(home_ / "none", kNow);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(none.status()), HasSubstr("ablate admin init"));
  for (const std::string& file :
       {files_.server_certificate, files_.server_key, files_.authority_certificate}) {
    const std::string away = home_ / "away";
    std::filesystem::rename(file, away);
    EXPECT_EQ(Loaded().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(Message(Loaded()), HasSubstr(file));
    std::filesystem::rename(away, file);
  }
  // The owner may keep it elsewhere.
  std::filesystem::remove(files_.authority_key);
  EXPECT_TRUE(Loaded().ok()) << Loaded();
  EXPECT_THAT(Message(Renew(tls_, {}, kNow).status()), HasSubstr(files_.authority_key));
}

TEST_F(TlsFolderTest, NamesTheModeOfAKeyThatOthersMayRead) {
  for (const std::string& key : {files_.server_key, files_.authority_key}) {
    ASSERT_EQ(chmod(key.c_str(), 0644), 0);
    EXPECT_EQ(Loaded().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(Loaded()), HasSubstr(key + " has mode 0644"));
    ASSERT_EQ(chmod(key.c_str(), 0600), 0);
  }
  ASSERT_EQ(chmod(tls_.c_str(), 0755), 0);
  EXPECT_THAT(Message(Loaded()), HasSubstr("has mode 755, must be 700"));
}

TEST_F(TlsFolderTest, SaysWhichFileIsNoPem) {
  for (const std::string& file :
       {files_.server_certificate, files_.server_key, files_.authority_certificate}) {
    const std::string old = ReadText(file);
    for (const std::string& bad :
         {std::string(), std::string("garbage"), old.substr(0, 60), std::string(70'000, 'x')}) {
      Replace(file, bad);
      EXPECT_EQ(Loaded().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(Message(Loaded()), HasSubstr(file));
      EXPECT_THAT(Message(Loaded()), HasSubstr(bad.size() > 60'000 ? "at most 65536" : "PEM"));
    }
    Replace(file, old);
  }
  EXPECT_TRUE(Loaded().ok()) << Loaded();
}

TEST_F(TlsFolderTest, SaysWhatDoesNotBelongTogether) {
  const auto other = Initialize(home_ / "other", {}, kNow);
  ASSERT_TRUE(other.ok());
  Replace(files_.server_key, other->server.key);
  EXPECT_THAT(Message(Loaded()),
              HasSubstr(files_.server_key + " isn't the key of the certificate in " +
                        files_.server_certificate));
  Replace(files_.server_key, first_.server.key);
  Replace(files_.authority_certificate, other->authority);
  EXPECT_THAT(Message(Loaded()), HasSubstr("wasn't signed by the authority in"));
  EXPECT_THAT(Message(Renew(tls_, {}, kNow).status()),
              HasSubstr(files_.authority_key + " isn't the key"));
}

TEST_F(TlsFolderTest, SaysWhenItExpired) {
  EXPECT_TRUE(Loaded(kNow + kServerLifetime).ok());
  const absl::Status late = Loaded(kNow + kServerLifetime + absl::Seconds(1));
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(late), AllOf(HasSubstr(files_.server_certificate),
                                   HasSubstr("expired on 2028-02-16 08:00:00 UTC")));
  EXPECT_THAT(Message(Loaded(kNow - absl::Hours(2))), HasSubstr("not valid before 2027-01-15"));
  const absl::Time end = kNow + kAuthorityLifetime + absl::Hours(1);
  EXPECT_THAT(Message(Loaded(end)),
              HasSubstr(files_.authority_certificate + ": the certificate exp"));
  EXPECT_THAT(Message(Renew(tls_, {}, end).status()),
              HasSubstr(files_.authority_certificate + ": the certificate expired"));
}

TEST_F(TlsFolderTest, RenewsUnderTheSameAuthority) {
  const absl::Time later = kNow + kServerLifetime + absl::Hours(1);  // it has expired by then
  const auto renewed = Renew(tls_, {"10.0.0.7"}, later);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->authority, first_.authority);
  EXPECT_NE(renewed->server.key, first_.server.key);
  EXPECT_THAT(renewed->facts.names,
              ElementsAre("10.0.0.7", "box.example.org", "localhost", "127.0.0.1", "::1"));
  EXPECT_EQ(renewed->facts.not_after, later + kServerLifetime);
  EXPECT_EQ(Mode(files_.server_key), 0600u);
  EXPECT_THAT(Names(tls_),
              UnorderedElementsAre("authority.pem", "authority.key", "server.pem", "server.key"));
  const auto loaded = Load(tls_, later);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->facts.fingerprint, renewed->facts.fingerprint);
}

TEST_F(TlsFolderTest, DropsOldNamesWhereThatIsAsked) {
  const auto renewed = Renew(tls_, {"new.example"}, kNow, OldNames::kDrop);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_THAT(renewed->facts.names, ElementsAre("new.example", "localhost", "127.0.0.1", "::1"));
}

TEST_F(TlsFolderTest, RenewsByItselfOnceLittleTimeIsLeft) {
  const absl::Time end = first_.facts.not_after;
  EXPECT_EQ(*KeepFresh(tls_, {}, end - kRenewBefore), Upkeep::kFine);
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
  const absl::Time due = end - kRenewBefore + absl::Seconds(1);
  EXPECT_EQ(*KeepFresh(tls_, {"10.0.0.7"}, due), Upkeep::kRenewed);
  const auto renewed = Load(tls_, due);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->facts.not_after, due + kServerLifetime);
  EXPECT_THAT(renewed->facts.names,
              ElementsAre("10.0.0.7", "box.example.org", "localhost", "127.0.0.1", "::1"));
  EXPECT_EQ(*KeepFresh(tls_, {}, due), Upkeep::kFine);
}

TEST_F(TlsFolderTest, ServesWithTheOldOneWhereTheNewOneIsNotValidYet) {
  const absl::Time ahead = first_.facts.not_after - absl::Hours(24);
  EXPECT_EQ(*KeepFresh(tls_, {}, ahead, Clock::kDoubtful), Upkeep::kWaits);
  EXPECT_EQ(*KeepFresh(tls_, {}, ahead), Upkeep::kRenewed);
  const std::string renewed = Load(tls_, ahead)->facts.fingerprint;
  EXPECT_NE(renewed, first_.facts.fingerprint);
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
  EXPECT_EQ(Mode(files_.old_key), 0600u);
  EXPECT_EQ(*KeepFresh(tls_, {}, kNow), Upkeep::kFine);
  const auto by_hand = Renew(tls_, {}, kNow);
  ASSERT_TRUE(by_hand.ok()) << by_hand.status();
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, by_hand->facts.fingerprint);
  EXPECT_FALSE(std::filesystem::exists(files_.old_key));
}

TEST_F(TlsFolderTest, RenewsByItselfWhatIsNotValidYet) {
  const absl::Time ahead = kNow + kServerLifetime - absl::Hours(24);
  ASSERT_TRUE(Renew(tls_, {}, ahead).ok());
  EXPECT_FALSE(Load(tls_, kNow).ok());
  EXPECT_EQ(*KeepFresh(tls_, {}, kNow, Clock::kDoubtful), Upkeep::kRenewed);
  EXPECT_TRUE(Loaded(kNow).ok()) << Loaded(kNow);
}

TEST_F(TlsFolderTest, RenewsByItselfWhatHasExpired) {
  const absl::Time late = kNow + kServerLifetime + absl::Hours(1);
  EXPECT_EQ(*KeepFresh(tls_, {}, late), Upkeep::kRenewed);
  EXPECT_TRUE(Loaded(late).ok()) << Loaded(late);
}

TEST_F(TlsFolderTest, RenewsNothingByItselfWithoutTheKey) {
  std::filesystem::remove(files_.authority_key);
  EXPECT_EQ(*KeepFresh(tls_, {}, kNow), Upkeep::kFine);
  EXPECT_EQ(*KeepFresh(tls_, {}, first_.facts.not_after), Upkeep::kNeedsKey);
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
}

TEST_F(TlsFolderTest, NoCertificateOutlivesItsAuthority) {
  const absl::Time last = kNow + kAuthorityLifetime - absl::Hours(24);
  EXPECT_EQ(*KeepFresh(tls_, {}, last), Upkeep::kRenewed);
  EXPECT_EQ(*KeepFresh(tls_, {}, last), Upkeep::kNeedsAuthority) << "not again and again";
}

TEST_F(TlsFolderTest, SaysWhichFileKeepsItFromRenewing) {
  Replace(files_.server_certificate, "garbage");
  EXPECT_THAT(Message(KeepFresh(tls_, {}, kNow).status()), HasSubstr(files_.server_certificate));
}

TEST_F(TlsFolderTest, RenewsWhatIsMissingOrDamaged) {
  std::filesystem::remove(files_.server_key);
  Replace(files_.server_certificate, "garbage");
  ASSERT_TRUE(Renew(tls_, {}, kNow).ok());
  EXPECT_TRUE(Loaded().ok()) << Loaded();
}

TEST_F(TlsFolderTest, RenewsNothingForAWrongHost) {
  EXPECT_EQ(Renew(tls_, {"a b"}, kNow).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadText(files_.server_key), first_.server.key);
  EXPECT_TRUE(Loaded().ok());
}

// Tests the states of a renewal in which a crash may leave the files.
TEST_F(TlsFolderTest, IsWholeWhereverARenewalWasStopped) {
  const TestFolder elsewhere;
  std::filesystem::copy(tls_, elsewhere / "tls");
  ASSERT_EQ(chmod((elsewhere / "tls").c_str(), 0700), 0);
  const auto renewed = Renew(elsewhere / "tls", {"new.example"}, kNow);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  const std::string key_draft = files_.server_key + ".new";
  const std::string certificate_draft = files_.server_certificate + ".new";

  home_.Write("tls/server.key.new", renewed->server.key.substr(0, 50));
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
  home_.Write("tls/server.key.new", renewed->server.key);
  home_.Write("tls/server.pem.new", renewed->server.certificate.substr(0, 50));
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
  home_.Write("tls/server.pem.new", renewed->server.certificate);
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, first_.facts.fingerprint);
  // Between the renames.
  ASSERT_EQ(chmod(key_draft.c_str(), 0600), 0);
  std::filesystem::rename(key_draft, files_.server_key);
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, renewed->facts.fingerprint);
  EXPECT_FALSE(std::filesystem::exists(certificate_draft));
  EXPECT_EQ(Load(tls_, kNow)->facts.fingerprint, renewed->facts.fingerprint);
  // Leftovers don't prevent a later renewal.
  home_.Write("tls/server.key.new", "left");
  home_.Write("tls/server.pem.new", "left");
  EXPECT_TRUE(Renew(tls_, {}, kNow).ok());
}

TEST_F(TlsFolderTest, ReadersSeeAWholePairWhileOthersRenew) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const absl::Status seen = i < 2 ? Renew(tls_, {}, kNow).status() : Loaded();
        EXPECT_TRUE(seen.ok()) << seen;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ablate::access
