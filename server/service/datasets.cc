#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ablate/v1/dataset.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/conllu.h"
#include "base/dataset_file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/analysis/document_facts.h"
#include "server/engine/task.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/rpc/identity.h"
#include "server/rpc/streams.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"
#include "server/submit/quotas.h"
#include "server/submit/token_datasets.h"
#include "storage/blobs.h"

namespace ablate::service {
namespace {

// Returns true for a name that only files of tagged sentences have.
bool HasTaggedName(absl::string_view display_name) {
  return absl::EndsWith(display_name, ".conllu");
}

absl::Status CheckHeader(const v1::UploadDatasetRequest& request) {
  RETURN_IF_ERROR(lookup::CheckChosenName(request.display_name(), "file", "display_name"));
  return lookup::CheckSha256(request.sha256());
}

// Receives a text, checks it and stores it under its hash.
class UploadDatasetReactor final : public rpc::PushStream<v1::UploadDatasetRequest> {
 public:
  // `context` and `response` outlive the call.
  UploadDatasetReactor(Backend* backend, grpc::CallbackServerContext* context,
                       v1::Dataset* response);

 private:
  absl::StatusOr<bool> Take(const v1::UploadDatasetRequest& request) override;
  absl::Status Complete() override;
  // Returns false if the server has the bytes already, in a data set that the caller sees. A caller
  // who only knows a hash has to send the bytes.
  absl::StatusOr<bool> Open(const v1::UploadDatasetRequest& request);
  // Receives the bytes after the first `offset`.
  absl::StatusOr<rpc::BlobWriter> OpenWriter(uint64_t offset);
  absl::StatusOr<bool> Receive(const v1::UploadDatasetRequest& request);
  absl::Status Append(const std::string& data);
  absl::Status Record();
  // Sets the record's kind and facts. Returns the counts. A text is read in pieces: several large
  // ones may arrive at once.
  absl::StatusOr<storage::DatasetCounts> Inspect(storage::DatasetRecord* record);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  v1::Dataset* const response_;
  bool open_ = false;
  std::string display_name_;
  std::string sha256_;
  lookup::View view_;       // the caller's
  std::string private_to_;  // to whom the data set will be private, or empty
  bool for_experiment_ = false;
  bool becomes_public_ = false;  // as in the record
  rpc::BlobWriter writer_;
  std::shared_ptr<storage::Blobs::Pin> pin_;  // until a row names the blob
};

UploadDatasetReactor::UploadDatasetReactor(Backend* backend, grpc::CallbackServerContext* context,
                                           v1::Dataset* response)
    : PushStream(backend->Stream(context, &backend->uploads)),
      backend_(backend),
      context_(context),
      response_(response) {}

absl::StatusOr<bool> UploadDatasetReactor::Take(const v1::UploadDatasetRequest& request) {
  const absl::StatusOr<bool> taken = Receive(request);
  if (!taken.ok()) {
    // Before the client learns the end, so that it finds nothing to continue.
    writer_.Discard();
    writer_ = rpc::BlobWriter();
  }
  return taken;
}

absl::StatusOr<bool> UploadDatasetReactor::Receive(const v1::UploadDatasetRequest& request) {
  if (!open_) {
    const absl::StatusOr<bool> wanted = Open(request);
    if (!wanted.ok() || !*wanted) return wanted;
  } else if (!request.display_name().empty() || !request.sha256().empty() || request.offset() > 0) {
    return lookup::InvalidField("display_name", "display_name, sha256 or offset is repeated",
                                "them in the first message only");
  }
  RETURN_IF_ERROR(Append(request.data()));
  return true;
}

absl::StatusOr<bool> UploadDatasetReactor::Open(const v1::UploadDatasetRequest& request) {
  open_ = true;
  RETURN_IF_ERROR(CheckHeader(request));
  display_name_ = request.display_name();
  sha256_ = request.sha256();
  ASSIGN_OR_RETURN(view_, backend_->FindView(*context_));
  for_experiment_ = request.for_experiment();
  becomes_public_ = for_experiment_ && !request.private_();
  if (request.private_() || for_experiment_) private_to_ = view_.viewer.user;
  ASSIGN_OR_RETURN(writer_, OpenWriter(request.offset()));
  return writer_.wanted();
}

absl::StatusOr<rpc::BlobWriter> UploadDatasetReactor::OpenWriter(uint64_t offset) {
  ASSIGN_OR_RETURN(const auto visible, view_.store->FindDatasetsOf(view_.viewer, sha256_));
  const auto cancelled = [this] { return ended(); };
  if (!visible.empty()) {
    // A text that exists but is damaged is received again.
    ASSIGN_OR_RETURN(const bool whole, rpc::HasWhole(view_.store, sha256_, cancelled));
    if (whole) return rpc::BlobWriter::Open(view_.store, sha256_);
  }
  return rpc::BlobWriter::Continue(view_.store, view_.viewer.user, sha256_, offset, cancelled);
}

absl::Status UploadDatasetReactor::Append(const std::string& data) {
  if (data.size() > lookup::kChunkBytes) {
    return lookup::InvalidField("data", absl::StrCat("a message has ", data.size(), " bytes"),
                                absl::StrCat("at most ", lookup::kChunkBytes));
  }
  return writer_.Append(data, lookup::kMaxDatasetBytes);
}

absl::Status UploadDatasetReactor::Complete() {
  if (!open_) return CheckHeader({});
  auto pin = writer_.Publish();
  const uint64_t received = writer_.size();
  writer_ = rpc::BlobWriter();
  if (absl::IsInvalidArgument(pin.status())) {
    return lookup::InvalidField(
        "sha256", absl::StrCat(sha256_, " isn't the hash of the ", received, " received bytes"),
        "the SHA-256 of all data. Upload again");
  }
  if (!pin.ok()) return pin.status();
  pin_ = *std::move(pin);
  return Record();
}

absl::Status UploadDatasetReactor::Record() {
  ASSIGN_OR_RETURN(const auto visible, view_.store->FindDatasetsOf(view_.viewer, sha256_));
  if (becomes_public_ && visible.size() > 0 && visible.back().private_to.empty()) {
    private_to_.clear();  // it is public already
    for_experiment_ = becomes_public_ = false;
  }
  auto known = std::find_if(visible.begin(), visible.end(),
                            [this](const auto& one) { return one.private_to == private_to_; });
  if (known == visible.end()) {  // an earlier upload, which becomes public now
    known = std::find_if(visible.begin(), visible.end(), [this](const auto& one) {
      return one.becomes_public && one.private_to == view_.viewer.user;
    });
  }
  storage::DatasetRecord record;
  std::optional<storage::DatasetCounts> counts;
  if (known != visible.end()) {
    record = *known;
  } else {
    ASSIGN_OR_RETURN(counts, Inspect(&record));
    record.owner = view_.viewer.user;
    record.display_name = display_name_;
    record.sha256 = sha256_;
    record.bytes = pin_->size();
    RETURN_IF_ERROR(submit::CheckQuota(*backend_, record.owner, {0, record.bytes}));
  }
  if (known == visible.end() || known->becomes_public != becomes_public_) {
    record.id = submit::DatasetId(record.display_name, sha256_,
                                  becomes_public_ ? std::string() : private_to_);
  }
  record.private_to = private_to_;
  record.becomes_public = becomes_public_;
  record.expire_time = for_experiment_ ? 1 : 0;
  // Also if it was known: it could have been deleted meanwhile, and is then added again.
  absl::StatusOr<storage::DatasetRecord> added;
  RETURN_IF_ERROR(MakeChange(*backend_, *context_, "Datasets.UploadDataset",
                             [&](const storage::Caller&, std::string* resource) {
                               *resource = lookup::DatasetName(record.id);
                               added = backend_->store->AddDataset(record);
                               return added.status();
                             }));
  if (counts.has_value()) {
    // If the counts can't be stored, they are computed again on demand.
    backend_->store->KeepCounts(DatasetKey(*added), *counts).IgnoreError();
  }
  *response_ = ToProto(*added);
  return absl::OkStatus();
}

absl::StatusOr<storage::DatasetCounts> UploadDatasetReactor::Inspect(
    storage::DatasetRecord* record) {
  storage::Blobs* blobs = backend_->store->blobs();
  ASSIGN_OR_RETURN(const auto beginning, blobs->Read(pin_->sha256(), 0, kConlluBeginningBytes));
  if (const absl::string_view encoding = text::WideEncoding(beginning); !encoding.empty()) {
    return lookup::InvalidField(
        "data", absl::StrCat("the text is in ", encoding),
        absl::StrCat("UTF-8. Convert it: `iconv -f ", encoding, " -t UTF-8 OLD > NEW`"));
  }
  absl::Status problem;
  if (IsText(beginning) && (IsConllu(beginning) || HasTaggedName(display_name_))) {
    const auto facts = submit::InspectTagged(blobs, *pin_);
    if (facts.ok()) {
      record->kind = DatasetKind::kTagged;
      record->documents = facts->sentences;
      return storage::DatasetCounts{"", facts->text_bytes, 0};
    }
    if (!absl::IsInvalidArgument(facts.status())) return facts.status();
    return lookup::InvalidField("data", facts.status().message(), "tagged sentences in CoNLL-U");
  }
  if (IsText(beginning)) {
    const auto facts = analysis::InspectBlob(blobs, *pin_);
    if (facts.ok()) {
      record->documents = facts->documents;
      record->characters = facts->characters;
      return analysis::CountsOf(*facts);
    }
    problem = facts.status();
  } else {
    const auto facts = submit::InspectFile(blobs, *pin_);
    if (facts.ok()) {
      record->kind = facts->kind;
      record->documents = facts->facts.documents;
      record->characters = facts->facts.characters;
      return analysis::CountsOf(facts->facts);
    }
    problem = facts.status();
  }
  if (!absl::IsInvalidArgument(problem)) return problem;
  return lookup::InvalidField(
      "data", problem.message(),
      "UTF-8 text without control characters other than tabs and line breaks, tagged sentences in "
      "CoNLL-U, or a file of a tokenizer, of tokens or of a program's files");
}

constexpr absl::string_view kDatasetList = "datasets";

// Returns the data set with these bytes: the caller's own if requested, or the public one.
absl::StatusOr<storage::DatasetRecord> FindByHash(const lookup::View& view,
                                                  const v1::GetDatasetRequest& request) {
  if (!request.name().empty()) {
    return lookup::InvalidField("sha256", "name is given, too", "either name or sha256");
  }
  RETURN_IF_ERROR(lookup::CheckSha256(request.sha256()));
  const std::string user = request.private_() ? view.viewer.user : "";
  ASSIGN_OR_RETURN(auto found, view.store->FindDatasetsOf({user}, request.sha256()));
  if (!found.empty()) return std::move(found.front());
  return lookup::WithReason(absl::NotFoundError("there is no data set with this SHA-256"),
                            "DATASET_NOT_FOUND");
}

absl::Status GetFor(Backend& backend, const lookup::View& view,
                    grpc::CallbackServerContext* context, const v1::GetDatasetRequest& request,
                    v1::Dataset* response) {
  ASSIGN_OR_RETURN(const auto dataset, request.sha256().empty()
                                           ? lookup::FindDataset(view, request.name(), "name")
                                           : FindByHash(view, request));
  *response = ToProto(dataset);
  if (!request.verify()) return absl::OkStatus();
  rpc::LiveCall call(&backend.queries, context);
  if (!call.accepted().ok()) return call.accepted();
  const absl::StatusOr<bool> whole =
      rpc::HasWhole(backend.store, dataset.sha256, [&call] { return call.ended(); });
  if (call.stopped()) return rpc::ServerEnds();
  if (whole.ok()) response->set_damaged(!*whole);
  return whole.status();
}

absl::Status GetUpload(const Backend& backend, const lookup::View& view,
                       const v1::GetUploadRequest& request, v1::PartialUpload* response) {
  RETURN_IF_ERROR(lookup::CheckSha256(request.sha256()));
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(backend.store));
  const auto found = blobs->partials().Find(view.viewer.user, request.sha256());
  response->set_bytes(found.bytes);
  response->set_in_use(found.in_use);
  return absl::OkStatus();
}

absl::StatusOr<rpc::BlobReader> OpenDataset(const Backend& backend,
                                            const grpc::ServerContextBase& context,
                                            const v1::DownloadDatasetRequest& request) {
  ASSIGN_OR_RETURN(const auto view, backend.FindView(context));
  ASSIGN_OR_RETURN(const auto dataset, lookup::FindDataset(view, request.name(), "name"));
  return rpc::BlobReader::Open(backend.store, dataset.sha256, request.offset());
}

absl::Status ListDatasets(const Backend&, const lookup::View& view,
                          const v1::ListDatasetsRequest& request,
                          v1::ListDatasetsResponse* response) {
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, kDatasetList, lookup::kDefaultPage));
  ASSIGN_OR_RETURN(auto records,
                   view.store->ListDatasets(view.viewer, page.position, page.size + 1));
  if (records.size() > page.size) {
    records.pop_back();
    response->set_next_page_token(lookup::PageToken(kDatasetList, DatasetKey(records.back())));
  }
  for (const storage::DatasetRecord& record : records) {
    *response->add_datasets() = ToProto(record);
  }
  return absl::OkStatus();
}

absl::Status DeleteDataset(Backend& backend, const storage::Caller& caller,
                           const v1::DeleteDatasetRequest& request, std::string* resource,
                           google::protobuf::Empty*) {
  const lookup::View view = backend.ViewOf(caller);
  ASSIGN_OR_RETURN(const auto id, lookup::FindWholeDataset(view, request.name(), "name"));
  *resource = lookup::DatasetName(id);
  ASSIGN_OR_RETURN(const auto dataset, view.store->FindDataset(view.viewer, id));
  RETURN_IF_ERROR(rpc::CheckMayChange(caller, dataset.owner, *resource));
  const absl::Status deleted = backend.store->DeleteDataset(DatasetKey(dataset));
  return absl::IsFailedPrecondition(deleted) ? lookup::WithReason(deleted, "DATASET_IN_USE")
                                             : deleted;
}

grpc::ServerReadReactor<v1::UploadDatasetRequest>* StartUploadDataset(
    Backend* backend, grpc::CallbackServerContext* context, v1::Dataset* response) {
  return (new UploadDatasetReactor(backend, context, response))->Begin();
}

grpc::ServerUnaryReactor* GetDataset(Backend* backend, grpc::CallbackServerContext* context,
                                     const v1::GetDatasetRequest* request, v1::Dataset* response) {
  return backend->Answer(context, [=](const lookup::View& view) {
    return GetFor(*backend, view, context, *request, response);
  });
}

}  // namespace

std::unique_ptr<grpc::Service> MakeDatasetsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Datasets", backend);
  methods->Upload(StartUploadDataset);
  methods->Begin(GetDataset);
  methods->Answer(GetUpload);
  methods->Download<v1::DatasetChunk>(OpenDataset);
  methods->Answer(ListDatasets);
  methods->Change(DeleteDataset);
  return methods;
}

}  // namespace ablate::service
