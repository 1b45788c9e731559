// Sampling apart from the model: which token is drawn from its scores, prompts as tokens, tokens as
// text, and what is found in the training data. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_SAMPLING_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_SAMPLING_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/data/documents.h"
#include "server/engine/data/whole_text.h"
#include "server/engine/samples.h"

namespace ablate::engine {

// Tokens that may be drawn, most likely first, the lower of equals first; probabilities add up
// to 1.
struct KeptTokens {
  std::vector<uint32_t> tokens;
  std::vector<double> probabilities;
};

// softmax(scores / temperature), cut to the top_k first, then to the shortest prefix whose sum
// reaches top_p, each time made to add up to 1. `scores` must be finite and not empty.
KeptTokens Keep(absl::Span<const double> scores, const SampleOptions& options);

// The first kept token at which the probabilities so far exceed `u`, which is in [0, 1).
uint32_t Draw(const KeptTokens& kept, double u);

// In [0, 1): uniform(seed, sample·2³² + position) of docs/reference/random-streams.md, so that a draw depends
// neither on the other samples nor on how many there are.
double UniformAt(uint32_t seed, uint32_t sample, uint32_t position);

// What is wrong with a prompt: the first character that the alphabet lacks, or its length.
std::optional<OptionProblem> CheckPrompt(absl::string_view prompt, const std::u32string& alphabet,
                                         uint32_t max_tokens);

// The tokens of a prompt. INVALID_ARGUMENT names the first character that the alphabet lacks, or
// the length.
absl::StatusOr<std::vector<uint32_t>> EncodePrompt(absl::string_view prompt,
                                                   const std::u32string& alphabet,
                                                   uint32_t max_tokens);

// The data that samples are written in: one of them.
struct SampledData {
  const TokenizedDocuments* documents = nullptr;
  const TokenizedText* text = nullptr;

  const std::u32string& alphabet() const;
};

// That of the run's task. FAILED_PRECONDITION if its tokens are numbers without a text;
// INVALID_ARGUMENT if the data is not the model's.
absl::StatusOr<SampledData> SampledDataOf(const RunConfig& config);

// How every sample begins and ends.
struct Opening {
  std::vector<uint32_t> tokens;  // at least one
  uint32_t hidden = 0;           // so many of the first are not written
  std::optional<uint32_t> end;   // a token that ends a sample and is not written
};

// Documents begin with the boundary token, then the prompt, and end with the boundary token. A text
// begins with the prompt, or where that is empty with a line feed, which is not written.
// INVALID_ARGUMENT as EncodePrompt, or if that text has no line feed.
absl::StatusOr<Opening> OpeningOf(const SampledData& data, absl::string_view prompt,
                                  uint32_t max_tokens);

// One sample as it grows, without the token that ends it.
struct Draft {
  std::vector<uint32_t> tokens;  // the opening's first
  uint32_t drawn = 0;
  bool ended = false;
  uint32_t hidden = 0;  // so many of the first tokens are not written
};

// Turns drafts into samples and counts them. Not thread-safe.
class SampleWriter {
 public:
  // `documents` must outlive it. The training documents are those before the last `held_out` of the
  // order that `seed` gives.
  SampleWriter(const TokenizedDocuments& documents, uint32_t held_out, uint32_t seed);

  // `text` must outlive it. It has no documents that a sample could be.
  explicit SampleWriter(const TokenizedText& text) : alphabet_(text.alphabet) {}

  // The next samples, in order of index.
  std::vector<Sample> Write(const std::vector<Draft>& drafts);
  const SampleCounts& counts() const { return counts_; }

 private:
  const std::u32string& alphabet_;
  const TokenizedDocuments* documents_ = nullptr;
  std::vector<uint32_t> training_;
  std::set<std::string> texts_;
  SampleCounts counts_;
  uint32_t next_ = 0;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_SAMPLING_H_
