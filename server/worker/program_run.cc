#include "server/worker/program_run.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/file.h"
#include "base/file_set.h"
#include "base/folder_walk.h"
#include "base/private_folder.h"
#include "base/status_macros.h"
#include "server/config/program.h"
#include "server/program/metric_lines.h"
#include "server/program/run.h"
#include "server/worker/event_files.h"

namespace ablate::worker {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr uint32_t kMaxProcesses = 1024;
constexpr size_t kMostPoints = 10'000;  // of event files in one event
// Folders of a run's folder.
constexpr char kStateFolder[] = "state";  // stored by a checkpoint
constexpr char kOutFolder[] = "out";      // kept after the run
constexpr char kOwnFolder[] = ".ablate";  // has the settings
constexpr char kSettingsFile[] = "settings.json";

// Removes a folder with everything in it.
class RemovedFolder {
 public:
  explicit RemovedFolder(std::string path) : path_(std::move(path)) {}
  ~RemovedFolder() { RemoveFolder(path_); }
  RemovedFolder(const RemovedFolder&) = delete;
  RemovedFolder& operator=(const RemovedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

class ProgramRun {
 public:
  ProgramRun(const ProgramHost& host, const v1::Grant& grant, RunControl& control,
             BlobChannel* blobs, RunReport* report)
      : host_(host),
        grant_(grant),
        spec_(grant.run().spec()),
        control_(control),
        blobs_(blobs),
        report_(*report),
        folder_(absl::StrCat(host.folder, "/", grant.lease())) {}

  absl::Status Run() {
    report_.Started();
    RETURN_IF_ERROR(Prepare());
    ASSIGN_OR_RETURN(program::Request request, MakeRequest());
    RETURN_IF_ERROR(Start(std::move(request)));
    while (true) {
      report_.AwaitCredit();
      if (control_.abandoned()) return absl::CancelledError("withdrawn");
      if (control_.halted()) Stop();
      program::Output output = run_->Poll(kPoll);
      // A program may be silent for long: limits.time ends one that hangs.
      control_.Progressed(report_.step());
      RETURN_IF_ERROR(Take(output));
      if (interrupted_) return absl::OkStatus();
      if (output.ended.has_value()) return End(*output.ended);
    }
  }

 private:
  absl::Status Prepare() {
    RETURN_IF_ERROR(process::MakePrivateFolder(folder_.path()));
    RETURN_IF_ERROR(Unpack(grant_.run().dataset_blob()));
    if (!grant_.run().resume_blob().empty()) {
      // A checkpoint has both folders whole, in place of what the files have there.
      std::error_code ignored;
      for (const char* name : {kStateFolder, kOutFolder}) fs::remove_all(PathOf(name), ignored);
    }
    RETURN_IF_ERROR(Unpack(grant_.run().resume_blob()));
    std::error_code error;
    for (const char* name : {kStateFolder, kOutFolder, kOwnFolder}) {
      fs::create_directories(PathOf(name), error);
      if (error) return absl::InternalError(absl::StrCat(PathOf(name), ": ", error.message()));
    }
    RETURN_IF_ERROR(process::ReplaceFile(absl::StrCat(PathOf(kOwnFolder), "/", kSettingsFile),
                                         spec::SettingsJson(spec_)));
    return OpenData(grant_.run().data_blob());
  }

  std::string PathOf(const char* name) const { return absl::StrCat(folder_.path(), "/", name); }

  // Unpacks a file set into the run's folder.
  absl::Status Unpack(const std::string& blob) {
    if (blob.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const SharedBytes packed, blobs_->Read(grant_.lease(), blob, control_));
    return UnpackFiles(packed.view(), folder_.path());
  }

  // Makes the data appear among the files.
  absl::Status OpenData(const std::string& blob) {
    if (blob.empty()) return absl::OkStatus();
    absl::StatusOr<std::shared_ptr<const ProgramData::Set>> data =
        host_.data->Open(blob, [&] { return blobs_->Read(grant_.lease(), blob, control_); });
    if (!data.ok()) {
      return absl::Status(data.status().code(),
                          absl::StrCat("its data can't be read: ", data.status().message()));
    }
    data_ = *std::move(data);
    return LinkData(data_->folder(), DataSeen(), folder_.path());
  }

  // The folder of the data as the program sees it; empty if it has none.
  std::string DataSeen() const {
    if (data_ == nullptr) return "";
    return host_.sandboxed ? program::kDataFolder : data_->folder();
  }

  absl::StatusOr<program::Request> MakeRequest() const {
    const ablate::v1::ProgramSpec& program = spec_.spec().program();
    const auto environment = host_.environments.find(program.environment());
    if (environment == host_.environments.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("this worker has no environment ", program.environment()));
    }
    program::Request request;
    // The folder as the program sees it.
    const std::string seen = host_.sandboxed ? program::kWorkFolder : folder_.path();
    const std::string settings = absl::StrCat(seen, "/", kOwnFolder, "/", kSettingsFile);
    request.command = spec::CommandOf(spec_, settings);
    const std::string threads = absl::StrCat(program.threads());
    request.variables = {{"ABLATE_SETTINGS", settings},
                         {"ABLATE_SEED", absl::StrCat(spec_.seed())},
                         {"ABLATE_STEP", absl::StrCat(grant_.run().resume_step())},
                         {"ABLATE_STATE", absl::StrCat(seen, "/", kStateFolder)},
                         {"ABLATE_OUT", absl::StrCat(seen, "/", kOutFolder)},
                         {"ABLATE_DATA", DataSeen()},
                         {"CUDA_VISIBLE_DEVICES", host_.gpu.uuid},
                         {"OMP_NUM_THREADS", threads},
                         {"MKL_NUM_THREADS", threads},
                         {"OPENBLAS_NUM_THREADS", threads}};
    request.folder = folder_.path();
    request.helpers = host_.helpers;
    if (data_ != nullptr) request.data = data_->folder();
    request.data_root = host_.data->root();
    request.environment = environment->second;
    request.sandboxed = host_.sandboxed;
    request.devices = host_.gpu.devices;
    const ablate::v1::ProgramLimits& limits = program.limits();
    if (limits.has_time()) request.limits.time = absl::Seconds(limits.time().seconds());
    request.limits.memory_bytes = limits.memory();
    request.limits.disk_bytes = limits.disk();
    request.limits.processes = kMaxProcesses;
    return request;
  }

  absl::Status Start(program::Request request) {
    const bool is_warm = spec_.spec().program().start() != ablate::v1::ProgramStart::cold;
    auto run = program::Run::Start(request, is_warm ? host_.warm.get() : nullptr);
    if (absl::IsUnavailable(run.status())) {
      report_.Log(absl::StrCat("ablate: ", run.status().message(), "; started cold\n"));
      run = program::Run::Start(std::move(request));
    }
    if (!run.ok()) return run.status();
    run_ = *std::move(run);
    return absl::OkStatus();
  }

  // Asks the program to stop; it is killed after the grace.
  void Stop() {
    if (!std::exchange(stopping_, true)) run_->Terminate(host_.grace);
  }

  // Reports the numbers of event files, if the program logged none in another way.
  absl::Status TakeEventFiles() {
    if (logged_) return absl::OkStatus();
    program::MetricLines lines;
    lines.Add(ReadEventFiles(PathOf(kOutFolder)));
    const program::MetricEvents events = lines.Take(/*last=*/true);
    for (const std::string& remark : events.remarks) {
      report_.Log(absl::StrCat("ablate: ", remark, "\n"));
    }
    for (size_t i = 0; i < events.points.size(); i += kMostPoints) {
      const size_t count = std::min(kMostPoints, events.points.size() - i);
      report_.AwaitCredit();
      if (control_.abandoned()) return absl::CancelledError("withdrawn");
      Report(absl::MakeConstSpan(events.points).subspan(i, count));
      logged_ = true;
      report_.Flush(/*now=*/true);
    }
    return report_.outbox().status();
  }

  void Report(absl::Span<const program::Point> logged) {
    std::vector<engine::Point> points;
    for (const program::Point& point : logged) {
      points.push_back({point.key, point.step, point.value});
      Advance(point.step);
    }
    report_.Add(points);
  }

  // Reports what arrived. Everything that was logged before a checkpoint is reported before it.
  absl::Status Take(const program::Output& output) {
    report_.Log(output.log);
    if (output.progress.has_value()) {
      constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
      Advance(static_cast<uint32_t>(std::min(output.progress->done, kMost)));
      report_.Expect(static_cast<uint32_t>(std::min(output.progress->of, kMost)));
    }
    logged_ = logged_ || !output.points.empty();
    Report(output.points);
    if (!output.points.empty() && IsToInterrupt(output.points.back().step)) {
      Interrupt(output.points.back().step);
      return absl::OkStatus();
    }
    if (output.checkpoint.has_value()) return Checkpoint(*output.checkpoint);
    report_.Flush(/*now=*/output.ended.has_value());
    return report_.outbox().status();
  }

  void Advance(uint32_t step) {
    if (step > report_.step()) report_.Advanced(step);
    control_.Progressed(report_.step());
  }

  // Returns true if the first attempt has stored a state and has now logged the step at which it is
  // to be killed.
  bool IsToInterrupt(uint32_t step) const {
    const ablate::v1::ProgramSpec& program = spec_.spec().program();
    return stored_ && grant_.run().resume_blob().empty() && program.has_interrupt_at() &&
           step >= program.interrupt_at();
  }

  // Kills the program without a grace, as a crash would. The run is queued again; released, it
  // would mark this worker as leaving.
  void Interrupt(uint32_t step) {
    interrupted_ = true;
    run_.reset();
    report_.Fail(absl::AbortedError(
        absl::StrCat("killed at step ", step,
                     " because of program.interrupt_at: ", spec_.spec().program().interrupt_at())));
  }

  // Stores the folders of state and output, if the program may be continued, and answers.
  absl::Status Checkpoint(uint32_t step) {
    Advance(step);
    report_.Flush(/*now=*/true);
    if (spec_.spec().program().checkpoint()) {
      RETURN_IF_ERROR(report_.outbox().AwaitRoom());
      ASSIGN_OR_RETURN(std::string packed, PackOwn({kStateFolder, kOutFolder}));
      RETURN_IF_ERROR(report_.SaveState(step, std::move(packed)));
      stored_ = true;
    }
    run_->Reply(absl::StrCat("checkpoint ", step));
    return absl::OkStatus();
  }

  // Packs folders of the run's folder.
  absl::StatusOr<std::string> PackOwn(const std::vector<std::string>& names) const {
    absl::StatusOr<std::string> packed = PackFolders(folder_.path(), names);
    if (packed.ok()) return packed;
    return absl::Status(packed.status().code(),
                        absl::StrCat("its folders can't be stored: ", packed.status().message()));
  }

  absl::Status End(const program::Ended& ended) {
    if (control_.abandoned()) return absl::CancelledError("withdrawn");
    if (stopping_) return report_.Release();
    RETURN_IF_ERROR(TakeEventFiles());
    if (ended.ok() && report_.step() == 0 && !logged_) {
      report_.Log("ablate: the program reported no points\n");
    }
    if (ended.lost) {
      report_.Fail(absl::AbortedError(ended.reason));  // it is queued again
      return absl::OkStatus();
    }
    if (!ended.ok()) {
      return absl::AbortedError(ended.last_lines.empty()
                                    ? ended.reason
                                    : absl::StrCat(ended.reason, "\n", ended.last_lines));
    }
    ASSIGN_OR_RETURN(std::string packed, PackOwn({kOutFolder}));
    ASSIGN_OR_RETURN(const std::vector<PackedFile> files, ReadFileSet(packed));
    if (!files.empty()) {
      RETURN_IF_ERROR(report_.SaveCheckpoint({report_.step(), std::move(packed)}));
    }
    return report_.Finish(/*diverged=*/false, report_.step());
  }

  const ProgramHost& host_;
  const v1::Grant& grant_;
  const ablate::v1::RunSpec& spec_;
  RunControl& control_;
  BlobChannel* const blobs_;
  RunReport& report_;
  const RemovedFolder folder_;
  std::shared_ptr<const ProgramData::Set> data_;
  std::unique_ptr<program::Run> run_;  // after the folder: the program ends before it is removed
  bool stopping_ = false;
  bool logged_ = false;  // points, in this attempt
  bool stored_ = false;  // a state, in this attempt
  bool interrupted_ = false;
};

}  // namespace

absl::Status RunProgram(const ProgramHost& host, const v1::Grant& grant, RunControl& control,
                        BlobChannel* blobs, RunReport* report) {
  return ProgramRun(host, grant, control, blobs, report).Run();
}

}  // namespace ablate::worker
