// Makes a self-signed certificate for tests.
#ifndef ABLATE_TESTS_NET_SELF_SIGNED_H_
#define ABLATE_TESTS_NET_SELF_SIGNED_H_

#include <string>

namespace ablate::rpc {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string private_key;  // PEM
};

// Makes a certificate of "localhost", valid for a day.
SelfSigned MakeSelfSigned();

}  // namespace ablate::rpc

#endif  // ABLATE_TESTS_NET_SELF_SIGNED_H_
