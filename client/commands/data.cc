// `ablate data ls | add FILE | rm NAME`: the data sets of the server.
#include <google/protobuf/empty.pb.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/text_split.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/output/table.h"
#include "client/submit/allowed_files.h"
#include "client/submit/dataset_files.h"
#include "client/submit/token_bins.h"

namespace ablate::client {
namespace {

struct DataOptions {
  std::string name;
  std::vector<std::string> data;  // to which links of a folder may lead
  bool is_private = false;
  bool json = false;
};

// An older server has texts only, and doesn't say so.
bool IsText(const v1::Dataset& dataset) {
  return dataset.kind() == v1::DatasetKind::text || dataset.kind() == v1::DatasetKind::unspecified;
}

bool IsTagged(const v1::Dataset& dataset) { return dataset.kind() == v1::DatasetKind::tagged; }

bool HasFiles(const v1::Dataset& dataset) { return dataset.kind() == v1::DatasetKind::files; }

// Returns the counts of an uploaded data set.
std::string FactsText(const v1::Dataset& dataset) {
  if (IsTagged(dataset)) return Count(dataset.documents(), "tagged sentence");
  if (HasFiles(dataset)) return Count(dataset.documents(), "file");
  if (IsText(dataset)) {
    return absl::StrCat(Count(dataset.documents(), "document"), ", ",
                        Count(dataset.characters(), "character"));
  }
  const std::string documents =
      dataset.documents() > 0 ? absl::StrCat(" of ", Count(dataset.documents(), "document")) : "";
  return absl::StrCat(v1::DatasetKind::Value_Name(dataset.kind()), documents,
                      " with a vocabulary of ", text::Grouped(dataset.vocabulary()));
}

absl::StatusOr<int> Ls(const DataOptions& options, const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListDatasetsResponse list,
                   ListAll(connection, kListDatasets, &v1::ListDatasetsResponse::mutable_datasets));
  if (options.json) return PrintJson(context, list);
  const bool owners = ShowsOwners(*connection, list.datasets());
  Table table({{"data set"},
               {"file"},
               {"owner", false, !owners},
               {"kind"},
               {"size", true},
               {"documents", true},
               {"vocabulary", true},
               {"created"}});
  for (const v1::Dataset& dataset : list.datasets()) {
    const bool is_text = IsText(dataset);
    table.Add({Id(dataset.name()), dataset.display_name(), owners ? OwnerText(dataset) : "",
               is_text ? "text" : v1::DatasetKind::Value_Name(dataset.kind()),
               Bytes(dataset.bytes()),
               is_text || dataset.documents() > 0 ? text::Grouped(dataset.documents()) : "",
               IsTagged(dataset) || HasFiles(dataset)
                   ? ""
                   : text::Grouped(is_text ? dataset.characters() : dataset.vocabulary()),
               absl::StrCat(Ago(dataset.create_time(), context.now()),
                            dataset.has_expire_time() ? ", unused" : "")});
  }
  return PrintTable(context, table);
}

// Returns the value that divides the tokens where val.bin begins.
std::string ValidationText(const TokenBins& bins) {
  const uint64_t all = bins.training + bins.validation;
  return absl::StrCat("task.text.validation: ", ValidationOf(bins.validation, all),
                      " holds out exactly val.bin: ", text::Grouped(bins.validation), " of ",
                      text::Grouped(all), " tokens");
}

// Checks the files that are read of a folder, if the path is one.
absl::Status CheckTokenizerFolder(const std::string& path,
                                  const std::vector<std::string>& allowed) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return absl::OkStatus();
  return CheckFilesIn(path, {"tokenizer.json", "vocab.json", "merges.txt", "train.bin", "val.bin"},
                      allowed);
}

absl::StatusOr<int> Add(const DataOptions& options, const Context& context,
                        Connection* connection) {
  const Audience audience = options.is_private ? Audience::kOurselves : Audience::kEverybody;
  absl::StatusOr<Upload> upload;
  std::string validation;  // of token files
  RETURN_IF_ERROR(CheckTokenizerFolder(options.name, options.data));
  if (HasTokenBins(options.name)) {
    ASSIGN_OR_RETURN(TokenBins bins, ReadTokenBins(options.name));
    validation = ValidationText(bins);
    upload = UploadBytes(connection, context, options.name, std::move(bins.file), audience);
  } else {
    upload = UploadFile(connection, context, options.name, audience);
  }
  if (!upload.ok()) return upload.status();
  const v1::Dataset& dataset = upload->dataset;
  if (options.json) {
    if (!validation.empty()) context.console.Info(validation);
    return PrintJson(context, dataset);
  }
  *context.console.out << dataset.name() << "\n";
  context.console.Info(absl::StrCat(upload->sent ? "uploaded " : "the server has it already: ",
                                    Bytes(dataset.bytes()), ", ", FactsText(dataset)));
  if (!validation.empty()) context.console.Info(validation);
  if (options.is_private && !dataset.private_()) {
    context.console.Note("the same bytes are public already, in a data set that isn't private");
  }
  return kSuccess;
}

absl::StatusOr<int> Rm(const DataOptions& options, const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const std::string name, ResolveDatasetName(connection, options.name));
  v1::DeleteDatasetRequest request;
  request.set_name(name);
  RETURN_IF_ERROR(connection->Call(kDeleteDataset, request).status());
  if (options.json) PrintJson(context, google::protobuf::Empty());
  context.console.Info(absl::StrCat("removed ", Id(request.name())));
  return kSuccess;
}

}  // namespace

Action DefineDataLs(Command* command) {
  auto options = std::make_shared<DataOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "An unused data set was uploaded by `ablate submit`. Only you see it until an experiment "
      "uses it; after an hour without one it is deleted.\n\n"
      "Example:\n  ablate data ls");
  return WithServer(options, Ls);
}

Action DefineDataAdd(Command* command) {
  auto options = std::make_shared<DataOptions>();
  command->Argument(
      &options->name, "PATH",
      "Text file in UTF-8, at most 1 GiB; tagged sentences in CoNLL-U; or a folder of a "
      "tokenizer, which may have train.bin and val.bin");
  command->Options(&options->data, kAllowOption, "PATH",
                   "Allow links in a folder to lead to PATH, a file or folder outside it");
  command->Flag(&options->is_private, "--private",
                "Show it only to you and admins; for private experiments of yours");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "A documents task reads one document per line, a text task reads the whole file. Control "
      "characters other than tabs and line breaks are refused.\n\n"
      "A file in CoNLL-U has sentences with labels for each word, for the inputs of analyses such "
      "as probe. It is recognised by its first word's line, which has ten columns.\n\n"
      "A tokenizer's folder has tokenizer.json, or vocab.json and merges.txt. "
      "train.bin and val.bin are token ids of the folder's tokenizer, as nanoGPT's prepare scripts "
      "write them: little-endian uint16, or uint32 if the vocabulary has more than 65,536. They "
      "become one data set of tokens. The line about task.text.validation has the value that holds "
      "out the tokens of val.bin.\n\n"
      "Examples:\n  ablate data add examples/data/names.txt\n  ablate data add notes.txt "
      "--private\n  ablate data add gpt2");
  return WithServer(options, Add);
}

Action DefineDataRm(Command* command) {
  auto options = std::make_shared<DataOptions>();
  command->Argument(&options->name, "NAME",
                    "Data set: datasets/ID, its ID, or a file name that only one of yours has");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate data rm names-1a2b3c");
  return WithServer(options, Rm);
}

}  // namespace ablate::client
