// What a report says about each kind of figure: title, caption, and a description for those who
// can't see it.
#ifndef ABLATE_SERVER_REPORT_HTML_FIGURE_WORDS_H_
#define ABLATE_SERVER_REPORT_HTML_FIGURE_WORDS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/figure/input.h"
#include "server/report/html/page.h"

namespace ablate::html {

// The figures that stand in a report, in its order.
struct FigureKind {
  absl::string_view name;  // of figure::Kinds()
  absl::string_view title;
  bool wide;
  // Whether the comparison has anything that this kind would show.
  bool (*wanted)(const report::Comparison& comparison);
};
absl::Span<const FigureKind> ReportKinds();

// A figure of this kind but for its picture and its numbers. `input` is what it is drawn from.
Figure WordsOf(const FigureKind& kind, const figure::Input& input);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_FIGURE_WORDS_H_
