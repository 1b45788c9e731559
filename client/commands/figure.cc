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
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/output/format.h"
#include "client/output/part_file.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr double kColumn = 3.25, kDouble = 6.75, kNarrowest = 2, kWidest = 12;  // inches
constexpr absl::string_view kFigureKinds =
    "loss, windows, curves, forest, difference, axis, sensitivity, summary, depth, levels, "
    "landscape, eigenvalues, reliability, matrix or trajectory";

struct FigureOptions {
  ComparisonOptions comparison;
  std::string kind;
  Output output;
  std::string width = "column";
  std::string step;
  bool csv = false;
  bool json = false;
};

// INVALID_ARGUMENT unless the kind is one of kFigureKinds.
absl::Status CheckKind(const std::string& kind) {
  const std::vector<std::string> kinds =
      absl::StrSplit(absl::StrReplaceAll(kFigureKinds, {{" or ", ", "}}), ", ");
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("KIND: ", reflect::Quoted(kind),
                                                 " is unknown; expected ", kFigureKinds,
                                                 reflect::DidYouMean(kind, kinds)));
}

absl::StatusOr<double> Width(const std::string& text) {
  double inches = 0;
  if (text == "column") return kColumn;
  if (text == "double") return kDouble;
  if (absl::SimpleAtod(text, &inches) && inches >= kNarrowest && inches <= kWidest) return inches;
  return absl::InvalidArgumentError(absl::StrCat(
      "--width: ", reflect::Quoted(text),
      " is not a width; expected column, double or inches from ", kNarrowest, " to ", kWidest));
}

absl::Status ReadStep(const std::string& text, v1::RenderFigureRequest* request) {
  constexpr int32_t kLast = -1;
  int32_t step = 0;
  if (text.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(text, &step) || step < kLast) {
    return absl::InvalidArgumentError(
        absl::StrCat("--step: ", reflect::Quoted(text),
                     " is not a step; expected a whole number from 0 on, or -1 for the last"));
  }
  request->set_step(step);
  return absl::OkStatus();
}

absl::StatusOr<v1::RenderFigureRequest> MakeRequest(const FigureOptions& options) {
  v1::RenderFigureRequest request;
  v1::FigureFormat::Value format = v1::FigureFormat::unspecified;
  const std::string ending = options.output.is_standard() ? ".svg" : EndingOf(options.output.path);
  if (ending.empty() || !v1::FigureFormat::Value_Parse(ending.substr(1), &format) ||
      format == v1::FigureFormat::unspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output: ", reflect::Quoted(options.output.path),
                     " has an unknown suffix; expected .svg, .pdf or .png"));
  }
  if (options.csv && options.output.is_standard()) {
    return absl::InvalidArgumentError(
        "--csv: can't be combined with -o -, which takes one file; expected the name of a file");
  }
  RETURN_IF_ERROR(CheckKind(options.kind));
  ASSIGN_OR_RETURN(const double width, Width(options.width));
  ASSIGN_OR_RETURN(v1::CompareRequest comparison, MakeCompareRequest(options.comparison));
  // --key is the metric that is drawn; tuned axes are selected by the primary metric.
  request.set_key(comparison.key());
  comparison.clear_key();
  *request.mutable_comparison() = std::move(comparison);
  RETURN_IF_ERROR(ReadStep(options.step, &request));
  request.set_kind(options.kind);
  request.set_format(format);
  request.set_width(width);
  return request;
}

// Returns the file that --csv writes.
Output CsvOf(Output output) {
  output.path = std::filesystem::path(output.path).replace_extension("csv").string();
  return output;
}

// Gives a file that is written, `bytes` long, its name, which is `path`.
absl::Status Save(const Context& context, const std::string& path, size_t bytes, PartFile* file) {
  RETURN_IF_ERROR(file->Commit());
  context.console.Info(absl::StrCat(path, ": ", Bytes(bytes)));
  return absl::OkStatus();
}

v1::RenderFigureResponse WithoutPicture(v1::RenderFigureResponse figure) {
  figure.clear_data();
  return figure;
}

absl::StatusOr<int> Figure(const FigureOptions& options, const v1::RenderFigureRequest& request,
                           const Context& context, Connection* connection) {
  PartFile picture(options.output);
  RETURN_IF_ERROR(picture.Open());
  // Both files are written or neither.
  const Output csv_output = CsvOf(options.output);
  PartFile csv(csv_output);
  if (options.csv) {
    if (absl::Status opened = csv.Open(); !opened.ok()) return opened;
  }
  ASSIGN_OR_RETURN(const v1::RenderFigureResponse figure, connection->Call(kRenderFigure, request));
  if (options.csv && figure.csv().empty()) {
    return absl::ResourceExhaustedError(
        "--csv: the figure has too many numbers for one answer; nothing was written. Draw it "
        "without --csv; `ablate metrics EXP --csv` prints every point.");
  }
  absl::Status saved = picture.Write(figure.data());
  if (saved.ok() && options.csv) saved = csv.Write(figure.csv());
  if (saved.ok()) saved = Save(context, options.output.name(), figure.data().size(), &picture);
  if (saved.ok() && options.csv) saved = Save(context, csv_output.path, figure.csv().size(), &csv);
  if (!saved.ok()) return saved;
  if (options.json) PrintJson(context, WithoutPicture(figure));
  return kSuccess;
}

}  // namespace

Action DefineFigure(Command* command) {
  auto options = std::make_shared<FigureOptions>();
  AddComparisonOptions(command, &options->comparison, "Draw this metric, see below");
  command->Argument(&options->kind, "KIND", absl::StrCat("Kind of figure: ", kFigureKinds));
  command->RequiredOutput(&options->output, OutputKind::kFile, "FILE",
                          "Write to FILE, which ends in .svg, .pdf or .png; - is standard output, "
                          "as SVG");
  command->Option(&options->width, "--width", "WIDTH",
                  "Width: column (3.25 inches), double (6.75) or inches, 2–12 [column]");
  command->Option(
      &options->step, "--step", "STEP",
      "Draw depth or levels at STEP [-1, the last that all seeds of a setting have]. Draw an "
      "analysis of the checkpoint at STEP [-1, the last analyzed of each run]");
  command->Flag(&options->csv, "--csv", "Write the numbers, too, to FILE with the suffix .csv");
  command->Flag(&options->json, "--json", "Print the server's message as JSON without the picture");
  command->Footer(
      "--key depends on the kind:\n"
      "  loss, windows, curves  metric [train/loss]\n"
      "  depth                  family of metrics by block, such as gradient for gradient/block.0 "
      "and so on; LABEL/NUMBER of an analysis [gradient]\n"
      "  levels                 LABEL/PERTURBATION@*/NUMBER of an analysis of kind robustness "
      "[robustness/replace_words@*/increase]\n"
      "  landscape              label of an analysis [loss_landscape]\n"
      "  eigenvalues            label of an analysis [spectrum]\n"
      "  reliability            label of an analysis [predictions]\n"
      "  matrix                 label of an analysis [cka], or LABEL/ARRAY: of attention "
      "model_map, layer_maps or head_maps\n"
      "  trajectory             label of an analysis [trajectory]\n"
      "  others                 compared metric [report.primary]\n\n"
      "If no run has the default family, one that exists is drawn. If no analysis has the default "
      "label, every label that the kind can draw is drawn. docs/reference/figures.md describes "
      "each kind.\n\n"
      "Examples:\n  ablate figure names-norm forest -o forest.pdf\n"
      "  ablate figure names-norm loss -o loss.svg --width double --csv\n"
      "  ablate figure names-norm loss --key eval/loss -o eval.png\n"
      "  ablate figure residual-depth depth --key gradient --step 0 -o depth.svg\n"
      "  ablate figure names-norm depth -o r.svg \\\n"
      "      --key 'norm_jacobian/r_radial/block.*.feed_forward_norm'\n"
      "  ablate figure names-norm landscape --key loss_landscape -o landscape.svg");
  return WithServer(*command, options, MakeRequest, Figure);
}

}  // namespace ablate::client
