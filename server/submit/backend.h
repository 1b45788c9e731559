// The objects that submitting uses. service/services.h adds those of the handlers.
#ifndef ABLATE_SERVER_SUBMIT_BACKEND_H_
#define ABLATE_SERVER_SUBMIT_BACKEND_H_

#include "server/access/sharing.h"
#include "server/schedule/scheduler_thread.h"
#include "storage/store.h"

namespace ablate::submit {

// Pointers outlive every use.
struct Backend {
  storage::Store* store = nullptr;
  schedule::SchedulerThread* scheduler = nullptr;
  access::Sharing* sharing = nullptr;  // null: not shared
};

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_BACKEND_H_
