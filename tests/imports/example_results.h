// Makes results for tests.
#ifndef ABLATE_TESTS_IMPORTS_EXAMPLE_RESULTS_H_
#define ABLATE_TESTS_IMPORTS_EXAMPLE_RESULTS_H_

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/imports/reading.h"
#include "server/imports/results.h"

namespace ablate::imports {

using Settings = std::map<std::string, std::string>;

// Returns a finished run whose settings are numbers if their texts are.
inline v1::ImportedRun RunOf(const std::string& name, const Settings& settings,
                             const std::vector<double>& values, const std::string& key = "loss") {
  v1::ImportedRun run;
  run.set_name(name);
  run.set_state(v1::ImportedState::finished);
  for (const auto& [setting, text] : settings) {
    double number = 0;
    if (absl::SimpleAtod(text, &number)) {
      (*run.mutable_settings())[setting].set_number_value(number);
    } else {
      (*run.mutable_settings())[setting].set_string_value(text);
    }
  }
  v1::ImportedSeries* series = run.add_series();
  series->set_key(key);
  for (size_t i = 0; i < values.size(); ++i) {
    series->add_values(values[i]);
    series->add_steps(static_cast<uint32_t>(10 * i));
  }
  return run;
}

// Returns runs of post and pre on so many seeds; post is lower by 1.
inline v1::ImportRequest TwoSettings(uint32_t seeds) {
  v1::ImportRequest request;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    for (const bool post : {false, true}) {
      const std::string norm = post ? "post" : "pre";
      *request.add_runs() =
          RunOf(absl::StrCat(norm, "-s", seed), {{"norm", norm}, {"seed", absl::StrCat(seed)}},
                {9, 5 + 0.1 * seed * seed - (post ? 1 : 0)});
    }
  }
  return request;
}

inline v1::ImportOptions OptionsOf(const std::string& text) {
  v1::ImportOptions options;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
  return options;
}

inline absl::StatusOr<Reading> ReadingOf(const v1::ImportRequest& request,
                                         const std::string& options = "") {
  Results results;
  if (const absl::Status added = results.Add(request); !added.ok()) return added;
  return Read(OptionsOf(options), &results);
}

}  // namespace ablate::imports

#endif  // ABLATE_TESTS_IMPORTS_EXAMPLE_RESULTS_H_
