// UploadModel: imports a model from the files of another program.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/config/model_spec.h"
#include "server/engine/pretrained.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/rpc/streams.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/services.h"
#include "server/submit/quotas.h"
#include "storage/blobs.h"

namespace ablate::service {
namespace {

// Models up to this size are tried on a few tokens, which takes about a second.
constexpr size_t kMaxTriedParameters = 400'000'000;

using ModelFiles = std::vector<engine::NamedFile>;

std::vector<engine::FileView> ViewsOf(const ModelFiles& files) {
  std::vector<engine::FileView> views;
  for (const engine::NamedFile& file : files) views.push_back({file.name, file.bytes});
  return views;
}

absl::Status CheckFileNames(const v1::UploadModelRequest& header) {
  if (header.files_size() > lookup::kMaxModelFiles) {
    return lookup::TooMany("files", header.files_size(), lookup::kMaxModelFiles);
  }
  for (int i = 0; i < header.files_size(); ++i) {
    const std::string& name = header.files(i);
    if (text::IsPrintable(name, lookup::kMaxNameBytes) && !absl::StrContains(name, '/')) continue;
    return lookup::InvalidField(
        absl::StrCat("files[", i, "]"),
        name.empty() ? "missing" : absl::StrCat(reflect::Quoted(name), " isn't a file's name"),
        absl::StrCat("at most ", lookup::kMaxNameBytes, " characters without '/'"));
  }
  return absl::OkStatus();
}

// Checks the fields by which an upload continues.
absl::Status CheckParts(const v1::UploadModelRequest& header) {
  if (header.sha256().empty()) {
    if (header.offset() == 0) return absl::OkStatus();
    return lookup::InvalidField("offset", "given without sha256", "both or neither");
  }
  if (header.file_bytes_size() != header.files_size()) {
    return lookup::InvalidField(
        "file_bytes", absl::StrCat(header.file_bytes_size(), " sizes"),
        absl::StrCat("one for each of the ", header.files_size(), " files"));
  }
  uint64_t rest = header.bytes();
  bool fits = true;
  for (const uint64_t bytes : header.file_bytes()) {
    fits = fits && bytes <= rest;
    rest -= bytes;
  }
  if (fits && rest == 0) return lookup::CheckSha256(header.sha256());
  return lookup::InvalidField("file_bytes", "the sum of the sizes is another number than `bytes`",
                              text::Grouped(header.bytes()));
}

absl::StatusOr<engine::ImportOverrides> OverridesOf(const v1::UploadModelRequest& header) {
  engine::ImportOverrides overrides;
  switch (header.norm_kind()) {
    case v1::NormKind::unspecified:
      break;
    case v1::NormKind::layer:
      overrides.norm_kind = engine::NormKind::kLayer;
      break;
    case v1::NormKind::rms:
      overrides.norm_kind = engine::NormKind::kRms;
      break;
    default:
      return lookup::InvalidField(
          "norm_kind", absl::StrCat(static_cast<int>(header.norm_kind()), " isn't GPT-2's"),
          "layer or rms");
  }
  if (header.has_dropout()) overrides.dropout = header.dropout();
  return overrides;
}

// Returns an error of the import as one of the request: its message names file, tensor or setting.
absl::Status BadModel(const absl::Status& why) {
  if (!absl::IsInvalidArgument(why)) return why;
  return lookup::InvalidFields({{"files", "", "", std::string(why.message())}});
}

// Computes logits of a few tokens. INVALID_ARGUMENT if they aren't finite.
absl::Status TryModel(const engine::ImportedModel& imported) {
  const engine::ModelConfig& model = imported.model;
  std::vector<int64_t> tokens = {0, model.vocabulary - 1, model.vocabulary / 2};
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(model.context)));
  ASSIGN_OR_RETURN(const auto logits,
                   engine::PlainLogits(imported, tokens, engine::LogitPositions::kAll));
  const bool finite =
      std::all_of(logits.begin(), logits.end(), [](double x) { return std::isfinite(x); });
  if (finite) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "model.safetensors: the model's logits aren't finite; expected a trained model.");
}

// Receives the files of a model in one file, and converts them. Then holds the files, and in
// addition the parameters or their checkpoint, in memory, for which their bytes are reserved.
class UploadModelReactor final : public rpc::PushStream<v1::UploadModelRequest> {
 public:
  // `context` and `response` outlive the call.
  UploadModelReactor(Backend* backend, grpc::CallbackServerContext* context, v1::Model* response)
      : PushStream(backend->Stream(context, &backend->uploads)),
        backend_(backend),
        context_(context),
        response_(response) {}

 private:
  absl::StatusOr<bool> Take(const v1::UploadModelRequest& request) override;
  absl::Status Complete() override;
  absl::Status Receive(const v1::UploadModelRequest& request);
  absl::Status Import();
  // Frees the memory before the client learns the end, so that its next upload finds room.
  void Free();
  absl::Status CheckHeader(const v1::UploadModelRequest& request);
  absl::Status Open(const v1::UploadModelRequest& request);
  absl::Status Append(const v1::UploadModelRequest& request);
  absl::Status WrongSize() const;
  // Opens the file, in which some bytes may be already.
  absl::Status OpenWriter(const v1::UploadModelRequest& request);
  // Reserves memory for the files.
  absl::Status Reserve();
  // Reads the received files.
  absl::Status ReadFiles();
  // Returns the checkpoint's bytes and sets the record's facts. Frees the files.
  absl::StatusOr<std::string> Convert(storage::ModelRecord* record);
  absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> Publish(const std::string& checkpoint);
  absl::Status Record(storage::ModelRecord record);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  v1::Model* const response_;
  bool open_ = false;
  std::string name_;
  engine::ImportOverrides overrides_;
  lookup::View view_;            // the caller's
  std::string private_to_;       // to whom the model will be private, or empty
  ModelFiles files_;             // without bytes until all are there
  std::vector<uint64_t> sizes_;  // of the files
  std::string sha256_;           // of all files; empty: not given
  std::unique_ptr<storage::Blobs::Writer> writer_;
  size_t file_ = 0;                 // that the last bytes were of
  uint64_t announced_ = 0;          // bytes of all files
  uint64_t received_ = 0;           // bytes
  std::shared_ptr<void> reserved_;  // memory
};

absl::StatusOr<bool> UploadModelReactor::Take(const v1::UploadModelRequest& request) {
  const absl::Status received = Receive(request);
  if (received.ok()) return true;
  if (writer_ != nullptr) writer_->Discard();
  Free();
  return received;
}

absl::Status UploadModelReactor::Complete() {
  const absl::Status imported = open_ ? Import() : CheckHeader({});
  const bool may_continue = absl::IsCancelled(imported) || absl::IsUnavailable(imported) ||
                            absl::IsResourceExhausted(imported);
  if (writer_ != nullptr && !may_continue) writer_->Discard();
  Free();
  return imported;
}

void UploadModelReactor::Free() {
  files_ = {};
  writer_.reset();
  reserved_.reset();
  rpc::GiveMemoryBack();
}

absl::Status UploadModelReactor::Receive(const v1::UploadModelRequest& request) {
  const bool has_header = !request.name().empty() || request.files_size() > 0 ||
                          request.private_() || request.has_norm_kind() || request.has_dropout() ||
                          request.bytes() > 0 || !request.sha256().empty() ||
                          request.file_bytes_size() > 0 || request.offset() > 0;
  if (!open_) {
    if (const absl::Status opened = Open(request); !opened.ok()) return opened;
  } else if (has_header) {
    return lookup::InvalidField("name", "name, files, bytes or settings are repeated",
                                "them in the first message only");
  }
  return Append(request);
}

absl::Status UploadModelReactor::CheckHeader(const v1::UploadModelRequest& request) {
  absl::Status checked = lookup::CheckChosenName(request.name(), "model", "name");
  if (checked.ok()) checked = CheckFileNames(request);
  if (checked.ok()) checked = CheckParts(request);
  if (!checked.ok() || request.bytes() <= lookup::kMaxModelBytes) return checked;
  return lookup::InvalidField(
      "bytes", absl::StrCat("the files have ", text::Grouped(request.bytes()), " bytes"),
      absl::StrCat("at most ", text::Grouped(lookup::kMaxModelBytes)));
}

absl::Status UploadModelReactor::Open(const v1::UploadModelRequest& request) {
  open_ = true;
  RETURN_IF_ERROR(CheckHeader(request));
  ASSIGN_OR_RETURN(overrides_, OverridesOf(request));
  ASSIGN_OR_RETURN(view_, backend_->FindView(*context_));
  if (request.private_()) private_to_ = view_.viewer.user;
  name_ =
      private_to_.empty() ? request.name() : storage::PrivateModelName(request.name(), private_to_);
  announced_ = request.bytes();
  if (request.sha256().empty()) {
    // This client can't continue, so it must not be refused once it has sent everything.
    if (const absl::Status reserved = Reserve(); !reserved.ok()) return reserved;
  }
  for (const std::string& file : request.files()) files_.push_back({file, ""});
  const bool has_tensors = std::any_of(files_.begin(), files_.end(), [](const auto& file) {
    return absl::EndsWith(file.name, ".safetensors");
  });
  // Without tensors it is refused by the names alone, before anything is sent.
  if (has_tensors) return OpenWriter(request);
  return BadModel(engine::ReadPretrained(ViewsOf(files_), overrides_).status());
}

absl::Status UploadModelReactor::Reserve() {
  if (reserved_ != nullptr) return absl::OkStatus();
  auto reserved = backend_->models.Take(announced_, backend_->pool->UserOf(*context_));
  if (reserved.ok()) reserved_ = *std::move(reserved);
  return reserved.status();
}

absl::Status UploadModelReactor::OpenWriter(const v1::UploadModelRequest& request) {
  sha256_ = request.sha256();
  sizes_.resize(files_.size());
  if (!sha256_.empty()) sizes_.assign(request.file_bytes().begin(), request.file_bytes().end());
  received_ = request.offset();
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(view_.store));
  ASSIGN_OR_RETURN(auto writer, sha256_.empty()
                                    ? blobs->Create()
                                    : blobs->Continue(view_.viewer.user, sha256_, received_,
                                                      [this] { return ended(); }));
  writer_ = std::move(writer);
  return absl::OkStatus();
}

absl::Status UploadModelReactor::ReadFiles() {
  const absl::Status right = writer_->Finish(sha256_);
  if (absl::IsInvalidArgument(right)) {
    return lookup::InvalidField(
        "sha256", absl::StrCat(sha256_, " isn't the hash of the ", received_, " received bytes"),
        "the SHA-256 of the files' bytes in order. Upload again");
  }
  if (!right.ok()) return right;
  uint64_t at = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    ASSIGN_OR_RETURN(auto bytes, writer_->Read(at, sizes_[i]));
    files_[i].bytes = std::move(bytes);
    at += sizes_[i];
  }
  return absl::OkStatus();
}

absl::Status UploadModelReactor::Append(const v1::UploadModelRequest& request) {
  const std::string& data = request.data();
  if (data.empty()) return absl::OkStatus();
  if (request.file() < file_ || request.file() >= files_.size()) {
    return lookup::InvalidField("file", absl::StrCat(request.file(), " is out of order or range"),
                                absl::StrCat(file_, " to ", files_.size() - 1));
  }
  if (data.size() > lookup::kChunkBytes) {
    return lookup::InvalidField("data", absl::StrCat("a message has ", data.size(), " bytes"),
                                absl::StrCat("at most ", lookup::kChunkBytes));
  }
  received_ += data.size();
  if (received_ > announced_) return WrongSize();
  file_ = request.file();
  if (sha256_.empty()) sizes_[file_] += data.size();
  return writer_->Append(data);
}

absl::Status UploadModelReactor::WrongSize() const {
  return lookup::InvalidField("data", absl::StrCat(text::Grouped(received_), " bytes were sent"),
                              absl::StrCat(text::Grouped(announced_), ", as `bytes` says"));
}

absl::Status UploadModelReactor::Import() {
  if (received_ != announced_) return WrongSize();
  RETURN_IF_ERROR(Reserve());
  if (const absl::Status read = ReadFiles(); !read.ok()) return read;
  storage::ModelRecord record;
  auto checkpoint = Convert(&record);
  if (!checkpoint.ok()) return BadModel(checkpoint.status());
  if (ended()) return lookup::CallCancelled();
  // Holds the blob until a row names it.
  ASSIGN_OR_RETURN(const auto pin, Publish(*checkpoint));
  record.sha256 = pin->sha256();
  record.bytes = pin->size();
  return Record(std::move(record));
}

absl::StatusOr<std::string> UploadModelReactor::Convert(storage::ModelRecord* record) {
  ASSIGN_OR_RETURN(engine::ImportedModel imported,
                   engine::ReadPretrained(ViewsOf(files_), overrides_));
  files_ = {};
  if (imported.parameters.size() <= kMaxTriedParameters) {
    RETURN_IF_ERROR(TryModel(imported));
  }
  record->parameters = imported.parameters.size();
  record->vocabulary = static_cast<uint32_t>(imported.model.vocabulary);
  record->spec = spec::ToModelSpec(imported.model).SerializeAsString();
  record->notes = absl::StrJoin(imported.notes, "\n");
  return engine::ImportedCheckpoint(imported);
}

absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> UploadModelReactor::Publish(
    const std::string& checkpoint) {
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(view_.store));
  ASSIGN_OR_RETURN(auto writer, blobs->Create());
  RETURN_IF_ERROR(writer->Append(checkpoint));
  return writer->Publish("");
}

absl::Status UploadModelReactor::Record(storage::ModelRecord record) {
  record.name = name_;
  record.owner = view_.viewer.user;
  record.private_to = private_to_;
  const auto known = view_.store->FindModel(storage::kServer, name_);
  if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
  if (!known.ok()) {
    const absl::Status allowed = submit::CheckQuota(*backend_, record.owner, {0, record.bytes});
    if (!allowed.ok()) {
      writer_->Discard();
      return allowed;
    }
  }
  absl::StatusOr<storage::ModelRecord> added;
  const absl::Status made = MakeChange(*backend_, *context_, "Models.UploadModel",
                                       [&](const storage::Caller&, std::string* resource) {
                                         *resource = lookup::ModelName(name_);
                                         added = backend_->store->AddModel(record);
                                         return added.status();
                                       });
  if (absl::IsAlreadyExists(made)) return lookup::WithReason(made, "MODEL_EXISTS");
  if (!made.ok()) return made;
  ASSIGN_OR_RETURN(*response_, ToProto(*added));
  return absl::OkStatus();
}

}  // namespace

grpc::ServerReadReactor<v1::UploadModelRequest>* StartUploadModel(
    Backend* backend, grpc::CallbackServerContext* context, v1::Model* response) {
  return (new UploadModelReactor(backend, context, response))->Begin();
}

}  // namespace ablate::service
