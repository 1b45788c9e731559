// Tests privacy on a shared server: in every method, private objects don't exist for others.
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/sha256.h"
#include "server/lookup/page.h"
#include "server/rpc/authenticator.h"
#include "tests/engine/gpt2_files.h"
#include "tests/service/model_upload.h"
#include "tests/service/raw_call.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kText[] = "anna\nbob\ncarla\ndora\n";

constexpr char kData[] = "secret.txt";

// Returns a training of ten steps on a data set, as a textproto.
std::string SpecOn(const std::string& dataset, const std::string& name = "mine") {
  return absl::StrCat("spec { name: '", name, "' base { task { documents { dataset: '", dataset,
                      "' held_out: 1 } } model { layers: 1 width: 8 heads: 2 context: 8 } training "
                      "{ steps: 10 batch: 2 } } seeds { list: 0 } }");
}

// Returns an experiment that begins with a model, as a textproto.
std::string SpecFrom(const std::string& model) {
  return absl::StrCat("spec { name: 'from' base { model_from: '", model,
                      "' task { text { dataset: 'no-such-text' } } } seeds { list: 0 } }");
}

// Requests of a method, as textprotos. One that names $experiment, $run, … must be answered as if
// that did not exist; the answer to one that names nothing must not contain it.
struct Probes {
  std::string method;
  std::vector<std::string> requests;
};

// Returns probes for every method that clients call; a missing one fails the test. Methods that
// change the objects of others are last.
std::vector<Probes> AllProbes() {
  const std::string by_cell = "experiment: '$experiment' cell: 's0'";
  const std::string spectrum = "analysis { spectrum {} } ";
  return {
      {"Experiments.CreateExperiment",
       {"validate_only: true " + SpecOn("$data"), "validate_only: true " + SpecOn("$file"),
        "validate_only: true private: true " + SpecOn("$data"),
        "request_id: 'another' " + SpecOn("$data"),
        "request_id: 'private' private: true " + SpecOn("$data"),
        "validate_only: true private: true " + SpecFrom("$model"),
        "validate_only: true private: true " + SpecFrom("$experiment/s0"),
        "validate_only: true extends: '$experiment' " + SpecOn("$data"),
        "validate_only: true find_identical: true " + SpecOn("$data"),
        "validate_only: true text: 'name: a\\nbase: {task: {documents: {dataset: $data}}}'"}},
      {"Experiments.Import", {"options { validate_only: true source: 'x' }"}},
      {"Experiments.GetExperiment", {"name: '$experiment'", "name: '$title'"}},
      {"Experiments.ListExperiments",
       {"", "owner: 'mia'", "owner: 'users/mia'", "page_token: '$after_experiment'"}},
      {"Experiments.DiffExperiments",
       {"left: '$experiment' right: '$public'", "left: '$public' right: '$experiment/s0'",
        "left: '$run' right: '$public'"}},
      {"Experiments.WatchExperiment",
       {"name: '$experiment'", "name: '$experiment' snapshots: true"}},
      {"Runs.GetRun", {"name: '$run'"}},
      {"Runs.ListRuns",
       {"experiment: '$experiment'", "experiment: '$experiment' page_token: 'x'",
        "experiment: '$experiment' filter: 'seed >= 0'", "experiment: '$experiment' part: 's0'",
        "experiment: 'experiments/-'",
        "experiment: 'experiments/-' filter: 'seed >= 0' order_by: '-seed' columns: 'experiment'"}},
      {"Runs.ListRunEvents", {"run: '$run'"}},
      {"Runs.ReadRunLog", {"run: '$run'", "run: '$run' position: 5"}},
      {"Metrics.ListMetrics",
       {"parent: '$run'", "parent: '$experiment'", "parent: '$experiment' cell: 's0'",
        "parent: '$run' page_token: 'x'"}},
      {"Metrics.QueryMetrics", {"runs: '$run'", "experiment: '$experiment'", by_cell}},
      {"Metrics.Sql",
       {"statement: 'SELECT * FROM experiments'", "statement: 'SELECT * FROM cells'",
        "statement: 'SELECT * FROM runs'", "statement: 'SELECT * FROM settings'",
        "statement: 'SELECT * FROM metrics'", "statement: 'SELECT * FROM analyses'",
        "statement: \"SELECT * FROM points('$run', 'train/loss')\""}},
      {"Metrics.Compare",
       {"experiment: '$experiment' key: 'train/loss'",
        "experiment: '$experiment/s0' key: 'train/loss'",
        "experiment: 'other' others: '$experiment' key: 'train/loss'"}},
      {"Reports.RenderTable",
       {"comparison { experiment: '$experiment' key: 'train/loss' } format: csv"}},
      {"Reports.RenderFigure",
       {"comparison { experiment: '$experiment' } kind: 'loss' format: svg"}},
      {"Reports.RenderReport", {"experiments: '$experiment' key: 'train/loss'"}},
      {"Reports.Export", {"experiment: '$experiment' format: csv"}},
      {"Analyses.CreateAnalysis",
       {spectrum + "subjects { run: '$run' }", spectrum + "subjects { " + by_cell + " }",
        "validate_only: true " + spectrum + "subjects { run: '$run' }",
        "validate_only: true analysis { attention {} } subjects { run: '$public' } inputs { "
        "dataset: '$data' }"}},
      {"Analyses.GetAnalysis", {"name: '$analysis'"}},
      {"Analyses.ListAnalyses",
       {"", "parent: '$run'", "parent: '$experiment'", "page_token: '$after_analysis'"}},
      {"Analyses.WatchAnalysis", {"name: '$analysis'"}},
      {"Analyses.ReadAnalysisArrays", {"name: '$analysis'"}},
      {"Artifacts.ListArtifacts", {"run: '$run'"}},
      {"Artifacts.ReadArtifact", {"name: '$run/checkpoints/10'"}},
      {"Models.Generate",
       {"run: '$run'", by_cell, "model: '$model' tokenizer: '$data'",
        "model: '$called' tokenizer: 'open-tokenizer'", "model: 'open' tokenizer: '$data'",
        "model: 'open' tokenizer: '$file'"}},
      {"Models.GetModel", {"name: '$model'", "name: 'models/$called'"}},
      {"Models.ListModels", {"", "page_token: '$after_model'"}},
      {"Models.ExportModel", {"name: '$model'", "name: '$run'", by_cell}},
      {"Models.UploadModel",
       {"name: '$called' files: 'config.json' files: 'model.safetensors'",
        "name: '$called' files: 'model.safetensors' file_bytes: 0 sha256: '$sha256'"}},
      {"Datasets.GetDataset",
       {"name: '$data'", "name: '$data' verify: true", "name: '$file'",
        "sha256: '$sha256' private: true"}},
      {"Datasets.GetUpload", {"sha256: '$sha256'"}},
      {"Datasets.DownloadDataset", {"name: '$data'", "name: '$file'"}},
      {"Datasets.UploadDataset",
       {"display_name: 'mine.txt' sha256: '$sha256'",
        "display_name: 'mine.txt' sha256: '$sha256' private: true"}},
      {"Datasets.ListDatasets", {"", "page_token: '$after_data'"}},
      {"Workers.ListWorkers", {"", "page_token: 'x'"}},
      {"Queue.ListQueue", {""}},
      {"Admin.WhoAmI", {""}},
      {"Admin.InitializeSharing", {""}},
      {"Admin.RenewCertificate", {""}},
      {"Admin.CheckStore", {""}},
      {"Admin.CreateUser", {""}},
      {"Admin.ListUsers", {""}},
      {"Admin.SetQuota", {""}},
      {"Admin.UpdateUser", {""}},
      {"Admin.DeleteUser", {""}},
      {"Admin.CreateToken", {""}},
      {"Admin.ListTokens", {""}},
      {"Admin.RevokeToken", {""}},
      {"Admin.ListAudit", {""}},
      {"Analyses.CancelAnalysis", {"name: '$analysis'"}},
      {"Analyses.DeleteAnalysis", {"name: '$analysis'"}},
      {"Experiments.CancelExperiment", {"name: '$experiment'"}},
      {"Experiments.UpdateExperiment", {"name: '$experiment' archived: true"}},
      {"Experiments.DeleteExperiment", {"name: '$experiment'"}},
      {"Datasets.DeleteDataset", {"name: '$data'"}},
      {"Models.DeleteModel", {"name: '$model'"}},
  };
}

// Returns true if an admin gets an answer and nothing changes. A name of the owner's, or a hash, is
// available to the owner only.
bool IsForAdmins(const Probes& probes, const std::string& request) {
  const std::string path =
      absl::StrCat("/ablate.v1.", absl::StrReplaceAll(probes.method, {{".", "/"}}));
  const auto rule = rpc::RuleOf(path);
  if (!rule.ok() || !rpc::CheckRole(*rule, Role::kReader, path).ok()) return false;
  return !absl::StrContains(request, "$file") && !absl::StrContains(request, "$sha256") &&
         !absl::StrContains(request, "$called");
}

// Values of the placeholders.
using Names = std::vector<std::pair<std::string, std::string>>;

Names NamesOf(const std::string& experiment, const std::string& run, const std::string& analysis,
              const std::string& data, const std::string& file, const std::string& sha256,
              const std::string& model) {
  const auto id = [](const std::string& name) { return name.substr(name.find('/') + 1); };
  return {{"$after_experiment", lookup::PageToken("experiments", id(experiment))},
          {"$after_analysis", lookup::PageToken("analyses of ", id(analysis))},
          {"$after_data", lookup::PageToken("datasets", id(data))},
          {"$after_model", lookup::PageToken("models", id(model))},
          {"$model", model},
          {"$called", id(model).substr(0, id(model).find('@'))},
          {"$experiment", experiment},
          {"$analysis", analysis},
          {"$sha256", sha256},
          {"$title", file.substr(0, file.find('.'))},
          {"$data", data},
          {"$file", file},
          {"$run", run}};
}

// Returns an answer with placeholders in place of names and IDs.
RawAnswer WithoutNames(RawAnswer answer, const Names& names) {
  std::vector<std::pair<std::string, std::string>> replaced;
  for (const auto& [placeholder, name] : names) {
    replaced.emplace_back(name, placeholder);
    if (absl::StrContains(name, '/')) replaced.emplace_back(name.substr(name.find('/') + 1), "$ID");
  }
  for (std::string& message : answer.messages) message = absl::StrReplaceAll(message, replaced);
  answer.status = {answer.status.error_code(),
                   absl::StrReplaceAll(answer.status.error_message(), replaced)};
  return answer;
}

// Returns true if WithoutNames replaced a name. A length in a message may look like '$'.
bool HasPlaceholder(const std::string& message, const Names& names) {
  return absl::StrContains(message, "$ID") ||
         std::any_of(names.begin(), names.end(), [&message](const auto& name) {
           return absl::StrContains(message, name.first);
         });
}

class PrivateTest : public SharingTest {
 protected:
  PrivateTest()
      : mia_(SecretOf("mia", Role::kMember)),
        bob_(SecretOf("bob", Role::kMember)),
        rex_(SecretOf("rex", Role::kReader)) {}

  RawAnswer CallWith(const std::string& secret, const std::string& method,
                     const std::string& text) {
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    const auto* found = pool->FindMethodByName("ablate.v1." + method);
    if (found == nullptr) return {};
    const std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(found->input_type())
            ->New());
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, request.get())) << text;
    return RawCall(public_channel_, PathOf(*found), {request->SerializeAsString()},
                   {Bearer(secret)});
  }
  // Returns the answer to a call that must succeed.
  template <class Response>
  Response Expect(const std::string& secret, const std::string& method, const std::string& text) {
    const RawAnswer answer = CallWith(secret, method, text);
    EXPECT_TRUE(answer.status.ok()) << method << ": " << answer.status.error_message();
    Response response;
    if (!answer.messages.empty()) response.ParseFromString(answer.messages.back());
    return response;
  }
  v1::Dataset UploadAs(const std::string& secret, const std::string& name, const std::string& text,
                       bool is_private, bool for_experiment = false) {
    v1::UploadDatasetRequest request;
    request.set_display_name(name);
    request.set_sha256(Sha256Hex(text));
    request.set_data(text);
    request.set_private_(is_private);
    request.set_for_experiment(for_experiment);
    const RawAnswer answer = RawCall(public_channel_, "/ablate.v1.Datasets/UploadDataset",
                                     {request.SerializeAsString()}, {Bearer(secret)});
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    v1::Dataset dataset;
    if (!answer.messages.empty()) dataset.ParseFromString(answer.messages[0]);
    return dataset;
  }
  // Models of different seeds differ.
  v1::Model AddModelAs(const std::string& secret, const std::string& name, bool is_private,
                       int seed = 1) {
    engine::StoredModel stored = engine::TinyGpt2();
    stored.tensors["transformer.wpe.weight"] = engine::Numbers({6, 4}, seed);
    std::vector<v1::UploadModelRequest> upload = MessagesOf(name, FilesOf(stored));
    upload[0].set_private_(is_private);
    std::vector<std::string> messages;
    for (const auto& message : upload) messages.push_back(message.SerializeAsString());
    const RawAnswer answer =
        RawCall(public_channel_, "/ablate.v1.Models/UploadModel", messages, {Bearer(secret)});
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    v1::Model model;
    if (!answer.messages.empty()) model.ParseFromString(answer.messages[0]);
    return model;
  }
  // Queued, not trained.
  v1::CreateExperimentResponse SubmitAs(const std::string& secret, const std::string& dataset,
                                        bool is_private, const std::string& name = "secret") {
    return Expect<v1::CreateExperimentResponse>(
        secret, "Experiments.CreateExperiment",
        absl::StrCat("request_id: 'r", ++submissions_,
                     "' private: ", is_private ? "true " : "false ", SpecOn(dataset, name)));
  }
  std::string RunOf(const std::string& secret, const v1::CreateExperimentResponse& created) {
    const auto rows = Expect<v1::ListRunsResponse>(
        secret, "Runs.ListRuns", absl::StrCat("experiment: '", created.experiment().name(), "'"));
    return rows.rows().empty() ? "" : rows.rows(0).run();
  }
  // Makes mia's experiment, which has ended, with all possible contents.
  Names MakeSecret() {
    const v1::Dataset data = UploadAs(mia_, kData, kText, true);
    EXPECT_TRUE(data.private_());
    const auto created = SubmitAs(mia_, data.name(), true);
    EXPECT_TRUE(created.experiment().private_());
    const auto worker = MakeWorker();
    TrainAll(worker.get(), 1);
    const std::string run = RunOf(mia_, created);
    const std::string analysis =
        Expect<v1::CreateAnalysisResponse>(
            mia_, "Analyses.CreateAnalysis",
            absl::StrCat("analysis { spectrum {} } subjects { run: '", run, "' }"))
            .analysis()
            .name();
    const auto analyst = MakeAnalyst();
    analyst->ComputationResult(analyst->NextAnalysis(), v1::Analysis(), "arrays");
    const auto done = Expect<v1::Analysis>(mia_, "Analyses.WatchAnalysis",
                                           absl::StrCat("name: '", analysis, "'"));
    EXPECT_EQ(done.state(), v1::AnalysisState::DONE);
    EXPECT_TRUE(done.private_());
    const v1::Model model = AddModelAs(mia_, "secret-model", true);
    EXPECT_EQ(model.name(), "models/secret-model@mia");
    EXPECT_TRUE(model.private_());
    return NamesOf(created.experiment().name(), run, analysis, data.name(), kData, data.sha256(),
                   model.name());
  }
  // Returns names of the same form and length for nothing.
  static Names MadeUp() {
    return NamesOf("experiments/sacred-2222", "runs/aaaaaaaaaaaa", "analyses/bbbbbbbbbbbb",
                   "datasets/sacred-p00000", "sacred.txt", std::string(64, '0'),
                   "models/sacred-model@mia");
  }

  const std::string mia_, bob_, rex_;
  int submissions_ = 0;
};

// Fields of requests that can't name anything private.
const std::set<std::string> kNamesOfNothing = {
    "request_id",  "key",  "keys",   "by",      "label",   "display_name", "token",
    "prompt",      "kind", "output", "stop",    "columns", "tags",         "add_tags",
    "remove_tags", "tag",  "note",   "changes", "new_name"};

bool IsProbed(const google::protobuf::MethodDescriptor& method, const std::string& field) {
  for (const Probes& probes : AllProbes()) {
    if (probes.method != absl::StrCat(method.service()->name(), ".", method.name())) continue;
    for (const std::string& request : probes.requests) {
      if (absl::StrContains(request, absl::StrCat(field, ": '"))) return true;
    }
  }
  return false;
}

TEST(PrivateProbesTest, AreOfEveryMethod) {
  std::set<std::string> probed;
  for (const Probes& probes : AllProbes()) probed.insert(probes.method);
  for (const auto* method : Methods()) {
    if (method->file()->package() != "ablate.v1") continue;  // workers are shown what they train
    EXPECT_EQ(probed.count(absl::StrCat(method->service()->name(), ".", method->name())), 1u)
        << method->full_name() << " needs a row in AllProbes";
    for (int i = 0; i < method->input_type()->field_count(); ++i) {
      const auto& field = *method->input_type()->field(i);
      const bool may_name = field.type() == google::protobuf::FieldDescriptor::TYPE_STRING &&
                            method->service()->name() != "Admin" &&
                            kNamesOfNothing.count(field.name()) == 0;
      EXPECT_TRUE(!may_name || IsProbed(*method, field.name()))
          << field.full_name() << " needs a request in AllProbes, or names nothing";
    }
  }
}

TEST_F(PrivateTest, IsNotThereForOthersInAnyMethod) {
  const std::string other = CreateAs(bob_, "other");
  EXPECT_EQ(AddModelAs(bob_, "open", false, 2).name(), "models/open");
  {
    const auto worker = MakeWorker();
    TrainAll(worker.get(), 2);
  }
  const std::string open_run = Rows(other)[0].run();
  const Names secret = MakeSecret(), made_up = MadeUp();
  const auto ask = [&](const std::string& as, const Probes& probes, const std::string& request,
                       const Names& names) {
    const std::string text = absl::StrReplaceAll(request, {{"$public", open_run}});
    return CallWith(as, probes.method, absl::StrReplaceAll(text, names));
  };
  for (const Probes& probes : AllProbes()) {
    for (const std::string& request : probes.requests) {
      SCOPED_TRACE(absl::StrCat(probes.method, " ", request));
      for (const std::string& as : {bob_, rex_}) {
        const RawAnswer answer = WithoutNames(ask(as, probes, request, secret), secret);
        if (absl::StrContains(request, '$')) {
          const RawAnswer of_nothing = WithoutNames(ask(as, probes, request, made_up), made_up);
          EXPECT_EQ(answer.status.error_code(), of_nothing.status.error_code());
          EXPECT_EQ(answer.status.error_message(), of_nothing.status.error_message());
          EXPECT_EQ(answer.messages, of_nothing.messages);
        } else {
          for (const std::string& message : answer.messages) {
            EXPECT_FALSE(HasPlaceholder(message, secret)) << message;
          }
        }
      }
    }
  }
  // Checks that the requests are valid: the owner, and admins, get answers.
  for (const std::string& as : {root_.token(), mia_}) {
    for (const Probes& probes : AllProbes()) {
      if (probes.method == "Models.Generate") continue;  // it would wait for a worker
      for (const std::string& request : probes.requests) {
        if (!absl::StrContains(request, '$') || (as != mia_ && !IsForAdmins(probes, request))) {
          continue;
        }
        SCOPED_TRACE(absl::StrCat(probes.method, " ", request));
        const RawAnswer answer = ask(as, probes, request, secret);
        EXPECT_NE(answer.status.error_code(), grpc::StatusCode::NOT_FOUND)
            << answer.status.error_message();
      }
    }
  }
}

TEST_F(PrivateTest, SharesRunsWithNobody) {
  const v1::Dataset open = UploadAs(mia_, "open.txt", "anna\nbob\ncarla\n", false);
  const std::string name = open.name();
  const auto mias = SubmitAs(mia_, name, true), again = SubmitAs(mia_, name, true, "again");
  EXPECT_EQ(mias.reused(), 0u);
  EXPECT_EQ(again.reused(), 1u) << "with her other private ones";
  const auto hers = SubmitAs(mia_, name, false), bobs = SubmitAs(bob_, name, false);
  EXPECT_EQ(hers.reused(), 0u) << "her own is public";
  EXPECT_EQ(bobs.reused(), 1u);
  const auto secret = SubmitAs(bob_, name, true);
  EXPECT_EQ(secret.reused(), 0u);
  EXPECT_THAT(secret.differs_only_in_evaluation(), IsEmpty());
  const std::set<std::string> runs = {RunOf(mia_, mias), RunOf(mia_, hers), RunOf(bob_, secret)};
  EXPECT_THAT(runs, SizeIs(3));
  EXPECT_EQ(RunOf(bob_, bobs), RunOf(mia_, hers));
}

TEST_F(PrivateTest, HidesTheRunsThatAWorkerHolds) {
  SubmitAs(mia_, UploadAs(mia_, kData, kText, true).name(), true);
  const auto worker = MakeWorker();
  worker->Started(worker->NextRun());
  worker->Settle();
  const auto bobs = Expect<v1::ListWorkersResponse>(bob_, "Workers.ListWorkers", "");
  ASSERT_THAT(bobs.workers(), SizeIs(1));
  EXPECT_THAT(bobs.workers(0).runs(), IsEmpty());
  EXPECT_EQ(bobs.workers(0).hidden_runs(), 1u);
  const auto mias = Expect<v1::ListWorkersResponse>(mia_, "Workers.ListWorkers", "");
  EXPECT_THAT(mias.workers(0).runs(), SizeIs(1));
  EXPECT_EQ(mias.workers(0).hidden_runs(), 0u);
}

TEST_F(PrivateTest, NeedsPrivateExperimentsForPrivateData) {
  const std::string data = UploadAs(mia_, kData, kText, true).name();
  const std::string spec = SpecOn(data);
  const RawAnswer refused =
      CallWith(mia_, "Experiments.CreateExperiment", "request_id: 'public' " + spec);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr(data + " is private: only private experiments of mia can use it"));
  const RawAnswer admins = CallWith(root_.token(), "Experiments.CreateExperiment",
                                    "request_id: 'a' private: true " + spec);
  EXPECT_EQ(admins.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "not hers alone";
}

// Knowing a hash gives no right to the bytes.
TEST_F(PrivateTest, TakesBytesAndNoHashFromOthers) {
  const v1::Dataset mias = UploadAs(mia_, kData, kText, true);
  const std::string header =
      absl::StrCat("display_name: 'names.txt' sha256: '", mias.sha256(), "'");
  const RawAnswer of_hash = CallWith(bob_, "Datasets.UploadDataset", header);
  EXPECT_EQ(of_hash.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const v1::Dataset bobs = UploadAs(bob_, "names.txt", kText, false);
  EXPECT_EQ(bobs.name(), absl::StrCat("datasets/names-", mias.sha256().substr(0, 6)));
  EXPECT_EQ(bobs.owner(), "bob");
  EXPECT_FALSE(bobs.private_());
  const auto again = Expect<v1::Dataset>(mia_, "Datasets.UploadDataset", header + " private: true");
  EXPECT_EQ(again.name(), mias.name()) << "her own, as it was";
  EXPECT_EQ(Expect<v1::Dataset>(rex_, "Datasets.GetDataset",
                                absl::StrCat("sha256: '", mias.sha256(), "' private: true"))
                .name(),
            bobs.name());
  Expect<google::protobuf::Empty>(bob_, "Datasets.DeleteDataset",
                                  absl::StrCat("name: '", bobs.name(), "'"));
  EXPECT_EQ(UploadAs(mia_, kData, kText, true).name(), mias.name()) << "with its bytes";
  SubmitAs(mia_, mias.name(), true);
}

TEST_F(PrivateTest, ShowsAnUploadToItsUserUntilAnExperimentUsesIt) {
  const v1::Dataset mias = UploadAs(mia_, "names.txt", kText, false, true);
  EXPECT_EQ(mias.name(), absl::StrCat("datasets/names-", mias.sha256().substr(0, 6)));
  EXPECT_FALSE(mias.private_());
  EXPECT_TRUE(mias.has_expire_time());
  const std::string by_name = absl::StrCat("name: '", mias.name(), "'");
  const auto code = [&](const std::string& secret, const std::string& method,
                        const std::string& request) {
    return CallWith(secret, method, request).status.error_code();
  };
  const auto nobody_else_sees_it = [&] {
    for (const std::string& secret : {bob_, rex_, std::string(root_.token())}) {
      for (const std::string& request :
           {by_name, std::string("name: 'names.txt'"), std::string("name: 'mia/names-1'"),
            absl::StrCat("sha256: '", mias.sha256(), "' private: true")}) {
        EXPECT_NE(code(secret, "Datasets.GetDataset", request), grpc::StatusCode::OK) << request;
      }
      EXPECT_NE(code(secret, "Datasets.DownloadDataset", by_name), grpc::StatusCode::OK);
      EXPECT_THAT(Expect<v1::ListDatasetsResponse>(secret, "Datasets.ListDatasets", "").datasets(),
                  IsEmpty());
    }
    EXPECT_NE(code(bob_, "Datasets.DeleteDataset", by_name), grpc::StatusCode::OK);
  };
  nobody_else_sees_it();
  const auto plan = Expect<v1::CreateExperimentResponse>(
      mia_, "Experiments.CreateExperiment", "validate_only: true " + SpecOn(mias.name()));
  EXPECT_THAT(plan.problems(), IsEmpty());
  nobody_else_sees_it();
  EXPECT_THAT(CallWith(mia_, "Experiments.CreateExperiment",
                       "request_id: 'p' private: true " + SpecOn(mias.name()))
                  .status.error_message(),
              HasSubstr(mias.name() + " was uploaded for a public experiment"));

  // Equal bytes of another user get the same ID, and don't show that hers exist.
  const std::string header =
      absl::StrCat("display_name: 'names.txt' for_experiment: true sha256: '", mias.sha256(), "'");
  EXPECT_EQ(code(bob_, "Datasets.UploadDataset", header), grpc::StatusCode::INVALID_ARGUMENT);
  const v1::Dataset bobs = UploadAs(bob_, "names.txt", kText, false, true);
  EXPECT_EQ(bobs.name(), mias.name());
  EXPECT_EQ(bobs.owner(), "bob");

  SubmitAs(mia_, mias.name(), false);
  for (const std::string& secret : {mia_, bob_, rex_}) {
    const auto open = Expect<v1::Dataset>(secret, "Datasets.GetDataset", by_name);
    EXPECT_EQ(open.owner(), "mia");
    EXPECT_FALSE(open.has_expire_time());
    EXPECT_THAT(Expect<v1::ListDatasetsResponse>(secret, "Datasets.ListDatasets", "").datasets(),
                SizeIs(1));
  }
  SubmitAs(bob_, bobs.name(), false, "bobs");
}

TEST_F(PrivateTest, MakesAnUploadWhatALaterOneAsksFor) {
  const v1::Dataset upload = UploadAs(mia_, "names.txt", kText, false, true);
  const v1::Dataset added = UploadAs(mia_, "names.txt", kText, false);
  EXPECT_EQ(added.name(), upload.name());
  EXPECT_FALSE(added.has_expire_time());
  EXPECT_TRUE(CallWith(rex_, "Datasets.GetDataset", absl::StrCat("name: '", added.name(), "'"))
                  .status.ok());
  const v1::Dataset again = UploadAs(mia_, "names.txt", kText, false, true);
  EXPECT_FALSE(again.has_expire_time()) << "it is public already";

  UploadAs(mia_, kData, "secret\nwords\nto\nkeep\n", false, true);
  const v1::Dataset secret = UploadAs(mia_, kData, "secret\nwords\nto\nkeep\n", true, true);
  EXPECT_TRUE(secret.private_());
  EXPECT_TRUE(secret.has_expire_time());
  EXPECT_THAT(secret.name(), HasSubstr("datasets/secret-p"));
  SubmitAs(mia_, secret.name(), true);
  const auto kept =
      Expect<v1::Dataset>(mia_, "Datasets.GetDataset", absl::StrCat("name: '", secret.name(), "'"));
  EXPECT_TRUE(kept.private_());
  EXPECT_FALSE(kept.has_expire_time());
}

TEST_F(PrivateTest, PutsOnesOwnDataBeforeOthersOfItsName) {
  const v1::Dataset mias = UploadAs(mia_, "names", "anna\n", false);
  EXPECT_EQ(Expect<v1::Dataset>(bob_, "Datasets.GetDataset", "name: 'names'").name(), mias.name());
  const v1::Dataset bobs = UploadAs(bob_, "names", "bob\n", true);
  EXPECT_EQ(Expect<v1::Dataset>(bob_, "Datasets.GetDataset", "name: 'names'").name(), bobs.name());
  EXPECT_EQ(Expect<v1::Dataset>(rex_, "Datasets.GetDataset", "name: 'names'").name(), mias.name());
  const v1::Dataset adas = UploadAs(root_.token(), "names", "ada\n", false);
  const RawAnswer several = CallWith(rex_, "Datasets.GetDataset", "name: 'names'");
  EXPECT_EQ(several.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  for (const v1::Dataset& one : {mias, adas}) {
    EXPECT_THAT(several.status.error_message(), HasSubstr(one.name().substr(9)));
  }
}

TEST_F(PrivateTest, TakesAModelsNameThatAnotherUserHasInPrivate) {
  const v1::Model mias = AddModelAs(mia_, "tiny", true, 1);
  const v1::Model bobs = AddModelAs(bob_, "tiny", false, 2);
  EXPECT_EQ(bobs.name(), "models/tiny");
  const auto found_by = [this](const std::string& secret, const std::string& name) {
    return Expect<v1::Model>(secret, "Models.GetModel", absl::StrCat("name: '", name, "'")).name();
  };
  EXPECT_EQ(found_by(mia_, "tiny"), mias.name()) << "one's own comes first";
  EXPECT_EQ(found_by(rex_, "tiny"), bobs.name());
  EXPECT_EQ(found_by(root_.token(), "tiny"), bobs.name());
  EXPECT_EQ(found_by(root_.token(), "tiny@mia"), mias.name());
  const RawAnswer others = CallWith(mia_, "Models.DeleteModel", "name: 'tiny'");
  EXPECT_EQ(others.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << "it is bob's";
  Expect<google::protobuf::Empty>(bob_, "Models.DeleteModel", "name: 'tiny'");
  const RawAnswer again = CallWith(mia_, "Models.DeleteModel", "name: 'tiny'");
  EXPECT_EQ(again.status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(again.status.error_message(), HasSubstr("tiny@mia"));
  Expect<google::protobuf::Empty>(root_.token(), "Models.DeleteModel", "name: 'tiny@mia'");
}

TEST_F(PrivateTest, NeedsPrivateExperimentsForPrivateModels) {
  AddModelAs(mia_, "tiny", true);
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abcabcacbacbacbabcabcbcabcabacbacb\n";
  const std::string spec =
      absl::StrCat("spec { name: 'from' base { model_from: 'models/tiny' task { text { dataset: '",
                   UploadAs(mia_, "abc.txt", text, false).name(), "' } } } seeds { list: 0 } }");
  const RawAnswer refused =
      CallWith(mia_, "Experiments.CreateExperiment", "request_id: 'public' " + spec);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr("models/tiny@mia is private: only private experiments of mia can use it"));
  const auto created = Expect<v1::CreateExperimentResponse>(
      mia_, "Experiments.CreateExperiment", "request_id: 'own' private: true " + spec);
  const auto run =
      Expect<v1::Run>(mia_, "Runs.GetRun", absl::StrCat("name: '", RunOf(mia_, created), "'"));
  EXPECT_EQ(run.resolved_spec().spec().model_from(), "models/tiny@mia");
}

TEST_F(PrivateTest, ListsExperimentsOfOneOwner) {
  const std::string hers = CreateAs(mia_, "hers"), his = CreateAs(bob_, "his");
  const auto listed = Expect<v1::ListExperimentsResponse>(rex_, "Experiments.ListExperiments",
                                                          "owner: 'users/mia'");
  ASSERT_THAT(listed.experiments(), SizeIs(1));
  EXPECT_EQ(listed.experiments(0).name(), hers);
  EXPECT_THAT(
      Expect<v1::ListExperimentsResponse>(rex_, "Experiments.ListExperiments", "").experiments(),
      SizeIs(2));
}

TEST_F(PrivateTest, KnowsRequestsOfTheirOwner) {
  const std::string request =
      "request_id: 'one' private: true " + SpecOn(UploadAs(mia_, "open.txt", kText, false).name());
  const auto mias =
      Expect<v1::CreateExperimentResponse>(mia_, "Experiments.CreateExperiment", request);
  const auto bobs =
      Expect<v1::CreateExperimentResponse>(bob_, "Experiments.CreateExperiment", request);
  EXPECT_NE(bobs.experiment().name(), mias.experiment().name());
  EXPECT_EQ(Expect<v1::CreateExperimentResponse>(mia_, "Experiments.CreateExperiment", request)
                .experiment()
                .name(),
            mias.experiment().name());
}

}  // namespace
}  // namespace ablate::service
