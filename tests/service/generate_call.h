// Calls Generate, and makes the samples that a scripted worker answers with.
#ifndef ABLATE_TESTS_SERVICE_GENERATE_CALL_H_
#define ABLATE_TESTS_SERVICE_GENERATE_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/service_fixture.h"

namespace ablate::service {

// One call of Generate, made on a thread of its own.
class GenerateCall {
 public:
  GenerateCall(v1::Models::Stub* stub, const v1::GenerateRequest& request)
      : reader_(stub->Generate(&context_, request)),
        thread_([this] { status_ = ReadAll(reader_.get(), &messages_); }) {}
  ~GenerateCall() {
    if (thread_.joinable()) Wait();
  }
  void Cancel() { context_.TryCancel(); }
  // Returns the result, once the call is over.
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

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_GENERATE_CALL_H_
