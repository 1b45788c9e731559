// How a program reaches its server: by a unix socket on its machine, or by TLS and a token from
// elsewhere.
#ifndef ABLATE_PROTO_JOIN_CHANNEL_H_
#define ABLATE_PROTO_JOIN_CHANNEL_H_

#include <memory>
#include <string>

#include "ablate/v1/join.pb.h"

namespace grpc {
class Channel;
class ChannelArguments;
class ClientContext;
}  // namespace grpc

namespace ablate::join {

// Where a server is, and what it takes to be let in there.
struct ServerAddress {
  std::string address;           // "unix:PATH" or "HOST:PORT"
  std::string login = {};        // what this user calls it; empty for one on this machine
  std::string server_name = {};  // that its certificate must be for
  std::string authority = {};    // the certificate, in PEM, that must have signed it; empty: no TLS
  std::string token = {};        // sent with every call, by TLS alone
  bool given = false;            // by whoever asks, and not found in a server's folder
};

// What a join file says, called `login` by this user.
ServerAddress AddressOf(const v1::JoinFile& file, const std::string& login);

// Connects with the first call. No certificate is trusted but one by the address's authority for
// its name, and no proxy of the environment is used. Thread-safe, as are the channel's calls.
std::shared_ptr<grpc::Channel> OpenChannel(const ServerAddress& server,
                                           grpc::ChannelArguments arguments);

// Adds the token to a call, where it can't be read on the way.
void Authorize(const ServerAddress& server, grpc::ClientContext* context);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_CHANNEL_H_
