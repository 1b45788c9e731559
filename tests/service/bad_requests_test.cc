// Tests a table of invalid requests, each with its exact answer; none of them may change anything.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/lookup/errors.h"
#include "tests/reflect/field_lists.h"
#include "tests/service/raw_call.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

struct BadRequest {
  std::string name;     // of the case
  std::string method;   // Service/Method in ablate.v1
  std::string request;  // textproto; the only message
  grpc::StatusCode code;
  std::string message;
  std::string more = "";  // textproto that is merged into the request
};

using Table = std::vector<BadRequest>;

constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
constexpr auto kNotFound = grpc::StatusCode::NOT_FOUND;
constexpr char kExperimentForm[] =
    "experiments/ID, an ID, a name or the beginning of an ID (lower-case letters, digits and "
    "hyphens)";
constexpr char kRunForm[] =
    "runs/ID, an ID or the beginning of one (lower-case letters, digits and a dot)";
constexpr char kAnalysisForm[] =
    "analyses/ID, an ID or the beginning of one (lower-case letters and digits)";
constexpr char kNextPage[] =
    "next_page_token of an answer to the same list, while its last row exists";

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

constexpr char kCreate[] = "Experiments/CreateExperiment";

// Returns CreateExperiment of a small experiment with `more` merged into it.
BadRequest Create(const std::string& name, const std::string& more, const std::string& message) {
  return {name,
          kCreate,
          "request_id: \"r\" spec { name: \"e\" base { task { legacy_recall {} } } }",
          kInvalid,
          message,
          more};
}

Table RequestIds() {
  const std::string form = "expected 1 to 64 printable characters, new for each submission";
  return {
      {"NoRequest", kCreate, "", kInvalid,
       "2 problems: request_id: missing; " + form +
           "; spec: missing; expected an experiment, here or as text"},
      {"NoSpec", kCreate, "request_id: \"r\"", kInvalid,
       "spec: missing; expected an experiment, here or as text"},
      Create("RequestIdWithControlCharacter", "request_id: \"a\\nb\"",
             "request_id: \"a\\x0ab\" is invalid; " + form),
      Create("RequestIdTooLong", "request_id: \"" + Repeat("x", 65) + "\"",
             "request_id: \"" + Repeat("x", 65) + "\" is invalid; " + form),
  };
}

Table Specs() {
  const std::string name_form =
      "expected lower-case letters, digits and hyphens, beginning with a letter, 1 to 40 "
      "characters";
  return {
      Create("WidthNotDivisible", "spec { base { model { width: 9 heads: 2 } } }",
             "base.model.heads: heads 2 does not divide width 9; expected heads that divide width, "
             "or attention.head_size"),
      Create("UnknownBetter", "spec { report { better: 7 } }",
             "report.better: 7 is unknown; expected lower or higher"),
      Create("TooManySteps", "spec { base { training { steps: 10000001 } } }",
             "base.training.steps: 10000001 is out of range; expected 0 to 10,000,000"),
      Create("NanRate", "spec { base { training { learning_rate: nan } } }",
             "base.training.learning_rate: nan is out of range; expected 0 to 1,000"),
      Create("UpperCaseName", "spec { name: \"Big\" }",
             "name: \"Big\" isn't a valid name; expected lower-case letters, digits and hyphens, "
             "beginning with a letter, 1 to 40 characters"),
      Create("NameWithEscape", "spec { name: \"a\\033[31m\" }",
             "name: \"a\\x1b[31m\" isn't a valid name; expected lower-case letters, digits and "
             "hyphens, beginning with a letter, 1 to 40 characters"),
      Create("BillionRuns", "spec { seeds { count: 1000000000 } }",
             "seeds.count: 1000000000 is out of range; expected 1 to 10,000"),
      Create("UnknownOverride", "overrides { key: \"model.widht\" value { number_value: 8 } }",
             WithFieldLists("overrides[\"model.widht\"]: unknown field \"widht\" (did you mean "
                            "width?); expected {ModelSpec}")),
      Create("EmptyAxis", "spec { axes { field: \"model.width\" } }",
             "axes[0].values: empty; expected 1 to 1,000"),
      Create("TwoAxesOnOnePath",
             "spec { axes { name: \"a\" field: \"model.width\" values { number_value: 8 } }"
             " axes { name: \"b\" field: \"model.width\" values { number_value: 16 } } }",
             "axes[1].field: model.width is also written by axes[0].field; expected one axis or "
             "override for a path and all below it"),
      Create("NoSuchDataset", "spec { base { task { documents { dataset: \"names\" } } } }",
             "base.task.documents.dataset: there is no data set \"names\"; expected the name of an "
             "uploaded data set"),
      Create("NegativeDeviceTime", "spec { limits { device_time { seconds: -5 } } }",
             "limits.device_time: -5s is out of range; expected 0s to 315576000000s"),
  };
}

Table NameRequests() {
  const auto get = [](const std::string& name, const std::string& value, grpc::StatusCode code,
                      const std::string& message) {
    return BadRequest{name, "Experiments/GetExperiment", absl::StrCat("name: \"", value, "\""),
                      code, message};
  };
  const std::string form = absl::StrCat("; expected ", kExperimentForm);
  return {
      get("EmptyName", "", kInvalid, "name: missing" + form),
      get("OnlyACollection", "experiments/", kInvalid,
          "name: \"experiments/\" isn't a valid experiment name" + form),
      get("NameOfARun", "runs/abc", kInvalid,
          "name: \"runs/abc\" isn't a valid experiment name" + form),
      get("NameWithControlCharacters", "a\\033[2Jb\\n", kInvalid,
          "name: \"a\\x1b[2Jb\\x0a\" isn't a valid experiment name" + form),
      get("NameWithAWildcard", "e%", kInvalid, "name: \"e%\" isn't a valid experiment name" + form),
      get("NameWithAPath", "../../etc", kInvalid,
          "name: \"../../etc\" isn't a valid experiment name" + form),
      get("NameInAnotherAlphabet", "größe", kInvalid,
          "name: \"größe\" isn't a valid experiment name" + form),
      get("NameOfAMegabyte", Repeat("a", 1 << 20), kInvalid,
          "name: \"" + Repeat("a", 197) + "…\" isn't a valid experiment name" + form),
      get("NoSuchExperiment", "experiments/nothing-abcd", kNotFound,
          "there is no experiment \"nothing-abcd\""),
      {"CancelNothing", "Experiments/CancelExperiment", "name: \"e\"", kNotFound,
       "there is no experiment \"e\""},
      {"UpdateNothing", "Experiments/UpdateExperiment", "name: \"e\" archived: true", kNotFound,
       "there is no experiment \"e\""},
      {"DeleteNothing", "Experiments/DeleteExperiment", "name: \"e\"", kNotFound,
       "there is no experiment \"e\""},
      {"WatchNothing", "Experiments/WatchExperiment", "name: \"e\"", kNotFound,
       "there is no experiment \"e\""},
      {"NoSuchRun", "Runs/GetRun", "name: \"runs/abc\"", kNotFound, "there is no run \"abc\""},
      {"RunOfNoName", "Runs/GetRun", "name: \"runs/a b\"", kInvalid,
       absl::StrCat("name: \"runs/a b\" isn't a valid run name; expected ", kRunForm)},
      {"EventsOfNoRun", "Runs/ListRunEvents", "", kInvalid,
       absl::StrCat("run: missing; expected ", kRunForm)},
      {"NoSuchDatasetByName", "Datasets/GetDataset", "name: \"names.txt\"", kNotFound,
       "there is no data set \"names.txt\""},
      {"DatasetOfNoName", "Datasets/GetDataset", "", kInvalid,
       "name: missing; expected datasets/ID, an ID or a display name"},
      {"DownloadOfNoName", "Datasets/DownloadDataset", "", kInvalid,
       "name: missing; expected datasets/ID, an ID or a display name"},
      {"UploadedPartOfNoHash", "Datasets/GetUpload", "", kInvalid,
       "sha256: missing; expected 64 lower-case hex digits"},
      {"DatasetWithAPath", "Datasets/DeleteDataset", "name: \"../names.txt\"", kInvalid,
       "name: \"../names.txt\" isn't a valid data set name; expected datasets/ID or a whole ID"},
      {"DeleteOfNoName", "Experiments/DeleteExperiment", "name: \"e%\"", kInvalid,
       "name: \"e%\" isn't a valid experiment name; expected experiments/ID or a whole ID "
       "(lower-case letters, digits and hyphens)"},
      {"ArtifactsOfNoRun", "Artifacts/ListArtifacts", "run: \"abc\"", kNotFound,
       "there is no run \"abc\""},
      {"ArtifactOfNoName", "Artifacts/ReadArtifact", "name: \"runs/abc\"", kInvalid,
       "name: \"runs/abc\" isn't a valid artifact name; expected runs/{run}/checkpoints/{step}"},
      {"ArtifactOfNegativeStep", "Artifacts/ReadArtifact", "name: \"runs/abc/checkpoints/-1\"",
       kInvalid,
       "name: \"runs/abc/checkpoints/-1\" isn't a valid artifact name; expected "
       "runs/{run}/checkpoints/{step}"},
      {"ArtifactOfHugeStep", "Artifacts/ReadArtifact", "name: \"runs/abc/checkpoints/4294967296\"",
       kInvalid,
       "name: \"runs/abc/checkpoints/4294967296\" isn't a valid artifact name; expected "
       "runs/{run}/checkpoints/{step}"},
      {"ArtifactOfNoRun", "Artifacts/ReadArtifact", "name: \"runs/abc/checkpoints/7\"", kNotFound,
       "there is no run \"abc\""},
  };
}

Table ListRequests() {
  const std::string page = absl::StrCat(" does not belong to this list; expected ", kNextPage);
  return {
      {"HugePage", "Experiments/ListExperiments", "page_size: 1001", kInvalid,
       "page_size: 1001 is too large; expected 0 (the default) to 1000"},
      {"NegativePage", "Datasets/ListDatasets", "page_size: 4294967295", kInvalid,
       "page_size: 4294967295 is too large; expected 0 (the default) to 1000"},
      {"TokenOfNoPage", "Experiments/ListExperiments", "page_token: \"later\"", kInvalid,
       "page_token: \"later\"" + page},
      {"TokenWithControlCharacters", "Datasets/ListDatasets", "page_token: \"\\001\\002\"",
       kInvalid, "page_token: \"\\x01\\x02\"" + page},
      {"TokenOfAnotherList", "Datasets/ListDatasets", "page_token: \"ZXhwZXJpbWVudHN8YQ\"",
       kInvalid, "page_token: \"ZXhwZXJpbWVudHN8YQ\"" + page},
      {"HugePageOfWorkers", "Workers/ListWorkers", "page_size: 1001", kInvalid,
       "page_size: 1001 is too large; expected 0 (the default) to 1000"},
      {"WorkersOfAnotherList", "Workers/ListWorkers", "page_token: \"ZXhwZXJpbWVudHN8YQ\"",
       kInvalid, "page_token: \"ZXhwZXJpbWVudHN8YQ\"" + page},
      {"RunsOfNothing", "Runs/ListRuns", "", kInvalid,
       absl::StrCat("experiment: missing; expected ", kExperimentForm)},
      {"MetricsOfNothing", "Metrics/ListMetrics", "", kInvalid,
       absl::StrCat("parent: missing; expected ", kExperimentForm)},
      {"MetricsOfNoRun", "Metrics/ListMetrics", "parent: \"runs/abc\"", kNotFound,
       "there is no run \"abc\""},
      {"SqlOfNothing", "Metrics/Sql", "", kInvalid,
       "statement: it is empty; expected one SELECT, such as SELECT * FROM experiments"},
      {"SqlOfTooManyBytes", "Metrics/Sql", "statement: \"" + Repeat("-", 64'001) + "\"", kInvalid,
       "statement: it has 64001 bytes; expected at most 64000"},
      {"SqlWithNul", "Metrics/Sql", "statement: \"SELECT 1\\000\"", kInvalid,
       "statement: it has a NUL character; expected text without one"},
      {"SqlThatWrites", "Metrics/Sql", "statement: \"DROP VIEW runs\"", kInvalid,
       "statement: only SELECT is possible; expected one SELECT over the views that `ablate sql "
       "--schema` lists (docs/reference/sql.md)"},
      {"QueryOfNothing", "Metrics/QueryMetrics", "", kInvalid,
       "experiment: neither experiment nor runs is given; expected either experiment or runs"},
      {"QueryOfBoth", "Metrics/QueryMetrics", "experiment: \"e\" runs: \"runs/abc\"", kInvalid,
       "experiment: experiment and runs are both given; expected either experiment or runs"},
      {"QueryOfTooManyRuns", "Metrics/QueryMetrics", Repeat("runs: \"r\" ", 10'001), kInvalid,
       "runs: 10001 entries; expected at most 10000"},
      {"QueryOfTooManyKeys", "Metrics/QueryMetrics", "runs: \"r\" " + Repeat("keys: \"k\" ", 1'001),
       kInvalid, "keys: 1001 entries; expected at most 1000"},
      {"QueryOfNoKey", "Metrics/QueryMetrics", "runs: \"r\" keys: \"a\" keys: \"b\\tc\"", kInvalid,
       "keys[1]: \"b\\x09c\" isn't a valid key; expected a metric such as train/loss"},
      {"QueryOfEmptyKey", "Metrics/QueryMetrics", "runs: \"r\" keys: \"\"", kInvalid,
       "keys[0]: \"\" isn't a valid key; expected a metric such as train/loss"},
      {"QueryBackwards", "Metrics/QueryMetrics", "runs: \"r\" first_step: 5 last_step: 4", kInvalid,
       "first_step: 5 is after last_step; expected at most 4"},
      {"QueryOfTooFewPoints", "Metrics/QueryMetrics", "runs: \"r\" max_points: 3", kInvalid,
       "max_points: 3 is too small; expected 4 to 1000000, or 0 for all points"},
      {"QueryOfTooManyPoints", "Metrics/QueryMetrics", "runs: \"r\" max_points: 4294967295",
       kInvalid, "max_points: 4294967295 is too large; expected 4 to 1000000, or 0 for all points"},
      {"QueryOfNoRun", "Metrics/QueryMetrics", "runs: \"abc\"", kNotFound,
       "there is no run \"abc\""},
      {"ReportOfNothing", "Reports/RenderReport", "", kInvalid,
       "experiments: missing; expected 1 to 20 experiments"},
      {"ReportOfTooMany", "Reports/RenderReport", Repeat("experiments: \"e\" ", 21), kInvalid,
       "experiments: 21 entries; expected at most 20"},
      {"ExportOfNothing", "Reports/Export", "format: csv", kInvalid,
       absl::StrCat("experiment: missing; expected ", kExperimentForm)},
      {"CompareNothing", "Metrics/Compare", "", kInvalid,
       absl::StrCat("experiment: missing; expected ", kExperimentForm)},
      {"CompareNoExperiment", "Metrics/Compare", "experiment: \"abc\"", kNotFound,
       "there is no experiment \"abc\""},
      {"TableOfNoFormat", "Reports/RenderTable", "comparison { experiment: \"abc\" }", kInvalid,
       "format: missing; expected text, csv or latex"},
      {"TableOfUnknownFormat", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: 9", kInvalid,
       "format: 9 isn't a format; expected text, csv or latex"},
      {"TableOfUnknownColumn", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: latex columns: [\"n\", \"median\"]", kInvalid,
       "columns: \"median\" is unknown; expected parameters, chosen, n, diverged, mean, "
       "difference, p_sign_flip, p_holm, effect, wins, correlation, device_seconds, "
       "tokens_per_second"},
      {"TableOfTwoColumnsOfAName", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: text columns: [\"n\", \"n\"]", kInvalid,
       "columns: \"n\" occurs twice; expected each column once"},
      {"TableOfCsvColumns", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: csv columns: \"n\"", kInvalid,
       "columns: csv has columns of its own; expected none, or format text or latex"},
      {"TableOfAnalysisAsCsv", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: csv label: \"ranks\"", kInvalid,
       "format: csv has no table of an analysis; expected text or latex; Export has the numbers of "
       "each run"},
      {"TableOfAnalysisByKey", "Reports/RenderTable",
       "comparison { experiment: \"abc\" key: \"eval/loss\" } format: text label: \"ranks\"",
       kInvalid, "comparison.key: doesn't apply to the table of an analysis; expected none"},
      {"TableOfAnalysisWithColumns", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: text label: \"ranks\" columns: \"n\"", kInvalid,
       "columns: doesn't apply to the table of an analysis; expected none"},
      {"TableOfNoExperiment", "Reports/RenderTable",
       "comparison { experiment: \"abc\" } format: csv", kNotFound,
       "there is no experiment \"abc\""},
      {"QueryOfMalformedRun", "Metrics/QueryMetrics", "runs: \"A\"", kInvalid,
       absl::StrCat("runs[0]: \"A\" isn't a valid run name; expected ", kRunForm)},
  };
}

Table UploadRequests() {
  const std::string sha256 = "sha256: \"" + Repeat("a", 64) + "\" ";
  const std::string allowed =
      "; expected 1 to 100 letters, digits, '.', '_' or '-', starting with a letter or digit";
  const auto upload = [](const std::string& name, const std::string& request,
                         const std::string& message) {
    return BadRequest{name, "Datasets/UploadDataset", request, kInvalid, message};
  };
  return {
      upload("UploadOfNoName", sha256, "display_name: missing" + allowed),
      upload("UploadWithAPath", sha256 + "display_name: \"../etc/passwd\"",
             "display_name: \"../etc/passwd\" isn't a valid file name" + allowed),
      upload("UploadOfAHiddenFile", sha256 + "display_name: \".names\"",
             "display_name: \".names\" isn't a valid file name" + allowed),
      upload("UploadWithALongName", sha256 + "display_name: \"" + Repeat("n", 101) + "\"",
             "display_name: \"" + Repeat("n", 101) + "\" isn't a valid file name" + allowed),
      upload("UploadOfNoHash", "display_name: \"names.txt\"",
             "sha256: missing; expected 64 lower-case hex digits"),
      upload("UploadOfAShortHash", "display_name: \"names.txt\" sha256: \"abc\"",
             "sha256: \"abc\" isn't a SHA-256; expected 64 lower-case hex digits"),
      upload("UploadOfAnotherHash", "display_name: \"names.txt\" data: \"a\\n\" " + sha256,
             absl::StrCat("sha256: ", Repeat("a", 64),
                          " isn't the hash of the 2 received bytes; expected the SHA-256 of all "
                          "data. Upload again")),
      upload("UploadOfNoUtf8",
             "display_name: \"names.txt\" data: \"\\377\\n\" sha256: "
             "\"e4688624e5f1ad0629505e6768e3bb36244f2f3e33e751215afa820334a76ed3\"",
             "data: line 1, column 1: byte 0xff isn't UTF-8; expected UTF-8 text without control "
             "characters other than tabs and line breaks, tagged sentences in CoNLL-U, or a file "
             "of a tokenizer, of tokens or of a program's files"),
  };
}

// Options are checked before the run is looked for.
Table SampleRequests() {
  const auto generate = [](const std::string& name, const std::string& request,
                           const std::string& message) {
    return BadRequest{name, "Models/Generate", request, kInvalid, message};
  };
  const std::string one = "; expected one of run, experiment with cell, and model with tokenizer";
  const std::string several = "run: several of run, experiment and model are given" + one;
  return {
      generate("GenerateOfNothing", "", "run: none of run, experiment and model is given" + one),
      generate("GenerateOfRunAndExperiment", "run: \"runs/r\" experiment: \"experiments/e\"",
               several),
      generate("GenerateOfRunAndModel", "run: \"runs/r\" model: \"models/m\" tokenizer: \"t\"",
               several),
      generate("GenerateOfExperimentAndModel",
               "experiment: \"e\" cell: \"s0\" model: \"m\" tokenizer: \"t\"", several),
      generate("GenerateOfARunsCell", "run: \"runs/r\" cell: \"s0\"",
               "cell: given without experiment" + one),
      generate("GenerateOfAModelsCell", "model: \"m\" tokenizer: \"t\" cell: \"s0\"",
               "cell: given without experiment" + one),
      generate("GenerateOfARunByATokenizer", "run: \"runs/r\" tokenizer: \"t\"",
               "tokenizer: given without model" + one),
      generate("GenerateOfAModelWithoutTokenizer", "model: \"models/m\"",
               "tokenizer: missing; expected the data set of the model's tokenizer. `ablate data "
               "add FOLDER` uploads a folder with its tokenizer.json, or its vocab.json and "
               "merges.txt"),
      generate("GenerateOfAModelsStep", "model: \"m\" tokenizer: \"t\" step: 5",
               "step: 5 has no effect; expected no step for an imported model"),
      {"GenerateOfAnUnknownModel", "Models/Generate", "model: \"m\" tokenizer: \"t\"", kNotFound,
       "there is no model \"m\""},
      generate("GenerateOfAStrangeRun", "run: \"runs/R\"",
               absl::StrCat("run: \"runs/R\" isn't a valid run name; expected ", kRunForm)),
      generate("GenerateOfAStepBeforeTheFirst", "run: \"runs/r\" step: -2",
               "step: -2 is out of range; expected 0 or more, or -1 for the last checkpoint"),
      generate("GenerateNoSamples", "run: \"runs/r\" count: 0",
               "count: 0 is out of range; expected 1 to 1,000"),
      generate("GenerateTooManySamples", "run: \"runs/r\" count: 1001",
               "count: 1001 is out of range; expected 1 to 1,000"),
      generate("GenerateWithANegativeTemperature", "run: \"runs/r\" temperature: -0.1",
               "temperature: -0.1 is out of range; expected 0 to 100"),
      generate("GenerateWithNoTemperature", "run: \"runs/r\" temperature: nan",
               "temperature: nan is out of range; expected 0 to 100"),
      generate("GenerateWithAHugeTopK", "run: \"runs/r\" top_k: 10000001",
               "top_k: 10000001 is out of range; expected 0 (all) to 10,000,000"),
      generate("GenerateWithNoTopP", "run: \"runs/r\" top_p: 0",
               "top_p: 0 is out of range; expected above 0, at most 1"),
      generate("GenerateWithTooMuchTopP", "run: \"runs/r\" top_p: 1.5",
               "top_p: 1.5 is out of range; expected above 0, at most 1"),
      generate("GenerateWithSeveralMistakes", "run: \"runs/r\" count: 0 top_p: 2",
               "2 problems: count: 0 is out of range; expected 1 to 1,000; top_p: 2 is out of "
               "range; expected above 0, at most 1"),
      {"GenerateOfAnUnknownRun", "Models/Generate", "run: \"runs/r\"", kNotFound,
       "there is no run \"r\""},
      {"GenerateOfAnUnknownExperiment", "Models/Generate", "experiment: \"e\" cell: \"s0\"",
       kNotFound, "there is no experiment \"e\""},
      Create("SamplesOfNumbers", "spec { analyses { samples {} } }",
             "analyses[0].samples: the tokens of legacy_recall are numbers, not text; expected a "
             "documents or text task"),
  };
}

// Requests to create one are in analysis_requests_test.cc.
Table AnalysisRequests() {
  const std::string create = "Analyses/CreateAnalysis";
  return {
      {"AnalysisOfNoKind", create, "", kInvalid,
       WithFieldLists("analysis: no kind is given; expected {AnalysisKind}")},
      {"AnalysisOfNothing", create, "analysis { spectrum {} }", kInvalid,
       "subjects: 0 given; expected 1 for spectrum"},
      {"AnalysisOfAStrangeRun", create, "analysis { spectrum {} } subjects { run: \"runs/R\" }",
       kInvalid,
       absl::StrCat("subjects[0].run: \"runs/R\" isn't a valid run name; expected ", kRunForm)},
      {"AnalysisOfAnUnknownRun", create, "analysis { spectrum {} } subjects { run: \"runs/r\" }",
       kNotFound, "there is no run \"r\""},
      {"AnalysisOfAnUnknownExperiment", create,
       "analysis { spectrum {} } subjects { experiment: \"e\" cell: \"s0\" }", kNotFound,
       "there is no experiment \"e\""},
      {"AnalysisWithSeveralMistakes", create,
       "analysis { norm_response { size: 0 deviation: -1 } } inputs { tokens: 3 }", kInvalid,
       "3 problems: analysis.norm_response.deviation: -1 is out of range; expected 0 to "
       "1,000,000,000; analysis.norm_response.size: 0 is out of range; expected 1 to 1,000,000; "
       "inputs.tokens: norm_response takes no inputs; expected none"},
      {"GetNoAnalysis", "Analyses/GetAnalysis", "", kInvalid,
       absl::StrCat("name: missing; expected ", kAnalysisForm)},
      {"GetAnalysisOfAnotherCollection", "Analyses/GetAnalysis", "name: \"runs/abc\"", kInvalid,
       absl::StrCat("name: \"runs/abc\" isn't a valid analysis name; expected ", kAnalysisForm)},
      {"NoSuchAnalysis", "Analyses/GetAnalysis", "name: \"analyses/abc\"", kNotFound,
       "there is no analysis \"abc\""},
      {"WatchNoAnalysis", "Analyses/WatchAnalysis", "name: \"abc\"", kNotFound,
       "there is no analysis \"abc\""},
      {"WatchAnalysisOfAnotherCollection", "Analyses/WatchAnalysis", "name: \"runs/abc\"", kInvalid,
       absl::StrCat("name: \"runs/abc\" isn't a valid analysis name; expected ", kAnalysisForm)},
      {"CancelNoAnalysis", "Analyses/CancelAnalysis", "name: \"abc\"", kNotFound,
       "there is no analysis \"abc\""},
      {"CancelOfNoAnalysis", "Analyses/CancelAnalysis", "name: \"a%\"", kInvalid,
       "name: \"a%\" isn't a valid analysis name; expected analyses/ID or a whole ID (lower-case "
       "letters and digits)"},
      {"ArraysOfNoAnalysis", "Analyses/ReadAnalysisArrays", "name: \"abc\"", kNotFound,
       "there is no analysis \"abc\""},
      {"HugePageOfAnalyses", "Analyses/ListAnalyses", "page_size: 1001", kInvalid,
       "page_size: 1001 is too large; expected 0 (the default) to 1000"},
      {"AnalysesOfAnotherList", "Analyses/ListAnalyses", "page_token: \"ZXhwZXJpbWVudHN8YQ\"",
       kInvalid,
       absl::StrCat("page_token: \"ZXhwZXJpbWVudHN8YQ\" does not belong to this list; expected ",
                    kNextPage)},
      {"AnalysesOfNoRun", "Analyses/ListAnalyses", "parent: \"runs/abc\"", kNotFound,
       "there is no run \"abc\""},
      {"AnalysesOfNoExperiment", "Analyses/ListAnalyses", "parent: \"abc\"", kNotFound,
       "there is no experiment \"abc\""},
  };
}

std::vector<BadRequest> BadRequests() {
  Table all;
  for (const Table& table : {RequestIds(), Specs(), NameRequests(), ListRequests(),
                             UploadRequests(), SampleRequests(), AnalysisRequests()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

class BadRequestTest : public ServiceTest, public testing::WithParamInterface<BadRequest> {};

// Returns the bytes of a request of the method.
std::string Encode(const std::string& method, const std::string& text) {
  const size_t slash = method.find('/');
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  const auto* service = pool->FindServiceByName("ablate.v1." + method.substr(0, slash));
  const auto* input = service->FindMethodByName(method.substr(slash + 1))->input_type();
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(input)->New());
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, message.get())) << text;
  return message->SerializeAsString();
}

TEST_P(BadRequestTest, IsRefusedAndChangesNothing) {
  const BadRequest& bad = GetParam();
  const uint64_t before = store().change_number();
  const std::string bytes = Encode(bad.method, bad.request) + Encode(bad.method, bad.more);
  const RawAnswer answer = RawCall(channel_, "/ablate.v1." + bad.method, {bytes});
  EXPECT_EQ(answer.status.error_code(), bad.code);
  EXPECT_EQ(answer.status.error_message(), bad.message);
  EXPECT_TRUE(answer.messages.empty());
  EXPECT_FALSE(answer.status.error_details().empty());
  EXPECT_EQ(store().change_number(), before);
  EXPECT_TRUE(store().ListExperiments(storage::kServer, {}, "", 10)->empty());
  EXPECT_TRUE(store().ListDatasets(storage::kServer, "", 10)->empty());
  EXPECT_TRUE(store().ListAnalyses(storage::kServer, "", 10)->empty());
}

// A method that is declared and has no handler answers an empty request as if it were malformed.
TEST_F(ServiceTest, HasAHandlerForEveryMethodThatIsDeclared) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  int methods = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ABLATE_SOURCE "/proto/ablate/v1")) {
    const auto* file = pool->FindFileByName("ablate/v1/" + entry.path().filename().string());
    ASSERT_NE(file, nullptr) << entry.path();
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j, ++methods) {
        const auto* method = file->service(i)->method(j);
        const RawAnswer answer = RawCall(
            channel_, absl::StrCat("/", method->service()->full_name(), "/", method->name()), {""});
        EXPECT_NE(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method->name();
        EXPECT_NE(answer.status.error_message(), lookup::MalformedRequest().message())
            << method->name();
      }
    }
  }
  EXPECT_GT(methods, 20);
}

INSTANTIATE_TEST_SUITE_P(Table, BadRequestTest, testing::ValuesIn(BadRequests()),
                         [](const auto& bad) { return bad.param.name; });

// Tests bytes that aren't a message of the type, or hold invalid text.
class BadBytesTest : public ServiceTest {
 protected:
  void ExpectRefused(const std::string& method, const std::string& bytes, grpc::StatusCode code) {
    const RawAnswer answer = RawCall(channel_, "/ablate.v1." + method, {bytes});
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_TRUE(store().ListExperiments(storage::kServer, {}, "", 10)->empty());
  }
};

TEST_F(BadBytesTest, AreRefusedWhenTheyAreNoMessage) {
  for (const char* method : {"Experiments/CreateExperiment", "Experiments/GetExperiment",
                             "Metrics/QueryMetrics", "Datasets/UploadDataset"}) {
    ExpectRefused(method, "\xff\xff\xff\xff", kInvalid);
  }
}

TEST_F(BadBytesTest, AreRefusedWhenANameIsNoUtf8) {
  ExpectRefused("Experiments/GetExperiment", "\x0a\x02\xff\xfe", kInvalid);
}

TEST_F(BadBytesTest, AreRefusedWhenTheyAreTooMany) {
  ExpectRefused("Experiments/GetExperiment", std::string(5 << 20, 'x'),
                grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(BadBytesTest, AreRefusedWhenAnEnumHasNoSuchNumber) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  request.mutable_spec()->mutable_base()->mutable_training()->set_optimizer(
      static_cast<v1::Optimizer::Value>(77));
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), kInvalid);
  EXPECT_EQ(FieldOf(status), "base.training.optimizer");
  request.mutable_spec()->mutable_base()->mutable_training()->clear_optimizer();
  request.mutable_spec()->mutable_limits()->set_priority(static_cast<v1::Priority::Value>(-5));
  EXPECT_EQ(FieldOf(TryCreate(request)), "limits.priority");
  EXPECT_TRUE(store().ListExperiments(storage::kServer, {}, "", 10)->empty());
}

// A field of `bytes` with its tag and length.
std::string Delimited(char tag, const std::string& bytes) {
  std::string field(1, tag);
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) field.push_back(static_cast<char>(0x80 | (size & 0x7f)));
  field.push_back(static_cast<char>(size));
  return field + bytes;
}

TEST_F(BadBytesTest, AreRefusedWhenTheyAreNestedTooDeeply) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  // google.protobuf.Value: field 4 is a boolean, 6 a list, and a list's field 1 its values.
  std::string value = "\x20\x01";
  for (int depth = 0; depth < 120; ++depth) value = Delimited(0x32, Delimited(0x0a, value));
  // An entry of the map of overrides, field 3.
  const std::string entry = Delimited(0x0a, "training.steps") + Delimited(0x12, value);
  ExpectRefused("Experiments/CreateExperiment",
                request.SerializeAsString() + Delimited(0x1a, entry), kInvalid);
}

}  // namespace
}  // namespace ablate::service
