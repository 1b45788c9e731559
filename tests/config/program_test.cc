// Tests what is read from the specs of programs: commands, settings as text, identities.
#include "server/config/program.h"

#include <functional>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "server/config/fields.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Returns a program's run with these settings, as JSON.
v1::RunSpec ProgramRun(const std::vector<std::string>& command, v1::Arguments::Value arguments,
                       const std::string& settings) {
  v1::RunSpec run;
  run.set_seed(7);
  v1::BaseSpec& base = *run.mutable_spec();
  for (const std::string& part : command) base.mutable_program()->add_command(part);
  base.mutable_program()->set_arguments(arguments);
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(settings, base.mutable_settings()).ok());
  FillProgram(&base);
  return run;
}

constexpr char kManySettings[] =
    R"({"lr": 0.001, "on": true, "off": false, "none": null, "model": {"heads": 4, "kind": "rms"},
        "list": [1, "a"], "big": 1e6, "text": "a b"})";

TEST(ProgramTest, HasDefaults) {
  const v1::RunSpec run = ProgramRun({"a"}, v1::Arguments::unspecified, "{}");
  const v1::ProgramSpec& program = run.spec().program();
  EXPECT_EQ(program.environment(), "default");
  EXPECT_EQ(program.threads(), 1u);
  EXPECT_EQ(program.seed(), "seed");
  EXPECT_TRUE(program.reuse());
  EXPECT_FALSE(program.checkpoint());
  EXPECT_EQ(program.limits().disk(), 1'000'000'000u);
  EXPECT_FALSE(program.limits().has_memory());
  v1::BaseSpec base;
  base.mutable_program()->add_command("a");
  FillFields(&base);
  EXPECT_EQ(base.program().arguments(), v1::Arguments::flags);
  EXPECT_FALSE(base.has_training()) << "no defaults of models";
}

TEST(ProgramTest, ReadsItsStoredSpec) {
  const v1::RunSpec run = ProgramRun({"a"}, v1::Arguments::flags, R"({"lr": 1})");
  v1::RunSpec read;
  ASSERT_TRUE(ReadStoredRun(run.SerializeAsString(), &read));
  EXPECT_EQ(read.SerializeAsString(), run.SerializeAsString());
}

TEST(ProgramTest, NamesItsTrainerByTheEnvironment) {
  for (const auto& [environment, trainer] : std::vector<std::pair<std::string, std::string>>{
           {"default", "program"}, {"jax", "program:jax"}, {"program", "program:program"}}) {
    EXPECT_EQ(ProgramTrainer(environment), trainer);
    EXPECT_TRUE(IsProgramTrainer(trainer));
    EXPECT_EQ(EnvironmentOf(trainer), environment);
  }
  for (const char* other : {"torch", "native", "programs", ""}) {
    EXPECT_FALSE(IsProgramTrainer(other)) << other;
  }
}

TEST(ProgramTest, AppendsSettingsInItsForm) {
  struct Case {
    v1::Arguments::Value form;
    std::vector<std::string> appended;
  };
  for (const Case& test : {
           Case{v1::Arguments::flags,
                {"--big=1000000", "--list=[1, \"a\"]", "--lr=0.001", "--model.heads=4",
                 "--model.kind=rms", "--on", "--seed=7", "--text=a b"}},
           Case{v1::Arguments::hydra,
                {"big=1000000", "list=[1, \"a\"]", "lr=0.001", "model.heads=4", "model.kind=rms",
                 "none=null", "off=false", "on=true", "seed=7", "text=a b"}},
           Case{v1::Arguments::json, {"/w/settings.json"}},
           Case{v1::Arguments::none, {}},
       }) {
    std::vector<std::string> command = {"python", "train.py"};
    command.insert(command.end(), test.appended.begin(), test.appended.end());
    EXPECT_THAT(
        CommandOf(ProgramRun({"python", "train.py"}, test.form, kManySettings), "/w/settings.json"),
        ElementsAreArray(command))
        << v1::Arguments::Value_Name(test.form);
  }
}

TEST(ProgramTest, PlacesSettingsByHand) {
  const std::vector<std::string> command = {"sh", "-c", "run {lr} ${HOME} {model.heads}-{seed}",
                                            "{unknown}", "{text}"};
  const std::string settings = R"({"lr": 0.1, "model": {"heads": 4}, "text": "{lr}; rm", "b": 1})";
  EXPECT_THAT(CommandOf(ProgramRun(command, v1::Arguments::flags, settings), ""),
              ElementsAre("sh", "-c", "run 0.1 ${HOME} 4-7", "{unknown}", "{lr}; rm", "--b=1"));
  EXPECT_THAT(CommandOf(ProgramRun(command, v1::Arguments::none, settings), ""),
              ElementsAre("sh", "-c", "run 0.1 ${HOME} 4-7", "{unknown}", "{lr}; rm"));
}

TEST(ProgramTest, NamesTheSeedAsTheFileDoes) {
  v1::RunSpec run = ProgramRun({"a"}, v1::Arguments::hydra, "{}");
  run.mutable_spec()->mutable_program()->set_seed("random_state");
  EXPECT_THAT(CommandOf(run, ""), ElementsAre("a", "random_state=7"));
  EXPECT_EQ(SettingsJson(run), R"({"random_state": 7})");
}

TEST(ProgramTest, WritesSettingsAsJson) {
  EXPECT_EQ(SettingsJson(ProgramRun({"a"}, v1::Arguments::flags, "{}")), R"({"seed": 7})");
  EXPECT_EQ(
      SettingsJson(ProgramRun({"a"}, v1::Arguments::flags, kManySettings)),
      R"({"big": 1000000, "list": [1, "a"], "lr": 0.001, "model": {"heads": 4, "kind": "rms"},)"
      R"( "none": null, "off": false, "on": true, "seed": 7, "text": "a b"})");
  EXPECT_EQ(SettingsJson(ProgramRun({"a"}, v1::Arguments::flags,
                                    R"({"t": "\"\\\n\u0001\u007fé", "e": {}, "l": []})")),
            "{\"e\": {}, \"l\": [], \"seed\": 7, \"t\": \"\\\"\\\\\\u000a\\u0001\x7fé\"}");
}

TEST(ProgramTest, HasOneTextPerValue) {
  for (const auto& [number, text] : std::vector<std::pair<double, std::string>>{
           {3, "3"}, {0.1, "0.1"}, {-2.5, "-2.5"}, {0, "0"}}) {
    google::protobuf::Value value;
    value.set_number_value(number);
    EXPECT_EQ(CanonicalJson(value), text);
  }
  google::protobuf::Value large;
  large.set_number_value(123456789012);
  double read = 0;
  EXPECT_EQ(std::sscanf(CanonicalJson(large).c_str(), "%lf", &read), 1);
  EXPECT_EQ(read, 123456789012);
}

TEST(ProgramTest, IsIdentifiedByWhatItsNumbersDependOn) {
  const v1::RunSpec run = ProgramRun({"python", "a b"}, v1::Arguments::flags, kManySettings);
  const std::string identity = ProgramIdentity(run.spec(), {"f00", "", "python 3.11"});
  EXPECT_NE(identity, ProgramIdentity(run.spec(), {"f01", "", "python 3.11"}));
  EXPECT_NE(identity, ProgramIdentity(run.spec(), {"f00", "", "python 3.12"}));
  EXPECT_NE(identity, ProgramIdentity(run.spec(), {"f00", "d00", "python 3.11"}));
  using Change = std::function<void(v1::BaseSpec*)>;
  const std::vector<Change> other = {
      [](auto* base) { base->mutable_program()->set_command(1, "b"); },
      [](auto* base) { base->mutable_program()->add_command(""); },
      [](auto* base) {
        base->mutable_program()->set_command(0, "python a");
        base->mutable_program()->set_command(1, "b");
      },
      [](auto* base) { base->mutable_program()->set_arguments(v1::Arguments::hydra); },
      [](auto* base) { base->mutable_program()->set_environment("jax"); },
      [](auto* base) { base->mutable_program()->set_threads(2); },
      [](auto* base) { base->mutable_program()->set_seed("s"); },
      [](auto* base) {
        (*base->mutable_settings()->mutable_fields())["lr"].set_number_value(0.002);
      },
      [](auto* base) {
        (*base->mutable_settings()->mutable_fields())["lr"].set_string_value("0.001");
      },
      [](auto* base) { base->mutable_settings()->mutable_fields()->erase("none"); },
  };
  for (size_t i = 0; i < other.size(); ++i) {
    v1::BaseSpec changed = run.spec();
    other[i](&changed);
    EXPECT_NE(ProgramIdentity(changed, {"f00", "", "python 3.11"}), identity) << "change " << i;
  }
  const std::vector<Change> same = {
      [](auto* base) { base->mutable_program()->set_files("datasets/other-name"); },
      [](auto* base) { base->mutable_program()->set_checkpoint(true); },
      [](auto* base) { base->mutable_program()->set_reuse(false); },
      [](auto* base) { base->mutable_program()->mutable_limits()->set_disk(2'000'000); },
      [](auto* base) { base->mutable_program()->mutable_limits()->mutable_time()->set_seconds(9); },
  };
  for (size_t i = 0; i < same.size(); ++i) {
    v1::BaseSpec changed = run.spec();
    same[i](&changed);
    EXPECT_EQ(ProgramIdentity(changed, {"f00", "", "python 3.11"}), identity) << "change " << i;
  }
}

}  // namespace
}  // namespace ablate::spec
