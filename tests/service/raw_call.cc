// Calls any method with any bytes.
#include "tests/service/raw_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>

namespace ablate::service {
namespace {

// Waits for the one operation in progress; returns true if it succeeded.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

RawAnswer RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& messages,
                  const std::vector<std::pair<std::string, std::string>>& metadata) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  bool open = Next(&queue);
  for (const std::string& message : messages) {
    if (!open) break;
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    open = Next(&queue);
  }
  if (open) {
    call->WritesDone(nullptr);
    Next(&queue);
  }
  RawAnswer answer;
  grpc::ByteBuffer buffer;
  call->Read(&buffer, nullptr);
  while (Next(&queue)) {
    answer.messages.push_back(ToString(buffer));
    call->Read(&buffer, nullptr);
  }
  call->Finish(&answer.status, nullptr);
  Next(&queue);
  return answer;
}

}  // namespace ablate::service
