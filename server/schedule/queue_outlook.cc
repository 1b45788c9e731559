#include "server/schedule/queue_outlook.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace ablate::schedule {
namespace {

using storage::QueuedGroup;

constexpr absl::string_view kEnvironment = "program:";
constexpr size_t kNamedUsers = 3;

// Lane time in microseconds: as expected, and its bounds.
struct Work {
  double expected = 0, least = 0, most = 0;

  Work& operator+=(const Work& other) {
    expected += other.expected;
    least += other.least;
    most += other.most;
    return *this;
  }
  // Returns the part of it that has this much expected time.
  Work Part(double share) const {
    const double part = expected > 0 ? std::clamp(share / expected, 0.0, 1.0) : 0;
    return {expected * part, least * part, most * part};
  }
};

struct Lanes {
  uint32_t all = 0, busy = 0;
};

class Queue {
 public:
  explicit Queue(const QueueFacts& facts) : facts_(facts) {
    for (const QueuedGroup& group : facts.groups) {
      if (group.paused) continue;
      const bool background = group.priority >= kBackground;
      total_[{group.device_kind, group.user, background}] += WorkOf(group);
      users_.insert(group.user);
    }
  }

  ExperimentOutlook Look(const QueuedGroup& group) const {
    ExperimentOutlook outlook;
    outlook.group = &group;
    const Lanes lanes = LanesFor(group);
    outlook.waits = WhyBlocked(group, lanes);
    const bool known = !group.paused && facts_.stalled.empty() && lanes.all > 0;
    std::set<std::string> others;
    const Work own = OwnBefore(group);
    const Work ahead = OthersBefore(group, own, &others);
    if (outlook.waits.empty()) outlook.waits = WhyLater(group, own, others, lanes);
    if (!known) return outlook;
    const bool busy = lanes.busy >= lanes.all;
    const double running = busy ? Running() : 0;
    const double least = (own.least + ahead.least) / lanes.all;
    const double most = (own.most + ahead.most + 1.3 * running) / lanes.all;
    outlook.start = {absl::Microseconds(least), absl::Microseconds(most)};
    return outlook;
  }

 private:
  Work WorkOf(const QueuedGroup& group) const {
    const auto step = facts_.step_micros.find(group.shape);
    if (step == facts_.step_micros.end()) {
      const double guess = kUnknownRunMicros * group.runs;
      return {guess, 0.2 * guess, 5 * guess};
    }
    const double micros = step->second * static_cast<double>(group.steps);
    return {micros, 0.8 * micros, 1.3 * micros};
  }

  double Had(const std::string& user) const {
    const auto share = facts_.shares.find(user);
    return share == facts_.shares.end() ? 0 : share->second.used + share->second.expected;
  }

  double Running() const {
    double running = 0;
    for (const auto& [user, share] : facts_.shares) running += share.expected;
    return running;
  }

  Work Total(const std::string& kind, const std::string& user, bool background) const {
    const auto total = total_.find({kind, user, background});
    return total == total_.end() ? Work() : total->second;
  }

  // Returns the lanes that take runs of the group.
  Lanes LanesFor(const QueuedGroup& group) const {
    Lanes lanes;
    for (const WorkerInfo& worker : facts_.workers) {
      const bool takes = worker.attached && !worker.analysis && worker.unusable.empty() &&
                         worker.device_kind == group.device_kind &&
                         worker.trainers.count(group.trainer) > 0;
      if (!takes) continue;
      lanes.all += worker.lanes;
      lanes.busy += worker.busy_lanes;
    }
    return lanes;
  }

  Work OwnBefore(const QueuedGroup& group) const {
    Work before;
    for (const QueuedGroup& other : facts_.groups) {
      const bool ahead =
          !other.paused && other.user == group.user && other.device_kind == group.device_kind &&
          other.experiment != group.experiment &&
          std::tie(other.priority, other.place) < std::tie(group.priority, group.place);
      if (ahead) before += WorkOf(other);
    }
    return before;
  }

  // Adds the users to `who`.
  Work OthersBefore(const QueuedGroup& group, const Work& own, std::set<std::string>* who) const {
    const bool background = group.priority >= kBackground;
    const double level = Had(group.user) + own.expected;
    Work before;
    for (const std::string& user : users_) {
      if (user == group.user) continue;
      const Work normal = Total(group.device_kind, user, false);
      Work first = background ? normal : normal.Part(level - Had(user));
      if (background) {
        const double had = Had(user) + normal.expected;
        first += Total(group.device_kind, user, true).Part(level - had);
      }
      if (first.expected > 0) who->insert(user);
      before += first;
    }
    return before;
  }

  // Returns why no run of the group can begin; empty if that is a matter of time.
  std::string WhyBlocked(const QueuedGroup& group, const Lanes& lanes) const {
    if (group.paused) return "paused: `ablate queue resume` lets it proceed";
    if (!facts_.stalled.empty()) return facts_.stalled;
    if (lanes.all == 0) return WhyNoLane(group);
    const auto most = facts_.max_lanes ? facts_.max_lanes(group.user) : std::nullopt;
    const auto share = facts_.shares.find(group.user);
    const int64_t used = share == facts_.shares.end() ? 0 : share->second.training;
    if (!most.has_value() || used < *most) return "";
    return absl::StrCat("the quota of ", group.user, ", ", *most, *most == 1 ? " lane" : " lanes",
                        ", is used");
  }

  std::string WhyNoLane(const QueuedGroup& group) const {
    std::vector<const PendingPilot*> pilots;
    for (const PendingPilot& pilot : facts_.pilots) {
      if (pilot.device_kind == group.device_kind) pilots.push_back(&pilot);
    }
    if (!pilots.empty()) {
      const std::string reason = pilots.front()->reason;
      return absl::StrCat(pilots.size() == 1
                              ? "waits for a pilot"
                              : absl::StrCat("waits for the first of ", pilots.size(), " pilots"),
                          " of ", pilots.front()->cluster, reason.empty() ? "" : ": ", reason);
    }
    const bool has_kind = std::any_of(
        facts_.workers.begin(), facts_.workers.end(), [&group](const WorkerInfo& worker) {
          return worker.attached && !worker.analysis && worker.device_kind == group.device_kind;
        });
    if (!has_kind) {
      return group.device_kind == "cuda" ? "no worker with a GPU is attached"
                                         : "no worker is attached";
    }
    if (absl::StartsWith(group.trainer, kEnvironment)) {
      // Others read this, too.
      if (!group.private_to.empty()) return "no attached worker offers its environment";
      return absl::StrCat("no attached worker offers the environment ",
                          absl::StripPrefix(group.trainer, kEnvironment));
    }
    return absl::StrCat("no attached worker has the trainer ", group.trainer);
  }

  static std::string WhyLater(const QueuedGroup& group, const Work& own,
                              const std::set<std::string>& others, const Lanes& lanes) {
    if (!others.empty()) {
      const size_t named = std::min(others.size(), kNamedUsers);
      const std::vector<std::string> names(
          others.begin(), std::next(others.begin(), static_cast<std::ptrdiff_t>(named)));
      const std::string rest =
          others.size() > named ? absl::StrCat(" and ", others.size() - named, " others") : "";
      return absl::StrCat("first come runs of ", absl::StrJoin(names, ", "), rest,
                          group.priority >= kBackground ? ", because its priority is background"
                                                        : ", who had less device time");
    }
    if (own.expected > 0) return absl::StrCat("first come earlier runs of ", group.user);
    if (lanes.busy >= lanes.all) {
      return absl::StrCat(lanes.all == 1 ? "the lane is busy"
                                         : absl::StrCat("all ", lanes.all, " lanes are busy"));
    }
    return "begins now";
  }

  const QueueFacts& facts_;
  std::map<std::tuple<std::string, std::string, bool>, Work> total_;  // kind, user, background
  std::set<std::string> users_;
};

bool BeginsBefore(const ExperimentOutlook& a, const ExperimentOutlook& b) {
  const auto rank = [](const ExperimentOutlook& outlook) {
    return std::make_tuple(outlook.group->paused,
                           outlook.start ? outlook.start->soonest : absl::InfiniteDuration(),
                           outlook.group->priority, outlook.group->place);
  };
  return rank(a) < rank(b);
}

}  // namespace

std::vector<ExperimentOutlook> LookAhead(const QueueFacts& facts) {
  const Queue queue(facts);
  // Only an experiment's first group matters of those that the same workers take.
  std::map<std::tuple<std::string, std::string, std::string>, const QueuedGroup*> first;
  std::map<std::string, uint32_t> queued;
  for (const QueuedGroup& group : facts.groups) {
    queued[group.experiment] += group.runs;
    const QueuedGroup*& known = first[{group.experiment, group.device_kind, group.trainer}];
    if (known == nullptr || group.place < known->place) known = &group;
  }
  std::map<std::string, ExperimentOutlook> by_experiment;
  for (const auto& [of, group] : first) {
    ExperimentOutlook outlook = queue.Look(*group);
    outlook.queued = queued[group->experiment];
    const auto [at, is_new] = by_experiment.try_emplace(group->experiment, outlook);
    if (!is_new && BeginsBefore(outlook, at->second)) at->second = std::move(outlook);
  }
  std::vector<ExperimentOutlook> all;
  all.reserve(by_experiment.size());
  for (auto& [experiment, outlook] : by_experiment) all.push_back(std::move(outlook));
  std::stable_sort(all.begin(), all.end(), BeginsBefore);
  return all;
}

}  // namespace ablate::schedule
