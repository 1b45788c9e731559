#include "server/imports/keys.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

constexpr size_t kListed = 6;

// Returns INVALID_ARGUMENT about a key that no run has.
absl::Status NoSuchKey(const char* field, const std::string& key, const Keys& keys) {
  return lookup::InvalidField(
      field,
      absl::StrCat("no run has ", reflect::Quoted(key), reflect::DidYouMean(key, keys.names())),
      keys.names().empty() ? "a pattern of names that has it"
                           : absl::StrCat("one of ", Listed(keys.names())));
}

absl::Status CheckWanted(const Keys& keys, const std::string& seed,
                         const std::vector<std::string>& wanted) {
  std::set<std::string> known = {seed};
  for (const std::string& key : wanted) {
    if (!keys.Has(key)) return NoSuchKey("settings", key, keys);
    if (known.insert(key).second) continue;
    return lookup::InvalidField(
        "settings",
        absl::StrCat(reflect::Quoted(key), key == seed ? " is the seed" : " is given twice"),
        "keys of different settings");
  }
  return absl::OkStatus();
}

// Returns true if another key has the same part as this one, or a finer one; of two that determine
// each other the first stays.
bool Follows(const Keys& keys, const std::vector<std::string>& vary, size_t key) {
  for (size_t other = 0; other < vary.size(); ++other) {
    if (other == key || !keys.Determines(vary[other], vary[key])) continue;
    if (other < key || !keys.Determines(vary[key], vary[other])) return true;
  }
  return false;
}

}  // namespace

Keys::Keys(const std::vector<Run>& runs, const std::vector<size_t>& used) : runs_(used.size()) {
  std::set<std::string> names;
  for (const size_t run : used) {
    for (const auto& [key, value] : runs[run].settings) names.insert(key);
  }
  names_.assign(names.begin(), names.end());
  for (const std::string& key : names_) {
    Column& column = columns_[key];
    std::unordered_map<std::string, size_t> known;
    for (const size_t run : used) {
      const size_t next = known.size();
      column.numbers.push_back(known.emplace(Identity(runs[run], key), next).first->second);
    }
    column.count = known.size();
  }
}

bool Keys::NamesRuns(const std::string& key) const {
  return runs_ > 1 && columns_.at(key).count == runs_;
}

bool Keys::Determines(const std::string& from, const std::string& to) const {
  const Column& source = columns_.at(from);
  const std::vector<size_t>& target = columns_.at(to).numbers;
  std::vector<size_t> known(source.count, runs_);  // number of `to` by that of `from`
  for (size_t i = 0; i < runs_; ++i) {
    size_t& number = known[source.numbers[i]];
    if (number == runs_) number = target[i];
    if (number != target[i]) return false;
  }
  return true;
}

absl::StatusOr<std::string> FindSeed(const Keys& keys, const std::string& wanted,
                                     std::vector<std::string>* notes) {
  if (!wanted.empty()) {
    if (!keys.Has(wanted)) return NoSuchKey("seed", wanted, keys);
    return wanted;
  }
  std::vector<std::string> named;
  for (const std::string& key : keys.names()) {
    const std::string part = absl::AsciiStrToLower(LastPart(key));
    const bool is_seed = part == kSeedKey || (absl::EndsWith(part, "_seed") && keys.Varies(key));
    if (is_seed) named.insert(key == kSeedKey ? named.begin() : named.end(), key);
  }
  std::vector<std::string> found;
  for (const std::string& key : named) {
    const bool repeats = std::any_of(found.begin(), found.end(), [&](const std::string& other) {
      return keys.Determines(other, key);
    });
    if (!repeats) found.push_back(key);
  }
  if (found.size() > 1) {
    return lookup::InvalidField("seed", absl::StrCat(Listed(found), " may all be the seed"),
                                "one of them");
  }
  if (found.empty()) return "";
  if (found.front() != kSeedKey) notes->push_back(absl::StrCat("seed: ", found.front()));
  return found.front();
}

absl::StatusOr<std::vector<std::string>> FindSettings(const Keys& keys, const std::string& seed,
                                                      const std::vector<std::string>& wanted,
                                                      std::vector<std::string>* notes) {
  if (!wanted.empty()) {
    if (absl::Status wrong = CheckWanted(keys, seed, wanted); !wrong.ok()) return wrong;
    return wanted;
  }
  std::vector<std::string> vary, names, of_seed;
  for (const std::string& key : keys.names()) {
    if (key == seed || !keys.Varies(key)) continue;
    const bool follows = !seed.empty() && keys.Varies(seed) && keys.Determines(seed, key);
    (follows ? of_seed : keys.NamesRuns(key) ? names : vary).push_back(key);
  }
  if (!of_seed.empty() && vary.empty() && names.empty()) {
    return lookup::InvalidField(
        "settings", absl::StrCat("each seed has only one value of ", Listed(of_seed)),
        "runs of equal seeds, or the key of the settings to compare without pairs");
  }
  if (!of_seed.empty()) {
    notes->push_back(
        absl::StrCat("not taken as settings, because the seed determines them: ", Listed(of_seed)));
  }
  if (vary.empty()) {
    if (names.size() > 1) {
      return lookup::InvalidField("settings", absl::StrCat("each run has its own ", Listed(names)),
                                  "the keys of the settings to compare");
    }
    return names;
  }
  if (!names.empty()) {
    notes->push_back(
        absl::StrCat("not taken as settings, because each run has its own: ", Listed(names)));
  }
  std::vector<std::string> settings, follow;
  for (size_t i = 0; i < vary.size(); ++i) {
    (Follows(keys, vary, i) ? follow : settings).push_back(vary[i]);
  }
  if (!follow.empty()) {
    notes->push_back(
        absl::StrCat("not taken as settings, because others determine them: ", Listed(follow)));
  }
  notes->push_back(absl::StrCat("settings: ", Listed(settings)));
  return settings;
}

std::string LastPart(const std::string& key) {
  return key.substr(key.find_last_of("./") + 1);  // npos + 1 is 0
}

std::string Listed(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) {
    shown.push_back(reflect::ShortText(names[i], 80));
  }
  if (names.size() > kListed) shown.push_back("…");
  return absl::StrJoin(shown, ", ");
}

std::string Identity(const Run& run, const std::string& key) {
  const auto value = run.settings.find(key);
  return value == run.settings.end() ? "null" : spec::CanonicalJson(value->second);
}

}  // namespace ablate::imports
