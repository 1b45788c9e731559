// What every handler works with.
#ifndef ABLATE_SERVER_SERVICE_BACKEND_H_
#define ABLATE_SERVER_SERVICE_BACKEND_H_

#include <array>
#include <string>

#include "server/report/figure/gnuplot.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/call.h"
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
  WorkPool* planners = nullptr;        // of new experiments: few, for each may need much memory
  figure::Gnuplot* gnuplot = nullptr;  // thread-safe
  std::string owner;                   // recorded with experiments
  LeastPace pace;                      // of streams
  ByteBudget specs{kMostSpecBytesAtOnce};
  LiveStreams watches{"watches", kMostWatches};
  LiveStreams reads{"downloads and queries", kMostReads};
  LiveStreams reports{"reports and figures", kMostReports};
  LiveStreams generations{"generations", kMostGenerations};
  LiveStreams uploads{"uploads", kMostUploads};

  std::array<LiveStreams*, 5> AllStreams() {
    return {&watches, &reads, &reports, &generations, &uploads};
  }
  // What a new stream of one of these kinds runs on.
  StreamCall Stream(grpc::CallbackServerContext* context, LiveStreams* kind) const {
    return {context, pool, kind, pace};
  }
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_BACKEND_H_
