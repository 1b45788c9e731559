#include "server/config/program.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/option.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Value;
using Settings = std::vector<std::pair<std::string, Value>>;

void FillDeclared(Message* message) {
  const google::protobuf::Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated() || reflect::OptionOf(field).default_().empty()) continue;
    if (message->GetReflection()->HasField(*message, field)) continue;
    std::vector<reflect::FieldProblem> none;  // a declared default is valid
    reflect::SetPath(field->name(), reflect::DefaultOf(field), field->name(), message, &none);
  }
}

std::string QuotedJson(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", c);
    } else {
      absl::StrAppend(&json, c == '"' || c == '\\' ? "\\" : "", std::string(1, c));
    }
  }
  return absl::StrCat(json, "\"");
}

std::string ObjectJson(const google::protobuf::Struct& object) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, member] : object.fields()) sorted.emplace(name, CanonicalJson(member));
  const auto write = [](std::string* json, const auto& member) {
    absl::StrAppend(json, QuotedJson(member.first), ": ", member.second);
  };
  return absl::StrCat("{", absl::StrJoin(sorted, ", ", write), "}");
}

std::string ListJson(const google::protobuf::ListValue& list) {
  const auto write = [](std::string* json, const Value& element) {
    absl::StrAppend(json, CanonicalJson(element));
  };
  return absl::StrCat("[", absl::StrJoin(list.values(), ", ", write), "]");
}

void Flatten(const google::protobuf::Struct& fields, const std::string& above, Settings* settings) {
  std::map<std::string, const Value*> sorted;
  for (const auto& [name, member] : fields.fields()) sorted.emplace(name, &member);
  for (const auto& [name, member] : sorted) {
    const std::string path = above.empty() ? name : absl::StrCat(above, ".", name);
    if (member->has_struct_value()) {
      Flatten(member->struct_value(), path, settings);
    } else {
      settings->emplace_back(path, *member);
    }
  }
}

// Returns the settings with the seed among them.
google::protobuf::Struct WithSeed(const v1::RunSpec& run) {
  google::protobuf::Struct settings = run.spec().settings();
  (*settings.mutable_fields())[run.spec().program().seed()].set_number_value(run.seed());
  return settings;
}

// Appends a setting to a command.
void AppendArgument(v1::Arguments::Value form, const std::string& name, const Value& value,
                    std::vector<std::string>* command) {
  if (form == v1::Arguments::hydra) {
    command->push_back(absl::StrCat(name, "=", TextOfSetting(value)));
  } else if (value.has_bool_value()) {
    if (value.bool_value()) command->push_back(absl::StrCat("--", name));
  } else if (!value.has_null_value()) {
    command->push_back(absl::StrCat("--", name, "=", TextOfSetting(value)));
  }
}

}  // namespace

std::string ProgramTrainer(absl::string_view environment) {
  return environment == kDefaultEnvironment ? kProgramTrainer
                                            : absl::StrCat(kProgramTrainer, ":", environment);
}

bool IsProgramTrainer(absl::string_view trainer) {
  return trainer == kProgramTrainer || absl::StartsWith(trainer, "program:");
}

std::string EnvironmentOf(absl::string_view trainer) {
  return trainer == kProgramTrainer ? kDefaultEnvironment
                                    : std::string(absl::StripPrefix(trainer, "program:"));
}

uint32_t LanesOf(const v1::BaseSpec& spec) {
  if (!spec.has_program()) return std::max(spec.training().threads(), 1u);
  const bool on_gpu = spec.program().device() == v1::ProgramDevice::cuda;
  return on_gpu ? 1 : std::max(spec.program().threads(), 1u);
}

void FillProgram(v1::BaseSpec* base) {
  FillDeclared(base->mutable_program());
  FillDeclared(base->mutable_program()->mutable_limits());
}

std::string TextOfSetting(const Value& value) {
  return value.has_string_value() ? value.string_value() : CanonicalJson(value);
}

Settings FlatSettings(const google::protobuf::Struct& settings) {
  Settings flat;
  Flatten(settings, "", &flat);
  return flat;
}

std::string CanonicalJson(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNumberValue:
      return text::ShortestDecimal(value.number_value());
    case Value::kStringValue:
      return QuotedJson(value.string_value());
    case Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case Value::kStructValue:
      return ObjectJson(value.struct_value());
    case Value::kListValue:
      return ListJson(value.list_value());
    default:
      return "null";
  }
}

std::string SettingsJson(const v1::RunSpec& run) { return ObjectJson(WithSeed(run)); }

std::vector<std::string> CommandOf(const v1::RunSpec& run, const std::string& settings_file) {
  const v1::ProgramSpec& program = run.spec().program();
  const Settings settings = FlatSettings(WithSeed(run));
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : settings) {
    replacements.emplace_back(absl::StrCat("{", name, "}"), TextOfSetting(value));
  }
  std::vector<std::string> command;
  for (const std::string& part : program.command()) {
    command.push_back(absl::StrReplaceAll(part, replacements));
  }
  if (program.arguments() == v1::Arguments::json) command.push_back(settings_file);
  if (program.arguments() != v1::Arguments::flags && program.arguments() != v1::Arguments::hydra) {
    return command;
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    const auto& [name, value] = settings[i];
    const std::string& placeholder = replacements[i].first;
    const bool placed = std::any_of(
        program.command().begin(), program.command().end(),
        [&placeholder](const std::string& part) { return absl::StrContains(part, placeholder); });
    if (!placed) AppendArgument(program.arguments(), name, value, &command);
  }
  return command;
}

std::string ImportedIdentity(const v1::BaseSpec& spec) {
  Value settings;
  *settings.mutable_struct_value() = spec.settings();
  return absl::StrCat("source=", spec.imported().source(), "\nsettings=", CanonicalJson(settings),
                      "\n");
}

std::string ProgramIdentity(const v1::BaseSpec& filled, const ProgramContents& contents) {
  const v1::ProgramSpec& program = filled.program();
  Value command, settings;
  for (const std::string& part : program.command()) {
    command.mutable_list_value()->add_values()->set_string_value(part);
  }
  *settings.mutable_struct_value() = filled.settings();
  std::string identity =
      absl::StrCat("command=", CanonicalJson(command),
                   "\narguments=", v1::Arguments::Value_Name(program.arguments()),
                   "\nfiles=", contents.files_sha256, "\nenvironment=", program.environment(), " ",
                   contents.environment, "\nthreads=", program.threads(),
                   "\nseed_name=", program.seed(), "\nsettings=", CanonicalJson(settings), "\n");
  if (program.device() == v1::ProgramDevice::cuda) absl::StrAppend(&identity, "device=cuda\n");
  if (program.has_interrupt_at()) {
    absl::StrAppend(&identity, "interrupt_at=", program.interrupt_at(), "\n");
  }
  if (!contents.data_sha256.empty()) {
    absl::StrAppend(&identity, "data=", contents.data_sha256, "\n");
  }
  return identity;
}

}  // namespace ablate::spec
