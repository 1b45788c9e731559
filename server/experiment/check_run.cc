#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "proto/reflect/read.h"
#include "proto/reflect/text.h"
#include "server/config/engine_config.h"
#include "server/config/estimate.h"
#include "server/config/fields.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"
#include "server/engine/task.h"
#include "server/experiment/checks.h"
#include "server/experiment/initial_model.h"

namespace ablate::spec {
namespace {

template <typename Enum>
void Read(const std::string& name, Enum& to) {
  to = engine::FindByName<Enum>(name).value_or(to);
}

// Returns a model with the kind and places of a cell's norms, whatever other problems it has.
engine::ModelConfig NormsOf(const v1::ModelSpec& model) {
  const v1::NormSpec& spec = model.norm();
  engine::ModelConfig config;
  engine::NormConfig& norm = config.norm;
  Read(v1::NormKind::Value_Name(spec.kind()), norm.kind);
  Read(v1::NormDeviation::Value_Name(spec.deviation()), norm.deviation);
  Read(v1::NormPlacement::Value_Name(spec.placement()), norm.placement);
  Read(v1::NormBackward::Value_Name(spec.backward()), norm.backward);
  norm.final = spec.final();
  config.embedding_norm = model.embedding_norm();
  return config;
}

// A task whose sequences draw distinct elements, one per position, and have one more position.
struct DrawingTask {
  std::string path;  // path of the task
  std::string drawn_name;
  uint32_t drawn;
  std::string whole_name;
  uint32_t whole;
};

std::optional<DrawingTask> DrawingTaskOf(const v1::TaskSpec& task) {
  if (task.has_legacy_recall()) {
    const v1::LegacyRecallTask& recall = task.legacy_recall();
    return DrawingTask{"task.legacy_recall.", "draw", recall.draw(), "keys", recall.keys()};
  }
  if (task.has_recall()) {
    const v1::RecallTask& recall = task.recall();
    return DrawingTask{"task.recall.", "pairs", recall.pairs(), "entities", recall.entities()};
  }
  return std::nullopt;
}

class RunChecker {
 public:
  RunChecker(const RunToCheck& run, Problems* problems) : run_(run), problems_(problems) {}

  // Checks the model that the run begins with, and the fields that are set beside it.
  void CheckInitialModel() {
    if (run_.initial == nullptr) return;
    if (!run_.initial->ok()) {
      Report({"model_from"}, Complaint(run_.initial->status()),
             "models/NAME, or EXPERIMENT/CELL of a run that is done");
      return;
    }
    const ModelFacts& initial = **run_.initial;
    const std::string& name = run_.merged.model_from();
    for (const FieldRule& rule : FieldRules()) {
      if (!absl::StartsWith(rule.path, "model.") || !rule.field.Has(run_.merged)) continue;
      if (absl::StartsWith(rule.path, "model.init.")) {
        Report({rule.path, "model_from"},
               absl::StrCat("it has no effect: the parameters are those of ", name), "no init");
        continue;
      }
      if (MayDiffer(rule.path)) continue;
      v1::BaseSpec own;
      *own.mutable_model() = initial.model;
      const double given = rule.field.Get(run_.merged);
      if (rule.field.Has(own) && rule.field.Get(own) == given) continue;
      Report({rule.path, "model_from"},
             absl::StrCat(rule.field.Text(given), " isn't the value of ", name),
             rule.field.Has(own) ? absl::StrCat(rule.field.Text(rule.field.Get(own)), ", or none")
                                 : std::string("none"));
    }
    const uint32_t context = run_.filled.model().context();
    if (context > initial.model.context()) {
      Report({"model.context", "model_from"},
             absl::StrCat("context ", context, " is longer than that of ", name),
             absl::StrCat("at most ", initial.model.context()));
    }
  }

  // Checks that the model has each token of the task.
  void CheckVocabulary(const DatasetFacts& facts) {
    if (run_.initial == nullptr || !run_.initial->ok()) return;
    const ModelFacts& initial = **run_.initial;
    v1::TaskSpec task = run_.filled.task();
    // The default, `chars`, doesn't hold for these.
    if (facts.kind == DatasetKind::kTokens) SetTokenizer(kStoredTokens, &task);
    const auto shape = ShapeOf(task, facts);
    if (!shape.ok() || shape->vocabulary <= static_cast<int>(initial.vocabulary)) return;
    Report({"model_from", "task"},
           absl::StrCat("the task has ", text::Grouped(static_cast<uint64_t>(shape->vocabulary)),
                        " tokens, and ", run_.merged.model_from(), " has ",
                        text::Grouped(initial.vocabulary)),
           "a task whose tokens are the model's");
  }

  void CheckModel() {
    const v1::ModelSpec& model = run_.filled.model();
    const uint32_t width = model.width(), heads = model.heads();
    const uint32_t features = model.attention().head_size();
    const bool attends = model.attention().kind() != v1::AttentionKind::none;
    if (attends && features == 0) {
      Report({"model.heads", "model.width"},
             absl::StrCat("heads ", heads, " does not divide width ", width),
             "heads that divide width, or attention.head_size");
    }
    if (model.tied_head() && model.head_bias()) {
      Report({"model.head_bias", "model.tied_head"},
             "head_bias true and tied_head true exclude each other", "at most one of them true");
    }
    const bool odd = features % 2 != 0;
    if (model.positions() == v1::Positions::rotary && odd) {
      Report({"model.positions", "model.heads", "model.width"},
             absl::StrCat("rotary positions rotate pairs of features, and a head has ", features,
                          features == 1 ? " feature" : " features"),
             "an even number of features per head, or other positions");
    } else if (model.positions() == v1::Positions::rotary && features > 0) {
      CheckRotary(features);
    }
    const uint32_t kv_heads = model.attention().kv_heads();
    if (kv_heads > 0 && heads % kv_heads != 0) {
      Report({"model.attention.kv_heads", "model.heads"},
             absl::StrCat("kv_heads ", kv_heads, " does not divide heads ", heads),
             "kv_heads that divide heads");
    }
    CheckQkNorm();
    CheckParallel();
    CheckOutputs();
  }

  // Checks that queries and keys have features enough to differ after their norm.
  void CheckQkNorm() {
    const v1::ModelSpec& model = run_.filled.model();
    const v1::QkNormSpec& norm = model.attention().qk_norm();
    const uint32_t heads = norm.scope() == v1::QkNormScope::head ? 1 : model.heads();
    const uint32_t features = heads * model.attention().head_size();
    if (features == 0) return;
    const bool layer = norm.kind() == v1::QkNormKind::layer;
    const bool few = norm.kind() == v1::QkNormKind::rms ? features < 2 : layer && features < 3;
    if (!few) return;
    Report({"model.attention.qk_norm.kind", "model.heads", "model.width"},
           absl::StrCat("a ", v1::QkNormKind::Value_Name(norm.kind()), " norm of ", features,
                        features == 1 ? " feature" : " features", " leaves nothing to compare"),
           absl::StrCat("at least ", layer ? 3 : 2, " features per head, or scope all"));
  }

  // Checks that blocks can leave their initial values.
  void CheckOutputs() {
    const v1::ModelSpec& model = run_.filled.model();
    if (model.init().outputs() != v1::InitOutputs::zero) return;
    if (model.has_update_gain_start() && model.update_gain_start() == 0) {
      Report({"model.init.outputs", "model.update_gain_start"},
             "outputs zero and update_gain_start 0 are factors of each other, so that neither has "
             "a gradient",
             "another outputs, or an update_gain_start other than 0");
    } else if (!model.residual()) {
      Report({"model.init.outputs", "model.residual"},
             "outputs zero and residual false make every block's output 0, without a gradient",
             "another outputs, or residual true");
    }
  }

  void CheckRotary(uint32_t features) {
    const double share = run_.filled.model().rotary().share();
    const double rotated = features * share;
    const int64_t nearest = std::lround(rotated);
    const bool whole = std::abs(rotated - static_cast<double>(nearest)) < 1e-6;
    if (whole && nearest >= 2 && nearest % 2 == 0) return;
    Report({"model.rotary.share", "model.heads", "model.width"},
           absl::StrCat("share ", text::ShortestDecimal(share), " of ", features,
                        " features per head is ", text::ShortestDecimal(rotated)),
           "a share that rotates an even number of features, at least 2");
  }

  void CheckParallel() {
    const v1::ModelSpec& model = run_.filled.model();
    if (!model.parallel()) return;
    const std::string placement = v1::NormPlacement::Value_Name(model.norm().placement());
    const bool before = placement == "pre" || placement == "none";
    if (!before) {
      Report(
          {"model.parallel", "model.norm.placement"},
          absl::StrCat("parallel sublayers have no norm after them, and placement is ", placement),
          "placement pre or none, or parallel false");
    }
    if (!model.residual()) {
      Report({"model.parallel", "model.residual"},
             "parallel sublayers are added to the stream, and residual is false",
             "residual true, or parallel false");
    }
    if (model.attention().kind() == v1::AttentionKind::none) {
      Report({"model.parallel", "model.attention.kind"},
             "parallel true needs two sublayers, and attention.kind none leaves one",
             "attention.kind softmax or sigmoid, or parallel false");
    }
  }

  void CheckNorm() {
    const v1::NormSpec& norm = run_.filled.model().norm();
    const engine::ModelConfig norms = NormsOf(run_.filled.model());
    const engine::NormConfig& config = norms.norm;
    if (!engine::HasNorm(norms)) return;
    const std::string kind = v1::NormKind::Value_Name(norm.kind());
    const std::string deviation = v1::NormDeviation::Value_Name(norm.deviation());
    const std::string backward = v1::NormBackward::Value_Name(norm.backward());
    if (!engine::HasBackward(config)) {
      Report({"model.norm.backward", "model.norm.kind"},
             absl::StrCat("backward ", backward, " isn't defined for ", kind, " norms, which ",
                          engine::IsPointwise(config.kind) ? "have no statistics" : "don't centre"),
             engine::IsPointwise(config.kind)
                 ? "backward exact, or kind layer, rms, batch or l2"
                 : "backward exact, projected or identity, or kind layer or batch");
    } else if (!engine::HasDeviation(config)) {
      Report({"model.norm.deviation", "model.norm.kind", "model.norm.backward"},
             absl::StrCat("deviation ", deviation, " doesn't work with kind ", kind,
                          " and backward ", backward),
             "deviation population, or kind layer with backward exact");
    }
  }

  // Checks that a norm has something to divide by.
  void CheckNormSizes() {
    const v1::ModelSpec& model = run_.filled.model();
    if (!engine::HasNorm(NormsOf(model))) return;
    const bool unbiased = model.norm().deviation() == v1::NormDeviation::unbiased_eps_outside;
    if (unbiased && model.width() == 1) {
      Report({"model.width", "model.norm.deviation"},
             "width 1 has no unbiased deviation (unbiased_eps_outside)",
             "a width of at least 2, or deviation population");
    }
    const uint32_t batch = run_.filled.training().batch();
    const uint32_t parts = run_.filled.training().accumulation();
    const bool one_row = parts > 0 && batch / parts == 1;
    if (model.norm().kind() == v1::NormKind::batch && model.context() == 1 && one_row) {
      Report({"model.context", "training.batch", "training.accumulation", "model.norm.kind"},
             absl::StrCat("norm.kind batch has no variance with context 1 and micro-batches of one "
                          "sequence (batch ",
                          batch, ", accumulation ", parts, ")"),
             "a larger context or batch, a smaller accumulation, or norm.kind layer, rms or l2");
    }
  }

  void CheckDrawing() {
    const std::optional<DrawingTask> task = DrawingTaskOf(run_.filled.task());
    if (!task.has_value()) return;
    const uint32_t context = run_.filled.model().context();
    const std::string drawn_path = task->path + task->drawn_name;
    const std::string drawn = absl::StrCat(task->drawn_name, " ", task->drawn);
    if (task->drawn > task->whole) {
      Report({drawn_path, task->path + task->whole_name},
             absl::StrCat(drawn, " is more than ", task->whole_name, " ", task->whole),
             absl::StrCat(task->drawn_name, " up to ", task->whole_name));
    }
    if (context < task->drawn + 1) {
      Report(
          {"model.context", drawn_path},
          absl::StrCat(drawn, " needs ", task->drawn + 1, " tokens, more than context ", context),
          absl::StrCat("a context of at least ", task->drawn_name, " + 1"));
    }
  }

  void CheckTraining() {
    const v1::TrainingSpec& training = run_.filled.training();
    const uint32_t base_width = run_.filled.model().base_width();
    if (base_width > 0 && training.optimizer() == v1::Optimizer::sgd) {
      Report({"model.base_width", "training.optimizer"},
             absl::StrCat("base_width ", base_width,
                          " scales learning rates as Adam needs it, and optimizer is sgd"),
             "base_width 0, or optimizer adamw, adam, lion or muon");
    }
    const uint32_t steps = training.steps(), warmup = training.warmup();
    if (warmup > steps) {
      Report({"training.warmup", "training.steps"},
             absl::StrCat("warmup ", warmup, " is more than steps ", steps), "warmup up to steps");
    } else if (training.schedule() == v1::Schedule::wsd && training.decay() > steps - warmup) {
      Report({"training.decay", "training.warmup", "training.steps"},
             absl::StrCat("decay ", training.decay(), " and warmup ", warmup,
                          " are more than steps ", steps),
             "decay up to steps - warmup");
    }
    const uint32_t batch = training.batch(), accumulation = training.accumulation();
    if (accumulation > 0 && batch % accumulation != 0) {
      Report({"training.accumulation", "training.batch"},
             absl::StrCat("accumulation ", accumulation, " does not divide batch ", batch),
             "accumulation that divides batch");
    }
    const auto& checkpoints = run_.merged.training().checkpoints();
    for (int i = 0; i < checkpoints.size(); ++i) {
      if (checkpoints[i] < 0 || static_cast<uint32_t>(checkpoints[i]) <= steps) continue;
      Report({absl::StrCat("training.checkpoints[", i, "]"), "training.steps"},
             absl::StrCat("checkpoint ", checkpoints[i], " is beyond steps ", steps),
             "checkpoints from 0 to steps, or -1 for the end of the run");
    }
  }

  void CheckTask(Datasets* datasets) {
    const v1::TaskSpec& task = run_.filled.task();
    if (task.kind_case() == v1::TaskSpec::KIND_NOT_SET) {
      Report({"task"}, "missing", TaskNames());
    }
    const NamedDataset dataset = DatasetOf(task);
    if (dataset.path.empty()) CheckVocabulary({});
    if (dataset.path.empty() || AnyBad(run_.bad, {dataset.path})) return;
    if (dataset.name == nullptr) {
      Report({dataset.path}, "missing", kUploaded);
      return;
    }
    if (!dataset.name->empty()) CheckDataset(dataset, datasets);  // otherwise reported as a name
  }

  void CheckDevice(bool cuda) {
    if (cuda || run_.filled.training().device() != v1::Device::cuda) return;
    Report({"training.device"}, kNoGpu, "auto or cpu");
  }

  void CheckPrecision(bool cuda) {
    const v1::TrainingSpec& training = run_.filled.training();
    if (training.precision() != v1::Precision::tf32) return;
    const std::string needs = absl::StrCat(
        "precision ", v1::Precision::Value_Name(training.precision()), " needs a GPU, and ");
    if (run_.merged.training().device() == v1::Device::cpu) {
      Report({"training.precision", "training.device"}, needs + "device is cpu",
             "precision float32, or device cuda");
    } else if (!cuda && LeavesDeviceOpen(run_.merged.training())) {
      Report({"training.precision"}, needs + kNoGpu, "float32 or bfloat16");
    }
  }

  void CheckThreads(uint32_t most_lanes) {
    const uint32_t threads = run_.filled.training().threads();
    if (threads <= 1) return;
    const std::string given = absl::StrCat("threads ", threads);
    if (run_.merged.training().device() == v1::Device::cuda) {
      Report({"training.threads", "training.device"},
             absl::StrCat(given, " are of the cores, and device is cuda"),
             "threads 1, or device cpu");
    } else if (most_lanes > 0 && threads > most_lanes) {
      Report({"training.threads"},
             absl::StrCat(given, " take as many lanes, and no worker has more than ", most_lanes),
             absl::StrCat("at most ", most_lanes));
    }
  }

  void CheckEvaluation() {
    const v1::EvaluationSpec& evaluation = run_.merged.evaluation();
    if (!evaluation.has_tokens() || !evaluation.has_batches()) return;
    Report({"evaluation.tokens", "evaluation.batches"}, "tokens and batches exclude each other",
           "at most one of them");
  }

  void ReportMemory(const MemoryNeed& need) {
    const v1::ModelSpec& model = run_.filled.model();
    Report(
        {"model.width", "model.layers", "model.feed_forward.hidden", "model.context",
         "training.batch"},
        absl::StrCat(model.layers(), model.layers() == 1 ? " layer of width " : " layers of width ",
                     text::Grouped(model.width()), " make ", text::Grouped(need.parameters),
                     " parameters: training them with batch ",
                     text::Grouped(run_.filled.training().batch()), " and context ",
                     text::Grouped(model.context()), " takes at least ", BytesText(need.bytes),
                     " of memory, and the largest device has ",
                     BytesText(static_cast<double>(need.available))),
        "a model, batch and context that fit");
  }

  BadPaths Take() { return std::move(reported_); }

 private:
  static constexpr char kUploaded[] = "the name of an uploaded data set";
  static constexpr char kNoGpu[] =
      "no GPU worker is known to this server; `ablate workers` lists those that are, and "
      "docs/howto/use-a-gpu.md says how to start one";

  void CheckDataset(const NamedDataset& dataset, Datasets* datasets) {
    const bool as_text = run_.filled.task().has_text();
    const absl::StatusOr<DatasetFacts>& facts = datasets->Find(*dataset.name, as_text);
    const std::string name = reflect::ShortText(*dataset.name);
    if (!facts.ok()) {
      Report({dataset.path}, Complaint(facts.status()), kUploaded);
    } else if (facts->kind == DatasetKind::kTokenizer) {
      Report({dataset.path}, absl::StrCat(name, " is a tokenizer"), "a data set of text");
    } else if (facts->kind == DatasetKind::kFiles) {
      Report({dataset.path}, absl::StrCat(name, " holds a program's files"), "a data set of text");
    } else if (facts->kind == DatasetKind::kTagged) {
      Report({dataset.path}, absl::StrCat(name, " holds tagged sentences, for inputs of analyses"),
             "a data set of text");
    } else if (facts->kind == DatasetKind::kTokens && as_text != (facts->documents == 0)) {
      Report(
          {dataset.path},
          absl::StrCat(name, as_text ? " holds tokens of documents, not of a text"
                                     : " holds tokens of a text, not documents"),
          as_text ? "a data set of text, or task documents" : "a data set of text, or task text");
    } else {
      if (!CheckTokenizer(dataset.path, name, facts->kind, datasets)) return;
      const absl::StatusOr<DatasetFacts>& read = datasets->FindRead(run_.filled.task());
      if (!read.ok()) {
        return Report({dataset.path, TokenizerOf(run_.filled.task()).path},
                      Complaint(read.status()), "a text that can be divided");
      }
      CheckVocabulary(*read);
      if (as_text) return CheckText(dataset.path, name, engine::FactsOfText(*read).tokens);
      CheckHeldOut(dataset.path, name, read->documents);
    }
  }

  void CheckHeldOut(const std::string& path, const std::string& name, uint64_t documents) {
    const uint32_t held_out = run_.filled.task().documents().held_out();
    if (held_out < documents) return;
    Report(
        {"task.documents.held_out", path},
        absl::StrCat("held_out ", held_out, " leaves none of the ", text::Grouped(documents),
                     " documents of ", name, " for training"),
        absl::StrCat("held_out of at most ", text::Grouped(std::max<uint64_t>(documents, 1) - 1)));
  }

  static std::string Complaint(const absl::Status& status) {
    return reflect::ShortText(absl::StripSuffix(status.message(), "."));
  }

  // Returns true if the tokenizer exists and fits the data set `name`, at `path`, of that kind.
  bool CheckTokenizer(const std::string& path, const std::string& name, DatasetKind kind,
                      Datasets* datasets) {
    constexpr char kAllowed[] = "chars or a tokenizer's data set";
    const NamedDataset named = TokenizerOf(run_.filled.task());
    const std::string& tokenizer = *named.name;
    if (AnyBad(run_.bad, {named.path})) return false;
    const bool stored = tokenizer == kStoredTokens, holds_tokens = kind == DatasetKind::kTokens;
    // chars may be the default, which isn't meant for tokens.
    const bool given = TokenizerOf(run_.merged.task()).name != nullptr;
    if (holds_tokens && given && !stored) {
      Report({named.path, path},
             absl::StrCat(reflect::ShortText(tokenizer), " divides a text, and ", name,
                          " holds tokens already"),
             "stored, or a data set of text");
      return false;
    }
    if (stored && !holds_tokens) {
      Report({named.path, path},
             absl::StrCat("stored needs stored tokens, and ", name, " is a text"), kAllowed);
      return false;
    }
    if (!NamesTokenizer(tokenizer)) return true;
    const absl::StatusOr<DatasetFacts>& facts = datasets->Find(tokenizer);
    if (facts.ok() && facts->kind == DatasetKind::kTokenizer) return true;
    Report({named.path},
           facts.ok() ? absl::StrCat(reflect::ShortText(tokenizer), " is not a tokenizer")
                      : Complaint(facts.status()),
           kAllowed);
    return false;
  }

  void CheckText(const std::string& path, const std::string& name, uint64_t tokens) {
    constexpr char kShare[] = "task.text.validation";
    const double validation = run_.filled.task().text().validation();
    const uint32_t context = run_.filled.model().context();
    if (AnyBad(run_.bad, {kShare, "model.context"})) return;
    const engine::TextSplit split = engine::SplitText(tokens, validation, context);
    const std::string with = absl::StrCat("with context ", context, " and validation ",
                                          text::ShortestDecimal(validation), ", ", name);
    // Both parts of a text must hold a window and the token after it.
    if (split.starts == 0 || split.windows == 0) {
      const uint64_t least = std::min(split.training, split.validation);
      Report({"model.context", kShare, path},
             absl::StrCat(with, " has ", text::Grouped(split.training), " training and ",
                          text::Grouped(split.validation), " validation tokens, and needs ",
                          context + 1, " of each"),
             absl::StrCat(least > 1 ? absl::StrCat("a context of at most ", least - 1, ", ") : "",
                          "a validation that leaves enough of both, or a longer text"));
      return;
    }
    // The spec may not ask for more batches or tokens than there are: most runs with equal numbers
    // would have different specs otherwise.
    const uint32_t tokens_wanted = run_.filled.evaluation().tokens();
    const uint64_t most_tokens = split.windows * context;
    if (tokens_wanted > most_tokens) {
      Report({"evaluation.tokens", "model.context", kShare, path},
             absl::StrCat(with, " has ", text::Grouped(most_tokens),
                          " tokens to evaluate, fewer than evaluation.tokens ",
                          text::Grouped(tokens_wanted)),
             absl::StrCat("evaluation.tokens of at most ", most_tokens,
                          " or absent, a larger validation, or a longer text"));
    }
    const uint32_t wanted = run_.filled.evaluation().batches();
    const uint64_t together = engine::kEvaluatedTogether;
    const uint64_t most = (split.windows + together - 1) / together;
    if (wanted <= most) return;
    Report(
        {"evaluation.batches", "model.context", kShare, path},
        absl::StrCat(with, " has ", text::Grouped(most), most == 1 ? " batch" : " batches", " of ",
                     together, " windows to evaluate, fewer than evaluation.batches ", wanted),
        absl::StrCat("evaluation.batches of at most ", most,
                     " or absent, a smaller context, a larger validation, or a longer text"));
  }

  // Returns the value for a problem: of an element if the path names one; empty if it is absent.
  std::string ValueAt(const std::string& path) const {
    const size_t bracket = path.find('[');
    const reflect::FieldPath field(v1::BaseSpec::descriptor(), path.substr(0, bracket));
    if (bracket != std::string::npos) {
      return absl::StrCat(
          run_.merged.training().checkpoints(std::atoi(path.c_str() + bracket + 1)));
    }
    const bool shown = field.IsSet(run_.filled) && field.field()->message_type() == nullptr;
    return shown ? reflect::ShortText(reflect::TextOf(field.Read(run_.filled))) : "";
  }

  // Reports fields that don't fit at the one that was written most specifically, the first of
  // equals.
  void Report(const std::vector<std::string>& paths, absl::string_view complaint,
              absl::string_view allowed) {
    const std::string* best = nullptr;
    Source best_source;
    for (const std::string& path : paths) {
      if (AnyBad(run_.bad, {path})) return;
      Source source = run_.sources.Find(path, run_.merged);
      if (best == nullptr || source.rank > best_source.rank) {
        best = &path;
        best_source = std::move(source);
      }
    }
    reported_.insert(*best);
    problems_->Add(best_source.reported_as, ValueAt(*best), complaint, allowed);
  }

  const RunToCheck& run_;
  Problems* problems_;
  BadPaths reported_;
};

}  // namespace

void ReportMemory(const RunToCheck& run, const MemoryNeed& need, Problems* problems) {
  RunChecker(run, problems).ReportMemory(need);
}

BadPaths CheckRun(const RunToCheck& run, const Surroundings& surroundings, Datasets* datasets,
                  Problems* problems) {
  RunChecker checker(run, problems);
  checker.CheckInitialModel();
  checker.CheckTask(datasets);
  checker.CheckModel();
  checker.CheckNorm();
  checker.CheckNormSizes();
  checker.CheckDrawing();
  checker.CheckTraining();
  checker.CheckDevice(surroundings.cuda);
  checker.CheckPrecision(surroundings.cuda);
  checker.CheckThreads(surroundings.most_lanes);
  checker.CheckEvaluation();
  return checker.Take();
}

}  // namespace ablate::spec
