#include "proto/reflect/from_value.h"

#include <cmath>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "proto/reflect/field_hints.h"
#include "proto/reflect/read.h"
#include "proto/reflect/scalars.h"

namespace ablate::reflect {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Value;
using Problems = std::vector<FieldProblem>;

// Returns the fields ordered by key, so that problems come in the same order every time.
std::map<std::string, const Value*> Sorted(const google::protobuf::Struct& fields) {
  std::map<std::string, const Value*> sorted;
  for (const auto& [key, value] : fields.fields()) sorted.emplace(key, &value);
  return sorted;
}

// Returns the path of a key. Keys are arbitrary input, so that unusual ones are shown in brackets.
std::string BelowKey(const std::string& path, absl::string_view name) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const bool plain = !name.empty() && name.size() <= 64 &&
                     name.find_first_not_of(kPlain) == absl::string_view::npos;
  return plain ? Below(path, name) : absl::StrCat(path, Subscript(name));
}

bool CheckDepth(int depth, const std::string& path, Problems* problems) {
  if (depth <= kMaxDepth) return true;
  problems->push_back(MakeProblem(path, "", "the value is nested too deeply",
                                  absl::StrCat("at most ", kMaxDepth, " levels")));
  return false;
}

// Limits the number of problems of a list or of a value's fields, because values may be arbitrarily
// long.
class ProblemBudget {
 public:
  explicit ProblemBudget(const Problems* problems)
      : problems_(problems), before_(problems->size()) {}
  bool spent() const { return problems_->size() - before_ >= kMaxProblems; }

 private:
  static constexpr size_t kMaxProblems = 1000;
  const Problems* const problems_;
  const size_t before_;
};

constexpr char kNoValue[] = "the value is missing";

// Checks a value that is stored as a value: finite, in UTF-8 and not too deep.
bool CheckAnything(const Value& value, const std::string& path, int depth, Problems* problems) {
  if (!CheckDepth(depth, path, problems)) return false;
  bool ok = true;
  const ProblemBudget budget(problems);
  if (value.has_list_value()) {
    for (int i = 0; i < value.list_value().values_size() && !budget.spent(); ++i) {
      ok &= CheckAnything(value.list_value().values(i), absl::StrCat(path, "[", i, "]"), depth + 1,
                          problems);
    }
  } else if (value.has_struct_value()) {
    for (const auto& [key, member] : Sorted(value.struct_value())) {
      if (budget.spent()) break;
      ok &= CheckUtf8(key, BelowKey(path, key), problems) &&
            CheckAnything(*member, BelowKey(path, key), depth + 1, problems);
    }
  } else if (value.has_string_value()) {
    ok = CheckUtf8(value.string_value(), path, problems);
  } else if (value.has_number_value() && !std::isfinite(value.number_value())) {
    ok = Refuse(value, path, {ShortText(value) + " is not finite", "a finite number"}, problems);
  } else if (value.kind_case() == Value::KIND_NOT_SET) {
    ok = Refuse(value, path, {kNoValue, "null, a boolean, a number, text, a list or fields"},
                problems);
  }
  return ok;
}

bool IsFree(const FieldDescriptor* field) {
  return field->message_type() == google::protobuf::Struct::descriptor() && !field->is_repeated();
}

// Sets the value at `names` below `fields`, in structs that are created on the way. A value on the
// way that isn't a struct is replaced by one.
void SetBelow(const std::vector<std::string>& names, const Value& value,
              google::protobuf::Struct* fields) {
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    fields = (*fields->mutable_fields())[names[i]].mutable_struct_value();
  }
  (*fields->mutable_fields())[names.back()] = value;
}

// The message that a value is below: unknown fields are looked for in all of it. Inside of a list
// it is the element, because nothing outside of that has the element's fields.
struct Root {
  const Descriptor* type;
  std::string path;
};

// How deep a value is in it.
struct Place {
  const Root& root;
  int depth;

  Place Below() const { return {root, depth + 1}; }
};

void FillMessage(const Value& value, const std::string& path, const Place& place, Message* message,
                 Problems* problems);

bool PutMessage(const Target& target, const Value& value, const std::string& path,
                const Place& place, Problems* problems) {
  const Descriptor* type = target.field->message_type();
  if (type == Value::descriptor()) {
    if (!CheckAnything(value, path, place.depth, problems)) return false;
    target.PutMessage()->CopyFrom(value);
    return true;
  }
  if (type == google::protobuf::Struct::descriptor()) {
    if (!value.has_struct_value()) {
      return Refuse(value, path,
                    {absl::StrCat(Quoted(value), " has no names"), "names and their values"},
                    problems);
    }
    if (!CheckAnything(value, path, place.depth, problems)) return false;
    target.PutMessage()->CopyFrom(value.struct_value());
    return true;
  }
  if (type == google::protobuf::Duration::descriptor()) {
    Refusal refusal;
    const auto duration = ToDuration(value, &refusal);
    if (!duration) return Refuse(value, path, WithRange(target.field, refusal), problems);
    target.PutMessage()->CopyFrom(*duration);
    return true;
  }
  const size_t before = problems->size();
  FillMessage(value, path, place, target.PutMessage(), problems);
  return problems->size() == before;
}

bool PutOne(const Target& target, const Value& value, const std::string& path, const Place& place,
            Problems* problems) {
  if (!CheckDepth(place.depth, path, problems)) return false;
  return target.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
             ? PutMessage(target, value, path, place, problems)
             : PutScalar(target, value, path, problems);
}

void PutMap(const Target& target, const Value& value, const std::string& path, const Place& place,
            Problems* problems) {
  if (!value.has_struct_value()) {
    Refuse(value, path, {absl::StrCat(Quoted(value), " has no keys"), "keys and their values"},
           problems);
    return;
  }
  const FieldDescriptor* key_field = target.field->message_type()->map_key();
  const FieldDescriptor* value_field = target.field->message_type()->map_value();
  const ProblemBudget budget(problems);
  for (const auto& [key, member] : Sorted(value.struct_value())) {
    if (budget.spent()) return;
    const std::string below = absl::StrCat(path, Subscript(key));
    Message* entry = target.PutMessage();
    Value key_value;
    key_value.set_string_value(key);
    PutOne({entry, key_field}, key_value, below, place.Below(), problems);
    PutOne({entry, value_field}, *member, below, place.Below(), problems);
  }
}

void PutList(const Target& target, const Value& value, const std::string& path, const Place& place,
             Problems* problems) {
  if (!value.has_list_value()) {
    Refuse(value, path, {absl::StrCat(Quoted(value), " is not a list"), "a list, such as [a, b]"},
           problems);
    return;
  }
  const ProblemBudget budget(problems);
  for (int i = 0; i < value.list_value().values_size() && !budget.spent(); ++i) {
    const Root element = {target.field->message_type(), absl::StrCat(path, "[", i, "]")};
    PutOne(target, value.list_value().values(i), element.path, {element, place.depth + 1},
           problems);
  }
}

// Returns the problem of an unknown field, with a suggestion.
FieldProblem UnknownField(const UnknownName& unknown, absl::string_view complaint,
                          const std::string& path, const std::string& value) {
  return MakeProblem(path, value, absl::StrCat(complaint, FieldHint(unknown)),
                     AnyOf(FieldNames(unknown.type)));
}

// Replaces `field` of `message`; null clears it. `place` counts the enclosing values.
void SetField(const FieldDescriptor* field, const Value& value, const std::string& path,
              const Place& place, Message* message, Problems* problems) {
  message->GetReflection()->ClearField(message, field);
  if (value.has_null_value()) return;
  const Target target{message, field};
  if (value.kind_case() == Value::KIND_NOT_SET) {
    const bool has_fields = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                            !field->is_repeated() &&
                            field->message_type()->file()->package() != "google.protobuf";
    Refuse(value, path,
           {kNoValue, has_fields ? "fields, or {} for the default of each"
                                 : "a value, or null for the default"},
           problems);
  } else if (field->is_map()) {
    PutMap(target, value, path, place, problems);
  } else if (field->is_repeated()) {
    PutList(target, value, path, place, problems);
  } else {
    PutOne(target, value, path, place, problems);
  }
}

// Reports members of a oneof that are given together, as one problem of the message.
void CheckOneofs(const google::protobuf::Struct& fields, const Descriptor* type,
                 const std::string& path, Problems* problems) {
  for (int i = 0; i < type->real_oneof_decl_count(); ++i) {
    const OneofDescriptor* oneof = type->oneof_decl(i);
    std::vector<std::string> members, given;
    for (int j = 0; j < oneof->field_count(); ++j) {
      members.push_back(oneof->field(j)->name());
      const auto found = fields.fields().find(members.back());
      if (found != fields.fields().end() && !found->second.has_null_value() &&
          found->second.kind_case() != Value::KIND_NOT_SET) {
        given.push_back(members.back());
      }
    }
    if (given.size() > 1) {
      const std::string all = absl::StrJoin(given, ", ");
      problems->push_back(
          MakeProblem(path, all, absl::StrCat(all, " exclude each other"), AnyOf(members)));
    }
  }
}

void FillMessage(const Value& value, const std::string& path, const Place& place, Message* message,
                 Problems* problems) {
  const Descriptor* type = message->GetDescriptor();
  if (!value.has_struct_value()) {
    Refuse(value, path,
           {absl::StrCat(Quoted(value), " has no fields"),
            absl::StrCat("the fields ", absl::StrJoin(FieldNames(type), ", "))},
           problems);
    return;
  }
  CheckOneofs(value.struct_value(), type, path, problems);
  const ProblemBudget budget(problems);
  for (const auto& [key, member] : Sorted(value.struct_value())) {
    if (budget.spent()) return;
    const FieldDescriptor* field = type->FindFieldByName(key);
    if (field == nullptr) {
      problems->push_back(UnknownField({place.root.type, place.root.path, type, path, key},
                                       "unknown field", BelowKey(path, key), ShortText(*member)));
    } else {
      SetField(field, *member, BelowKey(path, key), place.Below(), message, problems);
    }
  }
}

// Returns the fields along `path` below `root`; empty if there is a problem. A path may lead on
// into a field of free names (google.protobuf.Struct); `names` are then those.
std::vector<const FieldDescriptor*> FieldsAlong(absl::string_view path, const Descriptor* root,
                                                const Value& value, const std::string& reported_as,
                                                std::vector<std::string>* names,
                                                Problems* problems) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* type = root;
  size_t begin = 0;  // of the name in the path
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (!fields.empty() && IsFree(fields.back())) {
      names->emplace_back(name);
      continue;
    }
    if (type == nullptr) {
      problems->push_back(
          MakeProblem(reported_as, ShortText(value),
                      absl::StrCat(fields.back()->name(), " has no field ", Quoted(name),
                                   EndingHint(root, path.substr(begin))),
                      absl::StrCat("a path that ends at ", fields.back()->name())));
      return {};
    }
    const FieldDescriptor* field = type->FindFieldByName(std::string(name));
    if (field == nullptr) {
      const std::string known(path.substr(0, begin == 0 ? 0 : begin - 1));
      problems->push_back(UnknownField({root, "", type, known, path.substr(begin)},
                                       absl::StrCat("unknown field ", Quoted(name)), reported_as,
                                       ShortText(value)));
      return {};
    }
    fields.push_back(field);
    begin += name.size() + 1;
    const bool descend = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                         !field->is_repeated() &&
                         field->message_type()->file()->package() != "google.protobuf";
    type = descend ? field->message_type() : nullptr;
  }
  return fields;
}

}  // namespace

FieldProblem MakeProblem(const std::string& field, const std::string& value,
                         absl::string_view complaint, absl::string_view allowed) {
  const std::string where = field.empty() ? "" : absl::StrCat(field, ": ");
  return {field, value, std::string(allowed),
          absl::StrCat(where, complaint, "; expected ", allowed)};
}

bool CheckValue(const Value& value, const std::string& path, Problems* problems) {
  return CheckAnything(value, path, 0, problems);
}

void FromValue(const Value& value, const std::string& path, Message* message, Problems* problems) {
  message->Clear();
  const Root root = {message->GetDescriptor(), path};
  if (!value.has_null_value()) FillMessage(value, path, {root, 0}, message, problems);
}

void SetPath(absl::string_view path, const Value& value, const std::string& reported_as,
             Message* message, Problems* problems) {
  std::vector<std::string> names;
  const auto fields =
      FieldsAlong(path, message->GetDescriptor(), value, reported_as, &names, problems);
  if (fields.empty()) return;
  const FieldPath way(fields);
  const FieldDescriptor* last = way.field();
  if (!names.empty()) {
    const int depth = static_cast<int>(fields.size() + names.size());
    if (!CheckDepth(depth, reported_as, problems)) return;
    if (!CheckAnything(value, reported_as, depth, problems)) return;
    Message* holder = way.MutableHolder(message);
    Message* free = holder->GetReflection()->MutableMessage(holder, last);
    return SetBelow(names, value, static_cast<google::protobuf::Struct*>(free));
  }
  if (value.has_null_value()) {
    if (!way.IsSet(*message)) return;
    Message* holder = way.MutableHolder(message);
    return holder->GetReflection()->ClearField(holder, last);
  }
  // Fills a scratch message first, so that a problem changes nothing.
  const Descriptor* type = last->containing_type();
  const std::unique_ptr<Message> scratch(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  const size_t before = problems->size();
  const Root root = {message->GetDescriptor(), ""};
  SetField(last, value, reported_as, {root, static_cast<int>(fields.size())}, scratch.get(),
           problems);
  if (problems->size() != before) return;
  Message* holder = way.MutableHolder(message);
  holder->GetReflection()->ClearField(holder, last);
  holder->GetReflection()->SwapFields(scratch.get(), holder, {last});
}

}  // namespace ablate::reflect
