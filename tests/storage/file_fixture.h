// What the tests of a store on file share: one run whose points are counted.
#ifndef ABLATE_TESTS_STORAGE_FILE_FIXTURE_H_
#define ABLATE_TESTS_STORAGE_FILE_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {

class FileTest : public ::testing::Test {
 protected:
  StoreOptions Options() {
    StoreOptions options;
    options.folder = absl::StrCat(folder_.path(), "/data");
    options.fatal = [this](const absl::Status& why) { fatal_ = why; };
    return options;
  }
  std::string Database() { return absl::StrCat(Options().folder, "/ablate.db"); }
  // One point of run "a".
  static LeaseEvent Point(uint32_t step) {
    return {"l", step + 1, "a", MakePoints(0, {MakeColumn("x", {step}, {step * 0.5})})};
  }
  static void Begin(Store* store) {
    ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a"}, 10'000'000)).ok());
    ASSERT_TRUE(store->Grant({{"l", {"w", "i", "d", "b", "t", "e", 0}, {"a"}}}).ok());
  }
  // Steps of run "a"; each must have the value it was sent with.
  static uint32_t Count(Store* store) {
    uint32_t next = 0;
    const absl::Status status =
        store->ReadSeries({"a", "x"}, [&](const auto& steps, const auto& values) {
          for (size_t i = 0; i < steps.size(); ++i) {
            EXPECT_EQ(steps[i], next);
            EXPECT_EQ(values[i], next++ * 0.5);
          }
          return true;
        });
    EXPECT_TRUE(status.ok()) << status;
    return next;
  }

  TemporaryFolder folder_;
  absl::Status fatal_;
};

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_FILE_FIXTURE_H_
