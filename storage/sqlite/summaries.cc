#include "storage/sqlite/summaries.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/bytes.h"

namespace ablate::storage {
namespace {

// The part after a key; its fixed size lets a search skip it.
struct Numbers {
  double first, last, min, max, mean;
  uint64_t count, nonfinite;
  uint32_t first_nonfinite_step, last_step;
};
static_assert(sizeof(Numbers) == 64, "has no padding that would be stored");

Numbers ReadNumbers(absl::string_view stored) {
  Numbers numbers;
  std::memcpy(&numbers, stored.data(), sizeof(numbers));
  return numbers;
}

// Returns the place with which summaries are sealed.
std::string PlaceOf(absl::string_view run) { return absl::StrCat("summaries of ", run); }

absl::Status Invalid(const Column& column, absl::string_view what) {
  const absl::string_view key = absl::string_view(column.key).substr(0, kMaxKeyBytes);
  return absl::InvalidArgumentError(
      absl::StrCat("points: key '", absl::CHexEscape(key), "': ", what));
}

absl::Status CheckSteps(const Column& column) {
  if (column.steps.empty()) return Invalid(column, "has no points; expected at least 1");
  if (column.steps.size() != column.values.size()) {
    return Invalid(column, absl::StrCat("has ", column.steps.size(), " steps but ",
                                        column.values.size(), " values; expected as many"));
  }
  const auto fall = std::adjacent_find(column.steps.begin(), column.steps.end(),
                                       [](uint32_t a, uint32_t b) { return a >= b; });
  if (fall == column.steps.end()) return absl::OkStatus();
  return Invalid(column, absl::StrCat("step ", fall[1], " after step ", fall[0],
                                      "; expected ascending steps"));
}

absl::Status CheckKey(const Column& column) {
  if (column.key.empty()) return Invalid(column, "is empty; expected 1 to 200 bytes");
  if (column.key.size() <= kMaxKeyBytes) return absl::OkStatus();
  return Invalid(
      column, absl::StrCat("has ", column.key.size(), " bytes; expected at most ", kMaxKeyBytes));
}

// Checks a run whose summaries are missing.
absl::Status CheckHasNoPoints(Connection& db, int64_t run) {
  Statement points(db,
                   "SELECT 1 FROM row_groups WHERE run = ?1 UNION ALL SELECT 1 FROM chunks WHERE "
                   "run = ?1 LIMIT 1",
                   run);
  if (!points.Row()) return absl::OkStatus();
  return absl::DataLossError("its summaries are missing, but its points exist. Restore a backup");
}

// Calls `decode` with the stored bytes, which are empty before the run's first point.
template <typename Decode>
auto LoadWith(Connection& db, int64_t run, const Decode& decode) -> decltype(decode("")) {
  Statement stored(db, "SELECT data FROM summaries WHERE run = ?1", run);
  const absl::string_view bytes = stored.Row() ? stored.View(0) : "";
  if (bytes.empty()) {
    RETURN_IF_ERROR(CheckHasNoPoints(db, run));
  }
  auto decoded = decode(bytes);
  if (decoded.ok()) return decoded;
  return absl::DataLossError(
      absl::StrCat("its summaries are damaged in the database: ", decoded.status().message()));
}

// Finds keys by number. Workers send a run's keys in the same order every time, so that the first
// guess is nearly always right.
class KeyIndex {
 public:
  explicit KeyIndex(KeySummaries* summaries) : summaries_(summaries) {}

  std::optional<uint32_t> Find(const std::string& key) {
    if (next_ < summaries_->size() && (*summaries_)[next_].summary.key == key) return next_++;
    for (; indexed_ < summaries_->size(); ++indexed_) {
      numbers_.emplace((*summaries_)[indexed_].summary.key, indexed_);
    }
    const auto found = numbers_.find(key);
    if (found == numbers_.end()) return std::nullopt;
    next_ = found->second + 1;
    return found->second;
  }

 private:
  KeySummaries* summaries_;
  uint32_t next_ = 0;
  uint32_t indexed_ = 0;
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace

std::string EncodeSummaries(absl::string_view run, const KeySummaries& summaries) {
  std::string out;
  for (const KeySummary& entry : summaries) {
    const Summary& s = entry.summary;
    PutText(&out, s.key);
    const Numbers numbers{s.first,        s.last,  s.min,       s.max,
                          s.mean,         s.count, s.nonfinite, s.first_nonfinite_step.value_or(0),
                          entry.last_step};
    out.append(reinterpret_cast<const char*>(&numbers), sizeof(numbers));
  }
  return Seal(PlaceOf(run), out);
}

absl::StatusOr<KeySummaries> DecodeSummaries(absl::string_view run, absl::string_view bytes) {
  KeySummaries summaries;
  if (bytes.empty()) return summaries;
  ASSIGN_OR_RETURN(const auto content, Unseal(PlaceOf(run), bytes));
  ByteReader in(content);
  while (in.ok() && !in.empty()) {
    KeySummary entry;
    Summary& s = entry.summary;
    s.key = std::string(in.Text());
    const absl::string_view stored = in.Take(sizeof(Numbers));
    if (!in.ok()) break;
    const Numbers numbers = ReadNumbers(stored);
    s.first = numbers.first;
    s.last = numbers.last;
    s.min = numbers.min;
    s.max = numbers.max;
    s.mean = numbers.mean;
    s.count = numbers.count;
    s.nonfinite = numbers.nonfinite;
    if (s.nonfinite > 0) s.first_nonfinite_step = numbers.first_nonfinite_step;
    entry.last_step = numbers.last_step;
    summaries.push_back(std::move(entry));
  }
  if (!in.ok()) return absl::DataLossError("they are malformed");
  return summaries;
}

absl::StatusOr<std::optional<FoundKey>> FindKey(absl::string_view run, absl::string_view bytes,
                                                absl::string_view key) {
  std::optional<FoundKey> found;
  if (bytes.empty()) return found;
  ASSIGN_OR_RETURN(const auto content, Unseal(PlaceOf(run), bytes));
  ByteReader in(content);
  for (uint32_t number = 0; !in.empty() && !found.has_value(); ++number) {
    const bool wanted = in.Text() == key;
    const absl::string_view stored = in.Take(sizeof(Numbers));
    if (!in.ok()) return absl::DataLossError("they are malformed");
    if (!wanted) continue;
    const Numbers numbers = ReadNumbers(stored);
    found = FoundKey{number, numbers.count, numbers.last_step};
  }
  return found;
}

absl::StatusOr<KeySummaries> LoadSummaries(Connection& db, int64_t run, absl::string_view name) {
  return LoadWith(db, run, [&](absl::string_view bytes) { return DecodeSummaries(name, bytes); });
}

absl::StatusOr<std::optional<FoundKey>> LoadKey(Connection& db, int64_t run, absl::string_view name,
                                                absl::string_view key) {
  return LoadWith(db, run, [&](absl::string_view bytes) { return FindKey(name, bytes, key); });
}

void AddPoints(const Column& column, KeySummary* entry) {
  Summary& s = entry->summary;
  for (size_t i = 0; i < column.values.size(); ++i) {
    const double value = column.values[i];
    ++s.count;
    s.last = value;
    if (!std::isfinite(value)) {
      if (s.nonfinite++ == 0) s.first_nonfinite_step = column.steps[i];
      continue;
    }
    const auto finite = static_cast<double>(s.count - s.nonfinite);
    if (finite == 1) {
      s.first = s.min = s.max = s.mean = value;
    } else {
      s.min = std::min(s.min, value);
      s.max = std::max(s.max, value);
      // Divided separately: the difference of two finite values need not be finite.
      s.mean += value / finite - s.mean / finite;
    }
  }
  entry->last_step = column.steps.back();
}

void SaveSummaries(Connection& db, int64_t run, absl::string_view name,
                   const KeySummaries& summaries) {
  Statement(db, "REPLACE INTO summaries VALUES (?1, ?2)", run,
            Bytes{EncodeSummaries(name, summaries)})
      .Run();
}

void ForgetLastValues(Connection& db, int64_t run, absl::string_view name) {
  auto summaries = LoadSummaries(db, run, name);
  if (!summaries.ok()) return;
  for (KeySummary& entry : *summaries) entry.summary.last = NAN;
  SaveSummaries(db, run, name, *summaries);
}

absl::StatusOr<std::vector<uint32_t>> NumberKeys(const std::vector<Column>& columns,
                                                 KeySummaries* summaries) {
  KeyIndex index(summaries);
  std::vector<uint32_t> numbers;
  std::vector<bool> seen(summaries->size() + columns.size());
  for (const Column& column : columns) {
    absl::Status status = CheckKey(column);
    if (status.ok()) status = CheckSteps(column);
    if (!status.ok()) return status;
    std::optional<uint32_t> number = index.Find(column.key);
    if (!number.has_value()) {
      if (summaries->size() == kMaxKeys) {
        return Invalid(column,
                       absl::StrCat("is one too many; expected at most ", kMaxKeys, " keys"));
      }
      number = static_cast<uint32_t>(summaries->size());
      summaries->emplace_back().summary.key = column.key;
    }
    if (seen[*number]) return Invalid(column, "is repeated; expected once");
    seen[*number] = true;
    const KeySummary& entry = (*summaries)[*number];
    if (entry.summary.count > 0 && column.steps.front() <= entry.last_step) {
      return Invalid(column, absl::StrCat("step ", column.steps.front(), " after step ",
                                          entry.last_step, "; expected ascending steps"));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace ablate::storage
