// Tests pages against a server whose answers a test writes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/web/site.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::web {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint16_t kPagesPort = 8123;
// In every text that people write.
constexpr char kHostile[] = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";

class PagesTest : public client::ClientTest {
 protected:
  PagesTest() {
    answers_.list = [this](const auto&, v1::ListExperimentsResponse* response) {
      *response->add_experiments() = experiment_;
      return result_;
    };
    answers_.get = [this](const auto&, v1::Experiment* response) {
      *response = experiment_;
      return result_;
    };
    answers_.compare = [this](const auto&, v1::Comparison* response) {
      *response = comparison_;
      return absl::OkStatus();
    };
    answers_.runs = [this](const auto& request, v1::ListRunsResponse* response) {
      asked_.push_back(request.filter());
      *response->add_rows() = row_;
      return absl::OkStatus();
    };
    answers_.run = [this](const auto&, v1::Run* response) {
      *response = run_;
      return result_;
    };
    experiment_.set_name("experiments/norms-1a2b");
    experiment_.mutable_spec()->set_name("norms");
    experiment_.set_state(v1::ExperimentState::ACTIVE);
    experiment_.mutable_counts()->set_done(3);
    experiment_.mutable_counts()->set_queued(5);
    comparison_.set_key("eval/loss");
    comparison_.set_planned(8);
    comparison_.set_ended(3);
    row_.set_cell("pre-s1");
    row_.set_run("runs/3f2a");
    row_.set_experiment(experiment_.name());
    run_.set_name("runs/3f2a");
    run_.set_state(v1::RunState::DONE);
    StartServer();
    const std::string address = server_->address();
    client::Context context;
    context.now = [this] { return now_; };
    context.sleep = [](absl::Duration) {};
    site_ = std::make_unique<Site>(
        context,
        [address] {
          return std::make_unique<Connection>(client::ServerAddress{address},
                                              [](absl::Duration) {});
        },
        "personal", "");
    site_->run = [this](const std::vector<std::string>& arguments, const client::Context& given) {
      commands_.push_back(absl::StrJoin(arguments, "|"));
      *given.console.out << "changed norms-1a2b\n";
      return 0;
    };
  }

  Response Get(const std::string& path, const Fields& query = {}) {
    Request request;
    request.method = "GET";
    request.path = path;
    request.query = query;
    request.host = "127.0.0.1:8123";
    request.cookies = absl::StrCat("ablate-8123=", site_->secrets.cookie);
    Response response = Answer(*site_, kPagesPort, request);
    if (response.stream != nullptr) {
      response.stream([&](absl::string_view piece) {
        response.body.append(piece.data(), piece.size());
        return true;
      });
    }
    return response;
  }

  Response Post(const std::string& path, const std::string& value) {
    Request request;
    request.method = "POST";
    request.path = path;
    request.host = "127.0.0.1:8123";
    request.cookies = absl::StrCat("ablate-8123=", site_->secrets.cookie);
    request.content_type = "application/x-www-form-urlencoded";
    request.form = {{"form", site_->secrets.form}, {"value", value}};
    return Answer(*site_, kPagesPort, request);
  }

  std::vector<std::string> commands_;  // that the page ran
  v1::Experiment experiment_;
  v1::Comparison comparison_;
  v1::RunRow row_;
  v1::Run run_;
  std::unique_ptr<Site> site_;
};

TEST_F(PagesTest, HomeListsExperimentsAlsoOfAServerWithoutOtherLists) {
  const Response home = Get("/");
  EXPECT_EQ(home.status, 200);
  EXPECT_THAT(home.body, AllOf(HasSubstr("norms-1a2b</a>"), HasSubstr("preliminary"),
                               HasSubstr("The server is older than this page")));
}

TEST_F(PagesTest, EveryPageHasAPolicy) {
  for (const char* path : {"/", "/e/norms-1a2b", "/r/3f2a", "/files/page.css", "/nowhere"}) {
    const Response response = Get(path);
    const bool has =
        std::any_of(response.headers.begin(), response.headers.end(),
                    [](const auto& header) { return header.first == "Content-Security-Policy"; });
    EXPECT_TRUE(has) << path;
  }
}

TEST_F(PagesTest, EscapesWhatPeopleWrite) {
  experiment_.mutable_spec()->set_name(kHostile);
  experiment_.mutable_spec()->set_question(kHostile);
  experiment_.set_note(kHostile);
  experiment_.add_tags(kHostile);
  experiment_.set_owner(kHostile);
  experiment_.set_stalled(kHostile);
  experiment_.mutable_counts()->set_failed(1);
  row_.set_cell(kHostile);
  row_.set_failure(absl::StrCat("exit code 1\n", kHostile));
  v1::ComparisonRow* row = comparison_.add_rows();
  row->set_label(kHostile);
  comparison_.mutable_verdict()->set_text(kHostile);
  run_.set_failure(kHostile);
  run_.add_summaries()->set_key(kHostile);
  for (const char* path : {"/", "/e/norms-1a2b", "/e/norms-1a2b/verdict", "/r/3f2a"}) {
    const Response page = Get(path);
    EXPECT_EQ(page.status, 200) << path;
    EXPECT_THAT(page.body, AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script>alert")),
                                 Not(HasSubstr("<img src=x")), Not(HasSubstr("\"'&<"))))
        << path;
  }
}

TEST_F(PagesTest, EscapesWhatProgramsAndWorkersWrite) {
  run_.mutable_resolved_spec()->mutable_spec()->mutable_program();
  answers_.run_log = [](const auto&, v1::ReadRunLogResponse* log) {
    log->set_text(absl::StrCat("line 1\n", kHostile));
    log->set_complete(true);
    return absl::OkStatus();
  };
  answers_.run_events = [](const auto&, v1::ListRunEventsResponse* events) {
    events->add_events()->set_message(kHostile);
    return absl::OkStatus();
  };
  answers_.artifacts = [](const auto&, v1::ListArtifactsResponse* files) {
    files->add_artifacts()->set_kind(kHostile);
    return absl::OkStatus();
  };
  answers_.sql = [](const auto&, const auto& write) {
    v1::SqlRows rows;
    v1::SqlRow* row = rows.add_rows();
    for (int i = 0; i < 2; ++i) row->add_values()->set_text(kHostile);
    write(rows);
    return absl::OkStatus();
  };
  answers_.diff = [](const auto&, v1::DiffExperimentsResponse* diff) {
    diff->add_fields()->add_right(kHostile);
    return absl::OkStatus();
  };
  row_.set_run("runs/other");  // of the first setting
  const std::string body = Get("/r/3f2a").body;
  EXPECT_THAT(body, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<img src=x")),
                          HasSubstr("line 1\n&lt;script&gt;")));
  size_t found = 0;
  for (size_t at = body.find("&lt;script&gt;"); at != std::string::npos;
       at = body.find("&lt;script&gt;", at + 1)) {
    ++found;
  }
  EXPECT_GE(found, 5u);  // log, history, files, cells, differences
}

TEST_F(PagesTest, AnExperimentThatTrainsIsPreliminaryAndInGridOrder) {
  for (const auto& [label, mean] : {std::pair("worse", 3.0), std::pair("better", 2.0)}) {
    v1::ComparisonRow* row = comparison_.add_rows();
    row->set_label(label);
    row->set_mean(mean);
    row->set_n(3);
    row->set_unfinished(2);
  }
  const std::string body = Get("/e/norms-1a2b").body;
  EXPECT_THAT(body, AllOf(HasSubstr("Preliminary"), HasSubstr("3, 2 to come")));
  EXPECT_LT(body.find(">worse<"), body.find(">better<"));
}

TEST_F(PagesTest, AnEndedExperimentHasItsReportInPlace) {
  experiment_.set_state(v1::ExperimentState::ENDED);
  answers_.report = [](const auto&, const auto& write) {
    v1::FileChunk chunk;
    chunk.set_data(
        "<html><head><style>p { color: red; }</style></head><body><main><p>The answer</p></main>"
        "<script>sort();</script></body></html>");
    write(chunk);
    return absl::OkStatus();
  };
  const Response page = Get("/e/norms-1a2b");
  const std::string policy = page.headers[0].second;
  const size_t at = policy.find("'nonce-") + 7;
  const std::string nonce = policy.substr(at, policy.find('\'', at) - at);
  EXPECT_THAT(page.body,
              AllOf(HasSubstr("<p>The answer</p>"),
                    HasSubstr(absl::StrCat("<style nonce=\"", nonce, "\">.report {p {")),
                    HasSubstr(absl::StrCat("<script nonce=\"", nonce, "\">sort();</script>")),
                    HasSubstr("</html>"), Not(HasSubstr("Settings so far"))));
}

TEST_F(PagesTest, ShowsThatTheReportIsMissing) {
  experiment_.set_state(v1::ExperimentState::ENDED);
  answers_.report = [](const auto&, const auto&) {
    return absl::FailedPreconditionError("no cell");
  };
  EXPECT_THAT(Get("/e/norms-1a2b").body,
              AllOf(HasSubstr("No report: no cell"), HasSubstr("</html>")));
}

TEST_F(PagesTest, FailuresHaveTheirLastLines) {
  experiment_.mutable_counts()->set_failed(1);
  row_.set_failure("exit code 1\nTraceback\n  out of memory");
  const std::string body = Get("/e/norms-1a2b").body;
  EXPECT_THAT(asked_, ::testing::Contains("state = failed"));
  EXPECT_THAT(body, AllOf(HasSubstr("1 run failed"), HasSubstr("pre-s1: exit code 1"),
                          HasSubstr("  out of memory</pre>"), HasSubstr("href=\"/r/3f2a\"")));
}

TEST_F(PagesTest, ErrorsArePages) {
  EXPECT_EQ(Get("/nowhere").status, 404);
  EXPECT_EQ(Get("/e/").status, 404);
  result_ = client::NotFound("no experiment is called that", "EXPERIMENT_NOT_FOUND");
  const Response missing = Get("/e/other");
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.body, HasSubstr("no experiment is called that"));
}

TEST_F(PagesTest, LoadsAgainWhileTheServerIsGone) {
  server_.reset();
  const Response gone = Get("/");
  EXPECT_EQ(gone.status, 503);
  EXPECT_THAT(gone.body, HasSubstr("answer"));
  EXPECT_THAT(gone.headers,
              ::testing::Contains(std::pair<std::string, std::string>("Refresh", "5")));
}

TEST_F(PagesTest, RefusesWithoutACookie) {
  Request request;
  request.method = "GET";
  request.path = "/";
  request.host = "127.0.0.1:8123";
  const Response refused = Answer(*site_, kPagesPort, request);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, Not(HasSubstr("norms")));
}

TEST_F(PagesTest, AFigureHasItsFilesAndRefusesWrongSteps) {
  answers_.figure = [](const v1::RenderFigureRequest& request, v1::RenderFigureResponse* response) {
    response->set_data("<svg></svg>");
    response->set_media_type("image/svg+xml");
    response->set_csv(absl::StrCat(request.kind(), ",", request.key(), ",", request.step()));
    return absl::OkStatus();
  };
  EXPECT_THAT(Get("/e/norms-1a2b/figure", {{"kind", "forest"}}).body,
              AllOf(HasSubstr("<svg></svg>"), HasSubstr("/figure.pdf?kind=forest")));
  const Response csv =
      Get("/e/norms-1a2b/figure.csv", {{"kind", "loss"}, {"key", "eval/loss"}, {"step", "-1"}});
  EXPECT_EQ(csv.type, "text/csv; charset=utf-8");
  EXPECT_EQ(csv.body, "loss,eval/loss,-1");
  EXPECT_EQ(Get("/e/norms-1a2b/figure.svg", {{"step", "-2"}}).status, 400);
  EXPECT_EQ(Get("/e/norms-1a2b/figure.exe").status, 404);
}

TEST_F(PagesTest, AsksBeforeItActsAndShowsTheCommand) {
  EXPECT_THAT(Get("/e/norms-1a2b").body,
              AllOf(HasSubstr("/e/norms-1a2b/do/cancel"), Not(HasSubstr("/do/resume")),
                    Not(HasSubstr("/do/restore"))));
  EXPECT_THAT(Get("/e/norms-1a2b/do/tag").body,
              AllOf(HasSubstr("name=\"value\""), Not(HasSubstr("method=\"post\""))));
  const std::string asks = Get("/e/norms-1a2b/do/tag", {{"value", "it's; rm"}}).body;
  EXPECT_THAT(asks,
              AllOf(HasSubstr("ablate edit norms-1a2b &#39;--tag=it&#39;\\&#39;&#39;s; rm&#39;"),
                    HasSubstr("method=\"post\""), HasSubstr(site_->secrets.form)));
  EXPECT_TRUE(commands_.empty());
  const Response done = Post("/e/norms-1a2b/do/tag", "-x");
  EXPECT_THAT(commands_, ::testing::ElementsAre("edit|norms-1a2b|--tag=-x"));
  EXPECT_THAT(done.body, AllOf(HasSubstr("Done."), HasSubstr("changed norms-1a2b")));
}

TEST_F(PagesTest, ANoteKeepsItsLines) {
  experiment_.set_note("one\ntwo");
  EXPECT_THAT(Get("/e/norms-1a2b/do/note").body, HasSubstr(">one\ntwo</textarea>"));
  Post("/e/norms-1a2b/do/note", "one\r\nthree");
  EXPECT_EQ(commands_.back(), "edit|norms-1a2b|--note=one\nthree");
  Post("/e/norms-1a2b/do/note", "");
  EXPECT_EQ(commands_.back(), "edit|norms-1a2b|--no-note");
}

TEST_F(PagesTest, EveryActionHasItsCommand) {
  const std::pair<const char*, const char*> commands[] = {
      {"cancel", "cancel|norms-1a2b"},
      {"retry", "submit|--again|norms-1a2b"},
      {"seeds", "submit|--extend|norms-1a2b|--seeds=8"},
      {"pause", "queue|pause|norms-1a2b"},
      {"resume", "queue|resume|norms-1a2b"},
      {"untag", "edit|norms-1a2b|--untag=8"},
      {"note", "edit|norms-1a2b|--note=8"},
      {"archive", "edit|norms-1a2b|--archive"},
      {"restore", "edit|norms-1a2b|--restore"}};
  for (const auto& [action, command] : commands) {
    Post(absl::StrCat("/e/norms-1a2b/do/", action), "8");
    EXPECT_EQ(commands_.back(), command);
  }
  EXPECT_EQ(Post("/e/norms-1a2b/do/rm", "").status, 404);
  EXPECT_EQ(commands_.size(), std::size(commands));
}

TEST_F(PagesTest, AReaderIsOfferedNoAction) {
  answers_.who = [](const auto&, v1::WhoAmIResponse* who) {
    who->set_role(v1::Role::reader);
    return absl::OkStatus();
  };
  EXPECT_THAT(Get("/e/norms-1a2b").body, Not(HasSubstr("/do/")));
}

TEST_F(PagesTest, RunsAreAskedForAsTheAddressSays) {
  answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
    asked_.push_back(absl::StrCat(request.experiment(), "|", request.filter(), "|",
                                  request.order_by(), "|", absl::StrJoin(request.columns(), ","),
                                  "|", request.page_token()));
    *response->add_rows() = row_;
    response->mutable_rows(0)->add_values()->set_number_value(2);
    response->mutable_rows(0)->add_values()->set_string_value("0.01");
    response->set_next_page_token("next");
    return absl::OkStatus();
  };
  const Fields query = {{"filter", "seed = 1"},
                        {"sort", "lr desc"},
                        {"columns", "eval/loss, lr"},
                        {"page", "p"},
                        {"draw", "scatter"}};
  const std::string body = Get("/runs", query).body;
  EXPECT_EQ(asked_.back(), "experiments/-|seed = 1|lr desc|eval/loss,lr|p");
  EXPECT_THAT(body, AllOf(HasSubstr("href=\"/r/3f2a\""), HasSubstr("data-kind=\"scatter\""),
                          HasSubstr("sort=lr"), HasSubstr("page=next"),
                          HasSubstr("filter=seed%20%3D%201")));
  Get("/runs.csv", {{"filter", "-x = 1"}, {"columns", "lr"}});
  EXPECT_EQ(commands_.back(), "runs|--csv|--limit=0|--columns=experiment,state,lr|--|-x = 1");
}

TEST_F(PagesTest, SamplesAreDrawnByTheCommand) {
  EXPECT_THAT(Get("/r/3f2a").body, HasSubstr("/r/3f2a/samples"));
  EXPECT_THAT(Get("/r/3f2a/samples", {{"temperature", "-1"}}).body,
              HasSubstr("changed norms-1a2b"));
  EXPECT_EQ(commands_.back(), "generate|runs/3f2a|--temperature=-1");
}

TEST_F(PagesTest, AWrongConditionKeepsTheForm) {
  answers_.runs = [](const auto&, auto*) { return absl::InvalidArgumentError("filter: <what>"); };
  EXPECT_THAT(Get("/runs", {{"filter", "what"}}).body,
              AllOf(HasSubstr("filter: &lt;what&gt;"), HasSubstr("value=\"what\"")));
}

TEST_F(PagesTest, SqlShowsItsFirstRows) {
  answers_.sql = [](const v1::SqlRequest& request, const auto& write) {
    EXPECT_EQ(request.statement(), "SELECT 1");
    v1::SqlRows rows;
    rows.add_columns(kHostile);
    for (int i = 0; i < 700; ++i) {
      v1::SqlRow* row = rows.add_rows();
      row->add_values()->set_text(kHostile);
      row->add_values()->set_integer(7);  // more than there are columns
    }
    write(rows);
    return absl::OkStatus();
  };
  const std::string body = Get("/sql", {{"query", "SELECT 1"}}).body;
  EXPECT_THAT(body, AllOf(HasSubstr("The first 500 rows"), HasSubstr("/sql.csv?query=SELECT%201"),
                          Not(HasSubstr("<script>alert"))));
  answers_.sql = [](const auto&, const auto&) { return absl::InvalidArgumentError("near <x>"); };
  EXPECT_THAT(Get("/sql", {{"query", "SELECT <x>"}}).body,
              AllOf(HasSubstr("near &lt;x&gt;"), HasSubstr("SELECT &lt;x&gt;</textarea>")));
}

TEST_F(PagesTest, CompletesFieldsAxesAndMetrics) {
  experiment_.mutable_spec()->add_axes()->set_name("placement");
  answers_.metrics = [](const auto&, v1::ListMetricsResponse* response) {
    response->add_metrics()->set_key("eval/loss");
    return absl::OkStatus();
  };
  EXPECT_THAT(Get("/names").body,
              AllOf(HasSubstr("\"model.norm.placement\""), HasSubstr("\"training.learning_rate\""),
                    HasSubstr("\"placement\""), HasSubstr("\"eval/loss\"")));
}

TEST_F(PagesTest, HomeEstimatesTheTimeLeft) {
  answers_.workers = [](const auto&, v1::ListWorkersResponse* response) {
    v1::TrainingRun* training = response->add_workers()->add_training();
    training->set_run("runs/3f2a");
    training->set_steps_per_second(10);
    return absl::OkStatus();
  };
  row_.set_step(200);
  row_.set_steps(400);
  // 200 steps of the run, and 400 of each of the five that wait.
  EXPECT_THAT(Get("/").body, HasSubstr("about 3 min 40 s left"));
}

TEST_F(PagesTest, EventsFollowASnapshotAndTheCurvesOfItsLanes) {
  answers_.watch = [](const auto&, const auto& write) {
    v1::ExperimentEvent event;
    event.mutable_snapshot()->set_fraction(.5);
    event.mutable_snapshot()->add_lanes()->mutable_training()->set_run("runs/3f2a");
    write(event);
    return absl::UnavailableError("the server restarts");
  };
  answers_.query = [](const v1::QueryMetricsRequest& request, const auto& write) {
    v1::Series series;
    series.set_run("runs/3f2a");
    // First all points, then those of the run that a lane trains.
    const bool all = request.max_points() > 0;
    EXPECT_EQ(request.first_step(), all ? 0u : 1u);
    series.add_steps(all ? 0 : 1);
    series.add_values(all ? 3 : 2);
    write(series);
    return absl::OkStatus();
  };
  row_.set_steps(10);
  Request request;
  request.method = "GET";
  request.path = "/e/norms-1a2b/events";
  request.host = "127.0.0.1:8123";
  request.cookies = absl::StrCat("ablate-8123=", site_->secrets.cookie);
  const Response response = Answer(*site_, kPagesPort, request);
  EXPECT_EQ(response.type, "text/event-stream");
  std::string events;
  response.stream([&](absl::string_view piece) {
    events.append(piece.data(), piece.size());
    const auto has = [&](const char* text) { return events.find(text) != std::string::npos; };
    return !(has("\"board\"") && has("50 %") && has("[1,[2,2,2]]") && has("the server restarts"));
  });
  EXPECT_THAT(events, HasSubstr("[0,[3,3,3]]"));
}

TEST_F(PagesTest, ALargeExperimentIsComparedAfterThePage) {
  answers_.compare = [](const auto&, auto*) {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  experiment_.mutable_counts()->set_queued(100'000);
  EXPECT_THAT(Get("/e/norms-1a2b").body, HasSubstr("The comparison follows"));
}

TEST_F(PagesTest, ShowsTheLicenceOfWhatItHasFromOthers) {
  EXPECT_THAT(Get("/licences").body, AllOf(HasSubstr("dygraphs"), HasSubstr("Dan Vanderkam")));
  EXPECT_THAT(Get("/files/dygraph.js").body, HasSubstr("Dygraph"));
}

}  // namespace
}  // namespace ablate::web
