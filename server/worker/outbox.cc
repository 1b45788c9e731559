// Implements the outbox as a queue that is empty unless a blob is being published.
#include "server/worker/outbox.h"

#include <system_error>
#include <utility>

#include "base/status_macros.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kMaxHeldBytes = 1 << 20;

}  // namespace

Outbox::Outbox(std::string lease, absl::Duration hold, BlobChannel* blobs, EventSink* events,
               RunControl* control)
    : lease_(std::move(lease)), hold_(hold), blobs_(blobs), events_(events), control_(control) {
  control_->SetFollower(&publishing_control_);
}

Outbox::~Outbox() {
  control_->SetFollower(nullptr);
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  publishing_control_.Abandon();
  if (thread_.joinable()) thread_.join();
}

void Outbox::Post(v1::Event event) {
  event.set_lease(lease_);
  MutexLock lock(&mutex_);
  if (items_.empty()) {
    // Under the lock, so that nothing overtakes it.
    events_->Report(std::move(event));
    return;
  }
  held_bytes_ += event.ByteSizeLong();
  items_.push_back({std::move(event), std::nullopt});
}

absl::Status Outbox::PostBlob(v1::Event event, std::string blob) {
  RETURN_IF_ERROR(AwaitRoomFor(blob.size()));
  if (!thread_.joinable() && !StartThread()) return PublishNow(std::move(event), blob);
  event.set_lease(lease_);
  MutexLock lock(&mutex_);
  if (items_.empty()) held_since_ = MonotonicNow();
  blob_bytes_ += blob.size();
  items_.push_back({std::move(event), std::move(blob)});
  changed_.SignalAll();
  return absl::OkStatus();
}

bool Outbox::StartThread() {
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

absl::Status Outbox::PublishNow(v1::Event event, const std::string& blob) {
  absl::Status published = Publish(&event, blob, *control_);
  if (published.ok()) Post(std::move(event));
  return published;
}

absl::Status Outbox::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

bool Outbox::publishing() const {
  MutexLock lock(&mutex_);
  return !items_.empty();
}

bool Outbox::full() const {
  MutexLock lock(&mutex_);
  if (items_.empty()) return false;
  return held_bytes_ >= kMaxHeldBytes || MonotonicNow() - held_since_ >= hold_;
}

absl::Duration Outbox::publishing_time() const {
  MutexLock lock(&mutex_);
  return publishing_time_;
}

absl::Status Outbox::Settle() {
  if (publishing()) {
    const ServerWait waiting(*control_);
    MutexLock lock(&mutex_);
    while (!items_.empty()) changed_.Wait(&mutex_);
  }
  return status();
}

absl::Status Outbox::AwaitRoom() { return AwaitRoomFor(0); }

absl::Status Outbox::AwaitRoomFor(uint64_t bytes) {
  const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return blob_bytes_ == 0 || blob_bytes_ + bytes <= kMaxHeldBytes;
  };
  {
    MutexLock lock(&mutex_);
    if (has_room()) return status_;
  }
  const ServerWait waiting(*control_);
  MutexLock lock(&mutex_);
  while (!has_room()) changed_.Wait(&mutex_);
  return status_;
}

void Outbox::Work() {
  while (true) {
    Item item;
    {
      MutexLock lock(&mutex_);
      while (items_.empty() && !quit_) changed_.Wait(&mutex_);
      if (quit_) return;
      item = std::exchange(items_.front(), Item());
    }
    const absl::Duration begun = MonotonicNow();
    const absl::Status published = Publish(&item.event, *item.blob, publishing_control_);
    const absl::Duration took = MonotonicNow() - begun;
    const uint64_t bytes = std::exchange(item.blob, std::nullopt)->size();
    MutexLock lock(&mutex_);
    publishing_time_ += took;
    blob_bytes_ -= bytes;
    if (published.ok()) {
      events_->Report(std::move(item.event));
    } else if (status_.ok()) {
      status_ = published;
    }
    items_.pop_front();
    while (!items_.empty() && !items_.front().blob.has_value()) {
      held_bytes_ -= items_.front().event.ByteSizeLong();
      events_->Report(std::move(items_.front().event));
      items_.pop_front();
    }
    held_since_ = MonotonicNow();
    changed_.SignalAll();
  }
}

absl::Status Outbox::Publish(v1::Event* event, const std::string& blob, RunControl& control) {
  ASSIGN_OR_RETURN(const std::string sha256, blobs_->Write(lease_, blob, control));
  if (event->has_checkpoint()) {
    event->mutable_checkpoint()->set_blob(sha256);
    event->mutable_checkpoint()->set_bytes(blob.size());
  } else {
    event->mutable_resume_state()->set_blob(sha256);
    event->mutable_resume_state()->set_bytes(blob.size());
  }
  return absl::OkStatus();
}

}  // namespace ablate::worker
