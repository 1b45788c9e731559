// A comparison as people read it on a terminal.
#include "server/report/table/comparison_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/table/comparison_tables.h"
#include "server/report/verdict.h"

namespace ablate::report {

std::string ComparisonText(const Comparison& comparison, const RowWindows& windows,
                           std::optional<uint32_t> at) {
  std::string out = RenderText(BriefTable(comparison, at));
  const auto line = [&out](absl::string_view label, const std::string& sentence) {
    if (!sentence.empty()) absl::StrAppend(&out, label, CleanText(sentence), "\n");
  };
  line("", MatchedNote(comparison));
  out.push_back('\n');
  line("", OverallVerdict(comparison).text);
  for (const Warning& warning : comparison.warnings) line("warning: ", warning.text);
  if (!comparison.within_axes.empty()) line("note: ", WithinNote(comparison));
  if (!comparison.tuned_axes.empty() && comparison.family > 0) {
    line("note: ", absl::StrCat("each ", absl::StrJoin(comparison.tuned_axes, " and "),
                                " is chosen on the other seeds, so intervals and p are "
                                "approximate"));
  }
  const Table table = WindowTable(comparison, windows);
  if (!table.columns.empty()) {
    absl::StrAppend(&out, "\nover converged runs, mean [95 % CI]:\n", RenderText(table));
  }
  return out;
}

}  // namespace ablate::report
