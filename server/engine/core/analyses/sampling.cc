#include "server/engine/core/analyses/sampling.h"

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
#include "base/status_macros.h"
#include "base/tokenizer/encoder.h"
#include "base/utf8.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/ranking.h"
#include "server/engine/core/data/characters.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

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

// Returns bytes with U+FFFD in place of those that are no whole characters.
std::string WholeCharacters(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) text += text::EncodeUtf8(text::TakeCharacter(&bytes));
  return text;
}

// Appends the tokens of a text in UTF-8. Returns the problem of the first character that the
// alphabet lacks.
std::optional<OptionProblem> EncodePromptCharacters(absl::string_view text,
                                                    const std::u32string& alphabet,
                                                    std::vector<uint32_t>* tokens) {
  for (size_t offset = 0; offset < text.size();) {
    const char32_t point = text::DecodeUtf8(text, offset);
    const std::optional<uint32_t> token = RankOf(point, alphabet);
    if (!token.has_value()) {
      return OptionProblem{"prompt", "",
                           absl::StrCat("character ", tokens->size() + 1, ", ",
                                        CharacterText(point), ", is not in the run's data"),
                           absl::StrCat("its ", alphabet.size(), " characters")};
    }
    tokens->push_back(*token);
  }
  return std::nullopt;
}

std::optional<OptionProblem> CheckIds(const std::vector<uint32_t>& ids, const ModelConfig& model) {
  const uint32_t longest = LongestPrompt(model);
  if (ids.size() > longest) {
    return OptionProblem{"prompt_ids", "", absl::StrCat("it has ", ids.size(), " ids"),
                         absl::StrCat("at most ", longest, ", one less than the model's context")};
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < static_cast<uint32_t>(model.vocabulary)) continue;
    return OptionProblem{
        "prompt_ids", "",
        absl::StrCat("id ", i + 1, ", ", ids[i], ", is not in the model's vocabulary"),
        absl::StrCat("ids below ", model.vocabulary, ", its size")};
  }
  return std::nullopt;
}

using Tokens = absl::Span<const uint32_t>;

Tokens DocumentOf(const TokenizedDocuments& documents, uint32_t document) {
  const size_t start = documents.starts[document];
  return Tokens(documents.tokens).subspan(start, documents.starts[document + 1] - start);
}

// Returns the tokens that a document with the bytes of a draft has in the data.
std::vector<uint32_t> DocumentOf(const Draft& draft, absl::string_view bytes,
                                 const TextCodec& codec) {
  std::vector<uint32_t> tokens;
  if (codec.encoding != nullptr) {
    // A model may draw the same text in other pieces.
    tokenizer::Encoder(codec.encoding).Encode(bytes, &tokens);
    return tokens;
  }
  // Each drawn token is a character.
  tokens.assign(draft.tokens.begin() + static_cast<std::ptrdiff_t>(draft.hidden),
                draft.tokens.end());
  const absl::string_view text = draft.text;
  tokens.resize(tokens.size() - text::CountCharacters(text.substr(text.size() - draft.cut)));
  return tokens;
}

// Returns which of `wanted` are documents of `training`, in a single pass over the data.
absl::flat_hash_set<Tokens> Found(const TokenizedDocuments& documents,
                                  const std::vector<uint32_t>& training,
                                  const std::vector<std::vector<uint32_t>>& wanted) {
  const absl::flat_hash_set<Tokens> sought(wanted.begin(), wanted.end());
  absl::flat_hash_set<Tokens> found;
  for (const uint32_t document : training) {
    const auto hit = sought.find(DocumentOf(documents, document));
    if (hit != sought.end()) found.insert(*hit);
  }
  return found;
}

}  // namespace

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
  return SplitMix64::UniformAt(seed, (uint64_t{sample} << 32) | position);
}

std::string TextCodec::BytesOf(absl::Span<const uint32_t> tokens) const {
  std::string bytes;
  for (const uint32_t token : tokens) {
    if (encoding != nullptr) {
      absl::StrAppend(&bytes, encoding->TextOf(token));
    } else if (token < alphabet->size()) {
      bytes += text::EncodeUtf8((*alphabet)[token]);
    }
  }
  return bytes;
}

std::vector<size_t> TextCodec::EndsOf(absl::Span<const uint32_t> tokens) const {
  std::vector<size_t> ends;
  ends.reserve(tokens.size());
  size_t end = 0;
  for (const uint32_t& token : tokens) {
    end += BytesOf({&token, 1}).size();
    ends.push_back(end);
  }
  return ends;
}

std::string TextCodec::TextOf(absl::Span<const uint32_t> tokens) const {
  return WholeCharacters(BytesOf(tokens));
}

std::optional<OptionProblem> EncodePrompt(absl::string_view prompt, const TextCodec& codec,
                                          uint32_t max_tokens, std::vector<uint32_t>* tokens) {
  if (const size_t byte = text::FindNotUtf8(prompt); byte != absl::string_view::npos) {
    return OptionProblem{"prompt", "", absl::StrCat("it is not UTF-8 at byte ", byte),
                         "text in UTF-8"};
  }
  const std::string allowed =
      absl::StrCat("at most ", max_tokens, ", one less than the model's context");
  tokens->clear();
  std::optional<OptionProblem> unknown;
  if (codec.encoding != nullptr) {
    tokenizer::Encoder(codec.encoding).Encode(prompt, tokens);
  } else {
    unknown = EncodePromptCharacters(prompt, *codec.alphabet, tokens);
  }
  if (unknown.has_value()) return unknown;
  if (tokens->size() <= max_tokens) return std::nullopt;
  const char* const unit = codec.encoding != nullptr ? " tokens" : " characters";
  return OptionProblem{"prompt", "", absl::StrCat("it has ", tokens->size(), unit), allowed};
}

absl::StatusOr<std::vector<uint32_t>> PromptOf(const SampleOptions& options, const TextCodec& codec,
                                               const ModelConfig& model) {
  std::vector<uint32_t> tokens = options.prompt_ids;
  const auto wrong = tokens.empty()
                         ? EncodePrompt(options.prompt, codec, LongestPrompt(model), &tokens)
                         : CheckIds(tokens, model);
  if (wrong.has_value()) return RefusalOf({*wrong});
  return tokens;
}

TextCodec SampledData::codec() const {
  const auto& encoding = documents != nullptr ? documents->encoding : text->encoding;
  if (encoding != nullptr) return {nullptr, encoding};
  return {documents != nullptr ? &documents->alphabet : &text->alphabet, nullptr};
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
  ASSIGN_OR_RETURN(const TaskShape shape, KindOf(config.task).shape(config.task));
  if (shape.vocabulary <= config.model.vocabulary) return data;
  return absl::InvalidArgumentError(absl::StrCat(
      "the data has ", shape.vocabulary, " tokens, but the model has ", config.model.vocabulary));
}

absl::StatusOr<Opening> OpeningOf(const SampledData& data, absl::Span<const uint32_t> prompt) {
  Opening opening;
  if (data.documents != nullptr) {
    opening = {{data.documents->bos()}, 1, data.documents->bos()};
  } else if (prompt.empty()) {
    std::vector<uint32_t> line_feed;
    if (EncodePrompt("\n", data.codec(), 1, &line_feed).has_value()) {
      return absl::InvalidArgumentError(
          "prompt: it is empty, and the run's data has no line feed to begin with; expected a "
          "prompt");
    }
    opening = {std::move(line_feed), 1, std::nullopt};
  }
  opening.tokens.insert(opening.tokens.end(), prompt.begin(), prompt.end());
  return opening;
}

SampleWriter::SampleWriter(const TokenizedDocuments& documents, uint32_t held_out, uint32_t seed)
    : codec_(SampledData{&documents, nullptr}.codec()), documents_(&documents) {
  const size_t count = documents.documents();
  training_ = PythonShuffle(static_cast<uint32_t>(count), seed);
  training_.resize(count - std::min<size_t>(held_out, count));
}

SampleWriter::SampleWriter(const TokenizedText& text)
    : codec_(SampledData{nullptr, &text}.codec()) {}

std::vector<Sample> SampleWriter::Write(const std::vector<Draft>& drafts) {
  std::vector<std::string> texts;  // bytes
  std::vector<std::vector<uint32_t>> written;
  for (const Draft& draft : drafts) {
    texts.push_back(codec_.BytesOf(Tokens(draft.tokens).subspan(draft.hidden)));
    texts.back().resize(texts.back().size() - draft.cut);
    if (documents_ != nullptr) written.push_back(DocumentOf(draft, texts.back(), codec_));
  }
  absl::flat_hash_set<Tokens> found;
  if (documents_ != nullptr) found = Found(*documents_, training_, written);
  std::vector<Sample> samples;
  samples.reserve(drafts.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    Sample& sample = samples.emplace_back();
    sample.index = next_++;
    sample.text = WholeCharacters(texts[i]);
    sample.tokens = draft.drawn;
    sample.ended = draft.ended;
    const auto kept = static_cast<std::ptrdiff_t>(draft.drawn - (draft.ended ? 1 : 0));
    sample.token_ids.assign(draft.tokens.end() - kept, draft.tokens.end());
    if (documents_ != nullptr) {
      if (draft.ended) sample.token_ids.push_back(documents_->bos());
      sample.in_training_data = found.count(written[i]) > 0;
    }
    sample.stop = draft.stop;
    counts_.in_training_data += sample.in_training_data ? 1 : 0;
    counts_.distinct += texts_.insert(sample.text).second ? 1 : 0;
  }
  return samples;
}

}  // namespace ablate::engine
