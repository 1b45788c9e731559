// Two trained runs in a server, with calls about analyses of them.
#ifndef ABLATE_TESTS_SERVICE_ANALYSIS_FIXTURE_H_
#define ABLATE_TESTS_SERVICE_ANALYSIS_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {

// A watcher of one analysis.
class AnalysisWatch {
 public:
  AnalysisWatch(v1::Analyses::Stub* stub, const std::string& name) {
    v1::WatchAnalysisRequest request;
    request.set_name(name);
    reader_ = stub->WatchAnalysis(&context_, request);
  }
  ~AnalysisWatch() { context_.TryCancel(); }

  // Reads until `holds` is true for a message; fails the test if that never happens.
  v1::Analysis Until(const std::function<bool(const v1::Analysis&)>& holds) {
    v1::Analysis analysis;
    while (reader_->Read(&analysis)) {
      if (holds(analysis)) return analysis;
    }
    ADD_FAILURE() << "the watch ended: " << reader_->Finish().error_message();
    return {};
  }
  v1::Analysis Until(v1::AnalysisState::Value state) {
    return Until([state](const v1::Analysis& analysis) { return analysis.state() == state; });
  }
  // Reads to the end, and returns the stream's status.
  grpc::Status End(std::vector<v1::Analysis>* told = nullptr) {
    std::vector<v1::Analysis> ignored;
    return ReadAll(reader_.get(), told == nullptr ? &ignored : told);
  }

 private:
  Context context_;
  std::unique_ptr<grpc::ClientReader<v1::Analysis>> reader_;
};

class AnalysisTest : public ServiceTest {
 protected:
  AnalysisTest() {
    experiment_ = Create(SmallSpec()).experiment().name();
    const auto worker = MakeWorker();
    TrainAll(worker.get(), 2);
    run_ = Rows(experiment_)[0].run();
    other_ = Rows(experiment_)[1].run();
  }

  // Returns a request for the first run; `analysis` is a textproto of AnalysisKind.
  v1::CreateAnalysisRequest Request(const std::string& analysis) const {
    v1::CreateAnalysisRequest request = RequestOf(absl::StrCat("analysis { ", analysis, " }"));
    request.add_subjects()->set_run(run_);
    return request;
  }
  static v1::CreateAnalysisRequest RequestOf(const std::string& text) {
    return FromText<v1::CreateAnalysisRequest>(text);
  }

  // Trains a run of a documents task in context 8 on this data set; returns its name.
  std::string TrainOn(const std::string& name, const std::string& text, uint32_t held_out = 1,
                      uint32_t seed = 0) {
    Upload(name, text);
    v1::ExperimentSpec spec = DocumentsSpec(name);
    spec.mutable_base()->mutable_task()->mutable_documents()->set_held_out(held_out);
    spec.mutable_seeds()->add_list(seed);
    spec.set_name(absl::StrCat(name, "-s", seed));
    const std::string experiment = Create(spec).experiment().name();
    const auto worker = MakeWorker();
    TrainAll(worker.get(), 1);
    return Rows(experiment)[0].run();
  }
  // Returns a request about these runs.
  static v1::CreateAnalysisRequest RequestOn(const std::vector<std::string>& runs,
                                             const std::string& analysis,
                                             const std::string& inputs) {
    v1::CreateAnalysisRequest request =
        RequestOf(absl::StrCat("analysis { ", analysis, " } inputs { ", inputs, " }"));
    for (const std::string& run : runs) request.add_subjects()->set_run(run);
    return request;
  }
  void DeleteDataset(const std::string& name) {
    AnswerOf(*datasets_, &v1::Datasets::Stub::DeleteDataset, Named<v1::DeleteDatasetRequest>(name));
  }

  grpc::Status Try(const v1::CreateAnalysisRequest& request) {
    return StatusOf(*analyses_, &v1::Analyses::Stub::CreateAnalysis, request);
  }
  // Expects success.
  v1::CreateAnalysisResponse Ask(const v1::CreateAnalysisRequest& request) {
    return AnswerOf(*analyses_, &v1::Analyses::Stub::CreateAnalysis, request);
  }
  // Queues an analysis and returns its name.
  std::string Queue(const std::string& analysis = "spectrum {}") {
    return Ask(Request(analysis)).analysis().name();
  }
  v1::Analysis GetAnalysis(const std::string& name) {
    return AnswerOf(*analyses_, &v1::Analyses::Stub::GetAnalysis,
                    Named<v1::GetAnalysisRequest>(name));
  }
  v1::Analysis CancelAnalysis(const std::string& name) {
    return AnswerOf(*analyses_, &v1::Analyses::Stub::CancelAnalysis,
                    Named<v1::CancelAnalysisRequest>(name));
  }
  // Returns the names in the order of the list.
  std::vector<std::string> List(const std::string& parent, uint32_t page_size = 0) {
    std::vector<std::string> names;
    v1::ListAnalysesRequest request;
    request.set_parent(parent);
    request.set_page_size(page_size);
    do {
      const auto response = AnswerOf(*analyses_, &v1::Analyses::Stub::ListAnalyses, request);
      for (const v1::Analysis& analysis : response.analyses()) names.push_back(analysis.name());
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return names;
  }
  grpc::Status TryReadArrays(const std::string& name, std::string* bytes, uint64_t offset = 0) {
    Context context;
    v1::ReadAnalysisArraysRequest request;
    request.set_name(name);
    request.set_offset(offset);
    const auto reader = analyses_->ReadAnalysisArrays(&context, request);
    v1::AnalysisArraysChunk chunk;
    while (reader->Read(&chunk)) *bytes += chunk.data();
    return reader->Finish();
  }
  v1::Analysis WaitUntil(const std::string& name, v1::AnalysisState::Value state) {
    return AnalysisWatch(analyses_.get(), name).Until(state);
  }
  v1::Analysis WaitForProgress(const std::string& name, double progress) {
    return AnalysisWatch(analyses_.get(), name).Until([progress](const v1::Analysis& analysis) {
      return analysis.progress() == progress;
    });
  }
  // Ends the worker's process.
  void Crash(FakeWorker* analyst, const std::string& how = "killed by SIGSEGV") {
    analyst->Crash();
    scheduler()->Run([&how](schedule::Scheduler& inside) {
      inside.Exited({"cpu-analysis", true, how, true});
    });
  }

  std::string experiment_, run_, other_;
};

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_ANALYSIS_FIXTURE_H_
