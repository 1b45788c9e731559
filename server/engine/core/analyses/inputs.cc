#include "server/engine/core/analyses/inputs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/conllu.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/tokenizer/encoder.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/analyses/tagged_rows.h"
#include "server/engine/core/data/characters.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {
namespace {

constexpr uint32_t kMaxPromptTokens = 512;

using Read = absl::StatusOr<SequencesRead>;

// Reads the prompt as one row. Every token except the first is a target.
Read ReadPrompt(const RunConfig& config, const std::string& prompt) {
  ASSIGN_OR_RETURN(const SampledData data, SampledDataOf(config));
  const auto context = static_cast<uint32_t>(config.model.context);
  const uint32_t longest =
      std::min(kMaxPromptTokens, context) - (data.documents != nullptr ? 1 : 0);
  std::vector<uint32_t> tokens;
  const auto wrong = EncodePrompt(prompt, data.codec(), longest, &tokens);
  if (wrong.has_value()) return UnreadableInputs("inputs.prompt", wrong->complaint, wrong->allowed);
  ASSIGN_OR_RETURN(const Opening opening, OpeningOf(data, tokens));
  TokenBatch batch;
  batch.rows = 1;
  batch.length = static_cast<int64_t>(opening.tokens.size());
  batch.inputs.assign(opening.tokens.begin(), opening.tokens.end());
  batch.targets.assign(batch.inputs.begin() + 1, batch.inputs.end());
  batch.targets.push_back(TokenBatch::kIgnored);
  batch.lengths = {batch.length};
  return SequencesRead{{std::move(batch)}, {}};
}

// Returns the total parameters of the models that a piece runs: of one model if a piece has one
// checkpoint.
double ParametersTogether(const AnalysisKind& kind, const std::vector<const RunConfig*>& subjects) {
  double parameters = 0;
  for (const RunConfig* subject : subjects) {
    parameters += static_cast<double>(MakeLayout(subject->model).size);
    if (kind.steps_of_one_run) break;
  }
  return parameters;
}

// Returns unpadded batches, cut into parts of at most `most` tokens, or one row.
std::vector<TokenBatch> InParts(const std::vector<TokenBatch>& batches, uint64_t most) {
  std::vector<TokenBatch> parts;
  for (const TokenBatch& batch : batches) {
    const auto length = static_cast<uint64_t>(batch.length);
    const int64_t together = std::max<int64_t>(1, static_cast<int64_t>(most / length));
    for (int64_t first = 0; first < batch.rows; first += together) {
      parts.push_back(batch.Rows(first, std::min(together, batch.rows - first)));
    }
  }
  return parts;
}

// Returns all rows in batches of about the training micro-batch size; sizes differ by at most one.
// Rows are distributed in the order of their length, so that each batch has short and long ones.
std::vector<TokenBatch> InTrainingBatches(const std::vector<TokenBatch>& batches,
                                          const TrainingConfig& training) {
  const std::vector<TokenBatch> rows = SplitRows(batches);
  const size_t together = std::max(training.batch / std::max(training.accumulation, 1u), 1u);
  const size_t count = std::max<size_t>(1, (rows.size() + together / 2) / together);
  std::vector<std::vector<TokenBatch>> dealt(count);
  for (size_t i = 0; i < rows.size(); ++i) dealt[i % count].push_back(rows[i]);
  std::vector<TokenBatch> mixed;
  for (const std::vector<TokenBatch>& hand : dealt) {
    if (!hand.empty()) mixed.push_back(JoinRows(hand));
  }
  return mixed;
}

// Returns whole rows of the held-out batches, up to `tokens` tokens.
SequencesRead HeldOutRows(const BatchSource& source, uint64_t tokens) {
  SequencesRead read;
  uint64_t taken = 0;
  for (size_t index = 0; index < source.HeldOutBatches(); ++index) {
    const TokenBatch batch = source.HeldOut(index);
    const auto length = static_cast<uint64_t>(batch.length);
    const uint64_t room = taken < tokens ? (tokens - taken) / length : 0;
    const uint64_t wanted = taken == 0 ? std::max<uint64_t>(room, 1) : room;
    const int64_t rows =
        std::min(batch.rows, static_cast<int64_t>(std::min<uint64_t>(wanted, INT64_MAX)));
    if (rows > 0) read.batches.push_back(batch.Rows(0, rows));
    taken += static_cast<uint64_t>(rows) * length;
    if (rows < batch.rows) break;
  }
  return read;
}

Read ReadHeldOut(const RunConfig& config, const AnalysisInputs& inputs) {
  const auto source = MakeBatchSource(config);
  if (!source.ok()) return source.status();
  if (inputs.documents == 0) return HeldOutRows(**source, inputs.tokens);
  const auto first = (*source)->FirstHeldOut(inputs.documents, kMaxReadTokens);
  return first.has_value() ? SequencesRead{*first, {}} : TooManyTokens(inputs);
}

// Appends the tokens of code points. Returns the problem of the first one that the alphabet lacks,
// which is in the `number`-th `unit` of its text.
std::optional<SequencesRead> Encode(const std::u32string& points, const std::u32string& alphabet,
                                    const char* unit, uint64_t number,
                                    std::vector<uint32_t>* tokens) {
  for (size_t i = 0; i < points.size(); ++i) {
    const std::optional<uint32_t> token = RankOf(points[i], alphabet);
    if (!token.has_value()) {
      return UnknownCharacter(absl::StrCat(unit, " ", number), i + 1, points[i], alphabet);
    }
    tokens->push_back(*token);
  }
  return std::nullopt;
}

// Reads other documents in order. Rows are grouped by length, so that none is padded.
Read ReadOtherDocuments(const TokenizedDocuments& own, int64_t context,
                        const AnalysisInputs& inputs) {
  auto documents = std::make_shared<TokenizedDocuments>();
  documents->alphabet = own.alphabet;
  documents->encoding = own.encoding;
  documents->boundary = own.boundary;
  documents->starts = {0};
  std::optional<tokenizer::Encoder> encoder;
  if (own.encoding != nullptr) encoder.emplace(own.encoding);
  DocumentReader reader(*inputs.text);
  std::u32string document;
  std::vector<uint32_t> encoded;
  uint64_t taken = 0;
  while (inputs.documents == 0 || documents->documents() < inputs.documents) {
    ASSIGN_OR_RETURN(const bool found, reader.Next(document));
    if (!found) break;
    encoded.clear();
    if (encoder.has_value()) {
      encoder->EncodeBeginning(Utf8Of(document), static_cast<size_t>(context), &encoded);
    }
    const size_t size = encoder.has_value() ? encoded.size() : document.size();
    const uint64_t length = std::min(static_cast<uint64_t>(context), uint64_t{size} + 1);
    const bool first = documents->documents() == 0;
    if (inputs.documents == 0 && !first && taken + length > inputs.tokens) break;
    taken += length;
    if (inputs.documents > 0 && taken > kMaxReadTokens) return TooManyTokens(inputs);
    if (encoder.has_value()) {
      documents->tokens.insert(documents->tokens.end(), encoded.begin(), encoded.end());
    } else {
      // The part beyond the context is cut off and needn't be in the alphabet.
      document.resize(std::min(document.size(), static_cast<size_t>(context)));
      auto wrong = Encode(document, documents->alphabet, "document", documents->documents() + 1,
                          &documents->tokens);
      if (wrong.has_value()) return *std::move(wrong);
    }
    documents->starts.push_back(documents->tokens.size());
  }
  return SequencesRead{DocumentBatchesOf(std::move(documents), context), {}};
}

// Appends up to `most` characters of a text as tokens of `own`. Returns the problem of the first
// one that `own` lacks.
absl::StatusOr<std::optional<SequencesRead>> EncodeCharacters(absl::string_view text,
                                                              const TokenizedText& own,
                                                              uint64_t most,
                                                              std::vector<uint32_t>* tokens) {
  LineReader reader(text, 1);
  std::u32string line;
  for (uint64_t number = 1; tokens->size() < most; ++number) {
    ASSIGN_OR_RETURN(const bool found, reader.Next(line));
    if (!found) break;
    line.resize(std::min<size_t>(line.size(), most - tokens->size()));
    auto wrong = Encode(line, own.alphabet, "line", number, tokens);
    if (wrong.has_value()) return wrong;
  }
  return std::nullopt;
}

// Reads windows of another text from its beginning.
Read ReadOtherText(const TokenizedText& own, int64_t context, const AnalysisInputs& inputs) {
  const auto length = static_cast<uint64_t>(context);
  const uint64_t wanted =
      inputs.documents > 0 ? inputs.documents : std::max<uint64_t>(1, inputs.tokens / length);
  // One window beyond the limit shows that there are too many.
  const uint64_t windows = std::min(wanted, kMaxReadTokens / length + 1);
  const uint64_t most = windows * length + 1;
  const char* unit = " characters";
  TokenizedText text;
  if (!IsText(*inputs.text)) {
    return UnreadableInputs("inputs.dataset", "it isn't text", "a data set of text");
  }
  if (own.encoding != nullptr) {
    unit = " tokens";
    tokenizer::Encoder(own.encoding).EncodeBeginning(*inputs.text, most, &text.tokens);
  } else {
    ASSIGN_OR_RETURN(auto wrong, EncodeCharacters(*inputs.text, own, most, &text.tokens));
    if (wrong.has_value()) return *std::move(wrong);
  }
  if (text.tokens.size() <= length) {
    return UnreadableInputs(
        "inputs.dataset", absl::StrCat("it has ", text.tokens.size(), unit),
        absl::StrCat("at least ", length + 1, ", one more than the model's context"));
  }
  const uint64_t whole = (text.tokens.size() - 1) / length * length;
  if (inputs.documents > 0 && whole > kMaxReadTokens) return TooManyTokens(inputs);
  return SequencesRead{TextBatchesOf(text, context), {}};
}

Read ReadOther(const RunConfig& config, const AnalysisInputs& inputs) {
  ASSIGN_OR_RETURN(const SampledData own, SampledDataOf(config));
  const int64_t context = config.model.context;
  if (IsConllu(*inputs.text)) return ReadTaggedSentences(own, context, inputs);
  return own.documents != nullptr ? ReadOtherDocuments(*own.documents, context, inputs)
                                  : ReadOtherText(*own.text, context, inputs);
}

Read ReadOf(const RunConfig& config, const AnalysisInputs& inputs) {
  if (!inputs.prompt.empty()) return ReadPrompt(config, inputs.prompt);
  return inputs.text != nullptr ? ReadOther(config, inputs) : ReadHeldOut(config, inputs);
}

bool ReadsTheSame(const std::vector<TokenBatch>& a, const std::vector<TokenBatch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TokenBatch& x, const TokenBatch& y) {
                      return x.rows == y.rows && x.inputs == y.inputs && x.targets == y.targets;
                    });
}

SequenceSummary SummaryOf(const SequencesRead& read) {
  SequenceSummary summary;
  for (const TokenBatch& batch : read.batches) {
    const auto length = static_cast<uint64_t>(batch.length);
    summary.shortest = summary.sequences == 0 ? length : std::min(summary.shortest, length);
    summary.longest = std::max(summary.longest, length);
    summary.sequences += static_cast<uint64_t>(batch.rows);
    summary.tokens += batch.tokens();
  }
  summary.tagged = read.tagged.get();
  return summary;
}

// Returns the problems of options that depend on the data of these models.
absl::StatusOr<std::vector<OptionProblem>> CheckData(
    const AnalysisKind& kind, const AnalysisOptions& options,
    const std::vector<const RunConfig*>& subjects) {
  std::vector<OptionProblem> all;
  for (size_t i = 0; i < subjects.size(); ++i) {
    ASSIGN_OR_RETURN(auto problems, kind.check_data(options, *subjects[i]));
    for (OptionProblem& problem : problems) {
      all.push_back(OfSubject(i, subjects.size(), InRequest(kind, std::move(problem))));
    }
  }
  return all;
}

}  // namespace

SequencesRead UnreadableInputs(std::string field, std::string complaint, std::string allowed) {
  return {{}, {{std::move(field), "", std::move(complaint), std::move(allowed)}}};
}

SequencesRead TooManyTokens(const AnalysisInputs& inputs) {
  const std::string most = text::Grouped(kMaxReadTokens);
  return UnreadableInputs(
      "inputs.documents",
      absl::StrCat("the first ", inputs.documents, " have more than ", most, " tokens together"),
      absl::StrCat("so many that they have at most ", most));
}

SequencesRead UnknownCharacter(absl::string_view place, size_t number, char32_t character,
                               const std::u32string& alphabet) {
  return UnreadableInputs(
      "inputs.dataset",
      absl::StrCat(place, " has as character ", number, " ", CharacterText(character),
                   ", which is not in the run's data"),
      absl::StrCat("its ", alphabet.size(), " characters"));
}

bool ReadsTrainingBatches(const AnalysisOptions& options, const ModelConfig& model) {
  if (model.norm.kind != NormKind::kBatch) return false;
  const auto* const flow = std::get_if<GradientFlowOptions>(&options);
  return (flow != nullptr && flow->signal == GradientSignal::kRule) ||
         std::holds_alternative<GradientAlignmentOptions>(options) ||
         std::holds_alternative<NormJacobianOptions>(options);
}

TokenBatch JoinRows(const std::vector<TokenBatch>& rows) {
  TokenBatch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  for (const TokenBatch& row : rows) {
    batch.length = std::max(batch.length, row.length);
    batch.lengths.push_back(row.length);
  }
  const auto append = [](const std::vector<int64_t>& from, int64_t padding, int64_t fill,
                         std::vector<int64_t>* to) {
    to->insert(to->end(), from.begin(), from.end());
    to->insert(to->end(), static_cast<size_t>(padding), fill);
  };
  for (const TokenBatch& row : rows) {
    const int64_t padding = batch.length - row.length;
    append(row.inputs, padding, 0, &batch.inputs);
    // If the loss reads the last position only, a row has one target.
    const bool each = row.targets.size() == row.inputs.size();
    append(row.targets, each ? padding : 0, TokenBatch::kIgnored, &batch.targets);
  }
  return batch;
}

std::vector<TokenBatch> SplitRows(const std::vector<TokenBatch>& batches) {
  std::vector<TokenBatch> rows;
  for (const TokenBatch& batch : batches) {
    for (int64_t row = 0; row < batch.rows; ++row) rows.push_back(batch.Rows(row, 1));
  }
  return rows;
}

uint64_t PieceTokens(const AnalysisKind& kind, double parameters) {
  // A pass multiplies and adds once for each token and parameter.
  const double flops = 2 * kind.piece_forwards * parameters;
  const double fitting = kPieceFlops / std::max(flops, 1.0);
  return static_cast<uint64_t>(std::clamp(fitting, 1.0, static_cast<double>(kPieceTokens)));
}

absl::StatusOr<SequencesRead> ReadSequences(const AnalysisOptions& options,
                                            const AnalysisInputs& inputs,
                                            const std::vector<const RunConfig*>& subjects) {
  SequencesRead all;
  for (size_t i = 0; i < subjects.size(); ++i) {
    Read read = ReadOf(*subjects[i], inputs);
    if (!read.ok()) return read.status();
    for (OptionProblem& problem : read->problems) {
      all.problems.push_back(OfSubject(i, subjects.size(), std::move(problem)));
    }
    if (!read->problems.empty()) continue;
    if (all.batches.empty()) {
      all.batches = std::move(read->batches);
      all.tagged = std::move(read->tagged);
    } else if (!ReadsTheSame(all.batches, read->batches)) {
      all.problems.push_back({absl::StrCat("subjects[", i, "]"), "",
                              "it reads other sequences than the ones before",
                              "models that are held to the same sequences"});
    }
  }
  const AnalysisKind& kind = KindOf(options);
  if (all.problems.empty() && kind.check_read != nullptr) {
    for (OptionProblem& problem : kind.check_read(options, subjects[0]->model, SummaryOf(all))) {
      const bool of_inputs = absl::StartsWith(problem.field, "inputs.");
      all.problems.push_back(of_inputs ? std::move(problem) : InRequest(kind, std::move(problem)));
    }
  }
  if (!all.problems.empty()) {
    all.batches.clear();
    all.tagged = nullptr;
  } else if (ReadsTrainingBatches(options, subjects[0]->model)) {
    all.tagged = nullptr;
    all.batches = InTrainingBatches(all.batches, subjects[0]->training);
  } else {
    all.batches = InParts(all.batches, PieceTokens(kind, ParametersTogether(kind, subjects)));
  }
  return all;
}

absl::StatusOr<std::vector<OptionProblem>> CheckRead(
    const AnalysisOptions& options, const AnalysisInputs& inputs,
    const std::vector<const RunConfig*>& subjects) {
  const AnalysisKind& kind = KindOf(options);
  if (kind.check_data != nullptr) return CheckData(kind, options, subjects);
  ASSIGN_OR_RETURN(auto read, ReadSequences(options, inputs, subjects));
  return std::move(read.problems);
}

OptionProblem InRequest(const AnalysisKind& kind, OptionProblem problem) {
  problem.field =
      absl::StrCat("analysis.", kind.name, problem.field.empty() ? "" : ".", problem.field);
  return problem;
}

OptionProblem OfSubject(size_t subject, size_t subjects, OptionProblem problem) {
  if (subjects > 1) absl::StrAppend(&problem.complaint, " (subjects[", subject, "])");
  return problem;
}

absl::Status RefusalOf(const std::vector<OptionProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  const OptionProblem& first = problems.front();
  return absl::InvalidArgumentError(
      absl::StrCat(first.field, ": ", first.complaint, "; expected ", first.allowed));
}

}  // namespace ablate::engine
