#include "server/config/analysis_options.h"

#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/read.h"
#include "server/engine/analysis_names.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Reads options into the engine's, and records which ones it has read.
class OptionReader {
 public:
  explicit OptionReader(const Message& message) : message_(message) {}

  void operator()(const char* name, std::string* to) { *to = Get<std::string>(name, 0); }
  void operator()(const char* name, bool* to) { *to = Get<bool>(name, 0); }
  void operator()(const char* name, double* to) { *to = Get<double>(name, 0); }
  void operator()(const char* name, uint32_t* to) {
    *to = static_cast<uint32_t>(Get<uint64_t>(name, 0));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum* to) { *to = GetEnum<Enum>(name, 0); }
  template <typename T>
  void operator()(const char* name, std::vector<T>* to) {
    const FieldDescriptor* field = Find(name);
    const int size = message_.GetReflection()->FieldSize(message_, field);
    for (int i = 0; i < size; ++i) {
      if constexpr (std::is_enum_v<T>) {
        to->push_back(GetEnum<T>(name, i));
      } else if constexpr (std::is_same_v<T, uint32_t>) {
        to->push_back(static_cast<uint32_t>(Get<uint64_t>(name, i)));
      } else {
        to->push_back(Get<T>(name, i));
      }
    }
  }

  // INTERNAL if an option was not read: its line below is missing.
  absl::Status status() const {
    if (!status_.ok()) return status_;
    const auto* type = message_.GetDescriptor();
    if (read_.size() == static_cast<size_t>(type->field_count())) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(type->name(), " has options that are not read"));
  }

 private:
  const FieldDescriptor* Find(const char* name) {
    read_.insert(name);
    return message_.GetDescriptor()->FindFieldByName(name);
  }
  template <typename T>
  T Get(const char* name, int index) {
    return std::get<T>(reflect::Read(message_, Find(name), index));
  }
  template <typename Enum>
  Enum GetEnum(const char* name, int index) {
    const auto number = Get<reflect::EnumNumber>(name, index);
    const auto* value = number.type->FindValueByNumber(number.number);
    const auto known = value == nullptr ? std::nullopt : engine::FindByName<Enum>(value->name());
    if (known.has_value()) return *known;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        name, ": ", number.number, " is unknown; expected one of ", engine::AllNames<Enum>()));
    return Enum();
  }

  const Message& message_;
  std::set<std::string> read_;
  absl::Status status_;
};

void Read(OptionReader& read, engine::SpectrumOptions* to) { read("site", &to->site); }

void Read(OptionReader& read, engine::CkaOptions* to) {
  read("sites", &to->sites);
  read("estimator", &to->estimator);
  read("block", &to->block);
}

void Read(OptionReader& read, engine::ActivationsOptions* to) {
  read("sites", &to->sites);
  read("histograms", &to->histograms);
}

void Read(OptionReader& read, engine::WeightsOptions* to) { read("histograms", &to->histograms); }

void Read(OptionReader& read, engine::CaptureOptions* to) { read("sites", &to->sites); }

void Read(OptionReader& read, engine::LossLandscapeOptions* to) {
  read("direction", &to->direction);
  read("dims", &to->dims);
  read("directions", &to->directions);
  read("radius", &to->radius);
  read("points", &to->points);
}

void Read(OptionReader& read, engine::HessianOptions* to) {
  read("top", &to->top);
  read("iterations", &to->iterations);
  read("trace_samples", &to->trace_samples);
  read("density_runs", &to->density_runs);
}

void Read(OptionReader& read, engine::GradientFlowOptions* to) { read("signal", &to->signal); }

void Read(OptionReader&, engine::GradientAlignmentOptions*) {}

void Read(OptionReader& read, engine::NormJacobianOptions* to) { read("signal", &to->signal); }

void Read(OptionReader& read, engine::NormStatisticsOptions* to) { read("batch", &to->batch); }

void Read(OptionReader& read, engine::NormResponseOptions* to) {
  read("mean", &to->mean);
  read("deviation", &to->deviation);
  read("size", &to->size);
}

void Read(OptionReader& read, engine::AttentionOptions* to) {
  read("maps", &to->maps);
  read("dependency", &to->dependency);
}

void Read(OptionReader& read, engine::RemoveOptions* to) {
  read("part", &to->part);
  read("replacement", &to->replacement);
}

void Read(OptionReader& read, engine::TrajectoryOptions* to) { read("points", &to->points); }

void Read(OptionReader& read, engine::LogitLensOptions* to) { read("statistics", &to->statistics); }

void Read(OptionReader& read, engine::PredictionsOptions* to) {
  read("bins", &to->bins);
  read("edge", &to->edge);
}

void Read(OptionReader& read, engine::InductionOptions* to) {
  read("period", &to->period);
  read("repeats", &to->repeats);
  read("sequences", &to->sequences);
}

void Read(OptionReader& read, engine::PatchOptions* to) {
  read("clean", &to->clean);
  read("corrupt", &to->corrupt);
  read("right", &to->right);
  read("wrong", &to->wrong);
  read("part", &to->part);
  read("direction", &to->direction);
}

void Read(OptionReader& read, engine::RobustnessOptions* to) {
  read("replace_words", &to->replace_words);
  read("embedding_noise", &to->embedding_noise);
  read("fgsm", &to->fgsm);
  read("l2", &to->l2);
  read("unit", &to->unit);
  read("draws", &to->draws);
}

void Read(OptionReader& read, engine::ProbeOptions* to) {
  read("label", &to->label);
  read("test", &to->test);
  read("subtoken", &to->subtoken);
  read("c", &to->c);
  read("controls", &to->controls);
}

// Returns the alternative whose row in the engine's table has this name, with default values.
template <size_t index = 0>
std::optional<engine::AnalysisOptions> OptionsNamed(const std::string& name) {
  if constexpr (index < std::variant_size_v<engine::AnalysisOptions>) {
    if (engine::AnalysisKinds()[index].name == name) {
      return engine::AnalysisOptions(std::in_place_index<index>);
    }
    return OptionsNamed<index + 1>(name);
  } else {
    return std::nullopt;
  }
}

}  // namespace

const FieldDescriptor* KindField(const v1::AnalysisKind& analysis) {
  const auto* kinds = v1::AnalysisKind::descriptor()->oneof_decl(0);
  return analysis.GetReflection()->GetOneofFieldDescriptor(analysis, kinds);
}

absl::StatusOr<engine::AnalysisOptions> ToEngineOptions(const v1::AnalysisKind& analysis) {
  const FieldDescriptor* kind = KindField(analysis);
  auto options = kind == nullptr ? std::nullopt : OptionsNamed(kind->name());
  if (!options.has_value()) {
    return absl::UnimplementedError("this program does not know the kind of analysis");
  }
  const Message& message = analysis.GetReflection()->GetMessage(analysis, kind);
  if (!message.GetReflection()->GetUnknownFields(message).empty()) {
    return absl::UnimplementedError(
        absl::StrCat("this program does not know all options of ", kind->name()));
  }
  OptionReader reader(message);
  std::visit([&](auto& of) { Read(reader, &of); }, *options);
  RETURN_IF_ERROR(reader.status());
  return *std::move(options);
}

}  // namespace ablate::spec
