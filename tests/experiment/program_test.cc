// Tests experiments whose runs are programs: cells, fingerprints, and what is refused.
#include "server/config/program.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Returns a server that has files and a worker with two environments.
Surroundings ProgramSurroundings() {
  Surroundings surroundings = TestSurroundings();
  const auto others = surroundings.find_dataset;
  surroundings.find_dataset = [others](absl::string_view name,
                                       bool as_text) -> absl::StatusOr<DatasetFacts> {
    if (name == "datasets/code-444444" || name == "code") {
      return DatasetFacts{
          {2, 0, 0, 0, 0, {}}, "code-444444", std::string(63, '0') + "9", DatasetKind::kFiles};
    }
    return others(name, as_text);
  };
  surroundings.environments["cpu"] = {{"default", "python 3.11, torch 2"}, {"jax", "python 3.12"}};
  return surroundings;
}

// Returns a program's experiment: 2 × 3 settings, of which the second axis is tuned, and 2 seeds.
v1::ExperimentSpec ProgramSpecText(const std::string& more = "") {
  v1::ExperimentSpec spec = FromText(R"(
    name: "own"
    base {
      program { command: ["python", "train.py"] files: "code" }
    }
    seeds { count: 2 } )" + more);
  *spec.mutable_base()->mutable_settings() =
      Json(R"({"lr": 0.001, "norm": false, "optimizer": "adam", "clip": null, "layers": [1, 2],
               "model": {"heads": 4, "kind": "rms"}})")
          .struct_value();
  return spec;
}

v1::ExperimentSpec Grid() {
  v1::ExperimentSpec spec = ProgramSpecText();
  AddValues("settings.norm", {"false", "true"}, &spec);
  AddValues("settings.lr", {"0.0005", "0.001", "0.002"}, &spec)->set_tune(true);
  return spec;
}

std::vector<std::string> ProblemsOf(const v1::ExperimentSpec& spec,
                                    const Overrides& overrides = {}) {
  return Messages(Resolve(spec, overrides, ProgramSurroundings()));
}

Resolution Sound(const v1::ExperimentSpec& spec, const Overrides& overrides = {}) {
  Resolution resolution = Resolve(spec, overrides, ProgramSurroundings());
  EXPECT_THAT(Messages(resolution), IsEmpty());
  return resolution;
}

TEST(ProgramTest, HasSwitches) {
  v1::ExperimentSpec spec = ProgramSpecText(R"(
    axes {
      form: pairs
      switches { label: "norm" set { key: "settings.norm" value { bool_value: true } } }
      switches { label: "files" set { key: "program.files" value { string_value: "code" } } }
    })");
  const Resolution resolution = Sound(spec);
  ASSERT_THAT(resolution.cells, SizeIs(4 * 2));
  EXPECT_EQ(resolution.cells[6].name, "norm+files-s0");
  EXPECT_TRUE(resolution.cells[6].run.spec().settings().fields().at("norm").bool_value());
  EXPECT_EQ(resolution.spec.axes(0).settings(2).set().at("program.files").string_value(),
            "datasets/code-444444");
}

std::string FingerprintOf(const v1::ExperimentSpec& spec, const Overrides& overrides = {}) {
  return Sound(spec, overrides).cells.at(0).fingerprint;
}

TEST(ProgramExperimentTest, ExpandsSettingsLikeFields) {
  const Resolution resolution = Sound(Grid());
  ASSERT_THAT(resolution.cells, SizeIs(12));
  const ResolvedCell& cell = resolution.cells[11];
  EXPECT_EQ(cell.name, "norm-true-lr0.002-s1");
  EXPECT_THAT(cell.labels, ElementsAre(Pair("norm", "true"), Pair("lr", "0.002")));
  EXPECT_EQ(cell.trainer, "program");
  EXPECT_EQ(cell.device_kind, "cpu");
  EXPECT_EQ(cell.parameters, 0u);
  EXPECT_EQ(cell.dataset_sha256, std::string(63, '0') + "9");
  EXPECT_EQ(cell.run.seed(), 1u);
  const auto& settings = cell.run.spec().settings().fields();
  EXPECT_EQ(settings.at("lr").number_value(), 0.002);
  EXPECT_TRUE(settings.at("norm").bool_value());
  EXPECT_EQ(settings.at("model").struct_value().fields().at("heads").number_value(), 4);
  EXPECT_EQ(cell.run.spec().program().files(), "datasets/code-444444");
  EXPECT_EQ(cell.run.spec().program().environment(), "default");
  EXPECT_FALSE(cell.run.spec().has_training());
  EXPECT_EQ(resolution.spec.base().program().files(), "datasets/code-444444");
  EXPECT_THAT(resolution.configs, IsEmpty());
  EXPECT_THAT(resolution.parameters, SizeIs(6));
}

TEST(ProgramExperimentTest, HasOneFingerprintPerRunAndOneShapePerSetting) {
  std::set<std::string> fingerprints, shapes;
  for (const ResolvedCell& cell : Sound(Grid()).cells) {
    fingerprints.insert(cell.fingerprint);
    shapes.insert(cell.shape);
  }
  EXPECT_THAT(fingerprints, SizeIs(12));
  EXPECT_THAT(shapes, SizeIs(6));
}

TEST(ProgramExperimentTest, ReusesRunsOfEqualContent) {
  const std::string fingerprint = FingerprintOf(ProgramSpecText());
  v1::ExperimentSpec same = ProgramSpecText(R"(question: "other?" report { primary: "acc" })");
  same.mutable_base()->mutable_program()->set_files("datasets/code-444444");
  same.mutable_base()->mutable_program()->mutable_limits()->set_disk(2'000'000);
  same.mutable_base()->mutable_program()->set_arguments(v1::Arguments::flags);
  EXPECT_EQ(FingerprintOf(same), fingerprint);
  EXPECT_EQ(FingerprintOf(same, {{"settings.lr", Json("0.001")}}), fingerprint);
  EXPECT_NE(FingerprintOf(same, {{"settings.lr", Json("0.002")}}), fingerprint);
  v1::ExperimentSpec by_axis = ProgramSpecText();
  AddValues("settings.lr", {"0.001"}, &by_axis);
  EXPECT_EQ(FingerprintOf(by_axis), fingerprint);
  v1::ExperimentSpec no_files = ProgramSpecText();
  no_files.mutable_base()->mutable_program()->clear_files();
  EXPECT_NE(FingerprintOf(no_files), fingerprint);
  v1::ExperimentSpec data = ProgramSpecText();
  data.mutable_base()->mutable_program()->set_data("code");
  EXPECT_NE(FingerprintOf(data), fingerprint);
  const Resolution with_data = Sound(data);
  EXPECT_EQ(with_data.cells[0].data_sha256, with_data.cells[0].dataset_sha256);
  EXPECT_EQ(with_data.cells[0].run.spec().program().data(), "datasets/code-444444");
  EXPECT_EQ(with_data.spec.base().program().data(), "datasets/code-444444");
  v1::ExperimentSpec interrupted = ProgramSpecText();
  interrupted.mutable_base()->mutable_program()->set_checkpoint(true);
  EXPECT_EQ(FingerprintOf(interrupted), fingerprint);
  interrupted.mutable_base()->mutable_program()->set_interrupt_at(5);
  EXPECT_NE(FingerprintOf(interrupted), fingerprint);
  Surroundings upgraded = ProgramSurroundings();
  upgraded.environments["cpu"]["default"] = "python 3.11, torch 3";
  EXPECT_NE(Resolve(ProgramSpecText(), {}, upgraded).cells.at(0).fingerprint, fingerprint);
}

TEST(ProgramExperimentTest, AppliesOverridesAndSettingsOfAxes) {
  v1::ExperimentSpec spec = ProgramSpecText();
  AddSettings("variant",
              {{"a", {{"settings.model.heads", "8"}, {"settings.clip", "1.5"}}},
               {"b", {{"settings.optimizer", "\"muon\""}, {"program.environment", "\"jax\""}}},
               {"c", {{"settings.clip", "null"}}}},
              &spec);
  const Resolution resolution = Sound(spec, {{"settings.norm", Json("true")}});
  ASSERT_THAT(resolution.cells, SizeIs(6));
  EXPECT_EQ(SettingsJson(resolution.cells[0].run),
            R"({"clip": 1.5, "layers": [1, 2], "lr": 0.001, "model": {"heads": 8, "kind": "rms"}, )"
            R"("norm": true, "optimizer": "adam", "seed": 0})");
  EXPECT_EQ(resolution.cells[2].trainer, "program:jax");
  EXPECT_THAT(SettingsJson(resolution.cells[4].run), HasSubstr("\"clip\": null"));
}

TEST(ProgramExperimentTest, RefusesSettingsThatTheBaseDoesNotHave) {
  struct Case {
    std::string path, value;
    std::vector<std::string> said;
  };
  for (const Case& test : {
           Case{"settings.lrr", "1", {"base.settings has no \"lrr\"", "did you mean lr"}},
           Case{"settings.model.head", "1", {"has no \"model.head\"", "model.heads"}},
           Case{"settings.lr.x", "1", {"has no \"lr.x\""}},
           Case{"settings.lr", "\"a\"", {"isn't a number, as lr is in base.settings"}},
           Case{"settings.norm", "1", {"isn't true or false, as norm is"}},
           Case{"settings.optimizer", "true", {"isn't a text, as optimizer is"}},
           Case{"settings.layers", "3", {"isn't a list, as layers is"}},
           Case{"settings.model", "{\"heads\": 1}", {"a path of one setting below model"}},
           Case{"settings.lr", "null", {"isn't a number"}},
           Case{"settings", "{\"lr\": 1}", {"settings can't be replaced as a whole"}},
           Case{"program", "null", {"program can't be replaced as a whole"}},
       }) {
    v1::ExperimentSpec by_axis = ProgramSpecText();
    AddSettings("a", {{"x", {{test.path, test.value}}}}, &by_axis);
    const auto of_axis = ProblemsOf(by_axis);
    const auto of_override = ProblemsOf(ProgramSpecText(), {{test.path, Json(test.value)}});
    ASSERT_THAT(of_axis, SizeIs(1)) << test.path;
    ASSERT_THAT(of_override, SizeIs(1)) << test.path;
    for (const std::string& said : test.said) {
      EXPECT_THAT(of_axis[0], HasSubstr(said)) << test.path;
      EXPECT_THAT(of_override[0], HasSubstr(said)) << test.path;
    }
    EXPECT_THAT(of_axis[0], HasSubstr("axes[0].settings[0].set"));
  }
}

TEST(ProgramExperimentTest, RefusesBadPrograms) {
  using Change = void (*)(v1::ExperimentSpec*);
  struct Case {
    Change change;
    std::string said;
  };
  const std::vector<Case> cases = {
      {[](auto* spec) { spec->mutable_base()->mutable_program()->clear_command(); },
       "base.program.command: missing"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_command(0, ""); },
       "base.program.command: missing"},
      {[](auto* spec) {
         spec->mutable_base()->mutable_program()->add_command(std::string("a\0b", 3));
       },
       "a part has a zero byte"},
      {[](auto* spec) {
         spec->mutable_base()->mutable_program()->add_command(std::string(70'000, 'a'));
       },
       "at most 1,000 texts of 65,536 bytes"},
      {[](auto* spec) { spec->mutable_base()->mutable_task()->mutable_recall(); },
       "task has no effect with a program"},
      {[](auto* spec) { spec->mutable_base()->mutable_training()->set_steps(5); },
       "training has no effect with a program"},
      {[](auto* spec) { spec->mutable_base()->mutable_model()->set_width(8); },
       "model has no effect with a program"},
      {[](auto* spec) { spec->add_analyses()->mutable_spectrum(); },
       "the runs are programs, which have no model to analyze"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_environment("rust"); },
       "no worker has the environment \"rust\""},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_environment("a b"); },
       "can't be the name of an environment"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_files("names"); },
       "doesn't hold a program's files"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_files("gone"); },
       "there is no data set of that name"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_seed("lr"); },
       "base.settings.lr: lr is the run's own seed"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_seed("a b"); },
       "can't be the name of a setting"},
      {[](auto* spec) {
         (*spec->mutable_base()->mutable_settings()->mutable_fields())["seed"].set_number_value(1);
       },
       "base.settings.seed: seed is the run's own seed"},
      {[](auto* spec) {
         (*spec->mutable_base()->mutable_settings()->mutable_fields())["a=b"].set_number_value(1);
       },
       "\"a=b\" can't be the name of a setting"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_threads(5000); },
       "base.program.threads"},
      {[](auto* spec) {
         spec->mutable_base()->mutable_program()->mutable_limits()->mutable_time()->set_seconds(0);
       },
       "base.program.limits.time: 0s is out of range"},
      {[](auto* spec) {
         spec->mutable_base()->mutable_program()->mutable_limits()->set_memory(10);
       },
       "base.program.limits.memory"},
      {[](auto* spec) { spec->mutable_base()->mutable_program()->set_interrupt_at(5); },
       "base.program.checkpoint: a program that stores no checkpoints can't continue"},
      {[](auto* spec) { spec->mutable_report()->set_primary(" acc"); }, "report.primary"},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    v1::ExperimentSpec spec = ProgramSpecText();
    cases[i].change(&spec);
    EXPECT_THAT(ProblemsOf(spec), Contains(HasSubstr(cases[i].said))) << "case " << i;
  }
}

TEST(ProgramExperimentTest, RefusesSettingsWithoutAProgram) {
  v1::ExperimentSpec spec = SmallSpec();
  (*spec.mutable_base()->mutable_settings()->mutable_fields())["lr"].set_number_value(1);
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              Contains(HasSubstr("base.settings: settings are those of a program")));
  v1::ExperimentSpec by_axis = SmallSpec();
  AddSettings("a", {{"x", {{"program.command", "[\"a\"]"}}}}, &by_axis);
  EXPECT_THAT(Messages(Resolve(by_axis, {}, TestSurroundings())),
              ElementsAre(HasSubstr("base has no program")));
}

TEST(ProgramExperimentTest, HintsAtTheSettingThatAFieldMeans) {
  EXPECT_THAT(ProblemsOf(ProgramSpecText(), {{"lr", Json("0.1")}}),
              ElementsAre(HasSubstr("unknown field \"lr\", but a setting; expected settings.lr")));
  v1::ExperimentSpec by_axis = ProgramSpecText();
  AddValues("lr", {"0.1", "0.2"}, &by_axis);
  EXPECT_THAT(ProblemsOf(by_axis), Contains(HasSubstr("expected settings.lr")));
}

TEST(ProgramExperimentTest, SaysWhyNoWorkerTakesPrograms) {
  Surroundings none = ProgramSurroundings();
  none.environments.clear();
  none.no_programs["cpu"] = "bwrap isn't installed";
  EXPECT_THAT(Messages(Resolve(ProgramSpecText(), {}, none)),
              ElementsAre(AllOf(HasSubstr("no worker takes programs: bwrap isn't installed"),
                                HasSubstr("--programs sandboxed"))));
}

TEST(ProgramExperimentTest, RunsOnAGpuIfItsDeviceIsCuda) {
  v1::ExperimentSpec spec = ProgramSpecText();
  spec.mutable_base()->mutable_program()->set_device(v1::ProgramDevice::cuda);
  Surroundings surroundings = ProgramSurroundings();
  surroundings.no_programs["cuda"] = "CUDA shows 0 devices";
  EXPECT_THAT(Messages(Resolve(spec, {}, surroundings)),
              ElementsAre(HasSubstr("base.program.device: no worker takes programs on a GPU: CUDA "
                                    "shows 0 devices; expected cpu")));
  surroundings.environments["cuda"] = surroundings.environments["cpu"];
  const Resolution resolution = Resolve(spec, {}, surroundings);
  EXPECT_THAT(Messages(resolution), IsEmpty());
  EXPECT_EQ(resolution.cells.at(0).device_kind, "cuda");
  EXPECT_NE(resolution.cells.at(0).fingerprint, FingerprintOf(ProgramSpecText()));
}

TEST(ProgramExperimentTest, ReportsAProblemOncePerPlaceNotPerCell) {
  v1::ExperimentSpec spec = Grid();
  spec.mutable_base()->mutable_program()->set_environment("rust");
  spec.mutable_base()->mutable_program()->set_files("gone");
  EXPECT_THAT(ProblemsOf(spec), SizeIs(2));
  spec.mutable_base()->mutable_program()->clear_command();
  EXPECT_THAT(ProblemsOf(spec), SizeIs(3));
}

TEST(ProgramExperimentTest, TakesAnyMetricAsPrimary) {
  EXPECT_THAT(ProblemsOf(ProgramSpecText(R"(report { primary: "val accuracy" better: higher
                                                     summaries { key: "loss" } })")),
              IsEmpty());
}

TEST(ProgramExperimentTest, RefusesRepeatedNamesOfCells) {
  v1::ExperimentSpec spec = ProgramSpecText();
  AddSettings("a", {{"x-y", {}}, {"x", {}}}, &spec);
  AddSettings("b", {{"z", {}}, {"y-z", {}}}, &spec);
  EXPECT_THAT(ProblemsOf(spec), Contains(HasSubstr("two cells have the name x-y-z")));
}

}  // namespace
}  // namespace ablate::spec
