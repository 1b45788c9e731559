// Makes specs and surroundings for resolving.
#ifndef ABLATE_TESTS_EXPERIMENT_SPECS_H_
#define ABLATE_TESTS_EXPERIMENT_SPECS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/ascii.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/reflect/option.h"
#include "proto/reflect/read.h"
#include "server/config/fields.h"
#include "server/engine/names.h"
#include "server/experiment/resolve.h"

namespace ablate::spec {

using Overrides = std::map<std::string, google::protobuf::Value>;

// Returns the facts of a data set of GPT-2's tokens.
inline DatasetFacts TokensOf(const std::string& id, uint64_t tokens) {
  return {{0, 50'257, 0, tokens, 0, {}}, id, std::string(63, '0') + "6", DatasetKind::kTokens};
}

// Returns the facts of a data set of documents in GPT-2's tokens, of two or four each.
inline DatasetFacts DocumentTokensOf(const std::string& id, uint64_t documents) {
  return {{documents, 50'257, 4, 3 * documents, 0, {0, 0, documents / 2, 0, documents / 2}},
          id,
          std::string(63, '0') + "8",
          DatasetKind::kTokens};
}

// Returns a server that has the data set datasets/names-0a30b5 (32,033 names, also known as names
// and names.txt), datasets/tiny-000000 (10 documents, 70 tokens as one text, also known as chars),
// datasets/shakespeare-86c4e6, datasets/line-000000 (10,000 characters without a line end), the
// tokenizer datasets/gpt2-111111, datasets/ids-222222 (30,000 of its tokens) and
// datasets/lines-333333 (2,000 documents of its tokens, also known as id lines).
inline Surroundings TestSurroundings() {
  Surroundings surroundings;
  surroundings.find_dataset = [](absl::string_view name, bool) -> absl::StatusOr<DatasetFacts> {
    if (name == "names" || name == "names.txt" || name == "names-0a30b5" ||
        name == "datasets/names-0a30b5") {
      return DatasetFacts{{32'033, 26, 0, 0, 0, {}}, "names-0a30b5", std::string(63, '0') + "1"};
    }
    if (name == "tiny" || name == "chars") {
      return DatasetFacts{{10, 5, 0, 60, 10, {}}, "tiny-000000", std::string(63, '0') + "2"};
    }
    if (name == "shakespeare" || name == "datasets/shakespeare-86c4e6") {
      return DatasetFacts{
          {32'777, 64, 0, 1'075'394, 40'000, {}}, "shakespeare-86c4e6", std::string(63, '0') + "3"};
    }
    if (name == "line") {
      return DatasetFacts{{1, 5, 0, 10'000, 0, {}}, "line-000000", std::string(63, '0') + "4"};
    }
    if (name == "gpt2" || name == "datasets/gpt2-111111") {
      return DatasetFacts{{0, 50'257, 0, 0, 0, {}},
                          "gpt2-111111",
                          std::string(63, '0') + "5",
                          DatasetKind::kTokenizer};
    }
    if (name == "ids") return TokensOf("ids-222222", 30'000);
    if (name == "id lines") return DocumentTokensOf("lines-333333", 2'000);
    return absl::NotFoundError("there is no data set of that name.");
  };
  surroundings.encode_dataset = [](const std::string& text, const std::string& tokenizer,
                                   bool documents) -> absl::StatusOr<DatasetFacts> {
    EXPECT_EQ(tokenizer, "gpt2-111111");
    if (documents) return DocumentTokensOf(text + "-gpt2", text == "tiny-000000" ? 10 : 32'033);
    return absl::StatusOr<DatasetFacts>(
        TokensOf(text + "-gpt2", text == "tiny-000000" ? 20 : 338'000));
  };
  // A model of two layers that has 70 tokens, with the fields that stored runs have.
  surroundings.find_model = [](const std::string& name) -> absl::StatusOr<ModelFacts> {
    if (name != "plays/s0") return absl::NotFoundError("there is no experiment of that name.");
    ModelFacts facts{"plays-ab12/s0", std::string(63, '0') + "7", 70};
    v1::BaseSpec base;
    base.mutable_task()->mutable_text()->set_dataset("shakespeare");
    base.mutable_model()->set_layers(2);
    base.mutable_model()->set_width(16);
    base.mutable_model()->set_context(32);
    base.mutable_model()->mutable_norm()->set_kind(v1::NormKind::rms);
    FillFields(&base);
    facts.model = base.model();
    return facts;
  };
  return surroundings;
}

// Returns the same server with a GPU worker.
inline Surroundings WithGpu() {
  Surroundings surroundings = TestSurroundings();
  surroundings.cuda = true;
  return surroundings;
}

// Parses an experiment from a textproto.
inline v1::ExperimentSpec FromText(const std::string& text) {
  v1::ExperimentSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// Returns a small, valid experiment of one cell.
inline v1::ExperimentSpec SmallSpec() {
  return FromText(R"(name: "small" base { task { legacy_recall {} } })");
}

inline v1::ExperimentSpec RecallSpec() {
  return FromText(R"(name: "recall" base { task { recall {} } })");
}

inline v1::ExperimentSpec TextSpec() {
  return FromText(R"(name: "text" base { task { text { dataset: "shakespeare" } } })");
}

// Returns the example on names: 3 placements × 5 rates × 12 seeds.
inline v1::ExperimentSpec NamesNorm() {
  return FromText(R"(
    name: "names-norm"
    base {
      task { documents { dataset: "names" held_out: 2000 } }
      model {
        layers: 8 width: 16 heads: 4 context: 16 bias: false
        init { streams: sequential } norm { kind: rms placement: pre final: true eps: 1e-5 }
        feed_forward { hidden: 64 activation: relu }
      }
      training {
        steps: 1000 batch: 1 optimizer: adamw learning_rate: 0.01 betas: [0.85, 0.99]
        weight_decay: 0.01 schedule: linear checkpoints: [0, 100, 500, -1]
      }
      evaluation { every: 100 }
    }
    axes {
      name: "placement"
      settings { label: "pre" }
      settings {
        label: "post"
        set { key: "model.norm.placement" value { string_value: "post" } }
        set { key: "model.norm.final" value { bool_value: false } }
      }
      settings {
        label: "none"
        set { key: "model.norm.placement" value { string_value: "none" } }
        set { key: "model.norm.final" value { bool_value: false } }
      }
    }
    axes {
      name: "lr" field: "training.learning_rate" tune: true
      values { number_value: 0.001 } values { number_value: 0.002 } values { number_value: 0.004 }
      values { number_value: 0.01 } values { number_value: 0.02 }
    }
    seeds { first: 42 count: 12 })");
}

inline google::protobuf::Value Json(const std::string& json) {
  google::protobuf::Value value;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &value).ok()) << json;
  return value;
}

// A setting of an axis: its label and what it sets, as `path: json` pairs.
struct AxisPoint {
  std::string label;
  std::vector<std::pair<std::string, std::string>> set;
};

inline void AddSettings(const std::string& name, const std::vector<AxisPoint>& settings,
                        v1::ExperimentSpec* spec) {
  v1::Axis* axis = spec->add_axes();
  axis->set_name(name);
  for (const AxisPoint& text : settings) {
    v1::Setting* setting = axis->add_settings();
    setting->set_label(text.label);
    for (const auto& [path, json] : text.set) (*setting->mutable_set())[path] = Json(json);
  }
}

// Adds an axis over a field; `values` are JSON.
inline v1::Axis* AddValues(const std::string& field, const std::vector<std::string>& values,
                           v1::ExperimentSpec* spec) {
  v1::Axis* axis = spec->add_axes();
  axis->set_field(field);
  for (const std::string& value : values) *axis->add_values() = Json(value);
  return axis;
}

inline std::vector<std::string> Messages(const Resolution& resolution) {
  std::vector<std::string> messages;
  for (const Problem& problem : resolution.problems) messages.push_back(problem.message);
  return messages;
}

// Resolves a spec that must be valid.
inline Resolution Resolved(const v1::ExperimentSpec& spec, const Overrides& overrides = {}) {
  Resolution resolution = Resolve(spec, overrides, TestSurroundings());
  EXPECT_EQ(Messages(resolution), std::vector<std::string>());
  return resolution;
}

// Returns the device of each cell.
inline std::vector<std::string> Devices(const Resolution& resolution) {
  std::vector<std::string> kinds;
  for (size_t i = 0; i < resolution.cells.size(); ++i) {
    const ResolvedCell& cell = resolution.cells[i];
    EXPECT_EQ(v1::Device::Value_Name(cell.run.spec().training().device()), cell.device_kind);
    EXPECT_EQ(engine::NameOf<engine::Device>(resolution.configs[i].device), cell.device_kind);
    kinds.push_back(cell.device_kind);
  }
  return kinds;
}

// Returns the paths of every scalar and every list of BaseSpec, except of programs and imports.
inline std::vector<std::string> Leaves(
    const google::protobuf::Descriptor* type = v1::BaseSpec::descriptor(),
    const std::string& path = "") {
  std::vector<std::string> leaves;
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    const std::string below = reflect::Below(path, field->name());
    if (below == "program" || below == "settings" || below == "imported") continue;
    std::vector<std::string> found = {below};
    if (field->message_type() != nullptr) found = Leaves(field->message_type(), below);
    leaves.insert(leaves.end(), found.begin(), found.end());
  }
  return leaves;
}

// Returns the spec trained by torch, the trainer of all earlier runs.
inline v1::ExperimentSpec ByTorch(v1::ExperimentSpec spec) {
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  return spec;
}

// Returns resolved bases that together make every field applicable.
inline std::vector<v1::BaseSpec> FilledBases() {
  v1::ExperimentSpec sgd = ByTorch(SmallSpec());
  sgd.mutable_base()->mutable_training()->set_optimizer(v1::Optimizer::sgd);
  v1::ExperimentSpec muon = ByTorch(SmallSpec());
  muon.mutable_base()->mutable_training()->set_optimizer(v1::Optimizer::muon);
  muon.mutable_base()->mutable_training()->set_schedule(v1::Schedule::wsd);
  v1::ExperimentSpec switched = ByTorch(SmallSpec());
  v1::ModelSpec* model = switched.mutable_base()->mutable_model();
  model->set_positions(v1::Positions::rotary);
  model->mutable_attention()->mutable_qk_norm()->set_kind(v1::QkNormKind::rms);
  model->set_update_gain(v1::UpdateGain::feature);
  model->set_parallel(true);
  model->mutable_norm()->set_kind(v1::NormKind::dyt);
  v1::ExperimentSpec sigmoid = SmallSpec();
  sigmoid.mutable_base()->mutable_model()->mutable_attention()->set_kind(
      v1::AttentionKind::sigmoid);
  std::vector<v1::BaseSpec> bases;
  for (const v1::ExperimentSpec& spec :
       {SmallSpec(), sgd, muon, switched, sigmoid, RecallSpec(), TextSpec(), NamesNorm()}) {
    bases.push_back(Resolved(spec).cells.at(0).run.spec());
  }
  return bases;
}

// Returns another value than `value` that is valid for the rule's field by itself.
inline double OtherValue(const FieldRule& rule, double value) {
  if (rule.field.is_number())
    return reflect::InRange(*rule.info, value + 1) ? value + 1 : value / 2 + 0.25;
  for (const int number : {2, 1, 3, 0}) {
    const std::string name = rule.field.Text(number);
    const bool known = absl::ascii_isalpha(name[0]) && name != "unspecified" && name != "auto";
    if (known && name != rule.field.Text(value)) return number;
  }
  ADD_FAILURE() << rule.path << " has no other value";
  return value;
}

}  // namespace ablate::spec

#endif  // ABLATE_TESTS_EXPERIMENT_SPECS_H_
