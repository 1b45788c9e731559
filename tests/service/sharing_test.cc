// Tests a shared server: TLS clients with tokens of every role on its public port.
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/lookup/limits.h"
#include "server/net/public_limits.h"
#include "server/rpc/authenticator.h"
#include "tests/service/raw_call.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(AccessRulesTest, AreSaidByEveryMethod) {
  for (const auto* method : Methods()) {
    const auto rule = rpc::RuleOf(PathOf(*method));
    EXPECT_TRUE(rule.ok()) << rule.status();
    if (!rule.ok()) continue;
    const int kinds = (rule->least() != v1::Role::unspecified) + rule->anyone() + rule->local();
    EXPECT_EQ(kinds, 1) << method->full_name();
  }
  EXPECT_EQ(rpc::RuleOf("/ablate.v1.Experiments/Nothing").status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(rpc::RuleOf("").status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(rpc::RuleOf("/google.protobuf.Any/x").status().code(),
            absl::StatusCode::kUnimplemented);
}

// Readers may call no method that changes something, listed by name, so that a too wide rule shows.
TEST(AccessRulesTest, LetReadersOnlyRead) {
  std::set<std::string> for_readers;
  for (const auto* method : Methods()) {
    const auto rule = rpc::RuleOf(PathOf(*method));
    if (rule.ok() && rpc::CheckRole(*rule, Role::kReader, PathOf(*method)).ok()) {
      for_readers.insert(method->name());
    }
  }
  const std::set<std::string> expected = {
      "GetAnalysis",   "ListAnalyses",    "WatchAnalysis",   "ReadAnalysisArrays",
      "ListArtifacts", "ReadArtifact",    "GetDataset",      "ListDatasets",
      "GetExperiment", "ListExperiments", "WatchExperiment", "ListMetrics",
      "QueryMetrics",  "Compare",         "DiffExperiments", "RenderTable",
      "RenderFigure",  "RenderReport",    "Export",          "GetRun",
      "ListRuns",      "ListRunEvents",   "ListWorkers",     "WhoAmI",
      "ListUsers",     "ListTokens",      "RevokeToken",     "GetModel",
      "ListModels",    "ExportModel",     "DownloadDataset", "Sql",
      "ReadRunLog",    "ListQueue"};
  EXPECT_EQ(for_readers, expected);
}

TEST_F(SharingTest, LetsInWhomTheRuleOfAMethodLetsIn) {
  const std::map<Role, std::string> secrets = {{Role::kReader, SecretOf("rex", Role::kReader)},
                                               {Role::kMember, SecretOf("mia", Role::kMember)},
                                               {Role::kAdmin, SecretOf("amy", Role::kAdmin)},
                                               {Role::kWorker, SecretOf("gpu2", Role::kWorker)}};
  const storage::IssuedToken revoked = Join("rex", Role::kReader);
  ASSERT_TRUE(sharing().store().RevokeToken(revoked.token.id, kRoot, absl::Now()).ok());
  ASSERT_TRUE(Call("/ablate.v1.Admin/WhoAmI", secrets.at(Role::kReader)).ok()) << "lets it in";
  for (const auto* method : Methods()) {
    const std::string path = PathOf(*method);
    SCOPED_TRACE(path);
    for (const auto& metadata : std::vector<std::vector<std::pair<std::string, std::string>>>{
             {},
             {Bearer("")},
             {Bearer("ablate_" + std::string(43, 'A'))},
             {Bearer(revoked.secret)},
             {{"authorization", secrets.at(Role::kAdmin)}},
             {Bearer(secrets.at(Role::kAdmin)), Bearer(secrets.at(Role::kAdmin))}}) {
      const RawAnswer answer = RawCall(public_channel_, path, {""}, metadata);
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
          << answer.status.error_message();
      EXPECT_TRUE(answer.messages.empty());
    }
    for (const auto& [role, secret] : secrets) {
      const bool let_in = rpc::CheckRole(*rpc::RuleOf(path), role, path).ok();
      // A method that nobody may call there affects the test itself.
      if (let_in && method->name() == "RevokeToken") continue;
      const grpc::Status status = Call(path, secret);
      const bool refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
      EXPECT_EQ(refused, !let_in) << storage::RoleName(role) << ": " << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  }
}

TEST_F(SharingTest, SaysWhatIsWrongWithAToken) {
  EXPECT_EQ(RawCall(public_channel_, "/ablate.v1.Admin/WhoAmI", {""}).status.error_message(),
            "the call has no token. Run `ablate login` with a join file from this server's admin");
  const storage::IssuedToken token = Join("rex", Role::kReader);
  ASSERT_TRUE(sharing().store().RevokeToken(token.token.id, kRoot, absl::Now()).ok());
  EXPECT_THAT(Call("/ablate.v1.Admin/WhoAmI", token.secret).error_message(),
              HasSubstr("was revoked"));
  EXPECT_EQ(Call("/ablate.v1.Admin/CreateUser", SecretOf("sam", Role::kReader)).error_message(),
            "\"create user\" needs the role admin; yours is reader");
}

TEST_F(SharingTest, AnswersEveryCallOfAReaderWhoMayNotCreateUsers) {
  const std::string secret = SecretOf("sam", Role::kReader);
  for (int i = 0; i < 2 * net::kUnauthenticatedCalls; ++i) {
    EXPECT_EQ(Call("/ablate.v1.Admin/CreateUser", secret).error_message(),
              "\"create user\" needs the role admin; yours is reader");
  }
}

TEST_F(SharingTest, AnswersEveryCallOfAMethodThatDoesNotExist) {
  const std::string secret = SecretOf("sam", Role::kReader);
  for (int i = 0; i < 2 * net::kUnauthenticatedCalls; ++i) {
    EXPECT_EQ(Call("/ablate.v1.Admin/Nothing", secret).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(SharingTest, KnowsWhoCalls) {
  v1::WhoAmIResponse who;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::WhoAmI, v1::WhoAmIRequest(), &who).ok());
  EXPECT_EQ(who.user(), "users/ada");
  EXPECT_EQ(who.role(), v1::Role::admin);
  EXPECT_EQ(who.expire_time().seconds(), root_.expire_time().seconds());
  who = AnswerOf(*admin_, &v1::Admin::Stub::WhoAmI, {});
  EXPECT_EQ(who.user(), "users/ada") << "the owner, through the unix socket";
  EXPECT_EQ(who.token(), "");
}

TEST_F(SharingTest, LetsMembersChangeWhatIsTheirs) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  const std::string hers = CreateAs(mia, "hers"), again = CreateAs(mia, "again");
  EXPECT_EQ(Get(hers).owner(), "mia");
  const grpc::Status refused = CancelAs(bob, hers);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(), hers + " is mia's: only mia or an admin may change it");
  EXPECT_EQ(Get(hers).state(), v1::ExperimentState::ACTIVE);
  EXPECT_TRUE(CancelAs(mia, hers).ok());
  EXPECT_TRUE(CancelAs(root_.token(), again).ok()) << "an admin changes all";

  // The owner's data set.
  const auto request = Named<v1::DeleteDatasetRequest>(Upload("names.txt", "anna\nbob\n").name());
  EXPECT_EQ(CallAs(mia, &v1::Datasets::Stub::DeleteDataset, request).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(CallAs(root_.token(), &v1::Datasets::Stub::DeleteDataset, request).ok());
}

TEST_F(SharingTest, NotesWhoChangedWhat) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  const std::string hers = CreateAs(mia, "hers");
  CancelAs(bob, hers);
  CancelAs(mia, hers);
  v1::ListAuditRequest request;
  request.set_method("Experiments.");
  v1::ListAuditResponse page;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::ListAudit, request, &page).ok());
  std::vector<std::string> lines;
  for (const v1::AuditEntry& entry : page.entries()) {
    lines.push_back(absl::StrCat(entry.user(), " ", entry.method(), " ", entry.resource(), " ",
                                 entry.outcome()));
  }
  EXPECT_THAT(lines, ElementsAre("mia Experiments.CancelExperiment " + hers + " OK",
                                 "bob Experiments.CancelExperiment " + hers + " PERMISSION_DENIED",
                                 "mia Experiments.CreateExperiment " + hers + " OK"));
}

// A thread writes it now and then.
TEST_F(SharingTest, LogsRefusedCalls) {
  const storage::IssuedToken mine = Join("rex", Role::kReader);
  EXPECT_EQ(Call("/ablate.v1.Admin/ListAudit", mine.secret).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call("/ablate.v1.Admin/WhoAmI", "ablate_" + std::string(43, 'A')).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call("/ablate.v1.Admin/NoSuchMethod", mine.secret).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  std::set<std::string> lines;
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (lines.size() < 2 && absl::Now() < deadline) {
    lines.clear();
    const auto page = sharing().store().ListAudits({}, 1000);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const storage::Audit& row : page->rows) {
      if (row.resource != "from 127.0.0.1") continue;
      lines.insert(absl::StrCat(row.user, " ", row.token, " ", row.method, " ", row.outcome));
    }
  }
  EXPECT_THAT(lines,
              ElementsAre("  Admin.WhoAmI UNAUTHENTICATED: the token is unknown to this server. "
                          "Log in with a join file of this server",
                          absl::StrCat("rex ", mine.token.id,
                                       " Admin.ListAudit PERMISSION_DENIED: \"list audit\" needs "
                                       "the role admin; yours is reader")));
}

TEST_F(SharingTest, ServesNoWatchThatWouldOutliveItsToken) {
  const std::string secret = SecretOf("rex", Role::kReader);
  EXPECT_TRUE(Call("/grpc.health.v1.Health/Check", secret).ok());
  EXPECT_EQ(Call("/grpc.health.v1.Health/Watch", secret).error_message(),
            "Health.Watch isn't supported. Call Health.Check");
}

// An open watch, if there was room for it; without a secret the owner's.
class OpenWatch {
 public:
  OpenWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& secret,
            const std::string& experiment)
      : stub_(channel) {
    if (!secret.empty()) context_.AddMetadata("authorization", "Bearer " + secret);
    reader_ = stub_.WatchExperiment(&context_, Named<v1::WatchExperimentRequest>(experiment));
    open_ = reader_->Read(&event_);
  }
  bool open() const { return open_; }
  grpc::Status End() {
    while (reader_->Read(&event_)) {
    }
    return reader_->Finish();
  }

 private:
  v1::Experiments::Stub stub_;
  Context context_;
  v1::ExperimentEvent event_;
  bool open_ = false;
  std::unique_ptr<grpc::ClientReader<v1::ExperimentEvent>> reader_;
};

TEST_F(SharingTest, EndsTheStreamsOfATokenThatIsRevoked) {
  const std::string experiment = CreateAs(root_.token(), "watched");
  const storage::IssuedToken mine = Join("rex", Role::kReader), other = Join("rex", Role::kReader);
  OpenWatch watch(public_channel_, mine.secret, experiment);
  OpenWatch others(public_channel_, other.secret, experiment);
  ASSERT_TRUE(watch.open() && others.open());
  ASSERT_TRUE(sharing().store().RevokeToken(mine.token.id, kRoot, absl::Now()).ok());
  const grpc::Status end = watch.End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(end.error_message(),
            "the token was revoked, or its user's role has changed. Log in again");
  ASSERT_TRUE(CancelAs(root_.token(), experiment).ok());
  EXPECT_TRUE(others.End().ok()) << "of the user's other token";
}

// Through both ports, and on one connection: all count for the user.
TEST_F(SharingTest, LeavesOthersTheirWatchesWhenAUserHasAllOfTheirOwn) {
  const std::string experiment = CreateAs(root_.token(), "watched");
  const std::string mine = SecretOf("rex", Role::kReader);
  constexpr size_t kWatchesOfConnection = 64;
  std::vector<std::shared_ptr<grpc::Channel>> own;
  std::vector<std::unique_ptr<OpenWatch>> watches;
  for (size_t i = 0; i < lookup::kMaxWatches.per_user; ++i) {
    // A connection takes fewer.
    if (i % kWatchesOfConnection == 0) {
      own.push_back(Channel(root_.certificate_authority()));
    }
    watches.push_back(std::make_unique<OpenWatch>(own.back(), mine, experiment));
    ASSERT_TRUE(watches.back()->open()) << i;
  }
  OpenWatch refused(public_channel_, SecretOf("rex", Role::kReader), experiment);
  EXPECT_FALSE(refused.open()) << "by another token of theirs";
  const grpc::Status end = refused.End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(
      end.error_message(),
      "too many watches at once: rex has 512; expected at most 512 per user and 2,048 in all. "
      "Retry later");
  EXPECT_EQ(ReasonOf(end), "USER_LIMIT");
  OpenWatch others(public_channel_, SecretOf("bob", Role::kReader), experiment);
  EXPECT_TRUE(others.open());
  OpenWatch owners(channel_, root_.token(), experiment);
  EXPECT_TRUE(owners.open());
  ASSERT_TRUE(CancelAs(root_.token(), experiment).ok());
  EXPECT_TRUE(others.End().ok());
  EXPECT_TRUE(owners.End().ok());
  for (const auto& watch : watches) EXPECT_TRUE(watch->End().ok());
  // The server gives a slot back a little after the client has seen its watch end.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  bool opened = false;
  while (!opened && absl::Now() < deadline) {
    opened = OpenWatch(public_channel_, mine, experiment).open();
  }
  EXPECT_TRUE(opened) << "once the others have ended";
}

// A call of reflection that is held open.
class OpenReflection final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  OpenReflection(const std::shared_ptr<grpc::Channel>& channel, const std::string& secret)
      : stub_(channel) {
    context_.AddMetadata("authorization", "Bearer " + secret);
    stub_.PrepareBidiStreamingCall(
        &context_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {}, this);
    StartWrite(&request_);
    StartRead(&response_);
    StartCall();
  }
  ~OpenReflection() override {
    context_.TryCancel();
    ended_.get_future().wait();
  }
  // Waits for the answer to its first question, or its end.
  bool Answered() { return answered_.get_future().get(); }
  void OnReadDone(bool ok) override { answered_.set_value(ok); }
  void OnDone(const grpc::Status&) override { ended_.set_value(); }

 private:
  grpc::GenericStub stub_;
  Context context_;
  const grpc::Slice list_services_{std::string("\x3a\0", 2)};
  const grpc::ByteBuffer request_{&list_services_, 1};
  grpc::ByteBuffer response_;
  std::promise<bool> answered_;
  std::promise<void> ended_;
};

TEST_F(SharingTest, HoldsFewCallsOfReflectionAndServesOthersMeanwhile) {
  const std::string secret = SecretOf("rex", Role::kReader);
  std::vector<std::unique_ptr<OpenReflection>> open;
  int answered = 0;
  for (int i = 0; i < 2 * net::kMaxPublicServiceThreads; ++i) {
    open.push_back(std::make_unique<OpenReflection>(public_channel_, secret));
    answered += open.back()->Answered();
  }
  EXPECT_GE(answered, net::kMaxPublicServiceThreads / 2);
  EXPECT_LE(answered, net::kMaxPublicServiceThreads);
  EXPECT_TRUE(Call("/ablate.v1.Admin/WhoAmI", SecretOf("bob", Role::kReader)).ok());
}

TEST_F(SharingTest, CountsTheOwnerAsAUser) {
  const std::string experiment = CreateAs(root_.token(), "watched");
  std::vector<std::unique_ptr<OpenWatch>> watches;
  for (size_t i = 0; i < lookup::kMaxWatches.per_user; ++i) {
    watches.push_back(std::make_unique<OpenWatch>(channel_, "", experiment));
    EXPECT_TRUE(watches.back()->open()) << i;
  }
  OpenWatch refused(channel_, "", experiment);
  EXPECT_FALSE(refused.open());
  EXPECT_EQ(ReasonOf(refused.End()), "USER_LIMIT");
  ASSERT_TRUE(CancelAs(root_.token(), experiment).ok());
  for (const auto& watch : watches) EXPECT_TRUE(watch->End().ok());
}

TEST_F(SharingTest, EndsTheStreamsOfAUserWhoGoes) {
  const std::string experiment = CreateAs(root_.token(), "watched");
  OpenWatch watch(public_channel_, SecretOf("rex", Role::kReader), experiment);
  ASSERT_TRUE(watch.open());
  ASSERT_TRUE(
      CallAs(root_.token(), &v1::Admin::Stub::DeleteUser, Named<v1::DeleteUserRequest>("users/rex"))
          .ok());
  EXPECT_EQ(watch.End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(SharingTest, EndsTheStreamsOfATokenThatExpires) {
  const std::string experiment = CreateAs(root_.token(), "watched");
  // A slow machine may take longer to open one than a token is valid.
  for (const int seconds : {2, 10, 40}) {
    const auto lifetime = absl::Seconds(seconds);
    OpenWatch watch(public_channel_, Join("rex", Role::kReader, lifetime).secret, experiment);
    if (!watch.open()) continue;
    const grpc::Status end = watch.End();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(end.error_message(), "the token has expired");
    return;
  }
  FAIL() << "no watch was opened";
}

TEST_F(SharingTest, TalksToNobodyWithoutItsCertificate) {
  const auto who = [](const std::shared_ptr<grpc::Channel>& channel) {
    return RawCall(channel, "/ablate.v1.Admin/WhoAmI", {""}).status.error_code();
  };
  const auto plain = grpc::CreateChannel(absl::StrCat("127.0.0.1:", public_port()),
                                         grpc::InsecureChannelCredentials());
  EXPECT_EQ(who(plain), grpc::StatusCode::UNAVAILABLE);
  const auto other = access::MakeAuthority("other", absl::Now());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(who(Channel(other->certificate)), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(SharingTest, AdminsAddAndChangeUsers) {
  v1::CreateUserRequest create;
  create.set_user("mia");
  v1::User user;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::CreateUser, create, &user).ok());
  EXPECT_EQ(user.role(), v1::Role::member) << "unless it is said";
  create.set_user("ada");
  const grpc::Status owner = CallAs(root_.token(), &v1::Admin::Stub::CreateUser, create);
  EXPECT_THAT(owner.error_message(), HasSubstr("ada is the server's owner"));
  create.set_user("mia");
  EXPECT_EQ(CallAs(root_.token(), &v1::Admin::Stub::CreateUser, create).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  v1::CreateTokenRequest token;
  token.set_user("users/mia");
  v1::CreateTokenResponse made;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::CreateToken, token, &made).ok());
  EXPECT_EQ(made.join().address(), "localhost:7443");
  EXPECT_EQ(made.join().user(), "mia");
  EXPECT_TRUE(CallAs(made.join().token(), &v1::Admin::Stub::WhoAmI, {}).ok());
  token.mutable_lifetime()->set_seconds(1);
  const grpc::Status brief = CallAs(root_.token(), &v1::Admin::Stub::CreateToken, token);
  EXPECT_EQ(brief.error_message(), "lifetime: 1s is out of range; expected 1 minute to 3,650 days");
  v1::UpdateUserRequest update;
  update.set_name("users/mia");
  update.set_role(v1::Role::reader);
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::UpdateUser, update, &user).ok());
  EXPECT_EQ(user.role(), v1::Role::reader);
  update.set_name("users/ada");
  EXPECT_EQ(CallAs(root_.token(), &v1::Admin::Stub::UpdateUser, update).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "the last admin";
}

TEST_F(SharingTest, GivesNobodyANameThatOwnsSomething) {
  const std::string hers = CreateAs(SecretOf("mia", Role::kMember), "hers");
  ASSERT_TRUE(sharing().store().DeleteUser("mia", kRoot, absl::Now()).ok());
  v1::CreateUserRequest create;
  create.set_user("mia");
  const auto again = [&] { return CallAs(root_.token(), &v1::Admin::Stub::CreateUser, create); };
  EXPECT_EQ(again().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(CancelAs(root_.token(), hers).ok());
  ASSERT_TRUE(TryDelete(hers).ok());
  EXPECT_TRUE(again().ok());
}

// Other users' calls come before and after on the same connection, as through a proxy.
TEST_F(SharingTest, KnowsEachCallsUserOnOneConnection) {
  const std::string mia = SecretOf("mia", Role::kMember), rex = SecretOf("rex", Role::kReader);
  for (int i = 0; i < 3; ++i) {
    for (const auto& [secret, user] : {std::pair(mia, "users/mia"), std::pair(rex, "users/rex")}) {
      v1::WhoAmIResponse who;
      ASSERT_TRUE(CallAs(secret, &v1::Admin::Stub::WhoAmI, v1::WhoAmIRequest(), &who).ok());
      EXPECT_EQ(who.user(), user);
    }
  }
}

TEST_F(SharingTest, MakesWhatIsLostAgain) {
  for (const char* lost : {"/tls", "/shared-address"}) {
    StopServer();
    std::filesystem::remove_all(folder() + lost);
    public_address_ = "";
    Restart();
    v1::InitializeSharingRequest request;
    request.set_address("localhost:7443");
    request.set_user("mia");
    EXPECT_EQ(StatusOf(*admin_, &v1::Admin::Stub::InitializeSharing, request).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION)
        << "who is no admin";
    request.clear_user();
    const v1::JoinFile join = AnswerOf(*admin_, &v1::Admin::Stub::InitializeSharing, request);
    public_address_ = "127.0.0.1:0";
    Restart();
    public_channel_ = Channel(join.certificate_authority());
    EXPECT_TRUE(Call("/ablate.v1.Admin/WhoAmI", join.token()).ok());
    EXPECT_TRUE(Call("/ablate.v1.Admin/WhoAmI", root_.token()).ok()) << "tokens stay good";
  }
}

TEST_F(SharingTest, ShowsAndRevokesTokensOfTheirUserAlone) {
  const storage::IssuedToken mia = Join("mia", Role::kMember), bob = Join("bob", Role::kMember);
  v1::ListTokensResponse page;
  ASSERT_TRUE(CallAs(mia.secret, &v1::Admin::Stub::ListTokens, {}, &page).ok());
  ASSERT_EQ(page.tokens_size(), 1);
  EXPECT_EQ(page.tokens(0).user(), "users/mia");
  v1::ListTokensRequest of_bob;
  of_bob.set_user("users/bob");
  EXPECT_EQ(CallAs(mia.secret, &v1::Admin::Stub::ListTokens, of_bob, &page).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  v1::RevokeTokenRequest revoke;
  revoke.set_name("tokens/" + bob.token.id);
  v1::Token token;
  EXPECT_EQ(CallAs(mia.secret, &v1::Admin::Stub::RevokeToken, revoke, &token).error_code(),
            grpc::StatusCode::NOT_FOUND);
  revoke.set_name("tokens/" + mia.token.id);
  EXPECT_TRUE(CallAs(mia.secret, &v1::Admin::Stub::RevokeToken, revoke, &token).ok());
  EXPECT_TRUE(token.has_revoke_time());
  EXPECT_EQ(Call("/ablate.v1.Admin/WhoAmI", mia.secret).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(SharingTest, PagesThroughUsers) {
  for (const char* user : {"u1", "u2", "u3"}) Join(user, Role::kReader);
  std::vector<std::string> names;
  v1::ListUsersRequest request;
  request.set_page_size(2);
  v1::ListUsersResponse page;
  do {
    page.Clear();
    ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::ListUsers, request, &page).ok());
    EXPECT_LE(page.users_size(), 2);
    for (const v1::User& user : page.users()) names.push_back(user.name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("users/ada", "users/u1", "users/u2", "users/u3"));
}

TEST_F(SharingTest, IsMadeOnce) {
  v1::InitializeSharingRequest request;
  request.set_address("localhost:7443");
  EXPECT_EQ(StatusOf(*admin_, &v1::Admin::Stub::InitializeSharing, request).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  v1::RenewCertificateRequest renew;
  renew.add_hosts("box.example.org");
  const auto renewed = AnswerOf(*admin_, &v1::Admin::Stub::RenewCertificate, renew);
  EXPECT_THAT(renewed.hosts(), AllOf(Contains("localhost"), Contains("box.example.org")));
  Restart();
  public_channel_ = Channel(root_.certificate_authority());
  EXPECT_TRUE(Call("/ablate.v1.Admin/WhoAmI", root_.token()).ok()) << "join files stay valid";
}

using UnsharedTest = ServiceTest;

TEST_F(UnsharedTest, HasNoUsersAndNoPublicAddress) {
  v1::CreateUserRequest request;
  request.set_user("mia");
  const grpc::Status refused = StatusOf(*admin_, &v1::Admin::Stub::CreateUser, request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("`ablate admin init HOST:PORT`"));
  for (const char* address : {"", "box", "box:0", "bad host:1", "0.0.0.0:7443"}) {
    v1::InitializeSharingRequest initialize;
    initialize.set_address(address);
    EXPECT_EQ(StatusOf(*admin_, &v1::Admin::Stub::InitializeSharing, initialize).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << address;
  }
  storage::StoreOptions options;
  EXPECT_TRUE(sharing().store().ListUsers().empty());
  EXPECT_EQ(sharing().LoadTls(absl::Now()).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ablate::service
