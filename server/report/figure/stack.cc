// Stacks figures of one kind, one per label of an analysis, into one picture.
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kHeading = 0.22;  // inches of a heading

// Returns the first line with its end.
absl::string_view HeadOf(const std::string& csv) {
  return absl::string_view(csv).substr(0, csv.find('\n') + 1);
}

void MoveRules(double by, std::vector<Rule>* rules) {
  for (Rule& rule : *rules) {
    rule.y0 += by;
    rule.y1 += by;
  }
}

void MoveUp(double by, Figure* figure) {
  for (Panel& panel : figure->panels) {
    panel.bottom += by;
    panel.top += by;
    MoveRules(by, &panel.rules);
  }
  for (Text& text : figure->texts) text.y += by;
  MoveRules(by, &figure->rules);
}

template <class T>
void Append(std::vector<T> more, std::vector<T>* all) {
  all->insert(all->end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// Places `lower` below the content of `figure`.
void PutBelow(Figure lower, Figure* figure) {
  MoveUp(lower.height, figure);
  figure->height += lower.height;
  absl::StrAppend(&figure->title, "; ", lower.title);
  absl::StrAppend(&figure->description, " ", lower.description);
  Append(std::move(lower.panels), &figure->panels);
  Append(std::move(lower.texts), &figure->texts);
  Append(std::move(lower.rules), &figure->rules);
}

void AddHeading(const std::string& label, Figure* figure) {
  figure->height += kHeading;
  figure->texts.push_back({kEdge, figure->height - kHeading / 2,
                           ElideMiddle(label, figure->width - 2 * kEdge, kTitleSize, true),
                           kTitleSize, kInk, Align::kLeft, true});
}

}  // namespace

absl::StatusOr<Drawing> Stack(std::vector<LabelledDrawing> drawings) {
  Drawing all = std::move(drawings.front().drawing);
  if (drawings.size() == 1) return all;
  AddHeading(drawings.front().label, &all.figure);
  for (size_t i = 1; i < drawings.size(); ++i) {
    auto& [label, drawing] = drawings[i];
    const absl::string_view head = HeadOf(drawing.csv);
    if (head != HeadOf(all.csv)) {
      return absl::FailedPreconditionError(
          absl::StrCat("key: ", drawings.front().label, " and ", label,
                       " have different columns and can't share a figure; expected one of them"));
    }
    AddHeading(label, &drawing.figure);
    PutBelow(std::move(drawing.figure), &all.figure);
    all.csv.append(drawing.csv, head.size(), std::string::npos);
  }
  return all;
}

}  // namespace ablate::figure
