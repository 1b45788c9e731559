// `ablate data get NAME`: downloads a data set as the file or folder that `ablate data add` takes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/text_split.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "client/submit/token_bins.h"

namespace ablate::client {
namespace {

constexpr double kDefaultValidation = 0.1;  // as task.text.validation

struct GetOptions {
  std::string name;
  std::string output;
  std::optional<double> validation;
  bool force = false;
  bool json = false;
};

// Writes the files of a tokenizer and, of tokens, their ids. Returns a line about the folder.
absl::StatusOr<std::string> WriteTokenizerFolder(const GetOptions& options,
                                                 const DatasetFile& file) {
  const bool has_tokens = file.kind == DatasetKind::kTokens;
  std::string path = options.output;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  PartFolder folder(path, options.force ? IfExists::kReplace : IfExists::kRefuse, IsTokenizersFile);
  absl::Status written = folder.Open();
  if (written.ok()) written = folder.Write("vocab.json", file.tokenizer.vocabulary);
  if (written.ok()) written = folder.Write("merges.txt", file.tokenizer.merges);
  std::string facts = "a tokenizer";
  if (written.ok() && has_tokens) {
    const absl::StatusOr<TokenBinFiles> bins =
        WriteTokenBins(file.tokens, options.validation.value_or(kDefaultValidation));
    if (!bins.ok()) return bins.status();
    written = folder.Write("train.bin", bins->train);
    if (written.ok()) written = folder.Write("val.bin", bins->val);
    facts = absl::StrCat("a tokenizer and ", Count(file.tokens.size(), "token"), ", of which ",
                         text::Grouped(bins->validation), " in val.bin");
  }
  if (written.ok()) written = folder.Commit();
  if (!written.ok()) return written;
  return facts;
}

absl::StatusOr<int> GetData(const GetOptions& options, const Context& context,
                            Connection* connection) {
  v1::GetDatasetRequest request;
  request.set_name(options.name);
  const absl::StatusOr<v1::Dataset> dataset = connection->GetDataset(request);
  if (!dataset.ok()) return dataset.status();
  const bool has_tokens = dataset->kind() == v1::DatasetKind::tokens;
  if (options.validation.has_value() && !has_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("--validation: ", dataset->name(),
                                                   " has no tokens; expected it only with a "
                                                   "data set of tokens"));
  }
  std::string facts = Bytes(dataset->bytes());
  if (has_tokens || dataset->kind() == v1::DatasetKind::tokenizer) {
    const auto bytes = FetchTokenizer(connection, *dataset, context.sleep);
    if (!bytes.ok()) return bytes.status();
    const absl::StatusOr<DatasetFile> file = ReadDatasetFile(*bytes);
    if (!file.ok()) return file.status();
    const auto written = WriteTokenizerFolder(options, *file);
    if (!written.ok()) return written.status();
    facts = *written;
  } else {
    const absl::Status written = Download(RemoteOf(*dataset), options.output,
                                          options.force ? IfExists::kReplace : IfExists::kRefuse,
                                          ReadDataset(connection, *dataset), context.sleep);
    if (!written.ok()) return written;
  }
  if (options.json) return PrintJson(context, *dataset);
  context.console.Info(absl::StrCat(options.output, ": ", facts));
  return kSuccess;
}

}  // namespace

Action DefineDataGet(Command* command) {
  auto options = std::make_shared<GetOptions>();
  command->Argument(&options->name, "NAME",
                    "Data set: datasets/ID, its ID, or a file name that only one has");
  command->RequiredOption(&options->output, "--output,-o", "PATH",
                          "Write a text or tagged sentences to a file PATH, a tokenizer or tokens "
                          "to a folder PATH");
  command->Option(&options->validation, "--validation", "SHARE",
                  "Write the last SHARE of the tokens to val.bin, above 0 and below 1, as "
                  "task.text.validation holds them out [0.1]");
  command->Flag(&options->force, "--force", "Replace an existing file or folder of this command");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "PATH is complete or isn't written: the hash of the bytes is checked first.\n\n"
      "The folder has vocab.json and merges.txt and, of tokens, train.bin and val.bin, "
      "little-endian "
      "uint16, or uint32 if an id needs it. The server stores the tokens in one piece. To divide "
      "them as before `ablate data add`, give the value that it printed for "
      "task.text.validation.\n\n"
      "Examples:\n  ablate data get names-1a2b3c -o names.txt\n"
      "  ablate data get licences-1a2b3c -o licences --validation 0.05");
  return WithServer(options, GetData);
}

}  // namespace ablate::client
