#include "server/report/figure/family.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "server/report/compare/metric_names.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kAnyBlock = "block.*", kAnyLevel = "@*";

// The parts before and after the number in the keys of a family.
struct FamilyParts {
  std::string before, behind;
};

FamilyParts BlockParts(absl::string_view family) {
  const size_t at = family.find(kAnyBlock);
  if (at == absl::string_view::npos) return {absl::StrCat(family, "/"), ""};
  return {std::string(family.substr(0, at)), std::string(family.substr(at + kAnyBlock.size()))};
}

// Returns nothing if the family has no @*.
std::optional<FamilyParts> LevelParts(absl::string_view family) {
  const size_t at = family.find(kAnyLevel);
  if (at == absl::string_view::npos) return std::nullopt;
  return FamilyParts{absl::StrCat(family.substr(0, at), "@"),
                     std::string(family.substr(at + kAnyLevel.size()))};
}

std::string BlockKey(const FamilyParts& parts, uint32_t position) {
  return position == 0 ? absl::StrCat(parts.before, "embedding")
                       : absl::StrCat(parts.before, "block.", position - 1, parts.behind);
}

std::optional<double> BlockOf(absl::string_view family, absl::string_view key) {
  const FamilyParts parts = BlockParts(family);
  if (key == BlockKey(parts, 0)) return 0;
  uint32_t block = 0;
  absl::string_view rest = key;
  const bool read = absl::ConsumePrefix(&rest, parts.before) &&
                    absl::ConsumePrefix(&rest, "block.") &&
                    absl::ConsumeSuffix(&rest, parts.behind) && absl::SimpleAtoi(rest, &block) &&
                    block < UINT32_MAX;
  // Accept the canonical form only: "block.03" isn't a block.
  if (!read || key != BlockKey(parts, block + 1)) return std::nullopt;
  return block + 1;
}

// Returns the number that `text` is; nothing if it isn't a level.
std::optional<double> ReadLevel(absl::string_view text) {
  double level = 0;
  const bool digit = !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0]));
  if (!digit || !absl::SimpleAtod(text, &level) || !std::isfinite(level)) return std::nullopt;
  return level;
}

std::optional<double> LevelOf(absl::string_view family, absl::string_view key) {
  const std::optional<FamilyParts> parts = LevelParts(family);
  if (!parts.has_value() || !absl::ConsumePrefix(&key, parts->before) ||
      !absl::ConsumeSuffix(&key, parts->behind)) {
    return std::nullopt;
  }
  return ReadLevel(key);
}

std::optional<std::string> BlockFamily(absl::string_view key) {
  constexpr absl::string_view kFirst = "/block.0";
  const size_t at = key.find(kFirst);
  if (at == absl::string_view::npos || at == 0) return std::nullopt;
  const absl::string_view before = key.substr(0, at), behind = key.substr(at + kFirst.size());
  if (behind.empty()) return std::string(before);
  // Otherwise it is a block such as block.03, or of several blocks.
  if (behind[0] != '.' || absl::StrContains(behind, "block.")) return std::nullopt;
  return absl::StrCat(before, "/", kAnyBlock, behind);
}

std::optional<std::string> LevelFamily(absl::string_view key) {
  const size_t at = key.find('@'), end = key.find('/', at);
  if (at == absl::string_view::npos || end == absl::string_view::npos) return std::nullopt;
  if (!ReadLevel(key.substr(at + 1, end - at - 1)).has_value()) return std::nullopt;
  return absl::StrCat(key.substr(0, at), kAnyLevel, key.substr(end));
}

}  // namespace

std::string KeyAt(Along along, absl::string_view family, double place) {
  if (along == Along::kBlocks) return BlockKey(BlockParts(family), static_cast<uint32_t>(place));
  const std::optional<FamilyParts> parts = LevelParts(family);
  if (!parts.has_value()) return std::string(family);
  return absl::StrCat(parts->before, text::ShortestDecimal(place), parts->behind);
}

std::optional<double> PlaceOf(Along along, absl::string_view family, absl::string_view key) {
  return along == Along::kBlocks ? BlockOf(family, key) : LevelOf(family, key);
}

std::optional<std::string> FamilyOf(Along along, absl::string_view key) {
  return along == Along::kBlocks ? BlockFamily(key) : LevelFamily(key);
}

std::string PerturbationOf(absl::string_view family) {
  const size_t end = family.find(kAnyLevel);
  if (end == absl::string_view::npos) return "";
  const absl::string_view before = family.substr(0, end);
  const size_t slash = before.rfind('/');
  return std::string(slash == absl::string_view::npos ? before : before.substr(slash + 1));
}

std::string FamilyText(Along along, absl::string_view family, report::MetricSource source) {
  std::string text = report::NameOfFamily(family, source).text;
  if (along == Along::kBlocks || text == family) return text;
  return absl::StrCat(text, " under ", PerturbationOf(family));
}

}  // namespace ablate::figure
