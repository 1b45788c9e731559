#include "server/schedule/messages.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"

namespace ablate::schedule {
namespace {

namespace v1 = worker::v1;

constexpr size_t kNameBytes = 128;
constexpr size_t kWordsBytes = 1024;
constexpr uint64_t kMaxBusy = uint64_t{30} * 24 * 3600 * 1'000'000;  // so that sums don't overflow
constexpr uint64_t kMaxTokens = 1'000'000'000'000'000;               // likewise
constexpr uint32_t kMaxLanes = 4096;
constexpr int kMaxHeld = 100'000;
constexpr int kMaxTrainers = 16;
constexpr size_t kMaxLogBytes = 64 << 10;
constexpr uint64_t kMaxTimeLeft = uint64_t{3650} * 24 * 3600;
constexpr int kMaxColumns = 100'000;

// A worker's texts are shown on terminals.
absl::Status CheckPrintable(absl::string_view field, absl::string_view value) {
  if (!text::HasControlCharacter(value)) return absl::OkStatus();
  return WrongField(field, reflect::Quoted(value), "printable characters");
}

absl::Status CheckName(absl::string_view field, absl::string_view name, size_t most = kNameBytes) {
  if (name.empty() || name.size() > most) {
    return WrongField(field, absl::StrCat(name.size(), " bytes"), absl::StrCat("1 to ", most));
  }
  return CheckPrintable(field, name);
}

absl::Status CheckWords(absl::string_view field, absl::string_view words) {
  if (words.size() > kWordsBytes) {
    return WrongField(field, absl::StrCat(words.size(), " bytes"),
                      absl::StrCat("at most ", kWordsBytes));
  }
  return CheckPrintable(field, words);
}

absl::Status CheckColumn(const v1::Column& column) {
  absl::Status key = CheckName("points.columns.key", column.key(), storage::kMaxKeyBytes);
  if (!key.ok()) return key;
  if (column.steps_size() != column.values_size()) {
    return WrongField("points.columns.values",
                      absl::StrCat(column.values_size(), " of ", column.key(), " for ",
                                   column.steps_size(), " steps"),
                      "one a step");
  }
  const auto& steps = column.steps();
  if (std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) != steps.end()) {
    return WrongField("points.columns.steps", absl::StrCat("out of order for ", column.key()),
                      "ascending steps");
  }
  return absl::OkStatus();
}

absl::StatusOr<storage::PointsEvent> ToPoints(const v1::Points& points) {
  if (points.columns_size() > kMaxColumns) {
    return WrongField("points.columns", absl::StrCat(points.columns_size(), " columns"),
                      absl::StrCat("at most ", kMaxColumns));
  }
  storage::PointsEvent event;
  event.step = points.step();
  event.expected_steps = points.expected_steps();
  if (points.busy_us() > kMaxBusy) {
    return WrongField("points.busy_us", absl::StrCat(points.busy_us()),
                      absl::StrCat("at most ", kMaxBusy));
  }
  if (points.contended_us() > points.busy_us()) {
    return WrongField("points.contended_us", absl::StrCat(points.contended_us()),
                      absl::StrCat("at most busy_us, ", points.busy_us()));
  }
  if (points.tokens() > kMaxTokens) {
    return WrongField("points.tokens", absl::StrCat(points.tokens()),
                      absl::StrCat("at most ", kMaxTokens));
  }
  event.spent = {static_cast<storage::Micros>(points.busy_us()),
                 static_cast<storage::Micros>(points.contended_us()), points.tokens()};
  std::set<absl::string_view> keys;
  event.columns.reserve(static_cast<size_t>(points.columns_size()));
  for (const v1::Column& column : points.columns()) {
    RETURN_IF_ERROR(CheckColumn(column));
    if (!keys.insert(column.key()).second) {
      return WrongField("points.columns.key", absl::StrCat("twice ", column.key()),
                        "distinct keys");
    }
    event.columns.push_back({column.key(),
                             {column.steps().begin(), column.steps().end()},
                             {column.values().begin(), column.values().end()}});
  }
  return event;
}

template <typename StorageEvent, typename Message>
absl::StatusOr<StorageEvent> ToBlobEvent(absl::string_view field, const Message& message) {
  if (!IsSha256(message.blob())) {
    return WrongField(field, absl::StrCat(message.blob().size(), " bytes"),
                      "a SHA-256 in 64 lower-case hex digits");
  }
  return StorageEvent{message.step(), message.blob(), message.bytes()};
}

using Kind = decltype(storage::LeaseEvent::event);

template <typename StorageEvent>
absl::StatusOr<Kind> AsKind(absl::StatusOr<StorageEvent> event) {
  if (!event.ok()) return event.status();
  return Kind(*std::move(event));
}

absl::StatusOr<Kind> ToKind(const v1::Event& event) {
  switch (event.kind_case()) {
    case v1::Event::kStarted:
      return Kind(storage::StartedEvent{});
    case v1::Event::kPoints:
      return AsKind(ToPoints(event.points()));
    case v1::Event::kCheckpoint:
      return AsKind(ToBlobEvent<storage::CheckpointEvent>("checkpoint.blob", event.checkpoint()));
    case v1::Event::kResumeState:
      return AsKind(
          ToBlobEvent<storage::ResumeStateEvent>("resume_state.blob", event.resume_state()));
    case v1::Event::kFinished:
      return Kind(storage::FinishedEvent{event.finished().diverged(), event.finished().step()});
    case v1::Event::kFailed:
      return Kind(storage::FailedEvent{event.failed().message(), event.failed().is_final()});
    case v1::Event::kLog:
      if (event.log().text().size() > kMaxLogBytes) {
        return WrongField("log.text", absl::StrCat(event.log().text().size(), " bytes"),
                          absl::StrCat("at most ", kMaxLogBytes));
      }
      return Kind(storage::LogEvent{event.log().text()});
    case v1::Event::kReleased:
      return Kind(storage::ReleasedEvent{event.released().state_refused()});
    case v1::Event::KIND_NOT_SET:
      break;
  }
  return WrongField("event.kind", "not set", "one kind");
}

}  // namespace

absl::Status WrongField(absl::string_view field, absl::string_view value,
                        absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; expected ", allowed));
}

absl::Status CheckHeartbeat(const v1::Heartbeat& heartbeat) {
  for (const v1::LeaseProgress& lease : heartbeat.leases()) {
    RETURN_IF_ERROR(CheckName("heartbeat.leases.lease", lease.lease()));
  }
  if (heartbeat.leases_size() <= static_cast<int>(kMaxLanes)) return absl::OkStatus();
  return WrongField("heartbeat.leases", absl::StrCat(heartbeat.leases_size(), " leases"),
                    absl::StrCat("at most ", kMaxLanes, ", one a lane"));
}

absl::Status CheckHello(const v1::Hello& hello) {
  for (const absl::Status& status :
       {CheckName("hello.worker", hello.worker()),
        CheckName("hello.incarnation", hello.incarnation()),
        CheckWords("hello.device", hello.device()), CheckWords("hello.build", hello.build()),
        CheckWords("hello.no_programs", hello.no_programs())}) {
    if (!status.ok()) return status;
  }
  if (hello.trainers_size() > kMaxTrainers) {
    return WrongField("hello.trainers", absl::StrCat(hello.trainers_size(), " trainers"),
                      absl::StrCat("at most ", kMaxTrainers));
  }
  for (const v1::TrainerInfo& trainer : hello.trainers()) {
    absl::Status status = CheckName("hello.trainers.name", trainer.name());
    if (status.ok()) status = CheckWords("hello.trainers.environment", trainer.environment());
    if (!status.ok()) return status;
  }
  if (hello.device_kind() != "cpu" && hello.device_kind() != "cuda") {
    return WrongField("hello.device_kind",
                      absl::StrCat("\"", absl::CHexEscape(hello.device_kind().substr(0, 32)), "\""),
                      "cpu or cuda");
  }
  if (hello.lanes() < 1 || hello.lanes() > kMaxLanes) {
    return WrongField("hello.lanes", absl::StrCat(hello.lanes()), absl::StrCat("1 to ", kMaxLanes));
  }
  if (hello.time_left_s() > kMaxTimeLeft) {
    return WrongField("hello.time_left_s", absl::StrCat(hello.time_left_s()),
                      absl::StrCat("at most ", kMaxTimeLeft));
  }
  if (hello.role() != v1::TRAIN && hello.role() != v1::ANALYSIS) {
    return WrongField("hello.role", absl::StrCat(hello.role()), "TRAIN or ANALYSIS");
  }
  if (hello.role() == v1::ANALYSIS && hello.held_size() > 0) {
    return WrongField("hello.held", absl::StrCat(hello.held_size(), " leases"),
                      "none for a worker for analyses");
  }
  if (hello.held_size() > kMaxHeld) {
    return WrongField("hello.held", absl::StrCat(hello.held_size(), " leases"),
                      absl::StrCat("at most ", kMaxHeld));
  }
  for (const v1::HeldLease& held : hello.held()) {
    RETURN_IF_ERROR(CheckName("hello.held.lease", held.lease()));
  }
  return absl::OkStatus();
}

absl::StatusOr<storage::LeaseEvent> ToLeaseEvent(const v1::Event& event) {
  RETURN_IF_ERROR(CheckName("event.lease", event.lease()));
  if (event.seq() == 0) return WrongField("event.seq", "0", "from 1");
  ASSIGN_OR_RETURN(Kind kind, ToKind(event));
  return storage::LeaseEvent{event.lease(), event.seq(), std::move(kind)};
}

bool EndsRun(const storage::LeaseEvent& event) {
  return std::holds_alternative<storage::FinishedEvent>(event.event) ||
         std::holds_alternative<storage::FailedEvent>(event.event) ||
         std::holds_alternative<storage::ReleasedEvent>(event.event);
}

absl::string_view NamedBlob(const storage::LeaseEvent& event) {
  if (const auto* checkpoint = std::get_if<storage::CheckpointEvent>(&event.event)) {
    return checkpoint->blob;
  }
  if (const auto* state = std::get_if<storage::ResumeStateEvent>(&event.event)) {
    return state->blob;
  }
  return {};
}

}  // namespace ablate::schedule
