// Runs any kind of analysis: pieces, stopping, and states to resume from.
#include "server/engine/analysis.h"

#include <ATen/ATen.h>

#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/analyze/analysis_context.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/torch/device/on_stream.h"
#include "server/engine/torch/train/boundary.h"

namespace ablate::engine {
namespace {

constexpr char kCores[] = "cpu";
// Metadata keys of a state: pieces made and total, which must match, kind, revision and device.
constexpr char kMade[] = "made", kPieces[] = "pieces", kKind[] = "kind", kRevision[] = "revision",
               kDevice[] = "device";

absl::Status NoState(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("no state of this analysis: ", why));
}

// Returns the part of a state's tensor that is saved.
at::Tensor SavedPart(const StateTensor& of) {
  return of.rows < 0 ? of.tensor : of.tensor.narrow(0, 0, of.rows);
}

// Returns the part of a state's tensor for saved values of a shape; undefined if they don't fit.
at::Tensor PartOfShape(const StateTensor& of, const std::vector<int64_t>& shape) {
  const at::Tensor& whole = of.tensor;
  if (of.rows < 0 || shape.empty() || whole.dim() == 0 || shape[0] < 0 ||
      shape[0] > whole.size(0)) {
    return whole.sizes() == shape ? whole : at::Tensor();
  }
  const at::Tensor part = whole.narrow(0, 0, shape[0]);
  return part.sizes() == shape ? part : at::Tensor();
}

// Returns why a model's held-out data end.
std::string EndOfHeldOut(const RunConfig& config) {
  const EvaluationConfig& evaluation = config.evaluation;
  const bool documents = std::holds_alternative<DocumentsTask>(config.task);
  if (!documents && evaluation.tokens > 0) {
    return absl::StrCat("evaluation.tokens is ", evaluation.tokens);
  }
  if (!documents && evaluation.batches > 0) {
    return absl::StrCat("evaluation.batches is ", evaluation.batches);
  }
  return "the run has no more held-out data";
}

// Returns the remark that less was read than asked for; empty if it wasn't. As whole sequences are
// read, less than the next one may be missing. The default of a kind asks for what there is.
std::string ShortfallText(const AnalysisKind& kind, const AnalysisInputs& asked,
                          const AnalysisContext& analysis) {
  if (!asked.prompt.empty() || analysis.batches.empty()) return "";
  const RunConfig& config = analysis.subjects[0].config;
  uint64_t sequences = 0;
  for (const TokenBatch& batch : analysis.batches) sequences += static_cast<uint64_t>(batch.rows);
  const bool by_documents = asked.documents > 0;
  const auto next = static_cast<uint64_t>(config.model.context);
  const bool few =
      by_documents ? sequences < asked.documents
                   : asked.tokens != kind.default_tokens && analysis.tokens + next <= asked.tokens;
  if (!few) return "";
  return absl::StrCat("read ", text::Grouped(by_documents ? sequences : analysis.tokens), " of ",
                      text::Grouped(by_documents ? asked.documents : asked.tokens),
                      by_documents ? " sequences: " : " tokens: ",
                      asked.text != nullptr ? "the data set has no more" : EndOfHeldOut(config));
}

class PiecewiseAnalysis : public Analysis {
 public:
  // Creates the analysis from a checked request.
  static absl::StatusOr<std::unique_ptr<Analysis>> Make(
      AnalysisRequest request, const std::shared_ptr<Accelerator>& accelerator) {
    auto made = std::make_unique<PiecewiseAnalysis>(request.options, request.inputs, accelerator);
    RETURN_IF_ERROR(made->OnDevice([&]() -> absl::Status {
      auto analysis = ReadAnalysisContext(std::move(request), made->on_stream_.device());
      if (!analysis.ok()) return analysis.status();
      made->analysis_ = *std::move(analysis);
      auto computation =
          std::visit([&](const auto& of) { return Compute(of, made->analysis_); }, made->options_);
      if (!computation.ok()) return computation.status();
      made->computation_ = *std::move(computation);
      return absl::OkStatus();
    }));
    return made;
  }

  PiecewiseAnalysis(AnalysisOptions options, AnalysisInputs inputs,
                    const std::shared_ptr<Accelerator>& accelerator)
      : device_name_(accelerator == nullptr ? "" : InfoOf(*accelerator).name),
        on_stream_(accelerator),
        options_(std::move(options)),
        inputs_(std::move(inputs)) {}

  int64_t pieces() const override { return computation_->pieces(); }
  int64_t made() const override { return made_; }

  absl::Status Advance(const std::atomic<bool>& stop) override {
    analysis_.stop = &stop;
    const absl::Status added = OnDevice([&] {
      CheckStop(analysis_);
      computation_->Add(made_);
      return absl::OkStatus();
    });
    analysis_.stop = nullptr;
    if (added.ok()) ++made_;
    if (!added.ok() && stop.load()) return absl::CancelledError("the analysis was stopped");
    return added;
  }

  absl::StatusOr<std::string> Save() override {
    return OnDevice([&]() -> absl::StatusOr<std::string> {
      const std::vector<StateTensor> state = computation_->State();
      std::vector<at::Tensor> hosts;
      std::vector<TensorView> views;
      for (const StateTensor& of : state) {
        hosts.push_back(OnHost(SavedPart(of)).contiguous());
        views.push_back(
            {of.name, TensorTypeOf(of.tensor), hosts.back().sizes().vec(), BytesOf(hosts.back())});
      }
      return WriteSafetensors(views, {{kKind, std::string(KindOf(options_).name)},
                                      {kRevision, absl::StrCat(KindOf(options_).revision)},
                                      {kDevice, DeviceKind()},
                                      {kMade, absl::StrCat(made_)},
                                      {kPieces, absl::StrCat(pieces())}});
    });
  }

  uint64_t state_bytes() const override {
    uint64_t bytes = 0;
    for (const StateTensor& of : computation_->State()) bytes += SavedPart(of).nbytes();
    return bytes;
  }

  absl::Status Restore(absl::string_view bytes) override {
    return OnDevice([&]() -> absl::Status {
      ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
      const auto said = [&](const char* key) {
        const auto found = file.metadata.find(key);
        return found == file.metadata.end() ? std::string() : found->second;
      };
      int64_t made = 0;
      if (said(kKind) != KindOf(options_).name) return NoState("it is of another kind");
      // States of earlier versions lack the key at revision 0.
      const std::string revision = said(kRevision).empty() ? "0" : said(kRevision);
      if (revision != absl::StrCat(KindOf(options_).revision)) {
        return NoState("it is of another revision of its kind");
      }
      // States of earlier versions lack the key on the cores.
      if ((said(kDevice).empty() ? kCores : said(kDevice)) != DeviceKind()) {
        return NoState("it was computed on another device");
      }
      if (said(kPieces) != absl::StrCat(pieces()) || !absl::SimpleAtoi(said(kMade), &made) ||
          made < 0 || made > pieces()) {
        return NoState("it is of another number of pieces");
      }
      const std::vector<StateTensor> state = computation_->State();
      for (const StateTensor& to : state) {
        const TensorView* from = file.Find(to.name);
        const bool fits = from != nullptr && PartOfShape(to, from->shape).defined() &&
                          from->type == TensorTypeOf(to.tensor);
        if (!fits) return NoState(absl::StrCat("it has no ", to.name, " of the same shape"));
      }
      for (const StateTensor& to : state) {
        const TensorView& from = *file.Find(to.name);
        const at::Tensor read = at::empty(from.shape, to.tensor.scalar_type());
        if (!from.bytes.empty()) {
          std::memcpy(read.mutable_data_ptr(), from.bytes.data(), from.bytes.size());
        }
        PartOfShape(to, from.shape).copy_(read);
      }
      made_ = made;
      return absl::OkStatus();
    });
  }

  absl::StatusOr<AnalysisResult> Finish() override {
    return OnDevice([&]() -> absl::StatusOr<AnalysisResult> {
      if (made_ < pieces()) return absl::FailedPreconditionError("pieces are missing");
      AnalysisResult result = computation_->Finish();
      std::string shortfall = ShortfallText(KindOf(options_), inputs_, analysis_);
      if (!shortfall.empty()) result.notes.push_back(std::move(shortfall));
      if (!device_name_.empty()) result.notes.push_back("computed on " + device_name_);
      return result;
    });
  }

 private:
  // Returns the result of `function`, a Status or StatusOr, which runs on the stream, if there is
  // one, or the Status of its exception.
  template <typename Function>
  auto OnDevice(const Function& function) -> decltype(function()) {
    return AtBoundary([&] { return on_stream_(function); });
  }

  std::string DeviceKind() const { return device_name_.empty() ? kCores : "cuda"; }

  static absl::string_view BytesOf(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
  }

  const std::string device_name_;  // empty: the cores
  const OnStream on_stream_;       // before the tensors on it
  const AnalysisOptions options_;
  const AnalysisInputs inputs_;
  AnalysisContext analysis_;
  std::unique_ptr<Computation> computation_;
  int64_t made_ = 0;
};

absl::Status CheckRequest(const AnalysisRequest& request) {
  const AnalysisKind& kind = KindOf(request.options);
  const size_t subjects = request.subjects.size();
  if (subjects < kind.least_subjects || subjects > kind.most_subjects) {
    return absl::InvalidArgumentError(absl::StrCat("subjects: there are ", subjects, "; expected ",
                                                   kind.least_subjects, " to ",
                                                   kind.most_subjects));
  }
  std::vector<OptionProblem> problems;
  std::vector<const ModelConfig*> models;
  for (size_t i = 0; i < subjects; ++i) {
    models.push_back(&request.subjects[i].config.model);
    for (OptionProblem& problem : kind.check(request.options, *models.back())) {
      problems.push_back(OfSubject(i, subjects, InRequest(kind, std::move(problem))));
    }
  }
  if (problems.empty() && kind.check_all != nullptr) {
    for (OptionProblem& problem : kind.check_all(request.options, models)) {
      problems.push_back(InRequest(kind, std::move(problem)));
    }
  }
  return RefusalOf(problems);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Analysis>> MakeAnalysis(
    AnalysisRequest request, const std::shared_ptr<Accelerator>& accelerator) {
  RETURN_IF_ERROR(CheckRequest(request));
  return AtBoundary([&] { return PiecewiseAnalysis::Make(std::move(request), accelerator); });
}

}  // namespace ablate::engine
