#include "server/results/analyzed.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "proto/reflect/read.h"
#include "proto/reflect/text.h"
#include "server/experiment/analysis.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"
#include "server/results/arrays.h"

namespace ablate::results {
namespace {

// Returns true if the result declares the form's array with its axes.
bool HasForm(const v1::Analysis& result, const figure::ArrayForm& form) {
  return std::any_of(
      result.arrays().begin(), result.arrays().end(), [&form](const v1::AnalysisArrayInfo& array) {
        return array.name() == form.array && absl::StrJoin(array.axes(), ",") == form.axes;
      });
}

bool Draws(const figure::Kind& kind, const std::string& analysis) {
  return std::any_of(kind.forms.begin(), kind.forms.end(),
                     [&](const figure::ArrayForm& form) { return form.analysis == analysis; });
}

// Returns "loss_landscape", or "cka, attention (with --prompt …) or patch".
std::string DrawnText(const figure::Kind& kind) {
  std::vector<std::string> names;
  for (const figure::ArrayForm& form : kind.forms) {
    std::string name(form.analysis);
    if (name == "attention") absl::StrAppend(&name, " (with ", kMapOptions, ")");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return reflect::AnyOf(names);
}

// Returns the command that computes the maps that a figure draws, for a run that it shows, if the
// analysis lacks them.
std::string MapsCommand(const ComparedGrid& compared, const std::string& label) {
  std::string cell = absl::StrCat(compared.grid.record.id, "/CELL");
  for (const std::vector<ChosenRun>& row : compared.chosen) {
    const std::vector<ChosenRun> converged = Converged(row);
    if (converged.empty()) continue;
    const std::string& name = compared.grid.cells[converged[0].cell].name;
    // Cells of parts are named with their experiment.
    cell = compared.operands.empty() ? absl::StrCat(compared.grid.record.id, "/", name) : name;
    break;
  }
  return absl::StrCat("`ablate analyze attention ", cell, " ", kMapOptions, " --label ", label,
                      "-maps`");
}

}  // namespace

std::map<std::string, std::vector<std::string>> OptionsOf(const v1::AnalysisKind& kind) {
  std::map<std::string, std::vector<std::string>> options;
  const google::protobuf::FieldDescriptor* field = spec::KindField(kind);
  if (field == nullptr) return options;
  const google::protobuf::Message& message = kind.GetReflection()->GetMessage(kind, field);
  for (const google::protobuf::FieldDescriptor* option : reflect::SetFields(message)) {
    const int elements =
        option->is_repeated() ? message.GetReflection()->FieldSize(message, option) : 1;
    for (int i = 0; i < elements; ++i) {
      options[option->name()].push_back(reflect::TextOf(reflect::Read(message, option, i)));
    }
  }
  return options;
}

std::string InputsText(const v1::AnalysisInputs& inputs) {
  if (!inputs.prompt().empty())
    return absl::StrCat("the prompt ", reflect::Quoted(inputs.prompt()));
  const std::string what = inputs.has_documents()
                               ? absl::StrCat("the first ", text::Grouped(inputs.documents()), " ")
                               : absl::StrCat("at most ", text::Grouped(inputs.tokens()), " ");
  const std::string of = inputs.has_documents() ? "sequences" : "tokens";
  return inputs.dataset().empty() ? absl::StrCat(what, "held-out ", of)
                                  : absl::StrCat(what, of, " of ", inputs.dataset());
}

namespace {

absl::Status NoSuchArray(const std::vector<const figure::ArrayForm*>& forms,
                         const std::string& label, const std::string& array) {
  std::vector<std::string> keys;
  for (const figure::ArrayForm* form : forms) keys.push_back(absl::StrCat(label, "/", form->array));
  return lookup::InvalidField("key",
                              absl::StrCat("the figure can't draw ", reflect::Quoted(array), " of ",
                                           reflect::Quoted(label)),
                              reflect::AnyOf(keys));
}

absl::Status TooManyValues(const std::string& label) {
  return absl::ResourceExhaustedError(absl::StrCat("key: the arrays of ", reflect::Quoted(label),
                                                   " have more than ", lookup::kMaxArrayValues,
                                                   " values, the limit of a figure. Compare fewer "
                                                   "settings"));
}

// Checks the coordinates of an axis with `count` values: finite and ascending.
absl::Status CheckPlaces(absl::string_view name, const std::vector<double>& places, size_t count) {
  const bool finite =
      std::all_of(places.begin(), places.end(), [](double place) { return std::isfinite(place); });
  const bool ascending =
      std::adjacent_find(places.begin(), places.end(), std::greater_equal<>()) == places.end();
  if (finite && ascending && places.size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " are not ", count, " ascending numbers"));
}

}  // namespace

absl::StatusOr<LabelledResults> LabelledResults::Load(storage::Store* store,
                                                      const std::string& experiment) {
  ASSIGN_OR_RETURN(const auto labelled, store->LabelledAnalyses(experiment));
  LabelledResults results(store);
  // They come in order of labels, runs and steps.
  for (const storage::LabelledAnalysis& one : labelled) {
    const auto [at, first] = results.labels_.try_emplace(one.label);
    if (first) {
      // All analyses of a label have the same request.
      ASSIGN_OR_RETURN(const auto record, store->GetAnalysis(one.id));
      ASSIGN_OR_RETURN(at->second.asked, analysis::ReadAnalysis(one.id, record.request));
    }
    ASSIGN_OR_RETURN(auto result, analysis::ReadAnalysis(one.id, one.result));
    at->second.runs[one.subject.run].push_back({one.id, one.subject.step, std::move(result)});
  }
  return results;
}

std::vector<const figure::ArrayForm*> LabelledResults::FormsOf(const figure::Kind& kind,
                                                               const Label& label) {
  const std::string analysis = spec::KindName(label.asked.analysis());
  std::vector<const figure::ArrayForm*> forms;
  for (const figure::ArrayForm& form : kind.forms) {
    if (form.analysis != analysis) continue;
    const bool any = std::any_of(label.runs.begin(), label.runs.end(), [&](const auto& run) {
      return std::any_of(run.second.begin(), run.second.end(),
                         [&](const One& one) { return HasForm(one.result, form); });
    });
    if (any) forms.push_back(&form);
  }
  return forms;
}

std::vector<std::string> LabelledResults::LabelsFor(const figure::Kind& kind) const {
  std::vector<std::string> labels;
  for (const auto& [name, label] : labels_) {
    if (!FormsOf(kind, label).empty()) labels.push_back(name);
  }
  return labels;
}

std::vector<std::string> LabelledResults::LabelsOf(const std::string& analysis) const {
  std::vector<std::string> labels;
  for (const auto& [name, label] : labels_) {
    if (spec::KindName(label.asked.analysis()) == analysis) labels.push_back(name);
  }
  return labels;
}

std::vector<std::string> LabelledResults::DefaultLabels(const figure::Kind& kind) const {
  const std::string name(kind.key);
  if (labels_.count(name) > 0) return {name};
  std::vector<std::string> labels = LabelsFor(kind);
  if (!labels.empty()) return labels;
  // Read reports why an analysis of the kind has nothing to draw.
  for (const auto& [label, one] : labels_) {
    if (Draws(kind, spec::KindName(one.asked.analysis()))) return {label};
  }
  return {name};
}

absl::StatusOr<const LabelledResults::Label*> LabelledResults::Find(
    const figure::Kind& kind, const std::string& label) const {
  std::vector<std::string> drawn;
  for (const auto& [name, one] : labels_) {
    if (Draws(kind, spec::KindName(one.asked.analysis()))) drawn.push_back(name);
  }
  const std::string allowed = drawn.empty() ? absl::StrCat("an analysis of kind ", DrawnText(kind),
                                                           ". Make one with `ablate analyze`")
                                            : reflect::AnyOf(drawn);
  const auto found = labels_.find(label);
  if (found == labels_.end()) {
    return lookup::InvalidField(
        "key", absl::StrCat("no run has an analysis with the label ", reflect::Quoted(label)),
        allowed);
  }
  const std::string analysis = spec::KindName(found->second.asked.analysis());
  if (!Draws(kind, analysis)) {
    return lookup::InvalidField(
        "key",
        absl::StrCat(reflect::Quoted(label), " is an analysis of kind ", analysis,
                     ", which figure kind ", kind.name, " can't draw"),
        allowed);
  }
  return &found->second;
}

absl::Status LabelledResults::ReadArrays(const One& one, const figure::ArrayForm& form,
                                         const lookup::Cancelled& cancelled,
                                         figure::AnalyzedSeed* seed) const {
  ASSIGN_OR_RETURN(const auto bytes, ReadArtifact(store_, one.id, cancelled));
  const auto file = ParseSafetensors(bytes);
  if (!file.ok()) return DamagedArrays(one.id, file.status().message());
  absl::Status read = ReadTensor(*file, form.array, form.axes, false, &seed->shape, &seed->values);
  if (read.ok() && !form.places.empty()) {
    std::vector<size_t> shape;
    read = ReadTensor(*file, form.places, "", false, &shape, &seed->places);
    if (read.ok()) read = CheckPlaces(form.places, seed->places, seed->shape.back());
  }
  const auto read_beside = [&](absl::string_view name) {
    if (!read.ok()) return;
    std::vector<size_t> shape;
    read = ReadTensor(*file, name, "", true, &shape, &seed->beside[std::string(name)]);
  };
  for (const absl::string_view name : form.beside) read_beside(name);
  for (const absl::string_view name : form.optional) {
    const TensorView* tensor = file->Find(name);
    if (tensor != nullptr && !tensor->bytes.empty()) read_beside(name);
  }
  if (!read.ok()) return DamagedArrays(one.id, read.message());
  const auto number = one.result.numbers().find(std::string(form.number));
  if (number != one.result.numbers().end() && number->second.has_value()) {
    seed->number = number->second.value();
  }
  return absl::OkStatus();
}

absl::Status LabelledResults::NoneDrawn(const ComparedGrid& compared, const Label& results,
                                        const std::string& label) {
  std::vector<std::string> cells;
  for (const storage::CellRecord& cell : compared.grid.cells) {
    if (results.runs.count(cell.run) > 0) cells.push_back(cell.name);
  }
  constexpr size_t kNamed = 4;
  const std::vector<std::string>& tuned = compared.comparison.tuned_axes;
  return absl::FailedPreconditionError(absl::StrCat(
      "key: the analysis ", text::CleanText(label),
      cells.empty() ? " doesn't exist for these runs"
                    : absl::StrCat(" exists for ", report::Enumerated(cells, kNamed), " only"),
      "; expected converged runs",
      tuned.empty() ? ""
                    : absl::StrCat(" at their setting's selected ", absl::StrJoin(tuned, " and ")),
      ". Run the analysis for these"));
}

absl::StatusOr<figure::Analyzed> LabelledResults::Read(const ComparedGrid& compared,
                                                       const figure::Kind& kind,
                                                       const std::string& key,
                                                       std::optional<uint32_t> step,
                                                       const lookup::Cancelled& cancelled) const {
  const size_t slash = key.find('/');
  const std::string label = key.substr(0, slash);
  const auto found = Find(kind, label);
  if (!found.ok()) return found.status();
  const Label& results = **found;
  const std::vector<const figure::ArrayForm*> forms = FormsOf(kind, results);
  if (forms.empty()) {
    const std::string analysis = spec::KindName(results.asked.analysis());
    return absl::FailedPreconditionError(absl::StrCat(
        "key: ", reflect::Quoted(label), " has no array that figure kind ", kind.name, " draws",
        analysis == "attention"
            ? absl::StrCat(": it has no maps. Make some with ", MapsCommand(compared, label))
        : analysis == "patch" ? ": it has no map; expected prompts of equal length, or part: head"
                              : ""));
  }
  figure::Analyzed analyzed;
  analyzed.form = forms[0];
  if (slash != std::string::npos) {
    const std::string array = key.substr(slash + 1);
    const auto of_array =
        std::find_if(forms.begin(), forms.end(),
                     [&](const figure::ArrayForm* form) { return form->array == array; });
    if (of_array == forms.end()) return NoSuchArray(forms, label, array);
    analyzed.form = *of_array;
  }
  analyzed.options = OptionsOf(results.asked.analysis());
  analyzed.inputs = InputsText(results.asked.inputs());
  analyzed.prompt = results.asked.inputs().prompt();
  const std::vector<size_t> styles = figure::StyleIndices(compared.comparison);
  std::set<uint32_t> steps;
  size_t held = 0;
  bool any = false;
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    const report::ComparisonRow& of = compared.comparison.rows[row];
    figure::AnalyzedSetting setting{of.label, styles[row], {}, 0, 0};
    for (const ChosenRun& chosen : compared.chosen[row]) {
      ++(chosen.diverged ? setting.diverged : setting.converged);
      if (chosen.diverged || (!analyzed.form->every_seed && !setting.seeds.empty())) continue;
      const auto run = results.runs.find(compared.grid.cells[chosen.cell].run);
      if (run == results.runs.end()) continue;
      const One* wanted = nullptr;
      for (const One& one : run->second) {
        steps.insert(one.step);
        if (!HasForm(one.result, *analyzed.form)) continue;
        if (!step.has_value() || one.step == *step) wanted = &one;
      }
      if (wanted == nullptr) continue;
      figure::AnalyzedSeed seed;
      seed.seed = chosen.seed;
      seed.step = wanted->step;
      RETURN_IF_ERROR(ReadArrays(*wanted, *analyzed.form, cancelled, &seed));
      held += seed.values.size();
      if (held > lookup::kMaxArrayValues) return TooManyValues(label);
      setting.seeds.push_back(std::move(seed));
      any = true;
    }
    analyzed.settings.push_back(std::move(setting));
  }
  if (any) return analyzed;
  if (!step.has_value() || steps.empty()) return NoneDrawn(compared, results, label);
  return lookup::InvalidField(
      "step", absl::StrCat("no converged run has ", reflect::Quoted(label), " at step ", *step),
      absl::StrCat("-1 for the last one, or a step with it: ", absl::StrJoin(steps, ", ")));
}

}  // namespace ablate::results
