#include "server/worker/computation.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/analysis_options.h"

namespace ablate::worker {
namespace {

namespace api = ablate::v1;

constexpr int kSavingShare = 20;  // saving takes at most this fraction, 1/20, of the computing time

absl::StatusOr<engine::AnalysisRequest> RequestOf(const std::string& id,
                                                  const v1::Computation& asked,
                                                  const ComputationHands& hands,
                                                  RunControl& control) {
  ASSIGN_OR_RETURN(engine::AnalysisOptions options, spec::ToEngineOptions(asked.analysis()));
  engine::AnalysisRequest request;
  request.options = std::move(options);
  request.inputs.tokens = asked.inputs().tokens();
  request.inputs.prompt = asked.inputs().prompt();
  request.inputs.documents = asked.inputs().documents();
  if (!asked.dataset_blob().empty()) {
    auto text = hands.blobs->Read(id, asked.dataset_blob(), control);
    if (!text.ok()) {
      return absl::Status(text.status().code(),
                          absl::StrCat("inputs.dataset: ", text.status().message()));
    }
    request.inputs.text = std::make_shared<const std::string>(text->view());
  }
  request.seed = asked.seed();
  for (const v1::ComputationSubject& from : asked.subjects()) {
    ASSIGN_OR_RETURN(auto config,
                     ReadConfig(from.spec(), {id, from.dataset_blob()}, hands.data_sets, control));
    // Those of this worker, whatever trained the model.
    config.device = engine::Device::kCpu;
    config.precision = engine::Precision::kFloat32;
    ASSIGN_OR_RETURN(auto checkpoint, hands.blobs->Read(id, from.checkpoint_blob(), control));
    request.subjects.push_back({std::move(config), std::move(checkpoint)});
  }
  return request;
}

absl::StatusOr<std::unique_ptr<engine::Analysis>> Begin(const std::string& id,
                                                        const v1::Computation& asked,
                                                        const ComputationHands& hands,
                                                        RunControl& control) {
  ASSIGN_OR_RETURN(auto request, RequestOf(id, asked, hands, control));
  auto analysis = hands.make(std::move(request));
  if (!analysis.ok() || asked.state_blob().empty()) return analysis;
  ASSIGN_OR_RETURN(const auto state, hands.blobs->Read(id, asked.state_blob(), control));
  const absl::Status restored = (*analysis)->Restore(state.view());
  // The state is from another kind of device, or from a program that divides the analysis into
  // other pieces: its progress is lost, but not the analysis.
  if (absl::IsInvalidArgument(restored)) {
    spdlog::warn("{} starts again: its saved state is refused: {}", id, restored.ToString());
    return analysis;
  }
  if (!restored.ok()) return restored;
  return analysis;
}

// Returns everything except the arrays' bytes.
api::Analysis MessageOf(const engine::AnalysisResult& result) {
  api::Analysis message;
  for (const engine::AnalysisNumber& from : result.numbers) {
    api::AnalysisNumber& number = (*message.mutable_numbers())[from.name];
    if (from.undefined.has_value()) {
      api::UndefinedNumber::Value reason{};
      api::UndefinedNumber::Value_Parse(std::string(engine::NameOf(*from.undefined)), &reason);
      number.set_undefined(reason);
    } else {
      number.set_value(from.value);
    }
  }
  for (const engine::AnalysisArray& from : result.arrays) {
    api::AnalysisArrayInfo& array = *message.add_arrays();
    array.set_name(from.name);
    for (const std::string& axis : from.axes) array.add_axes(axis);
    for (const int64_t size : from.shape) array.add_shape(size);
    array.set_type(std::string(NameOf(from.type)));
  }
  for (const std::string& note : result.notes) message.add_notes(note);
  return message;
}

// An analysis in progress.
class Making {
 public:
  Making(const std::string& id, ComputationHands hands, RunControl& control,
         engine::Analysis* analysis)
      : id_(id),
        hands_(hands),
        control_(control),
        analysis_(analysis),
        said_(MonotonicNow()),
        saved_(said_),
        counted_(said_),
        save_every_(hands.pace.save_every) {}

  // Returns false if it yielded.
  absl::StatusOr<bool> MakePieces() {
    while (analysis_->made() < analysis_->pieces()) {
      absl::Status made = analysis_->Advance(control_.gone());
      if (!made.ok()) return made;
      if (analysis_->made() == analysis_->pieces()) return true;
      const absl::Duration now = MonotonicNow();
      const absl::Duration unsaved = now - saved_, least = kSavingShare * MovingTakes();
      const bool yields = control_.halted() && unsaved >= least;
      if (yields || unsaved >= std::max(save_every_, least)) {
        RETURN_IF_ERROR(Save(yields));
        if (yields) return false;
      } else if (now - said_ >= hands_.pace.say_every) {
        Say({}, 0, false);
      }
    }
    return true;
  }

  absl::StatusOr<v1::ComputationResult> Finish() {
    ASSIGN_OR_RETURN(const engine::AnalysisResult result, analysis_->Finish());
    v1::ComputationResult end;
    *end.mutable_analysis() = MessageOf(result);
    if (!result.arrays.empty()) {
      ASSIGN_OR_RETURN(const std::string file, engine::WriteArrays(result.arrays));
      ASSIGN_OR_RETURN(std::string blob, hands_.blobs->Write(id_, file, control_));
      end.mutable_analysis()->set_artifact(std::move(blob));
      end.mutable_analysis()->set_artifact_bytes(file.size());
    }
    end.set_busy_us(CountBusy());
    return end;
  }

 private:
  // An estimate, because an earlier state may have been much smaller.
  absl::Duration MovingTakes() const {
    return absl::Seconds(static_cast<double>(analysis_->state_bytes()) /
                         hands_.pace.moved_per_second);
  }

  absl::Status Save(bool yields) {
    const absl::Duration begun = MonotonicNow();
    ASSIGN_OR_RETURN(const std::string state, analysis_->Save());
    ASSIGN_OR_RETURN(std::string blob, hands_.blobs->Write(id_, state, control_));
    saved_ = MonotonicNow();
    save_every_ = std::max(hands_.pace.save_every, kSavingShare * (saved_ - begun));
    Say(std::move(blob), state.size(), yields);
    return absl::OkStatus();
  }

  void Say(std::string state_blob, uint64_t state_bytes, bool yields) {
    v1::FromWorker message;
    v1::AnalysisSaved& saved = *message.mutable_analysis_saved();
    saved.set_id(id_);
    saved.set_progress(static_cast<double>(analysis_->made()) /
                       static_cast<double>(analysis_->pieces()));
    saved.set_state_blob(std::move(state_blob));
    saved.set_state_bytes(state_bytes);
    saved.set_busy_us(CountBusy());
    saved.set_yielded(yields);
    hands_.send(std::move(message));
    said_ = MonotonicNow();
  }

  // Returns the time since the last count.
  uint64_t CountBusy() {
    const absl::Duration now = MonotonicNow();
    const int64_t busy = absl::ToInt64Microseconds(now - counted_);
    counted_ = now;
    return static_cast<uint64_t>(std::max<int64_t>(busy, 0));
  }

  const std::string& id_;
  const ComputationHands hands_;
  RunControl& control_;
  engine::Analysis* const analysis_;
  absl::Duration said_, saved_, counted_;
  absl::Duration save_every_;
};

}  // namespace

absl::StatusOr<std::optional<v1::ComputationResult>> MakeComputation(const std::string& id,
                                                                     const v1::Computation& asked,
                                                                     ComputationHands hands,
                                                                     RunControl& control) {
  ASSIGN_OR_RETURN(const auto analysis, Begin(id, asked, hands, control));
  Making making(id, hands, control, analysis.get());
  ASSIGN_OR_RETURN(const bool complete, making.MakePieces());
  if (!complete) return std::nullopt;
  return making.Finish();
}

}  // namespace ablate::worker
