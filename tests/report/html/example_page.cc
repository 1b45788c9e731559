// Makes a report with everything in it from a small synthetic grid.
#include "tests/report/html/example_page.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/report/figure/render.h"

namespace ablate::html {
namespace {

constexpr int kSeeds = 6;

report::Axis MakeAxis(Texts* texts, const std::string& name,
                      const std::vector<std::string>& labels) {
  report::Axis axis;
  axis.name = texts->Next(name);
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string label = texts->Next(labels[i]);
    axis.labels.push_back(label == labels[i] ? label : absl::StrCat(label, i));
  }
  return axis;
}

report::Cell MakeCell(const std::vector<report::Axis>& axes, size_t placement, size_t learning_rate,
                      int seed, Texts* texts) {
  report::Cell cell;
  cell.labels = {axes[0].labels[placement], axes[1].labels[learning_rate]};
  cell.seed = static_cast<uint32_t>(42 + seed);
  const bool diverged = placement == 2 && learning_rate == 1 && seed < 2;
  cell.outcome = diverged ? report::RunOutcome::kDiverged : report::RunOutcome::kDone;
  cell.value = 2.4 + .03 * static_cast<double>(placement) +
               .02 * static_cast<double>(learning_rate) +
               .01 * std::sin(7 * seed + static_cast<double>(placement * 3 + learning_rate));
  cell.parameters = 25968 - static_cast<int64_t>(16 * placement);
  cell.device_seconds = 1.5;
  cell.tokens_per_second = 12345;
  cell.trainer = texts->Next("torch");
  cell.version = texts->Next("0.1.0, torch 2.13");
  cell.device = texts->Next("cpu, 2 lanes");
  if (placement > 0) cell.changed[texts->Next("model.norm.placement")] = texts->Next("post");
  return cell;
}

report::Comparison ExampleComparison(Texts* texts) {
  report::ComparisonInput input;
  input.key = texts->Next("eval/loss");
  input.axes = {MakeAxis(texts, "placement", {"pre", "post", "none"}),
                MakeAxis(texts, "lr", {"0.004", "0.01"})};
  if (input.axes[0].name == input.axes[1].name) input.axes[1].name += "2";
  input.axes[1].tuned = true;
  for (size_t placement = 0; placement < 3; ++placement) {
    for (size_t learning_rate = 0; learning_rate < 2; ++learning_rate) {
      for (int seed = 0; seed < kSeeds; ++seed) {
        input.cells.push_back(MakeCell(input.axes, placement, learning_rate, seed, texts));
      }
    }
  }
  return *report::Compare(input);
}

Figure ExampleFigure(Texts* texts, const std::string& prefix, const std::string& name, bool wide) {
  Figure figure;
  figure.name = name;
  figure.title = texts->Next("Loss");
  figure.caption = texts->Next("Mean of the runs that converged.");
  figure.wide = wide;
  figure.csv = absl::StrCat("step,", texts->Next("mean"), "\n0,3.5\n");
  figure::Figure drawn;
  drawn.name = absl::StrCat(prefix, name);
  drawn.title = figure.title;
  drawn.description = texts->Next("A falling line.");
  figure::Panel panel;
  panel.layers.push_back(figure::Line{{0, 1}, {1, 0}, {0x0072B2}});
  drawn.panels.push_back(panel);
  drawn.texts.push_back({0.3, 2, texts->Next("pre")});
  figure.svg = figure::Svg(drawn);
  return figure;
}

Samples ExampleSamples(Texts* texts) {
  Samples samples;
  samples.how = texts->Next("Twenty samples a setting at temperature 0.5.");
  for (const char* label : {"pre", "post"}) {
    Samples::Setting setting;
    setting.label = texts->Next(label);
    for (int i = 0; i < 20; ++i) setting.texts.push_back(texts->Next(absl::StrCat("anna", i)));
    setting.distinct = .95;
    setting.in_training = .4;
    samples.settings.push_back(std::move(setting));
  }
  samples.settings.push_back({texts->Next("none"), {}, {}, {}, texts->Next("No checkpoint.")});
  return samples;
}

Provenance ExampleProvenance(Texts* texts) {
  Provenance provenance;
  provenance.owner = texts->Next("ada");
  provenance.created = "21 November 2026, 10:00 UTC";
  provenance.ended = "21 November 2026, 10:04 UTC";
  provenance.spec_sha256 = std::string(64, 'a');
  provenance.data_sets = {{texts->Next("names.txt"), std::string(64, 'b'), 228145, 32033}};
  provenance.trainers = {{texts->Next("torch"), 36}};
  provenance.versions = {{texts->Next("0.1.0"), 30}, {texts->Next("0.2.0"), 6}};
  provenance.devices = {{texts->Next("cpu"), 36}};
  provenance.environments = {{texts->Next("torch 2.13.0, AVX512 (Intel)"), 36}};
  provenance.cells = provenance.runs = 36;
  provenance.reused = 6;
  provenance.device_seconds = 54;
  provenance.spec_file = texts->Next("names-norm.yaml");
  provenance.submit_command = texts->Next("ablate submit names-norm.yaml");
  provenance.report_command = texts->Next("ablate report EXPERIMENT -o report.html");
  provenance.spec_yaml = absl::StrCat("name: names-norm\nquestion: ", texts->Next("Why?"), "\n");
  return provenance;
}

report::HeadlineNumbers ExampleAnalysis(Texts* texts) {
  report::HeadlineNumbers analysis;
  analysis.label = texts->Next("attention-late");
  analysis.kind = "attention";
  analysis.how = texts->Next("Input: the prompt \"Once\".");
  analysis.asked = 18;
  analysis.done = 12;
  analysis.device_seconds = 1234.4;
  analysis.failure = texts->Next("the checkpoint can't be read");
  analysis.numbers = {texts->Next("entropy")};
  analysis.left_out = 72;
  report::HeadlineNumbers::Entry entry;
  entry.own = report::Summarize(std::vector<double>{.71, .73, .72});
  entry.runs = 3;
  analysis.lines.push_back({texts->Next("pre"), true, false, 1000, {entry}});
  entry.own = report::Summarize(std::vector<double>{.81, .82, .83});
  entry.left_out = 3;
  entry.difference = report::ComparePairs({.81, .82, .83}, {.71, .73, .72}, 0);
  entry.baseline = {"0.72"};
  analysis.lines.push_back({texts->Next("post"), false, true, 1000, {entry}});
  analysis.undefined = {{texts->Next("no spread"), {{texts->Next("sink_share"), 12}}},
                        {"too few tokens", {{texts->Next("row_mass"), 2}}}};
  return analysis;
}

}  // namespace

Experiment ExampleExperiment(Texts* texts, const std::string& prefix) {
  Experiment experiment;
  experiment.id = texts->Next("names-norm-7f3k");
  experiment.question = texts->Next("Does norm placement matter?");
  experiment.read_at = "where each run ended";
  experiment.comparison = ExampleComparison(texts);
  const size_t rows = experiment.comparison.rows.size();
  experiment.changes.resize(rows);
  for (size_t row = 1; row < rows; ++row) {
    experiment.changes[row] = {
        {texts->Next("model.norm.placement"), texts->Next("post"), texts->Next("pre")},
        {texts->Next("model.norm.final"), texts->Next("false"), ""}};
  }
  report::WindowSummary window;
  window.over = {6, report::Defined(2.357), report::Defined(.005),
                 report::DefinedInterval(2.35, 2.36)};
  experiment.windows = {{{texts->Next("train/loss"), {report::WindowSide::kLast, 100}}},
                        std::vector<std::vector<report::WindowSummary>>(rows, {window})};
  experiment.windows.rows.back()[0] = {{}, {}, 6};
  experiment.figures = {ExampleFigure(texts, prefix, "loss", true),
                        ExampleFigure(texts, prefix, "forest", false)};
  experiment.figures[0].cautions = {texts->Next("It leads only from step 700 on.")};
  experiment.decisive = 0;
  experiment.colours = {0, 1, 2};
  Figure missing = ExampleFigure(texts, prefix, "lr", false);
  missing.svg.clear();
  missing.missing = texts->Next("There is nothing to show.");
  experiment.figures.push_back(missing);
  experiment.figures.push_back(ExampleFigure(texts, prefix, "windows", true));
  experiment.figures.back().folded = true;
  experiment.analyses = {ExampleAnalysis(texts)};
  experiment.figures.push_back(ExampleFigure(texts, prefix, "maps", true));
  experiment.figures.back().label = experiment.analyses[0].label;
  experiment.samples = ExampleSamples(texts);
  experiment.provenance = ExampleProvenance(texts);
  return experiment;
}

std::string WholePage(const Page& page, const std::vector<Experiment>& experiments) {
  std::string all = PageHead(page);
  for (size_t i = 0; i < experiments.size(); ++i) all += ExperimentSection(page, i, experiments[i]);
  return all + PageFoot(page);
}

}  // namespace ablate::html
