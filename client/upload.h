// Uploads bytes to the server, and continues an upload that broke.
#ifndef ABLATE_CLIENT_UPLOAD_H_
#define ABLATE_CLIENT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

struct LocalBytes {
  std::string name;  // as messages say it
  uint64_t bytes = 0;
  std::string sha256;  // in hex
};

// Sends the bytes from `offset` on in one call.
using SendFrom = std::function<absl::Status(uint64_t offset)>;

// Uploads bytes, from the number on that the server has from an earlier upload. One that breaks is
// continued as long as tries bring bytes, with a line on the console for each. Servers that keep
// none get everything in one call. The error of an upload that kept breaking says how to continue
// it.
absl::Status UploadAll(Connection* connection, const Context& context, const LocalBytes& local,
                       const SendFrom& send);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_UPLOAD_H_
