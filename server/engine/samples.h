// Text from a checkpoint: what may be asked for, and the entry point of the analysis. Torch-free;
// the server links the checks too.
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

// docs/reference/analyses/samples.md has the formulas. Scores are divided by the temperature, cut
// to the top_k most likely tokens (0: all), then to the fewest most likely of those that have top_p
// together.
struct SampleOptions {
  uint32_t count = 20;
  double temperature = 1;  // 0: the most likely token, the lowest of equals
  uint32_t top_k = 0;
  double top_p = 1;
  uint32_t seed = 0;
  std::string prompt;  // UTF-8; how every sample begins
};

struct Sample {
  uint32_t index = 0;
  std::string text;     // UTF-8, the prompt included
  uint32_t tokens = 0;  // drawn, the closing boundary included
  // The model closed the document, which those of a text task never do; otherwise the context was
  // full.
  bool ended = false;
  // It is a whole document of the training part of the data, read by the run or not; one that is
  // longer than the context is never found. Never for a text task.
  bool in_training_data = false;
};

struct SampleCounts {
  uint32_t distinct = 0;  // texts that differ from each other
  uint32_t in_training_data = 0;
};

// What is wrong with one option.
struct OptionProblem {
  std::string field;  // such as "top_p"
  std::string value;
  std::string complaint;
  std::string allowed;
};

// Every range but the prompt's, which depends on the model. Empty if all is well.
std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options);

// Most characters of a prompt for this model.
uint32_t LongestPrompt(const ModelConfig& model);

// Draws documents from the model of `config` with the parameters of `checkpoint`, beginning with
// the boundary token. A document ends with the boundary token or where the context is full. For a
// text task it draws text, beginning with the prompt, or a line feed if that is empty, until the
// context is full.
// `on_samples` is given them in order, some at a time. The task's text says what tokens mean and,
// with the run's seed, what was held out. CANCELLED once `stop` is true, which is looked at between
// two tokens and between two passes over the data; INVALID_ARGUMENT (prompt, options, a checkpoint
// of another model); FAILED_PRECONDITION (a task without text, scores that are not finite);
// RESOURCE_EXHAUSTED (memory); INTERNAL (this one failed, the next may not); UNAVAILABLE (the
// device is lost to this process).
absl::StatusOr<SampleCounts> GenerateSamples(
    const RunConfig& config, absl::string_view checkpoint, const SampleOptions& options,
    const std::atomic<bool>& stop, const std::function<void(std::vector<Sample>)>& on_samples);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_SAMPLES_H_
