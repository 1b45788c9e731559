#include "server/config/model_spec.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/config/fields.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"

namespace ablate::spec {
namespace {

// A visitor of engine::ForEachField that sets the message's fields; it passes over members that the
// message has no field for.
struct FieldWriter {
  google::protobuf::Message* message;

  template <typename T>
  void operator()(const std::string& name, const T& value) const {
    const size_t dot = name.find('.');
    const auto* field = message->GetDescriptor()->FindFieldByName(name.substr(0, dot));
    const auto* reflection = message->GetReflection();
    if (field == nullptr) return;
    if (dot != std::string::npos) {
      FieldWriter{reflection->MutableMessage(message, field)}(name.substr(dot + 1), value);
    } else if constexpr (engine::HasFields<T>) {
      engine::ForEachField(value, FieldWriter{reflection->MutableMessage(message, field)});
    } else if constexpr (std::is_enum_v<T>) {
      const std::string known(engine::NameOf(value));
      reflection->SetEnum(message, field, field->enum_type()->FindValueByName(known));
    } else if constexpr (std::is_same_v<T, bool>) {
      reflection->SetBool(message, field, value);
    } else if constexpr (std::is_same_v<T, double>) {
      reflection->SetDouble(message, field, value);
    } else {
      reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
    }
  }
};

// Clears fields without effect and sets absent ones to their defaults.
v1::ModelSpec Filled(v1::ModelSpec model) {
  v1::BaseSpec base;
  base.mutable_task()->mutable_text();
  *base.mutable_model() = std::move(model);
  FillFields(&base);
  return base.model();
}

}  // namespace

v1::ModelSpec ToModelSpec(const engine::ModelConfig& model) {
  engine::ModelConfig written = model;
  written.attention.kv_heads = engine::KvHeads(model);
  written.attention.head_size = engine::HeadSize(model);
  v1::ModelSpec spec;
  engine::ForEachField(written, FieldWriter{&spec});
  return Filled(std::move(spec));
}

absl::StatusOr<v1::ModelSpec> ReadStoredModel(const std::string& bytes) {
  v1::ModelSpec model;
  if (!model.ParseFromString(bytes)) {
    return absl::DataLossError("the stored description of the model can't be read");
  }
  return Filled(std::move(model));
}

}  // namespace ablate::spec
