#include "client/web/http.h"

#include <httplib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace ablate::web {
namespace {

constexpr time_t kIdleSeconds = 2;  // a connection that waits for a request holds a thread
constexpr size_t kRequestsPerConnection = 1000;

// The threads of connections. While all are in use no further connection is accepted, and others
// wait in the kernel's queue.
class Connections : public httplib::TaskQueue {
 public:
  Connections() : pool_(HttpServer::kMaxConnections) {}

  void enqueue(std::function<void()> serve) override {
    {
      MutexLock lock(&mutex_);
      while (open_ == HttpServer::kMaxConnections) ended_.Wait(&mutex_);
      ++open_;
    }
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      MutexLock lock(&mutex_);
      --open_;
      ended_.Signal();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  Mutex mutex_;
  CondVar ended_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  httplib::ThreadPool pool_;
};

Fields FirstOf(const httplib::Params& params) {
  Fields fields;
  for (const auto& [name, value] : params) fields.emplace(name, value);
  return fields;
}

Request RequestOf(const httplib::Request& from) {
  Request request;
  request.method = from.method == "HEAD" ? "GET" : from.method;
  request.path = from.path;
  // The library adds the fields of a form to those of the address: read the address alone.
  httplib::Params query;
  const size_t mark = from.target.find('?');
  if (mark != std::string::npos) {
    httplib::detail::parse_query_text(from.target.substr(mark + 1), query);
  }
  request.query = FirstOf(query);
  httplib::Params form;
  if (!from.body.empty()) httplib::detail::parse_query_text(from.body, form);
  request.form = FirstOf(form);
  const std::pair<const char*, std::string Request::*> headers[] = {
      {"Host", &Request::host},
      {"Origin", &Request::origin},
      {"Sec-Fetch-Site", &Request::fetch_site},
      {"Cookie", &Request::cookies},
      {"Last-Event-ID", &Request::last_event_id},
      {"Content-Type", &Request::content_type}};
  for (const auto& [name, member] : headers) request.*member = from.get_header_value(name);
  return request;
}

void Fill(Response from, httplib::Response* to) {
  to->status = from.status;
  for (const auto& [name, value] : from.headers) to->set_header(name, value);
  if (from.stream == nullptr) {
    to->set_content(std::move(from.body), from.type);
    return;
  }
  to->set_chunked_content_provider(
      from.type, [stream = std::move(from.stream)](size_t, httplib::DataSink& sink) {
        bool open = true;
        stream([&](absl::string_view piece) {
          if (!piece.empty()) open = open && sink.write(piece.data(), piece.size());
          return open;
        });
        if (open) sink.done();
        return open;
      });
}

}  // namespace

std::string Request::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::string Request::Form(const std::string& name) const {
  const auto found = form.find(name);
  return found == form.end() ? "" : found->second;
}

std::string Encoded(absl::string_view text) {
  constexpr absl::string_view kPlain = "-._~:@,";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || kPlain.find(c) != absl::string_view::npos) {
      encoded.push_back(c);
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::string Address(absl::string_view path, const Fields& query) {
  std::string address(path);
  char before = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    absl::StrAppend(&address, std::string(1, before), Encoded(name), "=", Encoded(value));
    before = '&';
  }
  return address;
}

struct HttpServer::Library {
  httplib::Server server;
  socket_t socket = -1;  // that it listens on
};

HttpServer::HttpServer() : library_(std::make_unique<Library>()) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(uint16_t port) {
  constexpr const char* kHost = "127.0.0.1";
  std::unique_ptr<HttpServer> made(new HttpServer);
  httplib::Server& server = made->library_->server;
  server.new_task_queue = [] { return new Connections; };  // the library owns it
  server.set_payload_max_length(kMaxBody);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_keep_alive_max_count(kRequestsPerConnection);
  server.set_tcp_nodelay(true);
  // Without SO_REUSEPORT, which the library sets by default: another program could share the port.
  server.set_socket_options([library = made->library_.get()](socket_t socket) {
    library->socket = socket;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  int bound = port;
  if (port == 0) {
    bound = server.bind_to_any_port(kHost);
  } else if (!server.bind_to_port(kHost, port)) {
    bound = -1;
  }
  if (bound <= 0) {
    return absl::UnavailableError(absl::StrCat(
        "--port: ", port, " is in use on this machine; choose another, or leave it out"));
  }
  // The library lets five connections wait; more would be tried again after a second, or never.
  listen(made->library_->socket, SOMAXCONN);
  made->port_ = static_cast<uint16_t>(bound);
  return made;
}

void HttpServer::Serve(Handler handler) {
  httplib::Server& server = library_->server;
  const auto answer = [handler = std::move(handler)](const httplib::Request& from,
                                                     httplib::Response& to) {
    // The library compresses whatever it may, which costs more than loopback gains, and holds back
    // pieces of a stream.
    const_cast<httplib::Request&>(from).headers.erase("Accept-Encoding");  // NOLINT
    Fill(handler(RequestOf(from)), &to);
  };
  // Before the library's routes, which match by regular expressions. A POST needs its body, which
  // is read on the way to a route.
  server.set_pre_routing_handler([answer](const httplib::Request& from, httplib::Response& to) {
    if (from.method == "POST" && from.path.size() < 1024) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    answer(from, to);
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Post(".*", answer);
  server.listen_after_bind();
}

void HttpServer::Stop() { library_->server.stop(); }

}  // namespace ablate::web
