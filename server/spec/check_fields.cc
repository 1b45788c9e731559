// Holds what is set against the table of fields, and the lists against their rules.
#include "server/spec/check_fields.h"

#include "absl/strings/str_cat.h"
#include "server/spec/fields.h"
#include "text/decimal.h"
#include "text/utf8.h"

namespace ablate::spec {
namespace {

constexpr int kMostCheckpoints = 200;
constexpr size_t kLongestDataset = 200;

class FieldChecker {
 public:
  FieldChecker(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems)
      : base_(base), reported_as_(reported_as), problems_(problems) {}

  void CheckRanges() {
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.field.is_number() || !rule.field.Has(base_)) continue;
      const double value = rule.field.Get(base_);
      if (rule.InRange(value)) continue;
      const std::string text = rule.field.Text(value);
      Add(rule.path, rule.path, text, absl::StrCat(text, " is out of range"), rule.allowed);
    }
  }

  void CheckDataset() {
    const std::string path = "task.documents.dataset";
    if (!base_.task().documents().has_dataset()) return;
    const std::string& name = base_.task().documents().dataset();
    const bool odd = text::HasControlCharacter(name) || !text::IsUtf8(name);
    if (!name.empty() && name.size() <= kLongestDataset && !odd) return;
    Add(path, path, reflect::ShortText(name),
        absl::StrCat(reflect::Quoted(name), " can't be the name of a data set"),
        "1 to 200 printable bytes");
  }

  void CheckBetas() {
    const std::string path = "training.betas";
    const auto& betas = base_.training().betas();
    if (!betas.empty() && betas.size() != 2) {
      Add(path, path, absl::StrCat(betas.size()),
          absl::StrCat("the list has length ", betas.size()), "two values, or none");
    }
    for (int i = 0; i < betas.size(); ++i) {
      if (betas[i] >= 0 && betas[i] < 1) continue;
      const std::string text = text::ShortestDecimal(betas[i]);
      Add(path, absl::StrCat(path, "[", i, "]"), text, absl::StrCat(text, " is out of range"),
          "0 to below 1");
    }
  }

  void CheckCheckpoints() {
    const std::string path = "training.checkpoints";
    const auto& steps = base_.training().checkpoints();
    if (steps.size() > kMostCheckpoints) {
      Add(path, path, absl::StrCat(steps.size()),
          absl::StrCat("the list has length ", text::Grouped(steps.size())), "at most 200 steps");
    }
    for (int i = 0; i < steps.size(); ++i) {
      if (steps[i] >= -1) continue;
      Add(path, absl::StrCat(path, "[", i, "]"), absl::StrCat(steps[i]),
          absl::StrCat(steps[i], " is out of range"), "0 to steps, or -1 for where the run ends");
    }
  }

  std::set<std::string> Take() { return std::move(bad_); }

 private:
  void Add(const std::string& field, const std::string& path, const std::string& value,
           absl::string_view complaint, absl::string_view allowed) {
    bad_.insert(field);
    problems_->Add(reported_as_(path), value, complaint, allowed);
  }

  const v1::BaseSpec& base_;
  const ReportedAs& reported_as_;
  Problems* problems_;
  std::set<std::string> bad_;
};

}  // namespace

std::set<std::string> CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as,
                                  Problems* problems) {
  FieldChecker checker(base, reported_as, problems);
  checker.CheckRanges();
  checker.CheckDataset();
  checker.CheckBetas();
  checker.CheckCheckpoints();
  return checker.Take();
}

}  // namespace ablate::spec
