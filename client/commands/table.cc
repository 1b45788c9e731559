// `ablate table EXP`: the main table of a comparison, for a terminal, a program or a paper.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/comparison_options.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/number_text.h"
#include "client/part_file.h"
#include "client/utf8.h"

namespace ablate::client {
namespace {

struct Options {
  ComparisonOptions comparison;
  std::string format = "text";
  std::string output;
  bool json = false;
};

// The request, or what is wrong with the command line.
absl::StatusOr<v1::RenderTableRequest> ToRequest(const Options& options) {
  v1::RenderTableRequest request;
  v1::TableFormat::Value format = v1::TableFormat::unspecified;
  if (!v1::TableFormat::Value_Parse(options.format, &format) ||
      format == v1::TableFormat::unspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format ", options.format, " is none of text, csv, latex"));
  }
  if (options.json && !options.output.empty()) {
    return absl::InvalidArgumentError("--json is for standard output, without --output");
  }
  request.set_format(format);
  const absl::StatusOr<v1::CompareRequest> comparison = ToRequest(options.comparison);
  if (!comparison.ok()) return comparison.status();
  *request.mutable_comparison() = *comparison;
  return request;
}

absl::Status Write(const std::string& path, const std::string& data) {
  PartFile file(path);
  if (absl::Status opened = file.Open(); !opened.ok()) return opened;
  if (absl::Status written = file.Write(data); !written.ok()) return written;
  return file.Keep();
}

int WriteTable(const Options& options, const Context& context, const std::string& data) {
  if (!options.output.empty()) {
    const absl::Status written = Write(options.output, data);
    if (!written.ok()) return Fail(context, written);
    context.console.Say(absl::StrCat(options.output, ": ", Bytes(data.size())));
    return kSuccess;
  }
  // A program gets the texts as they are; a terminal must not obey them.
  *context.console.out << (context.console.out_is_terminal ? PrintableLines(data) : data);
  return kSuccess;
}

int MakeTable(const Options& options, const Context& context) {
  const absl::StatusOr<v1::RenderTableRequest> request = ToRequest(options);
  if (!request.ok()) {
    context.console.Error(absl::StrCat("ablate table: ", request.status().message()));
    return kUsage;
  }
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::RenderTableResponse> table = (*connection)->RenderTable(*request);
  if (!table.ok()) return Fail(context, table.status());
  if (!options.json) return WriteTable(options, context, table->data());
  *context.console.out << ToJson(*table);
  return kSuccess;
}

}  // namespace

void AddTable(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("table", "Print a comparison's main table as text, CSV or LaTeX");
  AddComparisonOptions(&command, &options->comparison);
  command.Option(&options->format, "--format", "FORMAT", "text, csv or latex [text]");
  command.Option(&options->output, "--output,-o", "FILE", "file to write [standard output]");
  command.Flag(&options->json, "--json", "print the server's message");
  command.Footer(
      "CSV follows RFC 4180: exact numbers, fixed titles, texts as they are, so that a "
      "spreadsheet\n"
      "may take a label such as =A1 for a formula. LaTeX needs the package booktabs.\n\n"
      "Example:\n  ablate table names-norm\n"
      "  ablate table names-norm --format latex -o names-norm.tex");
  command.Do([options](const Context& context) { return MakeTable(*options, context); });
}

}  // namespace ablate::client
