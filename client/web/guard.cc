#include "client/web/guard.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"

namespace ablate::web {
namespace {

constexpr char kAddressField[] = "token";
constexpr char kForm[] = "application/x-www-form-urlencoded";

// Compares in a time that doesn't depend on the texts.
bool Equal(absl::string_view given, absl::string_view secret) {
  unsigned char differs = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    differs |= static_cast<unsigned char>(other ^ secret[i]);
  }
  return differs == 0;
}

// Cookies are shared by all ports of a host, so the name has the port.
std::string CookieName(uint16_t port) { return absl::StrCat("ablate-", port); }

bool IsOurHost(absl::string_view host, uint16_t port) {
  const std::string name = absl::AsciiStrToLower(host);
  for (const char* ours : {"127.0.0.1", "localhost"}) {
    if (name == absl::StrCat(ours, ":", port)) return true;
  }
  return false;
}

bool HasCookie(const Request& request, const Secrets& secrets, uint16_t port) {
  for (const absl::string_view cookie : absl::StrSplit(request.cookies, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(cookie), absl::MaxSplits('=', 1));
    if (parts.first == CookieName(port) && Equal(parts.second, secrets.cookie)) return true;
  }
  return false;
}

Response Refusal(int status, absl::string_view why) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = absl::StrCat(why, "\n")};
}

}  // namespace

Secrets MakeSecrets() { return {process::RandomId(), process::RandomId(), process::RandomId()}; }

std::string FirstAddress(const Secrets& secrets, uint16_t port) {
  return absl::StrCat("http://127.0.0.1:", port, "/?", kAddressField, "=", secrets.address);
}

std::optional<Response> Guard(const Request& request, const Secrets& secrets, uint16_t port) {
  if (!IsOurHost(request.host, port)) {
    return Refusal(421, "Host: not this page's; open the address that `ablate web` printed.");
  }
  const bool foreign =
      !request.origin.empty() &&
      request.origin != absl::StrCat("http://", absl::AsciiStrToLower(request.host));
  // Pages of other ports of this machine are of the same site.
  const bool enters = request.method == "GET" && request.query.count(kAddressField) > 0;
  const bool sent =
      !enters && (request.fetch_site == "cross-site" || request.fetch_site == "same-site");
  if (foreign || sent) return Refusal(403, "Origin: requests of other pages are refused.");
  if (request.method != "GET" && request.method != "POST") {
    return Refusal(405, "Method: not allowed; expected GET or POST.");
  }
  if (enters) {
    if (!Equal(request.Query(kAddressField), secrets.address)) {
      return Refusal(403,
                     "token: not this page's, which changes whenever `ablate web` starts; open the "
                     "address that it printed last.");
    }
    // Not a redirection: a browser that follows one from a file or a link doesn't send the cookie.
    Response entry = {.type = "text/plain; charset=utf-8", .body = "Opening the page.\n"};
    entry.headers = {{"Refresh", "0; url=/"},
                     {"Set-Cookie", absl::StrCat(CookieName(port), "=", secrets.cookie,
                                                 "; Path=/; HttpOnly; SameSite=Strict")}};
    return entry;
  }
  if (!HasCookie(request, secrets, port)) {
    return Refusal(403, "This page needs the address that `ablate web` printed, with its token.");
  }
  if (request.method == "POST" && (!absl::StartsWith(request.content_type, kForm) ||
                                   !Equal(request.Form("form"), secrets.form))) {
    return Refusal(403, "form: not made by this page; go back, load the page again and repeat.");
  }
  return std::nullopt;
}

void AddPolicy(const std::string& nonce, Response* response) {
  const std::string marked = nonce.empty() ? "" : absl::StrCat(" 'nonce-", nonce, "'");
  response->headers.insert(
      response->headers.end(),
      {{"Content-Security-Policy",
        absl::StrCat("default-src 'none'; script-src 'self'", marked, "; style-src 'self'", marked,
                     "; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
                     "frame-ancestors 'none'")},
       {"X-Content-Type-Options", "nosniff"},
       {"X-Frame-Options", "DENY"},
       {"Referrer-Policy", "same-origin"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cross-Origin-Opener-Policy", "same-origin"},
       {"Cache-Control", "no-cache"}});
}

}  // namespace ablate::web
