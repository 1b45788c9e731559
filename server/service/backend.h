// What every handler works with.
#ifndef ABLATE_SERVER_SERVICE_BACKEND_H_
#define ABLATE_SERVER_SERVICE_BACKEND_H_

#include <string>

#include "absl/time/time.h"
#include "server/report/figure/gnuplot.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/limits.h"
#include "server/service/live_streams.h"
#include "server/service/work_pool.h"
#include "storage/store.h"

namespace ablate::service {

// Pointers outlive every handler and reactor.
struct Backend {
  storage::Store* store = nullptr;
  schedule::SchedulerThread* scheduler = nullptr;
  WorkPool* pool = nullptr;
  figure::Gnuplot* gnuplot = nullptr;  // thread-safe
  std::string owner;                   // recorded with experiments
  absl::Duration upload_patience = absl::Minutes(1);
  LiveStreams watches{"watches", kMostWatches};
  LiveStreams reads{"downloads and queries", kMostReads};
  LiveStreams reports{"reports and figures", kMostReports};
  LiveStreams generations{"generations", kMostGenerations};
  LiveStreams uploads{"uploads", kMostUploads};
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_BACKEND_H_
