#include "server/experiment/expand.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/config/engine_config.h"
#include "server/config/estimate.h"
#include "server/config/fields.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/names.h"
#include "server/experiment/checks.h"
#include "server/experiment/field_values.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/initial_model.h"
#include "server/experiment/merge.h"
#include "server/experiment/trainer_choice.h"

namespace ablate::spec {
namespace {

// Groups by the lengths of a data set's documents; one token each if they are unknown.
Sequences SequencesOfDocuments(const v1::BaseSpec& spec, const DatasetFacts& facts) {
  std::map<uint64_t, double> documents;  // by positions
  double positions = 0;
  for (size_t length = 0; length < facts.lengths.size(); ++length) {
    if (facts.lengths[length] == 0) continue;
    const uint64_t cut = std::min<uint64_t>(length + 1, spec.model().context());
    const double count = static_cast<double>(facts.lengths[length]);
    documents[cut] += count;
    positions += count * static_cast<double>(cut);
  }
  constexpr auto kMaxRows = static_cast<double>(engine::BatchSource::kMaxEvaluationBatch);
  Sequences sequences;
  sequences.held_out = spec.task().documents().held_out();
  sequences.batches = std::ceil(sequences.held_out / kMaxRows);
  if (documents.empty()) return sequences;
  const double all = static_cast<double>(facts.documents);
  sequences.mean = positions / all;
  sequences.batches = 0;
  // Documents of one length are evaluated together.
  for (const auto& [length, count] : documents) {
    const double held_out = std::floor(sequences.held_out * count / all);
    sequences.evaluated =
        std::max(sequences.evaluated, std::min(kMaxRows, held_out) * static_cast<double>(length));
    sequences.batches += std::ceil(held_out / kMaxRows);
  }
  sequences.batches = std::max(sequences.batches, 1.0);
  return sequences;
}

engine::EvaluationConfig EvaluationOf(const v1::EvaluationSpec& spec) {
  return {.batches = spec.batches(), .tokens = spec.tokens()};
}

Sequences SequencesOfText(const v1::BaseSpec& spec, const DatasetFacts& facts) {
  const uint64_t context = spec.model().context();
  const engine::TextSplit split = engine::SplitText(engine::FactsOfText(facts).tokens,
                                                    spec.task().text().validation(), context);
  const engine::EvaluatedWindows read =
      engine::WindowsToEvaluate(split, context, EvaluationOf(spec.evaluation()));
  const uint64_t together = std::min(read.together, read.windows);
  return {static_cast<double>(context), static_cast<double>(together * context),
          static_cast<double>(read.windows), static_cast<double>(read.batches())};
}

Sequences SequencesOf(const v1::BaseSpec& spec, const engine::TaskShape& shape,
                      const DatasetFacts& facts) {
  if (spec.task().has_documents()) return SequencesOfDocuments(spec, facts);
  if (spec.task().has_text()) return SequencesOfText(spec, facts);
  const double batch = spec.training().batch(), batches = spec.evaluation().batches();
  return {static_cast<double>(shape.sequence), batch, batch * batches, batches};
}

// Stands in for the shape of a task with problems.
constexpr engine::TaskShape kSomeTask = {64};

constexpr char kHiddenPath[] = "model.feed_forward.hidden";
constexpr uint64_t kMostHidden = 65'536;  // as in spec.proto

constexpr char kCpu[] = "cpu";
constexpr char kCuda[] = "cuda";

class Expander {
 public:
  Expander(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
           Problems* problems, Resolution* resolution)
      : input_(input),
        surroundings_(surroundings),
        datasets_(datasets),
        models_(surroundings),
        problems_(problems),
        resolution_(resolution),
        merger_(input) {}

  void Visit(const Indexes& indexes, size_t changed) {
    Merged merged = merger_.Merge(indexes, changed);
    if (input_.labels_are_good) merger_.CheckName(indexes, problems_);
    any_broken_ |= merged.broken;
    if (merged.broken) return;
    if (merged.spec.has_program()) {
      problems_->Add("base.program", "", "missing, but an axis sets a part of it",
                     "the program in base; an axis may change it there");
      any_broken_ = true;
      return;
    }
    BadPaths& bad = merged.bad;
    const Sources sources(input_.overrides, merged.points);
    v1::BaseSpec filled = merged.spec;
    const absl::StatusOr<ModelFacts>* initial = nullptr;
    if (filled.has_model_from() && !AnyBad(bad, {"model_from"})) {
      initial = &models_.Find(filled.model_from());
      if (initial->ok()) BeginWith(**initial, &filled);
    }
    FillDefaults(/*cuda=*/false, &filled);  // until the device is chosen
    const RunToCheck run{merged.spec, filled, sources, bad, initial};
    BadPaths found = CheckRun(run, surroundings_, datasets_, problems_);
    bad.merge(std::move(found));
    bad.merge(effects_.Check(run, problems_));
    AddCombination(indexes, run);
  }

  // Call it after all combinations. Settings that could not be read may have used a field.
  void ReportIdle() const {
    if (!any_broken_) effects_.ReportIdle(problems_);
  }

  // Call it after all combinations: checks that native trains all cells that ask for it, chooses
  // one trainer for all that leave it open, and one device likewise.
  void AddCells() {
    std::map<std::string, std::pair<Source, std::vector<NativeCandidate>>> asking;
    std::vector<NativeCandidate> open;
    for (const Combination& combination : combinations_) {
      if (!combination.bad.empty()) continue;
      const ResolvedCell& pattern = combination.pattern;
      if (combination.open) open.push_back({&pattern.labels, pattern.why_not_native});
      if (!combination.native_by.has_value()) continue;
      auto& [source, candidates] = asking[combination.native_by->reported_as];
      source = *combination.native_by;
      candidates.push_back({&pattern.labels, pattern.why_not_native});
    }
    for (const auto& [path, asked] : asking) CheckNative(asked.first, asked.second, problems_);
    const std::string why_torch = WhyNotAllNative(open);
    for (Combination& combination : combinations_) {
      if (!combination.open) continue;
      if (!why_torch.empty()) TrainByTorch(&combination);
      combination.pattern.why_not_native = why_torch;
    }
    ChooseDevice();
    for (Combination& combination : combinations_) {
      CheckMemory(&combination);
      AddSeeds(&combination);
    }
    AddMemoryNotes();
  }

 private:
  // The state of a combination's cells before their trainer is chosen.
  struct Combination {
    ResolvedCell pattern;  // without the seed's part; why_not_native is its own
    std::string name;      // name of its cells, before the seed
    engine::RunConfig config;
    Canonical canonical;
    BadPaths bad;
    bool open = false;                     // it asks for auto; native until the trainer is chosen
    std::optional<Source> native_by = {};  // where it is set to native
    bool device_open = false;              // likewise; cpu until the device is chosen
    std::optional<Source> gpu_by = {};     // where its precision is set, if it needs a GPU
    double training_bytes = 0;             // memory; 0 if it has problems
    // By device kind that lacks this memory, among those that may train it.
    std::map<std::string, std::vector<Problem>> too_large = {};
  };

  // The run that needs most memory and fits its device.
  struct Largest {
    uint64_t parameters = 0;
    double bytes = 0;
    uint32_t lanes = 1;  // that train it together
    size_t cells = 0;    // on devices of this kind
  };

  const ModelSize& SizeOf(const engine::RunConfig& config, const std::string& model) {
    const std::string key = absl::StrCat(model, engine::NameOf(config.training.rule));
    const auto known = sizes_.find(key);
    if (known != sizes_.end()) return known->second;
    const engine::ParameterLayout layout = engine::MakeLayout(config.model, config.training.rule);
    const ModelSize size{static_cast<uint64_t>(layout.size),
                         layout.parameters.size() + layout.buffers.size(),
                         static_cast<uint64_t>(layout.buffer_size)};
    return sizes_.emplace(key, size).first->second;
  }

  // Makes everything that doesn't depend on the seed. A run without a task gets one, so that the
  // rest of it can be checked.
  ResolvedCell MakeCell(const Indexes& indexes, const RunToCheck& run, const DatasetFacts** facts) {
    v1::BaseSpec filled = run.filled;
    if (filled.task().kind_case() == v1::TaskSpec::KIND_NOT_SET) {
      filled.mutable_task()->mutable_recall();
      FillDefaults(/*cuda=*/false, &filled);
    }
    ResolvedCell cell;
    cell.labels = merger_.LabelsOf(indexes);
    std::string* name = MutableDatasetOf(filled.mutable_task());
    if (name != nullptr && !AnyBad(run.bad, {"task"})) {
      *facts = &*datasets_->FindRead(filled.task());
      *name = absl::StrCat("datasets/", (*facts)->id);
      if ((*facts)->kind == DatasetKind::kTokens) {
        SetTokenizer(kStoredTokens, filled.mutable_task());
      }
    }
    cell.dataset_sha256 = (*facts)->sha256;
    if (run.initial != nullptr && run.initial->ok()) {
      cell.initial_sha256 = (*run.initial)->sha256;
      cell.run.set_vocabulary((*run.initial)->vocabulary);
      filled.set_model_from((*run.initial)->name);
    }
    cell.device_kind = v1::Device::Value_Name(filled.training().device());
    *cell.run.mutable_spec() = std::move(filled);
    return cell;
  }

  // Fills in too_large. Returns false if no device that may train the combination has the memory.
  bool FindMemory(const RunToCheck& run, uint64_t parameters, Combination* combination) const {
    std::vector<std::string> kinds = {combination->pattern.device_kind};
    if (combination->device_open && surroundings_.cuda) kinds.push_back(kCuda);
    for (const std::string& kind : kinds) {
      const auto memory = surroundings_.memory.find(kind);
      const bool fits = memory == surroundings_.memory.end() ||
                        combination->training_bytes <= static_cast<double>(memory->second.bytes);
      if (fits) continue;
      Problems problems;
      ReportMemory(run, {parameters, combination->training_bytes, memory->second.bytes}, &problems);
      combination->too_large[kind] = problems.Take();
    }
    return combination->too_large.size() < kinds.size();
  }

  // Reports if the chosen device lacks the memory.
  void CheckMemory(Combination* combination) {
    const std::string& kind = combination->pattern.device_kind;
    const auto too_large = combination->too_large.find(kind);
    if (too_large != combination->too_large.end()) {
      problems_->Add(std::move(too_large->second));
      combination->bad.insert("model");
      return;
    }
    Largest& largest = largest_[kind];
    largest.cells += input_.grid.seeds.size();
    if (combination->training_bytes <= largest.bytes) return;
    largest.parameters = combination->pattern.parameters;
    largest.bytes = combination->training_bytes;
    largest.lanes = combination->config.training.threads;
  }

  // Notes if a run fits its device, but not as often as runs train at once.
  void AddMemoryNotes() const {
    for (const auto& [kind, largest] : largest_) {
      const auto memory = surroundings_.memory.find(kind);
      if (memory == surroundings_.memory.end()) continue;
      const DeviceMemory& device = memory->second;
      const size_t at_once = std::min<size_t>(device.lanes / largest.lanes, largest.cells);
      const double all = largest.bytes * static_cast<double>(at_once);
      if (all <= static_cast<double>(device.bytes)) continue;
      resolution_->notes.push_back(absl::StrCat(
          "training a run of ", text::Grouped(largest.parameters), " parameters takes at least ",
          BytesText(largest.bytes), " of memory, ", at_once, " at once ", BytesText(all),
          ", and the ", kind == kCuda ? "GPU" : "device", " has ",
          BytesText(static_cast<double>(device.bytes)), ": give its worker fewer lanes"));
    }
  }

  // Returns the cell's engine config, and sets why native doesn't train it if auto or native is
  // asked for; both with native for auto. Nothing if the engine doesn't accept the run, which is
  // reported if it had no problems before.
  std::optional<engine::RunConfig> ReadConfig(const engine::TaskShape& shape, bool good,
                                              ResolvedCell* cell) {
    v1::TrainingSpec* training = cell->run.mutable_spec()->mutable_training();
    const auto wanted = training->trainer();
    if (wanted == v1::Trainer::auto_) training->set_trainer(v1::Trainer::native);
    absl::StatusOr<engine::RunConfig> config = ToEngineConfig(cell->run, shape);
    if (!config.ok()) {
      if (good)
        problems_->Add("base", "", config.status().message(), "a model that the engine supports");
      return std::nullopt;
    }
    if (good && wanted != v1::Trainer::torch) cell->why_not_native = engine::WhyNotNative(*config);
    return *std::move(config);
  }

  static void TrainByTorch(Combination* combination) {
    v1::BaseSpec* spec = combination->pattern.run.mutable_spec();
    spec->mutable_training()->set_trainer(v1::Trainer::torch);
    combination->config.training.trainer = engine::TrainerKind::kTorch;
    combination->canonical.SetTrainer(engine::NameOf(engine::TrainerKind::kTorch));
  }

  static void TrainOnGpu(Combination* combination) {
    ResolvedCell& pattern = combination->pattern;
    pattern.run.mutable_spec()->mutable_training()->set_device(v1::Device::cuda);
    pattern.device_kind = kCuda;
    combination->config.device = engine::Device::kCuda;
    combination->canonical.SetDevice(kCuda);
  }

  // Reports a precision that the cores lack. CheckNative reports it for the native trainer.
  void CheckPrecision(Combination* combination) {
    const engine::RunConfig& config = combination->config;
    const bool refused = config.training.trainer == engine::TrainerKind::kNative;
    if (!combination->gpu_by.has_value() || refused || !combination->bad.empty()) return;
    problems_->Add(combination->gpu_by->reported_as, std::string(engine::NameOf(config.precision)),
                   absl::StrCat("precision ", engine::NameOf(config.precision),
                                " needs a GPU, and device auto is cpu, because the cores train "
                                "some of the runs"),
                   "float32, or training.device: cuda for this run");
    combination->bad.insert("training.precision");
  }

  // One device for all cells that leave it open, because devices round differently, too: a GPU,
  // unless the cores must train one of them: by the native trainer, or by several threads.
  void ChooseDevice() {
    size_t open = 0, native = 0, threaded = 0;
    for (const Combination& combination : combinations_) {
      if (!combination.device_open || !combination.bad.empty()) continue;
      const engine::TrainingConfig& training = combination.config.training;
      ++open;
      native += training.trainer == engine::TrainerKind::kNative ? 1 : 0;
      threaded += training.threads > 1 ? 1 : 0;
    }
    if (!surroundings_.cuda || open == 0) return;
    for (Combination& combination : combinations_) {
      if (!combination.device_open) continue;
      if (native + threaded == 0) {
        TrainOnGpu(&combination);
      } else {
        CheckPrecision(&combination);
      }
    }
    resolution_->notes.push_back(
        native > 0     ? absl::StrCat("training.device auto is cpu, because native trains ",
                                  native == open ? "" : "some of ",
                                      "the runs on the cores; training.device=cuda trains them by "
                                          "torch on a GPU")
        : threaded > 0 ? "training.device auto is cpu, because training.threads is above 1; "
                         "without threads a GPU trains the runs"
                       : "training.device auto is cuda: torch trains on a GPU");
  }

  // Adds no costs if no device has the memory to train it.
  void AddCosts(const RunToCheck& run, const Sequences& sequences, Combination* combination) {
    const engine::RunConfig& config = combination->config;
    const ModelSize& size = SizeOf(config, combination->canonical.ModelText());
    combination->training_bytes = TrainingBytes(config, size, sequences);
    if (!FindMemory(run, size.parameters, combination)) return;
    ResolvedCell& cell = combination->pattern;
    cell.parameters = size.parameters;
    cell.bytes = StoredBytes(config, size);
    cell.resume_bytes = ResumeBytes(config.training, size);
    cell.flops_per_step = FlopsPerStep(config, size.parameters, sequences);
    cell.evaluation = CostOfEvaluation(config, size.parameters, sequences);
  }

  // A selection between settings that are scored on different data would select the data.
  void CheckTunedAxes(const Indexes& indexes, const FieldValues& scored) {
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      const AxisPlan& plan = input_.grid.axes[axis];
      if (!plan.tuned) continue;
      Indexes others = indexes;
      others[axis] = 0;
      const auto [known, added] = scored_[axis].emplace(std::move(others), scored);
      if (added || known->second == scored) continue;
      std::vector<std::string> paths;
      for (const auto& [path, value] : Difference(scored, known->second)) paths.push_back(path);
      problems_->Add(
          absl::StrCat(plan.source, ".tune"), "true",
          absl::StrCat("settings of ", plan.name, " are scored on different data or targets (",
                       absl::StrJoin(paths, ", "), "), so that none can be selected"),
          "false, or settings that are scored on the same");
    }
  }

  // Returns the indexes of a combination without those of tuned values.
  Indexes Untuned(Indexes indexes) const {
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      if (input_.grid.axes[axis].selects()) indexes[axis] = 0;
    }
    return indexes;
  }

  // Returns the combination that one with match_parameters is matched to: the first setting of the
  // axis that writes it, and its own of the others. None if that is the combination itself.
  std::optional<Indexes> BaselineOf(const Indexes& indexes) const {
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      const AxisPlan& plan = input_.grid.axes[axis];
      const auto& writes = plan.points[static_cast<size_t>(indexes[axis])].writes;
      if (indexes[axis] == 0 || WrittenBy(writes, kMatchPath).empty()) continue;
      Indexes baseline = Untuned(indexes);
      baseline[axis] = 0;
      return baseline;
    }
    return std::nullopt;
  }

  // Replaces match_parameters by the `hidden` with which the parameters come nearest the
  // baseline's. Returns false if that isn't possible, which is reported.
  bool MatchParameters(const Indexes& indexes, const RunToCheck& run,
                       const engine::TaskShape& shape, v1::ModelSpec* model) {
    v1::FeedForwardSpec* feed_forward = model->mutable_feed_forward();
    feed_forward->set_match_parameters(false);
    const Source by = run.sources.Find(kMatchPath, run.merged);
    const Source hidden = run.sources.Find(kHiddenPath, run.merged);
    const auto refuse = [&](absl::string_view complaint, absl::string_view allowed) {
      problems_->Add(by.reported_as, "true", complaint, allowed);
      return false;
    };
    if (run.merged.model().feed_forward().has_hidden() && hidden.rank >= by.rank) {
      return refuse("hidden and match_parameters exclude each other", "one of them");
    }
    const std::optional<Indexes> other = BaselineOf(indexes);
    if (!other.has_value()) {
      return refuse("the baseline, the first setting of the axis, can't match itself",
                    "match_parameters in other settings of an axis");
    }
    if (!run.bad.empty()) return false;
    const auto found = parameters_.find(*other);
    if (found == parameters_.end()) {  // it has problems, or is excluded
      if (!problems_->empty()) return false;
      return refuse("the baseline is excluded", "a grid with the first setting of the axis");
    }
    const uint64_t wanted = found->second;
    // Sets hidden, and returns the number of parameters.
    const auto count = [&](uint64_t features) {
      feed_forward->set_hidden(static_cast<uint32_t>(features));
      const auto config = ToEngineModel(*model, shape);
      return config.ok() ? static_cast<uint64_t>(engine::MakeLayout(*config).size) : 0;
    };
    // The number of parameters is linear in the features.
    const uint64_t least = count(1), each = count(2) - least;
    if (each == 0) return false;  // not a model, which ReadConfig reports
    const std::string baseline = absl::StrCat("the baseline has ", text::Grouped(wanted));
    if (least > wanted) {
      return refuse(
          absl::StrCat(baseline, " parameters, and hidden 1 makes ", text::Grouped(least)),
          "a setting with fewer other parameters");
    }
    const uint64_t features = std::min(1 + (wanted - least + each / 2) / each, kMostHidden);
    const uint64_t parameters = count(features);
    std::vector<absl::string_view> labels;  // other than the baseline's, without tuned values
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      const AxisPlan& plan = input_.grid.axes[axis];
      if (indexes[axis] == 0 || plan.selects()) continue;
      labels.push_back(plan.points[static_cast<size_t>(indexes[axis])].label);
    }
    std::string note = absl::StrCat(absl::StrJoin(labels, ", "), ": hidden ", features, " makes ",
                                    text::Grouped(parameters), " parameters, ", baseline);
    if (matched_.insert(note).second) resolution_->notes.push_back(std::move(note));
    return true;
  }

  void AddCombination(const Indexes& indexes, const RunToCheck& run) {
    const DatasetFacts none;
    const DatasetFacts* facts = &none;
    ResolvedCell pattern = MakeCell(indexes, run, &facts);
    const v1::BaseSpec& spec = pattern.run.spec();
    if (!AnyBad(run.bad, {"task", "model.context", "evaluation.batches", "evaluation.tokens"})) {
      CheckTunedAxes(indexes, ScoredData(spec, facts->sha256, facts->longest, input_.primary));
    }
    engine::TaskShape shape = kSomeTask;
    if (!AnyBad(run.bad, {"task"})) shape = *ShapeOf(spec.task(), *facts);
    BadPaths bad = run.bad;
    if (spec.model().feed_forward().match_parameters() &&
        !MatchParameters(indexes, run, shape, pattern.run.mutable_spec()->mutable_model())) {
      bad.insert(kMatchPath);
    }
    std::optional<engine::RunConfig> config = ReadConfig(shape, bad.empty(), &pattern);
    if (!config.has_value()) return;
    const bool good = bad.empty();
    const auto trainer = run.filled.training().trainer();
    Canonical canonical(spec, pattern.dataset_sha256, pattern.initial_sha256);
    Combination& combination = combinations_.emplace_back(
        Combination{std::move(pattern), merger_.NameOf(indexes), *std::move(config),
                    std::move(canonical), std::move(bad), trainer == v1::Trainer::auto_});
    combination.device_open = LeavesDeviceOpen(run.merged.training());
    if (combination.config.precision == engine::Precision::kTf32) {
      combination.gpu_by = run.sources.Find("training.precision", run.merged);
    }
    if (trainer == v1::Trainer::native) {
      combination.native_by = run.sources.Find("training.trainer", run.merged);
    }
    if (good) AddCosts(run, SequencesOf(run.filled, shape, *facts), &combination);
    if (good) {
      parameters_.emplace(Untuned(indexes),
                          SizeOf(combination.config, combination.canonical.ModelText()).parameters);
    }
  }

  void AddSeeds(Combination* combination) {
    ResolvedCell& pattern = combination->pattern;
    const Canonical& canonical = combination->canonical;
    const engine::TrainerKind trainer = combination->config.training.trainer;
    pattern.trainer = std::string(engine::NameOf(trainer));
    pattern.guessed_speed = GuessSpeed(combination->config);
    pattern.shape = ShortHash(canonical.ShapeText());
    const std::vector<OtherChoice> others = OthersOf(*combination);
    const std::string& name = combination->name;
    for (const uint32_t seed : input_.grid.seeds) {
      ResolvedCell cell = pattern;
      cell.name = absl::StrCat(name, name.empty() ? "s" : "-s", seed);
      cell.seed = seed;
      cell.run.set_seed(seed);
      cell.fingerprint = ShortHash(canonical.RunText(seed));
      cell.trajectory = ShortHash(canonical.TrajectoryText(seed));
      cell.growth = GrowthOf(canonical, seed);
      for (const OtherChoice& other : others) {
        cell.others.push_back({other.trainer, other.device_kind,
                               ShortHash(other.canonical.RunText(seed)),
                               GrowthOf(other.canonical, seed)});
      }
      resolution_->cells.push_back(std::move(cell));
    }
    v1::SettingParameters& row = resolution_->parameters.emplace_back();
    for (const auto& [axis, label] : pattern.labels) (*row.mutable_labels())[axis] = label;
    row.set_parameters(pattern.parameters);
    resolution_->configs.push_back(std::move(combination->config));
    resolution_->bad.push_back(std::move(combination->bad));
  }

  // A trainer and device that could have been chosen for a combination.
  struct OtherChoice {
    std::string trainer;
    std::string device_kind;
    Canonical canonical;
  };

  std::vector<OtherChoice> OthersOf(const Combination& combination) const {
    std::vector<OtherChoice> others;
    const ResolvedCell& chosen = combination.pattern;
    if (combination.gpu_by.has_value()) return others;  // only torch on a GPU can train it
    // Or only torch on cores.
    if (combination.config.training.threads > 1) return others;
    engine::RunConfig on_cores = combination.config;
    on_cores.device = engine::Device::kCpu;
    const bool has_native = engine::WhyNotNative(on_cores).empty();
    for (const auto& [trainer, device_kind] :
         {std::pair("native", kCpu), std::pair("torch", kCpu), std::pair("torch", kCuda)}) {
      const bool other_trainer = chosen.trainer != trainer;
      const bool other_device = chosen.device_kind != device_kind;
      const bool possible = (!other_trainer || combination.open) &&
                            (!other_device || (combination.device_open && surroundings_.cuda));
      if (!possible || (!other_trainer && !other_device)) continue;
      if (!has_native && trainer == absl::string_view("native")) continue;
      OtherChoice& other =
          others.emplace_back(OtherChoice{trainer, device_kind, combination.canonical});
      other.canonical.SetTrainer(trainer);
      other.canonical.SetDevice(device_kind);
    }
    return others;
  }

  // Returns the growth key; empty if the run can't be extended.
  static std::string GrowthOf(const Canonical& canonical, uint32_t seed) {
    const std::string text = canonical.GrowthText(seed);
    return text.empty() ? "" : ShortHash(text);
  }

  const ExpandInput& input_;
  const Surroundings& surroundings_;
  Datasets* datasets_;
  InitialModels models_;
  Problems* problems_;
  Resolution* resolution_;
  Merger merger_;
  EffectChecker effects_;
  bool any_broken_ = false;                 // a setting could not be read
  std::map<std::string, ModelSize> sizes_;  // keyed by Canonical::ModelText and rule
  std::map<std::string, Largest> largest_;  // by device kind
  // By tuned axis, then by the combination of the other axes: evaluation data of the first setting.
  std::map<size_t, std::map<Indexes, FieldValues>> scored_;
  std::vector<Combination> combinations_;
  std::map<Indexes, uint64_t> parameters_;  // of combinations without problems, Untuned
  std::set<std::string> matched_;           // notes
};

}  // namespace

void Expand(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
            Problems* problems, Resolution* resolution) {
  Expander expander(input, surroundings, datasets, problems, resolution);
  VisitGrid(input.grid, [&expander](const Indexes& indexes, size_t changed) {
    expander.Visit(indexes, changed);
  });
  expander.ReportIdle();
  expander.AddCells();
}

}  // namespace ablate::spec
