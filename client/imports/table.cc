#include "client/imports/table.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr size_t kMaxColumns = 10'000;
constexpr int kMaxDepth = 50;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

absl::Status Wrong(const std::string& file, size_t line, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": line ", line, ": ", problem));
}

// Reads the cells of a CSV text one by one.
class CsvReader {
 public:
  CsvReader(ResultTable* table, absl::string_view text, char separator)
      : table_(*table), rest_(text), separator_(separator) {}

  bool at_end() const { return rest_.empty(); }
  size_t line() const { return line_; }

  // Replaces `cells` by those of the next line that isn't empty.
  absl::Status ReadLine(std::vector<absl::string_view>* cells) {
    cells->clear();
    while (true) {
      ASSIGN_OR_RETURN(const absl::string_view cell, ReadCell());
      cells->push_back(cell);
      if (cells->size() > kMaxColumns) {
        return Wrong(table_.file, line_, "too many columns; expected at most 10,000");
      }
      if (!absl::ConsumePrefix(&rest_, absl::string_view(&separator_, 1))) break;
    }
    absl::ConsumePrefix(&rest_, "\r");
    if (!rest_.empty() && !absl::ConsumePrefix(&rest_, "\n")) {
      return Wrong(table_.file, line_, "text after a closing quote; expected a separator");
    }
    ++line_;
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<absl::string_view> ReadCell() {
    if (absl::ConsumePrefix(&rest_, "\"")) return ReadQuoted();
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != separator_ && rest_[end] != '\n') ++end;
    absl::string_view cell = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return absl::StripAsciiWhitespace(cell);
  }

  absl::StatusOr<absl::string_view> ReadQuoted() {
    std::string text;
    const size_t begin = line_;
    while (true) {
      const size_t quote = rest_.find('"');
      if (quote == absl::string_view::npos) {
        return Wrong(table_.file, begin, "a quoted cell has no closing quote");
      }
      const absl::string_view part = rest_.substr(0, quote);
      line_ += static_cast<size_t>(std::count(part.begin(), part.end(), '\n'));
      absl::StrAppend(&text, part);
      rest_.remove_prefix(quote + 1);
      if (!absl::ConsumePrefix(&rest_, "\"")) break;
      text.push_back('"');
    }
    return table_.unescaped.emplace_back(std::move(text));
  }

  ResultTable& table_;
  absl::string_view rest_;
  const char separator_;
  size_t line_ = 1;
};

// Returns the separator that the line of names has most of.
char SeparatorOf(absl::string_view text) {
  const absl::string_view names = text.substr(0, text.find('\n'));
  const auto count = [names](char c) { return std::count(names.begin(), names.end(), c); };
  if (count('\t') > count(',') && count('\t') >= count(';')) return '\t';
  return count(';') > count(',') ? ';' : ',';
}

// Finds out which columns are numeric or constant.
void Describe(ResultTable* table) {
  for (TableColumn& column : table->columns) {
    column.cells.resize(table->rows);
    column.numeric = true;
    bool any = false;
    absl::string_view first;
    for (const absl::string_view cell : column.cells) {
      if (cell.empty()) continue;
      double number = 0;
      column.numeric = column.numeric && ReadNumber(cell, &number);
      if (!any) first = cell;
      column.constant = column.constant && cell == first;
      any = true;
      if (!column.numeric && !column.constant) break;
    }
    column.numeric = column.numeric && any;
  }
}

absl::StatusOr<ResultTable> Begin(const std::string& file, std::string text) {
  ResultTable table;
  table.file = file;
  table.text = std::make_unique<std::string>(std::move(text));
  if (!text::IsUtf8(*table.text)) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": isn't UTF-8; expected text in UTF-8"));
  }
  return table;
}

// Puts NaN, Infinity and -Infinity, which Python writes and JSON lacks, into quotes.
std::string QuoteNonFinite(absl::string_view line) {
  std::string quoted;
  bool in_text = false;
  while (!line.empty()) {
    for (const absl::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_text && absl::ConsumePrefix(&line, word)) absl::StrAppend(&quoted, "\"", word, "\"");
    }
    if (line.empty()) break;
    const size_t size = in_text && line[0] == '\\' ? std::min<size_t>(2, line.size()) : 1;
    in_text ^= line[0] == '"';
    absl::StrAppend(&quoted, line.substr(0, size));
    line.remove_prefix(size);
  }
  return quoted;
}

nlohmann::json ParseLine(absl::string_view line) {
  // The result is discarded_t if it isn't JSON; exceptions are off.
  auto row = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!row.is_discarded()) return row;
  return nlohmann::json::parse(QuoteNonFinite(line), nullptr, false);
}

// Adds the values of a JSON object as cells of a row.
class RowReader {
 public:
  RowReader(ResultTable* table, std::map<std::string, size_t>* places)
      : table_(*table), places_(*places) {}

  absl::Status Add(const std::string& prefix, const nlohmann::json& object, int depth) {
    if (depth > kMaxDepth) {
      return Wrong(table_.file, table_.lines.back(), "objects are nested too deeply");
    }
    for (const auto& [key, value] : object.items()) {
      const std::string name = prefix.empty() ? key : absl::StrCat(prefix, ".", key);
      if (value.is_object()) {
        RETURN_IF_ERROR(Add(name, value, depth + 1));
      } else if (!value.is_null()) {
        RETURN_IF_ERROR(AddCell(name, TextOf(value)));
      }
    }
    return absl::OkStatus();
  }

 private:
  static std::string TextOf(const nlohmann::json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return text::ShortestDecimal(value.get<double>());
    return value.dump();
  }

  absl::Status AddCell(const std::string& name, std::string text) {
    const auto [place, is_new] = places_.emplace(name, table_.columns.size());
    if (is_new) table_.columns.push_back({name, {}});
    if (table_.columns.size() > kMaxColumns) {
      return Wrong(table_.file, table_.lines.back(), "too many names; expected at most 10,000");
    }
    TableColumn& column = table_.columns[place->second];
    column.cells.resize(table_.rows);
    column.cells.back() = table_.unescaped.emplace_back(std::move(text));
    return absl::OkStatus();
  }

  ResultTable& table_;
  std::map<std::string, size_t>& places_;
};

}  // namespace

const TableColumn* ResultTable::Find(absl::string_view name) const {
  for (const TableColumn& column : columns) {
    if (absl::EqualsIgnoreCase(column.name, name)) return &column;
  }
  return nullptr;
}

bool ReadNumber(absl::string_view cell, double* number) {
  // Hexadecimal digits and words such as infinity_norm aren't numbers.
  return !cell.empty() && cell.size() < 40 && cell.find_first_of("xX") == cell.npos &&
         absl::SimpleAtod(cell, number);
}

absl::StatusOr<ResultTable> ReadCsv(const std::string& file, std::string text) {
  ASSIGN_OR_RETURN(ResultTable table, Begin(file, std::move(text)));
  absl::string_view whole = absl::StripPrefix(*table.text, kByteOrderMark);
  CsvReader reader(&table, whole, SeparatorOf(whole));
  std::vector<absl::string_view> cells;
  RETURN_IF_ERROR(reader.ReadLine(&cells));
  std::set<absl::string_view> known;
  for (const absl::string_view name : cells) {
    if (!name.empty() && !known.insert(name).second) {
      return Wrong(file, 1, absl::StrCat("column ", reflect::Quoted(name), " is repeated"));
    }
    table.columns.push_back({std::string(name), {}});
  }
  if (known.empty()) return Wrong(file, 1, "no column has a name; expected names in this line");
  while (!reader.at_end()) {
    const size_t line = reader.line();
    RETURN_IF_ERROR(reader.ReadLine(&cells));
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != table.columns.size()) {
      return Wrong(file, line,
                   absl::StrCat(cells.size(), " cells; expected ", table.columns.size(),
                                " as in the first line"));
    }
    for (size_t i = 0; i < cells.size(); ++i) table.columns[i].cells.push_back(cells[i]);
    table.lines.push_back(line);
    ++table.rows;
  }
  // Such as the index that pandas writes.
  if (std::erase_if(table.columns, [](const TableColumn& column) { return column.name.empty(); })) {
    table.notes.push_back("left out: columns without a name");
  }
  if (table.rows > 0 && !absl::EndsWith(*table.text, "\n")) {
    table.notes.push_back(absl::StrCat(file, " may be cut: its last line has no line break"));
  }
  Describe(&table);
  return table;
}

absl::StatusOr<ResultTable> ReadJsonLines(const std::string& file, std::string text) {
  ASSIGN_OR_RETURN(ResultTable table, Begin(file, std::move(text)));
  absl::string_view rest = absl::StripPrefix(*table.text, kByteOrderMark);
  std::map<std::string, size_t> places;
  for (size_t line = 1; !rest.empty(); ++line) {
    const absl::string_view own = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(own.size() + 1, rest.size()));
    if (absl::StripAsciiWhitespace(own).empty()) continue;
    const nlohmann::json row = ParseLine(own);
    if (!row.is_object()) return Wrong(file, line, "isn't a JSON object");
    table.lines.push_back(line);
    ++table.rows;
    RETURN_IF_ERROR(RowReader(&table, &places).Add("", row, 0));
  }
  Describe(&table);
  return table;
}

}  // namespace ablate::client
