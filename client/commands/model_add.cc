// `ablate model add FOLDER`: imports a model from the files of Hugging Face's transformers.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/model_text.h"
#include "client/submit/allowed_files.h"
#include "client/submit/experiment_file.h"
#include "client/upload.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxModelBytes = uint64_t{2} << 30;
constexpr size_t kModelChunkBytes = 1 << 20;
constexpr absl::string_view kTensorEnding = ".safetensors";
constexpr absl::string_view kPickles[] = {".bin", ".pt", ".pth", ".pkl", ".ckpt"};

struct AddModelOptions {
  std::string folder;
  std::string name;
  std::vector<std::string> set;
  std::vector<std::string> data;
  bool is_private = false;
  bool json = false;
};

bool EndsWithAny(const std::string& name, absl::Span<const absl::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&name](absl::string_view ending) { return absl::EndsWith(name, ending); });
}

// Returns the names of the files in a folder, in order.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) names.push_back(entry.path().filename().string());
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

// Sends the files of a model in pieces.
class ModelSource {
 public:
  // `first` is the first message, without the names of files. Links of the folder may lead to
  // `allowed`.
  static absl::StatusOr<ModelSource> Open(const std::string& folder,
                                          const std::vector<std::string>& allowed,
                                          v1::UploadModelRequest first) {
    ASSIGN_OR_RETURN(const auto names, NamesIn(folder));
    ModelSource source(folder, std::move(first));
    std::vector<std::string> pickles;
    bool has_tensors = false;
    for (const std::string& name : names) {
      const bool is_tensors = absl::EndsWith(name, kTensorEnding);
      has_tensors = has_tensors || is_tensors;
      if (is_tensors || name == "config.json" || absl::EndsWith(name, ".index.json")) {
        source.files_.push_back(name);
      } else if (EndsWithAny(name, kPickles)) {
        pickles.push_back(name);
      }
    }
    RETURN_IF_ERROR(CheckFilesIn(folder, source.files_, allowed));
    RETURN_IF_ERROR(source.SetSize());
    source.first_.mutable_files()->Add(source.files_.begin(), source.files_.end());
    // The server refuses these by their names, and says how to convert them.
    if (!has_tensors) source.first_.mutable_files()->Add(pickles.begin(), pickles.end());
    return source;
  }

  uint64_t bytes() const { return first_.bytes(); }
  const std::string& sha256() const { return first_.sha256(); }

  // Hashes the files, which the first message then says. Servers refuse a model without tensors by
  // its names, before they look at the hash.
  absl::Status Hash() {
    if (files_.size() != static_cast<size_t>(first_.files_size())) return absl::OkStatus();
    Sha256 hash;
    Begin(0);
    while (true) {
      ASSIGN_OR_RETURN(const auto message, Next());
      if (!message.has_value()) break;
      hash.Add(message->data());
    }
    first_.set_sha256(hash.Hex());
    return absl::OkStatus();
  }

  // Begins at an offset in the files.
  void Begin(uint64_t offset) {
    first_.set_offset(offset);
    begun_ = false;
    in_.reset();
    for (file_ = 0; file_ < files_.size() && offset >= sizes_[file_]; ++file_) {
      offset -= sizes_[file_];
    }
    skip_ = offset;
  }

  // Returns the next message; nothing at the end.
  absl::StatusOr<std::optional<v1::UploadModelRequest>> Next() {
    if (!std::exchange(begun_, true)) return first_;
    while (file_ < files_.size()) {
      const std::string path = fs::path(folder_) / files_[file_];
      if (!in_.has_value()) {
        in_.emplace(path, std::ios::binary);
        in_->seekg(static_cast<std::streamoff>(std::exchange(skip_, 0)));
      }
      std::string data(kModelChunkBytes, '\0');
      in_->read(data.data(), static_cast<std::streamsize>(data.size()));
      if (!in_->is_open() || in_->bad()) {
        return absl::PermissionDeniedError(absl::StrCat(path, " can't be read"));
      }
      data.resize(static_cast<size_t>(in_->gcount()));
      if (!data.empty()) {
        v1::UploadModelRequest message;
        message.set_file(static_cast<uint32_t>(file_));
        message.set_data(std::move(data));
        return message;
      }
      in_.reset();
      ++file_;
    }
    return std::nullopt;
  }

 private:
  ModelSource(std::string folder, v1::UploadModelRequest first)
      : folder_(std::move(folder)), first_(std::move(first)) {}

  absl::Status SetSize() {
    uint64_t bytes = 0;
    for (const std::string& name : files_) {
      std::error_code ignored;
      sizes_.push_back(fs::file_size(fs::path(folder_) / name, ignored));
      first_.add_file_bytes(sizes_.back());
      bytes += sizes_.back();
    }
    first_.set_bytes(bytes);
    if (bytes <= kMaxModelBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the files are too large (", text::Grouped(bytes),
                     " bytes); expected at most ", text::Grouped(kMaxModelBytes)));
  }

  std::string folder_;
  v1::UploadModelRequest first_;
  std::vector<std::string> files_;  // that are sent
  std::vector<uint64_t> sizes_;     // theirs
  bool begun_ = false;
  size_t file_ = 0;
  uint64_t skip_ = 0;                // bytes of that file
  std::optional<std::ifstream> in_;  // the file, once it is open
};

// Reads --set: a setting of the model that the files may leave open.
absl::StatusOr<v1::UploadModelRequest> MakeAddRequest(const AddModelOptions& options) {
  ASSIGN_OR_RETURN(const Overrides overrides, ParseOverrides(options.set, "norm.kind=rms"));
  v1::ModelSpec model;
  std::vector<reflect::FieldProblem> problems;
  for (const auto& [given, value] : overrides) {
    const std::string path(absl::StripPrefix(given, "model."));
    if (path != "norm.kind" && path != "dropout") {
      return absl::InvalidArgumentError(absl::StrCat(
          "--set ", given, ": a model's files determine it; expected norm.kind or dropout"));
    }
    reflect::SetPath(path, value, absl::StrCat("--set ", given), &model, &problems);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems[0].message);
  v1::UploadModelRequest request;
  request.set_name(options.name);
  request.set_private_(options.is_private);
  if (model.norm().has_kind()) request.set_norm_kind(model.norm().kind());
  if (model.has_dropout()) request.set_dropout(model.dropout());
  return request;
}

absl::StatusOr<int> AddModel(const AddModelOptions& options, const v1::UploadModelRequest& request,
                             const Context& context, Connection* connection) {
  const auto about_folder = [&options](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(options.folder, ": ", status.message()));
  };
  absl::StatusOr<ModelSource> source = ModelSource::Open(options.folder, options.data, request);
  if (!source.ok()) {
    return absl::IsNotFound(source.status()) ? source.status() : about_folder(source.status());
  }
  if (const absl::Status hashed = source->Hash(); !hashed.ok()) return about_folder(hashed);
  absl::StatusOr<v1::Model> model;
  const auto send = [&](uint64_t offset) {
    source->Begin(offset);
    model = connection->Send(kUploadModel, [&source] { return source->Next(); });
    return model.status();
  };
  const absl::Status sent =
      source->sha256().empty()
          ? send(0)
          : UploadAll(connection, context, {options.folder, source->bytes(), source->sha256()},
                      send);
  if (absl::IsInvalidArgument(sent)) return about_folder(sent);
  if (!sent.ok()) return sent;
  if (options.json) return PrintJson(context, *model);
  *context.console.out << model->name() << "\n";
  context.console.Info(absl::StrCat("imported ", Count(model->parameters(), "parameter"), " in ",
                                    Bytes(model->bytes()), ", norms ", NormText(model->model())));
  for (const std::string& note : model->notes()) context.console.Note(note);
  return kSuccess;
}

}  // namespace

Action DefineModelAdd(Command* command) {
  auto options = std::make_shared<AddModelOptions>();
  command->Argument(&options->folder, "FOLDER",
                    "Folder with config.json and model.safetensors, or its shards with their "
                    "index; at most 2 GiB");
  command->RequiredOption(&options->name, "--name", "NAME",
                          "Name of the model: letters, digits, . _ -");
  command->Options(&options->set, "--set", "SETTING=VALUE",
                   "Give a setting that the files leave open: norm.kind=layer, norm.kind=rms or "
                   "dropout=P");
  command->Options(&options->data, kAllowOption, "PATH",
                   "Allow links in FOLDER to lead to PATH, a file or folder outside it");
  command->Flag(&options->is_private, "--private",
                "Show it only to you and admins; for private experiments of yours");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Reads GPT-2, Llama, Qwen2, Qwen3 and GPT-NeoX as transformers saves them, and GPT-2 with "
      "RMSNorm or without some norms. "
      "Experiments begin with the model by model_from: models/NAME.\n\n"
      "Examples:\n  ablate model add ./gpt2 --name gpt2\n"
      "  ablate model add ./gpt2-rms --name gpt2-rms --set norm.kind=rms --private");
  return WithServer(*command, options, MakeAddRequest, AddModel);
}

}  // namespace ablate::client
