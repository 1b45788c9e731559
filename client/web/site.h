// The live page: its routes, and the state that its views share.
#ifndef ABLATE_CLIENT_WEB_SITE_H_
#define ABLATE_CLIENT_WEB_SITE_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/markup.h"
#include "base/mutex.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/web/feed.h"
#include "client/web/guard.h"
#include "client/web/http.h"

namespace ablate::web {

using client::Connection;
using html::Html;
using html::Markup;

using Connect = std::function<std::unique_ptr<Connection>()>;

// Lends connections: one is used by one thread at a time. Thread-safe.
class Pool {
 public:
  // A connection that returns to the pool.
  class Lease {
   public:
    Lease(Pool* pool, std::unique_ptr<Connection> held) : pool_(pool), held_(std::move(held)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (held_ != nullptr) pool_->Return(std::move(held_));
    }
    Connection* get() const { return held_.get(); }
    Connection* operator->() const { return held_.get(); }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> held_;
  };

  explicit Pool(Connect connect) : connect_(std::move(connect)) {}
  Lease Borrow();

 private:
  void Return(std::unique_ptr<Connection> connection);

  const Connect connect_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_ ABSL_GUARDED_BY(mutex_);
};

// The state that all views share. It outlives every call.
struct Site {
  client::Context context;
  Connect connect;
  Secrets secrets;
  std::string server;  // as people name it: personal, or a login
  std::string folder;  // of a personal server, whose disk is shown; "": it is elsewhere
  // Runs a command of the command line as if it were typed; returns its exit code.
  std::function<int(const std::vector<std::string>& arguments, const client::Context& context)> run;
  Pool pool;
  Feeds feeds;
  // Verdicts of ended experiments by name, which don't change.
  Mutex mutex;
  std::map<std::string, std::string> verdicts ABSL_GUARDED_BY(mutex);

  Site(client::Context context_of_calls, Connect connector, std::string server_name,
       std::string server_folder)
      : context(std::move(context_of_calls)),
        connect(connector),
        secrets(MakeSecrets()),
        server(std::move(server_name)),
        folder(std::move(server_folder)),
        pool(std::move(connector)) {}
};

// A view. Runs on a thread of the HTTP server; several run at a time.
using View = absl::StatusOr<Response> (*)(Site& site, const Request& request);

struct Route {
  const char* method;
  const char* path;  // a * stands for one part, which the request gets
  View view;
};

// Answers a request: checks it, finds its route and calls the view. An error becomes a page.
Response Answer(Site& site, uint16_t port, Request request);

absl::Span<const Route> Routes();

absl::StatusOr<Response> HomeView(Site& site, const Request& request);
absl::StatusOr<Response> HomeEvents(Site& site, const Request& request);
absl::StatusOr<Response> VerdictView(Site& site, const Request& request);
absl::StatusOr<Response> ExperimentView(Site& site, const Request& request);
absl::StatusOr<Response> ExperimentEvents(Site& site, const Request& request);
absl::StatusOr<Response> ReportView(Site& site, const Request& request);
absl::StatusOr<Response> FigureView(Site& site, const Request& request);
absl::StatusOr<Response> FigureFile(Site& site, const Request& request);
absl::StatusOr<Response> RunView(Site& site, const Request& request);
absl::StatusOr<Response> SamplesView(Site& site, const Request& request);
absl::StatusOr<Response> PairView(Site& site, const Request& request);
absl::StatusOr<Response> RunPoints(Site& site, const Request& request);
absl::StatusOr<Response> RunLog(Site& site, const Request& request);
absl::StatusOr<Response> RunFile(Site& site, const Request& request);
absl::StatusOr<Response> ActView(Site& site, const Request& request);
absl::StatusOr<Response> RunsView(Site& site, const Request& request);
absl::StatusOr<Response> RunsCsv(Site& site, const Request& request);
absl::StatusOr<Response> SqlView(Site& site, const Request& request);
absl::StatusOr<Response> SqlCsv(Site& site, const Request& request);
absl::StatusOr<Response> NamesView(Site& site, const Request& request);
absl::StatusOr<Response> StaticFile(Site& site, const Request& request);
absl::StatusOr<Response> LicencesView(Site& site, const Request& request);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_SITE_H_
