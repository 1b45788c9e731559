#include "server/imports/reading.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"
#include "server/imports/keys.h"
#include "server/imports/name_pattern.h"
#include "server/imports/setting_paths.h"
#include "server/imports/values.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

using google::protobuf::Value;

constexpr size_t kMaxLabel = 40;
constexpr size_t kMaxValues = 1'000;  // of a setting

// Returns "left out: 3 runs, not finished: a, b, c".
std::string CountNote(const std::vector<std::string>& names, absl::string_view why) {
  return absl::StrCat("left out: ", names.size(), names.size() == 1 ? " run, " : " runs, ", why,
                      ": ", Listed(names));
}

Value TextValue(const std::string& text) {
  Value value;
  double number = 0;
  const bool is_number = !text.empty() && !absl::ascii_isalpha(text.front()) &&
                         absl::SimpleAtod(text, &number) && std::isfinite(number);
  if (is_number) {
    value.set_number_value(number);
  } else {
    value.set_string_value(text);
  }
  return value;
}

// Returns a name for an axis: lower-case letters, digits and hyphens, beginning with a letter.
std::string NameOfAxis(const std::string& key, std::set<std::string>* taken) {
  std::string name;
  for (const char c : LastPart(key)) {
    name.push_back(absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '-');
  }
  if (name.empty() || !absl::ascii_isalpha(name.front())) name.insert(0, "x");
  name.resize(std::min(name.size(), kMaxLabel - 3));
  std::string unique = name;
  for (int i = 2; !taken->insert(unique).second; ++i) unique = absl::StrCat(name, "-", i);
  return unique;
}

std::string NameOfLabel(const Value& value, std::set<std::string>* taken) {
  std::string label;
  for (const char c : spec::TextOfSetting(value)) {
    label.push_back(absl::ascii_isalnum(c) || absl::StrContains("._+-", c) ? c : '_');
  }
  if (label.empty()) label = "none";
  label.resize(std::min(label.size(), kMaxLabel - 4));
  std::string unique = label;
  for (int i = 2; !taken->insert(unique).second; ++i) unique = absl::StrCat(label, "_", i);
  return unique;
}

bool AreOfOneKind(const std::vector<Value>& values) {
  return std::all_of(values.begin(), values.end(), [&values](const Value& value) {
    return value.kind_case() == values.front().kind_case();
  });
}

class Reader {
 public:
  Reader(const v1::ImportOptions& options, std::vector<Run>* runs)
      : options_(options), runs_(*runs) {}

  absl::StatusOr<Reading> Run() {
    LeaveOutUnfinished();
    RETURN_IF_ERROR(ReadNames());
    RETURN_IF_ERROR(FindMetric());
    const Keys keys(runs_, used_);
    ASSIGN_OR_RETURN(seed_, FindSeed(keys, options_.seed(), &reading_.notes));
    ASSIGN_OR_RETURN(
        settings_,
        FindSettings(keys, seed_, {options_.settings().begin(), options_.settings().end()},
                     &reading_.notes));
    RETURN_IF_ERROR(MakeAxes());
    RETURN_IF_ERROR(MakeCells());
    RETURN_IF_ERROR(ReadValues(options_, runs_, &reading_));
    for (const std::string& key : keys.names()) {
      const bool is_axis = std::find(settings_.begin(), settings_.end(), key) != settings_.end();
      if (key == seed_ || is_axis || keys.Varies(key)) continue;
      reading_.constants[paths_.Add(key)] = ValueOf(used_.front(), key);
    }
    return std::move(reading_);
  }

 private:
  // Takes the runs for which `why` has a reason out of those that are read, with a note by reason.
  void LeaveOut(const std::function<std::string(const imports::Run&)>& why) {
    std::map<std::string, std::vector<std::string>> left_out;
    std::vector<size_t> kept;
    for (const size_t i : used_) {
      if (std::string reason = why(runs_[i]); reason.empty()) {
        kept.push_back(i);
      } else {
        left_out[reason].push_back(runs_[i].name);
      }
    }
    for (const auto& [reason, names] : left_out) reading_.notes.push_back(CountNote(names, reason));
    used_ = std::move(kept);
  }

  void LeaveOutUnfinished() {
    for (size_t i = 0; i < runs_.size(); ++i) used_.push_back(i);
    LeaveOut([](const imports::Run& run) -> std::string {
      switch (run.state) {
        case v1::ImportedState::failed:
          return "failed";
        case v1::ImportedState::unfinished:
          return "not finished";
        case v1::ImportedState::pruned:
          return "pruned because of their results";
        default:
          return "";
      }
    });
  }

  absl::Status ReadNames() {
    if (options_.names().empty()) return absl::OkStatus();
    const std::string seed = options_.seed().empty() ? kSeedKey : options_.seed();
    ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(options_.names(), seed));
    for (const size_t i : used_) {
      ASSIGN_OR_RETURN(const auto values, pattern.Match(runs_[i].name));
      for (const auto& [key, text] : values) runs_[i].settings[key] = TextValue(text);
    }
    return absl::OkStatus();
  }

  absl::Status FindMetric() {
    if (used_.empty()) {
      return lookup::InvalidField(
          "runs", reading_.notes.empty() ? "there are none" : absl::StrJoin(reading_.notes, "; "),
          "a run that finished");
    }
    std::set<std::string> keys;
    for (const size_t i : used_) {
      for (const auto& [key, series] : runs_[i].series) keys.insert(key);
    }
    const std::vector<std::string> names(keys.begin(), keys.end());
    reading_.metric = options_.metric();
    if (names.empty())
      return lookup::InvalidField("metric", "no run has a value", "runs with metrics");
    if (reading_.metric.empty() && names.size() == 1) reading_.metric = names[0];
    if (reading_.metric.empty()) {
      return lookup::InvalidField("metric",
                                  absl::StrCat("the runs have ", names.size(), " metrics"),
                                  absl::StrCat("one of ", Listed(names)));
    }
    if (keys.count(reading_.metric) == 0) {
      return lookup::InvalidField("metric",
                                  absl::StrCat("no run has ", reflect::Quoted(reading_.metric),
                                               reflect::DidYouMean(reading_.metric, names)),
                                  absl::StrCat("one of ", Listed(names)));
    }
    LeaveOut([this](const imports::Run& run) -> std::string {
      return run.series.count(reading_.metric) == 0 ? absl::StrCat("without ", reading_.metric)
                                                    : "";
    });
    reading_.better = options_.better() == v1::Better::unspecified ? DirectionOf(reading_.metric)
                                                                   : options_.better();
    const auto by_item = [this](size_t run) {
      return !runs_[run].series.at(reading_.metric).items.empty();
    };
    reading_.by_item = by_item(used_.front());
    if (std::all_of(used_.begin(), used_.end(),
                    [&](size_t run) { return by_item(run) == reading_.by_item; })) {
      return absl::OkStatus();
    }
    return lookup::InvalidField(
        "metric", absl::StrCat(reading_.metric, " is by item in some runs and by step in others"),
        "one of them");
  }

  // Returns a run's value of a key; null if it has none.
  Value ValueOf(size_t run, const std::string& key) const {
    Value null;
    null.set_null_value(google::protobuf::NULL_VALUE);
    const auto found = runs_[run].settings.find(key);
    return found == runs_[run].settings.end() ? null : found->second;
  }

  // Returns the label of the axis that is the baseline; null for the first.
  const std::string* BaselineOf(const Axis& axis) const {
    for (const std::string& name : {axis.name, axis.key}) {
      const auto wanted = options_.baseline().find(name);
      if (wanted != options_.baseline().end()) return &wanted->second;
    }
    // Without a name it is of the only axis.
    const auto unnamed = options_.baseline().find("");
    const bool only = unnamed != options_.baseline().end() && settings_.size() == 1;
    return only ? &unnamed->second : nullptr;
  }

  absl::Status MakeAxes() {
    std::set<std::string> names;
    for (const std::string& key : options_.tune()) {
      if (std::find(settings_.begin(), settings_.end(), key) != settings_.end()) continue;
      return lookup::InvalidField(
          "tune", absl::StrCat(reflect::Quoted(key), " isn't a setting that varies"),
          settings_.empty() ? "none" : absl::StrCat("one of ", Listed(settings_)));
    }
    for (const std::string& key : settings_) {
      Axis axis;
      axis.key = key;
      axis.name = NameOfAxis(key, &names);
      axis.path = paths_.Add(key);
      axis.tuned =
          std::find(options_.tune().begin(), options_.tune().end(), key) != options_.tune().end();
      RETURN_IF_ERROR(AddValues(&axis));
      RETURN_IF_ERROR(PutBaselineFirst(&axis));
      reading_.axes.push_back(std::move(axis));
    }
    for (const auto& [name, label] : options_.baseline()) {
      if (name.empty() && settings_.size() == 1) continue;
      const bool known = std::any_of(
          reading_.axes.begin(), reading_.axes.end(),
          [&name = name](const Axis& axis) { return name == axis.name || name == axis.key; });
      if (!known) {
        return lookup::InvalidField(
            "baseline", absl::StrCat(reflect::Quoted(name), " isn't a setting"),
            settings_.empty() ? "none" : absl::StrCat("one of ", Listed(settings_)));
      }
    }
    return absl::OkStatus();
  }

  // Adds the distinct values: numbers in ascending order, others in the order of the runs.
  absl::Status AddValues(Axis* axis) const {
    std::set<std::string> known;
    for (const size_t i : used_) {
      if (!known.insert(Identity(runs_[i], axis->key)).second) continue;
      axis->values.push_back(ValueOf(i, axis->key));
    }
    if (known.size() > kMaxValues) {
      return lookup::InvalidField("settings",
                                  absl::StrCat(axis->key, " has ", known.size(), " values"),
                                  absl::StrCat("at most ", kMaxValues));
    }
    if (AreOfOneKind(axis->values) && axis->values.front().has_number_value()) {
      std::sort(axis->values.begin(), axis->values.end(),
                [](const Value& a, const Value& b) { return a.number_value() < b.number_value(); });
    }
    std::set<std::string> taken;
    for (Value& value : axis->values) {
      axis->labels.push_back(NameOfLabel(value, &taken));
    }
    return absl::OkStatus();
  }

  absl::Status PutBaselineFirst(Axis* axis) const {
    const std::string* wanted = BaselineOf(*axis);
    if (wanted == nullptr) return absl::OkStatus();
    for (size_t i = 0; i < axis->labels.size(); ++i) {
      if (axis->labels[i] != *wanted && spec::TextOfSetting(axis->values[i]) != *wanted) {
        continue;
      }
      const auto at = static_cast<std::ptrdiff_t>(i);
      std::rotate(axis->labels.begin(), axis->labels.begin() + at, axis->labels.begin() + at + 1);
      std::rotate(axis->values.begin(), axis->values.begin() + at, axis->values.begin() + at + 1);
      return absl::OkStatus();
    }
    return lookup::InvalidField(absl::StrCat("baseline", reflect::Subscript(axis->name)),
                                absl::StrCat(reflect::Quoted(*wanted), " isn't a value of ",
                                             axis->key, reflect::DidYouMean(*wanted, axis->labels)),
                                reflect::AnyOf(axis->labels));
  }

  absl::StatusOr<uint32_t> SeedOf(size_t run) const {
    if (seed_.empty() || reading_.by_item) return 0;
    const Value value = ValueOf(run, seed_);
    double number = value.number_value();
    const bool is_number =
        value.has_number_value() ||
        (value.has_string_value() && absl::SimpleAtod(value.string_value(), &number));
    if (is_number && number >= 0 && number <= std::numeric_limits<uint32_t>::max() &&
        number == std::floor(number)) {
      return static_cast<uint32_t>(number);
    }
    return lookup::InvalidField("seed",
                                absl::StrCat(reflect::Quoted(value), " of run ",
                                             reflect::ShortText(runs_[run].name), " isn't a seed"),
                                "a whole number from 0 to 4,294,967,295 in every run");
  }

  std::string SettingsText(const Cell& cell) const {
    std::vector<std::string> parts;
    for (size_t axis = 0; axis < reading_.axes.size(); ++axis) {
      parts.push_back(absl::StrCat(reading_.axes[axis].key, "=",
                                   reading_.axes[axis].labels[cell.labels[axis]]));
    }
    if (!seed_.empty() && !reading_.by_item) parts.push_back(absl::StrCat(seed_, "=", cell.seed));
    return parts.empty() ? "no settings" : absl::StrJoin(parts, ", ");
  }

  static bool AreEqual(const imports::Run& a, const imports::Run& b) {
    const auto same = [](const auto& x, const auto& y) {
      const Series &one = x.second, &other = y.second;
      // Bits are compared, so that NaN is equal to itself.
      return x.first == y.first && one.steps == other.steps && one.items == other.items &&
             std::equal(
                 one.values.begin(), one.values.end(), other.values.begin(), other.values.end(),
                 [](double u, double v) { return u == v || (std::isnan(u) && std::isnan(v)); });
    };
    return std::equal(a.series.begin(), a.series.end(), b.series.begin(), b.series.end(), same);
  }

  absl::Status MakeCells() {
    std::vector<std::map<std::string, size_t>> places(reading_.axes.size());
    for (size_t axis = 0; axis < reading_.axes.size(); ++axis) {
      for (const Value& value : reading_.axes[axis].values) {
        places[axis].emplace(spec::CanonicalJson(value), places[axis].size());
      }
    }
    std::vector<std::string> repeated;
    std::map<std::pair<std::vector<size_t>, uint32_t>, size_t> known;  // run by labels and seed
    for (const size_t run : used_) {
      Cell cell;
      cell.run = run;
      for (size_t axis = 0; axis < reading_.axes.size(); ++axis) {
        cell.labels.push_back(places[axis].at(Identity(runs_[run], reading_.axes[axis].key)));
      }
      ASSIGN_OR_RETURN(cell.seed, SeedOf(run));
      const auto [place, is_new] = known.emplace(std::make_pair(cell.labels, cell.seed), run);
      if (is_new) {
        reading_.cells.push_back(std::move(cell));
      } else if (!seed_.empty() && AreEqual(runs_[place->second], runs_[run])) {
        repeated.push_back(runs_[run].name);
      } else {
        return lookup::InvalidField(
            "runs",
            absl::StrCat(reflect::ShortText(runs_[place->second].name), " and ",
                         reflect::ShortText(runs_[run].name), " have the same settings (",
                         SettingsText(cell), ")"),
            "one run of each. Name further settings or the seed, or leave one out");
      }
    }
    if (!repeated.empty()) {
      reading_.notes.push_back(CountNote(repeated, "equal to others"));
    }
    std::sort(reading_.cells.begin(), reading_.cells.end(), [](const Cell& a, const Cell& b) {
      return std::tie(a.labels, a.seed) < std::tie(b.labels, b.seed);
    });
    // Values of mixed kinds are compared as texts.
    for (Axis& axis : reading_.axes) {
      if (AreOfOneKind(axis.values)) continue;
      for (Value& value : axis.values) {
        const std::string text = spec::TextOfSetting(value);
        value.set_string_value(text);
      }
    }
    return absl::OkStatus();
  }

  const v1::ImportOptions& options_;
  std::vector<imports::Run>& runs_;
  std::vector<size_t> used_;  // runs that aren't left out, in order
  std::string seed_;          // its key; empty if there is none
  std::vector<std::string> settings_;
  SettingPaths paths_;
  Reading reading_;
};

}  // namespace

absl::StatusOr<Reading> Read(const v1::ImportOptions& options, Results* results) {
  return Reader(options, &results->runs()).Run();
}

}  // namespace ablate::imports
