// Measures questions to many runs: `question_speed FOLDER [EXPERIMENTS]` makes a store of so many
// experiments (200) of 500 runs in FOLDER, unless it is there, asks it questions, and writes
// FOLDER/runs.csv for question_speed.py, which asks MLflow and pandas, too.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/decimal.h"
#include "server/config/fields.h"
#include "server/experiment/field_values.h"
#include "server/service/run_names.h"
#include "storage/store.h"
#include "tests/storage/waiting.h"

namespace ablate::service {
namespace {

constexpr uint32_t kPage = 100;
constexpr int kRepetitions = 30;
constexpr const char* kPlacements[] = {"pre", "post", "none", "peri", "sandwich"};
constexpr int kRates = 10, kSeeds = 10;
const storage::LeaseHolder kHolder = {"w", "i", "2 cores", "0", "native", "e", 0};

[[noreturn]] void Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  std::exit(1);
}

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}

double LossOf(int experiment, int placement, int rate, int seed) {
  const double noise = std::sin(experiment * 12.9898 + placement * 4.1 + rate * 78.233 + seed);
  return 2.3 + .02 * placement + .01 * std::pow(rate - 4, 2) + .3 * std::abs(noise);
}

v1::BaseSpec BaseOf(int experiment, int placement, int rate) {
  v1::BaseSpec base;
  base.mutable_task()->mutable_legacy_recall()->set_keys(20);
  base.mutable_model()->set_layers(static_cast<uint32_t>(2 + experiment % 7));
  base.mutable_model()->mutable_norm()->set_placement(placement == 1   ? v1::NormPlacement::post
                                                      : placement == 2 ? v1::NormPlacement::none
                                                                       : v1::NormPlacement::pre);
  base.mutable_training()->set_steps(static_cast<uint32_t>(1000 + 100 * (experiment % 5)));
  base.mutable_training()->set_learning_rate(.001 * (rate + 1));
  spec::FillDefaults(/*cuda=*/false, &base);
  return base;
}

std::vector<storage::SpecField> Listed(const spec::FieldValues& values) {
  std::vector<storage::SpecField> fields;
  for (const auto& [path, value] : values) fields.push_back({path, value});
  return fields;
}

storage::NewExperiment MakeExperiment(int number, int seeds, bool with_fields) {
  storage::NewExperiment experiment;
  experiment.name = absl::StrCat("names-", number % 20);
  experiment.owner = number % 3 == 0 ? "ada" : "bob";
  experiment.request_id = absl::StrCat("bench-", number, with_fields, seeds);
  spec::SharedFields shared;
  for (int placement = 0; placement < 5; ++placement) {
    for (int rate = 0; rate < kRates; ++rate) {
      shared.Add(BaseOf(number, placement, rate));
      for (int seed = 0; seed < seeds; ++seed) {
        storage::NewRun run;
        run.fingerprint = absl::StrCat("r", number, "-", placement, "-", rate, "-", seed);
        run.trajectory = run.fingerprint;
        run.seed = static_cast<uint32_t>(seed);
        run.steps = 1000;
        run.parameters = 10'000;
        run.device_kind = "cpu";
        run.trainer = "native";
        run.shape = "shape";
        run.spec = std::string(400, 'x');
        const std::string lr = text::ShortestDecimal(.001 * (rate + 1));
        experiment.cells.push_back({absl::StrCat(kPlacements[placement], "-lr", lr, "-s", seed),
                                    {{"placement", kPlacements[placement]}, {"lr", lr}},
                                    run.seed,
                                    run.fingerprint});
        experiment.runs.push_back(std::move(run));
      }
    }
  }
  if (!with_fields) return experiment;
  experiment.fields.common = Listed(shared.Common());
  for (const spec::FieldValues& fields : shared.Others()) {
    experiment.fields.of_variant.push_back(Listed(fields));
  }
  return experiment;
}

// Trains the runs of an experiment; one in 50 stays queued, and one in 20 diverges.
void Train(storage::Store* store, int number) {
  std::vector<storage::NewLease> leases;
  std::vector<storage::LeaseEvent> events;
  for (int i = 0; i < 5 * kRates * kSeeds; ++i) {
    if (i % 50 == 7) continue;
    const int placement = i / (kRates * kSeeds), rate = i / kSeeds % kRates, seed = i % kSeeds;
    const std::string run = absl::StrCat("r", number, "-", placement, "-", rate, "-", seed);
    const std::string lease = absl::StrCat("l-", run);
    leases.push_back({lease, kHolder, run});
    const double loss = LossOf(number, placement, rate, seed);
    std::vector<storage::Column> columns;
    for (const char* key : {"eval/loss", "train/loss", "train/gradient_norm", "eval/accuracy",
                            "gradient/block.0", "gradient/block.1"}) {
      columns.push_back({key, {0, 500, 1000}, {loss + 1, loss - .01 * seed, loss}});
    }
    uint64_t sent = 0;
    events.push_back({lease, ++sent, storage::StartedEvent{}});
    events.push_back({lease, ++sent, storage::PointsEvent{columns, 1000, {1000, 0, 7}}});
    events.push_back({lease, ++sent, storage::FinishedEvent{i % 20 == 3, 1000}});
  }
  Value(storage::GrantAndWait(*store, leases));
  Value(storage::ApplyAndWait(*store, kHolder.incarnation, events));
}

struct Times {
  std::vector<double> wall, processor;  // in milliseconds
  size_t rows = 0;
};

double ProcessorMillis() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

template <typename Work>
Times Measure(int repetitions, const Work& work) {
  Times times;
  for (int i = 0; i < repetitions; ++i) {
    const double processor = ProcessorMillis();
    const auto start = std::chrono::steady_clock::now();
    times.rows = work();
    times.wall.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    times.processor.push_back(ProcessorMillis() - processor);
  }
  std::sort(times.wall.begin(), times.wall.end());
  std::sort(times.processor.begin(), times.processor.end());
  return times;
}

void Print(const std::string& question, const Times& times) {
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted[std::min(sorted.size() - 1,
                           static_cast<size_t>(share * static_cast<double>(sorted.size())))];
  };
  std::printf("%6.1f %6.1f %6.1f %6.1f  %4zu  %s\n", at(times.processor, .5),
              at(times.processor, .99), at(times.wall, .5), at(times.wall, .99), times.rows,
              question.c_str());
}

// Answers as the service does, except for the messages.
size_t Ask(storage::Store* store, const std::string& filter, const std::string& order) {
  const storage::Viewer viewer{"ada", false};
  const auto labels = [&](absl::string_view axis) {
    return Value(store->ListLabels(viewer, axis));
  };
  const RunNames names(Value(store->ListQueryNames(viewer)), labels, nullptr, absl::Now());
  storage::RunQuery query;
  query.viewer = viewer;
  query.where = Value(names.Filter("filter", filter));
  if (!order.empty()) {
    const RunOrder by = Value(names.Order("order_by", order));
    query.order_by = by.key;
    query.descending = by.descending;
  }
  query.limit = kPage;
  const auto found = Value(store->FindCells(query));
  std::vector<std::string> runs;
  for (const storage::FoundCell& cell : found) runs.push_back(cell.cell.run);
  Value(store->Summaries(runs));
  return found.size();
}

void WriteCsv(storage::Store* store, const std::string& path) {
  const RunNames names(Value(store->ListQueryNames(storage::kServer)), nullptr, nullptr,
                       absl::Now());
  storage::RunQuery query;
  query.viewer = storage::kServer;
  query.limit = 1000;
  std::ofstream out(path);
  out << "experiment,cell";
  for (const char* column :
       {"owner", "state", "seed", "model.layers", "model.norm.placement", "training.learning_rate",
        "placement", "eval/loss", "min(eval/loss)", "train/loss", "train/gradient_norm",
        "eval/accuracy", "gradient/block.0", "gradient/block.1"}) {
    out << "," << column;
    query.columns.push_back(Value(names.Column("columns", column)));
  }
  out << "\n";
  while (true) {
    const auto cells = Value(store->FindCells(query));
    for (const storage::FoundCell& cell : cells) {
      out << cell.experiment << "," << cell.cell.name;
      for (size_t i = 0; i < cell.values.size(); ++i) {
        const google::protobuf::Value value = ToColumn(query.columns[i], cell.values[i]);
        out << "," << value.string_value();
        if (value.has_number_value()) out << text::ShortestDecimal(value.number_value());
      }
      out << "\n";
    }
    if (cells.size() < query.limit) return;
    query.after = cells.back().position;
  }
}

// Compares submits of 150 runs with and without fields, in stores of their own.
void MeasureSubmits(const std::string& folder) {
  for (const bool with_fields : {false, true}) {
    storage::StoreOptions options;
    options.folder = absl::StrCat(folder, "/submits-", with_fields);
    std::filesystem::remove_all(options.folder);
    auto store = Value(storage::Store::Open(options));
    int number = 0;
    const Times times = Measure(20, [&] {
      const auto experiment = MakeExperiment(number++, 3, with_fields);
      return Value(store->CreateExperiment(experiment)).cells.size();
    });
    store.reset();
    std::printf(
        "submit of 150 runs in 50 variants, %s fields: %.1f ms (median), %.0f bytes a run\n",
        with_fields ? "with" : "without", times.wall[times.wall.size() / 2],
        static_cast<double>(std::filesystem::file_size(options.folder + "/ablate.db")) /
            (150. * 20));
    std::filesystem::remove_all(options.folder);
  }
}

int Main(const std::string& folder, int experiments) {
  storage::StoreOptions options;
  options.folder = absl::StrCat(folder, "/store");
  const bool exists = std::filesystem::exists(options.folder + "/ablate.db");
  std::filesystem::create_directories(folder);
  auto store = Value(storage::Store::Open(options));
  for (int i = 0; i < experiments && !exists; ++i) {
    Value(store->CreateExperiment(MakeExperiment(i, kSeeds, true)));
    Train(store.get(), i);
  }
  if (!exists) {
    if (const absl::Status done = store->Maintain(); !done.ok()) Fail(done);
    MeasureSubmits(folder);
  }
  const std::pair<std::string, std::string> questions[] = {
      {"", ""},
      {"state = failed", ""},
      {"model.norm.placement = post AND training.learning_rate >= 5e-3", ""},
      {"model.norm.placement = post OR model.layers = 8 OR seed = 3", ""},
      {"eval/loss < 2.31", ""},
      {"eval/loss < 2.31 OR (train/loss > 3 AND NOT placement = pre)", ""},
      {"", "eval/loss"},
      {"model.norm.placement = pre", "eval/loss"},
      {"experiment = names-7 AND owner = bob", "-eval/loss"},
      {"placement = peri AND model.layers = 8 AND seed = 9", "eval/loss"},
      {"state = done AND eval/loss < 5", "min(eval/loss)"},
      {"NOT state = done", "eval/loss"},
      {"", "training.learning_rate desc"},
      {"", "ended desc"}};
  std::printf("  processor      wall ms\n   p50    p99    p50    p99  rows  question\n");
  for (const auto& [filter, order] : questions) {
    const Times times =
        Measure(kRepetitions, [&, f = &filter, o = &order] { return Ask(store.get(), *f, *o); });
    Print(absl::StrCat(filter.empty() ? "(all)" : filter, order.empty() ? "" : "; by ", order),
          times);
  }
  WriteCsv(store.get(), folder + "/runs.csv");
  return 0;
}

}  // namespace
}  // namespace ablate::service

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: question_speed FOLDER [EXPERIMENTS]\n";
    return 64;
  }
  return ablate::service::Main(argv[1], argc == 3 ? std::atoi(argv[2]) : 200);
}
