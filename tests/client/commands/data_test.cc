// Tests `ablate data`: list, add, remove.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataTest : public ClientTest {
 protected:
  DataTest() {
    answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset*) {
      return absl::NotFoundError("no such data set");
    };
    answers_.upload = [](const std::vector<v1::UploadDatasetRequest>& messages,
                         v1::Dataset* dataset) {
      dataset->set_name("datasets/names-1a2b3c");
      dataset->set_display_name(messages[0].display_name());
      dataset->set_documents(2);
      dataset->set_characters(1);
      for (const auto& message : messages) {
        dataset->set_bytes(dataset->bytes() + message.data().size());
      }
      return absl::OkStatus();
    };
    StartServer();
  }
};

TEST_F(DataTest, AddsAFile) {
  const std::string path = Write("names.txt", "a\nb\n");
  const Outcome outcome = Run({"data", "add", path});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "datasets/names-1a2b3c\n");
  EXPECT_EQ(outcome.err, "uploaded 4 B, 2 documents, 1 character\n");
  EXPECT_THAT(Run({"data", "add", path, "--json"}).out,
              HasSubstr("\"display_name\": \"names.txt\""));
}

TEST_F(DataTest, AddsTheFolderOfATokenizer) {
  std::string sent;
  answers_.upload = [&](const std::vector<v1::UploadDatasetRequest>& messages,
                        v1::Dataset* dataset) {
    for (const auto& message : messages) sent += message.data();
    EXPECT_EQ(messages[0].display_name(), "shakespeare-bpe");
    EXPECT_EQ(messages[0].sha256(), Sha256Hex(sent));
    dataset->set_name("datasets/shakespeare-bpe-1a2b3c");
    dataset->set_kind(v1::DatasetKind::tokenizer);
    dataset->set_vocabulary(512);
    dataset->set_bytes(7'000);
    return absl::OkStatus();
  };
  for (const char* slash : {"", "/"}) {
    sent.clear();
    const Outcome outcome =
        Run({"data", "add", absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe", slash)});
    EXPECT_EQ(outcome.out, "datasets/shakespeare-bpe-1a2b3c\n");
    EXPECT_EQ(outcome.err, "uploaded 7.0 kB, tokenizer with a vocabulary of 512\n");
    EXPECT_EQ(ReadDatasetFile(sent)->kind, DatasetKind::kTokenizer);
  }
}

TEST_F(DataTest, SendsNoFolderThatIsNoTokenizer) {
  bool sent = false;
  answers_.upload = [&](const std::vector<v1::UploadDatasetRequest>&, v1::Dataset*) {
    sent = true;
    return absl::OkStatus();
  };
  Write("merges.txt", "#version: 0.2\n");
  Write("vocab.json", "{\"secret\": \"of another file\"}");
  const Outcome outcome = Run({"data", "add", folder_});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("vocab.json"));
  EXPECT_FALSE(sent);
}

TEST_F(DataTest, FollowsNoLinkOutOfAFolder) {
  namespace fs = std::filesystem;
  const std::string source = absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe");
  const std::string tokenizer = folder_ + "/tokenizer";
  fs::copy(source, tokenizer);
  EXPECT_EQ(Run({"data", "add", tokenizer}).code, kSuccess);
  for (const char* name : {"vocab.json", "merges.txt", "train.bin", "val.bin"}) {
    fs::remove_all(tokenizer);
    fs::copy(source, tokenizer);
    fs::remove(tokenizer + "/" + name);
    const std::string secret = Write("secret", "key");
    fs::create_symlink(secret, tokenizer + "/" + name);
    EXPECT_EQ(
        Run({"data", "add", tokenizer}).err,
        absl::StrCat("error: ", secret,
                     " is outside the folder, and would be uploaded; to allow that, add --data ",
                     tokenizer, "/", name, "\n"));
  }
  fs::remove_all(tokenizer);
  fs::create_directory(tokenizer);
  fs::create_symlink(fs::absolute(source + "/vocab.json"), tokenizer + "/vocab.json");
  fs::copy(source + "/merges.txt", tokenizer);
  EXPECT_EQ(Run({"data", "add", tokenizer, "--data", source}).code, kSuccess);
}

TEST_F(DataTest, AddsAFileAgainOnlyIfTheServersIsDamaged) {
  const std::string path = Write("names.txt", "a\nb\n");
  bool damaged = false;
  answers_.dataset = [&damaged](const v1::GetDatasetRequest& request, v1::Dataset* dataset) {
    EXPECT_TRUE(request.verify());
    dataset->set_name("datasets/names-1a2b3c");
    dataset->set_sha256(Sha256Hex("a\nb\n"));
    dataset->set_damaged(damaged);
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"data", "add", path}).err, HasSubstr("the server has it already"));
  damaged = true;
  EXPECT_THAT(Run({"data", "add", path}).err, HasSubstr("uploaded 4 B"));
}

TEST_F(DataTest, AddsAnEmptyFileOnlyIfTheServerTakesIt) {
  answers_.upload = [](const std::vector<v1::UploadDatasetRequest>& messages, v1::Dataset*) {
    EXPECT_EQ(messages.size(), 1u);
    return absl::InvalidArgumentError("a data set has at least 1 document");
  };
  const std::string path = Write("none.txt", "");
  const Outcome outcome = Run({"data", "add", path});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: " + path + ": a data set has at least 1 document\n");
}

TEST_F(DataTest, SaysWhyAFileCantBeAdded) {
  EXPECT_EQ(Run({"data", "add", folder_ + "/gone"}).err, "error: no file " + folder_ + "/gone\n");
  EXPECT_EQ(Run({"data", "add", folder_}).err,
            "error: " + folder_ +
                " is a folder without vocab.json; expected a file, or a tokenizer's folder with "
                "tokenizer.json, or vocab.json and merges.txt\n");
  EXPECT_EQ(Run({"data", "add", "/dev/null"}).err, "error: /dev/null is not a file\n");
}

TEST_F(DataTest, ListsAllPages) {
  answers_.datasets = [this](const v1::ListDatasetsRequest& request,
                             v1::ListDatasetsResponse* response) {
    const bool first = request.page_token().empty();
    v1::Dataset* dataset = response->add_datasets();
    dataset->set_name(first ? "datasets/a-1" : "datasets/b-2");
    dataset->set_display_name(first ? "a.txt" : "b.txt");
    dataset->set_bytes(228145);
    dataset->set_kind(first ? v1::DatasetKind::text : v1::DatasetKind::tokens);
    if (first) {
      dataset->set_documents(32033);
      dataset->set_characters(26);
    } else {
      dataset->set_vocabulary(50257);
    }
    dataset->mutable_create_time()->set_seconds(absl::ToUnixSeconds(now_) - 60);
    if (!first) dataset->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(now_) + 60);
    if (first) response->set_next_page_token("next");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"data", "ls"}).out,
            "data set  file   kind      size  documents  vocabulary  created\n"
            "a-1       a.txt  text    228 kB     32,033          26  1 min ago\n"
            "b-2       b.txt  tokens  228 kB                 50,257  1 min ago, unused\n");
  EXPECT_THAT(Run({"data", "ls", "--json"}).out, HasSubstr("\"name\": \"datasets/b-2\""));
}

TEST_F(DataTest, ListsTaggedSentencesByTheirNumber) {
  answers_.datasets = [this](const v1::ListDatasetsRequest&, v1::ListDatasetsResponse* response) {
    v1::Dataset* dataset = response->add_datasets();
    dataset->set_name("datasets/tags-1");
    dataset->set_display_name("tags.conllu");
    dataset->set_kind(v1::DatasetKind::tagged);
    dataset->set_bytes(104989);
    dataset->set_documents(335);
    dataset->mutable_create_time()->set_seconds(absl::ToUnixSeconds(now_) - 60);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"data", "ls"}).out,
            "data set  file         kind      size  documents  vocabulary  created\n"
            "tags-1    tags.conllu  tagged  105 kB        335              1 min ago\n");
}

TEST_F(DataTest, SaysWhoseTheyAreWhereSeveralHaveSome) {
  answers_.datasets = [](const v1::ListDatasetsRequest&, v1::ListDatasetsResponse* response) {
    for (const char* owner : {"mia", "bob"}) {
      v1::Dataset* dataset = response->add_datasets();
      dataset->set_name(absl::StrCat("datasets/", owner, "s-1"));
      dataset->set_owner(owner);
      dataset->set_private_(dataset->owner() == "mia");
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"data", "ls"}).out,
              AllOf(HasSubstr("data set  file  owner         kind"),
                    HasSubstr("mias-1          mia, private"), HasSubstr("bobs-1          bob  ")));
}

TEST_F(DataTest, AddsAPrivateFile) {
  const std::string path = Write("names.txt", "a\nb\n");
  answers_.upload = [](const std::vector<v1::UploadDatasetRequest>& messages,
                       v1::Dataset* dataset) {
    dataset->set_private_(messages[0].private_());
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"data", "add", path, "--private"}).err,
            "uploaded 0 B, 0 documents, 0 characters\n");
  answers_.dataset = [](const v1::GetDatasetRequest& request, v1::Dataset*) {
    EXPECT_TRUE(request.private_());
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"data", "add", path, "--private"}).err,
              HasSubstr("note: the same bytes are public already"));
}

TEST_F(DataTest, RemovesByName) {
  std::string removed;
  answers_.dataset = [](const v1::GetDatasetRequest& request, v1::Dataset* dataset) {
    const bool is_file = request.name() == "datasets/a.txt";
    dataset->set_name(is_file ? "datasets/a-1" : request.name());
    return absl::OkStatus();
  };
  answers_.remove_dataset = [&](const v1::DeleteDatasetRequest& request, google::protobuf::Empty*) {
    removed = request.name();
    return removed == "datasets/used" ? absl::FailedPreconditionError("3 runs need it")
                                      : absl::OkStatus();
  };
  EXPECT_EQ(Run({"data", "rm", "a-1"}).code, kSuccess);
  EXPECT_EQ(removed, "datasets/a-1");
  removed.clear();
  EXPECT_EQ(Run({"data", "rm", "a.txt"}).code, kSuccess);
  EXPECT_EQ(removed, "datasets/a-1");
  const Outcome used = Run({"data", "rm", "datasets/used"});
  EXPECT_EQ(used.code, kFailure);
  EXPECT_EQ(used.err, "error: 3 runs need it\n");
}

}  // namespace
}  // namespace ablate::client
