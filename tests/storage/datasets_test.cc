// Tests data sets: stored once by hash, found by id or name, kept while a run names them.
#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DatasetsTest : public StoreTest {
 protected:
  DatasetRecord Make(const std::string& id, const std::string& name, const std::string& bytes) {
    DatasetRecord dataset;
    dataset.id = id;
    dataset.display_name = name;
    dataset.sha256 = Publish(bytes);
    dataset.bytes = bytes.size();
    dataset.documents = 3;
    dataset.characters = 27;
    return dataset;
  }
};
INSTANTIATE_TEST_SUITE_P(, DatasetsTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(DatasetsTest, StoresARecord) {
  const DatasetRecord added = Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  EXPECT_EQ(added.create_time, now());
  for (const char* word : {"names-1", "names"}) {
    const DatasetRecord found = Value(store().FindDataset(kServer, word));
    EXPECT_EQ(found.id, "names-1");
    EXPECT_EQ(found.display_name, "names");
    EXPECT_EQ(found.sha256, Sha256Hex("emma\n"));
    EXPECT_EQ(found.bytes, 5u);
    EXPECT_EQ(found.documents, 3u);
    EXPECT_EQ(found.characters, 27u);
    EXPECT_EQ(found.create_time, now());
  }
  EXPECT_EQ(CodeOf(store().FindDataset(kServer, "other")), absl::StatusCode::kNotFound);
}

TEST_P(DatasetsTest, KeepsWhatWasCounted) {
  Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  EXPECT_EQ(Value(store().Counts("names-1")).document_lengths, "");
  EXPECT_EQ(Value(store().Counts("names-1")).code_points, 0u);
  ASSERT_TRUE(store().KeepCounts("names-1", {"4 4:1", 4, 1}).ok());
  EXPECT_EQ(Value(store().Counts("names-1")).document_lengths, "4 4:1");
  EXPECT_EQ(Value(store().Counts("names-1")).code_points, 4u);
  EXPECT_EQ(Value(store().Counts("names-1")).line_ends, 1u);
  EXPECT_EQ(CodeOf(store().Counts("names-2")), absl::StatusCode::kNotFound);
}

TEST_P(DatasetsTest, ReturnsTheOneWithTheSameHash) {
  Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  const DatasetRecord again = Value(store().AddDataset(Make("copy-1", "copy", "emma\n")));
  EXPECT_EQ(again.id, "names-1");
  EXPECT_THAT(Value(store().ListDatasets(kServer, "", 10)), SizeIs(1));
}

TEST_P(DatasetsTest, RefusesAnIdWithOtherContents) {
  Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  EXPECT_EQ(CodeOf(store().AddDataset(Make("names-1", "names", "olivia\n"))),
            absl::StatusCode::kAlreadyExists);
}

TEST_P(DatasetsTest, AsksForAnIdWhenANameIsAmbiguous) {
  Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  Value(store().AddDataset(Make("names-2", "names", "olivia\n")));
  const auto found = store().FindDataset(kServer, "names");
  EXPECT_EQ(CodeOf(found), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(found.status().message(), HasSubstr("names-1, names-2. Use an ID"));
  EXPECT_EQ(Value(store().FindDataset(kServer, "names-2")).sha256, Sha256Hex("olivia\n"));
}

// Data sets of mia, of bob and public ones.
TEST_P(DatasetsTest, ShowsWhatIsPrivateToItsOwner) {
  const auto make = [this](const char* id, const char* owner, bool is_private) {
    DatasetRecord dataset = Make(id, "names", "emma\n");
    dataset.owner = owner;
    if (is_private) dataset.private_to = owner;
    return Value(store().AddDataset(dataset)).id;
  };
  EXPECT_EQ(make("m", "mia", true), "m");
  EXPECT_EQ(make("b", "bob", true), "b") << "the same bytes";
  EXPECT_EQ(make("b2", "bob", true), "b");
  const auto ids = [](const std::vector<DatasetRecord>& datasets) {
    std::vector<std::string> found;
    for (const DatasetRecord& dataset : datasets) found.push_back(dataset.id);
    return found;
  };
  const Viewer mia{"mia"}, rex{"rex"};
  EXPECT_THAT(ids(Value(store().ListDatasets(mia, "", 9))), ElementsAre("m"));
  EXPECT_THAT(ids(Value(store().ListDatasets(kServer, "", 9))), ElementsAre("b", "m"));
  EXPECT_THAT(ids(Value(store().FindDatasetsOf(rex, Sha256Hex("emma\n")))), IsEmpty());
  EXPECT_EQ(Value(store().FindDataset(mia, "names")).id, "m");
  EXPECT_EQ(CodeOf(store().FindDataset(mia, "b")), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().FindDataset(rex, "names")), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().FindDataset(kServer, "names")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Value(store().FindDataset(kServer, "b")).private_to, "bob");
  EXPECT_EQ(make("open", "bob", false), "open");
  EXPECT_EQ(Value(store().FindDataset(rex, "names")).id, "open");
  EXPECT_THAT(ids(Value(store().FindDatasetsOf(mia, Sha256Hex("emma\n")))),
              ElementsAre("m", "open"));
  const auto own = store().FindDataset({"bob"}, "names");
  EXPECT_THAT(own.status().message(), HasSubstr("b, open. Use an ID"));
}

// Uploads of mia and bob for experiments.
TEST_P(DatasetsTest, ShowsAnUploadToItsUserUntilAnExperimentUsesIt) {
  const auto upload = [this](const std::string& id, const std::string& user) {
    DatasetRecord dataset = Make(id, "names", "emma\n");
    dataset.owner = dataset.private_to = user;
    dataset.becomes_public = true;
    dataset.expire_time = 1;
    return Value(store().AddDataset(dataset));
  };
  const DatasetRecord mias = upload("names-1", "mia");
  EXPECT_EQ(mias.expire_time, now() + kKeepUnused);
  EXPECT_EQ(upload("names-1", "bob").id, "names-1") << "another user's upload doesn't show";
  EXPECT_EQ(upload("copy-1", "bob").id, "names-1");
  for (const char* user : {"mia", "bob"}) {
    EXPECT_EQ(Value(store().FindDataset({user}, "names-1")).owner, user);
    EXPECT_THAT(Value(store().ListDatasets({user}, "", 9)), SizeIs(1));
  }
  EXPECT_EQ(CodeOf(store().FindDataset({"rex"}, "names-1")), absl::StatusCode::kNotFound);
  EXPECT_THAT(Value(store().ListDatasets({"rex"}, "", 9)), IsEmpty());
  EXPECT_THAT(Value(store().ListDatasets(kServer, "", 9)), IsEmpty());

  NewExperiment experiment = MakeExperiment({"a"});
  experiment.owner = "mia";
  experiment.runs[0].dataset_blob = mias.sha256;
  EXPECT_EQ(CodeOf(store().CreateExperiment(experiment)), absl::StatusCode::kNotFound);
  experiment.uploads = {DatasetKey(mias)};
  ASSERT_TRUE(store().CreateExperiment(experiment).ok());
  const DatasetRecord open = Value(store().FindDataset({"rex"}, "names-1"));
  EXPECT_EQ(open.owner, "mia");
  EXPECT_EQ(open.private_to, "");
  EXPECT_EQ(open.expire_time, 0);
  EXPECT_THAT(Value(store().ListDatasets({"bob"}, "", 9)), SizeIs(1)) << "his gives way";
  NewExperiment bobs = MakeExperiment({"b"});
  bobs.owner = "bob";
  bobs.runs[0].dataset_blob = mias.sha256;
  bobs.uploads = {"bob/names-1"};
  EXPECT_TRUE(store().CreateExperiment(bobs).ok()) << "planned before";
}

TEST_P(DatasetsTest, DeletesAnUploadThatNoExperimentUsesAfterAnHour) {
  DatasetRecord used = Make("used-1", "used", "emma\n");
  used.owner = used.private_to = "mia";
  used.expire_time = 1;
  used = Value(store().AddDataset(used));
  DatasetRecord unused = Make("unused-1", "unused", "ava\n");
  unused.owner = unused.private_to = "mia";
  unused.becomes_public = true;
  unused.expire_time = 1;
  unused = Value(store().AddDataset(unused));
  NewExperiment experiment = MakeExperiment({"a"});
  experiment.owner = experiment.private_to = "mia";
  experiment.uploads = {DatasetKey(used)};
  ASSERT_TRUE(store().CreateExperiment(experiment).ok());
  Advance(kKeepUnused - 1);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(store().FindDataset({"mia"}, "unused-1").ok());
  Advance(1);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CodeOf(store().FindDataset({"mia"}, "unused-1")), absl::StatusCode::kNotFound);
  const DatasetRecord kept = Value(store().FindDataset({"mia"}, "used-1"));
  EXPECT_EQ(kept.private_to, "mia");
  EXPECT_EQ(kept.expire_time, 0);
}

TEST_P(DatasetsTest, MakesAnUploadWhatALaterOneAsksFor) {
  DatasetRecord upload = Make("names-1", "names", "emma\n");
  upload.owner = upload.private_to = "mia";
  upload.becomes_public = true;
  upload.expire_time = 1;
  Value(store().AddDataset(upload));
  Advance(1'000);
  EXPECT_EQ(Value(store().AddDataset(upload)).expire_time, now() + kKeepUnused) << "again";
  DatasetRecord secret = upload;
  secret.id = "names-p1";
  secret.becomes_public = false;
  const DatasetRecord hidden = Value(store().AddDataset(secret));
  EXPECT_EQ(hidden.id, "names-p1");
  EXPECT_NE(hidden.expire_time, 0);
  EXPECT_FALSE(Value(store().AddDataset(upload)).becomes_public) << "nothing makes it public again";
  secret.expire_time = 0;
  EXPECT_EQ(Value(store().AddDataset(secret)).expire_time, 0);

  DatasetRecord other = Make("ava-1", "ava", "ava\n");
  other.owner = other.private_to = "mia";
  other.becomes_public = true;
  other.expire_time = 1;
  Value(store().AddDataset(other));
  other.private_to.clear();
  other.becomes_public = false;
  other.expire_time = 0;
  const DatasetRecord open = Value(store().AddDataset(other));
  EXPECT_EQ(open.id, "ava-1");
  EXPECT_EQ(open.private_to, "");
  EXPECT_EQ(open.expire_time, 0);
  EXPECT_TRUE(store().FindDataset({"rex"}, "ava-1").ok());
}

TEST_P(DatasetsTest, IsOfTheRunThatIsAsPrivate) {
  DatasetRecord secret = Make("secret", "names", "emma\n");
  secret.private_to = "ann";
  Value(store().AddDataset(secret));
  NewExperiment open = MakeExperiment({"a"});
  open.runs[0].dataset_blob = secret.sha256;
  EXPECT_EQ(CodeOf(store().CreateExperiment(open)), absl::StatusCode::kNotFound);
  Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  EXPECT_TRUE(store().CreateExperiment(open).ok());
  NewExperiment hidden = MakeExperiment({"b"});
  hidden.private_to = "ann";
  hidden.runs[0].dataset_blob = secret.sha256;
  EXPECT_TRUE(store().CreateExperiment(hidden).ok());
  EXPECT_THAT(store().DeleteDataset("names-1").message(), HasSubstr("run a"));
  EXPECT_THAT(store().DeleteDataset("secret").message(), HasSubstr("a private run"));
}

TEST_P(DatasetsTest, ListsInPages) {
  for (const char* id : {"b", "c", "a"}) Value(store().AddDataset(Make(id, id, id)));
  const auto ids = [&](absl::string_view after, uint32_t limit) {
    std::vector<std::string> found;
    for (const DatasetRecord& d : Value(store().ListDatasets(kServer, after, limit)))
      found.push_back(d.id);
    return found;
  };
  EXPECT_THAT(ids("", 2), ElementsAre("a", "b"));
  EXPECT_THAT(ids("b", 2), ElementsAre("c"));
  EXPECT_THAT(ids("c", 2), IsEmpty());
}

TEST_P(DatasetsTest, IsKeptWhileARunNamesIt) {
  const DatasetRecord dataset = Value(store().AddDataset(Make("names-1", "names", "emma\n")));
  NewExperiment wanted = MakeExperiment({"a"});
  wanted.runs[0].dataset_blob = dataset.sha256;
  const DatasetRecord data = Value(store().AddDataset(Make("data-1", "data", "words\n")));
  wanted.runs[0].data_blob = data.sha256;
  const std::string id = Create(wanted).id;
  EXPECT_EQ(Run("a").dataset_blob, dataset.sha256);
  EXPECT_EQ(Run("a").data_blob, data.sha256);
  Lease lease(&store(), "l", {"a"});
  EXPECT_EQ(lease.granted()[0].dataset_blob, dataset.sha256);
  EXPECT_EQ(lease.granted()[0].data_blob, data.sha256);
  EXPECT_THAT(Value(store().FindLeaseRights("l"))->reads,
              ::testing::UnorderedElementsAre(dataset.sha256, data.sha256));
  for (const char* key : {"names-1", "data-1"}) {
    const absl::Status refused = store().DeleteDataset(key);
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.message(), HasSubstr("run a"));
  }

  ASSERT_TRUE(store().CancelExperiment(id).ok());
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(store().DeleteDataset("names-1").ok());
  EXPECT_TRUE(store().DeleteDataset("data-1").ok());
  EXPECT_EQ(CodeOf(store().FindDataset(kServer, "names")), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().DeleteDataset("names-1")), absl::StatusCode::kNotFound);
}

TEST_P(DatasetsTest, NeedsItsBlobOnFile) {
  DatasetRecord dataset = Make("x", "x", "x");
  dataset.sha256 = Sha256Hex("never published");
  const auto added = store().AddDataset(dataset);
  EXPECT_EQ(CodeOf(added),
            on_file() ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk);
}

}  // namespace
}  // namespace ablate::storage
