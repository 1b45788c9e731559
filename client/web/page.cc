#include "client/web/page.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/web/curves.h"

namespace ablate::web {
namespace {

constexpr std::pair<const char*, const char*> kNavigation[] = {
    {"/", "Home"}, {"/runs", "Runs"}, {"/sql", "SQL"}};

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return 403;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
      return 400;
    case absl::StatusCode::kUnimplemented:
      return 501;
    default:
      return client::MayTryAgain(status) ? 503 : 500;
  }
}

}  // namespace

Html PageHead(const Site& site, const Frame& frame) {
  Markup out;
  out.Constant("<!DOCTYPE html>\n").Open("html", {{"lang", "en"}}).Open("head");
  out.Void("meta", {{"charset", "utf-8"}});
  out.Void("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out.Element("title", absl::StrCat(frame.title, " – ablate"));
  out.Void("link", {{"rel", "icon"}, {"href", "/files/icon.svg"}});
  out.Void("link", {{"rel", "stylesheet"}, {"href", "/files/page.css"}});
  if (frame.curves) {
    out.Open("script", {{"src", "/files/dygraph.js"}, {"defer", ""}}).Close();
  }
  out.Open("script", {{"src", "/files/page.js"}, {"defer", ""}}).Close();
  out.Close();
  out.Open("body", {{"data-events", frame.events}, {"data-reloads", frame.reloads ? "yes" : ""}});
  out.Element("a", {{"class", "skip"}, {"href", "#content"}}, "Skip to the content");
  out.Open("header", {{"class", "bar"}});
  out.Open("nav", {{"aria-label", "Pages"}});
  for (const auto& [path, title] : kNavigation) {
    if (frame.active == path) {
      out.Element("a", {{"href", path}, {"aria-current", "page"}}, title);
    } else {
      out.Element("a", {{"href", path}}, title);
    }
  }
  out.Close();
  out.Open("form", {{"action", "/runs"}, {"role", "search"}});
  out.Open("label", {{"for", "find"}, {"class", "unseen"}})
      .Text("Find runs by a condition")
      .Close();
  out.Void("input", {{"id", "find"},
                     {"name", "filter"},
                     {"data-completes", "filter"},
                     {"autocomplete", "off"},
                     {"placeholder", "Find runs: state = failed AND tags:paper"}});
  out.Close();
  out.Element("span", {{"class", "server"}}, absl::StrCat("server: ", site.server));
  out.Close();
  out.Open("p", {{"id", "away"}, {"role", "status"}}).Close();
  out.Open("main", {{"id", "content"}});
  return out.TakeHtml();
}

Html PageFoot() {
  Markup out;
  out.Constant("</main>\n").Open("footer");
  out.Open("p").Text(absl::StrCat("ablate ", ABLATE_VERSION, " · "));
  Link("/licences", "Licences", &out);
  out.Close().Close();
  out.Constant("</body>\n</html>\n");
  return out.TakeHtml();
}

Response PageOf(const Site& site, const Frame& frame, const Html& body) {
  Response response;
  response.body = absl::StrCat(PageHead(site, frame).text(), body.text(), PageFoot().text());
  AddPolicy(frame.nonce, &response);
  return response;
}

Response FragmentOf(const Html& body) {
  Response response;
  response.body = body.text();
  AddPolicy("", &response);
  return response;
}

Response ErrorPage(const Site& site, const absl::Status& status) {
  const int code = HttpStatusOf(status);
  Markup out;
  out.Element("h1", code == 404   ? "Not found"
                    : code == 503 ? "The server doesn't answer"
                    : code == 501 ? "The server is older than this page"
                                  : "That didn't work");
  out.Element("p", {{"role", "alert"}}, std::string(status.message()));
  if (code == 503) {
    out.Element("p",
                "This page is loaded again every 5 seconds. Training goes on when the server "
                "runs; nothing is lost.");
  }
  out.Open("p");
  Link("/", "Home", &out);
  out.Close();
  Response response = PageOf(site, {.title = "Error", .active = ""}, out.TakeHtml());
  response.status = code;
  if (code == 503) response.headers.emplace_back("Refresh", "5");
  return response;
}

Html Table(absl::string_view caption, const std::vector<Column>& columns,
           const std::vector<std::vector<Cell>>& rows, bool stacks) {
  const auto kind = [&](size_t i) {
    return std::string(i < columns.size() && columns[i].number ? "number" : "");
  };
  Markup out;
  out.Open("div", {{"class", "scroll"}, {"tabindex", "0"}})
      .Open("table", {{"class", stacks ? "stacks" : ""}});
  out.Element("caption", caption).Open("thead").Open("tr");
  for (size_t i = 0; i < columns.size(); ++i) {
    out.Open("th", {{"scope", "col"}, {"class", kind(i)}});
    if (columns[i].link.empty()) {
      out.Text(columns[i].title);
    } else {
      Link(columns[i].link, columns[i].title, &out);
    }
    out.Close();
  }
  out.Close().Close().Open("tbody");
  for (const std::vector<Cell>& row : rows) {
    out.Open("tr");
    for (size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      if (i == 0) {
        out.Open("th", {{"scope", "row"}});
      } else {
        out.Open("td", {{"class", kind(i)}, {"data-title", columns[i].title}});
      }
      if (!cell.load.empty()) out.Open("span", {{"data-load", cell.load}});
      if (cell.link.empty()) {
        out.Text(cell.text);
      } else {
        Link(cell.link, cell.text, &out);
      }
      if (!cell.load.empty()) out.Close();
      out.Add(cell.more);
      for (const std::string& note : cell.notes) out.Element("small", note);
      out.Close();
    }
    out.Close();
  }
  out.Close().Close().Close();
  return out.TakeHtml();
}

Html Paragraph(absl::string_view text, const std::string& type) {
  Markup out;
  return out.Element("p", {{"class", type}}, text).TakeHtml();
}

void OpenSection(html::Literal id, absl::string_view title, Markup* out) {
  out->Open("section", {{"aria-labelledby", id.text()}});
  out->Element("h2", {{"id", id.text()}}, title);
}

void AddPart(html::Literal id, const Html& part, Markup* out) {
  out->Open("div", {{"data-part", id.text()}}).Add(part).Close();
}

void Link(const std::string& address, absl::string_view text, Markup* out) {
  out->Element("a", {{"href", address}}, text);
}

void Select(html::Literal name, absl::string_view label,
            const std::vector<std::pair<std::string, std::string>>& options,
            const std::string& chosen, Markup* out) {
  out->Open("label").Text(absl::StrCat(label, " "));
  out->Open("select", {{"name", name.text()}, {"id", name.text()}});
  for (const auto& [value, text] : options) {
    if (value == chosen) {
      out->Element("option", {{"value", value}, {"selected", ""}}, text);
    } else {
      out->Element("option", {{"value", value}}, text);
    }
  }
  out->Close().Close();
}

void Input(html::Literal name, absl::string_view label, const std::string& value,
           html::Literal kind, Markup* out) {
  const bool box = absl::string_view(kind.text()) == "checkbox";
  out->Open("label");
  if (!box) out->Text(absl::StrCat(label, " "));
  const std::string sent = box ? "yes" : value;
  if (box && value == "yes") {
    out->Void("input", {{"name", name.text()},
                        {"id", name.text()},
                        {"type", "checkbox"},
                        {"value", sent},
                        {"checked", ""}});
  } else {
    out->Void("input",
              {{"name", name.text()}, {"id", name.text()}, {"type", kind.text()}, {"value", sent}});
  }
  if (box) out->Text(label);
  out->Close();
}

void AddChart(absl::string_view key, const std::string& points, Markup* out) {
  out->Open("div", {{"id", "curves"},
                    {"class", "chart"},
                    {"role", "group"},
                    {"data-points", points},
                    {"aria-label", absl::StrCat("Curves of ", key, ", also as the table below")}})
      .Close();
  out->Element("p", {{"id", "readout"}, {"class", "muted"}, {"role", "status"}}, "");
  out->Open("details").Element("summary", "The same as a table");
  out->Open("div", {{"id", "curve-table"}, {"class", "scroll"}, {"tabindex", "0"}}).Close();
  out->Close();
}

Html Sparkline(const google::protobuf::RepeatedField<float>& values, absl::string_view name) {
  constexpr double kWidth = 120, kHeight = 24, kMargin = 2;
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](float value) { return std::isfinite(value); });
  if (finite.size() < 2) return {};
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const double range = *high > *low ? *high - *low : 1;
  std::string points;
  for (size_t i = 0; i < finite.size(); ++i) {
    const double x = kMargin + (kWidth - 2 * kMargin) * i / (finite.size() - 1.0);
    const double y = kMargin + (kHeight - 2 * kMargin) * (*high - finite[i]) / range;
    absl::StrAppendFormat(&points, "%s%.1f,%.1f", i == 0 ? "" : " ", x, y);
  }
  Markup out;
  out.Text(client::Short(values[values.size() - 1]) + " ");
  out.Open("svg", {{"class", "spark"}, {"viewBox", "0 0 120 24"}, {"role", "img"}});
  out.Element("title", absl::StrCat(name, absl::StrFormat(": from %.4g to %.4g", finite.front(),
                                                          finite.back())));
  out.Open("polyline", {{"points", points}}).Close().Close();
  return out.TakeHtml();
}

std::string PathOfExperiment(const std::string& name) {
  return absl::StrCat("/e/", Encoded(client::Id(name)));
}

std::string PathOfRun(const std::string& name) {
  return absl::StrCat("/r/", Encoded(client::Id(name)));
}

Response EventsOf(Site& site, const std::string& name, std::function<Filler()> make,
                  const std::string& last_id) {
  Response response = {.type = "text/event-stream"};
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = [&site, name, make = std::move(make), last_id](const Write& write) {
    if (!site.feeds.Serve(name, make, last_id, write)) {
      write(EventText("away", "", "Too many pages are open; this one isn't brought up to date."));
    }
  };
  AddPolicy("", &response);
  return response;
}

std::string PartsJson(const std::vector<std::pair<std::string, Html>>& parts) {
  return absl::StrCat("{",
                      absl::StrJoin(parts, ",",
                                    [](std::string* out, const auto& part) {
                                      absl::StrAppend(out, JsonText(part.first), ":",
                                                      JsonText(part.second.text()));
                                    }),
                      "}");
}

}  // namespace ablate::web
