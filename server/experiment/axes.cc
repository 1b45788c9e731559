#include "server/experiment/axes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "proto/yaml/switches.h"
#include "server/config/fields.h"
#include "server/experiment/program_checks.h"

namespace ablate::spec {
namespace {

constexpr size_t kMaxLabelLength = 40;  // and name
constexpr char kNameGrammar[] =
    "lower-case letters, digits and hyphens, beginning with a letter, 1 to 40 characters";
constexpr char kLabelGrammar[] = "letters, digits and . _ + -, 1 to 40 characters";
constexpr int kMaxAxes = 8;
constexpr int kMaxPoints = 1000;
constexpr size_t kMaxWrites = 100;
constexpr char kEither[] = "one of field and values, settings, and switches";
constexpr char kSwitchesName[] = "switches";  // of an axis without a name

bool IsName(absl::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLabelLength && absl::ascii_islower(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

bool IsLabel(absl::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLabelLength &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Shortens a name or label for messages and cells: a refused one may be huge.
std::string Shown(absl::string_view text) { return reflect::ShortText(text, kMaxLabelLength); }

// Returns why `path` doesn't name a field below BaseSpec; empty if it does.
std::vector<Problem> PathProblems(const std::string& path, const std::string& source) {
  v1::BaseSpec scratch;
  std::vector<Problem> problems;
  google::protobuf::Value null;
  null.set_null_value(google::protobuf::NULL_VALUE);
  reflect::SetPath(path, null, source, &scratch, &problems);
  for (Problem& problem : problems) problem.value = reflect::ShortText(path);
  return problems;
}

class AxisReader {
 public:
  AxisReader(const v1::Axis& axis, const v1::BaseSpec& base, int index, Problems* problems)
      : axis_(axis), base_(base), problems_(problems) {
    plan_.source = absl::StrCat("axes[", index, "]");
    plan_.tuned = axis.tune();
    plan_.is_field = axis.has_field() || axis.values_size() > 0;
    plan_.has_switches = axis.switches_size() > 0;
  }

  AxisPlan Read() {
    ReadName();
    std::vector<std::string> given;
    if (plan_.is_field) given.push_back("field or values");
    if (axis_.settings_size() > 0) given.push_back("settings");
    if (plan_.has_switches) given.push_back("switches");
    if (given.size() > 1) {
      problems_->Add(plan_.source, plan_.name,
                     absl::StrCat(absl::StrJoin(given, " and "), " exclude each other"), kEither);
    } else if (axis_.settings_size() > 0) {
      ReadSettings();
    } else if (plan_.has_switches) {
      ReadSwitches();
    } else if (plan_.is_field) {
      ReadValues();
    } else {
      problems_->Add(plan_.source, plan_.name, "nothing to vary", kEither);
    }
    if (axis_.has_form() && !plan_.has_switches) {
      problems_->Add(absl::StrCat(plan_.source, ".form"), v1::SwitchForm::Value_Name(axis_.form()),
                     "form has no effect without switches", "switches, or no form");
    }
    if (plan_.points.empty()) plan_.points.emplace_back();
    return std::move(plan_);
  }

 private:
  void ReadName() {
    if (!axis_.has_name() && !axis_.has_field() && plan_.has_switches) {
      plan_.name = kSwitchesName;
    } else if (axis_.has_name() || !axis_.has_field()) {
      CheckName(absl::StrCat(plan_.source, ".name"), axis_.name(), problems_);
      plan_.name = Shown(axis_.name());
    } else {
      plan_.name = Shown(absl::string_view(axis_.field()).substr(axis_.field().rfind('.') + 1));
    }
  }

  // Returns false after a problem with the number of points.
  bool CheckSize(const std::string& field, int size) {
    if (size >= 1 && size <= kMaxPoints) return true;
    problems_->Add(field, absl::StrCat(size),
                   size == 0 ? std::string("empty") : absl::StrCat(text::Grouped(size), " entries"),
                   "1 to 1,000");
    return false;
  }

  void ReadValues() {
    const std::string source = absl::StrCat(plan_.source, ".values");
    if (!CheckSize(source, axis_.values_size()) || !CheckField()) return;
    for (int i = 0; i < axis_.values_size(); ++i) {
      ReadValue(axis_.values(i), absl::StrCat(source, "[", i, "]"));
    }
  }

  bool CheckField() {
    const std::string source = absl::StrCat(plan_.source, ".field");
    if (!axis_.has_field()) {
      problems_->Add(source, "", "missing", "a path below base");
      return false;
    }
    std::vector<Problem> found = PathProblems(axis_.field(), source);
    if (found.empty()) return true;
    std::optional<Problem> setting = CheckSetting(base_, {axis_.field(), {}, source});
    if (setting.has_value()) found = {*std::move(setting)};
    problems_->Add(std::move(found));
    return false;
  }

  void ReadValue(const google::protobuf::Value& value, const std::string& source) {
    Point point;
    if (!HasLabel(value)) {
      problems_->Add(source, reflect::ShortText(value),
                     absl::StrCat(reflect::Quoted(value), " can't be a label"),
                     "a number, text or a boolean. Write other values as settings with labels");
      return;
    }
    const std::string label = ValueLabel(value);
    point.label = Shown(label);
    // lr0.01, but rotary alone and biases-true.
    const bool is_text = value.has_string_value();
    point.part = is_text ? point.label
                         : absl::StrCat(plan_.name, value.has_bool_value() ? "-" : "", point.label);
    if (!IsLabel(label)) {
      problems_->Add(source, reflect::ShortText(value),
                     absl::StrCat(reflect::Quoted(value), " can't be a label"),
                     absl::StrCat(kLabelGrammar, ". Write other values as settings with labels"));
    } else if (!labels_.insert(point.label).second) {
      problems_->Add(source, point.label, absl::StrCat(point.label, " is repeated"),
                     "distinct values");
    }
    point.writes.push_back({axis_.field(), value, source});
    CheckWrites(&point);
    plan_.points.push_back(std::move(point));
  }

  void ReadSettings() {
    const std::string source = absl::StrCat(plan_.source, ".settings");
    if (!CheckSize(source, axis_.settings_size())) return;
    for (int i = 0; i < axis_.settings_size(); ++i) {
      plan_.points.push_back(ReadSetting(axis_.settings(i), absl::StrCat(source, "[", i, "]")));
    }
  }

  Point ReadSetting(const v1::Setting& setting, const std::string& source) {
    Point point;
    point.label = Shown(setting.label());
    point.part = point.label;
    CheckSettingLabel(setting.label(), absl::StrCat(source, ".label"));
    if (setting.set().size() > kMaxWrites) {
      problems_->Add(absl::StrCat(source, ".set"), absl::StrCat(setting.set().size()),
                     absl::StrCat(text::Grouped(setting.set().size()), " paths"), "at most 100");
      point.broken = true;
    } else {
      const std::map<std::string, google::protobuf::Value> sorted(setting.set().begin(),
                                                                  setting.set().end());
      for (const auto& [path, value] : sorted) {
        const std::string where = absl::StrCat(source, ".set", reflect::Subscript(path));
        point.writes.push_back({path, value, where});
      }
      CheckWrites(&point);
    }
    return point;
  }

  void ReadSwitches() {
    const std::string source = absl::StrCat(plan_.source, ".switches");
    const auto form = axis_.has_form() ? axis_.form() : v1::SwitchForm::add;
    const bool pairs = form == v1::SwitchForm::pairs;
    const int most = pairs ? yaml::kMaxPairedSwitches : yaml::kMaxSwitches;
    if (axis_.switches_size() > most) {
      return problems_->Add(source, absl::StrCat(axis_.switches_size()),
                            absl::StrCat(text::Grouped(axis_.switches_size()), " entries"),
                            absl::StrCat("at most ", most, pairs ? " with form pairs" : ""));
    }
    std::vector<Point> switches;
    std::vector<std::string> labels;
    size_t before = problems_->found();
    for (int i = 0; i < axis_.switches_size(); ++i) {
      switches.push_back(ReadSetting(axis_.switches(i), absl::StrCat(source, "[", i, "]")));
      labels.push_back(switches.back().label);
    }
    const bool good = problems_->found() == before;
    before = problems_->found();
    if (good && form != v1::SwitchForm::add) CheckCombinable(switches);
    const bool combinable = problems_->found() == before;
    labels_.clear();
    for (const yaml::SwitchSetting& setting : yaml::SwitchSettings(form, labels)) {
      Point point = Combine(setting, switches);
      point.broken |= !combinable && setting.switches.size() > 1;
      const std::string about = absl::StrCat(source, "[", setting.about, "]");
      if (good) CheckSettingLabel(point.label, absl::StrCat(about, ".label"));
      if (point.writes.size() > kMaxWrites) {
        return problems_->Add(about, point.label,
                              absl::StrCat(point.label, " sets ", point.writes.size(), " paths"),
                              "at most 100");
      }
      plan_.points.push_back(std::move(point));
    }
  }

  // Reports switches that write different values to one path.
  void CheckCombinable(const std::vector<Point>& switches) {
    std::vector<Claim> claims;
    std::set<std::pair<std::string, std::string>> known;
    for (size_t i = 0; i < switches.size(); ++i) {
      for (const Write& write : switches[i].writes) {
        const bool is_new = known.emplace(write.path, write.value.DebugString()).second;
        if (is_new) claims.push_back({write.path, write.source, static_cast<int>(i)});
      }
    }
    const auto setter = [&switches](const Claim& claim) {
      return absl::StrCat(switches[static_cast<size_t>(claim.writer)].label, " sets ", claim.path);
    };
    for (const auto& [earlier, later] : FindConflicts(claims)) {
      const Claim& claim = claims[later];
      problems_->Add(
          claim.source, claim.path,
          absl::StrCat(setter(claims[earlier]), " and ", setter(claim), ": they can't be combined"),
          "equal values, or form add");
    }
  }

  // Returns the point of these switches together.
  static Point Combine(const yaml::SwitchSetting& setting, const std::vector<Point>& switches) {
    Point point;
    point.label = point.part = setting.label;
    std::set<std::string> paths;
    for (const int index : setting.switches) {
      const Point& one = switches[static_cast<size_t>(index)];
      for (const Write& write : one.writes) {
        if (paths.insert(write.path).second) point.writes.push_back(write);
      }
      point.bad.insert(one.bad.begin(), one.bad.end());
      point.broken |= one.broken;
    }
    return point;
  }

  void CheckSettingLabel(const std::string& label, const std::string& source) {
    if (!IsLabel(label)) {
      CheckLabel(source, label, "label", problems_);
    } else if (!labels_.insert(label).second) {
      problems_->Add(source, label, absl::StrCat(reflect::Quoted(label), " is repeated"),
                     "distinct labels");
    }
  }

  // Checks each write by itself (path, type, range), and that no two have one path.
  void CheckWrites(Point* point) {
    std::vector<Claim> claims;
    for (const Write& write : point->writes) {
      v1::BaseSpec scratch;
      std::vector<Problem> found;
      reflect::SetPath(write.path, write.value, write.source, &scratch, &found);
      std::optional<Problem> wrong = CheckSetting(base_, write);
      if (wrong.has_value()) {
        problems_->Add(*std::move(wrong));
        point->bad.insert(write.path);
        continue;
      }
      if (!found.empty()) point->bad.insert(write.path);
      problems_->Add(std::move(found));
      point->bad.merge(CheckFields(
          scratch, [&write](const std::string& path) { return WrittenBy({write}, path); },
          problems_));
      if (NamesField(write.path)) {
        claims.push_back({write.path, write.source, static_cast<int>(claims.size())});
      }
    }
    const size_t before = problems_->found();
    if (claims.size() > 1) CheckClaims(claims, problems_);
    point->broken = claims.size() < point->writes.size() || problems_->found() > before;
  }

  const v1::Axis& axis_;
  const v1::BaseSpec& base_;
  Problems* problems_;
  AxisPlan plan_;
  std::set<std::string> labels_;
};

}  // namespace

void CheckName(const std::string& field, absl::string_view text, Problems* problems) {
  if (text.empty()) return problems->Add(field, "", "missing", kNameGrammar);
  if (IsName(text)) return;
  problems->Add(field, reflect::ShortText(text),
                absl::StrCat(reflect::Quoted(text), " isn't a valid name"), kNameGrammar);
}

void CheckLabel(const std::string& field, absl::string_view text, absl::string_view what,
                Problems* problems) {
  if (text.empty()) return problems->Add(field, "", "missing", kLabelGrammar);
  if (IsLabel(text)) return;
  problems->Add(field, reflect::ShortText(text),
                absl::StrCat(reflect::Quoted(text), " can't be a ", what), kLabelGrammar);
}

bool HasLabel(const google::protobuf::Value& value) {
  return value.has_number_value() || value.has_bool_value() || value.has_string_value();
}

std::string ValueLabel(const google::protobuf::Value& value) {
  if (value.has_number_value()) return text::ShortestDecimal(value.number_value());
  if (value.has_bool_value()) return value.bool_value() ? "true" : "false";
  return value.string_value();
}

void ReplaceSwitches(const std::vector<AxisPlan>& plans, v1::ExperimentSpec* spec) {
  for (size_t i = 0; i < plans.size(); ++i) {
    v1::Axis* axis = spec->mutable_axes(static_cast<int>(i));
    if (!plans[i].has_switches) continue;
    axis->set_name(plans[i].name);
    axis->clear_switches();
    axis->clear_form();
    for (const Point& point : plans[i].points) {
      v1::Setting* setting = axis->add_settings();
      setting->set_label(point.label);
      for (const Write& write : point.writes) (*setting->mutable_set())[write.path] = write.value;
    }
  }
}

std::vector<AxisPlan> ReadAxes(const v1::ExperimentSpec& spec, Problems* problems) {
  std::vector<AxisPlan> plans;
  if (spec.axes_size() > kMaxAxes) {
    problems->Add("axes", absl::StrCat(spec.axes_size()),
                  absl::StrCat(text::Grouped(spec.axes_size()), " axes"), "at most 8");
    return plans;
  }
  std::set<std::string> names;
  for (int i = 0; i < spec.axes_size(); ++i) {
    plans.push_back(AxisReader(spec.axes(i), spec.base(), i, problems).Read());
    const std::string& name = plans.back().name;
    if (!name.empty() && !names.insert(name).second) {
      problems->Add(absl::StrCat("axes[", i, "].name"), reflect::ShortText(name),
                    absl::StrCat(reflect::Quoted(name), " is repeated"), "distinct names");
    }
  }
  return plans;
}

}  // namespace ablate::spec
