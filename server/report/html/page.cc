#include "server/report/html/page.h"

#include "absl/strings/str_cat.h"
#include "base/markup.h"
#include "server/report/html/sections.h"
#include "server/report/html/style.h"

namespace ablate::html {
namespace {

bool IsAlone(const Page& page) { return page.experiments.size() == 1; }

// Returns the question, or the name of an experiment without one.
std::string QuestionOf(const std::pair<std::string, std::string>& experiment) {
  return experiment.second.empty() ? experiment.first : experiment.second;
}

std::string TitleOf(const Page& page) {
  if (IsAlone(page)) return QuestionOf(page.experiments[0]);
  return absl::StrCat("Report on ", page.experiments.size(), " experiments");
}

std::string PrefixOf(const Page& page, size_t index) {
  return IsAlone(page) ? "" : absl::StrCat("e", index + 1, "-");
}

void Contents(const Page& page, Markup* out) {
  out->Open("nav", {{"aria-label", "Contents"}}).Open("ol");
  for (size_t i = 0; i < page.experiments.size(); ++i) {
    out->Open("li").Element("a", {{"href", absl::StrCat("#e", i + 1)}},
                            QuestionOf(page.experiments[i]));
    if (!page.experiments[i].second.empty()) {
      out->Text(" ").Element("small", page.experiments[i].first);
    }
    out->Close();
  }
  out->Close().Close();
}

void Heads(const Page& page, Markup* out) {
  out->Open("head").Void("meta", {{"charset", "utf-8"}});
  out->Void("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out->Void("meta", {{"name", "generator"}, {"content", absl::StrCat("ablate ", page.version)}});
  out->Element("title", absl::StrCat(TitleOf(page), " – ablate report"));
  const std::string style = PageStyle();
  out->Void("meta", {{"http-equiv", "Content-Security-Policy"},
                     {"content", PagePolicy(style, PageScript())}});
  out->Open("style").Finished(style).Close();
  out->Close();
}

}  // namespace

std::string PageHead(const Page& page) {
  Markup out;
  out.Constant("<!DOCTYPE html>\n").Open("html", {{"lang", "en"}});
  Heads(page, &out);
  out.Open("body").Open("header");
  out.Element("p", {{"class", "kicker"}},
              IsAlone(page)
                  ? absl::StrCat("ablate report · ", page.experiments[0].first, " · ", page.made)
                  : absl::StrCat("ablate report · ", page.made));
  out.Element("h1", TitleOf(page)).Close();
  if (!IsAlone(page)) Contents(page, &out);
  out.Open("main");
  return out.Take();
}

std::string ExperimentSection(const Page& page, size_t index, const Experiment& experiment) {
  Markup out;
  const Place place = {IsAlone(page) ? 2 : 3, PrefixOf(page, index)};
  out.Open("article", {{"id", absl::StrCat("e", index + 1)}});
  if (!IsAlone(page)) {
    out.Element("p", {{"class", "kicker"}}, experiment.id);
    out.Element("h2", QuestionOf(page.experiments[index]));
  }
  FirstScreen(place, page.command, experiment, &out);
  FiguresSection(place, experiment, &out);
  ResultsSection(place, experiment, &out);
  ChangesSection(place, experiment, &out);
  AnalysesSection(place, experiment, &out);
  SamplesSection(place, experiment, &out);
  MethodsSection(place, experiment, &out);
  ProvenanceSection(place, experiment, &out);
  out.Close();
  return out.Take();
}

std::string PageFoot(const Page& page) {
  Markup out;
  out.Constant("</main>\n").Open("footer");
  out.Element("p", absl::StrCat("Made by ablate ", page.version, " on ", page.made, "."));
  out.Close();
  out.Open("script").Finished(PageScript()).Close();
  out.Constant("</body>\n</html>\n");
  return out.Take();
}

}  // namespace ablate::html
