#include "server/analysis/runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/analysis/subjects.h"

namespace ablate::analysis {
namespace {

constexpr std::chrono::milliseconds kFullPause{1000};  // between two attempts on a full disk

// Returns the busy time in one message, clamped.
storage::Micros BusyOf(uint64_t busy_us) {
  return static_cast<storage::Micros>(
      std::min<uint64_t>(busy_us, static_cast<uint64_t>(storage::kMaxDeviceTime)));
}

}  // namespace

AnalysisRunner::AnalysisRunner(storage::Store* store, schedule::Analyses* analyses,
                               rpc::BlobPins* pins, rpc::LiveStreams* watches)
    : store_(store), analyses_(analyses), pins_(pins), watches_(watches) {
  thread_ = std::thread([this] { Loop(); });
}

AnalysisRunner::~AnalysisRunner() {
  Stop();
  thread_.join();
}

void AnalysisRunner::Start() {
  Post([this] { SubmitOpen(); });
}

void AnalysisRunner::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  work_.clear();
  changed_.Signal();
}

void AnalysisRunner::Submit(const std::string& id) {
  Post([this, id] { TakeUp(id); });
}

void AnalysisRunner::Cancel(const std::string& id) {
  std::string request;
  {
    MutexLock lock(&mutex_);
    const auto open = open_.find(id);
    if (open != open_.end()) {
      request = open->second.request;
      open_.erase(open);
    }
  }
  if (!request.empty()) {
    analyses_->Cancel(request);
    pins_->DropLease(request);
  }
  // It may have been requested again before it was removed here.
  Submit(id);
  watches_->WakeAll();
}

std::vector<std::string> AnalysisRunner::Requests() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> requests;
  for (const auto& [id, open] : open_) {
    if (!open.request.empty()) requests.push_back(open.request);
  }
  return requests;
}

double AnalysisRunner::Progress(const storage::AnalysisRecord& analysis) const {
  MutexLock lock(&mutex_);
  const auto open = open_.find(analysis.id);
  return open == open_.end() ? analysis.progress
                             : std::max(analysis.progress, open->second.progress);
}

void AnalysisRunner::Loop() {
  while (true) {
    std::function<void()> next;
    {
      MutexLock lock(&mutex_);
      while (work_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

void AnalysisRunner::Post(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  work_.push_back(std::move(work));
  changed_.Signal();
}

void AnalysisRunner::SubmitOpen() {
  const auto open = store_->OpenAnalyses();
  if (!open.ok()) {
    spdlog::error("stored analyses can't be resumed: {}", open.status().ToString());
    return;
  }
  for (const storage::AnalysisRecord& analysis : *open) Submit(analysis.id);
}

void AnalysisRunner::TakeUp(const std::string& id) {
  {
    MutexLock lock(&mutex_);
    if (!open_.try_emplace(id).second) return;
  }
  Make(id);
}

void AnalysisRunner::Make(const std::string& id) {
  const auto analysis = store_->GetAnalysis(id);
  const bool open = analysis.ok() && (analysis->state == storage::AnalysisState::kQueued ||
                                      analysis->state == storage::AnalysisState::kRunning);
  if (!open) return Forget(id);
  auto request = analysis::PrepareComputation(store_, *analysis);
  if (!request.ok()) return Fail(id, request.status());
  {
    MutexLock lock(&mutex_);
    const auto entry = open_.find(id);
    request->alone = entry != open_.end() && entry->second.failures > 0;
  }
  // They are called under the lock of the analyses, which must not wait for the store.
  const uint64_t attempt = ++attempts_;
  request->begun = [this, id, attempt] { Post([this, id, attempt] { OnBegun(id, attempt); }); };
  request->saved = [this, id, attempt](const worker::v1::AnalysisSaved& saved, bool on_gpu) {
    Post([this, id, attempt, saved, on_gpu] { OnSaved(id, attempt, saved, on_gpu); });
  };
  request->restarted = [this, id, attempt] {
    Post([this, id, attempt] { OnRestarted(id, attempt); });
  };
  request->done = [this, id, attempt](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
    Post([this, id, attempt, result] { OnDone(id, attempt, result); });
  };
  const auto submitted = analyses_->Submit(*std::move(request));
  if (!submitted.ok()) {
    if (absl::IsUnavailable(submitted.status())) return;  // the server is stopping
    return Fail(id, submitted.status());
  }
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    const auto entry = open_.find(id);
    cancelled = entry == open_.end();
    if (!cancelled) {
      entry->second.request = *submitted;
      entry->second.attempt = attempt;
    }
  }
  if (cancelled) analyses_->Cancel(*submitted);
}

AnalysisRunner::Open* AnalysisRunner::Find(const std::string& id, uint64_t attempt) {
  const auto open = open_.find(id);
  return open == open_.end() || open->second.attempt != attempt ? nullptr : &open->second;
}

void AnalysisRunner::OnBegun(const std::string& id, uint64_t attempt) {
  {
    MutexLock lock(&mutex_);
    if (Find(id, attempt) == nullptr) return;
  }
  store_->BeginAnalysis(id).IgnoreError();  // the consequence is stored with its end
  CancelIfRemoved(id);
  watches_->WakeAll();
}

void AnalysisRunner::OnSaved(const std::string& id, uint64_t attempt,
                             const worker::v1::AnalysisSaved& saved, bool on_gpu) {
  // A progress report alone need not survive the server.
  const bool stores = !saved.state_blob().empty() || saved.yielded();
  storage::AnalysisProgress progress;
  {
    MutexLock lock(&mutex_);
    Open* const open = Find(id, attempt);
    if (open == nullptr) return;
    open->progress = saved.progress();
    if (!saved.state_blob().empty()) open->failures = 0;
    open->busy = std::min(open->busy + BusyOf(saved.busy_us()), storage::kMaxDeviceTime);
    if (stores) progress.device_time = std::exchange(open->busy, 0);
  }
  if (stores) {
    progress.progress = saved.progress();
    progress.state_blob = saved.state_blob();
    progress.state_bytes = saved.state_bytes();
    progress.state_on_gpu = on_gpu;
    progress.yielded = saved.yielded();
    Save(id, progress);
    Unpin(id, saved.state_blob());
  }
  CancelIfRemoved(id);
  watches_->WakeAll();
}

void AnalysisRunner::OnRestarted(const std::string& id, uint64_t attempt) {
  storage::AnalysisProgress progress;
  progress.restarted = progress.yielded = true;
  {
    MutexLock lock(&mutex_);
    Open* const open = Find(id, attempt);
    if (open == nullptr) return;
    open->progress = 0;
    progress.device_time = std::exchange(open->busy, 0);
  }
  Save(id, progress);
  watches_->WakeAll();
}

void AnalysisRunner::Save(const std::string& id, const storage::AnalysisProgress& progress) {
  const absl::Status stored = Store([&] { return store_->SaveAnalysis(id, progress); });
  if (!stored.ok()) spdlog::warn("analysis {} is not saved: {}", id, stored.ToString());
}

void AnalysisRunner::OnDone(const std::string& id, uint64_t attempt,
                            const absl::StatusOr<worker::v1::AnalysisResult>& result) {
  {
    MutexLock lock(&mutex_);
    if (Find(id, attempt) == nullptr) return;
  }
  if (result.ok() && result->has_computation()) return Finish(id, result->computation());
  // One that was cancelled here isn't found above: its worker stopped it for its own reason.
  const bool left = absl::IsUnavailable(result.status()) || absl::IsCancelled(result.status());
  if (left && TriesAgain(id)) return Make(id);
  Fail(id, result.ok() ? absl::InternalError("the worker sent a result of another kind")
                       : result.status());
}

void AnalysisRunner::CancelIfRemoved(const std::string& id) {
  if (absl::IsNotFound(store_->GetAnalysis(id).status())) Cancel(id);
}

void AnalysisRunner::Finish(const std::string& id, const worker::v1::ComputationResult& result) {
  storage::AnalysisEnd end;
  v1::Analysis stored = result.analysis();
  end.artifact = stored.artifact();
  end.artifact_bytes = stored.artifact_bytes();
  stored.clear_artifact();
  stored.clear_artifact_bytes();
  end.result = stored.SerializeAsString();
  end.device_time = std::min(BusyOf(result.busy_us()) + TakeBusy(id), storage::kMaxDeviceTime);
  const absl::Status ended = Store([&] { return store_->EndAnalysis(id, end); });
  if (ended.ok()) return Forget(id);
  spdlog::error("the result of analysis {} is not stored: {}", id, ended.ToString());
  Fail(id, ended);
}

void AnalysisRunner::Fail(const std::string& id, const absl::Status& why) {
  storage::AnalysisEnd end;
  end.failure = why.message().empty() ? why.ToString() : std::string(why.message());
  end.device_time = TakeBusy(id);
  const absl::Status ended = Store([&] { return store_->EndAnalysis(id, end); });
  // It stays open, and the next server continues it.
  if (!ended.ok()) spdlog::error("that analysis {} failed is not stored: {}", id, ended.ToString());
  Forget(id);
}

absl::Status AnalysisRunner::Store(const std::function<absl::Status()>& write) {
  while (true) {
    absl::Status written = write();
    if (!absl::IsResourceExhausted(written)) return written;
    MutexLock lock(&mutex_);
    if (stopping_) return written;
    changed_.WaitFor(&mutex_, kFullPause);
  }
}

bool AnalysisRunner::TriesAgain(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return false;
  pins_->DropLease(found->second.request);
  return ++found->second.failures < kMaxFailures;
}

storage::Micros AnalysisRunner::TakeBusy(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto open = open_.find(id);
  return open == open_.end() ? 0 : std::exchange(open->second.busy, 0);
}

void AnalysisRunner::Forget(const std::string& id) {
  {
    MutexLock lock(&mutex_);
    const auto open = open_.find(id);
    if (open != open_.end()) {
      pins_->DropLease(open->second.request);
      open_.erase(open);
    }
  }
  watches_->WakeAll();
}

// The row names the blob now, or never will.
void AnalysisRunner::Unpin(const std::string& id, const std::string& sha256) {
  if (sha256.empty()) return;
  constexpr uint64_t kAny = 1;
  MutexLock lock(&mutex_);
  const auto open = open_.find(id);
  if (open == open_.end()) return;
  pins_->Named(open->second.request, kAny, sha256);
  pins_->Acknowledged(open->second.request, kAny);
}

}  // namespace ablate::analysis
