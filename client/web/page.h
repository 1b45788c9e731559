// The frame of every page, and the parts that several views have.
#ifndef ABLATE_CLIENT_WEB_PAGE_H_
#define ABLATE_CLIENT_WEB_PAGE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/markup.h"
#include "client/web/http.h"
#include "client/web/site.h"
#include "google/protobuf/repeated_field.h"

namespace ablate::web {

struct Frame {
  std::string title;
  std::string active;       // the entry of the navigation: "/", "/runs" …
  std::string events = {};  // address of the page's event stream; "": it has none
  bool curves = false;      // it draws live curves
  bool reloads = false;     // when what it shows has ended
  std::string nonce = {};   // as in AddPolicy
};

// Return what comes before and after a page's own content, for pages that are sent piece by piece.
Html PageHead(const Site& site, const Frame& frame);
Html PageFoot();
Response PageOf(const Site& site, const Frame& frame, const Html& body);
Response FragmentOf(const Html& body);
// Returns a page about an error, with the HTTP status that fits.
Response ErrorPage(const Site& site, const absl::Status& status);

struct Column {
  std::string title;
  bool number = false;
  std::string link = {};  // of the title
};
// A cell of a table; all its parts may be empty.
struct Cell {
  std::string text = {}, link = {};
  std::vector<std::string> notes = {};  // small lines below the text
  Html more = {};                       // after the text
  std::string load = {};  // address of a part that is fetched after the page, in place of the text
};
// Returns a table in a box that scrolls. The first cell of a row names it. With `stacks`, a phone
// shows a row's cells below each other.
Html Table(absl::string_view caption, const std::vector<Column>& columns,
           const std::vector<std::vector<Cell>>& rows, bool stacks = false);
Html Paragraph(absl::string_view text, const std::string& type = "");

// Opens a section with its heading; `id` names it. Close ends it.
void OpenSection(html::Literal id, absl::string_view title, Markup* out);
// Adds a part that events replace.
void AddPart(html::Literal id, const Html& part, Markup* out);
void Link(const std::string& address, absl::string_view text, Markup* out);
// Adds a choice of a form, its options as pairs of value and text.
void Select(html::Literal name, absl::string_view label,
            const std::vector<std::pair<std::string, std::string>>& options,
            const std::string& chosen, Markup* out);
// Adds a field of a form; a checkbox has the value "yes".
void Input(html::Literal name, absl::string_view label, const std::string& value,
           html::Literal kind, Markup* out);

// Adds the place of curves that script draws, and of their table. `points` is the address of their
// points; "": events have them.
void AddChart(absl::string_view key, const std::string& points, Markup* out);

// Returns a curve without axes, 120 × 24, after its last value; empty below two values.
Html Sparkline(const google::protobuf::RepeatedField<float>& values, absl::string_view name);

// Exit code and texts of a command that was run as if it were typed.
struct Outcome {
  int code = 0;
  std::string out, err;
};
Outcome RunCommand(const Site& site, const std::vector<std::string>& arguments);

// Adds the links of an experiment: other pages about it, and what its user may do.
void Actions(Connection* connection, const v1::Experiment& experiment, Markup* out);

std::string PathOfExperiment(const std::string& name);
std::string PathOfRun(const std::string& name);

// Returns a stream of a feed's events; 503 if too many are read already.
Response EventsOf(Site& site, const std::string& name, std::function<Filler()> make,
                  const std::string& last_id);

// Returns the event data of parts that changed: an object from ids to HTML.
std::string PartsJson(const std::vector<std::pair<std::string, Html>>& parts);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_PAGE_H_
