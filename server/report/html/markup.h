// Writes HTML in which nothing dynamic can become markup.
#ifndef ABLATE_SERVER_REPORT_HTML_MARKUP_H_
#define ABLATE_SERVER_REPORT_HTML_MARKUP_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::html {

// A text that stands in the program's source: the names of elements and attributes can't come from
// anywhere else.
class Literal {
 public:
  // Implicit, so that a literal is all that a caller writes.
  consteval Literal(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  const char* text() const { return text_; }

 private:
  const char* text_;
};

struct Attribute {
  Literal name;
  std::string value;
};

// A tree of elements as text, in order. Texts and values of attributes are cleaned
// (text::CleanText) and escaped. Not thread-safe.
class Markup {
 public:
  using Attributes = std::initializer_list<Attribute>;

  Markup& Open(Literal tag, Attributes attributes = {});
  // Ends the innermost element.
  Markup& Close();
  // An element without content, such as meta.
  Markup& Void(Literal tag, Attributes attributes = {});
  Markup& Text(absl::string_view text);
  // Text whose line feeds stay: for pre.
  Markup& Lines(absl::string_view text);
  // Open, Text, Close.
  Markup& Element(Literal tag, absl::string_view text);
  Markup& Element(Literal tag, Attributes attributes, absl::string_view text);
  // Our own, as it is.
  Markup& Constant(Literal text);
  // A finished element by whoever made it well-formed: a figure's SVG.
  Markup& Finished(absl::string_view element);

  // Everything written so far, which is then forgotten; elements may be open.
  std::string Take();

 private:
  void Begin(Literal tag, Attributes attributes);

  std::string out_;
  std::vector<Literal> open_;
};

// A data: URI of a text, percent-encoded.
std::string DataUri(absl::string_view media_type, absl::string_view text);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_MARKUP_H_
