// Tests Resolve: from a spec and overrides to named cells in grid order.
#include "server/experiment/resolve.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/engine/names.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

std::vector<std::string> Names(const Resolution& resolution) {
  std::vector<std::string> names;
  for (const ResolvedCell& cell : resolution.cells) names.push_back(cell.name);
  return names;
}

TEST(ResolveTest, ExpandsAxesInOrderWithSeedsFastest) {
  const Resolution resolution = Resolved(NamesNorm());
  ASSERT_THAT(resolution.cells, SizeIs(180));
  EXPECT_EQ(resolution.cells[0].name, "pre-lr0.001-s42");
  EXPECT_EQ(resolution.cells[1].name, "pre-lr0.001-s43");
  EXPECT_EQ(resolution.cells[12].name, "pre-lr0.002-s42");
  EXPECT_EQ(resolution.cells[60].name, "post-lr0.001-s42");
  EXPECT_EQ(resolution.cells[179].name, "none-lr0.02-s53");
  EXPECT_THAT(resolution.cells[60].labels,
              ElementsAre(Pair("placement", "post"), Pair("lr", "0.001")));
  std::set<std::string> fingerprints;
  for (const ResolvedCell& cell : resolution.cells) fingerprints.insert(cell.fingerprint);
  EXPECT_THAT(fingerprints, SizeIs(180));
}

TEST(ResolveTest, CountsParametersOfEachSetting) {
  const Resolution resolution = Resolved(NamesNorm());
  ASSERT_THAT(resolution.parameters, SizeIs(15));
  EXPECT_EQ(resolution.parameters[0].parameters(), 25'968u);
  EXPECT_EQ(resolution.parameters[5].parameters(), 25'952u);
  EXPECT_EQ(resolution.parameters[10].parameters(), 25'696u);
}

TEST(ResolveTest, NotesWhatElseChanges) {
  EXPECT_THAT(Resolved(NamesNorm()).notes,
              ElementsAre("post, none also change model.norm.final",
                          "placement: parameters differ: pre 25,968, post 25,952, none 25,696"));
}

TEST(ResolveTest, ASpecWithoutAxesHasOneCell) {
  const Resolution resolution = Resolved(SmallSpec());
  EXPECT_THAT(Names(resolution), ElementsAre("s0"));
  EXPECT_THAT(resolution.cells[0].labels, IsEmpty());
  EXPECT_THAT(resolution.notes, IsEmpty());
  EXPECT_THAT(resolution.parameters, SizeIs(1));
}

TEST(ResolveTest, TakesSeedsFromAList) {
  v1::ExperimentSpec spec = SmallSpec();
  for (const uint32_t seed : {7u, 3u, 4294967295u}) spec.mutable_seeds()->add_list(seed);
  EXPECT_THAT(Names(Resolved(spec)), ElementsAre("s7", "s3", "s4294967295"));
}

TEST(ResolveTest, LabelsFieldAxesByShortestDecimals) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("training.learning_rate", {"0.0001", "5e-5", "0.5", "1.0", "100"}, &spec);
  EXPECT_THAT(Names(Resolved(spec)),
              ElementsAre("learning_rate0.0001-s0", "learning_rate5e-05-s0", "learning_rate0.5-s0",
                          "learning_rate1-s0", "learning_rate100-s0"));
}

TEST(ResolveTest, LabelsBooleansAndNames) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("model.residual", {"true", "false"}, &spec);
  AddValues("model.feed_forward.activation", {"\"relu\"", "\"gelu_tanh\""}, &spec)->set_name("act");
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(Names(resolution),
              ElementsAre("residual-true-relu-s0", "residual-true-gelu_tanh-s0",
                          "residual-false-relu-s0", "residual-false-gelu_tanh-s0"));
  EXPECT_FALSE(resolution.cells[2].run.spec().model().residual());
  EXPECT_EQ(resolution.cells[3].run.spec().model().feed_forward().activation(),
            v1::Activation::gelu_tanh);
}

TEST(ResolveTest, LeavesOutWhatIsExcluded) {
  v1::ExperimentSpec spec = NamesNorm();
  auto& where = *spec.add_exclude()->mutable_where();
  where["placement"].set_string_value("post");
  where["lr"].set_number_value(0.02);
  (*spec.add_exclude()->mutable_where())["lr"].set_string_value("0.001");
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(resolution.cells, SizeIs((15 - 1 - 3) * 12));
  EXPECT_THAT(resolution.parameters, SizeIs(11));
  for (const ResolvedCell& cell : resolution.cells) {
    EXPECT_NE(cell.labels[1].second, "0.001");
    EXPECT_FALSE(cell.labels[0].second == "post" && cell.labels[1].second == "0.02") << cell.name;
  }
}

TEST(ResolveTest, ExclusionsAddNoProblemToThatOfTheirAxis) {
  v1::ExperimentSpec spec = NamesNorm();
  spec.mutable_axes(1)->set_field("training.learning_rat");
  spec.mutable_axes(1)->set_name("lr");
  (*spec.add_exclude()->mutable_where())["lr"].set_string_value("0.001");
  const Resolution resolution = Resolve(spec, {}, TestSurroundings());
  ASSERT_THAT(resolution.problems, SizeIs(1));
  EXPECT_EQ(resolution.problems[0].field, "axes[1].field");
}

TEST(ResolveTest, ExclusionsMakeALargeGridFit) {
  v1::ExperimentSpec spec = NamesNorm();
  spec.mutable_limits()->set_runs(60);
  (*spec.add_exclude()->mutable_where())["placement"].set_string_value("post");
  (*spec.add_exclude()->mutable_where())["placement"].set_string_value("none");
  EXPECT_THAT(Resolved(spec).cells, SizeIs(60));
}

TEST(ResolveTest, AppliesOverridesBeforeAxes) {
  const Resolution resolution = Resolved(
      NamesNorm(), {{"training.steps", Json("500")}, {"model.norm.kind", Json("\"layer\"")}});
  EXPECT_EQ(resolution.spec.base().training().steps(), 500u);
  for (const ResolvedCell& cell : resolution.cells) {
    EXPECT_EQ(cell.run.spec().training().steps(), 500u);
    EXPECT_EQ(cell.run.spec().model().norm().kind(), v1::NormKind::layer);
  }
  EXPECT_EQ(resolution.cells[60].run.spec().model().norm().placement(), v1::NormPlacement::post);
}

TEST(ResolveTest, NullInAnOverrideRestoresTheDefault) {
  const Resolution resolution = Resolved(NamesNorm(), {{"training.betas", Json("null")}});
  EXPECT_THAT(resolution.spec.base().training().betas(), IsEmpty());
  EXPECT_THAT(resolution.cells[0].run.spec().training().betas(), ElementsAre(0.9, 0.999));
}

TEST(ResolveTest, SettingsReplaceListsAndMessages) {
  v1::ExperimentSpec spec = NamesNorm();
  auto& set = *spec.mutable_axes(0)->mutable_settings(1)->mutable_set();
  set.clear();
  set["model.norm"] = Json(R"({"placement": "post"})");
  set["training.betas"] = Json("[0.5, 0.6]");
  const v1::BaseSpec post = Resolved(spec).cells[60].run.spec();
  EXPECT_EQ(post.model().norm().kind(), v1::NormKind::layer);
  EXPECT_TRUE(post.model().norm().final());
  EXPECT_THAT(post.training().betas(), ElementsAre(0.5, 0.6));
}

TEST(ResolveTest, ASettingMaySwitchTheTask) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("task",
              {{"recall", {}}, {"names", {{"task", R"({"documents": {"dataset": "names"}})"}}}},
              &spec);
  const Resolution resolution = Resolved(spec);
  ASSERT_THAT(resolution.cells, SizeIs(2));
  EXPECT_EQ(resolution.cells[0].run.spec().model().context(), 41u);
  EXPECT_FALSE(resolution.cells[0].run.spec().model().attention().causal());
  EXPECT_EQ(resolution.cells[0].dataset_sha256, "");
  EXPECT_EQ(resolution.cells[1].run.spec().model().context(), 64u);
  EXPECT_TRUE(resolution.cells[1].run.spec().model().attention().causal());
  EXPECT_EQ(resolution.cells[1].dataset_sha256, std::string(63, '0') + "1");
}

TEST(ResolveTest, NamesDataSetsById) {
  v1::ExperimentSpec spec = NamesNorm();
  AddSettings(
      "data",
      {{"names", {}}, {"tiny", {{"task", R"({"documents": {"dataset": "tiny", "held_out": 2}})"}}}},
      &spec);
  const Resolution resolution = Resolved(spec);
  EXPECT_EQ(resolution.spec.base().task().documents().dataset(), "datasets/names-0a30b5");
  EXPECT_EQ(reflect::ShortText(resolution.spec.axes(2).settings(1).set().at("task")),
            "{documents: {dataset: datasets/tiny-000000, held_out: 2}}");
  EXPECT_EQ(resolution.cells[12].run.spec().task().documents().dataset(), "datasets/tiny-000000");
}

TEST(ResolveTest, NamesTheDataSetsOfTextsToo) {
  v1::ExperimentSpec spec = TextSpec();
  AddSettings(
      "data",
      {{"shakespeare", {}},
       {"tiny",
        {{"task.text", R"({"dataset": "tiny", "validation": 0.5})"}, {"model.context", "30"}}}},
      &spec);
  const Resolution resolution = Resolved(spec);
  EXPECT_EQ(resolution.spec.base().task().text().dataset(), "datasets/shakespeare-86c4e6");
  EXPECT_EQ(resolution.spec.axes(0)
                .settings(1)
                .set()
                .at("task.text")
                .struct_value()
                .fields()
                .at("dataset")
                .string_value(),
            "datasets/tiny-000000");
  EXPECT_EQ(resolution.cells[1].run.spec().task().text().dataset(), "datasets/tiny-000000");
  EXPECT_EQ(resolution.cells[1].dataset_sha256, std::string(63, '0') + "2");
}

TEST(ResolveTest, LooksEachDataSetUpOnce) {
  Surroundings surroundings = TestSurroundings();
  std::vector<bool> calls;  // whether as text
  surroundings.find_dataset = [&calls](absl::string_view name, bool as_text) {
    calls.push_back(as_text);
    return TestSurroundings().find_dataset(name, as_text);
  };
  EXPECT_THAT(Resolve(NamesNorm(), {}, surroundings).cells, SizeIs(180));
  EXPECT_THAT(calls, ElementsAre(false));
  calls.clear();
  EXPECT_THAT(Resolve(TextSpec(), {}, surroundings).cells, SizeIs(1));
  EXPECT_THAT(calls, ElementsAre(true));
}

TEST(ResolveTest, LooksADataSetUpAsATextOnceATaskReadsItSo) {
  Surroundings surroundings;
  surroundings.find_dataset = [](absl::string_view name, bool as_text) {
    auto facts = TestSurroundings().find_dataset(name, as_text);
    if (!as_text) facts->code_points = facts->line_ends = 0;
    return facts;
  };
  v1::ExperimentSpec spec =
      FromText(R"(name: "both" base { task { documents { dataset: "shakespeare" } } })");
  AddSettings("task",
              {{"documents", {}},
               {"text", {{"task", R"({"text": {"dataset": "datasets/shakespeare-86c4e6"}})"}}}},
              &spec);
  const Resolution resolution = Resolve(spec, {}, surroundings);
  EXPECT_THAT(Messages(resolution), IsEmpty());
  EXPECT_THAT(resolution.cells, SizeIs(2));
  EXPECT_THAT(resolution.notes,
              ::testing::Contains(::testing::HasSubstr("evaluation scores 111,488 tokens")));
}

TEST(ResolveTest, EqualCellsAreOneRun) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("width", {{"default", {}}, {"same", {{"model.width", "128"}}}}, &spec);
  const Resolution resolution = Resolved(spec);
  ASSERT_THAT(resolution.cells, SizeIs(2));
  EXPECT_EQ(resolution.cells[0].fingerprint, resolution.cells[1].fingerprint);
  EXPECT_THAT(resolution.notes, ElementsAre("default-s0 and same-s0 are one run, trained once"));
}

TEST(DeviceTest, IsTheCoresIfNativeTrainsTheRun) {
  const Resolution resolution = Resolve(SmallSpec(), {}, WithGpu());
  EXPECT_THAT(Devices(resolution), ElementsAre("cpu"));
  EXPECT_EQ(resolution.cells[0].trainer, "native");
  EXPECT_EQ(resolution.cells[0].fingerprint, Resolved(SmallSpec()).cells[0].fingerprint);
  EXPECT_THAT(resolution.notes,
              ::testing::Contains("training.device auto is cpu, because native trains the runs on "
                                  "the cores; training.device=cuda trains them by torch on a GPU"));
}

TEST(DeviceTest, IsAGpuIfTorchTrainsAllRuns) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  EXPECT_THAT(Devices(Resolved(spec)), ElementsAre("cpu")) << "there is none";
  const Resolution resolution = Resolve(spec, {}, WithGpu());
  EXPECT_THAT(Devices(resolution), ElementsAre("cuda"));
  EXPECT_NE(resolution.cells[0].fingerprint, Resolved(spec).cells[0].fingerprint);
  EXPECT_NE(resolution.cells[0].shape, Resolved(spec).cells[0].shape);
  EXPECT_THAT(resolution.notes,
              ::testing::Contains("training.device auto is cuda: torch trains on a GPU"));
  spec.mutable_base()->mutable_training()->set_device(v1::Device::cuda);
  const Resolution asked = Resolve(spec, {}, WithGpu());
  EXPECT_EQ(asked.cells[0].fingerprint, resolution.cells[0].fingerprint) << "it is the same run";
  EXPECT_THAT(asked.notes, IsEmpty());
}

TEST(DeviceTest, IsWhatTheFileSaysWhateverTrains) {
  for (const char* device : {"\"cpu\"", "\"cuda\""}) {
    const Resolution resolution = Resolve(
        SmallSpec(), {{"training.device", Json(device)}, {"training.trainer", Json("\"torch\"")}},
        WithGpu());
    EXPECT_THAT(Messages(resolution), IsEmpty());
    EXPECT_EQ(absl::StrCat("\"", resolution.cells.at(0).device_kind, "\""), device);
    EXPECT_THAT(resolution.notes, IsEmpty());
  }
}

TEST(DeviceTest, IsOneForAllCellsThatLeaveItOpen) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("by",
              {{"native", {{"training.trainer", "\"native\""}}},
               {"torch", {{"training.trainer", "\"torch\""}}},
               {"gpu", {{"training.trainer", "\"torch\""}, {"training.device", "\"cuda\""}}}},
              &spec);
  const Resolution resolution = Resolve(spec, {}, WithGpu());
  EXPECT_THAT(Devices(resolution), ElementsAre("cpu", "cpu", "cuda"));
  EXPECT_THAT(resolution.notes,
              ::testing::Contains(::testing::HasSubstr("native trains some of the runs")));
}

// Auto may have become another trainer or device while the grid was smaller, or before a GPU came.
TEST(DeviceTest, KnowsTheRunsThatItCouldHaveBecome) {
  const auto others = [](const Resolution& resolution) {
    std::vector<std::string> result;
    for (const OtherRun& other : resolution.cells.at(0).others) {
      result.push_back(absl::StrCat(other.trainer, " ", other.device_kind));
      EXPECT_NE(other.fingerprint, resolution.cells[0].fingerprint);
    }
    return result;
  };
  EXPECT_THAT(others(Resolved(SmallSpec())), ElementsAre("torch cpu"));
  EXPECT_THAT(others(Resolve(SmallSpec(), {}, WithGpu())), ElementsAre("torch cpu", "torch cuda"));
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  EXPECT_THAT(others(Resolved(spec)), IsEmpty());
  const Resolution on_gpu = Resolve(spec, {}, WithGpu());
  EXPECT_THAT(others(on_gpu), ElementsAre("torch cpu"));
  EXPECT_EQ(on_gpu.cells[0].others[0].fingerprint, Resolved(spec).cells[0].fingerprint);
  EXPECT_EQ(on_gpu.cells[0].others[0].growth, Resolved(spec).cells[0].growth);
}

TEST(DeviceTest, MustHaveTheMemory) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  Surroundings surroundings = WithGpu();
  surroundings.memory = {{"cpu", {1'000, 1}}, {"cuda", {80'000'000'000, 4}}};
  EXPECT_THAT(Devices(Resolve(spec, {}, surroundings)), ElementsAre("cuda"))
      << "the memory of the cores doesn't matter";
  surroundings.memory = {{"cpu", {80'000'000'000, 2}}, {"cuda", {1'000, 4}}};
  EXPECT_THAT(Messages(Resolve(spec, {}, surroundings)),
              ElementsAre(::testing::HasSubstr("the largest device has 1.0 kB")));
  spec.mutable_base()->mutable_training()->set_device(v1::Device::cpu);
  EXPECT_THAT(Messages(Resolve(spec, {}, surroundings)), IsEmpty());
}

struct TrainerCase {
  const char* asked;  // JSON; null: absent
  bool cuda;          // not supported by native
  const char* resolved;
  const char* why_not;
};

TEST(TrainerTest, IsNativeWhereThatTrainsAndNobodyAskedForTorch) {
  Surroundings surroundings = TestSurroundings();
  surroundings.cuda = true;
  constexpr char kWhyNot[] = "the native trainer runs on a CPU";
  for (const TrainerCase& wanted :
       {TrainerCase{"null", false, "native", ""}, TrainerCase{"\"auto\"", false, "native", ""},
        TrainerCase{"\"torch\"", false, "torch", ""},
        TrainerCase{"\"native\"", false, "native", ""}, TrainerCase{"null", true, "torch", kWhyNot},
        TrainerCase{"\"auto\"", true, "torch", kWhyNot},
        TrainerCase{"\"torch\"", true, "torch", ""}}) {
    const std::string device = wanted.cuda ? "cuda" : "cpu";
    const Resolution resolution = Resolve(
        SmallSpec(),
        {{"training.trainer", Json(wanted.asked)}, {"training.device", Json("\"" + device + "\"")}},
        surroundings);
    ASSERT_THAT(Messages(resolution), IsEmpty()) << wanted.asked << " on " << device;
    const ResolvedCell& cell = resolution.cells.at(0);
    EXPECT_EQ(cell.trainer, wanted.resolved) << wanted.asked << " on " << device;
    EXPECT_EQ(v1::Trainer::Value_Name(cell.run.spec().training().trainer()), wanted.resolved);
    EXPECT_EQ(cell.why_not_native, wanted.why_not) << wanted.asked << " on " << device;
  }
}

TEST(TrainerTest, IsRefusedWhereNativeIsAskedForAndDoesNotTrain) {
  Surroundings surroundings = TestSurroundings();
  surroundings.cuda = true;
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::native);
  EXPECT_THAT(Messages(Resolve(spec, {}, surroundings)), IsEmpty()) << "on the cores";
  spec.mutable_base()->mutable_training()->set_device(v1::Device::cuda);
  EXPECT_THAT(Messages(Resolve(spec, {}, surroundings)),
              ElementsAre("base.training.trainer: native doesn't support this run: the native "
                          "trainer runs on a CPU; expected auto or torch"));
}

// Native supports neither BatchNorm if the loss reads last positions only, nor GPUs.
constexpr char kNoBatchNorm[] =
    "the native trainer has no BatchNorm where the loss reads last positions alone";

// Returns a recall experiment on a CPU with norms of these kinds, as JSON.
v1::ExperimentSpec Norms(const std::vector<std::string>& kinds) {
  v1::ExperimentSpec spec = RecallSpec();
  AddValues("model.norm.kind", kinds, &spec);
  return spec;
}

std::vector<std::string> Trainers(const Resolution& resolution) {
  std::vector<std::string> trainers;
  for (const ResolvedCell& cell : resolution.cells) {
    EXPECT_EQ(v1::Trainer::Value_Name(cell.run.spec().training().trainer()), cell.trainer);
    trainers.push_back(cell.trainer);
  }
  return trainers;
}

TEST(TrainerTest, IsTorchForAllCellsOfAutoIfNativeLacksOne) {
  const Resolution native = Resolved(Norms({"\"layer\"", "\"rms\""}));
  EXPECT_THAT(Trainers(native), ElementsAre("native", "native"));
  const Resolution torch = Resolved(Norms({"\"layer\"", "\"rms\"", "\"batch\""}));
  EXPECT_THAT(Trainers(torch), ElementsAre("torch", "torch", "torch"));
  for (const ResolvedCell& cell : torch.cells) {
    EXPECT_EQ(cell.why_not_native, std::string(kNoBatchNorm) + " (kind=batch)");
    EXPECT_NE(cell.guessed_speed, native.cells[0].guessed_speed);
  }
}

TEST(TrainerTest, NamesNoMoreOfWhatNativeLacksThanSaysIt) {
  v1::ExperimentSpec spec = Norms({"\"layer\"", "\"batch\""});
  AddValues("model.norm.placement", {"\"pre\"", "\"none\""}, &spec);
  AddValues("training.schedule", {"\"linear\"", "\"constant\""}, &spec);
  EXPECT_EQ(Resolved(spec).cells[0].why_not_native, std::string(kNoBatchNorm) + " (kind=batch)")
      << "there is a final one where the placement is none";
  spec.mutable_base()->mutable_model()->mutable_norm()->set_final(false);
  EXPECT_EQ(Resolved(spec).cells[0].why_not_native,
            std::string(kNoBatchNorm) + " (kind=batch, placement=pre)");
  EXPECT_EQ(Resolved(Norms({"\"batch\""})).cells[0].why_not_native, kNoBatchNorm) << "all have it";
}

TEST(TrainerTest, IsTorchForEveryReasonThatThereIs) {
  v1::ExperimentSpec spec = Norms({"\"layer\"", "\"batch\""});
  AddValues("training.device", {"\"cpu\"", "\"cuda\""}, &spec);
  Surroundings surroundings = TestSurroundings();
  surroundings.cuda = true;
  const Resolution resolution = Resolve(spec, {}, surroundings);
  EXPECT_THAT(Trainers(resolution), ElementsAre("torch", "torch", "torch", "torch"));
  EXPECT_EQ(resolution.cells[0].why_not_native,
            std::string("the native trainer runs on a CPU (device=cuda) and ") + kNoBatchNorm +
                " (kind=batch, device=cpu)");
}

TEST(TrainerTest, IsNotDecidedByCellsThatAskForOne) {
  v1::ExperimentSpec spec = RecallSpec();
  AddSettings("norm",
              {{"layer", {}},
               {"batch", {{"model.norm.kind", "\"batch\""}, {"training.trainer", "\"torch\""}}}},
              &spec);
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(Trainers(resolution), ElementsAre("native", "torch"));
  EXPECT_EQ(resolution.cells[0].why_not_native, "");
  EXPECT_EQ(resolution.cells[1].why_not_native, "");
}

TEST(TrainerTest, StaysWhatACellAsksForWhereAutoIsTorch) {
  v1::ExperimentSpec spec = RecallSpec();
  AddSettings("norm",
              {{"layer", {}},
               {"native", {{"training.trainer", "\"native\""}}},
               {"batch", {{"model.norm.kind", "\"batch\""}}}},
              &spec);
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(Trainers(resolution), ElementsAre("torch", "native", "torch"));
  EXPECT_EQ(resolution.cells[0].why_not_native, std::string(kNoBatchNorm) + " (norm=batch)");
  EXPECT_EQ(resolution.cells[1].why_not_native, "");
}

// Resolved with training.trainer=native as an override.
std::vector<std::string> RefusalsOfNative(const v1::ExperimentSpec& spec) {
  return Messages(Resolve(spec, {{"training.trainer", Json("\"native\"")}}, TestSurroundings()));
}

TEST(TrainerTest, ThatIsRefusedNamesTheCellsAndWhatToDo) {
  v1::ExperimentSpec spec = RecallSpec();
  AddSettings("norm", {{"layer", {}}, {"bn", {{"model.norm.kind", "\"batch\""}}}}, &spec);
  AddValues("model.residual", {"true", "false"}, &spec);
  const std::string refusal = absl::StrCat(
      ": native doesn't support all of these runs: ", kNoBatchNorm,
      " (norm=bn); expected auto or torch, or exclude those cells, or have native in base and "
      "training.trainer: torch in the setting of those cells");
  EXPECT_THAT(RefusalsOfNative(spec), ElementsAre("overrides[\"training.trainer\"]" + refusal));
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::native);
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre("base.training.trainer" + refusal));
  EXPECT_THAT(RefusalsOfNative(Norms({"\"layer\"", "\"batch\""})),
              ElementsAre(testing::HasSubstr(" (kind=batch); expected ")));
  EXPECT_THAT(RefusalsOfNative(Norms({"\"batch\""})),
              ElementsAre(testing::EndsWith(absl::StrCat(
                  "native doesn't support this run: ", kNoBatchNorm, "; expected auto or torch"))));
}

TEST(TrainerTest, ThatASettingAsksForIsRefusedThere) {
  v1::ExperimentSpec spec = Norms({"\"layer\"", "\"batch\""});
  AddValues("training.trainer", {"\"torch\"", "\"native\""}, &spec);
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre(absl::StrCat(
                  "axes[1].values[1]: native doesn't support all of these runs: ", kNoBatchNorm,
                  " (kind=batch); expected auto or torch, or exclude those cells")));
}

TEST(TrainerTest, IsNotDecidedByCellsThatAreExcluded) {
  v1::ExperimentSpec spec = Norms({"\"layer\"", "\"batch\""});
  AddValues("training.schedule", {"\"linear\"", "\"constant\""}, &spec);
  (*spec.add_exclude()->mutable_where())["kind"] = Json("\"batch\"");
  EXPECT_THAT(Trainers(Resolved(spec)), ElementsAre("native", "native"));
}

TEST(TrainerTest, MakesTheRunThatAskingForItMakes) {
  const auto expect_same = [](const ResolvedCell& chosen, const ResolvedCell& asked) {
    EXPECT_EQ(chosen.run.DebugString(), asked.run.DebugString());
    EXPECT_EQ(chosen.fingerprint, asked.fingerprint);
    EXPECT_EQ(chosen.trajectory, asked.trajectory);
    EXPECT_EQ(chosen.growth, asked.growth);
    EXPECT_EQ(chosen.shape, asked.shape);
    EXPECT_EQ(chosen.guessed_speed, asked.guessed_speed);
    EXPECT_THAT(asked.others, IsEmpty());
  };
  const auto expect_other = [](const ResolvedCell& chosen, const ResolvedCell& asked) {
    ASSERT_THAT(chosen.others, SizeIs(1));
    EXPECT_EQ(chosen.others[0].fingerprint, asked.fingerprint);
    EXPECT_EQ(chosen.others[0].growth, asked.growth);
    EXPECT_EQ(chosen.others[0].trainer, asked.trainer);
    EXPECT_EQ(chosen.others[0].device_kind, asked.device_kind);
  };
  v1::ExperimentSpec grid = Norms({"\"layer\"", "\"batch\""});
  grid.mutable_base()->mutable_training()->set_schedule(v1::Schedule::constant);
  v1::ExperimentSpec layer = Norms({"\"layer\""});
  layer.mutable_base()->mutable_training()->set_schedule(v1::Schedule::constant);
  v1::ExperimentSpec native = layer;
  native.mutable_base()->mutable_training()->set_trainer(v1::Trainer::native);
  const ResolvedCell by_torch = Resolved(ByTorch(layer)).cells[0];
  const ResolvedCell by_native = Resolved(native).cells[0];
  ASSERT_NE(by_torch.growth, "");
  expect_same(Resolved(grid).cells[0], by_torch);
  expect_other(Resolved(grid).cells[0], by_native);
  expect_same(Resolved(layer).cells[0], by_native);
  expect_other(Resolved(layer).cells[0], by_torch);
}

TEST(TrainerTest, MayBeAnAxis) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("training.trainer", {"\"torch\"", "\"native\"", "\"auto\""}, &spec);
  const Resolution resolution = Resolved(spec);
  ASSERT_THAT(resolution.cells, SizeIs(3));
  EXPECT_EQ(resolution.cells[0].name, "torch-s0");
  EXPECT_EQ(resolution.cells[0].trainer, "torch");
  EXPECT_EQ(resolution.cells[1].trainer, "native");
  EXPECT_NE(resolution.cells[0].fingerprint, resolution.cells[1].fingerprint);
  EXPECT_EQ(resolution.cells[2].fingerprint, resolution.cells[1].fingerprint);
}

}  // namespace
}  // namespace ablate::spec
