// Style and script of a page, which the page's policy names by their hashes, so that nothing else
// runs.
#ifndef ABLATE_SERVER_REPORT_HTML_STYLE_H_
#define ABLATE_SERVER_REPORT_HTML_STYLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::html {

// Returns the CSS: screen, phone, print, dark.
std::string PageStyle();

// Returns the JavaScript, below 4 kB: copies commands, sorts the main table, reads values out of
// curves, and unfolds content before printing. The page is complete without it.
absl::string_view PageScript();

// Returns the value of a Content-Security-Policy that allows this style and this script, and no
// address.
std::string PagePolicy(absl::string_view style, absl::string_view script);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_STYLE_H_
