// UploadDataset: a text, checked and kept under its hash.
#include "server/service/upload_dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/engine/task.h"
#include "server/service/convert.h"
#include "server/service/document_facts.h"
#include "server/service/errors.h"
#include "server/service/read_blob.h"

namespace ablate::service {
namespace {

constexpr uint32_t kDatasetsAtOnce = 1'000;
constexpr size_t kHashInId = 6;

bool IsDisplayName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostDisplayNameBytes && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

absl::Status CheckHeader(const v1::UploadDatasetRequest& request) {
  if (!IsDisplayName(request.display_name())) {
    return InvalidField(
        "display_name",
        request.display_name().empty()
            ? "it is missing"
            : absl::StrCat(reflect::Quoted(request.display_name()), " is no file's name"),
        absl::StrCat("1 to ", kMostDisplayNameBytes,
                     " letters, digits, '.', '_' or '-', first a letter or digit"));
  }
  return CheckSha256(request.sha256());
}

// The name without what follows its last dot, and the beginning of the hash.
std::string DatasetId(absl::string_view display_name, absl::string_view sha256) {
  return absl::StrCat(display_name.substr(0, display_name.rfind('.')), "-",
                      sha256.substr(0, kHashInId));
}

// The data set with these bytes, if there is one.
absl::StatusOr<std::optional<storage::DatasetRecord>> FindByHash(storage::Store* store,
                                                                 absl::string_view sha256) {
  std::string after;
  while (true) {
    const auto page = store->ListDatasets(after, kDatasetsAtOnce);
    if (!page.ok()) return page.status();
    for (const storage::DatasetRecord& dataset : *page) {
      if (dataset.sha256 == sha256) return dataset;
    }
    if (page->size() < kDatasetsAtOnce) return std::nullopt;
    after = page->back().id;
  }
}

}  // namespace

UploadDatasetReactor::UploadDatasetReactor(Backend* backend, grpc::CallbackServerContext* context,
                                           v1::Dataset* response)
    : PushStream(backend->Stream(context, &backend->uploads)),
      backend_(backend),
      response_(response) {}

absl::StatusOr<bool> UploadDatasetReactor::Take(const v1::UploadDatasetRequest& request) {
  if (!open_) {
    const absl::StatusOr<bool> wanted = Open(request);
    if (!wanted.ok() || !*wanted) return wanted;
  } else if (!request.display_name().empty() || !request.sha256().empty()) {
    return InvalidField("display_name", "display_name or sha256 come again",
                        "the first message only");
  }
  if (const absl::Status appended = Append(request.data()); !appended.ok()) return appended;
  return true;
}

absl::StatusOr<bool> UploadDatasetReactor::Open(const v1::UploadDatasetRequest& request) {
  open_ = true;
  if (const absl::Status checked = CheckHeader(request); !checked.ok()) return checked;
  display_name_ = request.display_name();
  sha256_ = request.sha256();
  const auto blobs = BlobsOf(backend_->store);
  if (!blobs.ok()) return blobs.status();
  blobs_ = *blobs;
  // Pinned before anything is believed about it: it could be swept in between.
  auto pin = blobs_->Find(sha256_);
  if (pin.ok()) {
    pin_ = *std::move(pin);
    return false;
  }
  if (!absl::IsNotFound(pin.status())) return pin.status();
  auto writer = blobs_->Create();
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return true;
}

absl::Status UploadDatasetReactor::Append(const std::string& data) {
  if (data.size() > kChunkBytes) {
    return InvalidField("data", absl::StrCat("a message has ", data.size(), " bytes"),
                        absl::StrCat("at most ", kChunkBytes, " bytes a message"));
  }
  if (writer_->size() + data.size() > kMostDatasetBytes) {
    return InvalidField("data", absl::StrCat(writer_->size() + data.size(), " bytes have come"),
                        absl::StrCat("at most ", kMostDatasetBytes, " bytes in all"));
  }
  return writer_->Append(data);
}

absl::Status UploadDatasetReactor::Complete() {
  if (!open_) return CheckHeader({});
  if (writer_ != nullptr) {
    auto pin = writer_->Publish(sha256_);
    if (absl::IsInvalidArgument(pin.status())) {
      return InvalidField(
          "sha256",
          absl::StrCat(sha256_, " is not the hash of the ", writer_->size(), " bytes that came"),
          "the SHA-256 of all data");
    }
    if (!pin.ok()) return pin.status();
    pin_ = *std::move(pin);
  }
  return Record();
}

absl::Status UploadDatasetReactor::Record() {
  const auto known = FindByHash(backend_->store, sha256_);
  if (!known.ok()) return known.status();
  storage::DatasetRecord record;
  std::string lengths;
  if (known->has_value()) {
    record = **known;
  } else {
    const auto facts = Inspect();
    if (!facts.ok()) return facts.status();
    record.id = DatasetId(display_name_, sha256_);
    record.display_name = display_name_;
    record.sha256 = sha256_;
    record.bytes = pin_->size();
    record.documents = facts->documents;
    record.characters = facts->characters;
    lengths = LengthsText({facts->longest, facts->lengths});
  }
  // Also if it was known: it could have been deleted in between, and is then added again.
  const auto added = backend_->store->AddDataset(record);
  if (!added.ok()) return added.status();
  if (!lengths.empty()) {
    // If they can't be kept they are counted again when they are asked for.
    backend_->store->KeepDocumentLengths(added->id, lengths).IgnoreError();
  }
  *response_ = ToProto(*added);
  return absl::OkStatus();
}

absl::StatusOr<engine::DocumentFacts> UploadDatasetReactor::Inspect() {
  auto facts = InspectBlob(blobs_, *pin_);
  if (facts.ok() || !absl::IsInvalidArgument(facts.status())) return facts;
  return InvalidField("data", facts.status().message(),
                      "UTF-8 text of one document a line, without control characters");
}

}  // namespace ablate::service
