#include "server/engine/core/analyses/prompt_pairs.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "base/status_macros.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/layout.h"
#include "server/engine/task.h"

namespace ablate::engine {
namespace {

using PromptTokens = std::vector<uint32_t>;

// One of the lists of texts.
struct PairList {
  const char* field;
  const std::vector<std::string>& texts;
};

std::string FieldOfPair(const PairList& list, size_t i) {
  return absl::StrCat(list.field, "[", i, "]");
}

// Converts the texts of pairs to tokens, and collects their problems.
class PairReader {
 public:
  PairReader(const SampledData& data, const ModelConfig& model)
      : data_(data), codec_(data.codec()), context_(static_cast<size_t>(model.context)) {}

  PairsRead Read(const PatchOptions& options) {
    const PairList clean = {"clean", options.clean}, corrupt = {"corrupt", options.corrupt};
    const PairList right = {"right", options.right}, wrong = {"wrong", options.wrong};
    PairsRead read;
    for (size_t i = 0; i < options.clean.size(); ++i) {
      const auto from = ReadPrompt(clean, i), to = ReadPrompt(corrupt, i);
      const auto good = ReadAnswer(right, i), bad = ReadAnswer(wrong, i);
      if (from.has_value() && to.has_value() && from->size() != to->size()) {
        Add(FieldOfPair(corrupt, i),
            absl::StrCat("it has ", to->size(), " tokens, and ", FieldOfPair(clean, i), " has ",
                         from->size()),
            "as many tokens in both prompts of a pair");
      }
      if (good.has_value() && good == bad) {
        Add(FieldOfPair(wrong, i), absl::StrCat("it equals ", FieldOfPair(right, i)),
            "two different answers");
      }
      if (!problems_.empty()) continue;
      read.pairs.push_back({{from->begin(), from->end()}, {to->begin(), to->end()}, *good, *bad});
    }
    if (!problems_.empty()) read.pairs.clear();
    read.problems = std::move(problems_);
    return read;
  }

 private:
  void Add(std::string field, std::string complaint, std::string allowed) {
    problems_.push_back({std::move(field), "", std::move(complaint), std::move(allowed)});
  }

  std::optional<PromptTokens> Encode(const PairList& list, size_t i) {
    constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
    PromptTokens tokens;
    const auto problem = EncodePrompt(list.texts[i], codec_, kAny, &tokens);
    if (!problem.has_value()) return tokens;
    Add(FieldOfPair(list, i), problem->complaint, problem->allowed);
    return std::nullopt;
  }

  // Returns the tokens of a prompt, as OpeningOf begins a sample.
  std::optional<PromptTokens> ReadPrompt(const PairList& list, size_t i) {
    std::optional<PromptTokens> tokens = Encode(list, i);
    if (!tokens.has_value()) return std::nullopt;
    const bool opens = data_.documents != nullptr;
    const size_t most = context_ - (opens ? 1 : 0);
    if (tokens->size() > most) {
      Add(FieldOfPair(list, i), absl::StrCat("it has ", tokens->size(), " tokens"),
          absl::StrCat("at most ", most,
                       opens ? ", one less than the model's context" : ", the model's context"));
      return std::nullopt;
    }
    if (opens) tokens->insert(tokens->begin(), data_.documents->bos());
    return tokens;
  }

  std::optional<int64_t> ReadAnswer(const PairList& list, size_t i) {
    const std::optional<PromptTokens> tokens = Encode(list, i);
    if (!tokens.has_value()) return std::nullopt;
    if (tokens->size() == 1) return tokens->front();
    Add(FieldOfPair(list, i), absl::StrCat("it has ", tokens->size(), " tokens"),
        "text of one token");
    return std::nullopt;
  }

  const SampledData& data_;
  const TextCodec codec_;
  const size_t context_;
  std::vector<OptionProblem> problems_;
};

}  // namespace

absl::StatusOr<PairsRead> ReadPairs(const PatchOptions& options, const RunConfig& config) {
  if (!std::holds_alternative<DocumentsTask>(config.task) &&
      !std::holds_alternative<TextTask>(config.task)) {
    return PairsRead{
        {},
        {{"clean", "",
          absl::StrCat("the tokens of ", KindOf(config.task).name, " are numbers, not text"),
          "a run of a documents or text task"}}};
  }
  ASSIGN_OR_RETURN(const SampledData data, SampledDataOf(config));
  return PairReader(data, config.model).Read(options);
}

int64_t PatchedPlaces(PatchedPart part, const ModelConfig& model) {
  switch (part) {
    case PatchedPart::kResidual:
      return model.layers + 1;
    case PatchedPart::kHead:
      return int64_t{model.layers} * model.heads;
    case PatchedPart::kAttention:
    case PatchedPart::kFeedForward:
      break;
  }
  return model.layers;
}

int64_t PatchedRows(int64_t length, int64_t positions, double parameters) {
  const uint64_t tokens = PieceTokens(KindOf(PatchOptions()), parameters);
  const int64_t fitting = static_cast<int64_t>(tokens) / length;
  return std::clamp<int64_t>(fitting, 1, positions + 1);
}

std::vector<OptionProblem> CheckPatch(const AnalysisOptions& options, const ModelConfig& model) {
  const auto& patch = std::get<PatchOptions>(options);
  std::vector<OptionProblem> problems;
  if (patch.clean.empty()) {
    problems.push_back({"clean", "", "there is no prompt", "at least one"});
  }
  const PairList lists[] = {{"clean", patch.clean},
                            {"corrupt", patch.corrupt},
                            {"right", patch.right},
                            {"wrong", patch.wrong}};
  for (const PairList& list : lists) {
    if (list.texts.size() != patch.clean.size()) {
      problems.push_back({list.field, "",
                          absl::StrCat("it has ", list.texts.size(), " entries, and clean has ",
                                       patch.clean.size()),
                          "one for each clean prompt"});
    }
    for (size_t i = 0; i < list.texts.size(); ++i) {
      if (list.texts[i].empty())
        problems.push_back({FieldOfPair(list, i), "", "it is empty", "text"});
    }
  }
  const bool attends = patch.part == PatchedPart::kAttention || patch.part == PatchedPart::kHead;
  if (attends && !Attends(model)) {
    problems.push_back({"part", patch.part == PatchedPart::kHead ? "head" : "attention",
                        "the model has no attention", "residual, feed_forward"});
  }
  return problems;
}

absl::StatusOr<std::vector<OptionProblem>> CheckPairs(const AnalysisOptions& options,
                                                      const RunConfig& config) {
  ASSIGN_OR_RETURN(PairsRead read, ReadPairs(std::get<PatchOptions>(options), config));
  return std::move(read.problems);
}

// The data may not be loaded: a character counts as a token, or, with a tokenizer, three of them.
// Then prompts of different lengths may have equally many tokens.
AnalysisCost PatchCost(const AnalysisOptions& options, const RunConfig& config, uint64_t, size_t) {
  const auto& patch = std::get<PatchOptions>(options);
  const int64_t opening = std::holds_alternative<DocumentsTask>(config.task) ? 1 : 0;
  const bool encoded = HasStoredTokens(config.task);
  int64_t tokens = 0, longest = 1, shortest = config.model.context;
  for (const std::string& prompt : patch.clean) {
    const auto characters = static_cast<int64_t>(text::CountCharacters(prompt));
    const int64_t length = std::clamp<int64_t>(
        (encoded ? (characters + 2) / 3 : characters) + opening, 1, config.model.context);
    tokens += length;
    longest = std::max(longest, length);
    shortest = std::min(shortest, length);
  }
  const auto parameters = static_cast<double>(MakeLayout(config.model).size);
  const int64_t places = PatchedPlaces(patch.part, config.model);
  const int64_t positions = encoded || shortest == longest ? longest : 0;
  const int64_t rows = PatchedRows(longest, positions, parameters);
  const int64_t batches = 2 + places * ((positions + rows) / rows);
  const int64_t element = config.precision == Precision::kFloat64 ? 8 : 4;
  const int64_t features =
      patch.part == PatchedPart::kHead ? QueryWidth(config.model) : config.model.width;
  const int64_t activations = (config.model.layers + 1) * rows * longest * features;
  const int64_t sums =
      16 * (rows + places * (positions + 1)) + 16 * static_cast<int64_t>(patch.clean.size());
  AnalysisCost cost;
  cost.forwards = static_cast<double>(batches * rows);
  cost.state_bytes = static_cast<uint64_t>(element * activations + sums);
  cost.array_bytes = static_cast<uint64_t>(16 * places * positions);
  if (patch.part == PatchedPart::kHead) cost.array_bytes += static_cast<uint64_t>(8 * places);
  // The text of a prompt's tokens, and where each ends.
  if (positions > 0 && !patch.clean.empty()) {
    cost.array_bytes += patch.clean[0].size() + static_cast<uint64_t>(8 * positions);
  }
  cost.tokens = static_cast<uint64_t>(tokens);
  cost.calls = static_cast<double>(batches) * static_cast<double>(patch.clean.size());
  return cost;
}

}  // namespace ablate::engine
