// The metrics that a request names.
#include "server/service/metric_keys.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"
#include "server/service/limits.h"
#include "text/utf8.h"

namespace ablate::service {

absl::Status CheckKeys(const WantedKeys& wanted) {
  if (wanted.size() > kMostQueryKeys) return TooMany("keys", wanted.size(), kMostQueryKeys);
  for (int i = 0; i < wanted.size(); ++i) {
    if (text::IsPrintable(wanted[i], storage::kMaxKeyBytes)) continue;
    return InvalidField(absl::StrCat("keys[", i, "]"),
                        absl::StrCat(reflect::Quoted(wanted[i]), " is no key"),
                        "a metric's key such as train/loss");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> KeysToRead(storage::Store* store, const std::string& run,
                                                    const WantedKeys& wanted) {
  const auto present = store->RunKeys(run);
  if (!present.ok()) return present.status();
  std::set<std::string> sorted;
  for (const auto& [key, count] : *present) sorted.insert(key);
  if (wanted.empty()) return std::vector<std::string>(sorted.begin(), sorted.end());
  std::vector<std::string> keys;
  for (const std::string& key : wanted) {
    if (sorted.erase(key) > 0) keys.push_back(key);  // once, however often it is asked for
  }
  return keys;
}

}  // namespace ablate::service
