// A trained run of documents, calls of Generate, and what a scripted worker answers.
#ifndef ABLATE_TESTS_SERVICE_GENERATE_FIXTURE_H_
#define ABLATE_TESTS_SERVICE_GENERATE_FIXTURE_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/service_fixture.h"

namespace ablate::service {

// One call of Generate, made on a thread of its own.
class Call {
 public:
  Call(v1::Models::Stub* stub, const v1::GenerateRequest& request)
      : reader_(stub->Generate(&context_, request)), thread_([this] {
          v1::GenerateResponse message;
          while (reader_->Read(&message)) messages_.push_back(message);
          status_ = reader_->Finish();
        }) {}
  ~Call() {
    if (thread_.joinable()) Wait();
  }
  void Cancel() { context_.TryCancel(); }
  // What came, once the call is over.
  grpc::Status Wait() {
    thread_.join();
    return status_;
  }
  const std::vector<v1::GenerateResponse>& messages() const { return messages_; }

 private:
  Context context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
  std::vector<v1::GenerateResponse> messages_;
  grpc::Status status_;
  std::thread thread_;
};

inline worker::v1::Sample SampleOf(uint32_t index, const std::string& text, bool found) {
  worker::v1::Sample sample;
  sample.set_index(index);
  sample.set_text(text);
  sample.set_tokens(static_cast<uint32_t>(text.size()) + 1);
  sample.set_ended(true);
  sample.set_in_training_data(found);
  return sample;
}

class GenerateTest : public ServiceTest {
 protected:
  GenerateTest() {
    Upload("words", "anna\nbob\ncleo\ndora\n");
    experiment_ = Create(SpecOf(R"(
      name: "words"
      base {
        task { documents { dataset: "words" held_out: 1 } }
        model { layers: 1 width: 8 heads: 2 context: 8 }
        training { steps: 10 batch: 2 checkpoints: [0, -1] }
      })"))
                      .experiment()
                      .name();
  }

  // Trains the run; its checkpoints are at steps 0 and 10.
  void Train() {
    const auto trainer = MakeWorker();
    const FakeWorker::Leased run = trainer->NextRun();
    trainer->Started(run);
    first_ = trainer->Checkpoint(run, 0, "first weights");
    last_ = trainer->Checkpoint(run, 10, "last weights");
    trainer->Finished(run, 10);
    trainer->Settle();
  }

  v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    request.set_run(Rows(experiment_)[0].run());
    return request;
  }
  grpc::Status Try(const v1::GenerateRequest& request) {
    return Call(models_.get(), request).Wait();
  }

  std::string experiment_;
  std::string first_, last_;  // hashes of the checkpoints
};

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_GENERATE_FIXTURE_H_
