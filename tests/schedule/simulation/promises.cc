// Turns acknowledged events into what a later grant has to respect.
#include "tests/schedule/simulation/promises.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ablate::simulation {

void PromiseKeeper::Sent(const worker::v1::Event& event) {
  if (!event.has_resume_state() && !event.has_finished()) return;
  sent_[{event.lease(), event.seq()}] = {event.run(), event.resume_state().step(),
                                         event.has_finished()};
}

void PromiseKeeper::Acknowledged(const worker::v1::Ack& ack) {
  auto entry = sent_.lower_bound({ack.lease(), 0});
  while (entry != sent_.end() && entry->first.first == ack.lease() &&
         entry->first.second <= ack.seq()) {
    uint32_t& step = promises_.resume_step[entry->second.run];
    step = std::max(step, entry->second.resume_step);
    if (entry->second.finished) promises_.finished.insert(entry->second.run);
    entry = sent_.erase(entry);
  }
}

std::string PromiseKeeper::CheckGrant(const storage::GrantedRun& run) const {
  if (promises_.finished.count(run.run) > 0) {
    return absl::StrCat("run ", run.run, " is granted again after its end was acknowledged");
  }
  const auto step = promises_.resume_step.find(run.run);
  if (step != promises_.resume_step.end() && run.resume_step < step->second) {
    return absl::StrCat("run ", run.run, " goes back to step ", run.resume_step,
                        " although the state of step ", step->second, " was acknowledged");
  }
  return "";
}

}  // namespace ablate::simulation
