#include "server/spec/fields.h"

#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using v1::BaseSpec;

template <int kNumber>
double Always(const BaseSpec&) {
  return kNumber;
}

bool IsDocuments(const BaseSpec& base) { return base.task().has_documents(); }
bool IsLegacyRecall(const BaseSpec& base) { return base.task().has_legacy_recall(); }
bool IsRecall(const BaseSpec& base) { return base.task().has_recall(); }
bool IsText(const BaseSpec& base) { return base.task().has_text(); }
bool HasBatches(const BaseSpec& base) {
  return IsLegacyRecall(base) || IsRecall(base) || IsText(base);
}
bool IsSgd(const BaseSpec& base) { return base.training().optimizer() == v1::Optimizer::sgd; }
bool IsAdam(const BaseSpec& base) { return !IsSgd(base); }

double Context(const BaseSpec& base) {
  if (IsLegacyRecall(base)) return base.task().legacy_recall().draw() + 1.0;
  if (IsRecall(base)) return base.task().recall().pairs() + 1.0;
  return 64;
}
double HeadBias(const BaseSpec& base) {
  return base.model().bias() && !base.model().tied_head() ? 1 : 0;
}
double Causal(const BaseSpec& base) { return IsLegacyRecall(base) || IsRecall(base) ? 0 : 1; }
// A text is evaluated in full.
double Batches(const BaseSpec& base) { return IsText(base) ? kNoDefault : 8; }
double Validation(const BaseSpec&) { return 0.1; }
double NormBias(const BaseSpec& base) {
  const auto kind = base.model().norm().kind();
  return kind == v1::NormKind::layer || kind == v1::NormKind::batch ? 1 : 0;
}
double Hidden(const BaseSpec& base) { return 4.0 * base.model().width(); }
double WeightDecay(const BaseSpec& base) {
  return base.training().optimizer() == v1::Optimizer::adamw ? 0.01 : 0;
}
bool Attends(const BaseSpec& base) {
  return base.model().attention().kind() != v1::AttentionKind::none;
}
bool HasResidual(const BaseSpec& base) { return base.model().residual(); }
bool IsSigmoid(const BaseSpec& base) {
  return base.model().attention().kind() == v1::AttentionKind::sigmoid;
}
// Rows of weights then add up to about one.
double ScoreBias(const BaseSpec& base) { return 0 - std::log(base.model().context()); }
// A run of one_cycle rises for three tenths of its steps unless it says otherwise.
double Warmup(const BaseSpec& base) {
  const bool one_cycle = base.training().schedule() == v1::Schedule::one_cycle;
  return one_cycle ? std::floor(3.0 * base.training().steps() / 10) : 0;
}
double NormEps(const BaseSpec&) { return 1e-5; }
double LearningRate(const BaseSpec&) { return 1e-3; }
double AdamEps(const BaseSpec&) { return 1e-8; }

using Default = double (*)(const BaseSpec&);
using Applies = bool (*)(const BaseSpec&);

FieldRule Number(const char* path, Default default_value, double low, double high,
                 const char* allowed, Applies applies = nullptr) {
  return {path, ScalarField(path), default_value, applies, low, high, false, false, allowed};
}

FieldRule Switch(const char* path, Default default_value, Applies applies = nullptr) {
  return {path, ScalarField(path), default_value, applies, 0, 0, false, false, ""};
}

FieldRule OpenLow(FieldRule rule) {
  rule.open_low = true;
  return rule;
}

FieldRule OpenHigh(FieldRule rule) {
  rule.open_high = true;
  return rule;
}

void AddTask(std::vector<FieldRule>* rules) {
  rules->push_back(Number("task.documents.held_out", Always<1000>, 1, UINT32_MAX,
                          "1 to one less than the data set's documents", IsDocuments));
  rules->push_back(
      Number("task.legacy_recall.keys", Always<400>, 2, 1e6, "2 to 1,000,000", IsLegacyRecall));
  rules->push_back(Number("task.legacy_recall.draw", Always<40>, 2, 4096,
                          "2 to keys, at most 4,096", IsLegacyRecall));
  rules->push_back(Number("task.recall.entities", Always<20>, 2, 1000, "2 to 1,000", IsRecall));
  rules->push_back(Number("task.recall.attributes", Always<20>, 2, 1000, "2 to 1,000", IsRecall));
  rules->push_back(Number("task.recall.pairs", Always<20>, 1, 1000, "1 to entities", IsRecall));
  rules->push_back(Switch("task.text.tokenizer", Always<v1::Tokenizer::chars>, IsText));
  rules->push_back(OpenLow(
      OpenHigh(Number("task.text.validation", Validation, 0, 1, "above 0 and below 1", IsText))));
}

void AddModel(std::vector<FieldRule>* rules) {
  rules->push_back(Number("model.layers", Always<4>, 1, kMaxLayers, "1 to 200"));
  rules->push_back(Number("model.width", Always<128>, 1, 8192, "1 to 8,192, divisible by heads"));
  rules->push_back(Switch("model.attention.kind", Always<v1::AttentionKind::softmax>));
  rules->push_back(
      Number("model.heads", Always<4>, 1, 256, "1 to 256, a divisor of width", Attends));
  rules->push_back(Number("model.context", Context, 1, 8192, "1 to 8,192"));
  rules->push_back(Switch("model.positions", Always<v1::Positions::learned>));
  rules->push_back(Switch("model.bias", Always<1>));
  rules->push_back(Switch("model.residual", Always<1>));
  rules->push_back(Number("model.residual_scale", Always<1>, 0, 1000, "0 to 1,000", HasResidual));
  rules->push_back(OpenHigh(Number("model.dropout", Always<0>, 0, 1, "0 to below 1")));
  rules->push_back(Switch("model.tied_head", Always<0>));
  rules->push_back(Switch("model.head_bias", HeadBias));
  rules->push_back(Switch("model.init.kind", Always<v1::InitKind::pytorch>));
  rules->push_back(Switch("model.init.streams", Always<v1::InitStreams::by_name>));
  rules->push_back(Switch("model.attention.causal", Causal, Attends));
  rules->push_back(Number("model.attention.score_bias", ScoreBias, -1e6, 1e6,
                          "-1,000,000 to 1,000,000", IsSigmoid));
  rules->push_back(Switch("model.norm.kind", Always<v1::NormKind::layer>));
  rules->push_back(Switch("model.norm.deviation", Always<v1::NormDeviation::population>));
  rules->push_back(Switch("model.norm.backward", Always<v1::NormBackward::exact>));
  rules->push_back(Switch("model.norm.placement", Always<v1::NormPlacement::pre>));
  rules->push_back(Switch("model.norm.attention", Always<1>));
  rules->push_back(Switch("model.norm.feed_forward", Always<1>));
  rules->push_back(Switch("model.norm.final", Always<1>));
  rules->push_back(Number("model.norm.eps", NormEps, 0, 1, "0 to 1"));
  rules->push_back(Switch("model.norm.gain", Always<1>));
  rules->push_back(Switch("model.norm.bias", NormBias));
  rules->push_back(Number("model.feed_forward.hidden", Hidden, 1, 65'536, "1 to 65,536"));
  rules->push_back(Switch("model.feed_forward.activation", Always<v1::Activation::gelu>));
}

void AddTraining(std::vector<FieldRule>* rules) {
  rules->push_back(Number("training.steps", Always<1000>, 0, 1e7, "0 to 10,000,000"));
  rules->push_back(Number("training.batch", Always<32>, 1, 65'536, "1 to 65,536"));
  rules->push_back(Switch("training.optimizer", Always<v1::Optimizer::adamw>));
  rules->push_back(Number("training.learning_rate", LearningRate, 0, 1000, "0 to 1,000"));
  rules->push_back(OpenHigh(Number("training.momentum", Always<0>, 0, 1, "0 to below 1", IsSgd)));
  rules->push_back(OpenLow(Number("training.eps", AdamEps, 0, 1, "above 0, at most 1", IsAdam)));
  rules->push_back(Number("training.weight_decay", WeightDecay, 0, 10, "0 to 10"));
  rules->push_back(Switch("training.rule", Always<v1::LearningRule::backprop>));
  rules->push_back(Switch("training.schedule", Always<v1::Schedule::constant>));
  rules->push_back(Number("training.warmup", Warmup, 0, 1e7, "0 to steps"));
  rules->push_back(Number("training.clip", Always<0>, 0, 1e6, "0 to 1,000,000"));
  rules->push_back(
      Number("training.accumulation", Always<1>, 1, 65'536, "1 to batch, a divisor of batch"));
  rules->push_back(Switch("training.weight_decay_on", Always<v1::WeightDecayOn::all>));
  rules->push_back(OpenHigh(Number("training.ema", Always<0>, 0, 1, "0 to below 1")));
  rules->push_back(OpenHigh(Number("training.label_smoothing", Always<0>, 0, 1, "0 to below 1")));
  // Of runs that were stored before there was another: new ones have it resolved (FillDefaults).
  rules->push_back(Switch("training.trainer", Always<v1::Trainer::torch>));
  rules->push_back(Number("evaluation.every", Always<100>, 1, 1e7, "1 to 10,000,000"));
  rules->push_back(Number("evaluation.batches", Batches, 1, 10'000, "1 to 10,000", HasBatches));
}

// A default never changes: fingerprints leave fields equal to it out.
std::vector<FieldRule> MakeRules() {
  std::vector<FieldRule> rules;
  AddTask(&rules);
  AddModel(&rules);
  AddTraining(&rules);
  return rules;
}

// −1 ends the run's list; where it stands, the last step would be kept twice.
void SortCheckpoints(v1::TrainingSpec* training) {
  std::set<int32_t> steps(training->checkpoints().begin(), training->checkpoints().end());
  const bool end = steps.empty() || steps.erase(-1) > 0;
  if (end) steps.erase(static_cast<int32_t>(training->steps()));
  training->clear_checkpoints();
  for (const int32_t step : steps) training->add_checkpoints(step);
  if (end) training->add_checkpoints(-1);
}

void SortRecords(v1::EvaluationSpec* evaluation) {
  const std::set<int> records(evaluation->record().begin(), evaluation->record().end());
  evaluation->clear_record();
  for (const int record : records) evaluation->add_record(static_cast<v1::Record::Value>(record));
}

constexpr int kMaxCheckpoints = 200;
constexpr size_t kMaxDatasetNameBytes = 200;

class FieldChecker {
 public:
  FieldChecker(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems)
      : base_(base), reported_as_(reported_as), problems_(problems) {}

  void CheckRanges() {
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.field.is_number() || !rule.field.Has(base_)) continue;
      const double value = rule.field.Get(base_);
      if (rule.InRange(value)) continue;
      const std::string text = rule.field.Text(value);
      Add(rule.path, rule.path, text, absl::StrCat(text, " is out of range"), rule.allowed);
    }
  }

  void CheckDataset() {
    const NamedDataset dataset = DatasetOf(base_.task());
    if (dataset.name == nullptr) return;
    const std::string& path = dataset.path;
    const std::string& name = *dataset.name;
    const bool odd = text::HasControlCharacter(name) || !text::IsUtf8(name);
    if (!name.empty() && name.size() <= kMaxDatasetNameBytes && !odd) return;
    Add(path, path, reflect::ShortText(name),
        absl::StrCat(reflect::Quoted(name), " can't be the name of a data set"),
        "1 to 200 printable bytes");
  }

  void CheckBetas() {
    const std::string path = "training.betas";
    const auto& betas = base_.training().betas();
    if (!betas.empty() && betas.size() != 2) {
      Add(path, path, absl::StrCat(betas.size()),
          absl::StrCat("the list has length ", betas.size()), "two values, or none");
    }
    for (int i = 0; i < betas.size(); ++i) {
      if (betas[i] >= 0 && betas[i] < 1) continue;
      const std::string text = text::ShortestDecimal(betas[i]);
      Add(path, absl::StrCat(path, "[", i, "]"), text, absl::StrCat(text, " is out of range"),
          "0 to below 1");
    }
  }

  void CheckCheckpoints() {
    const std::string path = "training.checkpoints";
    const auto& steps = base_.training().checkpoints();
    if (steps.size() > kMaxCheckpoints) {
      Add(path, path, absl::StrCat(steps.size()),
          absl::StrCat("the list has length ", text::Grouped(steps.size())), "at most 200 steps");
    }
    for (int i = 0; i < steps.size(); ++i) {
      if (steps[i] >= -1) continue;
      Add(path, absl::StrCat(path, "[", i, "]"), absl::StrCat(steps[i]),
          absl::StrCat(steps[i], " is out of range"), "0 to steps, or -1 for where the run ends");
    }
  }

  BadPaths Take() { return std::move(bad_); }

 private:
  void Add(const std::string& field, const std::string& path, const std::string& value,
           absl::string_view complaint, absl::string_view allowed) {
    bad_.insert(field);
    problems_->Add(reported_as_(path), value, complaint, allowed);
  }

  const v1::BaseSpec& base_;
  const ReportedAs& reported_as_;
  Problems* problems_;
  BadPaths bad_;
};

}  // namespace

double ScalarField::Get(const BaseSpec& base) const {
  return std::visit(
      [](const auto& value) -> double {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, reflect::EnumNumber>) return value.number;
        if constexpr (std::is_arithmetic_v<Type>) return static_cast<double>(value);
        return 0;
      },
      path_.Read(base));
}

void ScalarField::Set(double value, BaseSpec* base) const {
  google::protobuf::Message* message = path_.MutableHolder(base);
  const auto* reflection = message->GetReflection();
  const FieldDescriptor* field = path_.field();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(message, field, value);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(message, field, value != 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(message, field, static_cast<int>(value));
    default:
      return reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
  }
}

void ScalarField::Clear(BaseSpec* base) const {
  google::protobuf::Message* message = path_.MutableHolder(base);
  message->GetReflection()->ClearField(message, path_.field());
}

std::string ScalarField::Text(double value) const {
  const FieldDescriptor* field = path_.field();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return reflect::TextOf(value != 0);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) return reflect::TextOf(value);
  return reflect::TextOf(reflect::EnumNumber{static_cast<int>(value), field->enum_type()});
}

bool ScalarField::is_number() const {
  const auto type = path_.field()->cpp_type();
  return type != FieldDescriptor::CPPTYPE_BOOL && type != FieldDescriptor::CPPTYPE_ENUM;
}

bool FieldRule::HasDefault(const BaseSpec& base) const { return !std::isnan(default_value(base)); }

bool FieldRule::InRange(double value) const {
  const bool above = open_low ? value > low : value >= low;
  const bool below = open_high ? value < high : value <= high;
  return above && below;  // neither holds for NaN
}

const std::vector<FieldRule>& FieldRules() {
  static const auto* const kRules = new std::vector<FieldRule>(MakeRules());
  return *kRules;
}

std::string TaskName(const v1::TaskSpec& task) {
  const FieldDescriptor* field = v1::TaskSpec::descriptor()->FindFieldByNumber(task.kind_case());
  return field == nullptr ? "" : field->name();
}

std::string TaskNames() {
  const google::protobuf::OneofDescriptor* kinds = v1::TaskSpec::descriptor()->oneof_decl(0);
  std::vector<std::string> names;
  for (int i = 0; i < kinds->field_count(); ++i) names.push_back(kinds->field(i)->name());
  return absl::StrJoin(names, ", ");
}

NamedDataset DatasetOf(const v1::TaskSpec& task) {
  const auto named = [](absl::string_view path, const auto& kind) {
    return NamedDataset{std::string(path), kind.has_dataset() ? &kind.dataset() : nullptr};
  };
  if (task.has_documents()) return named(kDatasetPaths[0], task.documents());
  if (task.has_text()) return named(kDatasetPaths[1], task.text());
  return {};
}

std::string* MutableDatasetOf(v1::TaskSpec* task) {
  if (DatasetOf(*task).name == nullptr) return nullptr;
  return task->has_text() ? task->mutable_text()->mutable_dataset()
                          : task->mutable_documents()->mutable_dataset();
}

void FillFields(v1::BaseSpec* base) {
  for (const FieldRule& rule : FieldRules()) {
    const bool applies = rule.Applies(*base), is_set = rule.field.Has(*base);
    if (!applies && is_set) rule.field.Clear(base);
    if (applies && !is_set && rule.HasDefault(*base)) {
      rule.field.Set(rule.default_value(*base), base);
    }
  }
  v1::TrainingSpec* training = base->mutable_training();
  if (training->optimizer() != v1::Optimizer::sgd && training->betas().empty()) {
    training->add_betas(0.9);
    training->add_betas(0.999);
  }
  SortCheckpoints(training);
  if (base->evaluation().record_size() > 0) SortRecords(base->mutable_evaluation());
}

void FillDefaults(bool cuda, v1::BaseSpec* base) {
  v1::TrainingSpec* training = base->mutable_training();
  if (!training->has_trainer()) training->set_trainer(v1::Trainer::auto_);
  FillFields(base);
  if (!training->has_device() || training->device() == v1::Device::auto_) {
    training->set_device(cuda ? v1::Device::cuda : v1::Device::cpu);
  }
}

bool ReadStoredRun(const std::string& bytes, v1::RunSpec* run) {
  // Every run has a task: without this one, what is no spec would become one of defaults alone.
  const bool read =
      run->ParseFromString(bytes) && run->spec().task().kind_case() != v1::TaskSpec::KIND_NOT_SET;
  if (read) FillFields(run->mutable_spec());
  return read;
}

BadPaths CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems) {
  FieldChecker checker(base, reported_as, problems);
  checker.CheckRanges();
  checker.CheckDataset();
  checker.CheckBetas();
  checker.CheckCheckpoints();
  return checker.Take();
}

}  // namespace ablate::spec
