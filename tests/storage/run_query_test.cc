// Tests queries of runs against a plain model of the store: every condition, order and page.
#include "storage/run_query.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/sqlite/connection.h"
#include "tests/storage/older_store.h"
#include "tests/storage/step_meter.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = RunKey::Kind;
using Op = RunTest::Op;

RunCondition TestOf(const RunKey& key, Op op, RunValue constant = {}) {
  RunCondition condition;
  condition.kind = RunCondition::Kind::kTest;
  condition.test = {key, op, std::move(constant)};
  return condition;
}

RunCondition JoinOf(RunCondition::Kind kind, std::vector<RunCondition> operands) {
  RunCondition condition;
  condition.kind = kind;
  condition.operands = std::move(operands);
  return condition;
}

// A cell of the model: a value for each key that has one.
struct ModelCell {
  std::string experiment;
  std::string cell;
  std::string private_to;
  std::map<std::pair<Kind, std::string>, RunValue> values;
};

std::optional<double> ModelNumber(const RunValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  const auto* text = std::get_if<std::string>(&value);
  double number = 0;
  if (text == nullptr || !absl::SimpleAtod(*text, &number)) return std::nullopt;
  return number;
}

RunValue ModelValue(const ModelCell& cell, const RunKey& key) {
  const auto found = cell.values.find({key.kind, key.name});
  return found == cell.values.end() ? RunValue() : found->second;
}

bool ModelMatches(const ModelCell& cell, const RunCondition& condition) {
  const auto matches = [&](const RunCondition& operand) { return ModelMatches(cell, operand); };
  switch (condition.kind) {
    case RunCondition::Kind::kAnd:
      return std::all_of(condition.operands.begin(), condition.operands.end(), matches);
    case RunCondition::Kind::kOr:
      return std::any_of(condition.operands.begin(), condition.operands.end(), matches);
    case RunCondition::Kind::kNot:
      return !matches(condition.operands.front());
    case RunCondition::Kind::kTest:
      break;
  }
  const RunTest& test = condition.test;
  const RunValue value = ModelValue(cell, test.key);
  if (value.index() == 0) return false;
  if (test.op == Op::kExists) return true;
  int order = 0;
  if (const auto* constant = std::get_if<double>(&test.constant)) {
    const std::optional<double> number = ModelNumber(value);
    if (!number.has_value()) return test.op == Op::kNotEqual;
    order = *number < *constant ? -1 : *number > *constant ? 1 : 0;
  } else {
    const auto& text = std::get<std::string>(value);
    const auto& wanted = std::get<std::string>(test.constant);
    if (test.op == Op::kContains) return text.find(wanted) != std::string::npos;
    order = text.compare(wanted);
  }
  return test.op == Op::kEqual       ? order == 0
         : test.op == Op::kNotEqual  ? order != 0
         : test.op == Op::kLess      ? order < 0
         : test.op == Op::kLessEqual ? order <= 0
         : test.op == Op::kGreater   ? order > 0
                                     : order >= 0;
}

// A store of several experiments that share runs, some of them private to bob.
class RunQueryTest : public StoreTest {
 protected:
  static constexpr int kExperiments = 7;

  void SetUp() override {
    for (int i = 0; i < kExperiments; ++i) AddExperiment(i);
    for (const auto& [run, cells] : cells_of_) EndRun(run);
    // Lists have the newest experiment first; within it the order is the grid's.
    std::stable_sort(model_.begin(), model_.end(), [&](const auto& a, const auto& b) {
      return number_.at(a.experiment) > number_.at(b.experiment);
    });
  }

  void AddExperiment(int number) {
    NewExperiment experiment;
    experiment.name = absl::StrCat("e", number % 4);
    experiment.owner = number % 2 == 0 ? "ann" : "bob";
    experiment.private_to = number >= 5 ? "bob" : "";
    if (number % 3 == 1) experiment.tags = {"paper"};
    if (number % 3 == 2) experiment.tags = {"lr", "paper"};
    experiment.request_id = absl::StrCat("q", number);
    std::vector<ModelCell> cells;
    experiment.fields.common = {{"model.layers", absl::StrCat(number % 3 + 1)}};
    int variant = 0;
    for (const char* norm : {"pre", "post"}) {
      for (const char* lr : {"0.1", "0.02", "auto"}) {
        std::vector<SpecField>& fields = experiment.fields.of_variant.emplace_back();
        fields.push_back({"model.norm.placement", norm});
        if (variant++ % 2 == 0) fields.push_back({"training.clip", absl::StrCat(variant)});
        for (uint32_t seed = 0; seed < 3; ++seed)
          AddCell(number, norm, lr, seed, &experiment, fields);
      }
    }
    Advance(1'000'000);
    const CreatedExperiment created = Create(experiment);
    number_[created.id] = number;
    for (size_t i = 0; i < experiment.cells.size(); ++i) {
      ModelCell& cell = model_[model_.size() - experiment.cells.size() + i];
      cell.experiment = created.id;
      cell.values[{Kind::kCreated, ""}] = static_cast<double>(now());
    }
  }

  void AddCell(int number, const std::string& norm, const std::string& lr, uint32_t seed,
               NewExperiment* experiment, const std::vector<SpecField>& fields) {
    // Neighbours share the runs of seed 0; private runs are apart.
    const std::string prefix = experiment->private_to.empty()
                                   ? absl::StrCat("r", seed == 0 ? number / 2 : number + 10)
                                   : absl::StrCat("p", number);
    const std::string run = absl::StrCat(prefix, "-", norm, "-", lr, "-", seed);
    const std::string name = absl::StrCat(norm, "-", lr, "-s", seed);
    experiment->cells.push_back({name, {{"norm", norm}, {"lr", lr}}, seed, run});
    experiment->runs.push_back(MakeRun(run));
    ModelCell cell;
    cell.cell = name;
    cell.private_to = experiment->private_to;
    cell.values[{Kind::kAxis, "norm"}] = norm;
    cell.values[{Kind::kAxis, "lr"}] = lr;
    for (const SpecField& field : fields) cell.values[{Kind::kField, field.path}] = field.value;
    cell.values[{Kind::kField, "model.layers"}] = experiment->fields.common[0].value;
    cell.values[{Kind::kExperiment, ""}] = experiment->name;
    cell.values[{Kind::kOwner, ""}] = experiment->owner;
    if (!experiment->tags.empty()) {
      cell.values[{Kind::kTags, ""}] = absl::StrCat(" ", absl::StrJoin(experiment->tags, " "), " ");
    }
    cell.values[{Kind::kSeed, ""}] = static_cast<double>(seed);
    cell.values[{Kind::kParameters, ""}] = 1234.;
    cells_of_[run].push_back(model_.size());
    model_.push_back(cell);
  }

  void Set(const std::string& run, Kind kind, const std::string& name, double value) {
    for (const size_t cell : cells_of_.at(run)) model_[cell].values[{kind, name}] = value;
  }

  void Unset(const std::string& run, Kind kind, const std::string& name) {
    for (const size_t cell : cells_of_.at(run)) model_[cell].values.erase({kind, name});
  }

  // Brings a run into some state, and records some metrics.
  void EndRun(const std::string& run) {
    const size_t fate = random_() % 8;
    Set(run, Kind::kState, "", 0);
    if (fate == 0) return;  // queued
    Lease lease(&store(), absl::StrCat("l-", run), {run});
    if (fate == 7) return;  // waits in its worker
    lease.Send(run, StartedEvent{});
    Set(run, Kind::kStarted, "", static_cast<double>(now()));
    Set(run, Kind::kState, "", 1);
    // Few distinct values, so that many are equal.
    const auto value = [&] { return static_cast<double>(random_() % 5) / 4; };
    const double first = value(), last = value();
    lease.Send(run, MakePoints(2, {MakeColumn("eval/loss", {0, 2}, {first, last}),
                                   MakeColumn("none", {0}, {NAN})}));
    Set(run, Kind::kLast, "eval/loss", last);
    Set(run, Kind::kMin, "eval/loss", std::min(first, last));
    Set(run, Kind::kMax, "eval/loss", std::max(first, last));
    if (fate == 1) return;  // running
    Advance(1000);
    if (fate == 2) {  // its loss wasn't finite at step 2
      lease.Send(run, FinishedEvent{true, 2});
      Set(run, Kind::kState, "", 3);
      Unset(run, Kind::kLast, "eval/loss");
    } else {
      std::vector<Column> columns = {MakeColumn("train/loss", {50}, {first})};
      if (fate == 3) {  // its last evaluation isn't finite
        columns.push_back(MakeColumn("eval/loss", {kSteps}, {HUGE_VAL}));
        Unset(run, Kind::kLast, "eval/loss");
      }
      lease.Send(run, MakePoints(kSteps, columns));
      Set(run, Kind::kLast, "train/loss", first);
      lease.Send(run, FinishedEvent{false, kSteps});
      Set(run, Kind::kState, "", 2);
    }
    Set(run, Kind::kEnded, "", static_cast<double>(now()));
  }

  static bool Visible(const Viewer& viewer, const ModelCell& cell) {
    return Sees(viewer, cell.private_to);
  }

  // Returns the names of the cells that a query should find, all pages.
  std::vector<std::string> Expected(const RunQuery& query) {
    std::vector<ModelCell> found;
    for (const ModelCell& cell : model_) {
      if (!Visible(query.viewer, cell) || !ModelMatches(cell, query.where)) continue;
      if (!query.experiment.empty() && cell.experiment != query.experiment) continue;
      found.push_back(cell);
    }
    if (query.order_by.has_value()) {
      const auto before = [&](const ModelCell& a, const ModelCell& b) {
        const RunValue left = ModelValue(a, *query.order_by),
                       right = ModelValue(b, *query.order_by);
        const auto rank = [](const RunValue& value) {
          return value.index() == 0 ? 2 : ModelNumber(value).has_value() ? 0 : 1;
        };
        if (rank(left) != rank(right)) return rank(left) < rank(right);
        if (rank(left) == 2) return false;
        if (rank(left) == 1) {
          const auto &one = std::get<std::string>(left), &other = std::get<std::string>(right);
          return query.descending ? one > other : one < other;
        }
        return query.descending ? *ModelNumber(left) > *ModelNumber(right)
                                : *ModelNumber(left) < *ModelNumber(right);
      };
      std::stable_sort(found.begin(), found.end(), before);
    }
    std::vector<std::string> names;
    for (const ModelCell& cell : found) {
      names.push_back(absl::StrCat(cell.experiment, "/", cell.cell));
    }
    return names;
  }

  // Returns the names of the cells that a query finds, page by page.
  std::vector<std::string> Found(RunQuery query, uint32_t page) {
    std::vector<std::string> names;
    query.limit = page;
    while (true) {
      const std::vector<FoundCell> found = Value(store().FindCells(query));
      EXPECT_LE(found.size(), page);
      for (const FoundCell& one : found) {
        names.push_back(absl::StrCat(one.experiment, "/", one.cell.name));
        for (size_t i = 0; i < query.columns.size(); ++i) {
          EXPECT_EQ(one.values[i], ModelValue(CellNamed(names.back()), query.columns[i]))
              << names.back() << " column " << i;
        }
      }
      if (found.size() < page || names.size() > model_.size()) return names;
      query.after = found.back().position;
    }
  }

  const ModelCell& CellNamed(const std::string& name) {
    return *std::find_if(model_.begin(), model_.end(), [&](const ModelCell& cell) {
      return absl::StrCat(cell.experiment, "/", cell.cell) == name;
    });
  }

  RunCondition RandomCondition(int depth) {
    if (depth > 0 && random_() % 3 != 0) {
      const size_t kind = random_() % 3;
      if (kind == 2) return JoinOf(RunCondition::Kind::kNot, {RandomCondition(depth - 1)});
      std::vector<RunCondition> operands;
      for (size_t i = 0; i < 2 + random_() % 2; ++i) operands.push_back(RandomCondition(depth - 1));
      return JoinOf(kind == 0 ? RunCondition::Kind::kAnd : RunCondition::Kind::kOr, operands);
    }
    const auto op = static_cast<Op>(random_() % 6);
    const double value = static_cast<double>(random_() % 6) / 4;
    switch (random_() % 13) {
      case 0:
        return TestOf({Kind::kField, "model.norm.placement"}, Op::kEqual, "post");
      case 1:
        return TestOf({Kind::kField, "model.layers"}, op, value * 2);
      case 2:
        return TestOf({Kind::kField, "training.clip"}, op, value * 2);
      case 3:
        return TestOf({Kind::kAxis, "lr"}, op, 0.02);
      case 4:
        return TestOf({Kind::kAxis, "lr"}, Op::kContains, "0");
      case 5:
        return TestOf({Kind::kLast, "eval/loss"}, op, value);
      case 6:
        return TestOf({Kind::kMin, "eval/loss"}, op, value);
      case 7:
        return TestOf({Kind::kLast, "train/loss"}, op, value);
      case 8:
        return TestOf({Kind::kState, ""}, op, value * 4);
      case 9:
        return TestOf({Kind::kSeed, ""}, op, value * 2);
      case 10:
        return TestOf({Kind::kEnded, ""}, Op::kExists);
      case 11:
        return TestOf({Kind::kTags, ""}, Op::kContains, random_() % 2 == 0 ? " lr " : " pap ");
      default:
        return TestOf({Kind::kExperiment, ""}, random_() % 2 == 0 ? Op::kEqual : Op::kNotEqual,
                      "e1");
    }
  }

  std::mt19937 random_{3};
  std::vector<ModelCell> model_;
  std::map<std::string, std::vector<size_t>> cells_of_;  // of runs
  std::map<std::string, int> number_;                    // of experiments
};
INSTANTIATE_TEST_SUITE_P(, RunQueryTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(RunQueryTest, FindsWhatAPlainModelFinds) {
  const std::vector<RunKey> keys = {
      {Kind::kLast, "eval/loss"}, {Kind::kMax, "eval/loss"},
      {Kind::kAxis, "lr"},        {Kind::kField, "training.clip"},
      {Kind::kState, ""},         {Kind::kOwner, ""},
      {Kind::kTags, ""},          {Kind::kField, "model.norm.placement"},
      {Kind::kSeed, ""},          {Kind::kEnded, ""},
      {Kind::kExperiment, ""}};
  size_t matched = 0;
  for (int i = 0; i < 200; ++i) {
    RunQuery query;
    query.viewer = i % 3 == 0 ? kServer : i % 3 == 1 ? Viewer{"ann"} : Viewer{"bob"};
    query.where = RandomCondition(3);
    if (i % 4 != 0) query.order_by = keys[random_() % keys.size()];
    query.descending = random_() % 2 == 0;
    if (i % 5 == 0) query.columns = keys;
    if (i % 7 == 0) query.experiment = model_.back().experiment;
    const std::vector<std::string> expected = Expected(query);
    matched += expected.size();
    ASSERT_EQ(Found(query, 1000), expected) << i;
    ASSERT_EQ(Found(query, 1 + random_() % 7), expected) << i << ", page by page";
  }
  EXPECT_GT(matched, 2500u);
}

TEST_P(RunQueryTest, ShowsNothingPrivateToOthers) {
  RunQuery query;
  query.viewer = {"ann"};
  query.limit = 1000;
  const auto seen = Value(store().FindCells(query));
  EXPECT_EQ(seen.size(), 5u * 18);
  query.viewer = {"bob"};
  EXPECT_EQ(Value(store().FindCells(query)).size(), 7u * 18);
}

TEST_P(RunQueryTest, NamesWhatAViewersRunsHave) {
  NewExperiment secret = MakeExperiment({"s1"});
  secret.private_to = "bob";
  secret.cells[0].labels = {{"secret axis", "x"}};
  Create(secret);
  Lease lease(&store(), "l-s1", {"s1"});
  lease.Send("s1", StartedEvent{});
  lease.Send("s1", MakePoints(2, {MakeColumn("secret/open", {0}, {1})}));
  const auto names = [&](const Viewer& viewer) { return Value(store().ListQueryNames(viewer)); };
  EXPECT_THAT(names({"ann"}).axes, ElementsAre("lr", "norm"));
  EXPECT_THAT(names({"bob"}).axes, ElementsAre("lr", "norm", "secret axis"));
  EXPECT_THAT(Value(store().ListLabels({"ann"}, "secret axis")), ::testing::IsEmpty());
  EXPECT_THAT(Value(store().ListLabels({"bob"}, "secret axis")), ElementsAre("x"));
  EXPECT_THAT(names({"ann"}).metrics, ::testing::Not(::testing::Contains("secret/open")));
  EXPECT_THAT(names({"bob"}).metrics, ::testing::Contains("secret/open"));
  lease.Send("s1", FinishedEvent{false, kSteps});
  EXPECT_THAT(names({"ann"}).metrics, ::testing::Not(::testing::Contains("secret/open")));
  EXPECT_THAT(names({"bob"}).metrics, ::testing::Contains("secret/open"));
}

TEST_P(RunQueryTest, KeepsThePlaceOfAPageWhileOthersEnd) {
  RunQuery query;
  query.viewer = kServer;
  query.order_by = RunKey{Kind::kLast, "eval/loss"};
  query.limit = 20;
  const auto first = Value(store().FindCells(query));
  ASSERT_EQ(first.size(), 20u);
  Submit({"late"});
  Lease lease(&store(), "l-late", {"late"});
  lease.Send("late", MakePoints(kSteps, {MakeColumn("eval/loss", {0}, {-1})}));
  lease.Send("late", FinishedEvent{false, kSteps});
  std::set<std::string> names;
  for (const FoundCell& cell : first) names.insert(cell.experiment + cell.cell.name);
  query.after = first.back().position;
  query.limit = 1000;
  for (const FoundCell& cell : Value(store().FindCells(query))) {
    EXPECT_TRUE(names.insert(cell.experiment + cell.cell.name).second) << "twice";
    EXPECT_NE(cell.cell.run, "late") << "it is before the page";
  }
  EXPECT_EQ(names.size(), model_.size());
  query.after.reset();
  query.limit = 1;
  EXPECT_EQ(Value(store().FindCells(query)).front().cell.run, "late");
}

TEST_P(RunQueryTest, ForgetsTheValuesOfARunThatIsQueuedAgainOrRemoved) {
  const CreatedExperiment created = Submit({"again"});
  Lease lease(&store(), "l-again", {"again"});
  lease.Send("again", MakePoints(5, {MakeColumn("only/here", {0}, {1})}));
  ASSERT_TRUE(store().CancelExperiment(created.id).ok());
  RunQuery query;
  query.viewer = kServer;
  query.where = TestOf({Kind::kLast, "only/here"}, Op::kExists);
  query.limit = 10;
  ASSERT_EQ(Value(store().FindCells(query)).size(), 1u);
  Submit({"again"});  // from step 0: it has no saved state
  Lease next(&store(), "l-next", {"again"});
  EXPECT_THAT(Value(store().FindCells(query)), IsEmpty());
}

// An answer with all that it tells: its rows, its error, and the steps of SQLite's virtual machine.
struct ToldOfRuns {
  std::vector<std::string> rows;
  std::string error;
  int64_t steps = 0;
  bool operator==(const ToldOfRuns&) const = default;
};
void PrintTo(const ToldOfRuns& told, std::ostream* out) {
  *out << told.steps << " steps, error \"" << told.error << "\", rows "
       << absl::StrJoin(told.rows, " | ");
}

// A store with a public experiment of ann's and a private one of bob's, which alone has some names
// and values.
class HiddenRunsTest : public StoreTest {
 protected:
  void SetUp() override {
    Reopen();  // so that the meter sees it
    Advance(1'000'000);
    NewExperiment open = MakeExperiment({"a", "b", "waiting"});
    open.name = "open";
    open.owner = "ann";
    open.fields.common = {{"model.layers", "2"}};
    open.fields.of_variant.resize(3);
    for (NewCell& cell : open.cells) cell.labels = {{"lr", "0.1"}};
    open_ = Create(open).id;
    Train({"a"});
    Advance(1'000'000);
    NewExperiment hidden = MakeExperiment({"s", "t", "u"});
    hidden.name = "secret";
    hidden.owner = hidden.private_to = "bob";
    hidden.tags = {"secret"};
    hidden.fields.common = {{"model.layers", "77"}, {"secret.field", "1"}};
    hidden.fields.of_variant.resize(3);
    for (NewCell& cell : hidden.cells) {
      cell.labels = {{"lr", "secret"}, {"secret", "0.7"}};
      cell.seed = 77;
    }
    for (NewRun& run : hidden.runs) {
      run.seed = 77;
      run.parameters = 4321;
    }
    Create(hidden);
    Lease lease(&store(), "l", {"b", "s", "t"});
    for (const char* run : {"b", "s", "t"}) {
      lease.Send(run, StartedEvent{});
      lease.Send(run, MakePoints(2, {MakeColumn("eval/loss", {0, 2}, {1, 2})}));
      Advance(1'000'000);
    }
    for (const char* run : {"s", "t"}) {
      lease.Send(run, MakePoints(4, {MakeColumn("eval/loss", {4}, {7}),
                                     MakeColumn("secret/loss", {4}, {7})}));
    }
    lease.Send("s", Checkpoint(4));
    lease.Send("s", FinishedEvent{true, 4});  // it alone has diverged
  }

  template <typename Ask>
  ToldOfRuns Told(const Ask& ask) {
    ToldOfRuns told;
    told.steps = meter_.StepsOf([&] { told.rows = ask(&told.error); });
    return told;
  }

  // Returns what ann is told of a query.
  ToldOfRuns ToldBy(const RunQuery& query) {
    return Told([&](std::string* error) {
      std::vector<std::string> rows;
      const auto found = store().FindCells(query);
      if (!found.ok()) *error = found.status().ToString();
      for (const FoundCell& cell : found.ok() ? *found : std::vector<FoundCell>()) {
        rows.push_back(absl::StrCat(cell.experiment, "/", cell.cell.name));
      }
      return rows;
    });
  }

  StepMeter meter_;
  std::string open_;
};
// A store on file has other threads, whose steps would count.
INSTANTIATE_TEST_SUITE_P(, HiddenRunsTest, ::testing::Values(Where::kMemory), WhereName);

TEST_P(HiddenRunsTest, TellsNothingOfHiddenRuns) {
  // A key with a value that only the private experiment has; and invented ones.
  struct Question {
    RunKey key;
    RunValue hidden;
    RunKey invented_key;
    RunValue invented;
  };
  const auto micros = [&](Micros before) { return static_cast<double>(now() - before); };
  std::vector<Question> questions;
  const auto ask_value = [&](Kind kind, const std::string& name, RunValue hidden,
                             RunValue invented) {
    questions.push_back({{kind, name}, std::move(hidden), {kind, name}, std::move(invented)});
  };
  ask_value(Kind::kField, "model.layers", 77., 78.);
  ask_value(Kind::kAxis, "lr", "secret", "sfcret");
  ask_value(Kind::kExperiment, "", "secret", "sfcret");
  ask_value(Kind::kOwner, "", "bob", "bop");
  ask_value(Kind::kTags, "", " secret ", " sfcret ");
  ask_value(Kind::kState, "", 3., 4.);
  ask_value(Kind::kSeed, "", 77., 78.);
  ask_value(Kind::kParameters, "", 4321., 4322.);
  ask_value(Kind::kCreated, "", micros(3'000'000), micros(2'999'999));
  ask_value(Kind::kStarted, "", micros(1'000'000), micros(1'000'001));
  ask_value(Kind::kEnded, "", micros(0), micros(1));
  for (const Kind kind : {Kind::kLast, Kind::kMin, Kind::kMax}) {
    ask_value(kind, "eval/loss", 7., 8.);
    questions.push_back({{kind, "secret/loss"}, 7., {kind, "sfcret/loss"}, 7.});
  }
  questions.push_back({{Kind::kAxis, "secret"}, "0.7", {Kind::kAxis, "sfcret"}, "0.7"});
  questions.push_back({{Kind::kField, "secret.field"}, 1., {Kind::kField, "sfcret.field"}, 1.});

  RunQuery plain;
  plain.viewer = {"ann"};
  plain.limit = 10;
  const std::vector<std::string> all = ToldBy(plain).rows;
  ASSERT_EQ(all.size(), 3u);
  for (const Question& question : questions) {
    const std::string what =
        absl::StrCat(static_cast<int>(question.key.kind), " ", question.key.name);
    for (int op = 0; op <= static_cast<int>(Op::kExists); ++op) {
      RunQuery hidden = plain, invented = plain;
      hidden.where = TestOf(question.key, static_cast<Op>(op), question.hidden);
      invented.where = TestOf(question.invented_key, static_cast<Op>(op), question.invented);
      EXPECT_EQ(ToldBy(hidden), ToldBy(invented)) << what << ", operator " << op;
      hidden.where = JoinOf(RunCondition::Kind::kNot, {hidden.where});
      invented.where = JoinOf(RunCondition::Kind::kNot, {invented.where});
      EXPECT_EQ(ToldBy(hidden), ToldBy(invented)) << what << ", not operator " << op;
    }
    for (const bool descending : {false, true}) {
      for (const uint32_t limit : {1u, 10u}) {
        RunQuery hidden = plain, invented = plain;
        hidden.descending = invented.descending = descending;
        hidden.limit = invented.limit = limit;
        hidden.order_by = question.key;
        hidden.columns = {question.key};
        invented.order_by = question.invented_key;
        invented.columns = {question.invented_key};
        EXPECT_EQ(ToldBy(hidden), ToldBy(invented)) << what << " sorted";
        hidden.after = RunPosition{question.hidden, open_, 0};
        invented.after = RunPosition{question.invented, open_, 0};
        EXPECT_EQ(ToldBy(hidden), ToldBy(invented)) << what << " sorted after a row";
      }
    }
  }
  const auto labels_of = [&](const std::string& axis) {
    return Told([&](std::string*) { return Value(store().ListLabels({"ann"}, axis)); });
  };
  EXPECT_EQ(labels_of("secret"), labels_of("sfcret"));
  EXPECT_THAT(labels_of("lr").rows, ElementsAre("0.1"));
  const QueryNames names = Value(store().ListQueryNames({"ann"}));
  EXPECT_THAT(names.axes, ElementsAre("lr"));
  EXPECT_THAT(names.metrics, ElementsAre("eval/loss", "train/loss"));
}

TEST_P(HiddenRunsTest, TellsNothingOfHiddenNames) {
  NewAnalysis analysis;
  analysis.id = analysis.signature = "s";
  analysis.subjects = {{"s", 4}};
  analysis.owner = analysis.private_to = "bob";
  Value(store().CreateAnalysis(analysis, 9));
  const Viewer ann{"ann"};
  const auto experiments = [&](const std::string& prefix) {
    return Told([&](std::string*) { return Value(store().FindExperiments(ann, prefix, 5)); });
  };
  const auto named = [&](const std::string& name) {
    return Told([&](std::string*) {
      std::vector<std::string> ids;
      for (const NamedExperiment& one : Value(store().ExperimentsNamed(ann, name, 5))) {
        ids.push_back(one.id);
      }
      return ids;
    });
  };
  const auto runs = [&](const std::string& prefix) {
    return Told([&](std::string*) { return Value(store().FindRuns(ann, prefix, 5)); });
  };
  const auto analyses = [&](const std::string& prefix) {
    return Told([&](std::string*) { return Value(store().FindAnalyses(ann, prefix, 5)); });
  };
  EXPECT_EQ(experiments("secret"), experiments("sfcret"));
  EXPECT_EQ(named("secret"), named("sfcret"));
  EXPECT_EQ(runs("s"), runs("r"));
  EXPECT_EQ(analyses("s"), analyses("r"));
  EXPECT_THAT(experiments("o").rows, ElementsAre(open_));
  EXPECT_THAT(named("open").rows, ElementsAre(open_));
  EXPECT_THAT(runs("").rows, ElementsAre("a", "b", "waiting"));
  EXPECT_THAT(Value(store().FindRuns({"bob"}, "", 4)), ElementsAre("a", "b", "s", "t"));
  EXPECT_THAT(Value(store().FindRuns(kServer, "", 9)),
              ElementsAre("a", "b", "s", "t", "u", "waiting"));
  EXPECT_THAT(Value(store().FindAnalyses({"bob"}, "", 9)), ElementsAre("s"));
  EXPECT_THAT(Value(store().ExperimentsNamed({"bob"}, "secret", 9)), ::testing::SizeIs(1));
}

// A store in memory has no file to look into.
class DescribeTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, DescribeTest, ::testing::Values(Where::kFile), WhereName);

int64_t CountRows(const std::string& folder, const char* sql) {
  auto db = Value(Connection::OpenFile(folder + "/ablate.db", Connection::Access::kReadOnly));
  Statement row(*db, sql);
  return row.Row() ? row.Int(0) : -1;
}

TEST_P(DescribeTest, WritesTheFieldsAndValuesOfAnOlderStore) {
  const std::string id = Submit({"a", "b"}).id;
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", MakePoints(kSteps, {MakeColumn("x/y", {0}, {0.5})}));
  lease.Send("a", FinishedEvent{false, kSteps});
  EXPECT_THAT(Value(store().UndescribedExperiments()), ElementsAre(id));
  Close();
  // As a store of version 19 is migrated.
  Alter(folder() + "/ablate.db", BackToVersion(19));
  Reopen();
  ASSERT_THAT(Value(store().UndescribedExperiments()), ElementsAre(id));
  RunQuery query;
  query.viewer = kServer;
  query.limit = 10;
  query.where = TestOf({Kind::kField, "model.layers"}, Op::kGreater, 7.);
  EXPECT_THAT(Value(store().FindCells(query)), IsEmpty());
  ASSERT_TRUE(store()
                  .DescribeExperiment(id, {{{"model.width", "8"}},
                                           {{{"model.layers", "7"}}, {{"model.layers", "9"}}}})
                  .ok());
  EXPECT_THAT(Value(store().UndescribedExperiments()), IsEmpty());
  const auto found = Value(store().FindCells(query));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cell.run, "b");
  query.where = TestOf({Kind::kLast, "x/y"}, Op::kEqual, 0.5);
  ASSERT_EQ(Value(store().FindCells(query)).size(), 1u);
  query.where = TestOf({Kind::kAxis, "lr"}, Op::kEqual, 0.1);
  ASSERT_EQ(Value(store().FindCells(query)).size(), 1u);
  EXPECT_EQ(CodeOf(store().DescribeExperiment("none", {})), absl::StatusCode::kNotFound);
}

TEST_P(DescribeTest, WritesManyCellsInSlices) {
  NewExperiment experiment = MakeExperiment({});
  CellFields fields;
  for (int i = 0; i < 2100; ++i) {
    const std::string run = absl::StrCat("r", i);
    experiment.cells.push_back({run, {{"n", absl::StrCat(i)}}, 0, run});
    experiment.runs.push_back(MakeRun(run));
    fields.of_variant.push_back({{"model.layers", absl::StrCat(i)}});
  }
  const std::string id = Create(experiment).id;
  ASSERT_THAT(Value(store().UndescribedExperiments()), ElementsAre(id));
  ASSERT_TRUE(store().DescribeExperiment(id, fields).ok());
  EXPECT_THAT(Value(store().UndescribedExperiments()), IsEmpty());
  RunQuery query;
  query.viewer = kServer;
  query.limit = 10;
  for (const double layers : {0., 999., 1000., 2099.}) {
    query.where = TestOf({Kind::kField, "model.layers"}, Op::kEqual, layers);
    const auto found = Value(store().FindCells(query));
    ASSERT_EQ(found.size(), 1u) << layers;
    EXPECT_EQ(found[0].cell.run, absl::StrCat("r", layers));
  }
}

TEST_P(DescribeTest, LeavesNothingOfARemovedExperiment) {
  const std::string id = Submit({"a", "b"}).id;
  Train({"a", "b"});
  ASSERT_TRUE(store().DescribeExperiment(id, {{{"model.width", "8"}}, {{}, {}}}).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_GT(CountRows(folder(), "SELECT count(*) FROM cell_fields"), 0);
  EXPECT_GT(CountRows(folder(), "SELECT count(*) FROM final_values"), 0);
  const std::string other = Submit({"c"}).id;
  ASSERT_TRUE(store().DescribeExperiment(other, {{{"model.heads", "2"}}, {{}}}).ok());
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CountRows(folder(), "SELECT count(*) FROM final_values"), 0);
  EXPECT_EQ(CountRows(folder(),
                      "SELECT count(*) FROM names WHERE id NOT IN (SELECT name FROM cell_fields)"),
            0);
  EXPECT_EQ(CountRows(folder(), "SELECT count(*) FROM names WHERE name = 'model.heads'"), 1);
  ASSERT_TRUE(store().CancelExperiment(other).ok());
  ASSERT_TRUE(store().DeleteExperiment(other).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CountRows(folder(), "SELECT count(*) FROM cell_fields"), 0);
  EXPECT_EQ(CountRows(folder(), "SELECT count(*) FROM names"), 0);
}

}  // namespace
}  // namespace ablate::storage
