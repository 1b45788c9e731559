// Tests which alerts there are, and that their command runs.
#include "server/service/alerts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/service/service_fixture.h"
#include "tests/test_folder.h"

namespace ablate::service {
namespace {

using storage::ExperimentNews;
using storage::ExperimentState;
using testing::ElementsAre;
using testing::IsEmpty;

ExperimentNews News(const std::string& id, uint32_t done, uint32_t failed,
                    ExperimentState state = ExperimentState::kActive) {
  ExperimentNews news{id, "names", "ann", state, {}};
  news.counts.done = done;
  news.counts.failed = failed;
  return news;
}

std::vector<std::string> Texts(const std::vector<Alert>& alerts) {
  std::vector<std::string> texts;
  for (const Alert& alert : alerts) texts.push_back(alert.text);
  return texts;
}

TEST(AlertRulesTest, HasTheFirstFailedRunAndTheEndOnce) {
  AlertRules rules;
  AlertFacts facts;
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.experiments = {News("names-aaaa", 3, 0)};
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.experiments = {News("names-aaaa", 3, 1)};
  EXPECT_THAT(Texts(rules.Next(facts)), ElementsAre("names of ann has a failed run"));
  facts.experiments = {News("names-aaaa", 3, 2)};
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.experiments = {News("names-aaaa", 1234, 2, ExperimentState::kEnded)};
  EXPECT_THAT(Texts(rules.Next(facts)),
              ElementsAre("names of ann has ended: 1,234 done, 2 failed"));
  EXPECT_THAT(rules.Next(facts), IsEmpty());
}

TEST(AlertRulesTest, HasOnlyTheEndIfARunFailedWithIt) {
  AlertRules rules;
  AlertFacts facts;
  rules.Next(facts);
  facts.experiments = {News("names-aaaa", 0, 1, ExperimentState::kEnded)};
  EXPECT_THAT(Texts(rules.Next(facts)), ElementsAre("names of ann has ended: 1 failed"));
}

TEST(AlertRulesTest, HasNoAlertThatAnExperimentGoesOn) {
  AlertRules rules;
  AlertFacts facts;
  facts.experiments = {News("names-aaaa", 1, 2, ExperimentState::kEnded)};
  EXPECT_THAT(rules.Next(facts), IsEmpty()) << "it had ended before";
  facts.experiments = {};
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  // Another experiment has one of its failed runs trained again.
  facts.experiments = {News("names-aaaa", 1, 1)};
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.experiments = {News("names-aaaa", 2, 1, ExperimentState::kEnded)};
  EXPECT_THAT(Texts(rules.Next(facts)), ElementsAre("names of ann has ended: 2 done, 1 failed"));
}

TEST(AlertRulesTest, NamesACancelledExperimentWithoutEndedRuns) {
  AlertRules rules;
  AlertFacts facts;
  rules.Next(facts);
  facts.experiments = {News("names-aaaa", 0, 0, ExperimentState::kCancelled)};
  EXPECT_THAT(Texts(rules.Next(facts)), ElementsAre("names of ann was cancelled"));
}

TEST(AlertRulesTest, HasTroublesThatBegin) {
  AlertRules rules;
  AlertFacts facts;
  facts.free_bytes = 1'500'000'000;
  facts.stalled = "disk full";
  facts.failing_clusters = {{"slurm@ci", "squeue failed: no route"}};
  EXPECT_THAT(Texts(rules.Next(facts)),
              ElementsAre("cluster slurm@ci: squeue failed: no route",
                          "nothing can be stored: disk full", "the disk has 1,500 MB left"));
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.free_bytes = 2'500'000'000;
  facts.stalled = "";
  facts.failing_clusters = {};
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.free_bytes = 1'000'000'000;
  EXPECT_THAT(rules.Next(facts), IsEmpty()) << "there was never enough in between";
  facts.free_bytes = 4'000'000'000;
  EXPECT_THAT(rules.Next(facts), IsEmpty());
  facts.free_bytes = 1'000'000'000;
  EXPECT_THAT(Texts(rules.Next(facts)), ElementsAre("the disk has 1,000 MB left"));
}

TEST(AlertRulesTest, WritesALineOfJson) {
  EXPECT_EQ(AlertLine({"run_failed", "a \"b\"\n\xFF", "experiments/names-aaaa", "names", "ann"}),
            "{\"alert\":\"run_failed\",\"text\":\"a \\\"b\\\"\\n\xEF\xBF\xBD\",\"experiment\":"
            "\"experiments/names-aaaa\",\"name\":\"names\",\"owner\":\"ann\"}\n");
  EXPECT_EQ(AlertLine({"stalled", "disk full", "", "", ""}),
            "{\"alert\":\"stalled\",\"text\":\"disk full\"}\n");
}

class AlertsTest : public ServiceTest {};

TEST_F(AlertsTest, RunsTheCommandWhenAnExperimentEnds) {
  const TestFolder folder;
  const std::string pipe = folder / "alerts";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const process::FileDescriptor reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string experiment = Create(SmallSpec(1)).experiment().name();
  {
    const Alerts alerts("cat > '" + pipe + "'", &store(), scheduler(), absl::Milliseconds(5));
    Cancel(experiment);
    pollfd event{reader.get(), POLLIN, 0};
    ASSERT_EQ(poll(&event, 1, /*timeout=*/60'000), 1);
  }
  std::array<char, 4096> lines{};
  const ssize_t size = read(reader.get(), lines.data(), lines.size());
  EXPECT_EQ(std::string(lines.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))),
            "{\"alert\":\"experiment_cancelled\",\"text\":\"small of ada was cancelled: 2 "
            "cancelled\",\"experiment\":\"" +
                experiment + "\",\"name\":\"small\",\"owner\":\"ada\"}\n");
}

}  // namespace
}  // namespace ablate::service
