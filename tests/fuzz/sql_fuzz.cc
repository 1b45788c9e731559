// Fuzzes the gate of SQL statements with libFuzzer, over a store with a private experiment.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/sql_query.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Returns the folder of a store in which all texts of bob's private experiment begin with "hidden".
const std::string& SqlFolder() {
  static const std::string folder = [] {
    std::string made = (std::filesystem::temp_directory_path() / "sql_fuzz").string();
    std::filesystem::remove_all(made);
    StoreOptions options;
    options.folder = made;
    auto store = Store::Open(std::move(options));
    Require(store.ok());
    for (const char* user : {"ada", "bob"}) {
      const std::string name = absl::StrCat(*user == 'b' ? "hidden" : "open", user);
      NewExperiment experiment;
      experiment.name = experiment.request_id = name;
      experiment.owner = user;
      experiment.private_to = *user == 'b' ? user : "";
      NewRun run;
      run.fingerprint = run.trajectory = run.shape = run.spec = name;
      run.steps = 1;
      run.device_kind = "cpu";
      run.trainer = "native";
      experiment.cells.push_back({name, {{name, name}}, 0, name});
      experiment.runs.push_back(run);
      experiment.fields.common = {{name, name}};
      experiment.fields.of_variant = {{}};
      Require((*store)->CreateExperiment(experiment).ok());
    }
    return made;
  }();
  return folder;
}

// Returns true if the statement surely ends soon.
bool IsSmall(const std::string& statement) {
  const std::string lower = absl::AsciiStrToLower(statement);
  const size_t from = lower.find("from");
  return !absl::StrContains(lower, "with") && !absl::StrContains(lower, "join") &&
         (from == std::string::npos || (lower.find("from", from + 1) == std::string::npos &&
                                        lower.find(',', from) == std::string::npos));
}

// Checks that nothing of bob's arrives.
class LeakSink final : public SqlSink {
 public:
  explicit LeakSink(bool runs) : runs_(runs) {}
  absl::Status Columns(const std::vector<std::string>& names) override {
    Require(!names.empty());
    return runs_ ? absl::OkStatus() : absl::CancelledError("");
  }
  absl::Status Row(const std::vector<SqlValue>& values) override {
    for (const SqlValue& value : values) {
      if (const auto* text = std::get_if<absl::string_view>(&value)) {
        Require(!absl::StrContains(*text, "hidden"));
      }
    }
    return ++rows_ < 100 ? absl::OkStatus() : absl::CancelledError("");
  }

 private:
  const bool runs_;
  int rows_ = 0;
};

void Try(const std::string& statement) {
  // libFuzzer sees names that are compared, and a message quotes its statement.
  for (const char* own : {"hidden", "_experiments", "_runs"}) {
    if (absl::StrContains(absl::AsciiStrToLower(statement), own)) return;
  }
  LeakSink sink(IsSmall(statement));
  const absl::Status answered = AnswerSql({SqlFolder(), {"ada"}, statement}, nullptr, &sink);
  Require(!absl::IsInternal(answered) && !absl::IsDataLoss(answered));
  // The unguessable names stay so.
  Require(!absl::StrContains(answered.message(), "_experiments") &&
          !absl::StrContains(answered.message(), "_runs"));
}

}  // namespace
}  // namespace ablate::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::storage::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
