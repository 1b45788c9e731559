// Tests how TensorBoard's event files become points, with records made here byte by byte.
#include "server/worker/event_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "server/program/metric_lines.h"
#include "tests/test_folder.h"

namespace ablate::worker {
namespace {

using google::protobuf::UnknownFieldSet;
using program::Point;
using testing::ElementsAre;
using testing::IsEmpty;

template <typename Number>
std::string BytesOf(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::string Serialized(const UnknownFieldSet& fields) {
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

std::string Record(const std::string& event) {
  return absl::StrCat(BytesOf<uint64_t>(event.size()), "crc.", event, "crc.");
}

// Returns a record of an event with one value of a summary.
std::string EventOf(uint64_t step, const UnknownFieldSet& value) {
  UnknownFieldSet event, summary;
  event.AddFixed64(1, 0);
  event.AddVarint(2, step);
  summary.AddLengthDelimited(1, Serialized(value));
  event.AddLengthDelimited(5, Serialized(summary));
  return Record(Serialized(event));
}

std::string Scalar(const std::string& tag, uint64_t step, float number) {
  UnknownFieldSet value;
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  value.AddLengthDelimited(1, tag);
  value.AddFixed32(2, bits);
  return EventOf(step, value);
}

// As TensorFlow 2 writes it; `field` has the bytes of a number of this type.
std::string TensorScalar(const std::string& tag, uint64_t step, int type, int field,
                         const std::string& bytes) {
  UnknownFieldSet value, tensor;
  tensor.AddVarint(1, static_cast<uint64_t>(type));
  tensor.AddLengthDelimited(field, bytes);
  value.AddLengthDelimited(1, tag);
  value.AddLengthDelimited(8, Serialized(tensor));
  return EventOf(step, value);
}

class EventFilesTest : public ::testing::Test {
 protected:
  std::vector<Point> Points() const {
    program::MetricLines lines;
    lines.Add(ReadEventFiles(folder_.path()));
    const program::MetricEvents events = lines.Take();
    EXPECT_THAT(events.remarks, IsEmpty());
    return events.points;
  }
  const TestFolder folder_;
};

TEST_F(EventFilesTest, ReadsScalarsInOrderOfSteps) {
  UnknownFieldSet version;
  version.AddLengthDelimited(3, "brain.Event:2");
  folder_.Write("events.out.tfevents.1.host",
                absl::StrCat(Record(Serialized(version)), Scalar("loss", 0, 3),
                             Scalar("acc", 5, 0.5), Scalar("loss", 5, 2), Scalar("loss", 3, 2.5)));
  folder_.Write("model.pt", Scalar("loss", 9, 9));
  EXPECT_THAT(Points(), ElementsAre(Point{"loss", 0, 3}, Point{"loss", 3, 2.5},
                                    Point{"acc", 5, 0.5}, Point{"loss", 5, 2}));
}

TEST_F(EventFilesTest, ReadsTensorsOfOneNumber) {
  folder_.Write(
      "events.out.tfevents.1.host",
      absl::StrCat(TensorScalar("a", 1, 1, 5, BytesOf(1.5f)),
                   TensorScalar("b", 1, 1, 4, BytesOf(2.5f)),
                   TensorScalar("c", 1, 2, 6, BytesOf(0.1)),
                   TensorScalar("d", 1, 2, 4, BytesOf(0.2)), TensorScalar("text", 1, 7, 8, "words"),
                   TensorScalar("two", 1, 1, 4, BytesOf(1.0f) + BytesOf(2.0f))));
  EXPECT_THAT(Points(), ElementsAre(Point{"a", 1, 1.5}, Point{"b", 1, 2.5}, Point{"c", 1, 0.1},
                                    Point{"d", 1, 0.2}));
}

TEST_F(EventFilesTest, NamesFoldersIfThereAreSeveral) {
  std::filesystem::create_directories(folder_ / "runs/a");
  folder_.Write("runs/a/events.out.tfevents.1.host", Scalar("loss", 0, 1));
  EXPECT_THAT(Points(), ElementsAre(Point{"loss", 0, 1}));
  std::filesystem::create_directories(folder_ / "validation");
  folder_.Write("validation/events.out.tfevents.1.host", Scalar("loss", 0, 2));
  folder_.Write("events.out.tfevents.1.host", Scalar("loss", 0, 3));
  EXPECT_THAT(Points(), ElementsAre(Point{"loss", 0, 3}, Point{"runs/a/loss", 0, 1},
                                    Point{"validation/loss", 0, 2}));
}

TEST_F(EventFilesTest, TakesTheLastValueOfLaterFiles) {
  folder_.Write("events.out.tfevents.1.host", Scalar("loss", 0, 1) + Scalar("loss", 1, 1));
  folder_.Write("events.out.tfevents.2.host", Scalar("loss", 1, 2));
  EXPECT_THAT(Points(), ElementsAre(Point{"loss", 0, 1}, Point{"loss", 1, 2}));
}

TEST_F(EventFilesTest, LeavesOutWhatIsCutOffOrNoEvent) {
  const std::string whole = Scalar("loss", 0, 1), cut = Scalar("loss", 1, 2);
  folder_.Write("events.out.tfevents.1.host", whole + cut.substr(0, cut.size() - 9));
  folder_.Write("events.out.tfevents.2.host", "garbage that is long enough to be a record");
  folder_.Write("events.out.tfevents.3.host",
                BytesOf(std::numeric_limits<uint64_t>::max()) + "crc.");
  folder_.Write("events.out.tfevents.4.host", Scalar("late", uint64_t{1} << 32, 1));
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "events.out.tfevents.5.host");
  folder_.Write("elsewhere", Scalar("linked", 0, 1));
  EXPECT_THAT(Points(), ElementsAre(Point{"loss", 0, 1}));
}

TEST_F(EventFilesTest, ReadsNothingIfTheFolderIsALink) {
  const TestFolder other;
  other.Write("events.out.tfevents.1.host", Scalar("secret", 0, 1));
  std::filesystem::create_directory_symlink(other.path(), folder_ / "out");
  std::filesystem::create_directory_symlink(other.path(), folder_ / "below");
  EXPECT_EQ(ReadEventFiles(folder_ / "out"), "");
  EXPECT_EQ(ReadEventFiles(folder_.path()), "");
}

TEST_F(EventFilesTest, KeepsNumbersThatAreNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  folder_.Write("events.out.tfevents.1.host",
                Scalar("a", 0, kInf) + Scalar("b", 0, -kInf) + Scalar("c", 0, NAN));
  const std::vector<Point> points = Points();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0], (Point{"a", 0, kInf}));
  EXPECT_EQ(points[1], (Point{"b", 0, -kInf}));
  EXPECT_TRUE(std::isnan(points[2].value));
}

}  // namespace
}  // namespace ablate::worker
