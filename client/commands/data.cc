// `ablate data ls | add FILE | rm NAME`: the data sets of the server.
#include <google/protobuf/empty.pb.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/dataset_upload.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/pages.h"
#include "client/table.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

struct Options {
  std::string name;
  bool json = false;
};

absl::StatusOr<v1::ListDatasetsResponse> ListAll(Connection* connection) {
  return AllPages(
      &v1::ListDatasetsResponse::mutable_datasets, v1::ListDatasetsRequest(),
      [&](const v1::ListDatasetsRequest& page) { return connection->ListDatasets(page); });
}

int Ls(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::ListDatasetsResponse> list = ListAll(connection->get());
  if (!list.ok()) return Fail(context, list.status());
  if (options.json) {
    *context.console.out << ToJson(*list);
    return kSuccess;
  }
  Table table({{"data set"},
               {"file"},
               {"size", true},
               {"documents", true},
               {"characters", true},
               {"created"}});
  for (const v1::Dataset& dataset : list->datasets()) {
    table.Add({Id(dataset.name()), dataset.display_name(), Bytes(dataset.bytes()),
               text::Grouped(dataset.documents()), text::Grouped(dataset.characters()),
               Ago(absl::FromUnixSeconds(dataset.create_time().seconds()), context.now())});
  }
  *context.console.out << table.Render(context.console.table_width());
  return kSuccess;
}

int Add(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<Upload> upload = UploadFile(connection->get(), options.name);
  if (!upload.ok()) return Fail(context, upload.status());
  const v1::Dataset& dataset = upload->dataset;
  if (options.json) {
    *context.console.out << ToJson(dataset);
    return kSuccess;
  }
  *context.console.out << dataset.name() << "\n";
  context.console.Say(absl::StrCat(
      upload->sent ? "uploaded " : "the server has it already: ", Bytes(dataset.bytes()), ", ",
      Count(dataset.documents(), "document"), ", ", Count(dataset.characters(), "character")));
  return kSuccess;
}

int Rm(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<std::string> name = WholeDatasetName(connection->get(), options.name);
  if (!name.ok()) return Fail(context, name.status());
  v1::DeleteDatasetRequest request;
  request.set_name(*name);
  const absl::Status status = (*connection)->DeleteDataset(request);
  if (!status.ok()) return Fail(context, status);
  if (options.json) *context.console.out << ToJson(google::protobuf::Empty());
  context.console.Say(absl::StrCat("removed ", Id(request.name())));
  return kSuccess;
}

}  // namespace

void AddData(Command root) {
  auto options = std::make_shared<Options>();
  Command group = root.Add("data", "List, add and remove data sets");
  group.Footer("Example:\n  ablate data add examples/data/names.txt");

  Command ls = group.Add("ls", "List data sets");
  ls.Flag(&options->json, "--json", "print the server's message, all pages as one");
  ls.Footer("Example:\n  ablate data ls");
  ls.Do([options](const Context& context) { return Ls(*options, context); });

  Command add = group.Add("add", "Upload a text with one document a line");
  add.Argument(&options->name, "FILE", "text in UTF-8");
  add.Flag(&options->json, "--json", "print the server's message");
  add.Footer("Example:\n  ablate data add examples/data/names.txt");
  add.Do([options](const Context& context) { return Add(*options, context); });

  Command rm = group.Add("rm", "Remove a data set that no run needs");
  rm.Argument(&options->name, "NAME",
              "data set: datasets/ID, an ID, or a file's name that only one has");
  rm.Flag(&options->json, "--json", "print the server's message");
  rm.Footer("Example:\n  ablate data rm names-1a2b3c");
  rm.Do([options](const Context& context) { return Rm(*options, context); });
}

}  // namespace ablate::client
