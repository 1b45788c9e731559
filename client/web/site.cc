#include "client/web/site.h"

#include "absl/strings/str_split.h"
#include "base/palette.h"
#include "client/web/assets.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/", HomeView},
    {"GET", "/events", HomeEvents},
    {"GET", "/e/*", ExperimentView},
    {"GET", "/e/*/events", ExperimentEvents},
    {"GET", "/e/*/verdict", VerdictView},
    {"GET", "/e/*/report", ReportView},
    {"GET", "/e/*/figure", FigureView},
    {"GET", "/e/*/*", FigureFile},
    {"GET", "/r/*", RunView},
    {"GET", "/r/*/with", PairView},
    {"GET", "/r/*/samples", SamplesView},
    {"GET", "/r/*/points", RunPoints},
    {"GET", "/r/*/log", RunLog},
    {"GET", "/r/*/file", RunFile},
    {"GET", "/e/*/do/*", ActView},
    {"POST", "/e/*/do/*", ActView},
    {"GET", "/runs", RunsView},
    {"GET", "/runs.csv", RunsCsv},
    {"GET", "/sql", SqlView},
    {"GET", "/sql.csv", SqlCsv},
    {"GET", "/names", NamesView},
    {"GET", "/files/*", StaticFile},
    {"GET", "/licences", LicencesView},
};

// Returns true if the path fits the route, with what its stars stand for.
bool Fits(const Route& route, const std::string& path, std::vector<std::string>* open) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(route.path, '/');
  const std::vector<absl::string_view> given = absl::StrSplit(path, '/');
  open->clear();
  if (wanted.size() != given.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != "*" && wanted[i] != given[i]) return false;
    if (wanted[i] == "*" && given[i].empty()) return false;
    if (wanted[i] == "*") open->emplace_back(given[i]);
  }
  return true;
}

Response File(absl::string_view type, std::string body) {
  Response response = {.type = std::string(type), .body = std::move(body)};
  AddPolicy("", &response);
  return response;
}

constexpr char kIcon[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><path d=\"M2 13h12M3 10l3-6 3 "
    "4 4-6\" fill=\"none\" stroke=\"#0072B2\" stroke-width=\"2\"/></svg>";

}  // namespace

Pool::Lease Pool::Borrow() {
  std::unique_ptr<Connection> connection;
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      connection = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (connection == nullptr) connection = connect_();
  return Lease(this, std::move(connection));
}

void Pool::Return(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  free_.push_back(std::move(connection));
}

absl::Span<const Route> Routes() { return kRoutes; }

Response Answer(Site& site, uint16_t port, Request request) {
  if (std::optional<Response> refusal = Guard(request, site.secrets, port)) {
    AddPolicy("", &*refusal);
    return *std::move(refusal);
  }
  for (const Route& route : kRoutes) {
    if (request.method != route.method || !Fits(route, request.path, &request.parts)) continue;
    absl::StatusOr<Response> response = route.view(site, request);
    return response.ok() ? *std::move(response) : ErrorPage(site, response.status());
  }
  return ErrorPage(site, absl::NotFoundError("There is no such page."));
}

absl::StatusOr<Response> StaticFile(Site&, const Request& request) {
  const std::string& name = request.parts[0];
  if (name == "page.css") {
    return File("text/css; charset=utf-8",
                absl::StrCat(":root { ", palette::Variables(/*dark=*/false),
                             "}\n@media screen and (prefers-color-scheme: dark) { :root { ",
                             palette::Variables(/*dark=*/true), "} }\n", kPageCss));
  }
  if (name == "page.js") return File("text/javascript; charset=utf-8", kPageScript);
  if (name == "dygraph.js") return File("text/javascript; charset=utf-8", kDygraphScript);
  if (name == "icon.svg") return File("image/svg+xml", kIcon);
  return absl::NotFoundError("There is no such file.");
}

absl::StatusOr<Response> LicencesView(Site& site, const Request&) {
  Markup out;
  out.Element("h1", "Licences");
  out.Element("p",
              "Curves are drawn by dygraphs, which this program has from Debian's package "
              "libjs-dygraphs. Its licence:");
  out.Open("pre").Lines(kDygraphLicence).Close();
  return PageOf(site, {.title = "Licences", .active = ""}, out.TakeHtml());
}

}  // namespace ablate::web
