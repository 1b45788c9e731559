// One stream between a worker and the server: two queues, and an end that each side notices only
// after it has read everything that arrived.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_LINK_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_LINK_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "ablate/worker/v1/worker.pb.h"
#include "server/schedule/scheduler.h"
#include "tests/schedule/simulation/promises.h"
#include "tests/schedule/simulation/random.h"

namespace ablate::simulation {

struct Link {
  size_t worker = 0;  // slot; the worker ignores links that are not its newest
  schedule::Scheduler::Session session = 0;
  std::deque<worker::v1::FromWorker> up;
  std::deque<worker::v1::ToWorker> down;
  bool server_side = true;  // the server still has it
  bool worker_side = true;
  bool cut = false;  // no more messages

  // Breaks the network; a part of the messages in transit arrives.
  void Break(Random* random) {
    cut = true;
    up.resize(random->Below(static_cast<uint32_t>(up.size()) + 1));
    down.resize(random->Below(static_cast<uint32_t>(down.size()) + 1));
  }
  // Ends the server's process.
  void LoseServer(Random* random) {
    Break(random);
    up.clear();
    server_side = false;
  }
};

class LinkStream : public schedule::WorkerStream {
 public:
  // `on_grant` is called with each grant that is sent.
  LinkStream(std::shared_ptr<Link> link, PromiseKeeper* promises,
             std::function<void(const worker::v1::Grant&)> on_grant)
      : link_(std::move(link)), promises_(promises), on_grant_(std::move(on_grant)) {}

  void Send(const worker::v1::ToWorker& message) override {
    if (message.has_ack()) promises_->Acknowledged(message.ack());
    if (message.has_grant()) on_grant_(message.grant());
    if (!link_->cut) link_->down.push_back(message);
  }
  void Close(const absl::Status&) override {
    link_->cut = true;
    link_->up.clear();
    link_->server_side = false;
  }

 private:
  const std::shared_ptr<Link> link_;
  PromiseKeeper* const promises_;
  const std::function<void(const worker::v1::Grant&)> on_grant_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_LINK_H_
