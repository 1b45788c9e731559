#include "client/submit/submission.h"

#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/submit/dataset_files.h"

namespace ablate::client {
namespace {

// 128 random bits in hex.
std::string RandomId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&id, "%08x", static_cast<uint32_t>(random()));
  return id;
}

// Whether `field` is `path` or lies below it.
bool IsWithin(absl::string_view field, absl::string_view path) {
  if (!absl::ConsumePrefix(&field, path)) return false;
  return field.empty() || field[0] == '.' || field[0] == '[';
}

// An option, and the field that it gives a value.
struct Origin {
  std::string option;  // empty: no option
  std::string field;
};

// The option that gave `field` its value, if one did.
Origin OriginOf(absl::string_view field, const Submission& submission) {
  if (submission.seeds_given && IsWithin(field, "seeds")) return {"--seeds", "seeds"};
  for (const auto& [path, value] : submission.overrides) {
    for (std::string given : {absl::StrCat("base.", path), absl::StrCat("overrides.", path),
                              absl::StrCat("overrides[\"", path, "\"]")}) {
      if (IsWithin(field, given)) return {absl::StrCat("--set ", path), std::move(given)};
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<Submission> ReadSubmission(const SubmitOptions& options, std::istream& in) {
  Submission submission;
  absl::StatusOr<v1::Seeds> seeds = v1::Seeds();
  if (!options.seeds.empty()) seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();
  absl::StatusOr<Overrides> overrides = ParseOverrides(options.set);
  if (!overrides.ok()) return overrides.status();
  submission.overrides = *std::move(overrides);
  submission.file = LoadExperimentFile(options.file, in);
  CheckOverrides(submission.overrides, &submission.file.problems);
  submission.seeds_given = !options.seeds.empty();
  if (submission.seeds_given) *submission.file.spec.mutable_seeds() = *std::move(seeds);
  SortByPosition(&submission.file.problems);
  return submission;
}

absl::Status UploadDatasets(Connection* connection, const Context& context,
                            const SubmitOptions& options, Submission* submission) {
  return ReplaceDatasetPaths(
      &submission->file, &submission->overrides, options.data,
      [&](const std::string& path) -> absl::StatusOr<std::string> {
        const absl::StatusOr<Upload> upload = UploadFile(
            connection, path,
            options.is_private ? Audience::kOurselves : Audience::kEverybodyUnlessPrivate,
            [&](uint64_t bytes, bool is_private) {
              context.console.Note(absl::StrCat("uploading ", path, " (", Bytes(bytes), ") as a ",
                                                is_private ? "private" : "public", " data set"));
            });
        if (!upload.ok()) return upload.status();
        return upload->dataset.name();
      });
}

v1::CreateExperimentRequest MakeRequest(const Submission& submission,
                                        const SubmitOptions& options) {
  v1::CreateExperimentRequest request;
  if (!options.dry_run) request.set_request_id(RandomId());
  *request.mutable_spec() = submission.file.spec;
  for (const auto& [path, value] : submission.overrides) {
    (*request.mutable_overrides())[path] = value;
  }
  request.set_fresh(options.fresh);
  request.set_private_(options.is_private);
  request.set_validate_only(options.dry_run);
  return request;
}

std::vector<Diagnostic> Locate(const google::protobuf::RepeatedPtrField<v1::Problem>& problems,
                               const Submission& submission) {
  std::vector<Diagnostic> located;
  for (const v1::Problem& problem : problems) {
    absl::string_view field = problem.field();
    absl::ConsumePrefix(&field, "spec.");
    const Origin origin = OriginOf(field, submission);
    located.push_back(
        {submission.file.positions.Find(field),
         origin.option.empty() ? problem.message() : WithoutField(problem.message(), origin.field),
         origin.option});
  }
  SortByPosition(&located);
  return located;
}

}  // namespace ablate::client
