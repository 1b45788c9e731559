// `ablate figure EXP KIND -o FILE`: a picture of a comparison, and the numbers in it.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/output/format.h"
#include "client/output/own_file.h"
#include "client/output/part_file.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr double kColumn = 3.25, kDouble = 6.75, kNarrowest = 2, kWidest = 12;  // inches
constexpr absl::string_view kFigureKinds =
    "loss, windows, curves, forest, difference, axis, sensitivity, summary, depth, landscape, "
    "eigenvalues, matrix or trajectory";

struct FigureOptions {
  ComparisonOptions comparison;
  std::string kind;
  std::string output;
  std::string width = "column";
  std::string step;
  bool csv = false;
  bool force = false;
  bool json = false;
};

// That the kind is one of kFigureKinds.
absl::Status CheckKind(const std::string& kind) {
  const std::vector<std::string> kinds =
      absl::StrSplit(absl::StrReplaceAll(kFigureKinds, {{" or ", ", "}}), ", ");
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("KIND: ", reflect::Quoted(kind), " is none of ",
                                                 kFigureKinds, reflect::DidYouMean(kind, kinds)));
}

absl::StatusOr<double> Width(const std::string& text) {
  double inches = 0;
  if (text == "column") return kColumn;
  if (text == "double") return kDouble;
  if (absl::SimpleAtod(text, &inches) && inches >= kNarrowest && inches <= kWidest) return inches;
  return absl::InvalidArgumentError(absl::StrCat(
      "--width: ", reflect::Quoted(text), " is none of column, double or a number of inches from ",
      kNarrowest, " to ", kWidest));
}

absl::Status ReadStep(const std::string& text, v1::RenderFigureRequest* request) {
  constexpr int32_t kLast = -1;
  int32_t step = 0;
  if (text.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(text, &step) || step < kLast) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--step: ", reflect::Quoted(text), " is not a step from 0 on, or -1 for the last one"));
  }
  request->set_step(step);
  return absl::OkStatus();
}

absl::StatusOr<v1::RenderFigureRequest> MakeRequest(const FigureOptions& options) {
  v1::RenderFigureRequest request;
  v1::FigureFormat::Value format = v1::FigureFormat::unspecified;
  const std::string ending = EndingOf(options.output);
  if (ending.empty() || !v1::FigureFormat::Value_Parse(ending.substr(1), &format) ||
      format == v1::FigureFormat::unspecified) {
    return absl::InvalidArgumentError(absl::StrCat("--output: ", reflect::Quoted(options.output),
                                                   " does not end in .svg, .pdf or .png"));
  }
  if (absl::Status kind = CheckKind(options.kind); !kind.ok()) return kind;
  const absl::StatusOr<double> width = Width(options.width);
  if (!width.ok()) return width.status();
  absl::StatusOr<v1::CompareRequest> comparison = MakeCompareRequest(options.comparison);
  if (!comparison.ok()) return comparison.status();
  // What is drawn; a tuned axis is chosen by the primary metric all the same.
  request.set_key(comparison->key());
  comparison->clear_key();
  *request.mutable_comparison() = *std::move(comparison);
  if (absl::Status step = ReadStep(options.step, &request); !step.ok()) return step;
  request.set_kind(options.kind);
  request.set_format(format);
  request.set_width(*width);
  return request;
}

FileKind KindOf(v1::FigureFormat::Value format) {
  if (format == v1::FigureFormat::svg) return FileKind::kSvg;
  return format == v1::FigureFormat::pdf ? FileKind::kPdf : FileKind::kPng;
}

// Where --csv writes the numbers.
std::string CsvPath(const std::string& output) {
  return std::filesystem::path(output).replace_extension("csv").string();
}

// Gives a file that is written, `bytes` long, its name, which is `path`.
absl::Status Save(const Context& context, const std::string& path, size_t bytes, PartFile* file) {
  if (absl::Status committed = file->Commit(); !committed.ok()) return committed;
  context.console.Info(absl::StrCat(path, ": ", Bytes(bytes)));
  return absl::OkStatus();
}

v1::RenderFigureResponse WithoutPicture(v1::RenderFigureResponse figure) {
  figure.clear_data();
  return figure;
}

absl::StatusOr<int> Figure(const FigureOptions& options, const v1::RenderFigureRequest& request,
                           const Context& context, Connection* connection) {
  PartFile picture(options.output, [&] {
    return ReplaceOwn(options.output, KindOf(request.format()), options.force);
  });
  if (absl::Status opened = picture.Open(); !opened.ok()) return opened;
  // Both or none: a CSV has nothing that says whose it is.
  const std::string csv_path = CsvPath(options.output);
  PartFile csv(csv_path, options.force ? IfExists::kReplace : IfExists::kRefuse);
  if (options.csv) {
    if (absl::Status opened = csv.Open(); !opened.ok()) return opened;
  }
  const absl::StatusOr<v1::RenderFigureResponse> figure = connection->RenderFigure(request);
  if (!figure.ok()) return figure.status();
  if (options.csv && figure->csv().empty()) {
    return absl::ResourceExhaustedError(
        "the figure's numbers are too many for an answer, and nothing was written; without --csv "
        "it is drawn, and `ablate metrics EXP --csv` has all points");
  }
  absl::Status saved = picture.Write(figure->data());
  if (saved.ok() && options.csv) saved = csv.Write(figure->csv());
  if (saved.ok()) saved = Save(context, options.output, figure->data().size(), &picture);
  if (saved.ok() && options.csv) saved = Save(context, csv_path, figure->csv().size(), &csv);
  if (!saved.ok()) return saved;
  if (options.json) PrintJson(context, WithoutPicture(*figure));
  return kSuccess;
}

}  // namespace

Action DefineFigure(Command* command) {
  auto options = std::make_shared<FigureOptions>();
  AddComparisonOptions(command, &options->comparison);
  command->Argument(&options->kind, "KIND", std::string(kFigureKinds));
  command->RequiredOption(&options->output, "--output,-o", "FILE",
                          "file to write; its name ends in .svg, .pdf or .png; an earlier figure "
                          "there is replaced");
  command->Option(&options->width, "--width", "WIDTH",
                  "column (3.25 inches), double (6.75) or inches from 2 to 12 [column]");
  command->Option(
      &options->step, "--step", "STEP",
      "in depth the step that is drawn [-1, the last that all seeds of a setting have]; in "
      "landscape, eigenvalues, matrix and trajectory that of the checkpoint [-1, each run's last "
      "analysed]");
  command->Flag(&options->csv, "--csv", "write the numbers too, into FILE with .csv as its end");
  command->Flag(&options->force, "--force",
                "replace also a file that is no such figure, or the CSV that is there");
  command->Flag(&options->json, "--json", "print the server's message, without the picture");
  command->Footer(
      "--key is the metric that is drawn: in loss, windows and curves [train/loss], else the\n"
      "compared one [report.primary of the spec]. In depth it is a family of metrics by block\n"
      "[gradient, of gradient/block.0 and so on]; of an analysis LABEL/NUMBER. In landscape,\n"
      "eigenvalues, matrix and trajectory it is an analysis's label [loss_landscape, spectrum, "
      "cka,\n"
      "trajectory; if no analysis has that label, every label that the kind can draw].\n"
      "docs/reference/figures.md says what each kind shows.\n\n"
      "Examples:\n  ablate figure names-norm forest -o forest.pdf\n"
      "  ablate figure names-norm loss -o loss.svg --width double --csv\n"
      "  ablate figure names-norm loss --key eval/loss -o eval.png\n"
      "  ablate figure residual-depth depth --key gradient --step 0 -o depth.svg\n"
      "  ablate figure names-norm depth --key 'norm_jacobian/r_radial/block.*.feed_forward_norm' "
      "-o r.svg\n"
      "  ablate figure names-norm landscape --key loss_landscape -o landscape.svg");
  return WithServer(*command, options, MakeRequest, Figure);
}

}  // namespace ablate::client
