#include "client/output/own_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace ablate::client {
namespace {

constexpr size_t kHead = 512;  // bytes from the beginning within which a mark is looked for

struct Signature {
  absl::string_view beginning;
  absl::string_view mark;  // missing in files by other programs; may be empty
};

// Signatures of files by server/report and by the engine of analyses. The metadata of a safetensors
// file follow eight bytes of length, and begin with the axes of an array.
Signature SignatureOf(FileKind kind) {
  switch (kind) {
    case FileKind::kSvg:
      return {"<svg xmlns=", " role=\"img\" aria-labelledby=\""};
    case FileKind::kPdf:
      return {"%PDF-1.", "\n%\xb5\xed\xae\xfb\n"};  // the bytes that cairo puts there
    case FileKind::kPng:
      return {"\x89PNG\r\n\x1a\n", ""};
    case FileKind::kArrays:
      return {"", "{\"__metadata__\":{\"axes."};
    case FileKind::kPage:
      break;
  }
  return {"<!DOCTYPE html>", "<meta name=\"generator\" content=\"ablate "};
}

std::string Head(const std::string& path) {
  std::string head(kHead, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), kHead);
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

}  // namespace

IfExists ReplaceOwn(const std::string& path, FileKind kind, bool force) {
  if (force) return IfExists::kReplace;
  std::error_code error;
  // Reading a pipe would wait.
  if (!std::filesystem::is_regular_file(path, error)) return IfExists::kRefuse;
  if (std::filesystem::file_size(path, error) == 0 && !error) return IfExists::kReplace;
  const std::string head = Head(path);
  const Signature signature = SignatureOf(kind);
  const bool ours =
      absl::StartsWith(head, signature.beginning) && absl::StrContains(head, signature.mark);
  return ours ? IfExists::kReplace : IfExists::kRefuse;
}

}  // namespace ablate::client
