// `ablate table EXP`: the main table of a comparison, or the table of an analysis, for a terminal,
// a program or a paper.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct TableOptions {
  ComparisonOptions comparison;
  std::string format = "text";
  std::string columns;  // separated by commas
  std::string analysis;
  Output output;
  bool json = false;
};

// INVALID_ARGUMENT if the output's suffix belongs to another format.
absl::Status CheckEnding(const TableOptions& options, v1::TableFormat::Value format) {
  const std::string ending = EndingOf(options.output.path);
  const char* wanted = format == v1::TableFormat::csv     ? ".csv"
                       : format == v1::TableFormat::latex ? ".tex"
                                                          : ".txt";
  if (ending.empty() || ending == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--output: ", reflect::Quoted(options.output.path), " does not fit --format ", options.format,
      "; expected a name that ends in ", wanted, ", or has no suffix"));
}

absl::StatusOr<v1::RenderTableRequest> MakeRequest(const TableOptions& options) {
  v1::RenderTableRequest request;
  v1::TableFormat::Value format = v1::TableFormat::unspecified;
  if (!v1::TableFormat::Value_Parse(options.format, &format) ||
      format == v1::TableFormat::unspecified) {
    return absl::InvalidArgumentError(absl::StrCat("--format: ", reflect::Quoted(options.format),
                                                   " is unknown; expected text, csv or latex"));
  }
  if (options.json && options.output.given()) {
    return absl::InvalidArgumentError(
        "--json: can't be combined with --output; remove one of them");
  }
  RETURN_IF_ERROR(CheckEnding(options, format));
  request.set_format(format);
  for (const absl::string_view column : absl::StrSplit(options.columns, ',', absl::SkipEmpty())) {
    request.add_columns(std::string(column));
  }
  request.set_label(options.analysis);
  ASSIGN_OR_RETURN(*request.mutable_comparison(), MakeCompareRequest(options.comparison));
  return request;
}

absl::StatusOr<int> WriteTable(const TableOptions& options, const Context& context,
                               const std::string& data) {
  if (options.output.given()) {
    RETURN_IF_ERROR(WriteFile(options.output, data));
    context.console.Info(absl::StrCat(options.output.name(), ": ", Bytes(data.size())));
    return kSuccess;
  }
  (options.format == "text" ? *context.console.out : context.console.data()) << data;
  return kSuccess;
}

absl::StatusOr<int> RenderTable(const TableOptions& options, const v1::RenderTableRequest& request,
                                const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::RenderTableResponse table, connection->Call(kRenderTable, request));
  if (options.json) return PrintJson(context, table);
  return WriteTable(options, context, table.data());
}

}  // namespace

Action DefineTable(Command* command) {
  auto options = std::make_shared<TableOptions>();
  AddComparisonOptions(command, &options->comparison);
  command->Option(&options->format, "--format", "FORMAT", "Format: text, csv or latex [text]");
  command->Option(&options->columns, "--columns", "LIST",
                  "Columns of text and LaTeX in this order, separated by commas: parameters, "
                  "chosen, n, diverged, mean, difference, p_sign_flip, p_holm, effect, wins, "
                  "correlation, device_seconds, tokens_per_second [all that have a number]");
  command->Option(&options->analysis, "--analysis", "LABEL",
                  "The headline numbers of this analysis of the experiment's file, and their "
                  "differences from the baseline, in place of the metric; text or latex");
  command->Output(&options->output, OutputKind::kFile, "FILE",
                  "Write to FILE, which ends in .txt, .csv or .tex or has no suffix [standard "
                  "output]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "CSV follows RFC 4180, with exact numbers and fixed titles. Labels are written unchanged: a "
      "spreadsheet may read one such as =A1 as a formula. LaTeX needs the package booktabs.\n\n"
      "Examples:\n  ablate table names-norm\n"
      "  ablate table names-norm --format latex --columns mean,p_holm -o t.tex\n"
      "  ablate table gpt2-norm-sites --analysis attention");
  return WithServer(*command, options, MakeRequest, RenderTable);
}

}  // namespace ablate::client
