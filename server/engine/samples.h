// Generates text from a checkpoint: the options, their checks, and the entry point. Torch-free; the
// server links the checks, too.
#ifndef ABLATE_SERVER_ENGINE_SAMPLES_H_
#define ABLATE_SERVER_ENGINE_SAMPLES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Sampling options; docs/reference/analyses/samples.md has the formulas. Logits are divided by the
// temperature, cut to the top_k most likely tokens (0: all), then to the fewest most likely tokens
// whose probabilities add up to top_p.
struct SampleOptions {
  uint32_t count = 20;
  double temperature = 1;  // 0: the most likely token, the lowest id of a tie
  uint32_t top_k = 0;
  double top_p = 1;
  uint32_t seed = 0;
  std::string prompt;  // UTF-8; every sample begins with it
};

struct Sample {
  uint32_t index = 0;
  std::string text;     // UTF-8, including the prompt
  uint32_t tokens = 0;  // drawn ones, including the closing boundary
  // True if the model closed the document; false if the context was full, as always in a text task.
  bool ended = false;
  // True if the text is a whole document of the training part of the data, even if the run hasn't
  // read it. A document longer than the context is never found. Always false for a text task.
  bool in_training_data = false;
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

// Checks every range except the prompt's, which depends on the model. Returns an empty list if all
// is well.
std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options);

// Returns the largest number of characters in a prompt for this model.
uint32_t LongestPrompt(const ModelConfig& model);

// Draws samples from the model of `config` with the parameters of `checkpoint`. For a documents
// task each sample is a document: it starts with the boundary token and ends with it or when the
// context is full. For a text task a sample starts with the prompt, or with a line feed if the
// prompt is empty, and ends when the context is full.
//
// `on_samples` receives the samples in order, some at a time. The task's text defines the meaning
// of tokens and, with the run's seed, the held-out part. Errors:
// - CANCELLED once `stop` is true, checked between two tokens and between two passes over the data
// - INVALID_ARGUMENT: the prompt, an option, or a checkpoint of another model
// - FAILED_PRECONDITION: a task without text, or logits that aren't finite
// - RESOURCE_EXHAUSTED: out of memory
// - INTERNAL: this call failed, the next one may succeed
// - UNAVAILABLE: this process has lost the device
absl::StatusOr<SampleCounts> GenerateSamples(
    const RunConfig& config, absl::string_view checkpoint, const SampleOptions& options,
    const std::atomic<bool>& stop, const std::function<void(std::vector<Sample>)>& on_samples);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_SAMPLES_H_
