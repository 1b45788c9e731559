// Serves the server's state to Prometheus, as text at http://127.0.0.1:PORT/metrics.
#ifndef ABLATE_SERVER_SERVICE_METRICS_PORT_H_
#define ABLATE_SERVER_SERVICE_METRICS_PORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/schedule/scheduler_thread.h"
#include "storage/store.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace ablate::service {

// Answers on threads of its own, without a password: any user of this machine may read it. It names
// users and clusters, and no experiment.
class MetricsPort {
 public:
  // Port 0: any free one. UNAVAILABLE if it can't listen. The pointers must outlive the port.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Listen(int port, storage::Store* store,
                                                             schedule::SchedulerThread* scheduler);
  ~MetricsPort();
  int port() const;

 private:
  MetricsPort(std::unique_ptr<prometheus::Exposer> exposer,
              std::shared_ptr<prometheus::Collectable> collectable);

  const std::shared_ptr<prometheus::Collectable> collectable_;
  const std::unique_ptr<prometheus::Exposer> exposer_;  // last: it calls the other
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_METRICS_PORT_H_
