// Turns acknowledged events into promises for later grants.
#include "tests/schedule/simulation/promises.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ablate::simulation {

void PromiseKeeper::Sent(const worker::v1::Event& event, const std::string& environment) {
  const bool promising = event.has_resume_state() && !environment.empty();
  if (!promising && !event.has_finished()) return;
  sent_[{event.lease(), event.seq()}] = {
      runs_[event.lease()], {event.resume_state().step(), environment}, event.has_finished()};
}

void PromiseKeeper::Acknowledged(const worker::v1::Ack& ack) {
  auto entry = sent_.lower_bound({ack.lease(), 0});
  while (entry != sent_.end() && entry->first.first == ack.lease() &&
         entry->first.second <= ack.seq()) {
    Promises::Resume& resume = promises_.resume[entry->second.run];
    resume.step = std::max(resume.step, entry->second.resume.step);
    resume.environment = entry->second.resume.environment;
    if (entry->second.finished) promises_.finished.insert(entry->second.run);
    entry = sent_.erase(entry);
  }
}

std::string PromiseKeeper::CheckGrant(const storage::NewLease& lease,
                                      const storage::GrantedRun& granted) {
  const std::string& run = lease.run;
  const std::string& environment = lease.holder.environment;
  runs_[lease.lease] = run;
  if (promises_.finished.count(run) > 0) {
    return absl::StrCat("run ", run, " is granted again after its end was acknowledged");
  }
  for (auto& [event, sent] : sent_) {
    if (sent.run == run && sent.resume.environment != environment) sent.resume = {};
  }
  const auto resume = promises_.resume.find(run);
  if (resume == promises_.resume.end() || resume->second.step == 0) return "";
  const uint32_t step = resume->second.step;
  if (resume->second.environment != environment) {
    promises_.resume.erase(resume);
    if (granted.resume_step == 0) return "";
    return absl::StrCat("run ", run, " goes on from step ", granted.resume_step,
                        " in another environment");
  }
  if (granted.resume_step >= step) return "";
  return absl::StrCat("run ", run, " goes back to step ", granted.resume_step,
                      " although the state of step ", step, " was acknowledged");
}

}  // namespace ablate::simulation
