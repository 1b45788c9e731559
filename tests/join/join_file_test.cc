// Tests join files: any content is read, or refused with the field and without the token.
#include "proto/join/join_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/access/certificates.h"
#include "tests/status_message.h"
#include "tests/test_folder.h"

namespace ablate::join {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "abl_S3cretS3cretS3cretS3cretS3cret-_";

v1::JoinFile Fine() {
  static const auto* const authority =
      new std::string(access::MakeAuthority("box", absl::Now()).value().certificate);
  v1::JoinFile file;
  file.set_address("box.example.org:7433");
  file.set_server_name("box.example.org");
  file.set_certificate_authority(*authority);
  file.set_user("ada");
  file.set_token(kToken);
  file.mutable_expire_time()->set_seconds(1'800'000'000);
  return file;
}

std::string Json(const v1::JoinFile& file) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(file, &json).ok());
  return json;
}

TEST(JoinFileTest, ReadsWhatItWrote) {
  const TestFolder folder;
  const std::string path = folder / "ada.join";
  ASSERT_TRUE(WriteJoinFile(path, Fine()).ok());
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_THAT(ReadText(path), HasSubstr("\"server_name\": \"box.example.org\""));
  const auto read = ReadJoinFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*read, Fine()));
}

TEST(JoinFileTest, OverwritesNothingAndWritesNothingWrong) {
  const TestFolder folder;
  const std::string path = folder.Write("there", "old");
  EXPECT_EQ(WriteJoinFile(path, Fine()).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadText(path), "old");
  v1::JoinFile wrong = Fine();
  wrong.clear_user();
  EXPECT_EQ(WriteJoinFile(folder / "new", wrong).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(JoinFileTest, ReplacesAFileOnlyIfAsked) {
  const TestFolder folder;
  const std::string path = folder.Write("there", "old");
  EXPECT_TRUE(absl::IsAlreadyExists(CheckNewFile(path)));
  EXPECT_TRUE(CheckNewFile(path, /*replace=*/true).ok());
  EXPECT_TRUE(WriteJoinFile(path, Fine(), /*replace=*/true).ok());
  EXPECT_TRUE(ReadJoinFile(path).ok()) << "only its owner may read it";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_TRUE(absl::IsNotFound(CheckNewFile(folder / "no/such", /*replace=*/true)));
}

TEST(JoinFileTest, RefusesAFileThatOthersMayRead) {
  const TestFolder folder;
  const std::string path = folder.Write("join", Json(Fine()));
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(ReadJoinFile(path).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(ReadJoinFile(path).status()), HasSubstr(path + " has mode 0640"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(ReadJoinFile(path).ok());
  EXPECT_EQ(ReadJoinFile(folder / "none").status().code(), absl::StatusCode::kNotFound);
}

TEST(JoinFileTest, ErrorsNameTheFileAndTheField) {
  const TestFolder folder;
  v1::JoinFile wrong = Fine();
  wrong.set_address("box");
  const std::string path = folder.Write("join", Json(wrong));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(Message(ReadJoinFile(path).status()),
            path + ": address is \"box\": without a port: HOST:PORT, such as box.example.org:7433");
}

struct WrongField {
  std::function<void(v1::JoinFile*)> spoil;
  std::string message;  // a part of it
};

TEST(JoinFileTest, SaysWhichFieldIsWrong) {
  const std::string pem = Fine().certificate_authority();
  const std::string element =
      "-----BEGIN CERTIFICATE-----\nMAIBAg==\n-----END CERTIFICATE-----\n";  // 30 02 01 02
  const std::vector<WrongField> cases = {
      {[](auto* f) { f->clear_address(); }, "address is \"\": without a port"},
      {[](auto* f) { f->set_address("unix:/run/x"); }, "address is \"unix:/run/x\": the port"},
      {[](auto* f) { f->set_address("dns:///box:1"); }, "address is"},
      {[](auto* f) { f->set_address("box:70000"); }, "the port is a number from 1 to 65535"},
      {[](auto* f) { f->set_address(std::string(500, 'a') + ":1"); }, "\"…: a host has 1 to 253"},
      {[](auto* f) { f->clear_server_name(); }, "server_name is \"\""},
      {[](auto* f) { f->set_server_name("box:7433"); }, "server_name is \"box:7433\": not an IPv6"},
      {[](auto* f) { f->set_server_name("[::1]"); }, "without brackets"},
      {[](auto* f) { f->clear_certificate_authority(); }, "certificate_authority is 0 bytes"},
      {[](auto* f) { f->set_certificate_authority("x\ny"); },
       "3 bytes that begin with \"x\": it must"},
      {[&](auto* f) { f->set_certificate_authority(pem + pem); }, "one certificate in PEM"},
      {[&](auto* f) { f->set_certificate_authority(pem.substr(0, 200)); }, "one certificate"},
      {[&](auto* f) { f->set_certificate_authority(pem + std::string(16'384, ' ')); },
       "at most 16,384"},
      {[](auto* f) {
         f->set_certificate_authority(
             "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----");
       },
       "there isn't a certificate in base64"},
      {[](auto* f) {
         f->set_certificate_authority(
             "-----BEGIN CERTIFICATE-----\nMAMBAg==\n-----END CERTIFICATE-----");
       },
       "there isn't a certificate in base64"},
      {[](auto* f) {
         f->set_certificate_authority("-----BEGIN CERTIFICATE----------END CERTIFICATE-----");
       },
       "there isn't a certificate in base64"},
      {[](auto* f) { f->clear_user(); }, "user is \"\": it must be 1 to 64"},
      {[](auto* f) { f->set_user("-ada"); }, "user is \"-ada\""},
      {[](auto* f) { f->set_user("a da\n"); }, "user is \"a da\\n\""},
      {[](auto* f) { f->set_user(std::string(65, 'a')); }, "user is"},
      {[](auto* f) { f->clear_token(); }, "token is of 0 characters: it must be 20 to 512"},
      {[](auto* f) { f->set_token(std::string(kToken) + "\r\nx: y"); },
       "token is of 42 characters"},
      {[](auto* f) { f->set_token(std::string(513, 'a')); }, "token is of 513 characters"},
      {[](auto* f) { f->clear_expire_time(); }, "expire_time is missing"},
      {[](auto* f) { f->mutable_expire_time()->set_seconds(-1); }, "expire_time is -1 seconds"},
  };
  for (const WrongField& wrong : cases) {
    v1::JoinFile file = Fine();
    wrong.spoil(&file);
    const auto read = ParseJoinFile(Json(file));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << file.DebugString();
    EXPECT_THAT(Message(read.status()), AllOf(HasSubstr(wrong.message), Not(HasSubstr("S3cret"))));
  }
  v1::JoinFile small = Fine();
  small.set_certificate_authority(element);
  EXPECT_TRUE(CheckJoinFile(small).ok()) << CheckJoinFile(small);
}

TEST(JoinFileTest, NoErrorShowsTheToken) {
  const std::string token = absl::StrCat("\"token\": \"", kToken, "\"");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{" + token + " \"a\"", "Expected , or }"},
      {"{" + token + ", \"user\": x}", "Unexpected token."},
      {"{" + token + "} x", "Parsing terminated"},
      {"{\"token\": [\"" + std::string(kToken) + "\"]}", "token"},
      {"{\"token\": {\"" + std::string(kToken) + "\": 1}}", "token"},
      {"{\"token\": \"" + std::string(kToken), "Closing quote"},
      {"{\"token\": " + std::string(kToken) + "}", "Unexpected token."},
      {"{" + token + ", \"usr\": \"ada\"}", "usr: Cannot find field"},
      {"{\"token\": 12345678901234567890123}", "token is not a string"},
  };
  for (const auto& [text, what] : cases) {
    const auto read = ParseJoinFile(text);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Message(read.status()),
                AllOf(HasSubstr(what), Not(HasSubstr("S3cret")), Not(HasSubstr("1234"))));
  }
}

TEST(JoinFileTest, RefusesGarbage) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"),
        std::string("\xFF\xFE"), std::string(10'000, '['), std::string(60'000, '{'),
        std::string(kMaxJoinFileBytes + 1, ' '), std::string("{\"expire_time\": \"yesterday\"}")}) {
    EXPECT_EQ(ParseJoinFile(text).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(Message(ParseJoinFile(text).status()).size(), 400u);
  }
}

TEST(JoinFileTest, ReadsOrRefusesFilesWithWrongBytes) {
  const std::string fine = Json(Fine());
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::string text = fine;
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto read = ParseJoinFile(text);
    if (read.ok()) {
      EXPECT_TRUE(CheckJoinFile(*read).ok());
    } else {
      ++refused;
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
  EXPECT_GT(refused, 1'000);
  for (size_t size = 0; size < fine.size(); ++size) {
    EXPECT_FALSE(ParseJoinFile(absl::string_view(fine).substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace ablate::join
