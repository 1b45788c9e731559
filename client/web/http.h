// Requests and responses of the live page as plain values, and the HTTP server that carries them.
#ifndef ABLATE_CLIENT_WEB_HTTP_H_
#define ABLATE_CLIENT_WEB_HTTP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::web {

using Fields = std::map<std::string, std::string>;  // the first value of each name

struct Request {
  std::string method;              // GET or POST; HEAD arrives as GET
  std::string path;                // percent-decoded
  std::vector<std::string> parts;  // of the path, each percent-decoded, that a route leaves open
  Fields query, form;
  // Headers; empty if absent.
  std::string host, origin, fetch_site, cookies, last_event_id, content_type;

  // Returns a field of the query; empty if it is absent.
  std::string Query(const std::string& name) const;
  std::string Form(const std::string& name) const;
};

// Sends a piece of a body; false if the browser has gone.
using Write = std::function<bool(absl::string_view piece)>;

struct Response {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
  // In place of body; runs on the call's thread.
  std::function<void(const Write& write)> stream = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

using Handler = std::function<Response(const Request&)>;

// Returns text percent-encoded for a path or a query.
std::string Encoded(absl::string_view text);

// Returns PATH?NAME=VALUE&…; fields without a value are left out.
std::string Address(absl::string_view path, const Fields& query);

// Serves HTTP/1.1 on 127.0.0.1: at most kMaxConnections at a time, bodies of at most kMaxBody
// bytes, addresses and headers of at most 8 KiB. Calls the handler on several threads.
class HttpServer {
 public:
  static constexpr int kMaxConnections = 64;
  static constexpr size_t kMaxBody = 96 << 10;

  // Listens on `port`, or any free one if it is 0. UNAVAILABLE if the port is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(uint16_t port);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  uint16_t port() const { return port_; }
  // Serves until Stop. Once.
  void Serve(Handler handler);
  // Ends Serve, from another thread. Streams must have ended, or end soon.
  void Stop();

 private:
  struct Library;
  HttpServer();

  std::unique_ptr<Library> library_;
  uint16_t port_ = 0;
};

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_HTTP_H_
