#include "client/submit/dataset_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/tokenizer/tokenizer_files.h"
#include "client/names.h"
#include "client/submit/allowed_files.h"
#include "client/upload.h"
#include "proto/reflect/text.h"
#include "proto/yaml/dataset_paths.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Value;

constexpr size_t kChunkBytes = 256 << 10;
constexpr uintmax_t kMaxBytes = uintmax_t{1} << 30;
constexpr size_t kMaxDatasetNameBytes = 100;
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
        absl::StrCat(path, " is too large (", bytes, " bytes); expected at most ", kMaxBytes));
  }
  return absl::OkStatus();
}

// Returns the paths of the files that are read for a path.
std::vector<std::string> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files = tokenizer::FileNamesIn(path);
  for (std::string& file : files) file = fs::path(path) / file;
  return files;
}

// Reads what is uploaded of a path: a file, or the file that is made of a tokenizer's folder.
class Source {
 public:
  static absl::StatusOr<std::unique_ptr<Source>> Open(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return OpenFolder(path);
    RETURN_IF_ERROR(CheckFile(path));
    auto in = std::make_unique<std::ifstream>(path, std::ios::binary);
    if (!*in) return absl::PermissionDeniedError(absl::StrCat(path, " can't be read"));
    return std::unique_ptr<Source>(new Source(path, std::move(in)));
  }

  // Reads a file that was made of the files at `path`.
  static std::unique_ptr<Source> OfBytes(const std::string& path, std::string bytes) {
    return std::unique_ptr<Source>(
        new Source(path, std::make_unique<std::istringstream>(std::move(bytes))));
  }

  // Returns the next bytes; none at the end.
  absl::StatusOr<std::string> Next() {
    std::string chunk(kChunkBytes, '\0');
    in_->read(chunk.data(), kChunkBytes);
    chunk.resize(static_cast<size_t>(in_->gcount()));
    if (in_->bad()) return absl::DataLossError(absl::StrCat(path_, ": reading failed"));
    return chunk;
  }

  void Seek(uint64_t offset) {
    in_->clear();
    in_->seekg(static_cast<std::streamoff>(offset));
  }

  // Returns the number of bytes; rewinds.
  uint64_t Size() {
    in_->clear();
    const auto size = static_cast<uint64_t>(in_->seekg(0, std::ios::end).tellg());
    Seek(0);
    return size;
  }

 private:
  Source(std::string path, std::unique_ptr<std::istream> in)
      : path_(std::move(path)), in_(std::move(in)) {}

  static absl::StatusOr<std::unique_ptr<Source>> OpenFolder(const std::string& path) {
    for (const std::string& file : FilesOf(path)) {
      std::error_code error;
      if (!fs::exists(file, error)) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, " is a folder without ", fs::path(file).filename().string(),
                         "; expected a file, or a tokenizer's folder with ", kJsonFile, ", or ",
                         kVocabularyFile, " and ", kMergesFile));
      }
    }
    ASSIGN_OR_RETURN(const auto folder, tokenizer::ReadTokenizerFolder(path));
    return OfBytes(path, WriteTokenizerFile(folder.files()));
  }

  const std::string path_;
  const std::unique_ptr<std::istream> in_;
};

absl::StatusOr<std::string> Hash(Source* source) {
  Sha256 hash;
  while (true) {
    ASSIGN_OR_RETURN(const std::string chunk, source->Next());
    if (chunk.empty()) return hash.Hex();
    hash.Add(chunk);
  }
}

// The data set of these bytes that will do. NOT_FOUND.
absl::StatusOr<v1::Dataset> FindUploaded(Connection* connection, const std::string& sha256,
                                         Audience audience, Keep keep) {
  v1::GetDatasetRequest request;
  request.set_sha256(sha256);
  request.set_verify(true);
  request.set_private_(audience == Audience::kOurselves);
  absl::StatusOr<v1::Dataset> found = connection->Call(kVerifyDataset, request);
  if (audience == Audience::kEverybodyUnlessPrivate && absl::IsNotFound(found.status())) {
    request.set_private_(true);
    found = connection->Call(kVerifyDataset, request);
  }
  if (!found.ok() || !found->has_expire_time()) return found;
  // An upload for an experiment: uploading it again, without its bytes, makes it what is asked for.
  const bool others_will_see = audience == Audience::kOurselves && !found->private_();
  if (keep == Keep::kAlways || others_will_see) return absl::NotFoundError("");
  return found;
}

// Uploads what the source has from its position on, after the first message.
absl::StatusOr<v1::Dataset> SendDataset(Connection* connection,
                                        const v1::UploadDatasetRequest& first, Source* source) {
  using Next = absl::StatusOr<std::optional<v1::UploadDatasetRequest>>;
  bool begun = false;
  return connection->Send(kUploadDataset, [&]() -> Next {
    if (!std::exchange(begun, true)) return first;
    ASSIGN_OR_RETURN(std::string chunk, source->Next());
    if (chunk.empty()) return std::nullopt;
    v1::UploadDatasetRequest message;
    message.set_data(std::move(chunk));
    return message;
  });
}

// Uploads what a source reads; `path` is the one that the user gave.
absl::StatusOr<Upload> UploadSource(Connection* connection, const Context& context,
                                    const std::string& path, Source* source, Audience audience,
                                    Keep keep, const BeforeUpload& before_upload) {
  ASSIGN_OR_RETURN(const std::string sha256, Hash(source));
  absl::StatusOr<v1::Dataset> dataset = FindUploaded(connection, sha256, audience, keep);
  if (dataset.ok() && !dataset->damaged()) return Upload{*std::move(dataset), false};
  if (!dataset.ok() && !absl::IsNotFound(dataset.status())) return dataset.status();

  v1::UploadDatasetRequest first;
  first.set_display_name(DisplayName(path));
  first.set_sha256(sha256);
  // One that is damaged is mended.
  first.set_private_(dataset.ok() ? dataset->private_() : audience == Audience::kOurselves);
  first.set_for_experiment(keep == Keep::kIfUsed);
  const uint64_t bytes = source->Size();
  if (before_upload) before_upload(bytes, first.private_());
  const absl::Status sent =
      UploadAll(connection, context, {path, bytes, sha256}, [&](uint64_t offset) {
        first.set_offset(offset);
        source->Seek(offset);
        dataset = SendDataset(connection, first, source);
        return dataset.status();
      });
  if (!sent.ok()) {
    return absl::Status(sent.code(),
                        absl::StrCat(path, ": ", yaml::WithoutField(sent.message(), "data")));
  }
  return Upload{*std::move(dataset), true};
}

std::string Resolve(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

// Errors that are about the file and not about the connection.
bool IsAboutFile(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
}

}  // namespace

std::string DisplayName(const std::string& path) {
  fs::path file = fs::path(path).lexically_normal();
  if (!file.has_filename()) file = file.parent_path();  // a folder's path may end with a slash
  std::string name = file.filename().string();
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_') c = '-';
  }
  const size_t stem = std::min(name.rfind('.'), name.size());
  if (stem > kMaxStemBytes) name.erase(0, stem - kMaxStemBytes);
  if (name.size() > kMaxDatasetNameBytes) name.resize(kMaxDatasetNameBytes);
  const auto first = std::find_if(name.begin(), name.end(), absl::ascii_isalnum);
  name.erase(name.begin(), first);
  return name.empty() ? "data" : name;
}

absl::StatusOr<Upload> UploadFile(Connection* connection, const Context& context,
                                  const std::string& path, Audience audience, Keep keep,
                                  const BeforeUpload& before_upload) {
  ASSIGN_OR_RETURN(const auto source, Source::Open(path));
  return UploadSource(connection, context, path, source.get(), audience, keep, before_upload);
}

absl::StatusOr<Upload> UploadBytes(Connection* connection, const Context& context,
                                   const std::string& path, std::string bytes, Audience audience,
                                   Keep keep, const BeforeUpload& before_upload) {
  const auto source = Source::OfBytes(path, std::move(bytes));
  return UploadSource(connection, context, path, source.get(), audience, keep, before_upload);
}

absl::StatusOr<std::string> FindFile(Connection* connection, const std::string& path,
                                     Audience audience) {
  ASSIGN_OR_RETURN(const auto source, Source::Open(path));
  ASSIGN_OR_RETURN(const std::string sha256, Hash(source.get()));
  const absl::StatusOr<v1::Dataset> dataset =
      FindUploaded(connection, sha256, audience, Keep::kIfUsed);
  if (dataset.ok() && !dataset->damaged()) return dataset->name();
  if (!dataset.ok() && !absl::IsNotFound(dataset.status())) return dataset.status();
  return std::string();
}

absl::Status ReplaceDatasetPaths(
    ExperimentFile* file, Overrides* overrides, const std::vector<std::string>& allowed,
    const std::function<absl::StatusOr<std::string>(const NamedPath& named)>& upload) {
  std::map<std::string, absl::StatusOr<std::string>> uploads;
  const auto name_of = [&](const yaml::DatasetPath& place) -> absl::StatusOr<std::string> {
    if (place.is_files) return upload({*place.name, true});
    const std::string path = Resolve(file->folder, *place.name);
    for (const std::string& read : FilesOf(path)) {
      absl::Status checked;
      if (!place.is_override) {
        checked = CheckIsAllowed(read, file->folder, "the experiment file's folder", allowed);
      } else if (read != path) {
        checked = CheckIsAllowed(read, path, "the folder", allowed);
      }
      if (!checked.ok()) return checked;
    }
    auto done = uploads.find(path);
    if (done == uploads.end()) done = uploads.emplace(path, upload({path})).first;
    return done->second;
  };
  for (const yaml::DatasetPath& place : yaml::FindDatasetPaths(&file->spec, overrides)) {
    const absl::StatusOr<std::string> name = name_of(place);
    if (name.ok() && !name->empty()) {
      *place.name = place.is_label ? Id(*name) : *name;
      continue;
    }
    file->unread.push_back(yaml::ParseFieldPath(
        place.is_override ? absl::StrCat("overrides.", place.field) : place.field));
    if (name.ok()) continue;
    if (!IsAboutFile(name.status())) return name.status();
    const std::string message(name.status().message());
    if (place.is_override) {
      file->problems.push_back({{}, message, absl::StrCat("--set ", place.field)});
    } else {
      file->problems.push_back(
          {file->positions.Find(place.field), absl::StrCat(place.field, ": ", message), ""});
    }
  }
  yaml::SortByPosition(&file->problems);
  return absl::OkStatus();
}

}  // namespace ablate::client
