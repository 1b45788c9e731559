// `ablate data get NAME`: downloads a data set as the file or folder that `ablate data add` takes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/text_split.h"
#include "base/tokenizer/tokenizer_files.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/file_set_folder.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "client/submit/token_bins.h"
#include "proto/reflect/option.h"

namespace ablate::client {
namespace {

// Marks a folder that this command wrote: it may be replaced.
constexpr char kMarkFile[] = ".ablate";

struct GetOptions {
  std::string name;
  Output output;
  std::optional<double> validation;
  bool json = false;
};

// Returns the default of task.text.validation.
double DefaultValidation() {
  return reflect::DefaultOf(v1::TextTask::descriptor()->FindFieldByName("validation"))
      .number_value();
}

// Divides the ids of a file of tokens, which has its tokenizer.
absl::StatusOr<TokenBinFiles> BinsOf(const DatasetFile& file, double validation) {
  ASSIGN_OR_RETURN(const auto encoding, tokenizer::ParseFiles(file.tokenizer));
  return WriteTokenBins(file.tokens, encoding->vocabulary(), validation);
}

// Writes the files of a tokenizer and, of tokens, their ids. Returns a line about the folder.
absl::StatusOr<std::string> WriteTokenizerFolder(const GetOptions& options,
                                                 const DatasetFile& file) {
  const bool has_tokens = file.kind == DatasetKind::kTokens;
  PartFolder folder(
      options.output,
      [](const std::string& name) { return name == kMarkFile || IsTokenizersFile(name); },
      [](const std::string& path) {
        return !process::ReadWholeFile(absl::StrCat(path, "/", kMarkFile)).empty();
      });
  absl::Status written = folder.Open();
  if (written.ok()) written = folder.Write(kMarkFile, "written by ablate data get\n");
  for (const auto& [name, bytes] : file.tokenizer.parts()) {
    if (written.ok()) written = folder.Write(name, bytes);
  }
  std::string facts = "a tokenizer";
  if (written.ok() && has_tokens) {
    ASSIGN_OR_RETURN(const auto bins,
                     BinsOf(file, options.validation.value_or(DefaultValidation())));
    written = folder.Write("train.bin", bins.train);
    if (written.ok()) written = folder.Write("val.bin", bins.val);
    facts = absl::StrCat("a tokenizer and ", Count(file.tokens.size(), "token"), ", of which ",
                         text::Grouped(bins.validation), " in val.bin");
  }
  if (written.ok()) written = folder.Commit();
  if (!written.ok()) return written;
  return facts;
}

absl::StatusOr<int> GetData(const GetOptions& options, const Context& context,
                            Connection* connection) {
  v1::GetDatasetRequest request;
  request.set_name(options.name);
  ASSIGN_OR_RETURN(const v1::Dataset dataset, connection->Call(kGetDataset, request));
  // The files of a folder have no place for the lengths of documents.
  const bool divides = dataset.kind() == v1::DatasetKind::tokens && dataset.documents() == 0;
  if (options.validation.has_value() && !divides) {
    return absl::InvalidArgumentError(absl::StrCat("--validation: ", dataset.name(),
                                                   " has no tokens of a whole text; expected it "
                                                   "only with a data set of such tokens"));
  }
  std::string facts = Bytes(dataset.bytes());
  if (divides || dataset.kind() == v1::DatasetKind::tokenizer) {
    ASSIGN_OR_RETURN(const auto bytes, FetchTokenizer(connection, dataset, context.sleep));
    ASSIGN_OR_RETURN(const DatasetFile file, ReadDatasetFile(bytes));
    ASSIGN_OR_RETURN(facts, WriteTokenizerFolder(options, file));
  } else if (dataset.kind() == v1::DatasetKind::files) {
    ASSIGN_OR_RETURN(const size_t files,
                     WriteFileSet(RemoteOf(dataset), ReadDataset(connection, dataset),
                                  context.sleep, /*prefix=*/"", options.output));
    facts = Count(files, "file");
  } else {
    RETURN_IF_ERROR(Download(RemoteOf(dataset), options.output, ReadDataset(connection, dataset),
                             context.sleep));
  }
  if (options.json) return PrintJson(context, dataset);
  context.console.Info(absl::StrCat(options.output.name(), ": ", facts));
  return kSuccess;
}

}  // namespace

Action DefineDataGet(Command* command) {
  auto options = std::make_shared<GetOptions>();
  command->Argument(&options->name, "NAME",
                    "Data set: datasets/ID, its ID, or a file name that only one has");
  command->RequiredOutput(
      &options->output, OutputKind::kFileOrFolder, "PATH",
      "Write a file PATH, or a folder PATH of a program's files, of a tokenizer "
      "or of the tokens of a whole text");
  command->Option(
      &options->validation, "--validation", "SHARE",
      absl::StrCat("Write the last SHARE of the tokens to val.bin, above 0 and below 1, as "
                   "task.text.validation holds them out [",
                   DefaultValidation(), "]"));
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "PATH is complete or isn't written: the hash of the bytes is checked first.\n\n"
      "A tokenizer's folder has its files and, of tokens, train.bin and val.bin, "
      "little-endian uint16, or uint32 if the vocabulary has more than 65,536. --force replaces "
      "only a folder with the file .ablate, which this command writes. The server stores the "
      "tokens in one piece. To divide them as before `ablate data add`, give the value that it "
      "printed for task.text.validation. The file of tokens of documents is a safetensors file, as "
      "`ablate data add FILE` takes it.\n\n"
      "Examples:\n  ablate data get names-1a2b3c -o names.txt\n"
      "  ablate data get licences-1a2b3c -o licences --validation 0.05");
  return WithServer(options, GetData);
}

}  // namespace ablate::client
