// Writes pages for check_page.py: `write_page usual|several|hostile SEED`, the page on standard
// output, on standard error one JSON list with the texts that were put into it.
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tests/report/html/example_page.h"

namespace ablate::html {
namespace {

class Usual final : public Texts {
 public:
  std::string Next(const std::string& usual) override { return usual; }
};

// Special texts for browsers, spreadsheets, YAML or terminals.
constexpr absl::string_view kPieces[] = {"<script>",
                                         "</script>",
                                         "<!--",
                                         "-->",
                                         "<![CDATA[",
                                         "]]>",
                                         "</style>",
                                         "</title>",
                                         "</pre>",
                                         "</svg>",
                                         "<svg onload=x>",
                                         "<img src=x onerror=y>",
                                         "\" onclick=\"z",
                                         "' x='",
                                         "&lt;",
                                         "&#60;",
                                         "&amp",
                                         "&",
                                         "javascript:",
                                         "`id`",
                                         "$(id)",
                                         "{{7*7}}",
                                         "\\",
                                         "%3C",
                                         "\n",
                                         "\r",
                                         "\t",
                                         absl::string_view("\0", 1),
                                         "\x1b[31m",
                                         "\x7f",
                                         "\u202e",
                                         "\u2066",
                                         "\u200f",
                                         "\u0085",
                                         "\ufeff",
                                         "\uffff",
                                         "\ufdd0",
                                         "\U0001fffe",
                                         "ä",
                                         "名",
                                         "🦊",
                                         "e\u0301",
                                         " ",
                                         "  ",
                                         "=cmd|'x'!A1",
                                         "a",
                                         "7"};

// Strings of such pieces.
class Hostile final : public Texts {
 public:
  explicit Hostile(uint64_t seed) : state_(seed) {}

  std::string Next(const std::string&) override {
    std::string text = "x";  // not empty, and no white space in front
    const size_t length = 1 + Draw() % 8;
    for (size_t i = 0; i < length; ++i)
      absl::StrAppend(&text, kPieces[Draw() % std::size(kPieces)]);
    given_.push_back(text);
    return text;
  }

  const std::vector<std::string>& given() const { return given_; }

 private:
  size_t Draw() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<size_t>(state_ >> 33);
  }

  uint64_t state_;
  std::vector<std::string> given_;
};

// Adds samples, so that a page has thousands of texts.
void AddSamples(Texts* texts, Experiment* experiment) {
  for (Samples::Setting& setting : experiment->samples->settings) {
    for (int i = 0; i < 3300; ++i) setting.texts.push_back(texts->Next(""));
  }
}

void Write(const Page& page, const std::vector<Experiment>& experiments,
           const std::vector<std::string>& given) {
  std::cout << WholePage(page, experiments);
  std::cerr << nlohmann::json(given).dump();
}

}  // namespace
}  // namespace ablate::html

int main(int argc, char** argv) {
  using namespace ablate::html;  // NOLINT
  const std::string kind = argc > 1 ? argv[1] : "usual";
  Usual usual;
  Hostile hostile(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  Texts* texts = kind == "hostile" ? static_cast<Texts*>(&hostile) : &usual;
  std::vector<Experiment> experiments = {ExampleExperiment(texts)};
  if (kind == "several") experiments.push_back(ExampleExperiment(texts, "second-"));
  if (kind == "hostile") AddSamples(texts, &experiments[0]);
  Page page = {"0.1.0", "21 November 2026, 12:00 UTC", {}};
  for (const Experiment& one : experiments) page.experiments.push_back({one.id, one.question});
  Write(page, experiments, hostile.given());
  return 0;
}
