// Tests imported models: found by name, private ones by their owner, kept apart from runs.
#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ModelsTest : public StoreTest {
 protected:
  ModelRecord Make(const std::string& name, const std::string& bytes,
                   const std::string& owner = "mia", bool is_private = false) {
    ModelRecord model;
    model.name = is_private ? PrivateModelName(name, owner) : name;
    model.sha256 = Publish(bytes);
    model.bytes = bytes.size();
    model.parameters = 124'439'808;
    model.vocabulary = 50'257;
    model.spec = std::string("\x08\0\x0c", 3);
    model.notes = "first\nsecond";
    model.owner = owner;
    if (is_private) model.private_to = owner;
    return model;
  }
  std::vector<std::string> Names(const Viewer& viewer, absl::string_view after = "",
                                 uint32_t limit = 9) {
    std::vector<std::string> names;
    for (const ModelRecord& model : Value(store().ListModels(viewer, after, limit))) {
      names.push_back(model.name);
    }
    return names;
  }
};
INSTANTIATE_TEST_SUITE_P(, ModelsTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(ModelsTest, StoresARecord) {
  EXPECT_EQ(Value(store().AddModel(Make("gpt2", "weights"))).create_time, now());
  const Micros then = now();
  UnpinAndSweep();
  Advance(5);
  Reopen();
  const ModelRecord found = Value(store().FindModel(kServer, "gpt2"));
  EXPECT_EQ(found.name, "gpt2");
  EXPECT_EQ(found.sha256, Sha256Hex("weights"));
  EXPECT_EQ(found.bytes, 7u);
  EXPECT_EQ(found.parameters, 124'439'808u);
  EXPECT_EQ(found.vocabulary, 50'257u);
  EXPECT_EQ(found.spec, std::string("\x08\0\x0c", 3));
  EXPECT_EQ(found.notes, "first\nsecond");
  EXPECT_EQ(found.owner, "mia");
  EXPECT_EQ(found.create_time, then);
  EXPECT_EQ(CodeOf(store().FindModel(kServer, "gpt")), absl::StatusCode::kNotFound);
  EXPECT_EQ(BlobExists(found.sha256), on_file()) << "a row names it";
}

TEST_P(ModelsTest, KeepsANameForOneCheckpoint) {
  const ModelRecord first = Value(store().AddModel(Make("gpt2", "weights")));
  Advance(5);
  const ModelRecord again = Value(store().AddModel(Make("gpt2", "weights", "bob")));
  EXPECT_EQ(again.owner, "mia");
  EXPECT_EQ(again.create_time, first.create_time);
  const auto other = store().AddModel(Make("gpt2", "other weights"));
  EXPECT_EQ(other.status(), absl::AlreadyExistsError(
                                "model 'gpt2' exists with other content. Choose another name"));
  EXPECT_EQ(Value(store().AddModel(Make("copy", "weights"))).name, "copy") << "of the same bytes";
  EXPECT_THAT(Names(kServer), ElementsAre("copy", "gpt2"));
}

TEST_P(ModelsTest, NeedsAPublishedBlob) {
  if (!on_file()) GTEST_SKIP() << "no blobs in memory";
  ModelRecord model = Make("gpt2", "weights");
  model.sha256 = Sha256Hex("gone");
  EXPECT_EQ(CodeOf(store().AddModel(model)), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ModelsTest, ShowsPrivateOnesToTheirOwnerAndAdmins) {
  Value(store().AddModel(Make("tiny", "mia's", "mia", true)));
  Value(store().AddModel(Make("tiny", "bob's", "bob", true)));
  const Viewer mia{"mia"}, bob{"bob"}, rex{"rex"};
  EXPECT_EQ(CodeOf(store().FindModel(rex, "tiny")), absl::StatusCode::kNotFound);
  Value(store().AddModel(Make("tiny", "open", "bob")));
  EXPECT_EQ(Value(store().FindModel(mia, "tiny")).sha256, Sha256Hex("mia's"));
  EXPECT_EQ(Value(store().FindModel(mia, "tiny@mia")).sha256, Sha256Hex("mia's"));
  EXPECT_EQ(Value(store().FindModel(rex, "tiny")).sha256, Sha256Hex("open"));
  EXPECT_EQ(CodeOf(store().FindModel(bob, "tiny@mia")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Value(store().FindModel(kServer, "tiny@mia")).private_to, "mia");
  EXPECT_THAT(Names(mia), ElementsAre("tiny", "tiny@mia"));
  EXPECT_THAT(Names(kServer), ElementsAre("tiny", "tiny@bob", "tiny@mia"));
  EXPECT_THAT(Names(kServer, "tiny", 1), ElementsAre("tiny@bob"));
  EXPECT_TRUE(Value(store().OwnsAnything("mia")));
  EXPECT_FALSE(Value(store().OwnsAnything("rex")));
  EXPECT_EQ(Value(store().HoldingsOf("bob")).bytes, 9u);
}

TEST_P(ModelsTest, IsDeletedWhileARunNeedsItsBlob) {
  const ModelRecord model = Value(store().AddModel(Make("gpt2", "weights")));
  NewExperiment wanted = MakeExperiment({"a"});
  wanted.runs[0].initial_blob = model.sha256;
  const std::string experiment = Create(wanted).id;
  EXPECT_TRUE(store().DeleteModel("gpt2").ok());
  EXPECT_EQ(CodeOf(store().DeleteModel("gpt2")), absl::StatusCode::kNotFound);
  EXPECT_THAT(Names(kServer), IsEmpty());
  UnpinAndSweep();
  EXPECT_EQ(Run("a").initial_blob, model.sha256);
  EXPECT_EQ(BlobExists(model.sha256), on_file());
  NewExperiment late = MakeExperiment({"b"});
  late.runs[0].initial_blob = model.sha256;
  EXPECT_TRUE(store().CreateExperiment(late).ok()) << "a run names the blob";
}

TEST_P(ModelsTest, LeavesItsBlobToTheTrash) {
  if (!on_file()) GTEST_SKIP() << "no blobs in memory";
  const std::string blob = Value(store().AddModel(Make("gpt2", "weights"))).sha256;
  UnpinAndSweep();
  EXPECT_TRUE(BlobExists(blob));
  ASSERT_TRUE(store().DeleteModel("gpt2").ok());
  UnpinAndSweep();
  EXPECT_FALSE(BlobExists(blob));
  EXPECT_TRUE(IsInTrash(blob));
}

}  // namespace
}  // namespace ablate::storage
