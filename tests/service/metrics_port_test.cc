// Tests what Prometheus reads.
#include "server/service/metrics_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class MetricsPortTest : public ServiceTest {
 protected:
  // Returns the answer to a plain request of HTTP.
  static std::string Get(int port, const std::string& path) {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(send(connection, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(connection, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
    }
    close(connection);
    return answer;
  }
};

TEST_F(MetricsPortTest, HasRunsLanesQueueAndWrites) {
  const auto port = MetricsPort::Listen(0, &store(), scheduler());
  ASSERT_TRUE(port.ok()) << port.status();
  Create(SmallSpec(3));
  const auto worker = MakeWorker("cpu-train", 1);
  const FakeWorker::Leased run = worker->NextRun();
  worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0, 1}, {3.0, 2.0}}}, 2);
  worker->Settle();
  const std::string text = Get((*port)->port(), "/metrics");
  for (const char* line :
       {"HTTP/1.1 200 OK", "ablate_runs{state=\"QUEUED\"} 4\n", "ablate_runs{state=\"LEASED\"} 2\n",
        "ablate_queued_lanes{user=\"ada\",device=\"cpu\",trainer=\"native\"} 4\n",
        "ablate_workers{role=\"train\",device=\"cpu\"} 1\n", "ablate_lanes{device=\"cpu\"} 1\n",
        "ablate_points_total 2\n", "ablate_leases_lost_total 0\n", "ablate_stalled 0\n",
        "# TYPE ablate_commit_seconds_total counter\n", "ablate_disk_free_bytes "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(Get((*port)->port(), "/other"), HasSubstr("HTTP/1.1 404"));
  EXPECT_TRUE(
      absl::IsUnavailable(MetricsPort::Listen((*port)->port(), &store(), scheduler()).status()));
}

}  // namespace
}  // namespace ablate::service
