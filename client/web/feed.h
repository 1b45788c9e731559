// Shares what a live page shows with everybody who looks at it: the server is watched once, however
// many pages are open.
#ifndef ABLATE_CLIENT_WEB_FEED_H_
#define ABLATE_CLIENT_WEB_FEED_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/web/http.h"

namespace ablate::web {

// The events of one page. Thread-safe.
class Feed {
 public:
  struct Event {
    uint64_t version = 0;  // ascending, from 1
    std::string name, data;
  };

  Feed();

  // Sets the newest state of a name, in place of the one before. Does nothing if it is equal. A
  // browser gets the name up to the first '-', so that an event can have several states.
  void Set(const std::string& name, std::string data);
  // Adds a change. A reader who missed changes gets the whole in their place: `whole` returns it as
  // an event of the same name, and is called on a reader's thread while the feed is locked.
  void Add(const std::string& name, std::string data);
  void SetWhole(std::function<std::string()> whole);

  // Returns the events after `*version`, states and changes in order, and moves it; waits up to
  // `timeout` for one. Empty: there was none.
  std::vector<Event> Next(uint64_t* version, absl::Duration timeout);

  // Returns the identifier of an event, and the version that one has, which a reader sends back to
  // continue: 0, all again, for another feed's.
  std::string IdOf(uint64_t version) const;
  uint64_t VersionOf(absl::string_view id) const;

  // Ends waiting; later calls return at once.
  void Close();
  bool closed() const;
  // Waits; returns true once the feed is closed.
  bool ClosedWithin(absl::Duration timeout);

 private:
  static constexpr size_t kKept = 64;  // changes

  const std::string epoch_;  // distinguishes it from other feeds
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Event> states_ ABSL_GUARDED_BY(mutex_);
  std::deque<Event> changes_ ABSL_GUARDED_BY(mutex_);
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;  // version of the newest dropped change
  std::function<std::string()> whole_ ABSL_GUARDED_BY(mutex_);
};

// Fills a feed until it is closed, on a thread of its own. `on_close` is called on the thread that
// closes the feed, and must make `run` return soon.
struct Filler {
  std::function<void(Feed* feed)> run;
  std::function<void()> on_close = {};
};

// The feeds by name. A feed without readers is ended after a while. Thread-safe.
class Feeds {
 public:
  static constexpr int kMaxReaders = 40;  // of all feeds: each holds a connection

  // A feed without readers is kept for `linger`.
  explicit Feeds(absl::Duration linger = absl::Seconds(10));
  ~Feeds();
  Feeds(const Feeds&) = delete;

  // Sends the feed's events to a browser until it goes away: from `last_id` on, each flushed, with
  // a named heartbeat. `make` begins a feed that isn't there. False: too many readers.
  bool Serve(const std::string& name, const std::function<Filler()>& make,
             const std::string& last_id, const Write& write);
  // Ends all feeds; later readers get nothing.
  void Close() { Sweep(/*all=*/true); }
  // Returns the number of feeds, for tests.
  size_t size() const;

 private:
  struct Entry {
    Feed feed;
    Filler filler;
    std::thread thread;
    int readers = 0;
    absl::Time idle = absl::InfiniteFuture();  // since when it has no reader
  };

  // Ends entries that nobody has read for long, or all.
  void Sweep(bool all);

  const absl::Duration linger_;
  mutable Mutex mutex_;
  CondVar close_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int readers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread sweeper_;
};

// Returns an event as text/event-stream has it.
std::string EventText(absl::string_view name, absl::string_view id, absl::string_view data);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_FEED_H_
