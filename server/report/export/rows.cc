#include <charconv>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/decimal.h"
#include "nlohmann/json.hpp"
#include "server/report/export/encoder.h"
#include "server/report/table/comparison_tables.h"

namespace ablate::report {
namespace {

// Columns before and after the axes, in this order.
constexpr const char* kFirstColumns[] = {"cell"};
constexpr const char* kLastColumns[] = {"seed", "run", "key", "step", "value"};

void AppendStep(uint32_t step, std::string* bytes) {
  char text[16];
  const auto end = std::to_chars(std::begin(text), std::end(text), step);
  bytes->append(text, end.ptr);
}

std::string JsonText(absl::string_view text) {
  using Json = nlohmann::json;
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A format's names of non-finite numbers.
struct NonFiniteNames {
  absl::string_view nan, infinity, negative_infinity;
};

void AppendValue(double value, const NonFiniteNames& names, std::string* bytes) {
  if (std::isfinite(value)) {
    text::AppendDecimal(value, bytes);
  } else {
    bytes->append(std::string(std::isnan(value) ? names.nan
                              : value > 0       ? names.infinity
                                                : names.negative_infinity));
  }
}

class CsvEncoder final : public Encoder {
 public:
  explicit CsvEncoder(const std::vector<std::string>& axes) : columns_(ColumnNames(axes)) {}

  std::string Head() const override { return absl::StrCat(absl::StrJoin(columns_, ","), "\n"); }

  void Begin(const ExportedCell& cell, std::string*) override {
    front_ = text::CsvField(cell.name);
    for (const std::string& label : cell.labels)
      absl::StrAppend(&front_, ",", text::CsvField(label));
    absl::StrAppend(&front_, ",", cell.seed, ",", text::CsvField(cell.run), ",");
  }

  void Add(absl::string_view key, absl::Span<const uint32_t> steps, absl::Span<const double> values,
           std::string* bytes) override {
    const std::string front = absl::StrCat(front_, text::CsvField(key), ",");
    for (size_t i = 0; i < steps.size(); ++i) {
      bytes->append(front);
      AppendStep(steps[i], bytes);
      bytes->push_back(',');
      AppendValue(values[i], {"nan", "inf", "-inf"}, bytes);
      bytes->push_back('\n');
    }
  }

 private:
  const std::vector<std::string> columns_;
  std::string front_;  // the fields that all points of the cell share
};

class JsonLinesEncoder final : public Encoder {
 public:
  explicit JsonLinesEncoder(const std::vector<std::string>& axes) : columns_(ColumnNames(axes)) {}

  void Begin(const ExportedCell& cell, std::string*) override {
    front_ = absl::StrCat("{\"cell\":", JsonText(cell.name));
    for (size_t i = 0; i < cell.labels.size(); ++i) {
      absl::StrAppend(&front_, ",", JsonText(columns_[i + std::size(kFirstColumns)]), ":",
                      JsonText(cell.labels[i]));
    }
    absl::StrAppend(&front_, ",\"seed\":", cell.seed, ",\"run\":", JsonText(cell.run));
  }

  void Add(absl::string_view key, absl::Span<const uint32_t> steps, absl::Span<const double> values,
           std::string* bytes) override {
    const std::string front = absl::StrCat(front_, ",\"key\":", JsonText(key), ",\"step\":");
    for (size_t i = 0; i < steps.size(); ++i) {
      bytes->append(front);
      AppendStep(steps[i], bytes);
      bytes->append(",\"value\":");
      AppendValue(values[i], {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""}, bytes);
      bytes->append("}\n");
    }
  }

 private:
  const std::vector<std::string> columns_;
  std::string front_;
};

}  // namespace

std::vector<std::string> ColumnNames(const std::vector<std::string>& axes) {
  std::set<absl::string_view> taken(std::begin(kFirstColumns), std::end(kFirstColumns));
  taken.insert(std::begin(kLastColumns), std::end(kLastColumns));
  std::vector<std::string> names(std::begin(kFirstColumns), std::end(kFirstColumns));
  for (const std::string& axis : axes) {
    names.push_back(taken.count(axis) > 0 ? AxisColumn(axis) : axis);
  }
  names.insert(names.end(), std::begin(kLastColumns), std::end(kLastColumns));
  return names;
}

std::unique_ptr<Encoder> MakeCsvEncoder(const std::vector<std::string>& axes) {
  return std::make_unique<CsvEncoder>(axes);
}

std::unique_ptr<Encoder> MakeJsonLinesEncoder(const std::vector<std::string>& axes) {
  return std::make_unique<JsonLinesEncoder>(axes);
}

}  // namespace ablate::report
