// Import: keeps results that were trained elsewhere as an experiment, or compares them.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/imports/compare.h"
#include "server/imports/experiment.h"
#include "server/imports/reading.h"
#include "server/imports/results.h"
#include "server/imports/values.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/results/compare.h"
#include "server/rpc/streams.h"
#include "server/service/annotations.h"
#include "server/service/changes.h"
#include "server/service/comparison_message.h"
#include "server/service/run_fields.h"
#include "server/service/services.h"
#include "server/submit/related.h"

namespace ablate::service {
namespace {

constexpr size_t kMaxSourceBytes = 40;
constexpr int kMaxNotes = 1'000;

absl::Status CheckOptions(const v1::ImportOptions& options) {
  spec::Problems problems;
  CheckNewTags("tags", options.tags(), &problems);
  CheckNote(options.note(), &problems);
  if (!text::IsPrintable(options.source(), kMaxSourceBytes)) {
    problems.Add("source", reflect::ShortText(options.source()),
                 absl::StrCat(reflect::Quoted(options.source()), " isn't the name of a tool"),
                 "1 to 40 printable characters");
  }
  if (options.notes_size() > kMaxNotes) {
    problems.Add("notes", absl::StrCat(options.notes_size()), "too many notes", "at most 1,000");
  }
  if (options.has_margin() && !(options.margin() > 0 && std::isfinite(options.margin()))) {
    problems.Add("margin", absl::StrCat(options.margin()),
                 absl::StrCat(options.margin(), " is out of range"), "a number above 0");
  }
  const std::string& id = options.request_id();
  const bool may_be_absent = options.validate_only() && id.empty();
  if (!may_be_absent && !text::IsPrintable(id, lookup::kMaxRequestIdCharacters)) {
    problems.Add("request_id", reflect::ShortText(id), "missing or invalid",
                 absl::StrCat("1 to ", lookup::kMaxRequestIdCharacters, " printable characters"));
  }
  return problems.empty() ? absl::OkStatus() : lookup::InvalidFields(problems.Take());
}

// Receives results, reads them as a grid, and keeps or compares it.
class ImportReactor final : public rpc::PushStream<v1::ImportRequest> {
 public:
  // `context` and `response` outlive the call.
  ImportReactor(Backend* backend, grpc::CallbackServerContext* context,
                v1::ImportResponse* response)
      : PushStream({context, backend->comparing, &backend->uploads, backend->pace,
                    backend->comparing->UserOf(*context)}),
        backend_(backend),
        context_(context),
        response_(response) {}

 private:
  absl::StatusOr<bool> Take(const v1::ImportRequest& request) override {
    if (open_ == request.has_options()) {
      return lookup::InvalidField("options", open_ ? "repeated" : "missing",
                                  "options in the first message only");
    }
    if (request.has_options()) {
      open_ = true;
      options_ = request.options();
      RETURN_IF_ERROR(CheckOptions(options_));
    }
    RETURN_IF_ERROR(results_.Add(request));
    return true;
  }

  absl::Status Complete() override {
    if (!open_) return lookup::InvalidField("options", "missing", "options in the first message");
    ASSIGN_OR_RETURN(const imports::Reading reading, imports::Read(options_, &results_));
    response_->mutable_notes()->CopyFrom(options_.notes());
    response_->mutable_notes()->Add(reading.notes.begin(), reading.notes.end());
    if (options_.validate_only()) return Judge(reading);
    return MakeChange(*backend_, *context_, "Experiments.Import",
                      [&](const storage::Caller& caller, std::string* resource) {
                        const absl::Status kept = Keep(reading, backend_->ViewOf(caller));
                        *resource = response_->experiment();
                        return kept;
                      });
  }

  absl::Status Judge(const imports::Reading& reading) {
    if (!reading.better.has_value()) return imports::NoDirection(reading.metric);
    std::optional<double> margin;
    if (options_.has_margin()) margin = options_.margin();
    ASSIGN_OR_RETURN(results::TrainedGrid grid, imports::GridOf(reading, margin, results_));
    report::CompareOptions compare;
    compare.cancelled = [this] { return ended(); };
    ASSIGN_OR_RETURN(const auto compared, results::CompareLoaded(std::move(grid), compare));
    ASSIGN_OR_RETURN(*response_->mutable_comparison(), ToMessage(compared, options_.gate()));
    return absl::OkStatus();
  }

  // Items become seeds, and are checked as if they were judged.
  absl::Status CheckItems(const imports::Reading& reading) {
    ASSIGN_OR_RETURN(const auto grid, imports::GridOf(reading, std::nullopt, results_));
    if (grid.input.unit != report::Unit::kGroup) return absl::OkStatus();
    return lookup::InvalidField("runs", "the items have groups, which an experiment can't keep",
                                "items without groups, or validate_only, as in `ablate judge`");
  }

  absl::Status Keep(const imports::Reading& reading, const lookup::View& view) {
    if (reading.by_item) {
      RETURN_IF_ERROR(CheckItems(reading));
    }
    storage::NewExperiment record;
    record.owner = view.viewer.user;
    if (options_.private_()) record.private_to = view.viewer.user;
    ASSIGN_OR_RETURN(imports::Imported imported,
                     imports::MakeExperiment(options_, reading, record.private_to, &results_));
    record.name = imported.spec.name();
    record.request_id = options_.request_id();
    record.spec = imported.spec.SerializeAsString();
    record.note = options_.note();
    const std::set<std::string> tags(options_.tags().begin(), options_.tags().end());
    record.tags.assign(tags.begin(), tags.end());
    std::string identity = record.spec;
    for (const spec::ResolvedCell& cell : imported.cells) {
      record.cells.push_back({cell.name, cell.labels, cell.seed, cell.fingerprint});
      absl::StrAppend(&identity, cell.fingerprint);
    }
    record.request_hash = Sha256Hex(identity);
    record.fields = FieldsOf(imported.cells);
    record.runs = std::move(imported.runs);
    record.repeats = [spec = imported.spec](const storage::ExperimentRecord& experiment) {
      return submit::IsRepeatedBy(experiment, spec);
    };
    const auto created = backend_->store->CreateExperiment(record);
    if (absl::IsAlreadyExists(created.status())) {
      return lookup::WithReason(created.status(), "REQUEST_ID_USED");
    }
    RETURN_IF_ERROR(created.status());
    response_->set_experiment(lookup::ExperimentName(created->id));
    response_->set_repeated(created->identical || created->repeated);
    response_->set_runs(static_cast<uint32_t>(record.cells.size()));
    response_->set_reused(response_->repeated() ? response_->runs() : created->reused);
    return absl::OkStatus();
  }

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  v1::ImportResponse* const response_;
  bool open_ = false;
  v1::ImportOptions options_;
  imports::Results results_;
};

}  // namespace

grpc::ServerReadReactor<v1::ImportRequest>* StartImport(Backend* backend,
                                                        grpc::CallbackServerContext* context,
                                                        v1::ImportResponse* response) {
  return (new ImportReactor(backend, context, response))->Begin();
}

}  // namespace ablate::service
