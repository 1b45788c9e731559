// Maps of an analysis: similarity of sites, attention, and effects (effect_maps.h); one panel per
// setting.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/effect_maps.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/style.h"
#include "server/report/figure/token_labels.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kLayerMaps = "layer_maps", kHeadMaps = "head_maps";
constexpr ArrayForm kMatrixForms[] = {
    {"cka", "cka", "representation,other", "", "", false},
    {"attention", "model_map", "query,key", "", "", false, {}, kTokenArrays},
    {"attention", kLayerMaps, "block,query,key", "", "", false, {}, kTokenArrays},
    {"attention", kHeadMaps, "block,head,query,key", "", "", false, {}, kTokenArrays},
    kEffectForms[0],
    kEffectForms[1],
    kEffectForms[2],
    kEffectForms[3]};

bool IsOfHeads(const Input& input) { return input.analysed.form->array == kHeadMaps; }

bool IsCka(const Input& input) { return input.analysed.form->analysis == kMatrixForms[0].analysis; }

// A square part of a run's array.
struct Square {
  const AnalysedSetting* setting = nullptr;
  const AnalysedSeed* seed = nullptr;
  size_t index = 0;  // of several, in the array's order
  size_t side = 0;

  double At(size_t row, size_t column) const {
    return seed->values[(index * side + row) * side + column];
  }
};

// Returns the square of each setting's lowest seed; FAILED_PRECONDITION if one isn't square.
absl::StatusOr<std::vector<Square>> SquaresOf(const Input& input) {
  std::vector<Square> squares;
  for (const AnalysedSetting& setting : input.analysed.settings) {
    if (setting.seeds.empty()) continue;
    const AnalysedSeed& seed = setting.seeds[0];
    const size_t n = seed.shape.size();
    if (seed.shape[n - 1] != seed.shape[n - 2]) {
      return absl::FailedPreconditionError(
          absl::StrCat("key: the map of ", setting.label, " has ", seed.shape[n - 2], " rows and ",
                       seed.shape[n - 1], " columns; expected a square map"));
    }
    size_t maps = 1;
    for (size_t i = 0; i + 2 < n; ++i) maps *= seed.shape[i];
    for (size_t index = 0; index < maps; ++index) {
      squares.push_back({&setting, &seed, index, seed.shape[n - 1]});
    }
  }
  return squares;
}

size_t HeadsOf(const Square& square) {
  return square.seed->shape.size() > 3 ? square.seed->shape[1] : 1;
}

// Returns "block.0" for a map of a layer, "block.0.head.1" for one of a head; otherwise "".
std::string PlaceName(const Square& square) {
  const size_t dimensions = square.seed->shape.size();
  if (dimensions < 3) return "";
  const size_t heads = HeadsOf(square);
  return absl::StrCat("block.", square.index / heads,
                      dimensions > 3 ? absl::StrCat(".head.", square.index % heads) : "");
}

// Returns names of a CKA's sites, if known: the requested ones, or the embedding and every block's
// output.
std::vector<std::string> SiteNames(const Input& input, size_t sites) {
  const auto asked = input.analysed.options.find("sites");
  if (asked != input.analysed.options.end() && asked->second.size() == sites) return asked->second;
  std::vector<std::string> names = {"embedding"};
  while (names.size() < sites) {
    names.push_back(absl::StrCat("block.", names.size() - 1, ".output"));
  }
  return names;
}

bool HasDefaultSites(const Input& input) { return OptionOf(input.analysed, "sites").empty(); }

// Returns the texts of attention's tokens if all maps have the same: from their arrays, or the
// prompt's characters.
std::vector<std::string> TextsOf(const Input& input, const std::vector<Square>& squares) {
  std::vector<std::string> shared;
  for (size_t i = 0; i < squares.size() && !IsCka(input); ++i) {
    std::vector<std::string> texts = TokenTexts(*squares[i].seed, squares[i].side);
    if (texts.empty()) texts = CharactersOf(input.analysed.prompt, squares[i].side);
    if (i > 0 && texts != shared) return {};
    shared = std::move(texts);
  }
  return shared;
}

// Names the cells of an axis: by the texts of tokens, if they are known, or by numbers.
std::vector<std::string> CellNames(const Input& input, const std::vector<std::string>& texts,
                                   size_t cells) {
  std::vector<std::string> names;
  for (const std::string& text : texts) names.push_back(TokenLabel(text));
  const size_t first = IsCka(input) && HasDefaultSites(input) ? 0 : 1;
  while (names.size() < cells) names.push_back(absl::StrCat(names.size() + first));
  return names;
}

// Returns true if no query attends to a later key.
bool IsCausal(const Square& square) {
  for (size_t row = 0; row < square.side; ++row) {
    for (size_t column = row + 1; column < square.side; ++column) {
      if (square.At(row, column) != 0) return false;
    }
  }
  return square.side > 1;
}

struct Found {
  size_t below = 0, above = 0;  // values beyond the scale
  size_t holes = 0;
  bool causal = false;
};

MapPanel PanelOf(const Input& input, const std::vector<std::string>& texts, const Square& square,
                 Found* found) {
  const bool cka = IsCka(input);
  const bool causal = !cka && IsCausal(square);
  found->causal = found->causal || causal;
  MapPanel panel;
  panel.label = square.setting->label;
  if (IsOfHeads(input)) {  // short, because panels are small
    const size_t heads = HeadsOf(square);
    panel.place = absl::StrCat(square.index / heads, ".", square.index % heads);
  } else {
    panel.place = PlaceName(square);
  }
  panel.color = StyleOf(square.setting->style).text;
  const std::vector<std::string> names = CellNames(input, texts, square.side);
  panel.texts = !texts.empty();
  panel.x = CellsAxis(names, false);
  // Sites go up like blocks; queries go down like text.
  panel.y = CellsAxis(names, !cka);
  for (size_t i = 0; i <= square.side; ++i) panel.x_edges.push_back(static_cast<double>(i));
  panel.y_edges = panel.x_edges;
  panel.numbers = cka;
  for (size_t i = 0; i < square.side; ++i) {
    const size_t row = cka ? i : square.side - 1 - i;
    for (size_t column = 0; column < square.side; ++column) {
      const double value = square.At(row, column);
      const bool masked = causal && column > row;
      panel.values.push_back(std::isfinite(value) && !masked ? value : kNone);
      found->holes += std::isfinite(value) ? 0 : 1;
      found->below += value < 0 ? 1 : 0;
      found->above += value > 1 + 1e-9 ? 1 : 0;
    }
  }
  return panel;
}

ColorScale ScaleOf(const Input& input) {
  ColorScale scale;
  scale.root = !IsCka(input);
  scale.title = scale.root ? "Weight" : "CKA";
  const std::vector<double> ticks = scale.root ? std::vector<double>{0, .01, .05, .1, .25, .5, 1}
                                               : std::vector<double>{0, .25, .5, .75, 1};
  for (const double tick : ticks) scale.axis.ticks.push_back({tick, ShortNumber(tick)});
  return scale;
}

// Returns "1: embedding, 2: block.0.attention.output" if the numbers alone don't show it.
std::string SitesText(const Input& input, size_t sites) {
  std::vector<std::string> texts;
  const std::vector<std::string> names = SiteNames(input, sites);
  for (size_t i = 0; i < names.size(); ++i) texts.push_back(absl::StrCat(i + 1, ": ", names[i]));
  return report::Enumerated(texts, kMostNamed);
}

// Says over what the attention of a map is averaged.
std::string MeanText(const Input& input) {
  const bool all = input.analysed.form->array == kMatrixForms[1].array;
  return all ? "mean over heads and blocks" : "mean over heads";
}

std::string MatrixFootnote(const Input& input, const std::vector<Square>& squares,
                           const std::vector<std::string>& texts, const Found& found) {
  std::vector<std::string> sentences = {absl::StrCat(
      StepsText(input.analysed), ", each setting's lowest analysed seed that converged")};
  if (IsCka(input)) {
    sentences.push_back(absl::StrCat("linear CKA, ", OptionOf(input.analysed, "estimator")));
    if (!HasDefaultSites(input)) sentences.push_back(SitesText(input, squares[0].side));
  } else {
    sentences.push_back(IsOfHeads(input) ? "titles: block.head, both from 0" : MeanText(input));
    sentences.emplace_back("query tokens from top to bottom");
    if (std::string signs = SignsText(texts); !signs.empty()) sentences.push_back(std::move(signs));
  }
  if (found.causal) sentences.emplace_back("white: masked keys");
  if (found.below > 0) {
    sentences.push_back(absl::StrCat(report::Counted(found.below, "value"), " below 0 drawn as 0"));
  }
  if (found.above > 0) {
    sentences.push_back(absl::StrCat(report::Counted(found.above, "value"), " above 1 drawn as 1"));
  }
  if (found.holes > 0) {
    sentences.push_back(absl::StrCat("white: ", found.holes, " undefined"));
  }
  return FootnoteOf(std::move(sentences), LeftOutOf(input.analysed.settings), "drawn");
}

std::string MatrixCsv(const Input& input, const std::vector<Square>& squares) {
  std::string csv(kMatrixCsvHead);
  for (const Square& square : squares) {
    const std::vector<std::string> names =
        IsCka(input) ? SiteNames(input, square.side) : std::vector<std::string>();
    const auto name = [&](size_t i) { return names.empty() ? absl::StrCat(i) : names[i]; };
    for (size_t row = 0; row < square.side; ++row) {
      for (size_t column = 0; column < square.side; ++column) {
        AddCsvRow(&csv, input.key, square.setting->label, square.seed->step, square.seed->seed,
                  PlaceName(square), name(row), name(column), square.At(row, column));
      }
    }
  }
  return csv;
}

absl::StatusOr<Drawing> DrawMatrix(const Input& input) {
  if (IsEffect(input)) return DrawEffectMaps(input);
  ASSIGN_OR_RETURN(const auto squares, SquaresOf(input));
  std::vector<MapPanel> panels;
  Found found;
  const std::vector<std::string> texts = TextsOf(input, squares);
  for (const Square& square : squares) panels.push_back(PanelOf(input, texts, square, &found));
  MapWords words;
  words.x = "Key token";
  words.y = "Query token";
  words.footnote = MatrixFootnote(input, squares, texts, found);
  if (!IsCka(input)) {
    words.remedy = absl::StrCat("Use a shorter prompt",
                                IsOfHeads(input) ? absl::StrCat(", or ", kLayerMaps) : "");
  } else {
    words.x = words.y = HasDefaultSites(input) ? "Blocks passed (0: embedding)" : "Site";
  }
  // A row of panels has all heads of a block if there is room.
  const size_t columns = IsOfHeads(input) ? HeadsOf(squares[0]) : 0;
  ASSIGN_OR_RETURN(auto figure, DrawMaps(panels, ScaleOf(input), words, input.width, columns));
  figure.title = AnalysedTitle(input, IsCka(input) ? "similarity of sites" : "attention");
  return Drawing{std::move(figure), MatrixCsv(input, squares)};
}

std::string MatrixCaption(const Input& input) {
  if (IsEffect(input)) return EffectMapsCaption(input);
  const std::string of =
      absl::StrCat(" Each setting's lowest analysed seed that converged, ",
                   StepsText(input.analysed), ", all on one colour scale. Computed on ",
                   input.analysed.inputs, ".", ChosenText(*input.comparison));
  if (!IsCka(input)) {
    return absl::StrCat(
        "Attention weights from each query token (row) to each key token (column), ",
        IsOfHeads(input) ? "of each head" : MeanText(input),
        ". The colour shows the square root of the weight.", of);
  }
  return absl::StrCat("Linear CKA (", OptionOf(input.analysed, "estimator"),
                      ") between all pairs of sites of one model, from 0 to 1.", of);
}

// Returns, for each setting, the smallest value off the diagonal, or the attention to the first
// key.
std::string MatrixDescription(const Input& input) {
  if (IsEffect(input)) return EffectMapsDescription(input);
  const auto squares = SquaresOf(input);
  std::vector<std::string> texts;
  if (!squares.ok()) return "";
  for (const Square& square : *squares) {
    Extent extent;
    for (size_t row = 0; row < square.side; ++row) {
      for (size_t column = 0; column < row; ++column) extent.Add(square.At(row, column));
    }
    if (extent.empty()) continue;
    texts.push_back(absl::StrCat(report::Listed(square.setting->label), " ",
                                 report::Plain(extent.low(), 3), " to ",
                                 report::Plain(extent.high(), 3)));
  }
  return absl::StrCat("Values below the diagonal: ", report::Enumerated(texts, kMostNamed), ".");
}

}  // namespace

constexpr Kind kMatrix = {
    .name = "matrix",
    .title = "Maps",
    .key = "cka",
    .wide = false,
    .folded = false,
    .reads = Reads::kAnalysis,
    .forms = kMatrixForms,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawMatrix,
    .caption = MatrixCaption,
    .description = MatrixDescription,
};

}  // namespace ablate::figure
