#include "base/markup.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean.h"

namespace ablate::html {
namespace {

// A line feed after their end keeps the source readable and doesn't change the page.
constexpr absl::string_view kBlocks[] = {
    "address",    "article", "body",   "caption", "dd",    "details", "div", "dl",     "dt",
    "figcaption", "figure",  "footer", "h1",      "h2",    "h3",      "h4",  "head",   "header",
    "html",       "li",      "main",   "nav",     "ol",    "p",       "pre", "script", "section",
    "style",      "summary", "table",  "tbody",   "thead", "title",   "tr",  "ul"};

bool IsBlock(absl::string_view tag) {
  return std::find(std::begin(kBlocks), std::end(kBlocks), tag) != std::end(kBlocks);
}

std::string Escaped(absl::string_view text) { return text::EscapeMarkup(text::CleanText(text)); }

}  // namespace

void Markup::Begin(Literal tag, Attributes attributes) {
  absl::StrAppend(&out_, "<", tag.text());
  for (const Attribute& attribute : attributes) {
    absl::StrAppend(&out_, " ", attribute.name.text(), "=\"", Escaped(attribute.value), "\"");
  }
  out_.push_back('>');
}

Markup& Markup::Open(Literal tag, Attributes attributes) {
  Begin(tag, attributes);
  open_.push_back(tag);
  return *this;
}

Markup& Markup::Close() {
  const absl::string_view tag = open_.back().text();
  absl::StrAppend(&out_, "</", tag, ">", IsBlock(tag) ? "\n" : "");
  open_.pop_back();
  return *this;
}

Markup& Markup::Void(Literal tag, Attributes attributes) {
  Begin(tag, attributes);
  return *this;
}

Markup& Markup::Text(absl::string_view text) {
  out_.append(Escaped(text));
  return *this;
}

Markup& Markup::Lines(absl::string_view text) {
  absl::string_view between;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&out_, between, Escaped(line));
    between = "\n";
  }
  return *this;
}

Markup& Markup::Element(Literal tag, absl::string_view text) {
  return Open(tag).Text(text).Close();
}

Markup& Markup::Element(Literal tag, Attributes attributes, absl::string_view text) {
  return Open(tag, attributes).Text(text).Close();
}

Markup& Markup::Constant(Literal text) {
  out_.append(text.text());
  return *this;
}

Markup& Markup::Finished(absl::string_view element) {
  out_.append(element.data(), element.size());
  return *this;
}

std::string Markup::Take() { return std::exchange(out_, std::string()); }

std::string DataUri(absl::string_view media_type, absl::string_view text) {
  constexpr absl::string_view kPlain = "-._~,:/+=;@";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string uri = absl::StrCat("data:", media_type, ";charset=utf-8,");
  uri.reserve(uri.size() + text.size() + text.size() / 4);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || kPlain.find(c) != absl::string_view::npos) {
      uri.push_back(c);
    } else {
      uri.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return uri;
}

}  // namespace ablate::html
