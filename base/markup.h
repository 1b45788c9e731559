// Writes HTML such that no dynamic text can become markup.
#ifndef ABLATE_BASE_MARKUP_H_
#define ABLATE_BASE_MARKUP_H_

#include <initializer_list>
#include <string>
#include <utility>
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

// Finished HTML: what a Markup has escaped, or a drawing of our own server. No other text is one,
// so that a text can't be put into a page by mistake.
class Html {
 public:
  Html() = default;
  // Takes an SVG element or a part of a report, as our server made it.
  static Html Drawn(std::string element) { return Html(std::move(element)); }
  const std::string& text() const { return text_; }

 private:
  friend class Markup;
  explicit Html(std::string text) : text_(std::move(text)) {}
  std::string text_;
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
  Markup& Add(const Html& html) { return Finished(html.text()); }

  // Returns everything written so far and clears it; elements may be open.
  std::string Take();
  Html TakeHtml() { return Html(Take()); }

 private:
  void Begin(Literal tag, Attributes attributes);

  std::string out_;
  std::vector<Literal> open_;
};

// Returns a data: URI of a text, percent-encoded.
std::string DataUri(absl::string_view media_type, absl::string_view text);

}  // namespace ablate::html

#endif  // ABLATE_BASE_MARKUP_H_
