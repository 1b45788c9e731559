#include "server/experiment/experiment_analyses.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/text.h"
#include "server/config/analysis_options.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"
#include "server/engine/samples.h"
#include "server/experiment/analysis.h"
#include "server/experiment/analysis_time.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;

constexpr int kMaxSteps = 100;
constexpr int32_t kLast = -1;

std::string PathOf(int entry) { return absl::StrCat("analyses[", entry, "]"); }

std::string OfSetting(const std::string& name) {
  return name.empty() ? "" : absl::StrCat(" (of setting ", name, ")");
}

// Returns the kind that an entry names; null if it names none.
const FieldDescriptor* KindOfEntry(const v1::AnalysisSpec& entry) {
  const auto* kinds = v1::AnalysisSpec::descriptor()->FindOneofByName("kind");
  return entry.GetReflection()->GetOneofFieldDescriptor(entry, kinds);
}

// Reads an entry other than samples. Both oneofs name their members alike.
AskedAnalysis ReadEntry(const v1::AnalysisSpec& entry, int index) {
  AskedAnalysis asked;
  asked.entry = index;
  const FieldDescriptor* kind = KindOfEntry(entry);
  const FieldDescriptor* to = v1::AnalysisKind::descriptor()->FindFieldByName(kind->name());
  asked.analysis.GetReflection()
      ->MutableMessage(&asked.analysis, to)
      ->CopyFrom(entry.GetReflection()->GetMessage(entry, kind));
  asked.inputs = entry.inputs();
  asked.seed = entry.seed();
  asked.label = entry.name().empty() ? kind->name() : entry.name();
  asked.of_runs = !TakesNoSubject(asked.analysis);
  asked.together = TakesStepsOfOneRun(asked.analysis);
  asked.all = entry.on() == v1::AnalyzedRuns::all;
  if (!asked.of_runs) return asked;
  asked.at.assign(entry.at().begin(), entry.at().end());
  if (asked.at.empty() && !asked.together) asked.at.push_back(kLast);
  return asked;
}

void CheckSamples(const v1::ExperimentSpec& spec, int index, Problems* problems) {
  const v1::AnalysisSpec& entry = spec.analyses(index);
  const std::string path = absl::StrCat(PathOf(index), ".samples");
  const v1::TaskSpec& task = spec.base().task();
  if (task.kind_case() != v1::TaskSpec::KIND_NOT_SET && DatasetOf(task).path.empty()) {
    problems->Add(path, "",
                  absl::StrCat("the tokens of ", TaskName(task), " are numbers, not text"),
                  "a documents or text task");
  }
  for (const engine::OptionProblem& problem :
       engine::CheckSampleOptions(ToSampleOptions(entry.samples()))) {
    problems->Add(reflect::Below(path, problem.field), problem.value, problem.complaint,
                  problem.allowed);
  }
  for (const FieldDescriptor* field : reflect::SetFields(entry)) {
    if (field->name() == "samples") continue;
    problems->Add(reflect::Below(PathOf(index), field->name()), "", "samples don't support it",
                  "none; samples have their own fields");
  }
}

void CheckSteps(const v1::AnalysisSpec& entry, const std::string& path, Problems* problems) {
  if (entry.at_size() > kMaxSteps) {
    problems->Add(absl::StrCat(path, ".at"), "", absl::StrCat(entry.at_size(), " entries"),
                  absl::StrCat("at most ", kMaxSteps));
    return;
  }
  std::set<int32_t> seen;
  for (int i = 0; i < entry.at_size(); ++i) {
    const std::string place = absl::StrCat(path, ".at[", i, "]");
    const int32_t step = entry.at(i);
    if (step < kLast) {
      problems->Add(place, absl::StrCat(step), absl::StrCat(step, " is out of range"),
                    "steps of checkpoints, or -1 for the last");
    } else if (!seen.insert(step).second) {
      problems->Add(place, absl::StrCat(step), "repeated", "each step once");
    }
  }
}

// Checks fields that don't apply to an analysis without a subject.
void CheckUnused(const v1::AnalysisSpec& entry, const std::string& path, Problems* problems) {
  const std::string kind = KindOfEntry(entry)->name();
  const auto unused = [&](const char* field) {
    problems->Add(absl::StrCat(path, ".", field), "",
                  absl::StrCat(kind, " isn't computed for runs"), "none");
  };
  if (entry.at_size() > 0) unused("at");
  if (entry.has_on()) unused("on");
}

void CheckEntry(const v1::AnalysisSpec& entry, int index, Problems* problems) {
  AskedAnalysis asked = ReadEntry(entry, index);
  const std::string path = PathOf(index);
  ResolveAnalysis(&asked.analysis, path, problems);
  if (!entry.inputs().dataset_sha256().empty()) {
    problems->Add(absl::StrCat(path, ".inputs.dataset_sha256"), entry.inputs().dataset_sha256(),
                  "the server sets it", "inputs.dataset");
  }
  Problems inputs;
  ResolveInputs(asked.analysis, &asked.inputs, &inputs);
  AddProblemsOf(asked, "", std::move(inputs), problems);
  if (entry.has_name()) CheckLabel(entry.name(), absl::StrCat(path, ".name"), problems);
  CheckSteps(entry, path, problems);
  if (!asked.of_runs) CheckUnused(entry, path, problems);
}

// Finds entries that read steps together and differ only in these: a label stands for options,
// inputs and seed, so both would have the same numbers.
void CheckTwins(const v1::ExperimentSpec& spec, Problems* problems) {
  std::map<std::string, std::string> labels;
  for (AskedAnalysis& asked : AskedAnalyses(spec)) {
    if (!asked.together || !ResolveAsked(&asked).has_value()) continue;
    const std::string what = absl::StrCat(asked.analysis.SerializeAsString(), "\n",
                                          asked.inputs.SerializeAsString(), "\n", asked.seed);
    const auto [twin, is_new] = labels.emplace(what, asked.label);
    if (is_new) continue;
    problems->Add(absl::StrCat(PathOf(asked.entry), ".", KindName(asked.analysis)), "",
                  absl::StrCat(twin->second, " has the same options, inputs and seed"),
                  "different ones, or a single entry");
  }
}

bool HasCheckpoint(const engine::TrainingConfig& training, int32_t step) {
  const auto& steps = training.checkpoints;
  if (step == kLast) return training.final_checkpoint || !steps.empty();
  const auto at = static_cast<uint32_t>(step);
  if (training.final_checkpoint && at == training.steps) return true;
  return std::find(steps.begin(), steps.end(), at) != steps.end();
}

std::string StepsOf(const engine::TrainingConfig& training) {
  if (training.checkpoints.empty() && training.final_checkpoint) return "-1";
  return training.checkpoints.empty()
             ? "none: training.checkpoints is empty"
             : absl::StrCat("-1, ", absl::StrJoin(training.checkpoints, ", "));
}

// Returns the steps that an entry reads together, ascending, for a run that keeps all of them.
std::vector<uint32_t> StepsTogether(const AskedAnalysis& asked,
                                    const engine::TrainingConfig& training) {
  std::vector<uint32_t> steps = training.checkpoints;
  if (training.final_checkpoint) steps.push_back(training.steps);
  std::sort(steps.begin(), steps.end());
  if (asked.at.empty()) {
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
  }
  const uint32_t last = steps.empty() ? 0 : steps.back();
  steps.clear();
  for (const int32_t at : asked.at) steps.push_back(at == kLast ? last : static_cast<uint32_t>(at));
  std::sort(steps.begin(), steps.end());
  return steps;
}

// Returns why the analysis can't be asked of a setting's model. If it can, sets its cost.
Problems ProblemsOf(const AskedAnalysis& asked, const engine::AnalysisOptions& options,
                    const AnalyzedSetting& setting, engine::AnalysisCost* cost) {
  Problems found;
  std::vector<engine::RunConfig> steps;
  absl::Span<const engine::RunConfig> subjects(setting.config, asked.of_runs ? 1 : 0);
  if (asked.together) {
    steps.assign(StepsTogether(asked, setting.config->training).size(), *setting.config);
    subjects = steps;
  }
  v1::AnalysisInputs inputs = asked.inputs;
  if (AnyBad(*setting.bad, {"task"})) {  // the text that the model would read is unknown
    inputs.clear_prompt();
    inputs.clear_dataset();
  }
  *cost = CheckSubjects(options, inputs, asked.text_bytes, subjects, "", &found);
  return found;
}

// Checks steps that are read together, each of which the run keeps.
void CheckTogether(const AskedAnalysis& asked, const engine::AnalysisKind& kind,
                   const engine::TrainingConfig& training, Problems* problems) {
  const std::vector<uint32_t> steps = StepsTogether(asked, training);
  const auto twin = std::adjacent_find(steps.begin(), steps.end());
  if (twin != steps.end()) {
    problems->Add("at", "", absl::StrCat("step ", *twin, " is also the last one (-1)"),
                  "each step once");
  } else if (steps.size() < kind.least_subjects || steps.size() > kind.most_subjects) {
    problems->Add("at", "",
                  absl::StrCat(asked.label, " reads ", steps.size(), " checkpoints of a run"),
                  absl::StrCat(kind.least_subjects, " to ", kind.most_subjects,
                               ". Set training.checkpoints"));
  }
}

void CheckCheckpoints(const AskedAnalysis& asked, const engine::AnalysisKind* kind,
                      const engine::TrainingConfig& training, Problems* problems) {
  for (size_t i = 0; i < asked.at.size(); ++i) {
    const auto here = asked.at.begin() + static_cast<std::ptrdiff_t>(i);
    const bool told = asked.at[i] < kLast || std::find(asked.at.begin(), here, asked.at[i]) != here;
    if (told || HasCheckpoint(training, asked.at[i])) continue;
    problems->Add(absl::StrCat("at[", i, "]"), absl::StrCat(asked.at[i]),
                  absl::StrCat("step ", asked.at[i], " has no checkpoint"),
                  absl::StrCat(StepsOf(training), " (training.checkpoints)"));
  }
  if (asked.together && kind != nullptr && problems->empty()) {
    CheckTogether(asked, *kind, training, problems);
  }
}

// Adds the cost of one of `settings` settings.
void AddCost(const engine::AnalysisCost& cost, const AnalysisTime& time, size_t settings,
             EntryCost* total) {
  GroupTime& group = total->times[time.group];
  group.mean += time.micros / static_cast<double>(settings);
  group.largest = std::max(group.largest, time.micros);
  total->array_bytes = std::max(total->array_bytes, cost.array_bytes);
}

template <typename Predicate>
std::vector<AnalyzedSetting> Filter(absl::Span<const AnalyzedSetting> settings, Predicate keeps) {
  std::vector<AnalyzedSetting> kept;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(kept), keeps);
  return kept;
}

bool HasGoodSteps(const AnalyzedSetting& setting) {
  return !AnyBad(*setting.bad, {"training.steps", "training.checkpoints"});
}

// Returns true if no bad path affects which parts the model has.
bool HasGoodModel(const AnalyzedSetting& setting) {
  constexpr absl::string_view kNoParts[] = {
      "model.dropout",    "model.init",      "model.residual_scale",    "model.rotary",
      "model.base_width", "model.logit_cap", "model.update_gain_start", "model.embedding_scale",
      "model.update_gain"};
  return std::none_of(setting.bad->begin(), setting.bad->end(), [&](const std::string& bad) {
    const bool of_no_part =
        std::any_of(std::begin(kNoParts), std::end(kNoParts),
                    [&bad](absl::string_view field) { return IsAtOrBelow(bad, field); });
    return !of_no_part && AnyBad({bad}, {"model"});
  });
}

// Returns false after a problem; if several settings have one, only the first is reported. `kind`
// is null if its options are unknown.
bool CheckSteps(const AskedAnalysis& asked, const engine::AnalysisKind* kind,
                absl::Span<const AnalyzedSetting> settings, Problems* problems) {
  for (const AnalyzedSetting& setting : settings) {
    Problems found;
    CheckCheckpoints(asked, kind, setting.config->training, &found);
    if (found.empty()) continue;
    AddProblemsOf(asked, setting.name, std::move(found), problems);
    return false;
  }
  return true;
}

// Reports problems as CheckSteps does. Returns the cost of one analysis; nothing after a problem.
EntryCost CheckModels(const AskedAnalysis& asked, const engine::AnalysisOptions& options,
                      absl::Span<const AnalyzedSetting> settings, Problems* problems,
                      std::vector<std::string>* notes) {
  EntryCost total;
  Problems first;
  std::string first_setting;
  size_t without = 0;
  for (const AnalyzedSetting& setting : settings) {
    engine::AnalysisCost cost;
    Problems found = ProblemsOf(asked, options, setting, &cost);
    if (found.empty()) {
      if (!setting.bad->empty()) continue;
      const uint64_t tokens =
          MostTokens(asked.inputs, asked.text_bytes, setting.config->model.context);
      AddCost(cost, GuessAnalysisTime(engine::KindOf(options), cost, tokens, *setting.config),
              settings.size(), &total);
      continue;
    }
    if (++without > 1) continue;
    first = std::move(found);
    first_setting = setting.name;
  }
  if (without == 0) return total;
  if (without == settings.size()) {
    AddProblemsOf(asked, first_setting, std::move(first), problems);
  } else {
    notes->push_back(absl::StrCat(asked.label, " is not made of ", without, " of ", settings.size(),
                                  " settings: ", first.Take().front().message,
                                  OfSetting(first_setting)));
  }
  return total;
}

EntryCost CheckAgainst(AskedAnalysis asked, absl::Span<const AnalyzedSetting> settings,
                       Problems* problems, std::vector<std::string>* notes) {
  auto options = ResolveAsked(&asked);
  if (!options.has_value()) {  // its inputs may be wrong while its options aren't
    asked.inputs.Clear();
    options = ResolveAsked(&asked);
  }
  const auto* kind = options.has_value() ? &engine::KindOf(*options) : nullptr;
  const auto with_steps = Filter(settings, HasGoodSteps);
  const bool steps = CheckSteps(asked, kind, with_steps, problems);
  if (kind == nullptr || (asked.together && !steps)) return {};
  if (asked.together) settings = with_steps;
  return CheckModels(asked, *options, Filter(settings, HasGoodModel), problems, notes);
}

}  // namespace

std::vector<AskedAnalysis> AskedAnalyses(const v1::ExperimentSpec& spec) {
  std::vector<AskedAnalysis> asked;
  for (int i = 0; i < spec.analyses_size(); ++i) {
    const v1::AnalysisSpec& entry = spec.analyses(i);
    if (KindOfEntry(entry) != nullptr && !entry.has_samples()) asked.push_back(ReadEntry(entry, i));
  }
  return asked;
}

void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems) {
  if (spec.analyses_size() > kMaxAnalyses) {
    problems->Add("analyses", "", absl::StrCat("there are ", text::Grouped(spec.analyses_size())),
                  absl::StrCat("at most ", kMaxAnalyses));
    return;
  }
  std::set<std::string> labels;
  for (int i = 0; i < spec.analyses_size(); ++i) {
    const v1::AnalysisSpec& entry = spec.analyses(i);
    const FieldDescriptor* kind = KindOfEntry(entry);
    if (kind == nullptr) {
      std::vector<std::string> names = {"samples"};
      for (const engine::AnalysisKind& known : engine::AnalysisKinds()) {
        names.emplace_back(known.name);
      }
      problems->Add(PathOf(i), "", "no kind is given", reflect::AnyOf(names));
      continue;
    }
    const std::string label = entry.name().empty() ? kind->name() : entry.name();
    if (!labels.insert(label).second) {
      const std::string path = absl::StrCat(PathOf(i), ".");
      if (entry.has_samples()) {
        problems->Add(absl::StrCat(path, "samples"), "", "repeated", "one such entry");
      } else {
        problems->Add(absl::StrCat(path, entry.name().empty() ? kind->name() : "name"),
                      entry.name(), absl::StrCat(label, " is used by another entry"),
                      "a unique name");
      }
    }
    if (entry.has_samples()) {
      CheckSamples(spec, i, problems);
    } else {
      CheckEntry(entry, i, problems);
    }
  }
  CheckTwins(spec, problems);
}

std::vector<EntryCost> CheckAnalyzed(const v1::ExperimentSpec& spec,
                                     absl::Span<const AnalyzedSetting> settings,
                                     absl::FunctionRef<uint64_t(const std::string&)> text_bytes,
                                     Problems* problems, std::vector<std::string>* notes) {
  std::vector<EntryCost> costs;
  for (AskedAnalysis& asked : AskedAnalyses(spec)) {
    if (!asked.inputs.dataset().empty()) asked.text_bytes = text_bytes(asked.inputs.dataset());
    costs.push_back(CheckAgainst(std::move(asked), settings, problems, notes));
  }
  return costs;
}

std::optional<engine::AnalysisOptions> ResolveAsked(AskedAnalysis* asked) {
  Problems problems;
  ResolveAnalysis(&asked->analysis, "", &problems);
  ResolveInputs(asked->analysis, &asked->inputs, &problems);
  auto options = ToEngineOptions(asked->analysis);
  if (!options.ok() || !problems.empty()) return std::nullopt;
  return *std::move(options);
}

void AddProblemsOf(const AskedAnalysis& asked, const std::string& setting, Problems found,
                   Problems* problems) {
  const std::string path = PathOf(asked.entry);
  for (Problem& problem : found.Take()) {
    problem.field = reflect::Below(path, problem.field);
    problem.message = absl::StrCat(path, ".", problem.message, OfSetting(setting));
    problems->Add(std::move(problem));
  }
}

std::string NameOfSetting(const v1::SettingParameters& setting) {
  std::vector<std::string> labels;
  for (const auto& [axis, label] : setting.labels()) {
    labels.push_back(absl::StrCat(axis, "=", label));
  }
  std::sort(labels.begin(), labels.end());
  return absl::StrJoin(labels, ", ");
}

bool CanBeAskedOf(const AskedAnalysis& resolved, const engine::AnalysisOptions& options,
                  const engine::RunConfig& config) {
  engine::AnalysisCost cost;
  const BadPaths bad;
  return ProblemsOf(resolved, options, {"", &config, &bad}, &cost).empty();
}

std::optional<AskedAnalysis> EntryWithNumbers(const v1::ExperimentSpec& spec,
                                              absl::string_view label) {
  for (AskedAnalysis& entry : AskedAnalyses(spec)) {
    if (entry.label == label && entry.of_runs && HasNumbers(entry.analysis))
      return std::move(entry);
  }
  return std::nullopt;
}

}  // namespace ablate::spec
