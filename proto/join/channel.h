// Connects a program to its server: by a unix socket on the same machine, or by TLS and a token
// from elsewhere.
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

// The address of a server, and the credentials for it.
struct ServerAddress {
  std::string address;           // "unix:PATH" or "HOST:PORT"
  std::string login = {};        // this user's name for it; empty for a server on this machine
  std::string server_name = {};  // that its certificate must contain
  std::string authority = {};    // CA certificate, in PEM, that must have signed it; empty: no TLS
  std::string token = {};        // sent with every call, over TLS only
  bool given = false;            // named by the caller, not found in a server's folder
};

// Returns the address in a join file, called `login` by this user.
ServerAddress AddressOf(const v1::JoinFile& file, const std::string& login);

// Returns a channel that connects with the first call. It trusts only a certificate by the
// address's authority for its name, and ignores the environment's proxies. During a call it pings a
// server elsewhere, so that a silent network ends the call. Thread-safe, as are the channel's
// calls.
std::shared_ptr<grpc::Channel> OpenChannel(const ServerAddress& server,
                                           grpc::ChannelArguments arguments);

// Adds this program's release to a call and, if the connection is encrypted, the token.
void AddMetadata(const ServerAddress& server, grpc::ClientContext* context);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_CHANNEL_H_
