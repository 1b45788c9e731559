#include "server/experiment/program_checks.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "proto/reflect/option.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"

namespace ablate::spec {
namespace {

using google::protobuf::Value;

constexpr char kSettings[] = "settings";
constexpr int kMaxCommand = 1000;  // texts
constexpr size_t kMaxCommandBytes = 64 << 10;
constexpr size_t kMaxSettings = 1000;
constexpr size_t kMaxNameBytes = 100;
constexpr int64_t kMaxSeconds = int64_t{30} * 24 * 3600;
constexpr char kNameGrammar[] =
    "letters, digits and _ -, beginning with a letter or _, at most 100 characters";

bool IsSettingName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (!absl::ascii_isalpha(name.front()) && name.front() != '_') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

// Returns the type of a setting in words.
std::string TypeOf(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNumberValue:
      return "a number";
    case Value::kStringValue:
      return "a text";
    case Value::kBoolValue:
      return "true or false";
    case Value::kListValue:
      return "a list";
    case Value::kStructValue:
      return "settings";
    default:
      return "any value";
  }
}

// Returns the declared setting of that dotted name; null if there is none.
const Value* FindSetting(const google::protobuf::Struct& settings, absl::string_view name) {
  const google::protobuf::Struct* fields = &settings;
  const Value* found = nullptr;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    if (fields == nullptr) return nullptr;
    const auto member = fields->fields().find(std::string(part));
    if (member == fields->fields().end()) return nullptr;
    found = &member->second;
    fields = found->has_struct_value() ? &found->struct_value() : nullptr;
  }
  return found;
}

std::vector<std::string> SettingNames(const google::protobuf::Struct& settings) {
  std::vector<std::string> names;
  for (const auto& [name, value] : FlatSettings(settings)) names.push_back(name);
  return names;
}

class ProgramChecker {
 public:
  ProgramChecker(const v1::BaseSpec& base, Problems* problems) : base_(base), problems_(problems) {}

  void Check() {
    CheckAlone();
    CheckCommand();
    CheckNames(base_.settings(), "base.settings");
    if (FlatSettings(base_.settings()).size() > kMaxSettings) {
      problems_->Add("base.settings", "", "too many settings", "at most 1,000");
    }
    CheckSeed();
    CheckEnvironment();
    CheckTime();
    CheckInterruption();
  }

 private:
  const v1::ProgramSpec& program() const { return base_.program(); }

  void CheckAlone() {
    const std::pair<const char*, bool> others[] = {{"task", base_.has_task()},
                                                   {"model", base_.has_model()},
                                                   {"training", base_.has_training()},
                                                   {"evaluation", base_.has_evaluation()},
                                                   {"model_from", base_.has_model_from()}};
    for (const auto& [name, given] : others) {
      if (!given) continue;
      problems_->Add(absl::StrCat("base.", name), "",
                     absl::StrCat(name, " has no effect with a program"),
                     "either program and settings, or a task and its model");
    }
  }

  void CheckCommand() {
    const auto& command = program().command();
    if (command.empty() || command[0].empty()) {
      problems_->Add("base.program.command", "", "missing",
                     "a command and its arguments, such as [python, train.py]");
      return;
    }
    size_t bytes = 0;
    for (const std::string& part : command) {
      bytes += part.size();
      if (!absl::StrContains(part, '\0')) continue;
      problems_->Add("base.program.command", reflect::ShortText(part), "a part has a zero byte",
                     "texts without one");
      return;
    }
    if (command.size() > kMaxCommand || bytes > kMaxCommandBytes) {
      problems_->Add("base.program.command", absl::StrCat(command.size()),
                     absl::StrCat(text::Grouped(command.size()), " texts of ", text::Grouped(bytes),
                                  " bytes together"),
                     "at most 1,000 texts of 65,536 bytes together");
    }
  }

  void CheckNames(const google::protobuf::Struct& settings, const std::string& path) {
    for (const auto& [name, value] : settings.fields()) {
      if (!IsSettingName(name)) {
        problems_->Add(path, reflect::ShortText(name),
                       absl::StrCat(reflect::Quoted(name), " can't be the name of a setting"),
                       kNameGrammar);
      } else if (value.has_struct_value()) {
        CheckNames(value.struct_value(), absl::StrCat(path, ".", name));
      }
    }
  }

  void CheckSeed() {
    const std::string seed = program().has_seed() ? program().seed() : "seed";
    if (!IsSettingName(seed)) {
      problems_->Add("base.program.seed", reflect::ShortText(seed),
                     absl::StrCat(reflect::Quoted(seed), " can't be the name of a setting"),
                     kNameGrammar);
    } else if (base_.settings().fields().count(seed) > 0) {
      problems_->Add(absl::StrCat("base.settings.", seed), "",
                     absl::StrCat(seed, " is the run's own seed, which `seeds` gives"),
                     "no such setting, or another name in program.seed");
    }
  }

  void CheckEnvironment() {
    if (!program().has_environment() || IsSettingName(program().environment())) return;
    problems_->Add("base.program.environment", reflect::ShortText(program().environment()),
                   absl::StrCat(reflect::Quoted(program().environment()),
                                " can't be the name of an environment"),
                   kNameGrammar);
  }

  void CheckTime() {
    if (!program().limits().has_time()) return;
    const auto& time = program().limits().time();
    if (time.seconds() >= 1 && time.seconds() <= kMaxSeconds && time.nanos() >= 0) return;
    const std::string text = absl::StrCat(time.seconds(), "s");
    problems_->Add(
        "base.program.limits.time", text, absl::StrCat(text, " is out of range"),
        reflect::RangeText(reflect::OptionOf(v1::ProgramLimits::descriptor()->FindFieldByNumber(
            v1::ProgramLimits::kTimeFieldNumber))));
  }

  void CheckInterruption() {
    if (!program().has_interrupt_at() || program().checkpoint()) return;
    problems_->Add("base.program.checkpoint", "false",
                   "a program that stores no checkpoints can't continue after an interruption",
                   "true");
  }

  const v1::BaseSpec& base_;
  Problems* problems_;
};

// Returns the problem of a write to a program as a whole, or to one that the base doesn't have.
std::optional<Problem> CheckProgramWrite(const v1::BaseSpec& base, const Write& write) {
  const bool whole = write.path == "program";
  if (!whole && !absl::StartsWith(write.path, "program.")) return std::nullopt;
  if (!base.has_program()) {
    return reflect::MakeProblem(write.source, reflect::ShortText(write.path), "base has no program",
                                "base.program in the experiment file, or a field of a model");
  }
  if (!whole) return std::nullopt;
  return reflect::MakeProblem(write.source, reflect::ShortText(write.value),
                              "program can't be replaced as a whole",
                              "a path of one field, such as program.environment");
}

}  // namespace

std::optional<Problem> CheckSetting(const v1::BaseSpec& base, const Write& write) {
  if (std::optional<Problem> wrong = CheckProgramWrite(base, write)) return wrong;
  absl::string_view name = write.path;
  if (name == kSettings) {
    return reflect::MakeProblem(write.source, reflect::ShortText(write.value),
                                "settings can't be replaced as a whole",
                                "a path of one setting, such as settings.lr");
  }
  if (!absl::ConsumePrefix(&name, "settings.")) {
    const bool is_setting = base.has_program() && FindSetting(base.settings(), name) != nullptr;
    if (!is_setting || NamesField(write.path)) return std::nullopt;
    return reflect::MakeProblem(
        write.source, reflect::ShortText(name),
        absl::StrCat("unknown field ", reflect::Quoted(name), ", but a setting"),
        absl::StrCat("settings.", name));
  }
  const Value* declared = FindSetting(base.settings(), name);
  if (declared == nullptr) {
    const std::vector<std::string> names = SettingNames(base.settings());
    return reflect::MakeProblem(
        write.source, reflect::ShortText(name),
        absl::StrCat("base.settings has no ", reflect::Quoted(name),
                     reflect::DidYouMean(name, names)),
        names.empty() ? "a setting that base.settings declares" : reflect::AnyOf(names));
  }
  const bool same = declared->has_null_value() || declared->kind_case() == write.value.kind_case();
  if (same && !declared->has_struct_value()) return std::nullopt;
  return reflect::MakeProblem(
      write.source, reflect::ShortText(write.value),
      absl::StrCat(reflect::Quoted(write.value), " isn't ", TypeOf(*declared), ", as ", name,
                   " is in base.settings"),
      declared->has_struct_value() ? absl::StrCat("a path of one setting below ", name)
                                   : TypeOf(*declared));
}

void CheckProgram(const v1::BaseSpec& base, Problems* problems) {
  if (base.has_program()) return ProgramChecker(base, problems).Check();
  if (!base.has_settings()) return;
  problems->Add("base.settings", "", "settings are those of a program, and there is none",
                "base.program, or model and training in place of settings");
}

bool IsProgramMetric(absl::string_view key) {
  return !key.empty() && key.size() <= kMaxNameBytes && text::IsUtf8(key) &&
         !text::HasControlCharacter(key) && !absl::ascii_isspace(key.front()) &&
         !absl::ascii_isspace(key.back());
}

}  // namespace ablate::spec
