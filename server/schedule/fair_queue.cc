#include "server/schedule/fair_queue.h"

#include <tuple>
#include <utility>

namespace ablate::schedule {

FairQueue::FairQueue(std::vector<storage::QueuedRun> queue, const storage::DeviceShares& shares,
                     const MaxLanes& max_lanes, uint32_t page) {
  for (storage::QueuedRun& run : queue) users_[run.user].runs.push_back(std::move(run));
  for (auto& [name, user] : users_) {
    const auto share = shares.find(name);
    const storage::DeviceShare has = share == shares.end() ? storage::DeviceShare() : share->second;
    user.had = has.used + has.expected;
    const std::optional<int64_t> most = max_lanes == nullptr ? std::nullopt : max_lanes(name);
    if (most.has_value()) user.may_have_more = *most - static_cast<int64_t>(has.training);
    user.has_more = page > 0 && user.runs.size() >= page;
  }
}

bool FairQueue::ComesBefore(const User& a, const User& b) {
  const storage::QueuedRun& one = a.runs[a.next];
  const storage::QueuedRun& other = b.runs[b.next];
  return std::make_tuple(one.priority >= kBackground, a.had, one.place) <
         std::make_tuple(other.priority >= kBackground, b.had, other.place);
}

const storage::QueuedRun* FairQueue::Next() {
  last_ = nullptr;
  const User* out = nullptr;  // the first of those who may have more than the page
  for (auto& [name, user] : users_) {
    if (user.may_have_more.value_or(1) <= 0) continue;
    if (user.next < user.runs.size()) {
      if (last_ == nullptr || ComesBefore(user, *last_)) last_ = &user;
    } else if (user.has_more && user.handed_out && (out == nullptr || user.had < out->had)) {
      out = &user;
    }
  }
  ran_out_ = out != nullptr && (last_ == nullptr || out->had <= last_->had);
  if (ran_out_) last_ = nullptr;
  return last_ == nullptr ? nullptr : &last_->runs[last_->next++];
}

void FairQueue::HandedOut(double micros) {
  last_->had += micros;
  last_->handed_out = true;
  if (last_->may_have_more.has_value()) *last_->may_have_more -= last_->runs[last_->next - 1].lanes;
}

}  // namespace ablate::schedule
