// Measures the work of the live page for curves that grow: points to buckets, to the text of an
// event. Prints one line of JSON.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/web/curves.h"
#include "client/web/feed.h"

int main() {
  using ablate::web::CurveTable;
  constexpr uint32_t kCurves = 100, kUpdates = 300, kSteps = 10;  // of each curve, in an update
  std::vector<CurveTable::Curve> curves;
  for (uint32_t i = 0; i < kCurves; ++i) {
    curves.push_back({absl::StrCat("run ", i), i % 7, {absl::StrCat("runs/", i)}});
  }
  CurveTable table(curves, kUpdates * kSteps);
  ablate::web::Feed feed;
  uint64_t version = 0;
  size_t bytes = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t update = 0; update < kUpdates; ++update) {
    for (uint32_t i = 0; i < kCurves; ++i) {
      ablate::v1::Series series;
      series.set_run(absl::StrCat("runs/", i));
      for (uint32_t step = update * kSteps; step < (update + 1) * kSteps; ++step) {
        series.add_steps(step);
        series.add_values(2 + 1e-3 * (step * 2654435761u % 97));
      }
      table.Add(series);
    }
    feed.Add("curves", table.TakeChanges());
    for (const auto& event : feed.Next(&version, absl::ZeroDuration())) {
      bytes += ablate::web::EventText(event.name, feed.IdOf(event.version), event.data).size();
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kUpdates;
  std::printf("{\"curves\": %u, \"ms_per_update\": %.3f, \"bytes_per_update\": %zu}\n", kCurves,
              seconds * 1e3, bytes / kUpdates);
}
