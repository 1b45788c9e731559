// Files of documents: hashed, and sent to a server that lacks them.
#include "client/dataset_upload.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/names.h"
#include "proto/reflect/from_value.h"
#include "storage/sha256.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = 256 << 10;
constexpr uintmax_t kMaxBytes = uintmax_t{1} << 30;
constexpr size_t kMaxNameBytes = 100;
constexpr size_t kHashInId = 6;
// So that an ID, which is a label on an axis of data sets, has at most 40.
constexpr size_t kMaxStemBytes = 33;

absl::Status NoSuchFile(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  return absl::NotFoundError(absl::StrCat("no file ", path.string(),
                                          reflect::DidYouMean(path.filename().string(), names)));
}

absl::Status CheckFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return NoSuchFile(path);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (!fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a file"));
  }
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes, " bytes; a data set has at most ", kMaxBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NextChunk(std::ifstream* in, const std::string& path) {
  std::string chunk(kChunkBytes, '\0');
  in->read(chunk.data(), kChunkBytes);
  chunk.resize(static_cast<size_t>(in->gcount()));
  if (in->bad()) return absl::DataLossError(absl::StrCat(path, ": reading failed"));
  return chunk;
}

absl::StatusOr<std::string> Hash(std::ifstream* in, const std::string& path) {
  storage::Sha256 hash;
  while (true) {
    const absl::StatusOr<std::string> chunk = NextChunk(in, path);
    if (!chunk.ok()) return chunk.status();
    if (chunk->empty()) return hash.Hex();
    hash.Add(*chunk);
  }
}

// The data set if the server has it under the name that this upload would get.
absl::StatusOr<v1::Dataset> Look(Connection* connection, const std::string& display_name,
                                 const std::string& sha256) {
  v1::GetDatasetRequest request;
  const std::string stem = display_name.substr(0, display_name.rfind('.'));
  request.set_name(DatasetName(absl::StrCat(stem, "-", sha256.substr(0, kHashInId))));
  absl::StatusOr<v1::Dataset> found = connection->GetDataset(request);
  if (found.ok() && found->sha256() != sha256) return absl::NotFoundError("another data set");
  return found;
}

}  // namespace

std::string DisplayName(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_') c = '-';
  }
  const size_t stem = std::min(name.rfind('.'), name.size());
  if (stem > kMaxStemBytes) name.erase(0, stem - kMaxStemBytes);
  if (name.size() > kMaxNameBytes) name.resize(kMaxNameBytes);
  const auto first = std::find_if(name.begin(), name.end(), absl::ascii_isalnum);
  name.erase(name.begin(), first);
  return name.empty() ? "data" : name;
}

absl::StatusOr<Upload> UploadFile(Connection* connection, const std::string& path) {
  if (const absl::Status status = CheckFile(path); !status.ok()) return status;
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::PermissionDeniedError(absl::StrCat(path, " can't be read"));
  const absl::StatusOr<std::string> sha256 = Hash(&in, path);
  if (!sha256.ok()) return sha256.status();

  v1::UploadDatasetRequest first;
  first.set_display_name(DisplayName(path));
  first.set_sha256(*sha256);
  absl::StatusOr<v1::Dataset> dataset = Look(connection, first.display_name(), *sha256);
  if (dataset.ok()) return Upload{*std::move(dataset), false};
  if (!absl::IsNotFound(dataset.status())) return dataset.status();

  in.clear();
  in.seekg(0);
  dataset = connection->UploadDataset(first, [&] { return NextChunk(&in, path); });
  if (!dataset.ok()) {
    return absl::Status(dataset.status().code(),
                        absl::StrCat(path, ": ", dataset.status().message()));
  }
  return Upload{*std::move(dataset), true};
}

}  // namespace ablate::client
