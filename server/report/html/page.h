// Content of a report as plain values, and the page made of them.
#ifndef ABLATE_SERVER_REPORT_HTML_PAGE_H_
#define ABLATE_SERVER_REPORT_HTML_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/windows.h"
#include "server/report/table/headline_table.h"

namespace ablate::html {

struct Figure {
  std::string name;     // letters, digits, hyphens; distinct in a page
  std::string title;    // a few words
  std::string caption;  // what is drawn and how, in sentences
  bool wide = false;    // two columns wide
  bool folded = false;  // repeats other figures
  std::string svg;      // one <svg> element, well-formed, titled, ids of its own; "": none
  std::string missing;  // the reason if there is none, a sentence
  std::string csv;      // the drawn numbers; "": none
  std::string label;    // of the analysis that it draws; "": none
  std::vector<std::string> cautions;  // cautions for readers of the verdict
};

// One field that differs between a row and its baseline.
struct FieldChange {
  std::string path;
  std::string value, baseline;  // "" if the field doesn't apply there
};

// Texts that models wrote.
struct Samples {
  struct Setting {
    std::string label;
    std::vector<std::string> texts;
    std::optional<double> distinct, in_training;  // fractions of the texts, 0 to 1
    std::string missing;                          // why there are none
  };
  std::string how;  // sentences: checkpoint, temperature, seed
  std::vector<Setting> settings;
};

struct DataSet {
  std::string name, sha256;
  uint64_t bytes = 0, documents = 0;
};

struct Provenance {
  std::string owner, created, ended;  // times as people read them; "" if it hasn't ended
  std::string extends;                // ID of the experiment that it extends; or ""
  std::string spec_sha256;
  std::vector<DataSet> data_sets;
  // Value → number of cells for which it is recorded.
  std::map<std::string, size_t> trainers, versions, devices, environments;
  size_t cells = 0, runs = 0, reused = 0;  // cells whose run existed before the experiment
  // Number of runs that continued a shorter run's saved training state, by its step.
  std::map<uint32_t, size_t> continued;
  double device_seconds = 0;  // over all its cells
  std::string spec_yaml;  // the experiment file including all changes by --set and --seeds; lines
  std::string spec_file;  // its name in `submit_command`
  // Commands that repeat the experiment and its page from the spec alone, on any server.
  std::string submit_command, report_command;
};

struct Experiment {
  std::string id;             // names-norm-7f3k
  std::string question;       // "" if it asks none
  std::string why_cancelled;  // "" unless the server cancelled it
  std::string read_at;        // "after 1,000 steps", "where each run ended", "at step 500"
  // Scope of the answer, and what seeds vary: "one data set, one model size, 1,000 steps. Seeds
  // vary …"; "" if unknown.
  std::string scope;
  // Runs of equal seed share the initial weights that their settings have in common.
  bool shared_weights = false;
  report::Comparison comparison;
  std::vector<size_t> colours;                    // of each row, as in figures (figure::StyleOf)
  std::vector<std::vector<FieldChange>> changes;  // one list per row of the comparison
  report::RowWindows windows;
  std::vector<Figure> figures;
  std::optional<size_t> decisive;  // index in `figures` of the one on the first screen
  std::vector<report::HeadlineNumbers> analyses;
  std::optional<Samples> samples;
  Provenance provenance;
};

struct Page {
  std::string version;                                           // this program's
  std::string made;                                              // time, as people read it
  std::vector<std::pair<std::string, std::string>> experiments;  // id, question: the contents
  std::string command = {};  // repeats the page on this server, quoted for a shell
};

// Return the page in parts, so that one experiment at a time is in memory: the head, one section
// per experiment in the page's order (`index` from 0), the foot. Pure, safe from any thread.
std::string PageHead(const Page& page);
std::string ExperimentSection(const Page& page, size_t index, const Experiment& experiment);
std::string PageFoot(const Page& page);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_PAGE_H_
