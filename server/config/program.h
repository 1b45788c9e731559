// Reads the specs of runs that aren't models: defaults, settings as text, the command of a
// program's run, the identity of a run.
#ifndef ABLATE_SERVER_CONFIG_PROGRAM_H_
#define ABLATE_SERVER_CONFIG_PROGRAM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::spec {

// Trainers of this name, or with ":ENVIRONMENT" after it, run programs.
inline constexpr char kProgramTrainer[] = "program";
// The environment of kProgramTrainer.
inline constexpr char kDefaultEnvironment[] = "default";

// Returns the trainer of a program in an environment: "program" or "program:jax".
std::string ProgramTrainer(absl::string_view environment);
// Returns true for such a trainer.
bool IsProgramTrainer(absl::string_view trainer);

// Returns its environment: "default" or "jax".
std::string EnvironmentOf(absl::string_view trainer);

// The trainer of runs that were trained elsewhere; no worker has it.
inline constexpr char kImportedTrainer[] = "imported";

// Returns true if runs of this spec train a model of ours, and are neither programs nor imported.
inline bool IsModel(const v1::BaseSpec& spec) {
  return !spec.has_program() && !spec.has_imported();
}

// Returns how many lanes of a worker a run takes: its threads; 1 for a program on a GPU.
uint32_t LanesOf(const v1::BaseSpec& spec);

// Sets every absent field of a program that has a default. Idempotent.
void FillProgram(v1::BaseSpec* base);

// Returns a setting as people write it: 0.001, true, adamw, [1, 2], null.
std::string TextOfSetting(const google::protobuf::Value& value);

// Returns the settings that aren't groups by dotted name, such as model.heads, sorted.
std::vector<std::pair<std::string, google::protobuf::Value>> FlatSettings(
    const google::protobuf::Struct& settings);

// Returns the value as JSON on one line: names sorted, numbers as shortest decimals. Equal values
// have equal texts.
std::string CanonicalJson(const google::protobuf::Value& value);

// Returns all settings of a run as one JSON object, its seed among them.
std::string SettingsJson(const v1::RunSpec& run);

// Returns the command of a run with its arguments: {NAME} replaced by settings, then the other
// settings in the program's form. `settings_file` is the path that Arguments.json appends. The
// run's spec must have passed the server's checks.
std::vector<std::string> CommandOf(const v1::RunSpec& run, const std::string& settings_file);

// Stands for the contents of what a program's spec names.
struct ProgramContents {
  std::string files_sha256;  // empty: none
  std::string data_sha256;   // empty: none
  std::string environment;   // its version
};

// Returns what an imported run was trained with, as far as its tool says. It is shared by all
// seeds.
std::string ImportedIdentity(const v1::BaseSpec& spec);

// Returns what a run's numbers depend on, as text. Without a seed it is shared by all seeds.
std::string ProgramIdentity(const v1::BaseSpec& filled, const ProgramContents& contents);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_PROGRAM_H_
