// Tests problems beyond the limit: bad paths count, reported or not.
#include "gmock/gmock.h"
#include "server/experiment/grid.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Settings without labels fill the list; after them come bad settings and a bad exclusion.
v1::ExperimentSpec BadBeyondTheEnd() {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* full = spec.add_axes();
  full->set_name("a");
  for (size_t i = 0; i < Problems::kMaxProblems; ++i) full->add_settings();
  v1::Axis* bad = spec.add_axes();
  bad->set_name("b");
  for (const char* path : {"nonsense", "model.layers.more", "model.width"}) {
    v1::Setting* setting = bad->add_settings();
    setting->set_label(std::string("x") + path);
    (*setting->mutable_set())[path] = Json("-1");
  }
  (*spec.add_exclude()->mutable_where())["c"] = Json("1");
  return spec;
}

TEST(ProblemsTest, RefusesWhatIsBadBeyondTheLastThatIsKept) {
  const Resolution resolution =
      Resolve(BadBeyondTheEnd(), {{"nonsense", Json("1")}}, TestSurroundings());
  EXPECT_THAT(resolution.problems, SizeIs(Problems::kMaxProblems));
  EXPECT_FALSE(resolution.sound);
}

TEST(ProblemsTest, MarksPointsThoughNothingMoreIsKept) {
  const v1::ExperimentSpec spec = BadBeyondTheEnd();
  Problems problems;
  const std::vector<AxisPlan> axes = ReadAxes(spec, &problems);
  ASSERT_THAT(axes, SizeIs(2));
  EXPECT_TRUE(axes[1].points[0].broken);
  EXPECT_TRUE(axes[1].points[1].broken);
  EXPECT_THAT(axes[1].points[2].bad, testing::ElementsAre("model.width"));
  EXPECT_THAT(ReadExclusions(spec, axes, &problems), IsEmpty());
}

}  // namespace
}  // namespace ablate::spec
