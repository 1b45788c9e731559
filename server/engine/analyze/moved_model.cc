#include "server/engine/analyze/moved_model.h"

#include <new>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/model/parameters.h"
#include "server/engine/native/supports.h"

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
  if (subject.values.scalar_type() == at::kFloat && WhyNotNative(subject.config).empty()) {
    auto made = native::NativeForward::Make(subject.config, model.PointOf(subject.values));
    if (!made.ok()) return made.status();
    model.native_ = *std::move(made);
    return model;
  }
  SubjectModel& own = model.subject_;
  own.values = subject.values.clone();
  own.parameters = BindParameters(own.config.model, own.layout,
                                  ParameterViews(own.layout, own.values), own.buffers);
  return model;
}

native::FlatPoint MovedModel::PointOf(const at::Tensor& values) const {
  return {FloatsIn(values), FloatsIn(subject_.buffers)};
}

void MovedModel::Move(const at::Tensor& point) {
  if (native_ == nullptr) {
    subject_.values.copy_(point);
  } else {
    ThrowUnlessOk(native_->Move(PointOf(point)));
  }
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
