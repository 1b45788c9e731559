#include "server/schedule/worker_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ablate::schedule {
namespace {

// Users' names don't contain it, so the text after the last one is the user.
constexpr char kAt = '@';

}  // namespace

void SetUser(absl::string_view user, worker::v1::Hello* hello) {
  if (user.empty()) return;
  const auto with_user = [user](const std::string& name) {
    // A missing name stays missing and is refused.
    return name.empty() ? name : absl::StrCat(name, absl::string_view(&kAt, 1), user);
  };
  hello->set_worker(with_user(hello->worker()));
  hello->set_incarnation(with_user(hello->incarnation()));
}

absl::string_view UserOf(absl::string_view worker) {
  const size_t at = worker.rfind(kAt);
  return at == absl::string_view::npos ? absl::string_view() : worker.substr(at + 1);
}

bool IsElsewhere(absl::string_view worker) { return absl::StrContains(worker, kAt); }

bool IsOfUser(absl::string_view worker, absl::string_view user) {
  return user.empty() || UserOf(worker) == user;
}

}  // namespace ablate::schedule
