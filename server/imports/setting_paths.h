// Names imported settings as those of a program: parts of letters, digits, _ and -, with dots.
#ifndef ABLATE_SERVER_IMPORTS_SETTING_PATHS_H_
#define ABLATE_SERVER_IMPORTS_SETTING_PATHS_H_

#include <set>
#include <string>

namespace ablate::imports {

class SettingPaths {
 public:
  // Returns the path of a key: a new one, neither below nor above another.
  std::string Add(const std::string& key);

 private:
  bool Clashes(const std::string& path) const;

  std::set<std::string> paths_;
};

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_SETTING_PATHS_H_
