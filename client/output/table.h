// Formats tables in plain text, aligned by the columns of a terminal.
#ifndef ABLATE_CLIENT_OUTPUT_TABLE_H_
#define ABLATE_CLIENT_OUTPUT_TABLE_H_

#include <string>
#include <vector>

namespace ablate::client {

struct Column {
  std::string title;
  bool right = false;     // numbers
  bool optional = false;  // left out if no row has a text in it
};

class Table {
 public:
  // Titles and texts are made fit for a terminal.
  explicit Table(std::vector<Column> columns);

  // One text per column.
  void Add(std::vector<std::string> row);

  // Returns a line of titles and one per row, two spaces between columns. `width` > 0 is the
  // terminal's: the widest columns without numbers are shortened with an ellipsis until the table
  // fits or they are eight columns wide.
  std::string Render(int width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_TABLE_H_
