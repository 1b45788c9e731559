// Reads pages of docs/ that tests compare with the code. The target defines ABLATE_DOCS, the
// folder.
#ifndef ABLATE_TESTS_DOCS_PAGE_H_
#define ABLATE_TESTS_DOCS_PAGE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate {

// Expects a table row of this page of docs/reference that begins with these two cells.
inline void ExpectRow(absl::string_view page, absl::string_view first, absl::string_view second) {
  std::ifstream file(absl::StrCat(ABLATE_DOCS "/reference/", page));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), testing::HasSubstr(absl::StrCat("\n| ", first, " | ", second, " |")));
}

}  // namespace ablate

#endif  // ABLATE_TESTS_DOCS_PAGE_H_
