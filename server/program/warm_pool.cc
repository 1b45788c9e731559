#include "server/program/warm_pool.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace ablate::program {

absl::StatusOr<std::unique_ptr<Process>> WarmPool::StartRun(const Request& request) {
  const std::set<std::string> imports = FindImports(request.folder);
  const std::string key = absl::StrCat(request.environment.name, " ", absl::StrJoin(imports, ","));
  absl::StatusOr<std::unique_ptr<Process>> run = absl::UnavailableError("no parent");
  for (int attempt = 0; attempt < 2 && absl::IsUnavailable(run.status()); ++attempt) {
    ASSIGN_OR_RETURN(const auto parent, Find(request, key, imports));
    run = parent->StartRun(request);
    if (absl::IsUnavailable(run.status())) Forget(parent);
  }
  return run;
}

absl::StatusOr<std::shared_ptr<WarmParent>> WarmPool::Find(const Request& request,
                                                           const std::string& key,
                                                           const std::set<std::string>& imports) {
  // Lanes that need the same parent wait for its start.
  MutexLock lock(&mutex_);
  const auto known = std::find_if(recent_.begin(), recent_.end(),
                                  [&key](const Entry& entry) { return entry.key == key; });
  if (known != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, known);
    return recent_.front().parent;
  }
  const std::string folder = request.folder.substr(0, request.folder.rfind('/'));
  ASSIGN_OR_RETURN(auto parent,
                   WarmParent::Start(request.environment, folder, request.helpers, imports));
  recent_.push_front({key, std::move(parent)});
  if (recent_.size() > kMostParents) recent_.pop_back();
  return recent_.front().parent;
}

void WarmPool::Forget(const std::shared_ptr<WarmParent>& parent) {
  MutexLock lock(&mutex_);
  recent_.remove_if([&parent](const Entry& entry) { return entry.parent == parent; });
}

}  // namespace ablate::program
