#include <string>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/config/fields.h"
#include "server/experiment/checks.h"
#include "server/experiment/field_values.h"

namespace ablate::spec {
namespace {

Problem NoEffect(const Condition& condition, const RunToCheck& run, const Source& source) {
  const std::string value = ValuesOf(run.merged).at(condition.path);
  // Without the enclosing part, such as attention.kind.
  const std::string other = condition.switch_path.substr(condition.switch_path.find('.') + 1);
  const std::string fitting = absl::StrCat(other, " ", reflect::AnyOf(condition.values));
  return {source.reported_as, value, fitting,
          absl::StrCat(source.reported_as, ": ", value, " has no effect with ", other, " ",
                       condition.SwitchValue(run.filled), "; remove it, or use ", fitting)};
}

}  // namespace

BadPaths EffectChecker::Check(const RunToCheck& run, Problems* problems) {
  BadPaths reported;
  for (const Condition& condition : Conditions()) {
    if (!condition.field.IsSet(run.merged)) continue;
    const Source source = run.sources.Find(condition.path, run.merged);
    const Source other = run.sources.Find(condition.switch_path, run.merged);
    const bool switched_off = source.rank == Rank::kBase && other.rank == Rank::kOverride;
    const bool unknown = AnyBad(run.bad, {condition.path, condition.switch_path});
    if (switched_off || unknown || condition.Holds(run.filled)) {
      used_.insert(source.reported_as);
    } else if (source.rank == Rank::kAxis) {
      problems->Add(NoEffect(condition, run, source));
      reported.insert(condition.path);
    } else if (idle_.count(source.reported_as) == 0) {
      idle_.emplace(source.reported_as, NoEffect(condition, run, source));
    }
  }
  return reported;
}

void EffectChecker::ReportIdle(Problems* problems) const {
  for (const auto& [source, problem] : idle_) {
    if (used_.count(source) == 0) problems->Add(problem);
  }
}

}  // namespace ablate::spec
