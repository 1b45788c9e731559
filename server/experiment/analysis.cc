#include "server/experiment/analysis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/option.h"
#include "proto/reflect/read.h"
#include "proto/reflect/text.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "server/experiment/analysis_numbers.h"
#include "server/experiment/checks.h"
#include "server/experiment/fingerprint.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr uint64_t kMaxTokens = engine::kMaxReadTokens;
constexpr uint64_t kMaxDocuments = 1'000'000;
constexpr size_t kMaxPrompt = 512;  // characters
constexpr size_t kMaxSiteBytes = 200;
constexpr uint64_t kMaxArrayBytes = 200'000'000;
constexpr size_t kMaxLabelBytes = 40;
// First parts of the keys of recorded metrics.
constexpr absl::string_view kOfTraining[] = {"train",
                                             "eval",
                                             engine::kGradientMetrics.family,
                                             engine::kParameterGradientMetrics.family,
                                             engine::kAlignmentMetrics.family,
                                             engine::kAlignmentRatioMetrics.family};
// Increased whenever the same request would give other numbers.
constexpr int kAnalysisVersion = 1;

// Checks the options of one kind.
class OptionChecker {
 public:
  OptionChecker(Message* options, const std::string& path, Problems* problems)
      : options_(options), path_(path), problems_(problems) {}

  void Check() {
    CheckBounds(*options_, path_, problems_);
    for (int i = 0; i < options_->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = options_->GetDescriptor()->field(i);
      if (field->is_repeated()) {
        CheckList(field);
      } else if (!options_->GetReflection()->HasField(*options_, field)) {
        SetDefault(field);
      } else {
        CheckValue(field, reflect::Read(*options_, field), reflect::Below(path_, field->name()));
      }
    }
  }

 private:
  void SetDefault(const FieldDescriptor* field) {
    if (reflect::OptionOf(field).default_().empty()) return;
    std::vector<Problem> wrong;
    reflect::SetPath(field->name(), reflect::DefaultOf(field), path_, options_, &wrong);
    problems_->Add(std::move(wrong));
  }

  // Other texts, such as prompts, may be equal and long.
  static bool NamesSites(const FieldDescriptor* field) {
    return field->name() == "site" || field->name() == "sites";
  }

  void CheckList(const FieldDescriptor* field) {
    const int size = options_->GetReflection()->FieldSize(*options_, field);
    if (static_cast<uint32_t>(size) > reflect::OptionOf(field).most()) return;  // reported already
    const std::string path = reflect::Below(path_, field->name());
    const bool distinct = field->cpp_type() != FieldDescriptor::CPPTYPE_STRING || NamesSites(field);
    std::set<std::string> seen;
    for (int i = 0; i < size; ++i) {
      const reflect::FieldValue value = reflect::Read(*options_, field, i);
      const std::string place = absl::StrCat(path, "[", i, "]");
      CheckValue(field, value, place);
      if (distinct && !seen.insert(reflect::TextOf(value)).second) {
        problems_->Add(place, reflect::TextOf(value), "repeated", "each once");
      }
    }
  }

  void CheckValue(const FieldDescriptor* field, const reflect::FieldValue& value,
                  const std::string& path) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      CheckLength(field, *text, path);
      return;
    }
    if (const auto* number = std::get_if<reflect::EnumNumber>(&value)) {
      CheckEnum(*number, path, problems_);
    }
  }

  void CheckLength(const FieldDescriptor* field, const std::string& text, const std::string& path) {
    const bool site = NamesSites(field);
    const size_t length = site ? text.size() : text::CountCharacters(text);
    const size_t most = site ? kMaxSiteBytes : kMaxPrompt;
    if (length <= most) return;
    problems_->Add(path, "", absl::StrCat("it has ", length, site ? " bytes" : " characters"),
                   absl::StrCat("at most ", most));
  }

  Message* const options_;
  const std::string path_;
  Problems* const problems_;
};

// Sets defaults that depend on other options.
void ResolveLandscape(v1::LossLandscapeOptions* landscape) {
  if (!landscape->has_radius()) {
    landscape->set_radius(landscape->direction() == v1::Direction::unit ? 0.5 : 1);
  }
  if (!landscape->has_points()) landscape->set_points(landscape->dims() == 2 ? 21 : 51);
}

const engine::AnalysisKind& KindNamed(const std::string& name) {
  const auto kinds = engine::AnalysisKinds();
  return *std::find_if(kinds.begin(), kinds.end(),
                       [&](const engine::AnalysisKind& kind) { return kind.name == name; });
}

// Returns the problem of a subject's inputs, if any. A prompt's tokens are its characters, after
// one that opens a document.
std::optional<engine::OptionProblem> CheckText(const v1::AnalysisInputs& inputs, size_t characters,
                                               const engine::RunConfig& subject) {
  if (characters == 0 && inputs.dataset().empty()) return std::nullopt;
  const bool opens = std::holds_alternative<engine::DocumentsTask>(subject.task);
  if (!opens && !std::holds_alternative<engine::TextTask>(subject.task)) {
    return engine::OptionProblem{
        characters > 0 ? "inputs.prompt" : "inputs.dataset", "",
        absl::StrCat("the tokens of ", engine::KindOf(subject.task).name, " are numbers, not text"),
        "a documents or text task"};
  }
  // Only the tokenizer knows the length.
  if (engine::HasStoredTokens(subject.task)) return std::nullopt;
  const auto most = static_cast<size_t>(subject.model.context) - (opens ? 1 : 0);
  if (characters <= most) return std::nullopt;
  return engine::OptionProblem{
      "inputs.prompt", "", absl::StrCat(characters, " characters"),
      absl::StrCat("at most ", most,
                   opens ? ", one less than the model's context" : ", the model's context")};
}

// Collects problems of subjects, each sentence once, with the subjects that have it.
class SubjectProblems {
 public:
  void Add(size_t subject, engine::OptionProblem problem) {
    const auto [place, is_new] = index_.emplace(
        absl::StrCat(problem.field, "\n", problem.complaint, "\n", problem.allowed), found_.size());
    if (is_new) found_.push_back({std::move(problem), {}});
    found_[place->second].subjects.push_back(absl::StrCat("subjects[", subject, "]"));
  }

  // Adds them; `subjects` is the number of all subjects.
  void AddTo(size_t subjects, Problems* problems) const {
    for (const auto& [problem, of] : found_) {
      const std::string which =
          of.size() == subjects ? "" : absl::StrCat(" (", absl::StrJoin(of, ", "), ")");
      problems->Add(problem.field, problem.value, absl::StrCat(problem.complaint, which),
                    problem.allowed);
    }
  }

 private:
  struct Found {
    engine::OptionProblem problem;
    std::vector<std::string> subjects;
  };

  std::map<std::string, size_t> index_;
  std::vector<Found> found_;
};

void AddNeedsTagged(const engine::AnalysisKind& kind, const std::string& dataset,
                    Problems* problems) {
  problems->Add("inputs.dataset", reflect::ShortText(dataset),
                absl::StrCat(kind.name, " needs tagged sentences"),
                "a data set in CoNLL-U, whose words have labels");
}

void CheckTooMuch(const std::string& path, const char* what, uint64_t bytes, uint64_t most,
                  Problems* problems) {
  if (bytes <= most) return;
  problems->Add(
      path, "", absl::StrCat("its ", what, " would take ", text::Grouped(bytes), " bytes"),
      absl::StrCat("at most ", text::Grouped(most), ". Read fewer tokens, or reduce the analysis"));
}

std::string SignatureText(const v1::Analysis& asked) {
  const FieldDescriptor* kind = KindField(asked.analysis());
  std::string text = absl::StrCat("ablate analysis ", kAnalysisVersion, "\nkind=", kind->name(),
                                  "\nnumerics=", engine::kNumericsVersion, "\nseed=", asked.seed(),
                                  "\ntokens=", asked.inputs().tokens(),
                                  "\nprompt=", absl::CHexEscape(asked.inputs().prompt()), "\n");
  if (const int revision = KindNamed(kind->name()).revision; revision > 0) {
    absl::StrAppend(&text, "revision=", revision, "\n");
  }
  // Only if given, so that earlier analyses keep their fingerprints.
  if (asked.inputs().has_documents()) {
    absl::StrAppend(&text, "inputs.documents=", asked.inputs().documents(), "\n");
  }
  if (!asked.inputs().dataset_sha256().empty()) {
    absl::StrAppend(&text, "inputs.dataset=", asked.inputs().dataset_sha256(), "\n");
  }
  const Message& options = asked.analysis().GetReflection()->GetMessage(asked.analysis(), kind);
  for (const FieldDescriptor* field : reflect::SetFields(options)) {
    const int size = field->is_repeated() ? options.GetReflection()->FieldSize(options, field) : 1;
    for (int i = 0; i < size; ++i) {
      const std::string value = reflect::TextOf(reflect::Read(options, field, i));
      absl::StrAppend(&text, field->name(), "=", absl::CHexEscape(value), "\n");
    }
  }
  return text;
}

}  // namespace

bool ResolveAnalysis(v1::AnalysisKind* analysis, const std::string& path, Problems* problems) {
  const FieldDescriptor* kind = KindField(*analysis);
  if (kind == nullptr) {
    std::vector<std::string> names;
    for (const engine::AnalysisKind& known : engine::AnalysisKinds()) {
      names.emplace_back(known.name);
    }
    problems->Add(path, "", "no kind is given", reflect::AnyOf(names));
    return false;
  }
  Message* options = analysis->GetReflection()->MutableMessage(analysis, kind);
  OptionChecker(options, reflect::Below(path, kind->name()), problems).Check();
  if (analysis->has_loss_landscape()) ResolveLandscape(analysis->mutable_loss_landscape());
  return true;
}

void ResolveInputs(const v1::AnalysisKind& analysis, v1::AnalysisInputs* inputs,
                   Problems* problems) {
  const engine::AnalysisKind& kind = KindNamed(KindName(analysis));
  inputs->clear_dataset_sha256();
  const bool prompt = !inputs->prompt().empty(), dataset = !inputs->dataset().empty();
  const bool amount = inputs->has_tokens() || inputs->has_documents();
  if (kind.default_tokens == 0) {
    if (!prompt && !amount && !dataset) return;
    problems->Add(prompt                    ? "inputs.prompt"
                  : inputs->has_tokens()    ? "inputs.tokens"
                  : inputs->has_documents() ? "inputs.documents"
                                            : "inputs.dataset",
                  "", absl::StrCat(kind.name, " takes no inputs"), "none");
    return;
  }
  if (const size_t characters = text::CountCharacters(inputs->prompt()); characters > kMaxPrompt) {
    problems->Add("inputs.prompt", "", absl::StrCat(characters, " characters"),
                  absl::StrCat("at most ", kMaxPrompt));
  }
  const char* const with_prompt = "given together with a prompt";
  if (prompt && inputs->has_tokens()) {
    problems->Add("inputs.tokens", absl::StrCat(inputs->tokens()), with_prompt, "one of the two");
  }
  if (prompt && inputs->has_documents()) {
    problems->Add("inputs.documents", absl::StrCat(inputs->documents()), with_prompt,
                  "one of the two");
  } else if (inputs->has_tokens() && inputs->has_documents()) {
    problems->Add("inputs.documents", absl::StrCat(inputs->documents()),
                  "given together with tokens", "one of the two");
  }
  if (prompt && dataset) {
    problems->Add("inputs.dataset", reflect::ShortText(inputs->dataset()), with_prompt,
                  "one of the two");
  }
  if (kind.needs_tagged && !dataset) AddNeedsTagged(kind, "", problems);
  if (prompt) return;
  if (!amount) inputs->set_tokens(kind.default_tokens);
  const auto check = [&](const char* field, uint64_t value, uint64_t most) {
    if (value >= 1 && value <= most) return;
    problems->Add(field, absl::StrCat(value), absl::StrCat(value, " is out of range"),
                  absl::StrCat("1 to ", text::Grouped(most)));
  };
  if (inputs->has_tokens()) check("inputs.tokens", inputs->tokens(), kMaxTokens);
  if (inputs->has_documents()) check("inputs.documents", inputs->documents(), kMaxDocuments);
}

void CheckDatasetKind(const v1::AnalysisKind& analysis, const std::string& dataset,
                      DatasetKind kind, Problems* problems) {
  const engine::AnalysisKind& of = KindNamed(KindName(analysis));
  if (of.needs_tagged && kind != DatasetKind::kTagged) AddNeedsTagged(of, dataset, problems);
}

absl::Span<const absl::string_view> RecordedFamilies() { return kOfTraining; }

void CheckLabel(const std::string& label, const std::string& path, Problems* problems) {
  const auto fits = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("._+-", c); };
  if (label.size() > kMaxLabelBytes || !std::all_of(label.begin(), label.end(), fits)) {
    problems->Add(path, reflect::ShortText(label),
                  absl::StrCat(reflect::Quoted(label), " isn't a label"),
                  "letters, digits and . _ + -, at most 40 characters");
  } else if (std::find(std::begin(kOfTraining), std::end(kOfTraining), label) !=
             std::end(kOfTraining)) {
    problems->Add(
        path, label,
        absl::StrCat(reflect::Quoted(label), " is a name of metrics that training records"),
        absl::StrCat("a name other than ", absl::StrJoin(kOfTraining, ", ")));
  }
}

uint64_t MostTokens(const v1::AnalysisInputs& inputs, uint64_t text_bytes, int context) {
  if (!inputs.prompt().empty()) return text::CountCharacters(inputs.prompt());
  if (!inputs.has_documents()) return inputs.tokens();
  uint64_t most = inputs.documents() * static_cast<uint64_t>(context);
  // A token has a byte or more, except one at an end of each sequence.
  if (text_bytes > 0) most = std::min(most, text_bytes + inputs.documents());
  return std::min(most, engine::kMaxReadTokens);
}

engine::AnalysisCost CheckSubjects(const engine::AnalysisOptions& options,
                                   const v1::AnalysisInputs& inputs, uint64_t text_bytes,
                                   absl::Span<const engine::RunConfig> subjects,
                                   const std::string& path, Problems* problems) {
  const engine::AnalysisKind& kind = engine::KindOf(options);
  const std::string kind_path = reflect::Below(path, kind.name);
  if (subjects.size() < kind.least_subjects || subjects.size() > kind.most_subjects) {
    const std::string allowed = kind.most_subjects == 0 ? "none"
                                : kind.most_subjects == kind.least_subjects
                                    ? absl::StrCat(kind.most_subjects)
                                    : absl::StrCat(kind.least_subjects, " to ", kind.most_subjects);
    problems->Add("subjects", "", absl::StrCat(subjects.size(), " given"),
                  absl::StrCat(allowed, " for ", kind.name));
    return {};
  }
  const size_t characters = text::CountCharacters(inputs.prompt());
  const auto option = [&](engine::OptionProblem problem) {
    problem.field = problem.field.empty() ? kind_path : reflect::Below(kind_path, problem.field);
    return problem;
  };
  SubjectProblems found;
  std::vector<const engine::ModelConfig*> models;
  for (size_t i = 0; i < subjects.size(); ++i) {
    models.push_back(&subjects[i].model);
    auto text = CheckText(inputs, characters, subjects[i]);
    if (text.has_value()) found.Add(i, *std::move(text));
    for (const auto& problem : kind.check(options, *models[i])) found.Add(i, option(problem));
  }
  found.AddTo(subjects.size(), problems);
  if (!problems->empty()) return {};
  if (kind.check_all != nullptr) {
    for (const auto& problem : kind.check_all(options, models)) {
      const engine::OptionProblem full = option(problem);
      problems->Add(full.field, full.value, full.complaint, full.allowed);
    }
    if (!problems->empty()) return {};
  }
  const engine::RunConfig none;
  const uint64_t tokens =
      MostTokens(inputs, text_bytes, subjects.empty() ? 0 : subjects.front().model.context);
  const engine::AnalysisCost cost =
      kind.cost(options, subjects.empty() ? none : subjects.front(), tokens, subjects.size());
  CheckTooMuch(kind_path, "state", cost.state_bytes, kMaxStateBytes, problems);
  CheckTooMuch(kind_path, "arrays", cost.array_bytes, kMaxArrayBytes, problems);
  return cost;
}

std::string KindName(const v1::AnalysisKind& analysis) {
  const FieldDescriptor* kind = KindField(analysis);
  return kind == nullptr ? "" : kind->name();
}

bool HasNumbers(const v1::AnalysisKind& analysis) { return !NumberForms(analysis).empty(); }

bool TakesNoSubject(const v1::AnalysisKind& analysis) {
  return KindNamed(KindName(analysis)).most_subjects == 0;
}

bool TakesStepsOfOneRun(const v1::AnalysisKind& analysis) {
  return KindNamed(KindName(analysis)).steps_of_one_run;
}

std::string AnalysisFingerprint(const v1::Analysis& asked) {
  std::string text = SignatureText(asked);
  for (const v1::AnalysisSubject& subject : asked.subjects()) {
    absl::StrAppend(&text, "subject=", subject.run(), "@", subject.step(), "\n");
  }
  return ShortHash(text);
}

std::string AnalysisSignature(const v1::Analysis& asked) { return ShortHash(SignatureText(asked)); }

}  // namespace ablate::spec
