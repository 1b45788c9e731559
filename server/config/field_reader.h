// Copies the fields of a message to the members of an engine's struct that have their names.
#ifndef ABLATE_SERVER_CONFIG_FIELD_READER_H_
#define ABLATE_SERVER_CONFIG_FIELD_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/option.h"
#include "proto/reflect/read.h"
#include "server/engine/config.h"
#include "server/engine/names.h"

namespace ablate::spec {

// Returns the error for a value that this program doesn't know.
inline absl::Status NotKnown(absl::string_view path, absl::string_view value,
                             absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", value, " is unknown; expected ", allowed));
}

// A visitor of engine::ForEachField. Numbers, booleans and texts keep their value if their field is
// unset; so do enums whose field has a condition, and members that the message has no field for.
// Elements of lists are appended.
class FieldReader {
 public:
  // `path` leads to the message, for errors. `error` becomes the first error: INVALID_ARGUMENT for
  // a value of an enum that the engine lacks, also for another unset one.
  FieldReader(const google::protobuf::Message& message, std::string path, absl::Status* error)
      : message_(message), path_(std::move(path)), error_(error) {}

  // `name` may be a path.
  template <typename T>
  void operator()(const std::string& name, T& to) const {
    const size_t dot = name.find('.');
    const auto* field = message_.GetDescriptor()->FindFieldByName(name.substr(0, dot));
    if (field == nullptr) return;
    if (dot != std::string::npos) {
      Below(field)(name.substr(dot + 1), to);
    } else if constexpr (engine::HasFields<T>) {
      engine::ForEachField(to, Below(field));
    } else if constexpr (requires { to.emplace_back(); }) {
      const int size = message_.GetReflection()->FieldSize(message_, field);
      for (int i = 0; i < size; ++i) ReadValue(field, i, &to.emplace_back());
    } else if (message_.GetReflection()->HasField(message_, field) ||
               (std::is_enum_v<T> && reflect::OptionOf(field).only_with().field().empty())) {
      ReadValue(field, 0, &to);
    }
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  FieldReader Below(const Field* field) const {
    return {message_.GetReflection()->GetMessage(message_, field),
            reflect::Below(path_, field->name()), error_};
  }

  template <typename T>
  void ReadValue(const Field* field, int index, T* to) const {
    const reflect::FieldValue value = reflect::Read(message_, field, index);
    if constexpr (std::is_enum_v<T>) {
      const std::optional<T> known = engine::FindByName<T>(reflect::TextOf(value));
      if (known.has_value()) *to = *known;
      if (!known.has_value() && error_->ok()) {
        *error_ = NotKnown(reflect::Below(path_, field->name()), reflect::TextOf(value),
                           Names<T>(field->enum_type()));
      }
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      *to = static_cast<T>(std::get<uint64_t>(value));
    } else {
      *to = std::get<T>(value);
    }
  }

  // Returns the message's values that the engine has; auto, for example, is resolved before.
  template <typename Enum>
  static std::string Names(const google::protobuf::EnumDescriptor* type) {
    std::vector<std::string> names;
    for (int i = 0; i < type->value_count(); ++i) {
      const std::string& name = type->value(i)->name();
      if (engine::FindByName<Enum>(name).has_value()) names.push_back(name);
    }
    return absl::StrCat("one of ", absl::StrJoin(names, ", "));
  }

  const google::protobuf::Message& message_;
  const std::string path_;
  absl::Status* const error_;
};

// Copies all fields of a message. Errors as FieldReader's.
template <typename Config>
absl::Status ReadFields(const google::protobuf::Message& message, const std::string& path,
                        Config* config) {
  absl::Status error;
  engine::ForEachField(*config, FieldReader(message, path, &error));
  return error;
}

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_FIELD_READER_H_
