// Tests packing folders into one file, and unpacking files that others may have made.
#include "base/file_set.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/safetensors.h"
#include "tests/test_folder.h"

namespace ablate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Packed(std::vector<PackedFile> files) {
  const auto packed = PackFiles(std::move(files));
  EXPECT_TRUE(packed.ok()) << packed.status();
  return packed.value_or("");
}

// Returns the paths of a file set, executable ones with a star.
std::vector<std::string> PathsIn(const std::string& packed) {
  const auto files = ReadFileSet(packed);
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<std::string> paths;
  for (const PackedFile& file : *files) {
    paths.push_back(absl::StrCat(file.path, file.executable ? "*" : ""));
  }
  return paths;
}

// Returns a file set that PackFiles would not make.
std::string SetOf(const std::vector<std::string>& paths, TensorType type = TensorType::kU8) {
  std::vector<TensorView> tensors;
  for (const std::string& path : paths) {
    tensors.push_back({path, type, {1}, type == TensorType::kU8 ? "x" : "xxxx"});
  }
  return *WriteSafetensors(tensors, {{kDatasetKindKey, kFileSetName}});
}

std::string RefusalOf(const std::string& packed, const TestFolder& folder) {
  const absl::Status unpacked = UnpackFiles(packed, folder.path());
  EXPECT_EQ(unpacked.code(), absl::StatusCode::kInvalidArgument) << unpacked;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  return std::string(unpacked.message());
}

TEST(FileSetTest, HasTheSameBytesWhateverTheOrder) {
  const PackedFile a = {"a.py", "1", false}, b = {"lib/b.sh", "2", true}, c = {"lib/c", "", false};
  const std::string packed = Packed({a, b, c});
  EXPECT_EQ(packed, Packed({c, a, b}));
  EXPECT_THAT(PathsIn(packed), ElementsAre("a.py", "lib/b.sh*", "lib/c"));
  EXPECT_EQ(ReadDatasetFile(packed)->kind, DatasetKind::kFiles);
  EXPECT_NE(packed, Packed({a, {"lib/b.sh", "2", false}, c})) << "what is executable counts";
  EXPECT_NE(packed, Packed({a, {"lib/b.sh", "3", true}, c}));
  EXPECT_THAT(PathsIn(Packed({})), IsEmpty());
}

TEST(FileSetTest, RestoresFilesAndModes) {
  const TestFolder folder;
  ASSERT_TRUE(
      UnpackFiles(Packed({{"a/b/run", "#!", true}, {"a/empty", "", false}}), folder.path()).ok());
  EXPECT_EQ(ReadText(folder / "a/b/run"), "#!");
  EXPECT_EQ(access((folder / "a/b/run").c_str(), X_OK), 0);
  struct stat status;
  ASSERT_EQ(stat((folder / "a/empty").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0111, 0u);
  EXPECT_EQ(status.st_size, 0);
}

TEST(FileSetTest, RefusesPathsThatLeaveTheFolder) {
  for (const std::string& path :
       {std::string(".."), std::string("../x"), std::string("a/../../x"), std::string("/etc/x"),
        std::string("a//b"), std::string("./a"), std::string("a/"), std::string("a\nb"),
        std::string("a\xff"), std::string("a\0b", 3), std::string(1001, 'a')}) {
    EXPECT_FALSE(CheckPackedPath(path).ok()) << path;
    EXPECT_EQ(PackFiles({{path, "x", false}}).status().code(), absl::StatusCode::kInvalidArgument);
  }
  const TestFolder folder;
  for (const std::string path : {"..", "../x", "/x", "a/./b"}) {
    EXPECT_THAT(RefusalOf(SetOf({path}), folder), HasSubstr("can't be the path of a packed file"));
  }
  EXPECT_TRUE(CheckPackedPath(std::string(1000, 'a')).ok());
  EXPECT_TRUE(CheckPackedPath("..a/b..").ok());
}

TEST(FileSetTest, RefusesWhatIsNotAFileSet) {
  const TestFolder folder;
  EXPECT_THAT(RefusalOf(SetOf({"a", "a/b"}), folder), HasSubstr("'a' is a file and a folder"));
  EXPECT_THAT(RefusalOf(SetOf({"a"}, TensorType::kU32), folder),
              HasSubstr("isn't stored as bytes"));
  EXPECT_THAT(RefusalOf(*WriteSafetensors({}, {}), folder), HasSubstr("isn't a file set"));
  RefusalOf("not safetensors", folder);
  EXPECT_FALSE(PackFiles({{"a", "1", false}, {"a", "2", false}}).ok()) << "a path repeats";
}

TEST(FileSetTest, DoesNotFollowLinksWhenItUnpacks) {
  const TestFolder outside, folder;
  outside.Write("kept", "old");
  std::filesystem::create_symlink(outside.path(), folder / "sub");
  std::filesystem::create_symlink(outside / "kept", folder / "file");
  EXPECT_FALSE(UnpackFiles(Packed({{"sub/new", "x", false}}), folder.path()).ok());
  EXPECT_FALSE(UnpackFiles(Packed({{"file", "x", false}}), folder.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(outside / "new"));
  EXPECT_EQ(ReadText(outside / "kept"), "old");
}

TEST(FileSetTest, LeavesOutLinksAndSpecialFiles) {
  const TestFolder outside, folder;
  outside.Write("secret", "s");
  std::filesystem::create_directories(folder / "out/deep");
  folder.Write("out/a", "1");
  folder.Script("out/deep/b", "");
  folder.Write("other", "not asked for");
  std::filesystem::create_symlink(outside / "secret", folder / "out/link");
  std::filesystem::create_symlink(outside.path(), folder / "out/folder");
  std::filesystem::create_symlink(outside.path(), folder / "state");
  ASSERT_EQ(mkfifo((folder / "out/pipe").c_str(), 0600), 0);  // opening it must not wait
  const auto packed = PackFolders(folder.path(), {"out", "state", "missing"});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(PathsIn(*packed), ElementsAre("out/a", "out/deep/b*"));
}

TEST(FileSetTest, NamesItsLimits) {
  const TestFolder folder;
  std::vector<PackedFile> many;
  for (size_t i = 0; i <= kMaxPackedFiles; ++i) many.push_back({absl::StrCat(i), "", false});
  EXPECT_THAT(std::string(PackFiles(many).status().message()),
              HasSubstr("more than 10,000 files; expected at most 10,000"));
  many.pop_back();
  EXPECT_TRUE(PackFiles(many).ok());
  std::filesystem::create_directories(folder / "out");
  folder.Write("out/large", "");
  std::filesystem::resize_file(folder / "out/large", kMaxPackedBytes + 1);  // takes no room
  EXPECT_THAT(std::string(PackFolders(folder.path(), {"out"}).status().message()),
              HasSubstr("more than 250,000,000 bytes"));
  std::filesystem::remove(folder / "out/large");
  std::string deep = "out";
  for (int i = 0; i < 120; ++i) deep += "/d";
  std::filesystem::create_directories(folder / deep);
  EXPECT_THAT(std::string(PackFolders(folder.path(), {"out"}).status().message()),
              HasSubstr("nested more than 64 deep"));
}

}  // namespace
}  // namespace ablate
