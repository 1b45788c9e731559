// Tests the right of a shared server's users to submit programs.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;

class ProgramRightsTest : public SharingTest {
 protected:
  static v1::CreateExperimentRequest Request(const std::string& name) {
    v1::CreateExperimentRequest request;
    request.set_request_id(name);
    request.mutable_spec()->set_name(name);
    request.mutable_spec()->mutable_base()->mutable_program()->add_command("true");
    return request;
  }
  grpc::Status Create(const std::string& secret, const v1::CreateExperimentRequest& request,
                      v1::CreateExperimentResponse* response = nullptr) {
    return CallAs(secret, &v1::Experiments::Stub::CreateExperiment, request, response);
  }
  v1::User Allow(const std::string& user, bool programs) {
    v1::UpdateUserRequest request;
    request.set_name(absl::StrCat("users/", user));
    request.set_programs(programs);
    v1::User updated;
    EXPECT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::UpdateUser, request, &updated).ok());
    return updated;
  }
  static void ExpectRefusal(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    EXPECT_EQ(status.error_message(),
              "base.program: mia may not submit programs on this server. An admin can allow it: "
              "`ablate admin user programs mia yes`");
    EXPECT_EQ(ReasonOf(status), "NO_PROGRAMS");
  }

  const std::string mia_ = SecretOf("mia", Role::kMember);
  const std::unique_ptr<FakeWorker> worker_ = MakeWorker("programs-w");
};

TEST_F(ProgramRightsTest, AreNeededForEachWayToSubmit) {
  v1::CreateExperimentRequest request = Request("spec");
  ExpectRefusal(Create(mia_, request));
  request.set_validate_only(true);
  ExpectRefusal(Create(mia_, request));

  v1::CreateExperimentRequest text;
  text.set_request_id("text");
  text.set_text("{name: text, base: {program: {command: [python, a.py], files: [a.py]}}}");
  text.set_validate_only(true);
  ExpectRefusal(Create(mia_, text));  // before it is asked for the files

  v1::CreateExperimentRequest overridden = Request("overridden");
  overridden.mutable_spec()->mutable_base()->clear_program();
  auto& command = (*overridden.mutable_overrides())["program.command"];
  command.mutable_list_value()->add_values()->set_string_value("true");
  EXPECT_EQ(Create(mia_, overridden).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const v1::ListExperimentsRequest all;
  EXPECT_EQ(
      AnswerOf(*experiments_, &v1::Experiments::Stub::ListExperiments, all).experiments_size(), 0);
}

TEST_F(ProgramRightsTest, AreGivenAndTakenByAdmins) {
  const v1::User allowed = Allow("mia", true);
  EXPECT_TRUE(allowed.programs());
  EXPECT_EQ(allowed.role(), v1::Role::member) << "absent: unchanged";
  v1::CreateExperimentResponse created;
  const grpc::Status made = Create(mia_, Request("first"), &created);
  ASSERT_TRUE(made.ok()) << made.error_message();

  EXPECT_FALSE(Allow("mia", false).programs());
  ExpectRefusal(Create(mia_, Request("second")));
  v1::CreateExperimentRequest extension = Request("first");
  extension.set_request_id("third");
  extension.mutable_spec()->mutable_seeds()->set_count(2);
  extension.set_extends(created.experiment().name());
  ExpectRefusal(Create(mia_, extension));
  EXPECT_EQ(Get(created.experiment().name()).state(), v1::ExperimentState::ACTIVE) << "it goes on";

  v1::ListAuditRequest audit;
  audit.set_method("access/SetPrograms");
  v1::ListAuditResponse entries;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::ListAudit, audit, &entries).ok());
  ASSERT_EQ(entries.entries_size(), 2);
  EXPECT_EQ(entries.entries(0).outcome(), "OK: may no longer submit programs");
  EXPECT_EQ(entries.entries(1).outcome(), "OK: may submit programs");
  EXPECT_EQ(entries.entries(1).resource(), "users/mia");
}

TEST_F(ProgramRightsTest, AreNotChangedByARequestWithoutAChange) {
  v1::UpdateUserRequest request;
  request.set_name("users/mia");
  const grpc::Status status = CallAs(root_.token(), &v1::Admin::Stub::UpdateUser, request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "role: role and programs are missing; expected one of them");
}

TEST_F(ProgramRightsTest, ComeWithANewUserOnRequest) {
  v1::CreateUserRequest request;
  request.set_user("bob");
  request.set_programs(true);
  v1::User bob;
  ASSERT_TRUE(CallAs(root_.token(), &v1::Admin::Stub::CreateUser, request, &bob).ok());
  EXPECT_TRUE(bob.programs());
  EXPECT_TRUE(Create(SecretOf("bob", Role::kMember), Request("his")).ok());
  v1::ListUsersResponse users;
  ASSERT_TRUE(CallAs(mia_, &v1::Admin::Stub::ListUsers, {}, &users).ok());
  std::string listed;
  for (const v1::User& user : users.users()) {
    absl::StrAppend(&listed, user.name(), user.programs() ? " yes " : " no ");
  }
  EXPECT_EQ(listed, "users/ada yes users/bob yes users/mia no ");
}

TEST_F(ProgramRightsTest, AreAlwaysTheAdminsAndTheOwners) {
  Allow("ada", false);
  EXPECT_TRUE(Create(root_.token(), Request("admin")).ok());
  EXPECT_TRUE(TryCreate(Request("owner")).ok());
}

TEST_F(ProgramRightsTest, LeaveModelsToEveryMember) { CreateAs(mia_, "hers"); }

}  // namespace
}  // namespace ablate::service
