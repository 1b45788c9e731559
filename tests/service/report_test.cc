// Tests RenderReport: whole pages, also of running experiments, and refusals.
#include "absl/strings/match.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class ReportTest : public ServiceTest {
 protected:
  grpc::Status Render(const std::vector<std::string>& experiments, std::string* page) {
    Context context;
    v1::RenderReportRequest request;
    for (const std::string& experiment : experiments) request.add_experiments(experiment);
    auto reader = reports_->RenderReport(&context, request);
    v1::FileChunk chunk;
    while (reader->Read(&chunk)) {
      EXPECT_EQ(chunk.path(), "");
      EXPECT_LE(chunk.data().size(), 1u << 20);
      page->append(chunk.data());
    }
    return reader->Finish();
  }
};

TEST_F(ReportTest, MakesOnePageOfSeveralExperiments) {
  v1::ExperimentSpec asks = SmallSpec(2, "asks");
  asks.set_question("Does it <matter>?");
  asks.mutable_report()->set_primary("train/loss");
  const std::string first = Create(asks).experiment().name();
  const std::string second = Create(SmallSpec(1, "other", 20)).experiment().name();
  auto worker = MakeWorker();
  TrainAll(worker.get(), 4);
  std::string page;
  const grpc::Status status = Render({first, second}, &page);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(absl::StartsWith(page, "<!DOCTYPE html>\n"));
  EXPECT_TRUE(absl::EndsWith(page, "</html>\n"));
  EXPECT_THAT(page, HasSubstr("Does it &lt;matter&gt;?</h2>"));
  EXPECT_THAT(page, HasSubstr("<section id=\"e1-verdict\""));
  EXPECT_THAT(page, HasSubstr("<div id=\"e2-provenance\""));
  EXPECT_THAT(page, HasSubstr("class=\"answer preliminary\">Preliminary, "));
}

TEST_F(ReportTest, RefusesAnExperimentThatIsNamedTwice) {
  const std::string name = Create(SmallSpec()).experiment().name();
  std::string page;
  const grpc::Status status = Render({name, name}, &page);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "experiments[1]");
  EXPECT_EQ(page, "");
}

TEST_F(ReportTest, RefusesAnUnknownAxisBeforeTheFirstByte) {
  const std::string name = Create(SmallSpec()).experiment().name();
  Context context;
  v1::RenderReportRequest request;
  request.add_experiments(name);
  request.set_by("no-such-axis");
  auto reader = reports_->RenderReport(&context, request);
  v1::FileChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(FieldOf(reader->Finish()), "by");
}

}  // namespace
}  // namespace ablate::service
