#include "server/service/annotations.h"

#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/experiment/axes.h"
#include "server/lookup/errors.h"
#include "server/service/convert.h"

namespace ablate::service {
namespace {

constexpr size_t kMaxNoteBytes = 2000;

bool IsPriority(int value) {
  return v1::Priority::Value_IsValid(value) && value != v1::Priority::unspecified;
}

}  // namespace

void CheckTags(const std::string& field,
               const google::protobuf::RepeatedPtrField<std::string>& tags,
               spec::Problems* problems) {
  if (static_cast<size_t>(tags.size()) > storage::kMaxTags) {
    problems->Add(field, absl::StrCat(tags.size()), absl::StrCat(tags.size(), " tags"),
                  absl::StrCat("at most ", storage::kMaxTags));
    return;
  }
  for (int i = 0; i < tags.size(); ++i) {
    spec::CheckLabel(absl::StrCat(field, "[", i, "]"), tags[i], "tag", problems);
  }
}

void CheckNewTags(const std::string& field,
                  const google::protobuf::RepeatedPtrField<std::string>& tags,
                  spec::Problems* problems) {
  CheckTags(field, tags, problems);
  for (int i = 0; i < tags.size(); ++i) {
    if (!absl::StartsWith(tags[i], "-")) continue;
    problems->Add(absl::StrCat(field, "[", i, "]"), reflect::ShortText(tags[i]),
                  absl::StrCat(reflect::Quoted(tags[i]), " begins with '-', as options do"),
                  "a tag that begins with another character");
  }
}

void CheckNote(const std::string& note, spec::Problems* problems) {
  if (note.size() > kMaxNoteBytes) {
    problems->Add("note", reflect::ShortText(note),
                  absl::StrCat("the text has ", text::Grouped(note.size()), " bytes"),
                  absl::StrCat("at most ", text::Grouped(kMaxNoteBytes), " bytes"));
  } else if (text::HasControlCharacter(note, "\n\t") || !text::IsUtf8(note)) {
    problems->Add("note", reflect::ShortText(note),
                  absl::StrCat(reflect::Quoted(note), " has control characters"),
                  "text without any except line breaks and tabs");
  }
}

absl::StatusOr<storage::ExperimentUpdate> ReadUpdate(const v1::UpdateExperimentRequest& request) {
  spec::Problems problems;
  storage::ExperimentUpdate update;
  if (!request.new_name().empty()) spec::CheckName("new_name", request.new_name(), &problems);
  CheckNewTags("add_tags", request.add_tags(), &problems);
  CheckTags("remove_tags", request.remove_tags(), &problems);
  if (request.has_note()) CheckNote(request.note(), &problems);
  const bool changes = !request.new_name().empty() || !request.add_tags().empty() ||
                       !request.remove_tags().empty() || request.has_note() ||
                       request.has_archived() || request.has_paused() || request.has_priority() ||
                       request.move() != v1::QueueEnd::unspecified;
  if (!changes) {
    problems.Add("new_name", "", "nothing is to be changed",
                 "new_name, add_tags, remove_tags, note, archived, paused, priority or move");
  }
  if (request.has_priority() && !IsPriority(request.priority())) {
    problems.Add("priority", absl::StrCat(request.priority()), "the value is unknown",
                 "interactive, normal or background");
  }
  if (!v1::QueueEnd::Value_IsValid(request.move())) {
    problems.Add("move", absl::StrCat(request.move()), "the value is unknown", "first or last");
  }
  if (!problems.empty()) return lookup::InvalidFields(problems.Take());
  update.name = request.new_name();
  update.add_tags = {request.add_tags().begin(), request.add_tags().end()};
  update.remove_tags = {request.remove_tags().begin(), request.remove_tags().end()};
  if (request.has_note()) update.note = request.note();
  if (request.has_archived()) update.archived = request.archived();
  if (request.has_paused()) update.paused = request.paused();
  if (request.has_priority()) update.priority = FromPriority(request.priority());
  using Place = storage::ExperimentUpdate::Place;
  if (request.move() != v1::QueueEnd::unspecified) {
    update.place = request.move() == v1::QueueEnd::first ? Place::kFirst : Place::kLast;
  }
  return update;
}

}  // namespace ablate::service
