#include "server/config/fields.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/option.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using v1::BaseSpec;

bool IsText(const BaseSpec& base) { return base.task().has_text(); }
bool IsGenerated(const BaseSpec& base) {
  return base.task().has_legacy_recall() || base.task().has_recall();
}

double Context(const BaseSpec& base) {
  if (base.task().has_legacy_recall()) return base.task().legacy_recall().draw() + 1.0;
  if (base.task().has_recall()) return base.task().recall().pairs() + 1.0;
  return 64;
}
double HeadBias(const BaseSpec& base) {
  return base.model().bias() && !base.model().tied_head() ? 1 : 0;
}
double Causal(const BaseSpec& base) { return IsGenerated(base) ? 0 : 1; }
// A text is evaluated in full.
double Batches(const BaseSpec& base) { return IsText(base) ? kNoDefault : 8; }
// Without it batches decides.
double EvaluatedTokens(const BaseSpec&) { return kNoDefault; }
double NormBias(const BaseSpec& base) {
  const auto kind = base.model().norm().kind();
  return kind != v1::NormKind::rms && kind != v1::NormKind::l2 ? 1 : 0;
}
double Hidden(const BaseSpec& base) { return 4.0 * base.model().width(); }
// Independent decay lacks the learning rate, which is about a thousandth.
double DecayOf(const BaseSpec& base, double scaled) {
  const bool independent = base.training().weight_decay_form() == v1::WeightDecayForm::independent;
  return independent ? scaled / 1000 : scaled;
}
double WeightDecay(const BaseSpec& base) {
  switch (base.training().optimizer()) {
    case v1::Optimizer::adamw:
      return DecayOf(base, 0.01);
    case v1::Optimizer::muon:
    case v1::Optimizer::lion:
      return DecayOf(base, 0.1);
    default:
      return 0;
  }
}
double AdamwWeightDecay(const BaseSpec& base) { return DecayOf(base, 0.01); }
double Momentum(const BaseSpec& base) {
  return base.training().optimizer() == v1::Optimizer::muon ? 0.95 : 0;
}
double KvHeads(const BaseSpec& base) { return base.model().heads(); }
// 0, which CheckModel refuses, if there is none.
double HeadSize(const BaseSpec& base) {
  const uint32_t heads = base.model().heads(), width = base.model().width();
  return heads > 0 && width % heads == 0 ? width / heads : 0;
}
double QkScale(const BaseSpec& base) {
  const v1::ModelSpec& model = base.model();
  if (model.attention().qk_norm().kind() == v1::QkNormKind::l2) return 10;
  const uint32_t features = std::max(model.attention().head_size(), 1u);
  const double ratio =
      model.base_width() > 0 ? static_cast<double>(model.width()) / model.base_width() : 1;
  return 1 / std::sqrt(features * ratio);
}
double UpdateGainStart(const BaseSpec& base) {
  return base.model().update_gain() == v1::UpdateGain::feature ? 0.1 : 0;
}
double Decay(const BaseSpec& base) { return std::floor(base.training().steps() / 5.0); }
// Makes rows of weights sum to about one.
double ScoreBias(const BaseSpec& base) {
  const v1::AttentionSpec& attention = base.model().attention();
  const uint32_t context = base.model().context(), window = attention.window();
  const bool all_windowed = window > 0 && attention.full_every() == 0;
  return 0 - std::log(all_windowed ? std::min(window, context) : context);
}
// By default one_cycle warms up for three tenths of its steps.
double Warmup(const BaseSpec& base) {
  const bool one_cycle = base.training().schedule() == v1::Schedule::one_cycle;
  return one_cycle ? std::floor(3.0 * base.training().steps() / 10) : 0;
}
// Runs stored before there was a second trainer have none; new ones have it resolved
// (FillDefaults).
double StoredTrainer(const BaseSpec&) { return v1::Trainer::torch; }

struct ComputedDefault {
  absl::string_view path;
  double (*value)(const BaseSpec& base);
};

constexpr ComputedDefault kComputed[] = {{"model.context", Context},
                                         {"model.head_bias", HeadBias},
                                         {"model.attention.causal", Causal},
                                         {"model.attention.score_bias", ScoreBias},
                                         {"model.attention.kv_heads", KvHeads},
                                         {"model.attention.head_size", HeadSize},
                                         {"model.attention.qk_norm.scale", QkScale},
                                         {"model.update_gain_start", UpdateGainStart},
                                         {"model.norm.bias", NormBias},
                                         {"model.feed_forward.hidden", Hidden},
                                         {"training.weight_decay", WeightDecay},
                                         {"training.muon.adamw_weight_decay", AdamwWeightDecay},
                                         {"training.momentum", Momentum},
                                         {"training.decay", Decay},
                                         {"training.warmup", Warmup},
                                         {"training.trainer", StoredTrainer},
                                         {"evaluation.batches", Batches},
                                         {"evaluation.tokens", EvaluatedTokens}};

// A field below BaseSpec that isn't a message.
struct Leaf {
  std::string path;
  const FieldDescriptor* field;
};

void AddLeaves(const google::protobuf::Descriptor* type, const std::string& above,
               std::vector<Leaf>* leaves) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string path = reflect::Below(above, field->name());
    if (path == "program" || path == "settings") continue;  // not of a model: program.h
    if (field->message_type() == nullptr) {
      leaves->push_back({path, field});
    } else {
      AddLeaves(field->message_type(), path, leaves);
    }
  }
}

std::vector<Leaf> Leaves() {
  std::vector<Leaf> leaves;
  AddLeaves(BaseSpec::descriptor(), "", &leaves);
  return leaves;
}

std::vector<Condition> MakeConditions() {
  const google::protobuf::Descriptor* base = BaseSpec::descriptor();
  std::vector<Condition> conditions;
  for (const auto& [path, field] : Leaves()) {
    v1::OnlyWith only = reflect::OptionOf(field).only_with();
    const std::vector<std::string> parts = absl::StrSplit(path, '.');
    if (parts[0] == "task") {
      only.set_field("task");
      only.add_value(parts[1]);
    }
    if (only.field().empty()) continue;
    conditions.push_back({path,
                          reflect::FieldPath(base, path),
                          only.field(),
                          reflect::FieldPath(base, only.field()),
                          {only.value().begin(), only.value().end()}});
  }
  return conditions;
}

// Returns the declared default; kNoDefault if there is none.
double ConstantDefault(const Leaf& leaf, const ScalarField& field) {
  if (reflect::OptionOf(leaf.field).default_().empty()) return kNoDefault;
  BaseSpec scratch;
  std::vector<Problem> wrong;  // none, by a test of the table
  reflect::SetPath(leaf.path, reflect::DefaultOf(leaf.field), leaf.path, &scratch, &wrong);
  return wrong.empty() ? field.Get(scratch) : kNoDefault;
}

bool IsInTable(const Leaf& leaf) {
  return !leaf.field->is_repeated() && leaf.path != "training.device" &&
         leaf.field->cpp_type() != FieldDescriptor::CPPTYPE_STRING;
}

// A default never changes: fingerprints leave out fields equal to it.
std::vector<FieldRule> MakeRules() {
  std::vector<FieldRule> rules;
  for (const Leaf& leaf : Leaves()) {
    if (!IsInTable(leaf)) continue;
    FieldRule rule{leaf.path, ScalarField(leaf.path), &reflect::OptionOf(leaf.field)};
    rule.constant = ConstantDefault(leaf, rule.field);
    for (const Condition& condition : Conditions()) {
      if (condition.path == leaf.path) rule.condition = &condition;
    }
    for (const ComputedDefault& computed : kComputed) {
      if (computed.path == leaf.path) rule.computed = computed.value;
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

void Fill(const FieldRule& rule, BaseSpec* base) {
  if (rule.field.Has(*base) || !rule.Applies(*base) || !rule.HasDefault(*base)) return;
  rule.field.Set(rule.Default(*base), base);
}

// −1 ends the run's list; elsewhere the last step would be kept twice.
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

constexpr size_t kMaxDatasetNameBytes = 200;

class FieldChecker {
 public:
  FieldChecker(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems)
      : base_(base), reported_as_(reported_as), problems_(problems) {}

  void CheckBounds() {
    for (const auto& found : reflect::FindNotAllowed(base_, "")) {
      Add(found.path, found.value, found.complaint, found.allowed);
    }
  }

  void CheckNames() {
    const NamedDataset dataset = DatasetOf(base_.task());
    if (dataset.name != nullptr) CheckName(dataset.path, *dataset.name);
    const NamedDataset tokenizer = TokenizerOf(base_.task());
    if (tokenizer.name != nullptr) CheckName(tokenizer.path, *tokenizer.name);
  }

  void CheckBetas() {
    const int size = base_.training().betas_size();
    if (size == 0 || size == 2) return;
    Add("training.betas", absl::StrCat(size), absl::StrCat(size, size == 1 ? " value" : " values"),
        "two values, or none");
  }

  BadPaths Take() { return std::move(bad_); }

 private:
  void CheckName(const std::string& path, const std::string& name) {
    const bool odd = text::HasControlCharacter(name) || !text::IsUtf8(name);
    if (!name.empty() && name.size() <= kMaxDatasetNameBytes && !odd) return;
    Add(path, reflect::ShortText(name),
        absl::StrCat(reflect::Quoted(name), " isn't a valid name of a data set"),
        "1 to 200 printable bytes");
  }

  // A problem of an element is a problem of its list.
  void Add(const std::string& path, const std::string& value, absl::string_view complaint,
           absl::string_view allowed) {
    bad_.insert(path.substr(0, path.find('[')));
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

std::string Condition::SwitchValue(const BaseSpec& base) const {
  if (switch_path == "task") return TaskName(base.task());
  return reflect::TextOf(switch_field.Read(base));
}

bool Condition::Holds(const BaseSpec& base) const {
  return std::find(values.begin(), values.end(), SwitchValue(base)) != values.end();
}

const std::vector<Condition>& Conditions() {
  static const auto* const kConditions = new std::vector<Condition>(MakeConditions());
  return *kConditions;
}

double FieldRule::Default(const BaseSpec& base) const {
  return computed == nullptr ? constant : computed(base);
}

bool FieldRule::HasDefault(const BaseSpec& base) const { return !std::isnan(Default(base)); }

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
  return reflect::AnyOf(names);
}

NamedDataset DatasetOf(const v1::TaskSpec& task) {
  const auto named = [](absl::string_view path, const auto& kind) {
    return NamedDataset{std::string(path), kind.has_dataset() ? &kind.dataset() : nullptr};
  };
  if (task.has_documents()) return named(kDatasetPaths[0], task.documents());
  if (task.has_text()) return named(kDatasetPaths[1], task.text());
  return {};
}

NamedDataset TokenizerOf(const v1::TaskSpec& task) {
  const auto named = [](absl::string_view path, const auto& kind) {
    return NamedDataset{std::string(path), kind.has_tokenizer() ? &kind.tokenizer() : nullptr};
  };
  if (task.has_documents()) return named(kTokenizerPaths[0], task.documents());
  if (task.has_text()) return named(kTokenizerPaths[1], task.text());
  return {};
}

std::string* MutableDatasetOf(v1::TaskSpec* task) {
  if (DatasetOf(*task).name == nullptr) return nullptr;
  return task->has_text() ? task->mutable_text()->mutable_dataset()
                          : task->mutable_documents()->mutable_dataset();
}

std::string* MutableTokenizerOf(v1::TaskSpec* task) {
  if (TokenizerOf(*task).name == nullptr) return nullptr;
  return task->has_text() ? task->mutable_text()->mutable_tokenizer()
                          : task->mutable_documents()->mutable_tokenizer();
}

void SetTokenizer(absl::string_view tokenizer, v1::TaskSpec* task) {
  if (task->has_documents()) task->mutable_documents()->set_tokenizer(std::string(tokenizer));
  if (task->has_text()) task->mutable_text()->set_tokenizer(std::string(tokenizer));
}

bool NamesTokenizer(absl::string_view tokenizer) {
  return tokenizer != kCharacters && tokenizer != kStoredTokens;
}

void FillFields(v1::BaseSpec* base) {
  if (base->has_program()) FillProgram(base);
  if (!IsModel(*base)) return;
  const auto is_constant = [](const FieldRule& rule) {
    return rule.condition == nullptr && rule.computed == nullptr;
  };
  for (const FieldRule& rule : FieldRules()) {
    if (is_constant(rule)) Fill(rule, base);
  }
  for (const Condition& condition : Conditions()) {
    if (!condition.field.IsSet(*base) || condition.Holds(*base)) continue;
    google::protobuf::Message* holder = condition.field.MutableHolder(base);
    holder->GetReflection()->ClearField(holder, condition.field.field());
  }
  for (const FieldRule& rule : FieldRules()) {
    if (!is_constant(rule)) Fill(rule, base);
  }
  if (TokenizerOf(base->task()).name == nullptr) SetTokenizer(kCharacters, base->mutable_task());
  v1::TrainingSpec* training = base->mutable_training();
  if (training->optimizer() != v1::Optimizer::sgd && training->betas().empty()) {
    training->add_betas(0.9);
    training->add_betas(training->optimizer() == v1::Optimizer::lion ? 0.99 : 0.999);
  }
  SortCheckpoints(training);
  if (base->evaluation().record_size() > 0) SortRecords(base->mutable_evaluation());
}

void FillDefaults(bool cuda, v1::BaseSpec* base) {
  if (base->has_program()) FillProgram(base);
  if (!IsModel(*base)) return;
  v1::TrainingSpec* training = base->mutable_training();
  if (!training->has_trainer()) training->set_trainer(v1::Trainer::auto_);
  FillFields(base);
  if (LeavesDeviceOpen(*training)) {
    training->set_device(cuda ? v1::Device::cuda : v1::Device::cpu);
  }
}

bool LeavesDeviceOpen(const v1::TrainingSpec& training) {
  return training.device() == v1::Device::unspecified || training.device() == v1::Device::auto_;
}

bool ReadStoredRun(const std::string& bytes, v1::RunSpec* run) {
  // Every run has a task, or isn't a model. Without this check, bytes that aren't a spec would
  // become one of defaults.
  const bool read =
      run->ParseFromString(bytes) &&
      (!IsModel(run->spec()) || run->spec().task().kind_case() != v1::TaskSpec::KIND_NOT_SET);
  if (read) FillFields(run->mutable_spec());
  return read;
}

BadPaths CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems) {
  FieldChecker checker(base, reported_as, problems);
  checker.CheckBounds();
  checker.CheckNames();
  checker.CheckBetas();
  return checker.Take();
}

}  // namespace ablate::spec
