// Tests the quotas of a user of a shared server.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/engine/gpt2_files.h"
#include "tests/service/model_upload.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::HasSubstr;

class QuotasTest : public SharingTest {
 protected:
  grpc::Status Set(const std::string& secret, const v1::Quota& quota, v1::User* user = nullptr) {
    v1::SetQuotaRequest request;
    request.set_name("users/mia");
    *request.mutable_quota() = quota;
    return CallAs(secret, &v1::Admin::Stub::SetQuota, request, user);
  }
  grpc::Status Upload(const std::string& secret, const std::string& text) {
    v1::Datasets::Stub stub(public_channel_);
    Context context;
    context.AddMetadata("authorization", "Bearer " + secret);
    v1::Dataset dataset;
    const auto writer = stub.UploadDataset(&context, &dataset);
    v1::UploadDatasetRequest message;
    message.set_display_name("names");
    message.set_sha256(Sha256Hex(text));
    message.set_data(text);
    writer->Write(message);
    writer->WritesDone();
    return writer->Finish();
  }
};

TEST_F(QuotasTest, AreSetByAdminsAndSeenByAll) {
  const std::string mia = SecretOf("mia", Role::kMember);
  v1::Quota quota;
  quota.set_lanes(2);
  quota.set_stored_bytes(1000);
  v1::User user;
  EXPECT_EQ(Set(mia, quota).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(Set(root_.token(), quota, &user).ok());
  EXPECT_EQ(user.quota().lanes(), 2u);
  EXPECT_FALSE(user.quota().has_queued_runs());
  quota.set_queued_runs(uint64_t{1} << 63);
  const grpc::Status large = Set(root_.token(), quota);
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(large), "quota.queued_runs");
  quota.clear_queued_runs();
  quota.set_lanes(0);
  EXPECT_EQ(FieldOf(Set(root_.token(), quota)), "quota.lanes");
  v1::ListUsersResponse users;
  ASSERT_TRUE(CallAs(mia, &v1::Admin::Stub::ListUsers, v1::ListUsersRequest(), &users).ok());
  EXPECT_EQ(users.users(1).quota().stored_bytes(), 1000u) << users.users(1).DebugString();
}

TEST_F(QuotasTest, RefuseASubmitThatWouldQueueTooMuch) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  v1::Quota quota;
  quota.set_queued_runs(3);
  ASSERT_TRUE(Set(root_.token(), quota).ok());
  CreateAs(mia, "two");  // runs
  v1::CreateExperimentRequest more;
  *more.mutable_spec() = SmallSpec(2, "more", 20);
  more.set_request_id("00000000-0000-4000-8000-more");
  v1::CreateExperimentResponse response;
  const auto create = [&](const std::string& secret) {
    return CallAs(secret, &v1::Experiments::Stub::CreateExperiment, more, &response);
  };
  const grpc::Status refused = create(mia);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("mia has 2 queued or training runs, and this experiment would add 4; the "
                        "quota is 3"));
  more.set_validate_only(true);
  ASSERT_TRUE(create(mia).ok());
  ASSERT_EQ(response.problems_size(), 1);
  EXPECT_THAT(response.problems(0).message(), HasSubstr("the quota is 3"));
  more.set_validate_only(false);
  EXPECT_TRUE(create(bob).ok());

  v1::ListUsersResponse users;
  ASSERT_TRUE(CallAs(bob, &v1::Admin::Stub::ListUsers, v1::ListUsersRequest(), &users).ok());
  for (const v1::User& one : users.users()) {
    const uint64_t runs = one.name() == "users/mia" ? 2 : one.name() == "users/bob" ? 4 : 0;
    EXPECT_EQ(one.usage().queued_runs(), runs) << one.name();
  }
}

TEST_F(QuotasTest, RefuseASubmitOfAnothersRunsBeyondTheQuota) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  v1::Quota quota;
  quota.set_queued_runs(1);
  ASSERT_TRUE(Set(root_.token(), quota).ok());
  const std::string his = CreateAs(bob, "his");  // two runs
  v1::CreateExperimentRequest same;
  *same.mutable_spec() = SmallSpec(1, "hers");
  same.set_request_id("00000000-0000-4000-8000-hers");
  v1::CreateExperimentResponse response;
  const auto create = [&] {
    return CallAs(mia, &v1::Experiments::Stub::CreateExperiment, same, &response);
  };
  const grpc::Status refused = create();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("mia has 0 queued or training runs, and this experiment would add 2"));
  same.set_validate_only(true);
  ASSERT_TRUE(create().ok());
  EXPECT_EQ(response.problems_size(), 1) << response.DebugString();
  same.set_validate_only(false);
  quota.set_queued_runs(2);
  ASSERT_TRUE(Set(root_.token(), quota).ok());
  ASSERT_TRUE(create().ok());
  EXPECT_TRUE(create().ok()) << "what counts already counts once";
}

TEST_F(QuotasTest, RefuseDataBeyondTheBytes) {
  const std::string mia = SecretOf("mia", Role::kMember);
  ASSERT_TRUE(sharing().store().SetQuota("mia", {{}, {}, 10}, kRoot, absl::Now()).ok());
  EXPECT_TRUE(Upload(mia, "anna\nbo\n").ok());
  const grpc::Status refused = Upload(mia, "carl\n");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "mia has 8 B stored, and this request would add about 5 B; the quota is 10 B. Remove "
            "something, or submit something smaller");
  EXPECT_EQ(ReasonOf(refused), "QUOTA_EXCEEDED");
}

TEST_F(QuotasTest, RefuseAModelBeyondTheBytes) {
  const std::string mia = SecretOf("mia", Role::kMember);
  v1::Models::Stub stub(public_channel_);
  std::string all;  // bytes of the files
  for (const auto& file : FilesOf(engine::TinyGpt2())) all += file.bytes;
  const auto add = [&](const std::string& name) {
    Context context;
    context.AddMetadata("authorization", "Bearer " + mia);
    v1::Model model;
    const auto writer = stub.UploadModel(&context, &model);
    auto messages = MessagesOf(name, FilesOf(engine::TinyGpt2()));
    messages[0].set_sha256(Sha256Hex(all));
    for (const auto& file : FilesOf(engine::TinyGpt2())) {
      messages[0].add_file_bytes(file.bytes.size());
    }
    for (const auto& message : messages) writer->Write(message);
    writer->WritesDone();
    return writer->Finish();
  };
  ASSERT_TRUE(sharing().store().SetQuota("mia", {{}, {}, 10'000}, kRoot, absl::Now()).ok());
  ASSERT_TRUE(add("first").ok());
  ASSERT_TRUE(sharing().store().SetQuota("mia", {{}, {}, 10}, kRoot, absl::Now()).ok());
  EXPECT_TRUE(add("first").ok()) << "it is stored already";
  const grpc::Status refused = add("second");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUOTA_EXCEEDED");
  v1::GetUploadRequest kept;
  kept.set_sha256(Sha256Hex(all));
  v1::PartialUpload upload;
  ASSERT_TRUE(CallAs(mia, &v1::Datasets::Stub::GetUpload, kept, &upload).ok());
  EXPECT_EQ(upload.bytes(), 0u);
}

TEST_F(QuotasTest, BoundTheLanesOfAUserAndLeaveTheRestToOthers) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  v1::Quota quota;
  quota.set_lanes(1);
  ASSERT_TRUE(Set(root_.token(), quota).ok());
  CreateAs(mia, "hers");
  v1::CreateExperimentRequest his;
  *his.mutable_spec() = SmallSpec(1, "his", 20);
  his.set_request_id("00000000-0000-4000-8000-his");
  ASSERT_TRUE(CallAs(bob, &v1::Experiments::Stub::CreateExperiment, his).ok());
  const auto worker = MakeWorker("cpu-train", 2);
  std::map<uint32_t, int> granted;  // runs by their steps: hers have 10
  FakeWorker::Leased first;
  for (int i = 0; i < 3; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    const uint32_t steps = run.run.spec().spec().training().steps();
    if (steps == 10) first = run;
    ++granted[steps];
  }
  EXPECT_EQ(granted[10], 1);
  EXPECT_EQ(granted[20], 2);
  worker->Started(first);
  worker->Finished(first, 10);
  EXPECT_EQ(worker->NextRun().run.spec().spec().training().steps(), 10u) << "her next";
}

}  // namespace
}  // namespace ablate::service
