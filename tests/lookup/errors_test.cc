// Tests errors as clients see them.
#include "server/lookup/errors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/lookup/limits.h"

namespace ablate::lookup {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

google::rpc::BadRequest BadRequestOf(const grpc::Status& status) {
  google::rpc::BadRequest request;
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_EQ(details.details_size(), 1);
  EXPECT_TRUE(details.details(0).UnpackTo(&request));
  return request;
}

google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::ErrorInfo info;
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_EQ(details.details_size(), 1);
  EXPECT_TRUE(details.details(0).UnpackTo(&info));
  return info;
}

std::vector<spec::Problem> Problems(int count, const std::string& message) {
  std::vector<spec::Problem> problems;
  for (int i = 0; i < count; ++i) {
    problems.push_back({"base.field" + std::to_string(i), "1", "2", message});
  }
  return problems;
}

TEST(ToGrpcTest, KeepsOk) { EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok()); }

TEST(ToGrpcTest, GivesAnInvalidFieldWithItsPath) {
  const grpc::Status status = ToGrpc(InvalidField("page_size", "5 is too large", "at most 2"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "page_size: 5 is too large; expected at most 2");
  const google::rpc::BadRequest request = BadRequestOf(status);
  ASSERT_EQ(request.field_violations_size(), 1);
  EXPECT_EQ(request.field_violations(0).field(), "page_size");
  EXPECT_EQ(request.field_violations(0).description(),
            "page_size: 5 is too large; expected at most 2");
  EXPECT_EQ(DetailsOf(status).code(), 3);
}

TEST(ToGrpcTest, ListsEveryProblem) {
  const grpc::Status status = ToGrpc(InvalidFields(Problems(3, "it is wrong")));
  EXPECT_EQ(status.error_message(), "3 problems: it is wrong; it is wrong; it is wrong");
  const google::rpc::BadRequest request = BadRequestOf(status);
  ASSERT_EQ(request.field_violations_size(), 3);
  EXPECT_EQ(request.field_violations(2).field(), "base.field2");
}

TEST(ToGrpcTest, DropsSurplusProblemsAndSaysHowMany) {
  const grpc::Status status = ToGrpc(InvalidFields(Problems(500, std::string(100, 'x'))));
  EXPECT_LE(status.error_details().size(), kErrorDetailBytes);
  const google::rpc::BadRequest request = BadRequestOf(status);
  const int kept = request.field_violations_size() - 1;
  EXPECT_GT(kept, 5);
  EXPECT_EQ(
      request.field_violations(kept).description(),
      "and " + std::to_string(500 - kept) + " more; a dry run (validate_only) lists all of them");
  EXPECT_EQ(status.error_message().substr(0, 14), "500 problems: ");
}

TEST(ToGrpcTest, StaysWithinTheTrailerWhateverTheText) {
  std::string wide;
  for (int i = 0; i < 5'000; ++i) wide += "界";
  const grpc::Status status = ToGrpc(InvalidFields(Problems(50, wide)));
  EXPECT_LE(3 * status.error_message().size(), kErrorMessageBytes + 60);
  EXPECT_LE(status.error_details().size(), kErrorDetailBytes);
}

TEST(ToGrpcTest, MakesTheMessageValidUtf8) {
  EXPECT_EQ(ToGrpc(absl::InternalError("bad \xff byte")).error_message(), "bad ? byte");
}

TEST(ToGrpcTest, GivesAReason) {
  const grpc::Status status =
      ToGrpc(WithReason(absl::NotFoundError("there is no run"), "RUN_NOT_FOUND"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(InfoOf(status).reason(), "RUN_NOT_FOUND");
  EXPECT_EQ(InfoOf(status).domain(), "ablate");
}

TEST(ToGrpcTest, NamesTheCodeWithoutAReason) {
  EXPECT_EQ(InfoOf(ToGrpc(absl::ResourceExhaustedError("full"))).reason(), "RESOURCE_EXHAUSTED");
}

TEST(WithReasonTest, KeepsOk) { EXPECT_TRUE(WithReason(absl::OkStatus(), "REASON").ok()); }

}  // namespace
}  // namespace ablate::lookup
