#include "server/report/figure/effect_maps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

bool IsRemoval(const Input& input) { return input.analysed.form->analysis == "remove"; }

bool HasHeads(const Input& input) { return absl::EndsWith(input.analysed.form->axes, "head"); }

bool HasEmbedding(const Input& input) {
  return absl::StartsWith(input.analysed.form->axes, "depth");
}

// One run's values: rows are blocks.
struct EffectMap {
  const AnalysedSetting* setting = nullptr;
  const AnalysedSeed* seed = nullptr;

  size_t rows() const { return seed->shape[0]; }
  size_t columns() const { return seed->shape[1]; }
  double At(size_t row, size_t column) const { return seed->values[row * columns() + column]; }
};

std::vector<EffectMap> EffectMapsOf(const Input& input) {
  std::vector<EffectMap> maps;
  for (const AnalysedSetting& setting : input.analysed.settings) {
    if (!setting.seeds.empty()) maps.push_back({&setting, &setting.seeds[0]});
  }
  return maps;
}

// Returns the texts of the prompt's tokens if they are the same in all maps.
std::vector<std::string> PromptTexts(const std::vector<EffectMap>& maps) {
  const std::vector<std::string> texts = TokenTexts(*maps[0].seed, maps[0].columns());
  const bool same = std::all_of(maps.begin(), maps.end(), [&](const EffectMap& map) {
    return TokenTexts(*map.seed, map.columns()) == texts;
  });
  return same ? texts : std::vector<std::string>();
}

std::string RowName(const Input& input, size_t row) {
  if (!HasEmbedding(input)) return absl::StrCat("block.", row);
  return row == 0 ? "embedding" : absl::StrCat("block.", row - 1);
}

std::string ColumnName(const Input& input, size_t column) {
  return absl::StrCat(HasHeads(input) ? "head." : "", column);
}

Axis NumberedAxis(size_t cells) {
  std::vector<std::string> names;
  while (names.size() < cells) names.push_back(absl::StrCat(names.size()));
  return CellsAxis(names, false);
}

MapPanel EffectPanel(const EffectMap& map, const std::vector<std::string>& texts, size_t* holes) {
  MapPanel panel;
  panel.label = map.setting->label;
  panel.color = StyleOf(map.setting->style).text;
  panel.numbers = true;
  panel.x = NumberedAxis(map.columns());
  panel.y = NumberedAxis(map.rows());
  panel.texts = !texts.empty();
  for (size_t i = 0; i < texts.size(); ++i) panel.x.ticks[i].label = TokenLabel(texts[i]);
  for (size_t i = 0; i <= map.columns(); ++i) panel.x_edges.push_back(static_cast<double>(i));
  for (size_t i = 0; i <= map.rows(); ++i) panel.y_edges.push_back(static_cast<double>(i));
  for (const double value : map.seed->values) {
    panel.values.push_back(std::isfinite(value) ? value : kNone);
    *holes += std::isfinite(value) ? 0 : 1;
  }
  return panel;
}

// Returns a scale that all maps share, with 0 in its middle.
ColorScale EffectScale(const Input& input, const std::vector<EffectMap>& maps) {
  constexpr size_t kTicks = 5;
  double most = 0;
  for (const EffectMap& map : maps) {
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

size_t PairsOf(const Input& input) {
  const auto clean = input.analysed.options.find("clean");
  return clean == input.analysed.options.end() ? 0 : clean->second.size();
}

std::string EffectFootnote(const Input& input, const std::vector<std::string>& texts,
                           size_t holes) {
  std::vector<std::string> sentences = {absl::StrCat(
      StepsText(input.analysed), ", each setting's lowest analysed seed that converged")};
  if (IsRemoval(input)) {
    sentences.push_back(absl::StrCat("replaced by ", OptionOf(input.analysed, "replacement")));
  } else {
    sentences.push_back(absl::StrCat("mean over ", report::Counted(PairsOf(input), "pair"),
                                     HasHeads(input) ? ", patched at all positions" : ""));
  }
  if (!texts.empty()) {
    if (PairsOf(input) > 1) sentences.emplace_back("tokens of the first clean prompt");
    if (std::string signs = SignsText(texts); !signs.empty()) sentences.push_back(std::move(signs));
  }
  if (holes > 0) sentences.push_back(absl::StrCat("white: ", holes, " undefined"));
  return FootnoteOf(std::move(sentences), LeftOutOf(input.analysed.settings), "drawn");
}

// Returns "outputs of each head", the replaced activations.
std::string PartText(const Input& input) {
  const std::string part = OptionOf(input.analysed, "part");
  if (part == "residual") return "the residual stream";
  if (part == "attention") return "the output of attention";
  if (part == "feed_forward") return "the output of the feed-forward sublayer";
  return "the output of one head";
}

}  // namespace

bool IsEffect(const Input& input) {
  return std::any_of(std::begin(kEffectForms), std::end(kEffectForms), [&](const ArrayForm& form) {
    return form.analysis == input.analysed.form->analysis;
  });
}

absl::StatusOr<Drawing> DrawEffectMaps(const Input& input) {
  const std::vector<EffectMap> maps = EffectMapsOf(input);
  const std::vector<std::string> texts =
      HasHeads(input) ? std::vector<std::string>() : PromptTexts(maps);
  std::vector<MapPanel> panels;
  std::string csv(kMatrixCsvHead);
  size_t holes = 0;
  for (const EffectMap& map : maps) {
    panels.push_back(EffectPanel(map, texts, &holes));
    for (size_t row = 0; row < map.rows(); ++row) {
      for (size_t column = 0; column < map.columns(); ++column) {
        AddCsvRow(&csv, input.key, map.setting->label, map.seed->step, map.seed->seed, "",
                  RowName(input, row), ColumnName(input, column), map.At(row, column));
      }
    }
  }
  const MapWords words = {HasHeads(input) ? "Head (from 0)"
                          : texts.empty() ? "Position (from 0)"
                                          : "Token",
                          HasEmbedding(input) ? "Blocks passed (0: embedding)" : "Block (from 0)",
                          EffectFootnote(input, texts, holes)};
  ASSIGN_OR_RETURN(auto figure, DrawMaps(panels, EffectScale(input, maps), words, input.width));
  figure.title =
      AnalysedTitle(input, IsRemoval(input) ? "loss without a head" : "recovered by patching");
  return Drawing{std::move(figure), std::move(csv)};
}

std::string EffectMapsCaption(const Input& input) {
  const std::string common = absl::StrCat(
      " Each setting's lowest analysed seed that converged, ", StepsText(input.analysed),
      ", all on one colour scale around 0.", ChosenText(*input.comparison));
  if (IsRemoval(input)) {
    return absl::StrCat("Change of the loss if the output of one head is replaced by ",
                        OptionOf(input.analysed, "replacement"),
                        ": above 0 the model is worse without it. Computed on ",
                        input.analysed.inputs, ".", common);
  }
  const bool noise = OptionOf(input.analysed, "direction") == "noise";
  return absl::StrCat(
      "Fraction of the difference between two prompts that is recovered if ", PartText(input),
      noise ? " in the pass over the clean prompt is replaced by that over the corrupt one"
            : " in the pass over the corrupt prompt is replaced by that over the clean one",
      HasHeads(input) ? ", at all positions" : ", at one position",
      ". 0: the answer stays, 1: it changes as with the whole prompt.", common);
}

std::string EffectMapsDescription(const Input& input) {
  std::vector<std::string> texts;
  for (const EffectMap& map : EffectMapsOf(input)) {
    double largest = kNone;
    std::string place;
    for (size_t row = 0; row < map.rows(); ++row) {
      for (size_t column = 0; column < map.columns(); ++column) {
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

}  // namespace ablate::figure
