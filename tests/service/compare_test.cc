// Tests Compare and RenderTable: from stored runs to numbers, sentences and files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

class CompareTest : public ServiceTest {
 protected:
  // Trains every run of a new experiment: eval/loss ends at 2 + 0.01 × seed, 0.1 more if post (and
  // a little that differs between seeds); seeds in `diverged` of post diverge.
  std::string Train(const v1::ExperimentSpec& spec, const std::vector<uint32_t>& diverged = {}) {
    const v1::CreateExperimentResponse created = Create(spec);
    if (worker_ == nullptr) worker_ = MakeWorker();
    for (int i = 0; i < created.cells_size(); ++i) TrainNext(diverged);
    return created.experiment().name();
  }

  // Trains one run more.
  void TrainNext(const std::vector<uint32_t>& diverged) {
    const FakeWorker::Leased run = worker_->NextRun();
    const v1::RunSpec& resolved = run.run.spec();
    const bool post = resolved.spec().model().norm().placement() == v1::NormPlacement::post;
    const uint32_t seed = resolved.seed();
    const bool none = post && seed == zero_;
    const double end = none ? 0 : 2 + .01 * seed + (post ? .1 + .001 * (seed % 3) : 0);
    worker_->Started(run);
    worker_->Points(run, {{"eval/loss", {0, 10}, {3., end}}, {"train/loss", {0, 1, 2}, {9, 6, 3}}},
                    10);
    const bool diverges =
        post && std::find(diverged.begin(), diverged.end(), seed) != diverged.end();
    worker_->Finished(run, 10, diverges);
    worker_->Settle();
  }

  std::string Table(const std::string& experiment, v1::TableFormat::Value format) {
    v1::RenderTableRequest request;
    request.mutable_comparison()->set_experiment(experiment);
    request.set_format(format);
    return AnswerOf(*reports_, &v1::Reports::Stub::RenderTable, request).data();
  }

  std::unique_ptr<FakeWorker> worker_;
  std::optional<uint32_t> zero_;  // the seed of post whose eval/loss ends at 0
};

TEST_F(CompareTest, SaysInADryRunWhichDifferenceIsDetectable) {
  const v1::ExperimentSpec planned = SmallSpec(8, "planned");
  const std::string unknown =
      "least detectable difference of eval/loss: unknown, because no stored experiment shows the "
      "spread of this metric for the same task and model; it is 1.2 standard deviations of the "
      "paired differences (8 seeds, power 80 %, level 5 %)";
  EXPECT_THAT(Preview(planned).notes(), Contains(unknown));
  v1::ExperimentSpec few = SmallSpec(2, "few");
  few.mutable_seeds()->set_first(100);
  Train(few);
  EXPECT_THAT(Preview(planned).notes(), Contains(unknown));
  v1::ExperimentSpec other = SmallSpec(6, "other");
  other.mutable_base()->mutable_model()->set_width(16);
  Train(other);
  EXPECT_THAT(Preview(planned).notes(), Contains(unknown));

  // Differences of 0.1, 0.101, 0.102, twice: a standard deviation of 0.00089.
  const std::string stored = Train(SmallSpec(6, "stored")).substr(12);
  const std::string known = absl::StrCat(
      "least detectable difference of eval/loss: about 0.001 (8 seeds, power 80 %, level 5 %), if "
      "seeds vary as in ",
      stored, ", whose settings and steps may differ (6 seeds)");
  EXPECT_THAT(Preview(planned).notes(), Contains(known));
  v1::ExperimentSpec newer = SmallSpec(6, "newer");
  newer.mutable_axes(0)->set_name("norm");
  Create(newer);
  EXPECT_THAT(Preview(planned).notes(), Contains(known)) << "the same axes come before newer ones";
  EXPECT_THAT(Create(planned).notes(), Not(Contains(HasSubstr("least detectable"))));
  EXPECT_THAT(Preview(SmallSpec(5)).notes(), Not(Contains(HasSubstr("least detectable"))))
      << "too few seeds to establish anything";
}

TEST_F(CompareTest, GivesRowsWithEveryNumber) {
  const std::string name = Train(SmallSpec(8));
  const v1::Comparison comparison = Compare(name);
  EXPECT_EQ(comparison.experiment(), name);
  EXPECT_EQ(comparison.key(), "eval/loss");
  EXPECT_EQ(comparison.at(), -1);
  EXPECT_EQ(comparison.better(), v1::Better::lower);
  EXPECT_THAT(comparison.row_axes(), ElementsAre("placement"));
  ASSERT_EQ(comparison.rows_size(), 2);
  EXPECT_EQ(comparison.family(), 1u);

  const v1::ComparisonRow& pre = comparison.rows(0);
  EXPECT_TRUE(pre.is_baseline());
  EXPECT_THAT(pre.labels(), UnorderedElementsAre(Pair("placement", "pre")));
  EXPECT_NEAR(pre.mean(), 2.035, 1e-12);
  EXPECT_FALSE(pre.difference().has_mean());
  EXPECT_EQ(pre.difference().undefined().at("mean"), v1::Undefined::IS_BASELINE);
  EXPECT_EQ(pre.undefined().at("p_holm"), v1::Undefined::IS_BASELINE);

  const v1::ComparisonRow& post = comparison.rows(1);
  EXPECT_EQ(post.label(), "post");
  EXPECT_EQ(post.baseline(), 0u);
  EXPECT_EQ(post.n(), 8u);
  EXPECT_EQ(post.diverged(), 0u);
  EXPECT_NEAR(post.difference().mean(), .1 + .007 / 8, 1e-12);
  EXPECT_LT(post.difference().low(), post.difference().mean());
  EXPECT_GT(post.difference().high(), post.difference().mean());
  EXPECT_NEAR(post.p_sign_flip(), 2. / 256, 1e-12);
  EXPECT_EQ(post.p_holm(), post.p_sign_flip());
  EXPECT_TRUE(post.exact());
  EXPECT_EQ(post.wins(), 0u);
  EXPECT_EQ(post.losses(), 8u);
  EXPECT_GT(post.parameters(), 100u);
  EXPECT_EQ(post.runs_size(), 8);
  EXPECT_EQ(post.runs(1).cell(), "post-s1");
  EXPECT_NEAR(post.runs(1).value(), 2.111, 1e-12);
  ASSERT_EQ(post.changed_size(), 1);
  EXPECT_EQ(post.changed(0).path(), "model.norm.placement");
  EXPECT_EQ(post.changed(0).value(), "post");
  EXPECT_EQ(post.changed(0).baseline(), "pre");
  EXPECT_EQ(post.verdict().outcome(), v1::VerdictOutcome::WORSE);
  EXPECT_EQ(comparison.verdict().outcome(), v1::VerdictOutcome::WORSE);
  EXPECT_THAT(comparison.text(), HasSubstr("\n" + comparison.verdict().text() + "\n"));
}

TEST_F(CompareTest, CountsDivergedRunsAndNamesWhatIsUndefined) {
  const v1::Comparison comparison = Compare(Train(SmallSpec(2), {0}));
  const v1::ComparisonRow& post = comparison.rows(1);
  EXPECT_EQ(post.diverged(), 1u);
  EXPECT_EQ(post.pairs(), 2u);
  EXPECT_EQ(post.pairs_converged(), 1u);
  EXPECT_TRUE(post.runs(0).diverged());
  EXPECT_FALSE(post.runs(0).has_value());
  EXPECT_TRUE(post.difference().has_mean());
  EXPECT_FALSE(post.difference().has_low());
  EXPECT_EQ(post.difference().undefined().at("low"), v1::Undefined::TOO_FEW_PAIRS);
  EXPECT_EQ(post.undefined().at("correlation"), v1::Undefined::TOO_FEW_PAIRS);
  EXPECT_EQ(comparison.warnings(0).kind(), v1::ComparisonWarning::TOO_FEW_SEEDS);
}

TEST_F(CompareTest, GivesNoVerdictWhileRunsGoOn) {
  const std::string name = Create(SmallSpec(8)).experiment().name();
  worker_ = MakeWorker();
  for (int trained = 0; trained <= 16; ++trained) {
    const v1::Comparison comparison = Compare(name);
    EXPECT_EQ(comparison.planned(), 16u);
    EXPECT_EQ(comparison.ended(), static_cast<uint32_t>(trained));
    EXPECT_EQ(comparison.rows(0).unfinished() + comparison.rows(1).unfinished(), 16u - trained);
    const v1::VerdictOutcome::Value outcome =
        trained < 16 ? v1::VerdictOutcome::PRELIMINARY : v1::VerdictOutcome::WORSE;
    EXPECT_EQ(comparison.verdict().outcome(), outcome);
    EXPECT_EQ(comparison.rows(1).verdict().outcome(), outcome);
    const std::string first = comparison.text().substr(0, comparison.text().find('\n'));
    const std::string preliminary = absl::StrCat("preliminary, ", trained, " of 16 runs");
    EXPECT_EQ(first == preliminary, trained < 16) << first;
    EXPECT_EQ(comparison.warnings_size(), 0) << comparison.warnings(0).text();
    if (trained < 16) TrainNext({});
  }
  EXPECT_THAT(Table(name, v1::TableFormat::csv),
              HasSubstr(",16,16,worse,established,difference,,,,"));
}

// Documents of 3 to 7 characters; settings of a context that cuts some, and of one that cuts none.
TEST_F(CompareTest, GivesNoVerdictOnOtherData) {
  v1::ExperimentSpec spec = SmallSpec(8);
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset(
      Upload("texts.txt", "abc\nbcde\nabcdefg\ncab\nbad\n").name());
  spec.mutable_base()->mutable_task()->mutable_documents()->set_held_out(2);
  spec.mutable_axes(0)->set_name("context");
  spec.mutable_axes(0)->clear_settings();
  spec.mutable_axes(0)->set_field("model.context");
  for (const int context : {8, 16, 4}) {
    spec.mutable_axes(0)->add_values()->set_number_value(context);
  }
  const v1::Comparison comparison = Compare(Train(spec));
  ASSERT_EQ(comparison.rows_size(), 3);
  EXPECT_EQ(comparison.rows(1).scored_differently_size(), 0) << "neither cuts a document";
  EXPECT_NE(comparison.rows(1).verdict().outcome(), v1::VerdictOutcome::SCORED_DIFFERENTLY);
  EXPECT_THAT(comparison.rows(2).scored_differently(), ElementsAre("model.context"));
  EXPECT_EQ(comparison.rows(2).verdict().outcome(), v1::VerdictOutcome::SCORED_DIFFERENTLY);
  EXPECT_EQ(comparison.rows(2).undefined().at("p_holm"), v1::Undefined::SCORED_DIFFERENTLY);
  ASSERT_GT(comparison.warnings_size(), 0);
  EXPECT_EQ(comparison.warnings(0).kind(), v1::ComparisonWarning::SCORED_DIFFERENTLY);
  EXPECT_EQ(comparison.family(), 1u);
}

// Results that depend on its documents' lengths are missing; others are not.
TEST_F(CompareTest, NamesADatasetThatCannotBeReadInsteadOfWithholdingAVerdict) {
  const v1::Dataset dataset = Upload("texts.txt", "abc\nbcde\nabcdefg\ncab\nbad\n");
  v1::ExperimentSpec spec = SmallSpec(2, "placements");
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset(dataset.name());
  spec.mutable_base()->mutable_task()->mutable_documents()->set_held_out(2);
  const std::string placements = Train(spec);
  spec.set_name("contexts");
  spec.mutable_axes(0)->set_name("context");
  spec.mutable_axes(0)->clear_settings();
  spec.mutable_axes(0)->set_field("model.context");
  for (const int context : {8, 12}) spec.mutable_axes(0)->add_values()->set_number_value(context);
  const std::string contexts = Train(spec);
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  ASSERT_TRUE(store().KeepCounts(id, {}).ok());  // as an older version left it
  ASSERT_TRUE(std::filesystem::remove(absl::StrCat(folder(), "/blobs/", dataset.sha256())));
  EXPECT_EQ(Compare(placements).rows(1).scored_differently_size(), 0);
  v1::CompareRequest request;
  request.set_experiment(contexts);
  const grpc::Status status = TryCompare(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(),
              HasSubstr(absl::StrCat("the text of data set ", id, " can't be read")));
}

TEST_F(CompareTest, ChoosesTunedValuesAndShowsMatchedOnes) {
  v1::ExperimentSpec spec = SmallSpec(3);
  v1::Axis* axis = spec.add_axes();
  axis->set_name("lr");
  axis->set_field("training.learning_rate");
  for (const double learning_rate : {.01, .001})
    axis->add_values()->set_number_value(learning_rate);
  axis->set_tune(true);
  const v1::Comparison comparison = Compare(Train(spec));
  ASSERT_EQ(comparison.rows_size(), 2);
  EXPECT_THAT(comparison.tuned_axes(), ElementsAre("lr"));
  ASSERT_EQ(comparison.rows(1).chosen_size(), 1);
  EXPECT_EQ(comparison.rows(1).chosen(0).labels().at("lr"), "0.01") << "ties: the first value";
  EXPECT_EQ(comparison.rows(1).chosen(0).seeds(), 3u);
  ASSERT_EQ(comparison.matched_size(), 2);
  EXPECT_FALSE(comparison.matched(0).is_reference());
  EXPECT_TRUE(comparison.matched(1).is_reference()) << "the base's own learning rate";
  EXPECT_EQ(comparison.matched(1).labels().at("lr"), "0.001");
  EXPECT_EQ(comparison.matched(1).rows_size(), 2);
  EXPECT_THAT(comparison.matched_note(), HasSubstr("All at lr 0.001: “post” "));
}

TEST_F(CompareTest, ReducesTheWindowsOfTheSpec) {
  v1::ExperimentSpec spec = SmallSpec(3);
  v1::Window* last = spec.mutable_report()->add_summaries();
  last->set_key("train/loss");
  last->set_last(2);
  v1::Window* all = spec.mutable_report()->add_summaries();
  all->set_key("train/loss");
  all->set_reduce(v1::Reduce::max);
  v1::Window* absent = spec.mutable_report()->add_summaries();
  absent->set_key("eval/accuracy");
  const v1::Comparison comparison = Compare(Train(spec, {1}));
  const v1::ComparisonRow& post = comparison.rows(1);
  ASSERT_EQ(post.windows_size(), 3);
  EXPECT_EQ(post.windows(0).window().last(), 2u);
  EXPECT_EQ(post.windows(0).n(), 2u) << "the diverged run is not reduced";
  EXPECT_EQ(post.windows(0).mean(), 4.5);
  EXPECT_EQ(post.windows(0).fewest_points(), 2u);
  EXPECT_FALSE(post.windows(0).has_low());
  EXPECT_EQ(post.windows(0).undefined().at("low"), v1::Undefined::ZERO_VARIANCE);
  EXPECT_EQ(post.windows(1).mean(), 9);
  EXPECT_EQ(post.windows(2).left_out(), 2u);
  EXPECT_EQ(post.windows(2).undefined().at("mean"), v1::Undefined::TOO_FEW_RUNS);
  EXPECT_THAT(comparison.text(), HasSubstr("training loss, mean of the last 2"));
}

TEST_F(CompareTest, NamesTheFieldOfABadRequest) {
  const std::string name = Train(SmallSpec(1));
  v1::CompareRequest request;
  request.set_experiment(name);
  request.set_at(-2);
  grpc::Status status = TryCompare(request);
  EXPECT_EQ(status.error_message(),
            "at: -2 is out of range; expected a step from 0 on, or -1 for the end");
  EXPECT_EQ(FieldOf(status), "at");
  request.set_at(0);
  const v1::Comparison comparison = Compare(request);
  EXPECT_EQ(comparison.rows(0).mean(), 3);
  EXPECT_EQ(comparison.at(), 0);
  request.set_by("seed");
  status = TryCompare(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "by");
}

TEST_F(CompareTest, ComparesPartsOfSeveralExperiments) {
  const std::string first = Train(SmallSpec(4));
  v1::ExperimentSpec longer = SmallSpec(4);
  longer.mutable_base()->mutable_model()->set_layers(2);
  const std::string second = Train(longer);
  v1::CompareRequest request;
  request.set_experiment(first + "/pre");
  request.add_others(second + "/post");
  const v1::Comparison comparison = Compare(request);
  EXPECT_EQ(comparison.experiment(), first + "/pre");
  const std::string id = second.substr(second.find('/') + 1);
  EXPECT_THAT(comparison.others(), ElementsAre(id + "/post"));
  ASSERT_EQ(comparison.rows_size(), 2);
  EXPECT_EQ(comparison.rows(1).label(), id + "/post");
  EXPECT_EQ(comparison.rows(1).runs(0).cell(), id + "/post-s0");
  EXPECT_THAT(comparison.text(), HasSubstr("specs, in brackets the baseline's:\n  “" + id +
                                           "/post”  model.layers 2 (1)"));
  EXPECT_EQ(comparison.warnings(0).kind(), v1::ComparisonWarning::SEVERAL_EXPERIMENTS);

  (*request.mutable_baseline())["setting"] = second + "/post";
  EXPECT_TRUE(Compare(request).rows(1).is_baseline());
  const std::pair<const char*, const char*> wrong[] = {
      {"setting", "baseline[setting]: \"poost\" isn't compared here; expected "},
      {"norm", "baseline: \"norm\" isn't an axis here; expected setting=EXP/SETTING"}};
  for (const auto& [axis, message] : wrong) {
    request.mutable_baseline()->clear();
    (*request.mutable_baseline())[axis] = "poost";
    const grpc::Status status = TryCompare(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  request.mutable_baseline()->clear();
  request.set_others(0, "runs/1");
  const grpc::Status status = TryCompare(request);
  EXPECT_EQ(FieldOf(status), "others[0]");
  EXPECT_THAT(status.error_message(), HasSubstr("\"runs/1\" is a run; expected EXP, EXP/CELL"));
  for (int i = 0; i < 19; ++i) request.add_others(second);
  EXPECT_EQ(FieldOf(TryCompare(request)), "others");
}

TEST_F(CompareTest, HasRatiosBesideTheDifferencesOfLogarithms) {
  v1::ExperimentSpec spec = SmallSpec(8);
  spec.mutable_report()->set_scale(v1::Scale::ratio);
  const v1::Comparison comparison = Compare(Train(spec));
  EXPECT_EQ(comparison.scale(), v1::Scale::ratio);
  const v1::Difference& difference = comparison.rows(1).difference();
  double sum = 0;
  for (int seed = 0; seed < 8; ++seed) {
    sum += std::log(comparison.rows(1).runs(seed).value() / comparison.rows(0).runs(seed).value());
  }
  EXPECT_NEAR(difference.mean(), sum / 8, 1e-12);
  EXPECT_EQ(difference.ratio(), std::exp(difference.mean()));
  EXPECT_EQ(difference.ratio_low(), std::exp(difference.low()));
  EXPECT_EQ(difference.ratio_high(), std::exp(difference.high()));
  EXPECT_THAT(comparison.text(), HasSubstr("in held-out loss: higher by a factor of 1.0"));
  const v1::Difference& of_baseline = comparison.rows(0).difference();
  EXPECT_EQ(of_baseline.undefined().at("ratio"), v1::Undefined::IS_BASELINE);
}

TEST_F(CompareTest, WarnsWhereNoRatioIsThere) {
  v1::ExperimentSpec spec = SmallSpec(8);
  spec.mutable_report()->set_scale(v1::Scale::ratio);
  spec.mutable_report()->set_margin(.1);
  zero_ = 1;
  const v1::Comparison comparison = Compare(Train(spec));
  EXPECT_EQ(comparison.scale(), v1::Scale::difference);
  EXPECT_FALSE(comparison.rows(1).difference().has_ratio());
  EXPECT_EQ(comparison.warnings(0).kind(), v1::ComparisonWarning::NOT_POSITIVE);
}

TEST_F(CompareTest, RendersTheTable) {
  const std::string name = Train(SmallSpec(8));
  EXPECT_THAT(Table(name, v1::TableFormat::text), HasSubstr("Paired difference to pre"));
  const std::vector<std::string> lines = absl::StrSplit(Table(name, v1::TableFormat::csv), "\r\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("key,label,placement,baseline,n,"));
  EXPECT_THAT(lines[2], HasSubstr("eval/loss,post,post,false,8,0,0,0,,"));
  EXPECT_THAT(Table(name, v1::TableFormat::latex), HasSubstr("\\midrule\npre (baseline) & "));
}

}  // namespace
}  // namespace ablate::service
