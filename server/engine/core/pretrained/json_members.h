// Reads members of a JSON object into typed values, with errors that name file, member, value and
// what is allowed. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_JSON_MEMBERS_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_JSON_MEMBERS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/names.h"

namespace ablate::engine {

// Parses an object of at most `max_bytes` and 100,000 values, nested at most 16 deep, whose keys
// don't repeat at any level. `file` names it in errors, with the line of what isn't JSON.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view file, absl::string_view bytes,
                                               size_t max_bytes);

// Returns a value for an error message: a short one as it is written, else its type.
std::string ShownJson(const nlohmann::json& value);

// Reads members of one object, and keeps the first problem. A member that is null counts as
// missing. After a problem, and for a missing member, values keep what they had.
class JsonMembers {
 public:
  // `file` and the object must outlive this. `prefix` is in front of members' names in errors.
  JsonMembers(absl::string_view file, const nlohmann::json& object, std::string prefix = "")
      : file_(file), object_(object), prefix_(std::move(prefix)) {}

  // Returns null if the member is missing.
  const nlohmann::json* Find(absl::string_view key) const;
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }

  // Adds a problem if the member is missing.
  void Require(absl::string_view key, absl::string_view expected);

  void Integer(absl::string_view key, int min, int max, int* value);
  // Reads a number from `min` to `max`; `expected` describes them.
  void Number(absl::string_view key, double min, double max, absl::string_view expected,
              double* value);
  void Boolean(absl::string_view key, bool* value);
  void Text(absl::string_view key, std::string* value);

  // Reads a value by its name in names.h; the member must be there.
  template <typename Enum>
  void Value(absl::string_view key, Enum* value) {
    const std::string allowed = absl::StrCat("one of ", AllNames<Enum>());
    Require(key, allowed);
    std::string name;
    Text(key, &name);
    if (!status_.ok()) return;
    if (const auto found = FindByName<Enum>(name)) {
      *value = *found;
    } else {
      Refuse(key, allowed);
    }
  }

  // Adds a problem with a member that is there: "config.json: KEY (VALUE) …; expected EXPECTED."
  void Refuse(absl::string_view key, absl::string_view expected);

  const absl::Status& status() const { return status_; }

 private:
  void Add(absl::string_view key, absl::string_view problem, absl::string_view expected);

  absl::string_view file_;
  const nlohmann::json& object_;
  std::string prefix_;
  absl::Status status_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_JSON_MEMBERS_H_
