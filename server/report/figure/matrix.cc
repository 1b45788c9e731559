// Maps of an analysis, one panel per setting: similarity of sites, attention, and the effect of
// changing a part of the model, by block and by position or head.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/style.h"
#include "server/report/figure/token_labels.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kLayerMaps = "layer_maps", kHeadMaps = "head_maps";
constexpr absl::string_view kBlockHead = "block,head";
constexpr ArrayForm kMatrixForms[] = {
    {"cka", "cka", "representation,other", "", "", false},
    {"attention", "model_map", "query,key", "", "", false, {}, kTokenArrays},
    {"attention", kLayerMaps, "block,query,key", "", "", false, {}, kTokenArrays},
    {"attention", kHeadMaps, "block,head,query,key", "", "", false, {}, kTokenArrays},
    // Effects: the columns are heads, changed at all positions, or positions.
    {"patch", "recovered_all", kBlockHead, "", "", false},
    {"patch", "recovered", "depth,position", "", "", false, {}, kTokenArrays},
    {"patch", "recovered", "block,position", "", "", false, {}, kTokenArrays},
    {"remove", "loss_change", kBlockHead, "", "", false}};

bool IsOfHeads(const Input& input) { return input.analyzed.form->array == kHeadMaps; }

bool IsCka(const Input& input) { return input.analyzed.form->analysis == kMatrixForms[0].analysis; }

bool IsRemoval(const Input& input) { return input.analyzed.form->analysis == "remove"; }

bool IsEffect(const Input& input) {
  return IsRemoval(input) || input.analyzed.form->analysis == "patch";
}

// Return true if the columns of effects are heads, and if the first row is the embedding.
bool HasHeads(const Input& input) { return input.analyzed.form->axes == kBlockHead; }
bool HasEmbedding(const Input& input) {
  return absl::StartsWith(input.analyzed.form->axes, "depth");
}

// A part of a run's array by its last two axes.
struct Map {
  const AnalyzedSetting* setting = nullptr;
  const AnalyzedSeed* seed = nullptr;
  size_t index = 0;  // of several, in the array's order
  size_t rows = 0, columns = 0;

  double At(size_t row, size_t column) const {
    return seed->values[(index * rows + row) * columns + column];
  }
};

// Returns the maps of each setting's lowest seed; FAILED_PRECONDITION if one must be square and
// isn't.
absl::StatusOr<std::vector<Map>> MapsOf(const Input& input) {
  std::vector<Map> maps;
  for (const AnalyzedSetting& setting : input.analyzed.settings) {
    if (setting.seeds.empty()) continue;
    const AnalyzedSeed& seed = setting.seeds[0];
    const size_t n = seed.shape.size(), rows = seed.shape[n - 2], columns = seed.shape[n - 1];
    if (rows != columns && !IsEffect(input)) {
      return absl::FailedPreconditionError(absl::StrCat("key: the map of ", setting.label, " has ",
                                                        rows, " rows and ", columns,
                                                        " columns; expected a square map"));
    }
    const size_t count = seed.values.size() / (rows * columns);
    for (size_t index = 0; index < count; ++index) {
      maps.push_back({&setting, &seed, index, rows, columns});
    }
  }
  return maps;
}

size_t HeadsOf(const Map& map) { return map.seed->shape.size() > 3 ? map.seed->shape[1] : 1; }

// Returns "block.0" for a map of a layer, "block.0.head.1" for one of a head; otherwise "".
std::string PlaceName(const Map& map) {
  const size_t dimensions = map.seed->shape.size();
  if (dimensions < 3) return "";
  const size_t heads = HeadsOf(map);
  return absl::StrCat("block.", map.index / heads,
                      dimensions > 3 ? absl::StrCat(".head.", map.index % heads) : "");
}

// Returns names of a CKA's sites, if known: the requested ones, or the embedding and every block's
// output.
std::vector<std::string> SiteNames(const Input& input, size_t sites) {
  const auto asked = input.analyzed.options.find("sites");
  if (asked != input.analyzed.options.end() && asked->second.size() == sites) return asked->second;
  std::vector<std::string> names = {"embedding"};
  while (names.size() < sites) {
    names.push_back(absl::StrCat("block.", names.size() - 1, ".output"));
  }
  return names;
}

bool HasDefaultSites(const Input& input) { return OptionOf(input.analyzed, "sites").empty(); }

// Returns the texts of the tokens if all maps have the same: from their arrays, or the characters
// of the prompt that attention read.
std::vector<std::string> TextsOf(const Input& input, const std::vector<Map>& maps) {
  std::vector<std::string> shared;
  if (IsCka(input) || HasHeads(input)) return shared;
  for (size_t i = 0; i < maps.size(); ++i) {
    std::vector<std::string> texts = TokenTexts(*maps[i].seed, maps[i].columns);
    if (texts.empty() && !IsEffect(input)) {
      texts = CharactersOf(input.analyzed.prompt, maps[i].columns);
    }
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
  const size_t first = IsEffect(input) || (IsCka(input) && HasDefaultSites(input)) ? 0 : 1;
  while (names.size() < cells) names.push_back(absl::StrCat(names.size() + first));
  return names;
}

// Returns true if no query attends to a later key.
bool IsCausal(const Map& map) {
  for (size_t row = 0; row < map.rows; ++row) {
    for (size_t column = row + 1; column < map.rows; ++column) {
      if (map.At(row, column) != 0) return false;
    }
  }
  return map.rows > 1;
}

struct Found {
  size_t below = 0, above = 0;  // values beyond the scale
  size_t holes = 0;
  bool causal = false;
};

MapPanel PanelOf(const Input& input, const std::vector<std::string>& texts, const Map& map,
                 Found* found) {
  const bool effect = IsEffect(input);
  const bool up = effect || IsCka(input);  // like blocks; queries go down like text
  const bool causal = !up && IsCausal(map);
  found->causal = found->causal || causal;
  MapPanel panel;
  panel.label = map.setting->label;
  if (IsOfHeads(input)) {  // short, because panels are small
    const size_t heads = HeadsOf(map);
    panel.place = absl::StrCat(map.index / heads, ".", map.index % heads);
  } else {
    panel.place = PlaceName(map);
  }
  panel.color = StyleOf(map.setting->style).text;
  panel.texts = !texts.empty();
  panel.x = CellsAxis(CellNames(input, texts, map.columns), false);
  panel.y = effect ? CellsAxis(CellNames(input, {}, map.rows), false)
                   : CellsAxis(CellNames(input, texts, map.rows), !up);
  for (size_t i = 0; i <= map.columns; ++i) panel.x_edges.push_back(static_cast<double>(i));
  for (size_t i = 0; i <= map.rows; ++i) panel.y_edges.push_back(static_cast<double>(i));
  panel.numbers = up;
  for (size_t i = 0; i < map.rows; ++i) {
    const size_t row = up ? i : map.rows - 1 - i;
    for (size_t column = 0; column < map.columns; ++column) {
      const double value = map.At(row, column);
      const bool masked = causal && column > row;
      panel.values.push_back(std::isfinite(value) && !masked ? value : kNone);
      found->holes += std::isfinite(value) ? 0 : 1;
      if (effect) continue;  // their scale has all values
      found->below += value < 0 ? 1 : 0;
      found->above += value > 1 + 1e-9 ? 1 : 0;
    }
  }
  return panel;
}

// Returns a scale that all maps share, with 0 in its middle.
ColorScale EffectScale(const Input& input, const std::vector<Map>& maps) {
  constexpr size_t kTicks = 5;
  double most = 0;
  for (const Map& map : maps) {
    for (const double value : map.seed->values) {
      if (std::isfinite(value)) most = std::max(most, std::abs(value));
    }
  }
  Extent extent;
  for (const double end : {-1, 1}) extent.Add(most > 0 ? end * most : end);
  ColorScale scale;
  scale.axis = LinearAxis(extent, 0, kTicks);
  scale.diverging = true;
  scale.title = IsRemoval(input) ? "Δ loss (nats)" : "Recovered";
  return scale;
}

ColorScale ScaleOf(const Input& input, const std::vector<Map>& maps) {
  if (IsEffect(input)) return EffectScale(input, maps);
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
  const bool all = input.analyzed.form->array == kMatrixForms[1].array;
  return all ? "mean over heads and blocks" : "mean over heads";
}

size_t PairsOf(const Input& input) {
  const auto clean = input.analyzed.options.find("clean");
  return clean == input.analyzed.options.end() ? 0 : clean->second.size();
}

// Adds sentences about what was replaced, and about the tokens.
void AddEffectSentences(const Input& input, const std::vector<std::string>& texts,
                        std::vector<std::string>* sentences) {
  if (IsRemoval(input)) {
    sentences->push_back(absl::StrCat("replaced by ", OptionOf(input.analyzed, "replacement")));
  } else {
    sentences->push_back(absl::StrCat("mean over ", report::Counted(PairsOf(input), "pair"),
                                      HasHeads(input) ? ", patched at all positions" : ""));
  }
  const bool several = !texts.empty() && PairsOf(input) > 1;
  if (several) sentences->emplace_back("tokens of the first clean prompt");
}

std::string MatrixFootnote(const Input& input, const std::vector<Map>& maps,
                           const std::vector<std::string>& texts, const Found& found) {
  std::vector<std::string> sentences = {absl::StrCat(
      StepsText(input.analyzed), ", each setting's lowest analyzed seed that converged")};
  if (IsCka(input)) {
    sentences.push_back(absl::StrCat("linear CKA, ", OptionOf(input.analyzed, "estimator")));
    if (!HasDefaultSites(input)) sentences.push_back(SitesText(input, maps[0].rows));
  } else if (IsEffect(input)) {
    AddEffectSentences(input, texts, &sentences);
  } else {
    sentences.push_back(IsOfHeads(input) ? "titles: block.head, both from 0" : MeanText(input));
    sentences.emplace_back("query tokens from top to bottom");
  }
  if (std::string signs = SignsText(texts); !signs.empty()) sentences.push_back(std::move(signs));
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
  return FootnoteOf(std::move(sentences), LeftOutOf(input.analyzed.settings), "drawn");
}

std::string RowName(const Input& input, size_t row) {
  if (!HasEmbedding(input)) return absl::StrCat("block.", row);
  return row == 0 ? "embedding" : absl::StrCat("block.", row - 1);
}

std::string ColumnName(const Input& input, size_t column) {
  return absl::StrCat(HasHeads(input) ? "head." : "", column);
}

std::string MatrixCsv(const Input& input, const std::vector<Map>& maps) {
  // All analyses have the same columns, so that their figures can be joined.
  std::string csv = "label,setting,step,seed,block,row,column,value\n";
  for (const Map& map : maps) {
    const std::vector<std::string> names =
        IsCka(input) ? SiteNames(input, map.rows) : std::vector<std::string>();
    const auto name = [&](size_t i, auto effect_name) {
      if (IsEffect(input)) return effect_name(input, i);
      return names.empty() ? absl::StrCat(i) : names[i];
    };
    for (size_t row = 0; row < map.rows; ++row) {
      for (size_t column = 0; column < map.columns; ++column) {
        AddCsvRow(&csv, input.key, map.setting->label, map.seed->step, map.seed->seed,
                  PlaceName(map), name(row, RowName), name(column, ColumnName),
                  map.At(row, column));
      }
    }
  }
  return csv;
}

// Returns the range of each map's values below the diagonal.
std::string MatrixDescription(const std::vector<Map>& maps) {
  std::vector<std::string> texts;
  for (const Map& map : maps) {
    Extent extent;
    for (size_t row = 0; row < map.rows; ++row) {
      for (size_t column = 0; column < row; ++column) extent.Add(map.At(row, column));
    }
    if (extent.empty()) continue;
    texts.push_back(absl::StrCat(report::Listed(map.setting->label), " ",
                                 report::Plain(extent.low(), 3), " to ",
                                 report::Plain(extent.high(), 3)));
  }
  return absl::StrCat("Values below the diagonal: ", report::Enumerated(texts, kMostNamed), ".");
}

// Returns each map's largest value and its place.
std::string EffectsDescription(const Input& input, const std::vector<Map>& maps) {
  std::vector<std::string> texts;
  for (const Map& map : maps) {
    double largest = kNone;
    std::string place;
    for (size_t row = 0; row < map.rows; ++row) {
      for (size_t column = 0; column < map.columns; ++column) {
        const double value = map.At(row, column);
        if (!std::isfinite(value) || value <= largest) continue;
        largest = value;
        place = absl::StrCat(RowName(input, row), HasHeads(input) ? "." : ", position ",
                             ColumnName(input, column));
      }
    }
    texts.push_back(place.empty() ? absl::StrCat(report::Listed(map.setting->label), " undefined")
                                  : absl::StrCat(report::Listed(map.setting->label), " ",
                                                 report::Plain(largest, 2), " at ", place));
  }
  return absl::StrCat(
      IsRemoval(input) ? "Largest change of the loss: " : "Largest recovered fraction: ",
      report::Enumerated(texts, kMostNamed), ".");
}

MapWords WordsOf(const Input& input, bool texts) {
  MapWords words;
  if (IsEffect(input)) {
    words.x = HasHeads(input) ? "Head (from 0)" : texts ? "Token" : "Position (from 0)";
    words.y = HasEmbedding(input) ? "Blocks passed (0: embedding)" : "Block (from 0)";
  } else if (IsCka(input)) {
    words.x = words.y = HasDefaultSites(input) ? "Blocks passed (0: embedding)" : "Site";
  } else {
    words.x = "Key token";
    words.y = "Query token";
    words.remedy = absl::StrCat("Use a shorter prompt",
                                IsOfHeads(input) ? absl::StrCat(", or ", kLayerMaps) : "");
  }
  return words;
}

// Returns what the maps show, for the title.
absl::string_view SubjectOf(const Input& input) {
  if (IsEffect(input)) return IsRemoval(input) ? "loss without a head" : "recovered by patching";
  return IsCka(input) ? "similarity of sites" : "attention";
}

absl::StatusOr<Drawing> DrawMatrix(const Input& input) {
  ASSIGN_OR_RETURN(const auto maps, MapsOf(input));
  std::vector<MapPanel> panels;
  Found found;
  const std::vector<std::string> texts = TextsOf(input, maps);
  for (const Map& map : maps) panels.push_back(PanelOf(input, texts, map, &found));
  MapWords words = WordsOf(input, !texts.empty());
  words.footnote = MatrixFootnote(input, maps, texts, found);
  // A row of panels has all heads of a block if there is room.
  const size_t columns = IsOfHeads(input) ? HeadsOf(maps[0]) : 0;
  ASSIGN_OR_RETURN(auto figure,
                   DrawMaps(panels, ScaleOf(input, maps), words, input.width, columns));
  figure.title = AnalyzedTitle(input, SubjectOf(input));
  figure.description = IsEffect(input) ? EffectsDescription(input, maps) : MatrixDescription(maps);
  return Drawing{std::move(figure), MatrixCsv(input, maps)};
}

// Returns "outputs of each head", the replaced activations.
std::string PartText(const Input& input) {
  const std::string part = OptionOf(input.analyzed, "part");
  if (part == "residual") return "the residual stream";
  if (part == "attention") return "the output of attention";
  if (part == "feed_forward") return "the output of the feed-forward sublayer";
  return "the output of one head";
}

std::string EffectCaption(const Input& input) {
  const std::string common = absl::StrCat(
      " Each setting's lowest analyzed seed that converged, ", StepsText(input.analyzed),
      ", all on one colour scale around 0.", ChosenText(*input.comparison));
  if (IsRemoval(input)) {
    return absl::StrCat("Change of the loss if the output of one head is replaced by ",
                        OptionOf(input.analyzed, "replacement"),
                        ": above 0 the model is worse without it. Computed on ",
                        input.analyzed.inputs, ".", common);
  }
  const bool noise = OptionOf(input.analyzed, "direction") == "noise";
  return absl::StrCat(
      "Fraction of the difference between two prompts that is recovered if ", PartText(input),
      noise ? " in the pass over the clean prompt is replaced by that over the corrupt one"
            : " in the pass over the corrupt prompt is replaced by that over the clean one",
      HasHeads(input) ? ", at all positions" : ", at one position",
      ". 0: the answer stays, 1: it changes as with the whole prompt.", common);
}

std::string MatrixCaption(const Input& input) {
  if (IsEffect(input)) return EffectCaption(input);
  const std::string of =
      absl::StrCat(" Each setting's lowest analyzed seed that converged, ",
                   StepsText(input.analyzed), ", all on one colour scale. Computed on ",
                   input.analyzed.inputs, ".", ChosenText(*input.comparison));
  if (!IsCka(input)) {
    return absl::StrCat(
        "Attention weights from each query token (row) to each key token (column), ",
        IsOfHeads(input) ? "of each head" : MeanText(input),
        ". The colour shows the square root of the weight.", of);
  }
  return absl::StrCat("Linear CKA (", OptionOf(input.analyzed, "estimator"),
                      ") between all pairs of sites of one model, from 0 to 1.", of);
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
};

}  // namespace ablate::figure
