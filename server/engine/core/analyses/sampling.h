// Implements sampling without the model: draws tokens from logits, converts prompts to tokens and
// tokens to text, and finds samples in the training data. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_SAMPLING_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/tokenizer/byte_pair_encoding.h"
#include "server/engine/config.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/samples.h"

namespace ablate::engine {

// Tokens that may be drawn, most likely first; ties are in order of id. Probabilities add up to 1.
struct KeptTokens {
  std::vector<uint32_t> tokens;
  std::vector<double> probabilities;
};

// Returns softmax(logits / temperature), cut to the top_k tokens first, then to the shortest prefix
// whose sum reaches top_p, and renormalised each time. `logits` must be finite and not
// empty.
KeptTokens Keep(absl::Span<const double> logits, const SampleOptions& options);

// Returns the first kept token whose cumulative probability exceeds `u`, which is in [0, 1).
uint32_t Draw(const KeptTokens& kept, double u);

// Returns uniform(seed, sample·2³² + position) of docs/reference/random-streams.md, in [0, 1). A
// draw thus depends neither on other samples nor on their number.
double UniformAt(uint32_t seed, uint32_t sample, uint32_t position);

// How the tokens of a data set stand for text: exactly one pointer is set. The alphabet must
// outlive it.
struct TextCodec {
  const std::u32string* alphabet = nullptr;  // code point of each token, ascending
  std::shared_ptr<const tokenizer::BytePairEncoding> encoding;

  // Returns the bytes of tokens, which may be parts of characters in an encoding. An id that stands
  // for no text, such as a boundary, has none.
  std::string BytesOf(absl::Span<const uint32_t> tokens) const;

  // Returns the offset at which each token's bytes end in BytesOf(tokens).
  std::vector<size_t> EndsOf(absl::Span<const uint32_t> tokens) const;

  // Returns the text of tokens, in UTF-8. Bytes that are no whole characters become U+FFFD.
  std::string TextOf(absl::Span<const uint32_t> tokens) const;
};

// Sets `*tokens` to those of a prompt. Returns the problem if it isn't UTF-8, the first character
// that the alphabet lacks, or the length if there are more than `max_tokens`; the tokens are then
// undefined.
std::optional<OptionProblem> EncodePrompt(absl::string_view prompt, const TextCodec& codec,
                                          uint32_t max_tokens, std::vector<uint32_t>* tokens);

// Returns the tokens of the options' prompt, given as text or as ids. INVALID_ARGUMENT as
// EncodePrompt, and names the first id that isn't below the model's vocabulary.
absl::StatusOr<std::vector<uint32_t>> PromptOf(const SampleOptions& options, const TextCodec& codec,
                                               const ModelConfig& model);

// The data set that samples resemble: exactly one pointer is set.
struct SampledData {
  const TokenizedDocuments* documents = nullptr;
  const TokenizedText* text = nullptr;

  TextCodec codec() const;
};

// Returns the data set of the run's task. FAILED_PRECONDITION if its tokens are numbers without a
// text; INVALID_ARGUMENT if the data doesn't fit the model.
absl::StatusOr<SampledData> SampledDataOf(const RunConfig& config);

// How every sample begins and ends.
struct Opening {
  std::vector<uint32_t> tokens;  // at least one
  uint32_t hidden = 0;           // number of leading tokens that aren't written
  std::optional<uint32_t> end;   // a token that ends a sample and is not written
};

// Returns the opening. Documents begin with the boundary token and the prompt, and end with the
// boundary token. A text begins with the prompt, or with a line feed, which isn't written, if the
// prompt is empty. Returns INVALID_ARGUMENT if the text needs a line feed and has none.
absl::StatusOr<Opening> OpeningOf(const SampledData& data, absl::Span<const uint32_t> prompt);

// A sample in progress, without the token that ends it.
struct Draft {
  std::vector<uint32_t> tokens;  // the opening, then drawn tokens
  uint32_t drawn = 0;            // tokens, including the one that ended it
  bool ended = false;
  uint32_t hidden = 0;    // number of leading tokens that aren't written
  std::string text = {};  // bytes of the drawn tokens, if stop strings are looked for
  size_t cut = 0;         // last bytes of the text that aren't written: from the stop string on
  std::string stop = {};  // the stop string that ended it
};

// Converts drafts to samples and counts them. Not thread-safe.
class SampleWriter {
 public:
  // `documents` must outlive it. The training documents are those before the last `held_out` in the
  // order of `seed`.
  SampleWriter(const TokenizedDocuments& documents, uint32_t held_out, uint32_t seed);

  // `text` must outlive it. No sample counts as found in the training data.
  explicit SampleWriter(const TokenizedText& text);

  // Returns the next samples, in order of index.
  std::vector<Sample> Write(const std::vector<Draft>& drafts);
  const SampleCounts& counts() const { return counts_; }

 private:
  const TextCodec codec_;
  const TokenizedDocuments* documents_ = nullptr;
  std::vector<uint32_t> training_;
  std::set<std::string> texts_;
  SampleCounts counts_;
  uint32_t next_ = 0;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_SAMPLING_H_
