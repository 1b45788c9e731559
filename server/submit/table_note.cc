#include "server/submit/table_note.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "storage/blobs.h"

namespace ablate::submit {
namespace {

constexpr uint64_t kHeaderBytes = 4096;

// Returns the character that separates the columns of a header.
char SeparatorOf(absl::string_view header, bool tabs) {
  if (tabs) return '\t';
  const auto count = [header](char c) { return std::count(header.begin(), header.end(), c); };
  return count(';') > count(',') ? ';' : ',';
}

// Returns the names of the columns, shortened together.
std::string ColumnsOf(absl::string_view header, char separator) {
  std::vector<absl::string_view> columns;
  for (absl::string_view column : absl::StrSplit(header, separator)) {
    column = absl::StripAsciiWhitespace(column);
    if (absl::ConsumePrefix(&column, "\"")) absl::ConsumeSuffix(&column, "\"");
    columns.push_back(column);
  }
  return reflect::ShortText(absl::StrJoin(columns, ", "));
}

}  // namespace

std::string TableNote(storage::Store* store, const storage::DatasetRecord& dataset) {
  const std::string name = absl::AsciiStrToLower(dataset.display_name);
  const bool tabs = absl::EndsWith(name, ".tsv");
  if (dataset.kind != DatasetKind::kText || store->blobs() == nullptr ||
      !(tabs || absl::EndsWith(name, ".csv"))) {
    return "";
  }
  const auto beginning = store->blobs()->Read(dataset.sha256, 0, kHeaderBytes);
  if (!beginning.ok()) return "";
  absl::string_view header = *beginning;
  absl::ConsumePrefix(&header, "\xEF\xBB\xBF");
  header = header.substr(0, header.find('\n'));
  const char separator = SeparatorOf(header, tabs);
  const std::string delimiter = separator == ','   ? ""
                                : separator == ';' ? ", delimiter=\";\""
                                                   : ", delimiter=\"\\t\"";
  return absl::StrCat(
      dataset.display_name, " is read as plain text, line by line, with its header (columns ",
      ColumnsOf(header, separator), "); to train on one column, here the first, make a text of ",
      "it: `python3 -c 'import csv; [print(row[0]) for row in list(csv.reader(open(\"",
      dataset.display_name, "\")", delimiter, "))[1:] if row]' > column.txt`");
}

}  // namespace ablate::submit
