#include "server/engine/analyze/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "base/tokenizer/encoder.h"
#include "base/utf8.h"
#include "server/engine/analyze/inputs.h"
#include "server/engine/analyze/ranking.h"
#include "server/engine/data/characters.h"
#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

constexpr double kMaxSamples = 1'000;
constexpr double kMaxTemperature = 100;
constexpr double kMaxTopK = 10'000'000;

struct Range {
  const char* field;
  double value;
  double low;
  bool open_low;  // low itself is excluded
  double high;
  const char* allowed;

  // Returns false for NaN.
  bool Holds() const { return (open_low ? value > low : value >= low) && value <= high; }
};

// Returns the shortest decimal that parses to the same number; counts have no exponent.
std::string TextOf(double value) {
  const bool whole = value >= 0 && value < 1e15 && value == std::floor(value);
  if (whole) return absl::StrCat(static_cast<uint64_t>(value));
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

void Normalise(std::vector<double>& probabilities) {
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
}

// Returns the length of the shortest prefix with a sum of at least `top_p`; all if
// rounding keeps the total below it.
size_t PrefixReaching(const std::vector<double>& probabilities, double top_p) {
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (sum >= top_p) return i + 1;
  }
  return probabilities.size();
}

std::vector<uint32_t> Encoded(absl::string_view text,
                              std::shared_ptr<const tokenizer::BytePairEncoding> encoding) {
  std::vector<uint32_t> tokens;
  tokenizer::Encoder(std::move(encoding)).Encode(text, &tokens);
  return tokens;
}

using Tokens = absl::Span<const uint32_t>;

Tokens DocumentOf(const TokenizedDocuments& documents, uint32_t document) {
  const size_t start = documents.starts[document];
  return Tokens(documents.tokens).subspan(start, documents.starts[document + 1] - start);
}

// Returns which of `wanted` are documents of `training`, in a single pass over the data.
absl::flat_hash_set<Tokens> Found(const TokenizedDocuments& documents,
                                  const std::vector<uint32_t>& training,
                                  const std::vector<Tokens>& wanted) {
  const absl::flat_hash_set<Tokens> sought(wanted.begin(), wanted.end());
  absl::flat_hash_set<Tokens> found;
  for (const uint32_t document : training) {
    const auto hit = sought.find(DocumentOf(documents, document));
    if (hit != sought.end()) found.insert(*hit);
  }
  return found;
}

}  // namespace

std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options) {
  const Range ranges[] = {
      {"count", static_cast<double>(options.count), 1, false, kMaxSamples, "1 to 1,000"},
      {"temperature", options.temperature, 0, false, kMaxTemperature, "0 to 100"},
      {"top_k", static_cast<double>(options.top_k), 0, false, kMaxTopK, "0 (all) to 10,000,000"},
      {"top_p", options.top_p, 0, true, 1, "above 0, at most 1"}};
  std::vector<OptionProblem> problems;
  for (const Range& range : ranges) {
    if (range.Holds()) continue;
    const std::string value = TextOf(range.value);
    problems.push_back(
        {range.field, value, absl::StrCat(value, " is out of range"), range.allowed});
  }
  return problems;
}

// The boundary token comes first, and one position is left to draw.
uint32_t LongestPrompt(const ModelConfig& model) {
  return static_cast<uint32_t>(std::max(model.context - 1, 0));
}

KeptTokens Keep(absl::Span<const double> logits, const SampleOptions& options) {
  const bool greedy = options.temperature == 0;
  const size_t limit = greedy ? 1 : options.top_k == 0 ? logits.size() : options.top_k;
  KeptTokens kept = {MostLikely(logits, std::min(limit, logits.size())), {}};
  if (greedy) return {kept.tokens, {1.0}};
  const double best = logits[kept.tokens.front()];
  kept.probabilities.reserve(kept.tokens.size());
  for (const uint32_t token : kept.tokens) {
    kept.probabilities.push_back(std::exp((logits[token] - best) / options.temperature));
  }
  Normalise(kept.probabilities);
  if (options.top_p < 1) {
    const size_t count = PrefixReaching(kept.probabilities, options.top_p);
    kept.tokens.resize(count);
    kept.probabilities.resize(count);
    Normalise(kept.probabilities);
  }
  return kept;
}

uint32_t Draw(const KeptTokens& kept, double u) {
  double sum = 0;
  for (size_t i = 0; i < kept.tokens.size(); ++i) {
    sum += kept.probabilities[i];
    if (u < sum) return kept.tokens[i];
  }
  // Rounding left the sum below u. Skip tokens of probability 0.
  size_t last = kept.tokens.size() - 1;
  while (last > 0 && kept.probabilities[last] == 0) --last;
  return kept.tokens[last];
}

double UniformAt(uint32_t seed, uint32_t sample, uint32_t position) {
  SplitMix64 generator(seed);
  generator.Skip((uint64_t{sample} << 32) | position);
  return static_cast<double>(generator.Next() >> 11) * 0x1p-53;
}

std::string TextCodec::TextOf(absl::Span<const uint32_t> tokens) const {
  std::string text;
  if (encoding == nullptr) {
    for (const uint32_t token : tokens) text += text::EncodeUtf8((*alphabet)[token]);
    return text;
  }
  std::string bytes;
  for (const uint32_t token : tokens) absl::StrAppend(&bytes, encoding->TextOf(token));
  absl::string_view rest = bytes;
  while (!rest.empty()) text += text::EncodeUtf8(text::TakeCharacter(&rest));
  return text;
}

std::optional<OptionProblem> CheckPrompt(absl::string_view prompt, const TextCodec& codec,
                                         uint32_t max_tokens) {
  if (const size_t byte = text::FindNotUtf8(prompt); byte != absl::string_view::npos) {
    return OptionProblem{"prompt", "", absl::StrCat("it is not UTF-8 at byte ", byte),
                         "text in UTF-8"};
  }
  const std::string allowed =
      absl::StrCat("at most ", max_tokens, ", one less than the model's context");
  if (codec.encoding != nullptr) {
    const size_t tokens = Encoded(prompt, codec.encoding).size();
    if (tokens <= max_tokens) return std::nullopt;
    return OptionProblem{"prompt", "", absl::StrCat("it has ", tokens, " tokens"), allowed};
  }
  const std::u32string& alphabet = *codec.alphabet;
  uint32_t characters = 0;
  for (size_t offset = 0; offset < prompt.size(); ++characters) {
    const char32_t point = text::DecodeUtf8(prompt, offset);
    if (RankOf(point, alphabet)) continue;
    return OptionProblem{"prompt", "",
                         absl::StrCat("character ", characters + 1, ", ", CharacterText(point),
                                      ", is not in the run's data"),
                         absl::StrCat("its ", alphabet.size(), " characters")};
  }
  if (characters <= max_tokens) return std::nullopt;
  return OptionProblem{"prompt", "", absl::StrCat("it has ", characters, " characters"), allowed};
}

absl::StatusOr<std::vector<uint32_t>> EncodePrompt(absl::string_view prompt, const TextCodec& codec,
                                                   uint32_t max_tokens) {
  if (const auto wrong = CheckPrompt(prompt, codec, max_tokens); wrong.has_value()) {
    return RefusalOf({*wrong});
  }
  if (codec.encoding != nullptr) return Encoded(prompt, codec.encoding);
  std::vector<uint32_t> tokens;
  for (size_t offset = 0; offset < prompt.size();) {
    tokens.push_back(*RankOf(text::DecodeUtf8(prompt, offset), *codec.alphabet));
  }
  return tokens;
}

TextCodec SampledData::codec() const {
  if (documents != nullptr) return {&documents->alphabet, nullptr};
  if (text->encoding != nullptr) return {nullptr, text->encoding};
  return {&text->alphabet, nullptr};
}

absl::StatusOr<SampledData> SampledDataOf(const RunConfig& config) {
  SampledData data;
  if (const auto* documents = std::get_if<DocumentsTask>(&config.task)) {
    data.documents = documents->documents.get();
  } else if (const auto* text = std::get_if<TextTask>(&config.task)) {
    data.text = text->text.get();
  } else {
    return absl::FailedPreconditionError(
        "the run's task has no text: its tokens are numbers without a meaning");
  }
  const absl::StatusOr<TaskShape> shape = KindOf(config.task).shape(config.task);
  if (!shape.ok()) return shape.status();
  if (shape->vocabulary <= config.model.vocabulary) return data;
  return absl::InvalidArgumentError(absl::StrCat(
      "the data has ", shape->vocabulary, " tokens, but the model has ", config.model.vocabulary));
}

absl::StatusOr<Opening> OpeningOf(const SampledData& data, absl::string_view prompt,
                                  uint32_t max_tokens) {
  absl::StatusOr<std::vector<uint32_t>> tokens = EncodePrompt(prompt, data.codec(), max_tokens);
  if (!tokens.ok()) return tokens.status();
  Opening opening;
  if (data.documents != nullptr) {
    opening = {{data.documents->bos()}, 1, data.documents->bos()};
  } else if (prompt.empty()) {
    const absl::StatusOr<std::vector<uint32_t>> line_feed = EncodePrompt("\n", data.codec(), 1);
    if (!line_feed.ok()) {
      return absl::InvalidArgumentError(
          "prompt: it is empty, and the run's data has no line feed to begin with; expected a "
          "prompt");
    }
    opening = {*line_feed, 1, std::nullopt};
  }
  opening.tokens.insert(opening.tokens.end(), tokens->begin(), tokens->end());
  return opening;
}

SampleWriter::SampleWriter(const TokenizedDocuments& documents, uint32_t held_out, uint32_t seed)
    : codec_{&documents.alphabet, nullptr}, documents_(&documents) {
  const size_t count = documents.documents();
  training_ = PythonShuffle(static_cast<uint32_t>(count), seed);
  training_.resize(count - std::min<size_t>(held_out, count));
}

SampleWriter::SampleWriter(const TokenizedText& text)
    : codec_(SampledData{nullptr, &text}.codec()) {}

std::vector<Sample> SampleWriter::Write(const std::vector<Draft>& drafts) {
  std::vector<Tokens> written;
  written.reserve(drafts.size());
  for (const Draft& draft : drafts) written.push_back(Tokens(draft.tokens).subspan(draft.hidden));
  absl::flat_hash_set<Tokens> found;
  if (documents_ != nullptr) found = Found(*documents_, training_, written);
  std::vector<Sample> samples;
  samples.reserve(drafts.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    Sample& sample = samples.emplace_back();
    sample.index = next_++;
    sample.text = codec_.TextOf(written[i]);
    sample.tokens = drafts[i].drawn;
    sample.ended = drafts[i].ended;
    sample.in_training_data = found.count(written[i]) > 0;
    counts_.in_training_data += sample.in_training_data ? 1 : 0;
    counts_.distinct += texts_.insert(sample.text).second ? 1 : 0;
  }
  return samples;
}

}  // namespace ablate::engine
