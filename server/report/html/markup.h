// Writes HTML such that no dynamic text can become markup.
#ifndef ABLATE_SERVER_REPORT_HTML_MARKUP_H_
#define ABLATE_SERVER_REPORT_HTML_MARKUP_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::html {

// A text in the program's source, the only source of names of elements and attributes.
class Literal {
 public:
  // Implicit, so that callers write only a literal.
  consteval Literal(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  const char* text() const { return text_; }

 private:
  const char* text_;
};

struct Attribute {
  Literal name;
  std::string value;
};

// Builds a tree of elements as text, in order. Texts and values of attributes are cleaned
// (text::CleanText) and escaped. Not thread-safe.
class Markup {
 public:
  using Attributes = std::initializer_list<Attribute>;

  Markup& Open(Literal tag, Attributes attributes = {});
  // Ends the innermost element.
  Markup& Close();
  // Adds an element without content, such as meta.
  Markup& Void(Literal tag, Attributes attributes = {});
  Markup& Text(absl::string_view text);
  // Adds text whose line feeds are kept, for pre.
  Markup& Lines(absl::string_view text);
  // Does Open, Text, Close.
  Markup& Element(Literal tag, absl::string_view text);
  Markup& Element(Literal tag, Attributes attributes, absl::string_view text);
  // Adds our own text unchanged.
  Markup& Constant(Literal text);
  // Adds a finished, well-formed element: a figure's SVG.
  Markup& Finished(absl::string_view element);

  // Returns everything written so far and clears it; elements may be open.
  std::string Take();

 private:
  void Begin(Literal tag, Attributes attributes);

  std::string out_;
  std::vector<Literal> open_;
};

// Returns a data: URI of a text, percent-encoded.
std::string DataUri(absl::string_view media_type, absl::string_view text);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_MARKUP_H_
