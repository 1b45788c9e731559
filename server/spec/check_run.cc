#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "server/engine/layout.h"
#include "server/engine/names.h"
#include "server/engine/task.h"
#include "server/spec/checks.h"
#include "server/spec/estimate.h"
#include "server/spec/fields.h"

namespace ablate::spec {
namespace {

template <typename Enum>
void Read(const std::string& name, Enum& to) {
  to = engine::FindByName<Enum>(name).value_or(to);
}

// What kind of norms a cell has and where, whatever else is wrong with it.
engine::NormConfig NormOf(const v1::NormSpec& spec) {
  engine::NormConfig norm;
  Read(v1::NormKind::Value_Name(spec.kind()), norm.kind);
  Read(v1::NormDeviation::Value_Name(spec.deviation()), norm.deviation);
  Read(v1::NormPlacement::Value_Name(spec.placement()), norm.placement);
  Read(v1::NormBackward::Value_Name(spec.backward()), norm.backward);
  norm.final = spec.final();
  return norm;
}

// One of the fields that do not fit, and how to say so from its side.
struct Party {
  std::string path;
  std::string value;
  std::string complaint;
  std::string allowed;
};

constexpr char kShare[] = "task.text.validation";

// A field that is set and that something else leaves without a use.
struct Unused {
  std::string path;
  std::string value;
  std::string where;        // it means nothing, such as "to adamw"
  std::string switch_path;  // of what has no use for it
  std::string switch_value;
  std::string users;  // values of the switch that have one
};

// A task whose sequences draw distinct ones of a whole, a position each, and have one more.
struct DrawingTask {
  const char* path;        // of the task
  const char* drawn_name;  // its field, and what is allowed there
  uint32_t drawn;
  const char* drawn_least;
  const char* drawn_allowed;
  const char* whole_name;
  uint32_t whole;
  const char* whole_most;
};

std::optional<DrawingTask> DrawingTaskOf(const v1::TaskSpec& task) {
  if (task.has_legacy_recall()) {
    const v1::LegacyRecallTask& recall = task.legacy_recall();
    return DrawingTask{"task.legacy_recall",       "draw", recall.draw(), "2",
                       "2 to keys, at most 4,096", "keys", recall.keys(), "1,000,000"};
  }
  if (task.has_recall()) {
    const v1::RecallTask& recall = task.recall();
    return DrawingTask{"task.recall",   "pairs",    recall.pairs(),    "1",
                       "1 to entities", "entities", recall.entities(), "1,000"};
  }
  return std::nullopt;
}

class RunChecker {
 public:
  RunChecker(const RunToCheck& run, Problems* problems) : run_(run), problems_(problems) {}

  void CheckModel() {
    const v1::ModelSpec& model = run_.filled.model();
    const uint32_t width = model.width(), heads = model.heads();
    if (Attends() && heads > 0 && width % heads != 0) {
      Report({{"model.heads", Text(heads), absl::StrCat(heads, " does not divide width ", width),
               "a divisor of width"},
              {"model.width", Text(width),
               absl::StrCat(width, " is not divisible by heads ", heads), "a multiple of heads"}});
    }
    if (model.tied_head() && model.head_bias()) {
      Report(
          {{"model.head_bias", "true", "true does not go with tied_head true", "false or absent"},
           {"model.tied_head", "true", "true does not go with head_bias true",
            "false, or head_bias false"}});
    }
    CheckRotary();
  }

  // What a switch leaves without a use must not be set beside it, for it would be ignored. A
  // setting that switches off what the base has scaled is another matter: the rest of the base
  // stays.
  void CheckSwitchedOff() {
    const v1::ModelSpec& model = run_.merged.model();
    const bool scaled = model.has_residual_scale() && !run_.filled.model().residual();
    if (scaled && !IsMoreParticular("model.residual", "model.residual_scale")) {
      ReportUnused({"model.residual_scale", Decimal(model.residual_scale()),
                    "where residual is false", "model.residual", "false", "true"});
    }
    CheckWithoutAttention(model);
    const auto kind = run_.filled.model().attention().kind();
    const bool biased = model.attention().has_score_bias() && kind != v1::AttentionKind::sigmoid;
    if (biased && !IsMoreParticular("model.attention.kind", "model.attention.score_bias")) {
      const std::string name = v1::AttentionKind::Value_Name(kind);
      ReportUnused({"model.attention.score_bias", Decimal(model.attention().score_bias()),
                    absl::StrCat("to ", name, " attention"), "model.attention.kind", name,
                    "sigmoid"});
    }
  }

  void CheckNorm() {
    const v1::NormSpec& norm = run_.filled.model().norm();
    const engine::NormConfig config = NormOf(norm);
    if (!engine::HasNorm(config)) return;
    const std::string kind = v1::NormKind::Value_Name(norm.kind());
    const std::string deviation = v1::NormDeviation::Value_Name(norm.deviation());
    const std::string backward = v1::NormBackward::Value_Name(norm.backward());
    if (!engine::HasBackward(config)) {
      Report({{"model.norm.backward", backward,
               absl::StrCat(backward, " is not defined for ", kind, " norms, which do not centre"),
               "exact, projected, identity, or kind layer or batch"},
              {"model.norm.kind", kind, absl::StrCat(kind, " norms have no backward ", backward),
               "layer, batch, or another backward"}});
    } else if (!engine::HasDeviation(config)) {
      Report({{"model.norm.deviation", deviation,
               absl::StrCat(deviation, " does not go with kind ", kind, " and backward ", backward),
               "population, or kind layer and backward exact"},
              {"model.norm.kind", kind,
               absl::StrCat(kind, " with backward ", backward, " does not go with deviation ",
                            deviation),
               "layer with backward exact, or deviation population"},
              {"model.norm.backward", backward,
               absl::StrCat(backward, " does not go with deviation ", deviation),
               "exact, or deviation population"}});
    }
  }

  // What a norm divides by has to exist.
  void CheckNormSizes() {
    const v1::ModelSpec& model = run_.filled.model();
    if (!engine::HasNorm(NormOf(model.norm()))) return;
    const bool unbiased = model.norm().deviation() == v1::NormDeviation::unbiased_eps_outside;
    if (unbiased && model.width() == 1) {
      Report({{"model.width", "1", "1 feature has no unbiased deviation", "2 to 8,192"},
              {"model.norm.deviation", "unbiased_eps_outside",
               "unbiased_eps_outside needs a width of 2", "population, or a larger width"}});
    }
    const uint32_t batch = run_.filled.training().batch();
    const uint32_t parts = run_.filled.training().accumulation();
    const bool one_row = parts > 0 && batch / parts == 1;
    if (model.norm().kind() == v1::NormKind::batch && model.context() == 1 && one_row) {
      const std::string complaint = "a batch of one position in all has no variance for norm batch";
      Report({{"model.context", "1", complaint, "2 to 8,192, or a larger batch"},
              {"training.batch", Text(batch), complaint, "a larger batch or context"},
              {"training.accumulation", Text(parts), complaint, "less than batch"},
              {"model.norm.kind", "batch", complaint, "layer, rms, l2, or a larger batch"}});
    }
  }

  void CheckDrawing() {
    const std::optional<DrawingTask> task = DrawingTaskOf(run_.filled.task());
    if (!task.has_value()) return;
    const uint32_t drawn = task->drawn, whole = task->whole;
    const uint32_t context = run_.filled.model().context();
    const std::string drawn_path = absl::StrCat(task->path, ".", task->drawn_name);
    if (drawn > whole) {
      Report({{drawn_path, Text(drawn),
               absl::StrCat(drawn, " is more than the ", whole, " ", task->whole_name),
               task->drawn_allowed},
              {absl::StrCat(task->path, ".", task->whole_name), Text(whole),
               absl::StrCat(whole, " is less than ", task->drawn_name, " ", drawn),
               absl::StrCat(task->drawn_name, " to ", task->whole_most)}});
    }
    if (context < drawn + 1) {
      Report({{"model.context", Text(context),
               absl::StrCat(context, " is less than the task's ", drawn + 1, " tokens"),
               absl::StrCat(task->drawn_name, " + 1 to 8,192")},
              {drawn_path, Text(drawn),
               absl::StrCat(drawn, " needs ", drawn + 1, " tokens, more than context ", context),
               absl::StrCat(task->drawn_least, " to context - 1")}});
    }
  }

  void CheckTraining() {
    const v1::TrainingSpec& training = run_.filled.training();
    const uint32_t steps = training.steps(), warmup = training.warmup();
    if (warmup > steps) {
      Report({{"training.warmup", Text(warmup),
               absl::StrCat(warmup, " is more than the ", steps, " steps"), "0 to steps"},
              {"training.steps", Text(steps), absl::StrCat(steps, " is less than warmup ", warmup),
               "warmup to 10,000,000"}});
    }
    const uint32_t batch = training.batch(), accumulation = training.accumulation();
    if (accumulation > 0 && batch % accumulation != 0) {
      Report({{"training.accumulation", Text(accumulation),
               absl::StrCat(accumulation, " does not divide batch ", batch), "a divisor of batch"},
              {"training.batch", Text(batch),
               absl::StrCat(batch, " is not divisible by accumulation ", accumulation),
               "a multiple of accumulation"}});
    }
    const auto& checkpoints = run_.merged.training().checkpoints();
    for (int i = 0; i < checkpoints.size(); ++i) {
      if (checkpoints[i] < 0 || static_cast<uint32_t>(checkpoints[i]) <= steps) continue;
      Report({{absl::StrCat("training.checkpoints[", i, "]"), Text(checkpoints[i]),
               absl::StrCat(checkpoints[i], " is beyond the ", steps, " steps"),
               "0 to steps, or -1 for where the run ends"},
              {"training.steps", Text(steps),
               absl::StrCat(steps, " is less than checkpoint ", checkpoints[i]),
               "at least the last checkpoint"}});
    }
  }

  // What the optimizer has no use for must not be set, for it would be ignored.
  void CheckOptimizer() {
    const v1::TrainingSpec& training = run_.merged.training();
    const auto optimizer = run_.filled.training().optimizer();
    const std::string name = v1::Optimizer::Value_Name(optimizer);
    const auto unused = [&](const char* path, const std::string& value, const char* users) {
      ReportUnused({path, value, absl::StrCat("to ", name), "training.optimizer", name, users});
    };
    if (optimizer != v1::Optimizer::sgd) {
      if (training.has_momentum()) unused("training.momentum", Decimal(training.momentum()), "sgd");
      return;
    }
    if (training.has_eps()) unused("training.eps", Decimal(training.eps()), "adamw or adam");
    if (training.betas_size() == 2) {
      unused("training.betas",
             absl::StrCat("[", Decimal(training.betas(0)), ", ", Decimal(training.betas(1)), "]"),
             "adamw or adam");
    }
  }

  void CheckTask(Datasets* datasets) {
    const v1::TaskSpec& task = run_.filled.task();
    if (task.kind_case() == v1::TaskSpec::KIND_NOT_SET) {
      Report({{"task", "", "there is no task", absl::StrCat("one of ", TaskNames())}});
    }
    if (task.has_documents() && run_.merged.evaluation().has_batches()) {
      const uint32_t batches = run_.merged.evaluation().batches();
      Report({{"evaluation.batches", Text(batches),
               absl::StrCat(batches, " means nothing to documents, which are evaluated in full"),
               "absent, or another task"}});
    }
    const NamedDataset dataset = DatasetOf(task);
    if (dataset.path.empty() || AnyBad(run_.bad, {dataset.path})) return;
    if (dataset.name == nullptr) {
      Report({{dataset.path, "", "there is no data set", "the name of an uploaded data set"}});
      return;
    }
    if (!dataset.name->empty()) CheckDataset(dataset, datasets);  // else reported as a name
  }

  void CheckDevice(bool cuda) {
    if (cuda || run_.filled.training().device() != v1::Device::cuda) return;
    Report({{"training.device", "cuda",
             "cuda can't be trained on: there are no GPU workers yet, ablate-worker trains on CPUs",
             "auto or cpu"}});
  }

  void ReportMemory(const MemoryNeed& need) {
    const v1::ModelSpec& model = run_.filled.model();
    const std::string complaint = absl::StrCat(
        model.layers(), model.layers() == 1 ? " layer of width " : " layers of width ",
        text::Grouped(model.width()), " make ", text::Grouped(need.parameters),
        " parameters: training them with batch ", text::Grouped(run_.filled.training().batch()),
        " and context ", text::Grouped(model.context()), " takes at least ", BytesText(need.bytes),
        " of memory, and the largest device has ", BytesText(static_cast<double>(need.available)));
    std::vector<Party> parties;
    const auto add = [&](const char* path, uint32_t value) {
      parties.push_back({path, Text(value), complaint, "a model, batch and context that fit"});
    };
    add("model.width", model.width());
    add("model.layers", model.layers());
    add("model.feed_forward.hidden", model.feed_forward().hidden());
    add("model.context", model.context());
    add("training.batch", run_.filled.training().batch());
    Report(parties);
  }

  BadPaths Take() { return std::move(reported_); }

 private:
  void CheckWithoutAttention(const v1::ModelSpec& model) {
    if (Attends()) return;
    const auto report = [this](const char* path, const std::string& value) {
      if (IsMoreParticular("model.attention.kind", path)) return;
      ReportUnused(
          {path, value, "without attention", "model.attention.kind", "none", "softmax or sigmoid"});
    };
    if (model.has_heads()) report("model.heads", Text(model.heads()));
    if (model.attention().has_causal()) {
      report("model.attention.causal", model.attention().causal() ? "true" : "false");
    }
  }

  // Whether `path` was written in a setting or an override, and `other` more generally.
  bool IsMoreParticular(const std::string& path, const std::string& other) const {
    return run_.sources.Find(path, run_.merged).rank > run_.sources.Find(other, run_.merged).rank;
  }

  bool Attends() const { return run_.filled.model().attention().kind() != v1::AttentionKind::none; }

  void CheckRotary() {
    const v1::ModelSpec& model = run_.filled.model();
    const uint32_t heads = model.heads(), width = model.width();
    const bool odd = heads > 0 && width % heads == 0 && width / heads % 2 != 0;
    if (model.positions() != v1::Positions::rotary || !odd || !Attends()) return;
    const std::string complaint =
        absl::StrCat("rotary positions turn features in pairs, and a head has ", width / heads);
    Report({{"model.positions", "rotary", complaint,
             "learned, none, sinusoidal, or an even number of features a head"},
            {"model.heads", Text(heads), complaint, "a divisor of width / 2"},
            {"model.width", Text(width), complaint, "an even multiple of heads"}});
  }

  static std::string Text(int64_t value) { return absl::StrCat(value); }
  static std::string Decimal(double value) { return text::ShortestDecimal(value); }

  void CheckDataset(const NamedDataset& dataset, Datasets* datasets) {
    const absl::StatusOr<DatasetFacts>& facts =
        datasets->Find(*dataset.name, run_.filled.task().has_text());
    const std::string name = reflect::ShortText(*dataset.name);
    if (!facts.ok()) {
      const std::string why = reflect::ShortText(absl::StripSuffix(facts.status().message(), "."));
      Report({{dataset.path, name, why, "the name of an uploaded data set"}});
    } else if (run_.filled.task().has_text()) {
      CheckText(dataset.path, name, facts->text().tokens);
    } else {
      CheckHeldOut(dataset.path, name, facts->documents);
    }
  }

  void CheckHeldOut(const std::string& path, const std::string& name, uint64_t all) {
    const uint32_t held_out = run_.filled.task().documents().held_out();
    if (held_out < all) return;
    const std::string documents = text::Grouped(all);
    Report({{"task.documents.held_out", Text(held_out),
             absl::StrCat(held_out, " leaves none of the ", documents, " documents to train on"),
             "1 to one less than the data set's documents"},
            {path, name,
             absl::StrCat(name, " has ", documents, " documents, of which held_out ", held_out,
                          " leaves none to train on"),
             "a data set of more documents, or a smaller held_out"}});
  }

  void CheckText(const std::string& path, const std::string& name, uint64_t tokens) {
    const double validation = run_.filled.task().text().validation();
    const uint32_t context = run_.filled.model().context();
    if (AnyBad(run_.bad, {kShare, "model.context"})) return;
    const engine::TextSplit split = engine::SplitText(tokens, validation, context);
    if (split.starts == 0 || split.windows == 0) {
      ReportShortParts(path, name, split);
    } else {
      CheckBatches(path, name, split);
    }
  }

  // No more batches are asked for than there are: with fewer, a run would be another one by its
  // spec, and the same by its numbers.
  void CheckBatches(const std::string& path, const std::string& name,
                    const engine::TextSplit& split) {
    const uint32_t wanted = run_.filled.evaluation().batches();
    const uint64_t together = engine::kEvaluatedTogether;
    const uint64_t most = (split.windows + together - 1) / together;
    if (wanted <= most) return;
    const uint32_t context = run_.filled.model().context();
    const std::string share = Decimal(run_.filled.task().text().validation());
    const std::string batches = absl::StrCat(text::Grouped(most), most == 1 ? " batch" : " batches",
                                             " of ", together, " windows to evaluate");
    const std::string fewer = absl::StrCat(batches, ", fewer than evaluation.batches ", wanted);
    Report({{"evaluation.batches", Text(wanted),
             absl::StrCat(wanted, " is more than ", name, " has: with context ", context,
                          " and validation ", share, ", ", batches),
             most == 1 ? "1, or absent" : absl::StrCat("1 to ", most, ", or absent for all")},
            {"model.context", Text(context), absl::StrCat(context, " leaves ", name, " ", fewer),
             "a smaller context, or fewer batches"},
            {kShare, share, absl::StrCat(share, " leaves ", name, " ", fewer),
             "a larger share, or fewer batches"},
            {path, name, absl::StrCat(name, " has ", fewer), "a longer text, or fewer batches"}});
  }

  // Both parts of a text must hold a window and the token behind it.
  void ReportShortParts(const std::string& path, const std::string& name,
                        const engine::TextSplit& split) {
    const double validation = run_.filled.task().text().validation();
    const uint32_t context = run_.filled.model().context();
    const std::string needs = absl::StrCat("at least ", context + 1, " of each");
    const std::string parts =
        absl::StrCat(text::Grouped(split.training), " tokens to train on and ",
                     text::Grouped(split.validation), " to validate on");
    const uint64_t least = std::min(split.training, split.validation);
    Report({{"model.context", Text(context),
             absl::StrCat(context, " needs ", needs, ", and ", name, " has ", parts),
             least > 1 ? absl::StrCat("1 to ", least - 1) : "a longer text"},
            {kShare, Decimal(validation),
             absl::StrCat(Decimal(validation), " leaves ", parts, ", and context ", context,
                          " needs ", needs),
             "a share that leaves enough of both, or a smaller context"},
            {path, name,
             absl::StrCat(name, " has ", parts, ", and context ", context, " needs ", needs),
             "a longer text, or a smaller context"}});
  }

  void ReportUnused(const Unused& unused) {
    const std::string field = unused.path.substr(unused.path.rfind('.') + 1);
    // model.attention.kind is called attention kind.
    const std::string switched = absl::StrReplaceAll(
        unused.switch_path.substr(unused.switch_path.find('.') + 1), {{".", " "}});
    Report({{unused.path, unused.value, absl::StrCat(unused.value, " means nothing ", unused.where),
             absl::StrCat("absent, or ", switched, " ", unused.users)},
            {unused.switch_path, unused.switch_value,
             absl::StrCat(unused.switch_value, " has no use for ", field, " ", unused.value),
             absl::StrCat(unused.users, ", or no ", field)}});
  }

  // Reports the party that was written most particularly; the first of equals.
  void Report(const std::vector<Party>& parties) {
    const Party* best = nullptr;
    Source best_source;
    for (const Party& party : parties) {
      if (AnyBad(run_.bad, {party.path})) return;
      Source source = run_.sources.Find(party.path, run_.merged);
      if (best == nullptr || source.rank > best_source.rank) {
        best = &party;
        best_source = std::move(source);
      }
    }
    reported_.insert(best->path);
    problems_->Add(best_source.reported_as, best->value, best->complaint, best->allowed);
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
  checker.CheckTask(datasets);
  checker.CheckModel();
  checker.CheckSwitchedOff();
  checker.CheckNorm();
  checker.CheckNormSizes();
  checker.CheckDrawing();
  checker.CheckTraining();
  checker.CheckOptimizer();
  checker.CheckDevice(surroundings.cuda);
  return checker.Take();
}

}  // namespace ablate::spec
