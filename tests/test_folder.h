// A folder of a test's own, removed with it.
#ifndef ABLATE_TESTS_TEST_FOLDER_H_
#define ABLATE_TESTS_TEST_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ablate {

class TestFolder {
 public:
  TestFolder() : path_(::testing::TempDir() + "/ablate-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
    path_ = std::filesystem::canonical(path_).string();
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }
  std::string Script(const std::string& name, const std::string& body) const {
    const std::string file = Write(name, "#!/bin/sh\n" + body);
    chmod(file.c_str(), 0700);
    return file;
  }

 private:
  std::string path_;
};

inline std::string ReadText(const std::string& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace ablate

#endif  // ABLATE_TESTS_TEST_FOLDER_H_
