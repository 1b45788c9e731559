// Makes the messages of an upload of a model.
#ifndef ABLATE_TESTS_SERVICE_MODEL_UPLOAD_H_
#define ABLATE_TESTS_SERVICE_MODEL_UPLOAD_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/model.pb.h"
#include "server/engine/pretrained.h"

namespace ablate::service {

// Returns the first message with the names of the files, then the files in pieces of 1,000 bytes.
inline std::vector<v1::UploadModelRequest> MessagesOf(const std::string& name,
                                                      const std::vector<engine::NamedFile>& files) {
  std::vector<v1::UploadModelRequest> messages(1);
  messages[0].set_name(name);
  for (const engine::NamedFile& file : files) {
    messages[0].add_files(file.name);
    messages[0].set_bytes(messages[0].bytes() + file.bytes.size());
  }
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t at = 0; at < files[i].bytes.size(); at += 1000) {
      v1::UploadModelRequest& message = messages.emplace_back();
      message.set_file(static_cast<uint32_t>(i));
      message.set_data(files[i].bytes.substr(at, 1000));
    }
  }
  return messages;
}

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_MODEL_UPLOAD_H_
