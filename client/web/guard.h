// Decides which requests the live page answers. Every web site that the user visits can send
// requests to a port of this machine, so a request must prove that it is from the page.
#ifndef ABLATE_CLIENT_WEB_GUARD_H_
#define ABLATE_CLIENT_WEB_GUARD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/web/http.h"

namespace ablate::web {

// Random for each process, 128 bits each, as hex digits.
struct Secrets {
  std::string address;  // in the address that `ablate web` prints; becomes the cookie below
  std::string cookie;
  std::string form;  // in every form
};

Secrets MakeSecrets();

// Returns the address that `ablate web` prints.
std::string FirstAddress(const Secrets& secrets, uint16_t port);

// Returns the refusal of a request that isn't the page's: another Host (DNS rebinding), another
// Origin, sent by another site, without the cookie (a guessed port), or a form without its secret.
// Exchanges the secret of the first address for the cookie. Nothing: the request may be answered.
// Pure, safe from any thread.
std::optional<Response> Guard(const Request& request, const Secrets& secrets, uint16_t port);

// Adds the headers that every response has: a policy without inline script, and no caching.
// `nonce` marks the style and script of a report; empty: there is none.
void AddPolicy(const std::string& nonce, Response* response);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_GUARD_H_
