// What a page looks like, and what it can do beside being read: one style and one script, which the
// page's policy names by their hashes, so that nothing else runs in it.
#ifndef ABLATE_SERVER_REPORT_HTML_STYLE_H_
#define ABLATE_SERVER_REPORT_HTML_STYLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::html {

// CSS: screen, phone, print, dark.
std::string PageStyle();

// JavaScript, below 4 kB: copies commands, sorts the main table, reads values out of curves, opens
// what is folded before it is printed. The page is complete without it.
absl::string_view PageScript();

// The value of a Content-Security-Policy that allows this style and this script, and no address.
std::string PagePolicy(absl::string_view style, absl::string_view script);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_STYLE_H_
