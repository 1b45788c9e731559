#include "server/service/watch_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"

namespace ablate::service {

std::string WatchToken(absl::string_view generation, uint64_t change) {
  return absl::StrCat(generation, ".", change);
}

absl::StatusOr<uint64_t> ParseWatchToken(absl::string_view token, absl::string_view generation,
                                         uint64_t newest) {
  if (token.empty()) return uint64_t{0};
  const size_t dot = token.rfind('.');
  uint64_t change = 0;
  if (dot == absl::string_view::npos || dot == 0 ||
      !absl::SimpleAtoi(token.substr(dot + 1), &change)) {
    return lookup::InvalidField("token",
                                absl::StrCat(reflect::Quoted(token), " isn't a watch token"),
                                "the token of an earlier event");
  }
  if (token.substr(0, dot) != generation || change > newest) {
    return lookup::WithReason(
        absl::OutOfRangeError(absl::StrCat("token: watch position ", reflect::Quoted(token),
                                           " expired. Watch again without a token")),
        "TOKEN_EXPIRED");
  }
  return change;
}

bool WatchFeed::IsUrgent(const storage::CellRecord& cell) const {
  if (cell.index >= told_.size()) return true;
  const Told& told = told_[cell.index];
  return told.state != cell.state || !told.values;
}

void WatchFeed::Changed(const std::vector<storage::CellRecord>& cells) {
  for (const storage::CellRecord& cell : cells) {
    seen_ = std::max(seen_, cell.change);
    if (IsUrgent(cell)) {
      held_.erase(cell.index);
      urgent_.push_back(cell);
      continue;
    }
    const auto [place, is_new] = held_.try_emplace(cell.index, Held{cell.change, cell});
    if (is_new) {
      order_.push_back(cell.index);
    } else {
      place->second.cell = cell;
    }
  }
}

std::vector<storage::CellRecord> WatchFeed::Take(absl::Duration now, bool final) {
  std::vector<storage::CellRecord> taken = std::exchange(urgent_, {});
  uint32_t allowed = now >= next_progress_ ? kProgressPerSecond : 0;
  uint32_t given = 0;
  while (!order_.empty() && (final || given < allowed)) {
    const auto held = held_.find(order_.front());
    order_.pop_front();
    if (held == held_.end()) continue;
    taken.push_back(std::move(held->second.cell));
    held_.erase(held);
    ++given;
  }
  if (given > 0) next_progress_ = now + given * absl::Seconds(1) / kProgressPerSecond;
  for (const storage::CellRecord& cell : taken) {
    if (cell.index >= told_.size()) told_.resize(cell.index + 1);
    told_[cell.index].state = cell.state;
  }
  return taken;
}

void WatchFeed::ToldValues(uint32_t cell) {
  if (cell < told_.size()) told_[cell].values = true;
}

std::optional<absl::Duration> WatchFeed::next_time() const {
  if (!urgent_.empty()) return absl::ZeroDuration();
  if (held_.empty()) return std::nullopt;
  return next_progress_;
}

uint64_t WatchFeed::token() const {
  uint64_t token = seen_;
  for (const auto& [index, held] : held_) token = std::min(token, held.since - 1);
  for (const storage::CellRecord& cell : urgent_) token = std::min(token, cell.change - 1);
  return token;
}

}  // namespace ablate::service
