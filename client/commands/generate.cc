// `ablate generate EXP/CELL|models/NAME`: text from a checkpoint, one sample a line.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct GenerateOptions {
  std::string model;
  std::string tokenizer;
  std::optional<uint32_t> step;
  std::optional<uint32_t> count;
  std::optional<double> temperature;
  std::optional<uint32_t> top_k;
  std::optional<double> top_p;
  std::optional<uint32_t> seed;
  std::optional<uint32_t> max_tokens;
  std::vector<std::string> stop;
  std::string prompt;
  std::string prompt_ids;
  bool json = false;
};

// Returns true if the model is an imported one, not a run.
bool IsImported(const std::string& model) { return absl::StartsWith(model, "models/"); }

// Returns the request without its run.
absl::StatusOr<v1::GenerateRequest> MakeRequest(const GenerateOptions& options) {
  if (IsImported(options.model) && options.tokenizer.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tokenizer: missing for ", options.model,
        "; expected the data set of its tokenizer. `ablate data add FOLDER` uploads a folder with "
        "its tokenizer.json, or its vocab.json and merges.txt, and prints the name"));
  }
  if (options.step && *options.step > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("--step: ", *options.step, " is too large; expected at most 2147483647"));
  }
  v1::GenerateRequest request;
  if (IsImported(options.model)) request.set_model(options.model);
  request.set_tokenizer(options.tokenizer);
  if (options.step) request.set_step(static_cast<int32_t>(*options.step));
  if (options.count) request.set_count(*options.count);
  if (options.temperature) request.set_temperature(*options.temperature);
  if (options.top_k) request.set_top_k(*options.top_k);
  if (options.top_p) request.set_top_p(*options.top_p);
  if (options.seed) request.set_seed(*options.seed);
  if (options.max_tokens) request.set_max_tokens(*options.max_tokens);
  request.mutable_stop()->Assign(options.stop.begin(), options.stop.end());
  request.set_prompt(options.prompt);
  if (options.prompt_ids.empty()) return request;
  for (const absl::string_view text : absl::StrSplit(options.prompt_ids, ',')) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(text, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prompt-ids: \"", text,
                       "\" is not a token id; expected whole numbers, such as 50256,318"));
    }
    request.add_prompt_ids(id);
  }
  return request;
}

std::string Percent(double share) { return absl::StrCat(std::lround(share * 100), " %"); }

void PrintSummary(const v1::GenerateSummary& summary, const Context& context) {
  const std::string of = summary.model().empty()
                             ? absl::StrCat(" at step ", text::Grouped(summary.step()))
                             : absl::StrCat(" of ", summary.model());
  std::string line = absl::StrCat(Count(summary.samples(), "sample"), of, ": ",
                                  Percent(summary.distinct_share()), " distinct");
  if (summary.has_in_training_data_share()) {
    absl::StrAppend(&line, ", ", Percent(summary.in_training_data_share()),
                    " found in the training data");
  }
  context.console.Info(line);
}

void Print(const v1::GenerateResponse& message, const GenerateOptions& options,
           const Context& context) {
  std::ostream* const out = context.console.out;
  if (options.json) context.console.data() << ToJsonLine(message);
  if (message.has_summary()) PrintSummary(message.summary(), context);
  if (options.json || !message.has_sample()) return;
  const std::string& text = message.sample().text();
  *out << text << "\n";
  if (text.find('\n') != std::string::npos) *out << "\n";
}

absl::StatusOr<int> Generate(const GenerateOptions& options, const v1::GenerateRequest& request,
                             const Context& context, Connection* connection) {
  v1::GenerateRequest of_model = request;
  if (request.model().empty()) {
    ASSIGN_OR_RETURN(const std::string run, FindRun(connection, options.model));
    of_model.set_run(run);
  }
  const auto on_message = [&](const v1::GenerateResponse& message) {
    Print(message, options, context);
    const bool good = context.console.data().good();
    return good ? absl::OkStatus() : absl::AbortedError("writing the output failed");
  };
  const absl::Status status = connection->Stream(kGenerate, of_model, on_message);
  if (status.ok()) return kSuccess;
  if (!request.model().empty()) return status;
  return ExplainRunError(connection, status, options.model);
}

}  // namespace

Action DefineGenerate(Command* command) {
  auto options = std::make_shared<GenerateOptions>();
  command->Argument(&options->model, "EXP/CELL|models/NAME",
                    "Cell of an experiment, EXP/@best, runs/ID, or models/NAME, an imported model");
  command->Option(&options->tokenizer, "--tokenizer", "NAME",
                  "Tokenizer of models/NAME: a data set of the server");
  command->Option(&options->step, "--step", "N", "Use a run's checkpoint of step N [the last]");
  command->Option(&options->count, "--count,-n", "N", "Draw N samples, 1–1,000 [20]");
  command->Option(&options->temperature, "--temperature,-t", "X",
                  "Divide logits by X, 0–100; 0 takes the most likely token [1]");
  command->Option(&options->top_k, "--top-k", "N",
                  "Draw from the N most likely tokens; 0 draws from all [0]");
  command->Option(&options->top_p, "--top-p", "P",
                  "Draw from the fewest tokens whose probabilities add up to P, above 0 to 1 [1]");
  command->Option(&options->seed, "--seed", "N",
                  "Seed of the draws; equal seeds give all models the same random numbers, "
                  "0–4294967295 [0]");
  command->Option(&options->max_tokens, "--max-tokens", "N",
                  "Draw at most N tokens for a sample, 1–10,000,000 [until the context is full]");
  command->Options(&options->stop, "--stop", "TEXT",
                   "End a sample before the first TEXT after the prompt");
  command->Option(&options->prompt, "--prompt", "TEXT", "Begin every sample with TEXT");
  command->Option(&options->prompt_ids, "--prompt-ids", "ID,...",
                  "Begin every sample with these token ids, such as 50256,318");
  command->Flag(&options->json, "--json", "Print the server's messages, one per line of JSON");
  command->Footer(
      "Samples can be drawn while runs train. Two shares are printed on standard error: distinct "
      "samples, and samples that are documents of the training part of the data set. The run need "
      "not have read such a document. An empty line follows a sample of several lines. TEXT is "
      "taken as it is; a shell writes a line feed as $'\\n'.\n\n"
      "Examples:\n  ablate generate names-norm/pre-lr0.01-s42 --temperature 0.5\n"
      "  ablate generate models/gpt2 --tokenizer gpt2 --max-tokens 40");
  return WithServer(*command, options, MakeRequest, Generate);
}

}  // namespace ablate::client
