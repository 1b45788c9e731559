// A draft beside the file, then a rename.
#include "server/launch/replace_file.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace ablate::launch {

absl::Status ReplaceFile(const std::string& file, absl::string_view content) {
  const std::string draft = absl::StrCat(file, ".new");
  errno = 0;
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (out && std::rename(draft.c_str(), file.c_str()) == 0) return absl::OkStatus();
  // A stream need not say why it failed.
  return absl::ErrnoToStatus(errno != 0 ? errno : EIO, absl::StrCat("cannot write ", file));
}

}  // namespace ablate::launch
