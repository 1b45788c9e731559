// Tests records of event files: published checksums, the frame, paths.
#include <string>

#include "ablate/tensorboard/event.pb.h"
#include "gtest/gtest.h"
#include "server/report/export/encoder.h"

namespace ablate::report {
namespace {

// RFC 3720, B.4.
TEST(RecordTest, ChecksumsAreThoseOfTheRfc) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(descending), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(RecordTest, MaskRotatesByFifteenAndAdds) {
  EXPECT_EQ(Masked(0), 0xA282EAD8u);
  EXPECT_EQ(Masked(0x8000), 0xA282EAD9u);
  EXPECT_EQ(Masked(1), 0xA284EAD8u);
}

TEST(RecordTest, FramesData) {
  std::string bytes = "before";
  AppendRecord("abc", &bytes);
  ASSERT_EQ(bytes.size(), 6u + 8 + 4 + 3 + 4);
  EXPECT_EQ(bytes.substr(6, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(18, 3), "abc");
  const uint32_t crc = Masked(Crc32c("abc"));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<uint8_t>(bytes[21 + i]), (crc >> (8 * i)) & 0xFF);
  }
}

TEST(TensorBoardTest, NamesAFileAfterItsCellAndStart) {
  const auto encoder = MakeTensorBoardEncoder();
  EXPECT_EQ(encoder->Path({3, "pre-s1", {"pre"}, 1, "runs/a", 1700000000.75}),
            "pre-s1/events.out.tfevents.1700000000.ablate");
}

TEST(TensorBoardTest, CutsAFolderNameThatNoFileSystemTakes) {
  const auto encoder = MakeTensorBoardEncoder();
  ExportedCell cell;
  cell.name = std::string(600, 'x');
  cell.index = 99'999;
  const std::string path = encoder->Path(cell);
  EXPECT_LT(path.find('/'), 255u);
  ++cell.index;
  EXPECT_NE(encoder->Path(cell), path);
}

TEST(TensorBoardTest, BeginsWithTheVersionAndGivesOneScalarAnEvent) {
  const auto encoder = MakeTensorBoardEncoder();
  std::string bytes;
  encoder->Begin({0, "c", {}, 1, "runs/a", 1.5}, &bytes);
  tensorboard::Event event;
  ASSERT_TRUE(event.ParseFromString(bytes.substr(12, bytes.size() - 16)));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  bytes.clear();
  encoder->Add("train/loss", {7}, {2.5}, &bytes);
  ASSERT_TRUE(event.ParseFromString(bytes.substr(12, bytes.size() - 16)));
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.wall_time(), 1.5);
  ASSERT_EQ(event.summary().value_size(), 1);
  EXPECT_EQ(event.summary().value(0).tag(), "train/loss");
  EXPECT_EQ(event.summary().value(0).simple_value(), 2.5f);
}

}  // namespace
}  // namespace ablate::report
