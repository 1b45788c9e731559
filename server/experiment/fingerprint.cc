#include "server/experiment/fingerprint.h"

#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "server/config/fields.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"

namespace ablate::spec {
namespace {

using Lines = std::map<std::string, std::string>;

using Wanted = bool (*)(absl::string_view key);

// Appends the wanted lines of a range.
void Append(Lines::const_iterator line, Lines::const_iterator end, Wanted wanted,
            std::string* text) {
  for (; line != end; ++line) {
    if (wanted(line->first)) absl::StrAppend(text, line->first, "=", line->second, "\n");
  }
}

std::string Join(const Lines& lines, absl::string_view title, Wanted wanted) {
  std::string text = absl::StrCat("ablate ", title, " 1\n");
  Append(lines.begin(), lines.end(), wanted, &text);
  return text;
}

// The same with the seed's line inserted.
std::string JoinWithSeed(const Lines& lines, uint32_t seed, absl::string_view title,
                         Wanted wanted) {
  const auto place = lines.lower_bound("seed");
  std::string text = absl::StrCat("ablate ", title, " 1\n");
  Append(lines.begin(), place, wanted, &text);
  absl::StrAppend(&text, "seed=", seed, "\n");
  Append(place, lines.end(), wanted, &text);
  return text;
}

bool Everything(absl::string_view) { return true; }

bool InGrowth(absl::string_view key) { return key != "training.steps"; }

bool InTrajectory(absl::string_view key) {
  return !absl::StartsWith(key, "evaluation.") && key != "training.checkpoints";
}

bool InModel(absl::string_view key) {
  if (key == "task" || key == "data" || key == "initial") return true;
  if (absl::StartsWith(key, "task.")) {
    return key != "task.documents.held_out" && key != "task.text.validation";
  }
  return absl::StartsWith(key, "model.") && !absl::StartsWith(key, "model.init.");
}

bool InShape(absl::string_view key) {
  return InModel(key) || absl::StartsWith(key, "task.") || absl::StartsWith(key, "evaluation.") ||
         key == "device" || key == "trainer" || key == "training.batch" ||
         key == "training.optimizer" || key == "training.accumulation" || key == "training.ema" ||
         key == "training.muon.iterations" || key == "training.muon.precision" ||
         key == "training.rule" || key == "training.precision" || key == "training.threads";
}

// Returns true if a step's computation depends on the number of steps.
bool DependsOnSteps(const v1::TrainingSpec& training) {
  const auto schedule =
      engine::FindByName<engine::ScheduleKind>(v1::Schedule::Value_Name(training.schedule()));
  return !schedule.has_value() || engine::DependsOnSteps(*schedule);
}

}  // namespace

Canonical::Canonical(const v1::BaseSpec& filled, const std::string& dataset_sha256,
                     const std::string& initial_sha256)
    : grows_(!DependsOnSteps(filled.training())) {
  lines_["numerics"] = absl::StrCat(engine::kNumericsVersion);
  lines_["trainer"] = v1::Trainer::Value_Name(filled.training().trainer());
  lines_["device"] = v1::Device::Value_Name(filled.training().device());
  lines_["task"] = TaskName(filled.task());
  if (!dataset_sha256.empty()) lines_["data"] = dataset_sha256;
  if (!initial_sha256.empty()) lines_["initial"] = initial_sha256;
  for (const FieldRule& rule : FieldRules()) {
    if (!rule.Applies(filled) || !rule.field.Has(filled)) continue;
    if (rule.path == "training.trainer") continue;  // has its own line, `trainer`
    const double value = rule.field.Get(filled);
    if (value != rule.Default(filled)) lines_[rule.path] = rule.field.Text(value);
  }
  std::vector<std::string> betas;
  for (const double beta : filled.training().betas()) {
    betas.push_back(text::ShortestDecimal(beta));
  }
  const std::string joined = absl::StrJoin(betas, ",");
  if (!joined.empty() && joined != "0.9,0.999") lines_["training.betas"] = joined;
  const std::string checkpoints = absl::StrJoin(filled.training().checkpoints(), ",");
  if (checkpoints != "-1") lines_["training.checkpoints"] = checkpoints;
  std::vector<std::string> records;
  for (const int record : filled.evaluation().record()) {
    records.push_back(v1::Record::Value_Name(static_cast<v1::Record::Value>(record)));
  }
  if (!records.empty()) lines_["evaluation.record"] = absl::StrJoin(records, ",");
}

std::string Canonical::RunText(uint32_t seed) const {
  return JoinWithSeed(lines_, seed, "run", Everything);
}

std::string Canonical::TrajectoryText(uint32_t seed) const {
  return JoinWithSeed(lines_, seed, "trajectory", InTrajectory);
}

std::string Canonical::GrowthText(uint32_t seed) const {
  return grows_ ? JoinWithSeed(lines_, seed, "growth", InGrowth) : "";
}

std::string Canonical::ShapeText() const { return Join(lines_, "shape", InShape); }

std::string Canonical::ModelText() const { return Join(lines_, "model", InModel); }

std::string ShortHash(absl::string_view text) {
  constexpr char kDigits[] = "abcdefghijklmnopqrstuvwxyz234567";
  uint64_t bits = 0;
  std::ignore = absl::SimpleHexAtoi(Sha256Hex(text).substr(0, 16), &bits);
  std::string digits;
  for (int i = 0; i < 12; ++i) digits += kDigits[bits >> (59 - 5 * i) & 31];
  return digits;
}

std::string PrivateTo(absl::string_view user, absl::string_view hash) {
  if (user.empty() || hash.empty()) return std::string(hash);
  return ShortHash(absl::StrCat("ablate private 1\nof=", hash, "\nuser=", user, "\n"));
}

}  // namespace ablate::spec
