#include "server/engine/analyze/moved_model.h"

#include <new>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "server/engine/core/supports.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {
namespace {

absl::Span<const float> FloatsIn(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

void ThrowUnlessOk(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) throw std::bad_alloc();
  TORCH_CHECK(status.ok(), status.message());
}

}  // namespace

MovedModel::MovedModel(const AnalysisContext& analysis, const SubjectModel& subject)
    : analysis_(&analysis), subject_(subject) {}

absl::StatusOr<MovedModel> MovedModel::Make(const AnalysisContext& analysis,
                                            const SubjectModel& subject) {
  MovedModel model(analysis, subject);
  const bool has_native = subject.values.is_cpu() && subject.values.scalar_type() == at::kFloat;
  if (has_native && WhyNoNativePass(subject.config).empty()) {
    ASSIGN_OR_RETURN(model.native_,
                     native::NativeForward::Make(
                         subject.config, {FloatsIn(subject.values), FloatsIn(subject.buffers)}));
    model.values_ =
        at::from_blob(model.native_->values().data(), subject.values.sizes(), at::kFloat);
    return model;
  }
  SubjectModel& own = model.subject_;
  own.values = model.values_ = subject.values.clone();
  own.parameters = BindParameters(own.config.model, own.layout,
                                  ParameterViews(own.layout, own.values), own.buffers);
  return model;
}

double MovedModel::Loss(const TokenBatch& batch) {
  if (native_ == nullptr) {
    const Hooks hooks = HooksOf(*analysis_, subject_.config.model, {});
    return ScoreOf(subject_, batch, {.hooks = &hooks}).loss;
  }
  const absl::StatusOr<native::LossSums> sums = native_->Score(batch);
  ThrowUnlessOk(sums.status());
  return sums->loss;
}

}  // namespace ablate::engine
