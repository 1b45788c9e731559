// Generates text from a checkpoint: the options, their checks, and the entry point. Torch-free; the
// server links the checks, too.
#ifndef ABLATE_SERVER_ENGINE_SAMPLES_H_
#define ABLATE_SERVER_ENGINE_SAMPLES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/accelerator.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Largest value of SampleOptions::max_tokens.
inline constexpr uint32_t kMaxDrawnTokens = 10'000'000;

// Sampling options; docs/reference/analyses/samples.md has the formulas. Logits are divided by the
// temperature, cut to the top_k most likely tokens (0: all), then to the fewest most likely tokens
// whose probabilities add up to top_p.
struct SampleOptions {
  uint32_t count = 20;
  double temperature = 1;  // 0: the most likely token, the lowest id of a tie
  uint32_t top_k = 0;
  double top_p = 1;
  uint32_t seed = 0;
  std::string prompt = {};  // UTF-8; every sample begins with it
  // Largest number of drawn tokens; the default is more than any context holds.
  uint32_t max_tokens = kMaxDrawnTokens;
  // UTF-8. A sample ends as soon as its drawn text contains one of them.
  std::vector<std::string> stop = {};
  std::vector<uint32_t> prompt_ids = {};  // the prompt's tokens, if `prompt` is empty
};

struct Sample {
  uint32_t index = 0;
  std::string text;     // UTF-8, including the prompt, up to the stop string
  uint32_t tokens = 0;  // drawn ones, including the closing boundary
  // True if the model closed the document; false if a stop string, max_tokens or the full context
  // ended it, as always in a text task.
  bool ended = false;
  // True if the text is a whole document of the training part of the data, even if the run hasn't
  // read it. A document longer than the context is never found. Always false for a text task.
  bool in_training_data = false;
  std::vector<uint32_t> token_ids = {};  // [tokens], the drawn ones
  std::string stop = {};                 // the stop string that ended it; empty if none did
};

struct SampleCounts {
  uint32_t distinct = 0;  // different texts
  uint32_t in_training_data = 0;
};

// Describes a problem of one option.
struct OptionProblem {
  std::string field;  // such as "top_p"
  std::string value;
  std::string complaint;
  std::string allowed;
};

// Checks every range except the prompt's, which depends on the model. Returns one problem per
// option; an empty list if all is well.
std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options);

// Returns the largest number of tokens in a prompt for this model.
uint32_t LongestPrompt(const ModelConfig& model);

// Draws samples from the model of `config` with the parameters of `checkpoint`. For a documents
// task each sample is a document: it starts with the boundary token and ends with it. For a text
// task a sample starts with the prompt, or with a line feed if the prompt is empty. In both a stop
// string, max_tokens or the full context may end it.
//
// `on_samples` receives the samples in order, some at a time. The task's text defines the meaning
// of tokens and, with the run's seed, the held-out part. With an accelerator its device reads the
// tokens. Errors:
// - CANCELLED once `stop` is true, checked between two tokens and between two passes over the data
// - INVALID_ARGUMENT: the prompt, an option, or a checkpoint of another model
// - FAILED_PRECONDITION: a task without text, or logits that aren't finite
// - RESOURCE_EXHAUSTED: out of memory
// - INTERNAL: this call failed, the next one may succeed
// - UNAVAILABLE: this process has lost the device
absl::StatusOr<SampleCounts> GenerateSamples(
    const RunConfig& config, absl::string_view checkpoint, const SampleOptions& options,
    const std::atomic<bool>& stop, const std::function<void(std::vector<Sample>)>& on_samples,
    const std::shared_ptr<Accelerator>& accelerator = nullptr);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_SAMPLES_H_
