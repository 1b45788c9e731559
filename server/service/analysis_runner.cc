#include "server/service/analysis_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/results/subjects.h"

namespace ablate::service {
namespace {

constexpr std::chrono::milliseconds kFullPause{1000};  // between two tries on a full disk

}  // namespace

AnalysisRunner::AnalysisRunner(storage::Store* store, schedule::Analyses* analyses, BlobPins* pins,
                               rpc::LiveStreams* watches)
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
  {
    MutexLock lock(&mutex_);
    if (!open_.try_emplace(id).second) return;
  }
  Post([this, id] { Make(id); });
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
  if (!request.empty()) analyses_->Cancel(request);
  watches_->WakeAll();
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
    spdlog::error("stored analyses can't be taken up: {}", open.status().ToString());
    return;
  }
  for (const storage::AnalysisRecord& analysis : *open) Submit(analysis.id);
}

void AnalysisRunner::Make(const std::string& id) {
  const auto analysis = store_->GetAnalysis(id);
  const bool open = analysis.ok() && (analysis->state == storage::AnalysisState::kQueued ||
                                      analysis->state == storage::AnalysisState::kRunning);
  if (!open) return Forget(id);
  auto request = results::PrepareComputation(store_, *analysis);
  if (!request.ok()) return Fail(id, request.status());
  // They are called under the lock of the analyses, which must not wait for the store.
  request->begun = [this, id] {
    Post([this, id] {
      store_->BeginAnalysis(id).IgnoreError();  // what follows from it is stored with its end
      watches_->WakeAll();
    });
  };
  request->saved = [this, id](const worker::v1::AnalysisSaved& saved) {
    Post([this, id, saved] { OnSaved(id, saved); });
  };
  request->done = [this, id](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
    Post([this, id, result] { OnDone(id, result); });
  };
  const auto submitted = analyses_->Submit(*std::move(request));
  if (!submitted.ok()) {
    if (absl::IsUnavailable(submitted.status())) return;  // the server goes
    return Fail(id, submitted.status());
  }
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    const auto entry = open_.find(id);
    cancelled = entry == open_.end();
    if (!cancelled) entry->second.request = *submitted;
  }
  if (cancelled) analyses_->Cancel(*submitted);
}

void AnalysisRunner::OnSaved(const std::string& id, const worker::v1::AnalysisSaved& saved) {
  {
    MutexLock lock(&mutex_);
    const auto open = open_.find(id);
    if (open != open_.end()) {
      open->second.progress = saved.progress();
      if (!saved.state_blob().empty()) open->second.failures = 0;
    }
  }
  // What only says how far it is need not survive the server.
  if (!saved.state_blob().empty() || saved.yielded()) {
    storage::AnalysisProgress progress;
    progress.progress = saved.progress();
    progress.device_time = static_cast<storage::Micros>(saved.busy_us());
    progress.state_blob = saved.state_blob();
    progress.state_bytes = saved.state_bytes();
    progress.yielded = saved.yielded();
    const absl::Status stored = Store([&] { return store_->SaveAnalysis(id, progress); });
    if (!stored.ok()) spdlog::warn("analysis {} is not saved: {}", id, stored.ToString());
    LetGo(id, saved.state_blob());
  }
  watches_->WakeAll();
}

void AnalysisRunner::OnDone(const std::string& id,
                            const absl::StatusOr<worker::v1::AnalysisResult>& result) {
  if (result.ok() && result->has_computation()) return Finish(id, result->computation());
  if (absl::IsUnavailable(result.status()) && TriesAgain(id)) return Make(id);
  // Whoever cancelled it has stored that.
  if (absl::IsCancelled(result.status())) return Forget(id);
  Fail(id,
       result.ok() ? absl::InternalError("its worker answered something else") : result.status());
}

void AnalysisRunner::Finish(const std::string& id, const worker::v1::ComputationResult& result) {
  storage::AnalysisEnd end;
  v1::Analysis stored = result.analysis();
  end.artifact = stored.artifact();
  end.artifact_bytes = stored.artifact_bytes();
  stored.clear_artifact();
  stored.clear_artifact_bytes();
  end.result = stored.SerializeAsString();
  end.device_time = static_cast<storage::Micros>(result.busy_us());
  const absl::Status ended = Store([&] { return store_->EndAnalysis(id, end); });
  if (!ended.ok()) {
    // It stays open, and the next server goes on with it.
    spdlog::error("the result of analysis {} is not stored: {}", id, ended.ToString());
  }
  LetGo(id, end.artifact);
  Forget(id);
}

void AnalysisRunner::Fail(const std::string& id, const absl::Status& why) {
  storage::AnalysisEnd end;
  end.failure = why.message().empty() ? why.ToString() : std::string(why.message());
  const absl::Status ended = Store([&] { return store_->EndAnalysis(id, end); });
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

// The row names the blob now, or will never.
void AnalysisRunner::LetGo(const std::string& id, const std::string& sha256) {
  if (sha256.empty()) return;
  constexpr uint64_t kAny = 1;
  MutexLock lock(&mutex_);
  const auto open = open_.find(id);
  if (open == open_.end()) return;
  pins_->Named(open->second.request, kAny, sha256);
  pins_->Acknowledged(open->second.request, kAny);
}

}  // namespace ablate::service
