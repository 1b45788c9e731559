// Compares analyses on a device with those on the cores.
#ifndef ABLATE_TESTS_ENGINE_ON_DEVICE_COMPARED_H_
#define ABLATE_TESTS_ENGINE_ON_DEVICE_COMPARED_H_

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/every_kind.h"

namespace ablate::engine {

// Returns the result of an analysis, which is saved and restored in the middle.
inline absl::StatusOr<AnalysisResult> SavedAndFinished(
    const AnalysisRequest& request, const std::shared_ptr<Accelerator>& accelerator) {
  const std::atomic<bool> stop{false};
  auto analysis = MakeAnalysis(request, accelerator);
  if (!analysis.ok()) return analysis.status();
  const int64_t pieces = (*analysis)->pieces(), middle = pieces / 2;
  while ((*analysis)->made() < pieces) {
    if (absl::Status status = (*analysis)->Advance(stop); !status.ok()) return status;
    if ((*analysis)->made() != middle) continue;
    const auto state = (*analysis)->Save();
    if (!state.ok()) return state.status();
    analysis = MakeAnalysis(request, accelerator);
    if (!analysis.ok()) return analysis.status();
    if (absl::Status status = (*analysis)->Restore(*state); !status.ok()) return status;
  }
  return (*analysis)->Finish();
}

// Returns an array's elements.
inline std::vector<double> ElementsOf(const AnalysisArray& array) {
  std::vector<double> elements;
  const auto read = [&](auto zero) {
    for (size_t i = 0; i < array.bytes.size(); i += sizeof(zero)) {
      std::memcpy(&zero, array.bytes.data() + i, sizeof(zero));
      elements.push_back(static_cast<double>(zero));
    }
  };
  if (array.type == TensorType::kF64) read(double{});
  if (array.type == TensorType::kF32) read(float{});
  if (array.type == TensorType::kI64) read(int64_t{});
  return elements;
}

// Returns the first difference of two results that is larger than rounding; "" if there is none.
// The tolerance is for roots of eigenvalues that are 0 up to rounding.
inline std::string DifferenceOf(const AnalysisResult& a, const AnalysisResult& b) {
  const auto far = [](double x, double y, double scale) {
    if (std::isnan(x) && std::isnan(y)) return false;
    return !(std::abs(x - y) <= 1e-6 * std::max(1.0, scale));
  };
  if (a.numbers.size() != b.numbers.size()) return "other numbers";
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const AnalysisNumber &x = a.numbers[i], &y = b.numbers[i];
    if (x.name != y.name || x.undefined != y.undefined ||
        far(x.value, y.value, std::abs(x.value))) {
      return absl::StrCat(x.name, " is ", x.value, ", ", y.name, " on the device is ", y.value);
    }
  }
  if (a.arrays.size() != b.arrays.size()) return "other arrays";
  for (size_t i = 0; i < a.arrays.size(); ++i) {
    const std::vector<double> x = ElementsOf(a.arrays[i]), y = ElementsOf(b.arrays[i]);
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    if (a.arrays[i].name != b.arrays[i].name || a.arrays[i].shape != b.arrays[i].shape) {
      return absl::StrCat("array ", a.arrays[i].name);
    }
    for (size_t j = 0; j < x.size(); ++j) {
      if (far(x[j], y[j], largest)) {
        return absl::StrCat(a.arrays[i].name, " has ", x[j], ", on the device ", y[j]);
      }
    }
  }
  return "";
}

// Computes an analysis of drawn models on both. Returns what is wrong; "" if nothing is. In
// float32, which rounds differently, only that it can be computed.
inline std::string WrongOnDevice(const AnalysisOptions& options,
                                 const std::shared_ptr<Accelerator>& accelerator) {
  int made = 0;
  for (uint64_t number = 0; number < 12; ++number) {
    const AnalysisSubject subject = DrawnSubject(number);
    if (!Accepts(options, subject.config)) continue;
    ++made;
    const AnalysisRequest request = {options, LeastSubjects(KindOf(options), subject),
                                     InputsOf(options, subject.config)};
    const std::string of = absl::StrCat(KindOf(options).name, " of model ", number, ": ");
    const auto on_device = SavedAndFinished(request, accelerator);
    if (!on_device.ok()) return absl::StrCat(of, on_device.status().ToString());
    const std::string note = "computed on " + InfoOf(*accelerator).name;
    if (on_device->notes.empty() || on_device->notes.back() != note) return of + "no note";
    if (subject.config.precision != Precision::kFloat64) continue;
    const auto on_cores = SavedAndFinished(request, nullptr);
    if (!on_cores.ok()) return absl::StrCat(of, on_cores.status().ToString());
    if (const std::string wrong = DifferenceOf(*on_cores, *on_device); !wrong.empty()) {
      return of + wrong;
    }
  }
  return made > 0 ? "" : absl::StrCat(KindOf(options).name, ": no model has it");
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ON_DEVICE_COMPARED_H_
