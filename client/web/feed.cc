#include "client/web/feed.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/random.h"

namespace ablate::web {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(15);
constexpr int kRetryMilliseconds = 2000;  // before a browser connects again

std::chrono::milliseconds ToChrono(absl::Duration duration) {
  return absl::ToChronoMilliseconds(std::max(duration, absl::Milliseconds(1)));
}

}  // namespace

std::string EventText(absl::string_view name, absl::string_view id, absl::string_view data) {
  std::string text = absl::StrCat("event: ", name, "\n");
  if (!id.empty()) absl::StrAppend(&text, "id: ", id, "\n");
  const std::string lines = absl::StrReplaceAll(data, {{"\r", " "}, {"\n", "\ndata: "}});
  absl::StrAppend(&text, "data: ", lines, "\n\n");
  return text;
}

Feed::Feed() : epoch_(process::RandomId().substr(0, 12)) {}

void Feed::Set(const std::string& name, std::string data) {
  MutexLock lock(&mutex_);
  Event& state = states_[name];
  if (state.version > 0 && state.data == data) return;
  state = {++version_, name, std::move(data)};
  changed_.SignalAll();
}

void Feed::Add(const std::string& name, std::string data) {
  MutexLock lock(&mutex_);
  changes_.push_back({++version_, name, std::move(data)});
  if (changes_.size() > kKept) {
    forgotten_ = changes_.front().version;
    changes_.pop_front();
  }
  changed_.SignalAll();
}

void Feed::SetWhole(std::function<std::string()> whole) {
  MutexLock lock(&mutex_);
  whole_ = std::move(whole);
  forgotten_ = ++version_;  // earlier readers get it, too
  changes_.clear();
  changed_.SignalAll();
}

std::vector<Feed::Event> Feed::Next(uint64_t* version, absl::Duration timeout) {
  MutexLock lock(&mutex_);
  if (!closed_ && version_ <= *version) changed_.WaitFor(&mutex_, ToChrono(timeout));
  std::vector<Event> events;
  if (closed_ || version_ <= *version) return events;
  for (const auto& [name, state] : states_) {
    if (state.version > *version) events.push_back(state);
  }
  if (whole_ != nullptr && *version < forgotten_) {
    events.push_back({version_, "curves", whole_()});
  } else {
    for (const Event& change : changes_) {
      if (change.version > *version) events.push_back(change);
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.version < b.version; });
  *version = version_;
  return events;
}

std::string Feed::IdOf(uint64_t version) const { return absl::StrCat(epoch_, "-", version); }

uint64_t Feed::VersionOf(absl::string_view id) const {
  uint64_t version = 0;
  if (!absl::ConsumePrefix(&id, absl::StrCat(epoch_, "-"))) return 0;
  return absl::SimpleAtoi(id, &version) ? version : 0;
}

void Feed::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

bool Feed::closed() const {
  MutexLock lock(&mutex_);
  return closed_;
}

bool Feed::ClosedWithin(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  for (absl::Time now = absl::Now(); !closed_ && now < end; now = absl::Now()) {
    changed_.WaitFor(&mutex_, ToChrono(end - now));
  }
  return closed_;
}

Feeds::Feeds(absl::Duration linger) : linger_(linger) {
  sweeper_ = std::thread([this] {
    while (true) {
      {
        MutexLock lock(&mutex_);
        if (!closed_) close_.WaitFor(&mutex_, ToChrono(linger_));
        if (closed_) return;
      }
      Sweep(/*all=*/false);
    }
  });
}

Feeds::~Feeds() {
  Close();
  sweeper_.join();
}

bool Feeds::Serve(const std::string& name, const std::function<Filler()>& make,
                  const std::string& last_id, const Write& write) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(&mutex_);
    if (closed_ || readers_ >= kMaxReaders) return false;
    std::shared_ptr<Entry>& found = entries_[name];
    if (found == nullptr) {
      found = std::make_shared<Entry>();
      found->filler = make();
      Entry* const made = found.get();
      made->thread = std::thread([made] { made->filler.run(&made->feed); });
    }
    entry = found;
    ++entry->readers;
    ++readers_;
  }
  Feed& feed = entry->feed;
  uint64_t version = feed.VersionOf(last_id);
  bool open =
      write(absl::StrCat("retry: ", kRetryMilliseconds, "\n", EventText("heartbeat", "", "hello")));
  while (open && !feed.closed()) {
    std::string text;
    for (const Feed::Event& event : feed.Next(&version, kHeartbeat)) {
      text += EventText(event.name.substr(0, event.name.find('-')), feed.IdOf(event.version),
                        event.data);
    }
    if (feed.closed()) break;
    open = write(text.empty() ? EventText("heartbeat", "", "") : text);
  }
  MutexLock lock(&mutex_);
  --readers_;
  if (--entry->readers == 0) entry->idle = absl::Now();
  return true;
}

void Feeds::Sweep(bool all) {
  std::vector<std::shared_ptr<Entry>> ended;
  {
    MutexLock lock(&mutex_);
    if (all) {
      closed_ = true;
      close_.SignalAll();
    }
    for (auto at = entries_.begin(); at != entries_.end();) {
      const Entry& entry = *at->second;
      const bool idle = entry.readers == 0 && absl::Now() - entry.idle > linger_;
      if (all || idle) {
        ended.push_back(at->second);
        at = entries_.erase(at);
      } else {
        ++at;
      }
    }
  }
  for (const std::shared_ptr<Entry>& entry : ended) {
    entry->feed.Close();
    if (entry->filler.on_close != nullptr) entry->filler.on_close();
    entry->thread.join();
  }
}

size_t Feeds::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace ablate::web
