#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/reflect/option.h"
#include "proto/reflect/read.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"
#include "server/experiment/analysis_numbers.h"
#include "server/experiment/axes.h"
#include "server/experiment/checks.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/metrics.h"
#include "server/experiment/program_checks.h"

namespace ablate::spec {
namespace {

constexpr size_t kMaxQuestionBytes = 2000;

// `free`: the runs are programs, which may log any metric.
void CheckMetric(const std::string& field, const std::string& key, bool free, Problems* problems) {
  if (FindMetric(key).has_value() || (free && IsProgramMetric(key))) return;
  const std::string complaint = key.empty()
                                    ? "missing"
                                    : absl::StrCat(reflect::Quoted(key), " isn't a metric",
                                                   reflect::DidYouMean(key, Metrics(), " (", ")"));
  problems->Add(
      field, reflect::ShortText(key), complaint,
      free ? "a name that the program logs: 1 to 100 printable characters" : MetricNames());
}

void CheckQuestion(const std::string& question, Problems* problems) {
  if (question.size() > kMaxQuestionBytes) {
    problems->Add("question", reflect::ShortText(question),
                  absl::StrCat("the text has ", text::Grouped(question.size()), " bytes"),
                  "at most 2,000 bytes");
  } else if (text::HasControlCharacter(question, "\n\t")) {
    problems->Add("question", reflect::ShortText(question),
                  absl::StrCat(reflect::Quoted(question), " has control characters"),
                  "text without any except line breaks and tabs");
  }
}

// Returns the analysis with the number `key`, LABEL/NUMBER.
std::optional<AskedAnalysis> AnalysisOf(const v1::ExperimentSpec& spec, const std::string& key) {
  return EntryWithNumbers(spec, key.substr(0, key.find('/')));
}

void CheckWindow(const v1::ExperimentSpec& spec, const v1::Window& window, const std::string& path,
                 Problems* problems) {
  const std::string key = absl::StrCat(path, ".key");
  if (AnalysisOf(spec, window.key()).has_value()) {
    problems->Add(key, reflect::ShortText(window.key()),
                  absl::StrCat(reflect::Quoted(window.key()),
                               " is a number of an analysis, which has no series to summarize"),
                  MetricNames());
  } else {
    CheckMetric(key, window.key(), !IsModel(spec.base()), problems);
  }
  if (window.has_first() && window.has_last()) {
    problems->Add(path, "", "first and last exclude each other", "first, last or neither");
  }
}

// Checks that the metric is recorded by training, or is a number of an analysis that the spec asks
// for.
void CheckPrimary(const v1::ExperimentSpec& spec, Problems* problems) {
  const std::string& primary = spec.report().primary();
  const auto entry = AnalysisOf(spec, primary);
  if (!entry.has_value()) {
    return CheckMetric("report.primary", primary, !IsModel(spec.base()), problems);
  }
  const size_t slash = std::min(primary.find('/'), primary.size());
  const std::string number = primary.substr(std::min(slash + 1, primary.size()));
  const auto complaint = NumberComplaint(entry->analysis, entry->label, number);
  if (complaint.has_value()) {
    problems->Add("report.primary", primary, complaint->first, complaint->second);
  }
}

void CheckReport(const v1::ExperimentSpec& spec, Problems* problems) {
  const v1::ReportSpec& report = spec.report();
  if (report.has_primary()) CheckPrimary(spec, problems);
  for (int i = 0; i < report.summaries_size() && !problems->full(); ++i) {
    CheckWindow(spec, report.summaries(i), absl::StrCat("report.summaries[", i, "]"), problems);
  }
}

void CheckLimits(const v1::Limits& limits, Problems* problems) {
  const auto& time = limits.device_time();
  const bool valid = time.seconds() >= 0 && time.seconds() <= 315'576'000'000 &&
                     time.nanos() >= 0 && time.nanos() < 1'000'000'000;
  if (!valid) {
    const std::string text = absl::StrCat(time.seconds(), "s");
    const std::string nanos =
        time.nanos() == 0 ? "" : absl::StrCat(" with ", time.nanos(), " nanoseconds");
    problems->Add("limits.device_time", text, absl::StrCat(text, nanos, " is out of range"),
                  "0s to 315576000000s");
  }
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Bound on the entries of a list of messages or a map in a spec.
constexpr int kMaxWalked = 1000;

class Walker {
 public:
  explicit Walker(Problems* problems) : problems_(problems) {}

  void Walk(const Message& message, const std::string& path) {
    const auto& unknown = message.GetReflection()->GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count() && !problems_->full(); ++i) {
      problems_->Add(path, absl::StrCat(unknown.field(i).number()),
                     absl::StrCat("field number ", unknown.field(i).number(), " is unknown"),
                     "the fields of this server's version");
    }
    for (const FieldDescriptor* field : reflect::SetFields(message)) {
      Visit(message, field, reflect::Below(path, field->name()));
    }
  }

 private:
  void Visit(const Message& message, const FieldDescriptor* field, const std::string& path) {
    if (!field->is_repeated()) return Check(reflect::Read(message, field), path);
    const int size = message.GetReflection()->FieldSize(message, field);
    if (size > kMaxWalked) return;  // the reader of the list reports that there are so many
    for (int i = 0; i < size && !problems_->full(); ++i) {
      Check(reflect::Read(message, field, i),
            field->is_map() ? path : absl::StrCat(path, "[", i, "]"));
    }
  }

  void Check(const reflect::FieldValue& value, const std::string& path) {
    if (const auto* message = std::get_if<const Message*>(&value)) {
      CheckMessage(**message, path);
    } else if (const auto* number = std::get_if<reflect::EnumNumber>(&value)) {
      CheckEnum(*number, path, problems_);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      CheckText(*text, path);
    }
  }

  void CheckMessage(const Message& message, const std::string& path) {
    const google::protobuf::Descriptor* type = message.GetDescriptor();
    if (type == google::protobuf::Value::descriptor()) {
      std::vector<Problem> found;
      reflect::CheckValue(static_cast<const google::protobuf::Value&>(message), path, &found);
      return problems_->Add(std::move(found));
    }
    if (type == google::protobuf::Struct::descriptor()) {
      google::protobuf::Value free;
      *free.mutable_struct_value() = static_cast<const google::protobuf::Struct&>(message);
      std::vector<Problem> found;
      reflect::CheckValue(free, path, &found);
      return problems_->Add(std::move(found));
    }
    if (type->map_key() == nullptr) return Walk(message, path);  // not a map's entry
    const auto key = std::get<std::string>(reflect::Read(message, type->map_key()));
    const std::string below = absl::StrCat(path, reflect::Subscript(key));
    CheckText(key, below);
    Check(reflect::Read(message, type->map_value()), below);
  }

  void CheckText(const std::string& text, const std::string& path) {
    if (text::IsUtf8(text)) return;
    problems_->Add(path, reflect::ShortText(text),
                   absl::StrCat(reflect::Quoted(text), " is not UTF-8"), "text in UTF-8");
  }

  Problems* problems_;
};

}  // namespace

void CheckEnum(const reflect::EnumNumber& value, const std::string& path, Problems* problems) {
  if (value.number != 0 && value.type->FindValueByNumber(value.number) != nullptr) return;
  std::vector<std::string> names;
  for (int i = 1; i < value.type->value_count(); ++i) names.push_back(value.type->value(i)->name());
  problems->Add(path, absl::StrCat(value.number), absl::StrCat(value.number, " is unknown"),
                reflect::AnyOf(names));
}

bool CheckBounds(const Message& message, const std::string& path, Problems* problems) {
  const std::vector<reflect::NotAllowed> found = reflect::FindNotAllowed(message, path);
  for (const auto& one : found) problems->Add(one.path, one.value, one.complaint, one.allowed);
  return found.empty();
}

void CheckExperiment(const v1::ExperimentSpec& spec, Problems* problems) {
  CheckName("name", spec.name(), problems);
  if (IsModel(spec.base())) CheckProgram(spec.base(), problems);
  if (!IsModel(spec.base()) && spec.analyses_size() > 0) {
    problems->Add("analyses", absl::StrCat(spec.analyses_size()),
                  "the runs are programs, which have no model to analyze", "no analyses");
  }
  CheckQuestion(spec.question(), problems);
  CheckBounds(spec.report(), "report", problems);
  CheckBounds(spec.limits(), "limits", problems);
  CheckReport(spec, problems);
  CheckLimits(spec.limits(), problems);
}

void CheckWellFormed(const v1::ExperimentSpec& spec, Problems* problems) {
  Walker(problems).Walk(spec, "");
}

}  // namespace ablate::spec
