// Tests options of analyses by their descriptors: defaults, ranges, conversion to the engine, and
// the identity of analyses.
#include "server/experiment/analysis.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "proto/reflect/read.h"
#include "server/config/analysis_options.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::AnalysisKind KindOf(const std::string& text) {
  v1::AnalysisKind analysis;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &analysis)) << text;
  return analysis;
}

// Sets defaults; a problem fails the test.
v1::AnalysisKind ResolvedKind(v1::AnalysisKind analysis) {
  Problems problems;
  EXPECT_TRUE(ResolveAnalysis(&analysis, "analysis", &problems));
  for (const Problem& problem : problems.Take()) ADD_FAILURE() << problem.message;
  return analysis;
}
v1::AnalysisKind ResolvedKind(const std::string& text) { return ResolvedKind(KindOf(text)); }

std::vector<std::string> ProblemsOf(v1::AnalysisKind analysis) {
  Problems problems;
  ResolveAnalysis(&analysis, "analysis", &problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.Take()) messages.push_back(problem.message);
  return messages;
}

// Calls `look` with each option of each kind, and its kind without options.
void ForEachOption(
    const std::function<void(const FieldDescriptor* kind, const FieldDescriptor* option)>& look) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    const auto* options = kinds->field(i)->message_type();
    for (int j = 0; j < options->field_count(); ++j) look(kinds->field(i), options->field(j));
  }
}

Message* OptionsOf(const FieldDescriptor* kind, v1::AnalysisKind* analysis) {
  return analysis->GetReflection()->MutableMessage(analysis, kind);
}

const v1::OptionInfo& InfoOf(const FieldDescriptor* option) {
  return option->options().GetExtension(v1::option);
}

// Sets a number; of a list the only one.
void Set(const FieldDescriptor* option, double value, Message* options) {
  const auto* reflection = options->GetReflection();
  const bool whole = option->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  if (option->is_repeated()) reflection->ClearField(options, option);
  if (option->is_repeated() && whole) {
    reflection->AddUInt32(options, option, static_cast<uint32_t>(value));
  } else if (option->is_repeated()) {
    reflection->AddDouble(options, option, value);
  } else if (whole) {
    reflection->SetUInt32(options, option, static_cast<uint32_t>(value));
  } else {
    ASSERT_EQ(option->cpp_type(), FieldDescriptor::CPPTYPE_DOUBLE);
    reflection->SetDouble(options, option, value);
  }
}

// Sets another value than the present one.
void Change(const FieldDescriptor* option, Message* options) {
  const auto* reflection = options->GetReflection();
  const v1::OptionInfo& info = InfoOf(option);
  switch (option->cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* values = option->enum_type();
      if (option->is_repeated()) {
        reflection->AddEnumValue(options, option, values->value(1)->number());
      } else {
        const int now = reflection->GetEnumValue(*options, option);
        reflection->SetEnumValue(options, option, now == 1 ? 2 : 1);
      }
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(options, option, !reflection->GetBool(*options, option));
    case FieldDescriptor::CPPTYPE_STRING:
      if (option->is_repeated()) return reflection->AddString(options, option, "embedding");
      return reflection->SetString(options, option, "embedding");
    default: {
      const bool at_least =
          !option->is_repeated() &&
          reflect::TextOf(reflect::Read(*options, option)) == absl::StrCat(info.min());
      return Set(option, at_least ? info.max() : info.min(), options);
    }
  }
}

TEST(AnalysisOptionsTest, EveryOptionGetsItsDefault) {
  ForEachOption([](const FieldDescriptor* kind, const FieldDescriptor* option) {
    v1::AnalysisKind analysis;
    OptionsOf(kind, &analysis);
    analysis = ResolvedKind(analysis);
    const Message& options = *OptionsOf(kind, &analysis);
    const v1::OptionInfo& info = InfoOf(option);
    EXPECT_NE(info.help(), "") << option->full_name();
    const bool set = !option->is_repeated() && options.GetReflection()->HasField(options, option);
    if (info.default_().empty()) return;
    ASSERT_TRUE(set) << option->full_name();
    EXPECT_EQ(reflect::TextOf(reflect::Read(options, option)), info.default_())
        << option->full_name();
  });
}

TEST(AnalysisOptionsTest, DefaultsOfALandscapeDependOnItsOtherOptions) {
  const auto landscape = [](const std::string& options) {
    return ResolvedKind("loss_landscape { " + options + " }").loss_landscape();
  };
  EXPECT_EQ(landscape("").radius(), 1);
  EXPECT_EQ(landscape("").points(), 51u);
  EXPECT_EQ(landscape("direction: unit").radius(), .5);
  EXPECT_EQ(landscape("dims: 2").points(), 21u);
  EXPECT_EQ(landscape("direction: unit radius: 3 dims: 2 points: 5").radius(), 3);
  EXPECT_EQ(landscape("direction: unit radius: 3 dims: 2 points: 5").points(), 5u);
}

// Both have the same defaults.
TEST(AnalysisOptionsTest, DefaultsAreThoseOfTheEngine) {
  const auto of = [](const std::string& text) { return *ToEngineOptions(ResolvedKind(text)); };
  EXPECT_EQ(std::get<engine::SpectrumOptions>(of("spectrum {}")).site, "");
  const auto cka = std::get<engine::CkaOptions>(of("cka {}"));
  EXPECT_EQ(cka.estimator, engine::CkaOptions().estimator);
  EXPECT_EQ(cka.block, engine::CkaOptions().block);
  EXPECT_FALSE(std::get<engine::ActivationsOptions>(of("activations {}")).histograms);
  EXPECT_FALSE(std::get<engine::WeightsOptions>(of("weights {}")).histograms);
  const auto landscape = std::get<engine::LossLandscapeOptions>(of("loss_landscape {}"));
  const engine::LossLandscapeOptions flat;
  EXPECT_EQ(landscape.direction, flat.direction);
  EXPECT_EQ(landscape.dims, flat.dims);
  EXPECT_EQ(landscape.directions, flat.directions);
  EXPECT_EQ(landscape.radius, 1);  // of the server, which knows the direction
  EXPECT_EQ(landscape.points, 51u);
  const auto hessian = std::get<engine::HessianOptions>(of("hessian {}"));
  const engine::HessianOptions curved;
  EXPECT_EQ(hessian.top, curved.top);
  EXPECT_EQ(hessian.iterations, curved.iterations);
  EXPECT_EQ(hessian.trace_samples, curved.trace_samples);
  EXPECT_EQ(hessian.density_runs, curved.density_runs);
  EXPECT_EQ(std::get<engine::GradientFlowOptions>(of("gradient_flow {}")).signal,
            engine::GradientFlowOptions().signal);
  EXPECT_EQ(std::get<engine::NormJacobianOptions>(of("norm_jacobian {}")).signal,
            engine::NormJacobianOptions().signal);
  const auto response = std::get<engine::NormResponseOptions>(of("norm_response {}"));
  EXPECT_EQ(response.mean, engine::NormResponseOptions().mean);
  EXPECT_EQ(response.deviation, engine::NormResponseOptions().deviation);
  EXPECT_EQ(response.size, engine::NormResponseOptions().size);
  const auto remove = std::get<engine::RemoveOptions>(of("remove {}"));
  EXPECT_EQ(remove.part, engine::RemoveOptions().part);
  EXPECT_EQ(remove.replacement, engine::RemoveOptions().replacement);
}

TEST(AnalysisOptionsTest, RangesHoldAtTheirEnds) {
  int ranges = 0;
  ForEachOption([&](const FieldDescriptor* kind, const FieldDescriptor* option) {
    const v1::OptionInfo& info = InfoOf(option);
    const bool number = option->cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
                        option->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    EXPECT_EQ(info.has_min(), number) << option->full_name();
    EXPECT_EQ(info.has_max(), number) << option->full_name();
    if (!number) return;
    ++ranges;
    const bool whole = option->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const auto problems = [&](double value) {
      v1::AnalysisKind analysis;
      Set(option, value, OptionsOf(kind, &analysis));
      return ProblemsOf(analysis);
    };
    const std::string path = absl::StrCat("analysis.", kind->name(), ".", option->name(),
                                          option->is_repeated() ? "[0]" : "");
    const auto refused = ElementsAre(testing::StartsWith(path + ": "));
    EXPECT_THAT(problems(info.min()), IsEmpty()) << path;
    EXPECT_THAT(problems(info.max()), IsEmpty()) << path;
    EXPECT_THAT(problems(whole ? info.max() + 1 : std::nextafter(info.max(), kInfinity)), refused);
    if (!whole || info.min() > 0) {
      EXPECT_THAT(problems(whole ? info.min() - 1 : std::nextafter(info.min(), -kInfinity)),
                  refused);
    }
    if (whole) {
      EXPECT_THAT(problems(UINT32_MAX), refused);
    } else {
      EXPECT_THAT(problems(std::nan("")), refused);
      EXPECT_THAT(problems(kInfinity), refused);
    }
  });
  EXPECT_GE(ranges, 13);
}

TEST(AnalysisOptionsTest, ListsHaveAtMostSoManyElementsEachOnce) {
  ForEachOption([](const FieldDescriptor* kind, const FieldDescriptor* option) {
    if (!option->is_repeated()) return;
    ASSERT_GT(InfoOf(option).most(), 0u) << option->full_name();
    v1::AnalysisKind analysis;
    Message* const options = OptionsOf(kind, &analysis);
    Change(option, options);
    EXPECT_THAT(ProblemsOf(analysis), IsEmpty());
    v1::AnalysisKind twice = analysis;
    twice.MergeFrom(analysis);
    if (option->type() == FieldDescriptor::TYPE_STRING && option->name() != "sites") {
      EXPECT_THAT(ProblemsOf(twice), IsEmpty());  // texts, such as prompts
    } else {
      EXPECT_THAT(ProblemsOf(twice), ElementsAre(testing::HasSubstr("repeated")));
    }
  });
  v1::AnalysisKind sites;
  for (int i = 0; i < 500; ++i) sites.mutable_cka()->add_sites(absl::StrCat("site ", i));
  EXPECT_THAT(ProblemsOf(sites), IsEmpty());
  sites.mutable_cka()->add_sites("one more");
  EXPECT_THAT(ProblemsOf(sites),
              ElementsAre("analysis.cka.sites: 501 entries; expected at most 500"));
}

TEST(AnalysisOptionsTest, EnumsHaveNoOtherValues) {
  ForEachOption([](const FieldDescriptor* kind, const FieldDescriptor* option) {
    if (option->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) return;
    for (const int number : {0, 99}) {
      v1::AnalysisKind analysis;
      Message* const options = OptionsOf(kind, &analysis);
      if (option->is_repeated()) {
        options->GetReflection()->AddEnumValue(options, option, number);
      } else {
        options->GetReflection()->SetEnumValue(options, option, number);
      }
      EXPECT_THAT(ProblemsOf(analysis),
                  ElementsAre(testing::HasSubstr(absl::StrCat(number, " is unknown; expected "))));
      EXPECT_TRUE(absl::IsInvalidArgument(ToEngineOptions(analysis).status()));
    }
  });
}

TEST(AnalysisOptionsTest, TheEngineGetsEveryOption) {
  const auto of = [](const std::string& text) { return *ToEngineOptions(ResolvedKind(text)); };
  EXPECT_EQ(std::get<engine::SpectrumOptions>(of("spectrum { site: \"logits\" }")).site, "logits");
  const auto cka = std::get<engine::CkaOptions>(
      of("cka { sites: \"a\" sites: \"b\" estimator: biased block: 7 }"));
  EXPECT_THAT(cka.sites, ElementsAre("a", "b"));
  EXPECT_EQ(cka.estimator, engine::CkaEstimator::kBiased);
  EXPECT_EQ(cka.block, 7u);
  const auto activations =
      std::get<engine::ActivationsOptions>(of("activations { sites: \"a\" histograms: true }"));
  EXPECT_THAT(activations.sites, ElementsAre("a"));
  EXPECT_TRUE(activations.histograms);
  EXPECT_TRUE(std::get<engine::WeightsOptions>(of("weights { histograms: true }")).histograms);
  EXPECT_THAT(std::get<engine::CaptureOptions>(of("capture { sites: \"a\" }")).sites,
              ElementsAre("a"));
  const auto landscape = std::get<engine::LossLandscapeOptions>(
      of("loss_landscape { direction: layer dims: 2 directions: 3 radius: 4.5 points: 5 }"));
  EXPECT_EQ(landscape.direction, engine::Direction::kLayer);
  EXPECT_EQ(landscape.dims, 2u);
  EXPECT_EQ(landscape.directions, 3u);
  EXPECT_EQ(landscape.radius, 4.5);
  EXPECT_EQ(landscape.points, 5u);
  const auto hessian = std::get<engine::HessianOptions>(
      of("hessian { top: 2 iterations: 3 trace_samples: 4 density_runs: 0 }"));
  EXPECT_EQ(hessian.top, 2u);
  EXPECT_EQ(hessian.iterations, 3u);
  EXPECT_EQ(hessian.trace_samples, 4u);
  EXPECT_EQ(hessian.density_runs, 0u);
  EXPECT_EQ(std::get<engine::GradientFlowOptions>(of("gradient_flow { signal: rule }")).signal,
            engine::GradientSignal::kRule);
  EXPECT_TRUE(
      std::holds_alternative<engine::GradientAlignmentOptions>(of("gradient_alignment {}")));
  EXPECT_EQ(std::get<engine::NormJacobianOptions>(of("norm_jacobian { signal: exact }")).signal,
            engine::GradientSignal::kExact);
  EXPECT_THAT(
      std::get<engine::NormStatisticsOptions>(of("norm_statistics { batch: 8 batch: 2 }")).batch,
      ElementsAre(8, 2));
  const auto response =
      std::get<engine::NormResponseOptions>(of("norm_response { mean: -1 deviation: 0 size: 3 }"));
  EXPECT_EQ(response.mean, -1);
  EXPECT_EQ(response.deviation, 0);
  EXPECT_EQ(response.size, 3u);
  EXPECT_THAT(std::get<engine::AttentionOptions>(of("attention { maps: model maps: heads }")).maps,
              ElementsAre(engine::AttentionMaps::kModel, engine::AttentionMaps::kHeads));
  const auto remove =
      std::get<engine::RemoveOptions>(of("remove { part: attention replacement: uniform }"));
  EXPECT_EQ(remove.part, engine::RemovedPart::kAttention);
  EXPECT_EQ(remove.replacement, engine::Replacement::kUniform);
}

TEST(AnalysisOptionsTest, EveryKindAndValueIsOneOfTheEngines) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  ASSERT_EQ(static_cast<size_t>(kinds->field_count()), engine::AnalysisKinds().size());
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::AnalysisKind analysis;
    OptionsOf(kinds->field(i), &analysis);
    EXPECT_EQ(KindName(analysis), engine::AnalysisKinds()[static_cast<size_t>(i)].name);
    const auto options = ToEngineOptions(ResolvedKind(analysis));
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(engine::KindOf(*options).name, kinds->field(i)->name());
  }
  ForEachOption([](const FieldDescriptor* kind, const FieldDescriptor* option) {
    if (option->cpp_type() != FieldDescriptor::CPPTYPE_ENUM || option->is_repeated()) return;
    for (int i = 1; i < option->enum_type()->value_count(); ++i) {
      v1::AnalysisKind analysis;
      Message* const options = OptionsOf(kind, &analysis);
      options->GetReflection()->SetEnumValue(options, option,
                                             option->enum_type()->value(i)->number());
      EXPECT_TRUE(ToEngineOptions(ResolvedKind(analysis)).ok())
          << option->enum_type()->value(i)->name();
    }
  });
}

TEST(AnalysisOptionsTest, WhatThisProgramDoesNotKnowIsUnimplemented) {
  EXPECT_TRUE(absl::IsUnimplemented(ToEngineOptions({}).status()));
  v1::AnalysisKind analysis = ResolvedKind("spectrum {}");
  auto* options = analysis.mutable_spectrum();
  options->GetReflection()->MutableUnknownFields(options)->AddVarint(999, 1);
  EXPECT_TRUE(absl::IsUnimplemented(ToEngineOptions(analysis).status()));
}

v1::AnalysisInputs InputsOf(const std::string& text) {
  v1::AnalysisInputs inputs;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &inputs)) << text;
  return inputs;
}

// Returns the problems of inputs of a kind.
std::vector<std::string> InputProblems(const std::string& text, const std::string& kind) {
  v1::AnalysisInputs inputs = InputsOf(text);
  Problems problems;
  ResolveInputs(KindOf(kind), &inputs, &problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.Take()) messages.push_back(problem.message);
  return messages;
}

TEST(AnalysisInputsTest, AreTokensOrDocumentsOrAPrompt) {
  for (const char* one :
       {"", "tokens: 1", "tokens: 1000000", "documents: 1", "documents: 1000000", "prompt: 'a'",
        "dataset: 'd'", "dataset: 'd' documents: 5", "dataset: 'd' tokens: 5"}) {
    EXPECT_THAT(InputProblems(one, "spectrum {}"), IsEmpty()) << one;
  }
  const std::string prompt = "given together with a prompt; expected one of the two";
  EXPECT_THAT(InputProblems("tokens: 1 prompt: 'a'", "spectrum {}"),
              ElementsAre("inputs.tokens: " + prompt));
  EXPECT_THAT(InputProblems("documents: 1 prompt: 'a'", "spectrum {}"),
              ElementsAre("inputs.documents: " + prompt));
  EXPECT_THAT(InputProblems("tokens: 1 documents: 1", "spectrum {}"),
              ElementsAre("inputs.documents: given together with tokens; expected one of the two"));
  EXPECT_THAT(InputProblems("dataset: 'd' prompt: 'a'", "spectrum {}"),
              ElementsAre("inputs.dataset: " + prompt));
  EXPECT_THAT(InputProblems("tokens: 1 documents: 1 prompt: 'a' dataset: 'd'", "spectrum {}"),
              SizeIs(3));
  for (const char* count : {"0", "1000001", "18446744073709551615"}) {
    for (const char* field : {"documents", "tokens"}) {
      EXPECT_THAT(InputProblems(absl::StrCat(field, ": ", count), "spectrum {}"),
                  ElementsAre(absl::StrCat("inputs.", field, ": ", count,
                                           " is out of range; expected 1 to 1,000,000")));
    }
  }
}

TEST(AnalysisInputsTest, AreNoneOfAKindThatReadsNone) {
  EXPECT_THAT(InputProblems("", "weights {}"), IsEmpty());
  for (const auto& [text, field] : {std::pair{"tokens: 5", "inputs.tokens"},
                                    {"documents: 5", "inputs.documents"},
                                    {"prompt: 'a'", "inputs.prompt"},
                                    {"dataset: 'd'", "inputs.dataset"}}) {
    EXPECT_THAT(InputProblems(text, "weights {}"),
                ElementsAre(absl::StrCat(field, ": weights takes no inputs; expected none")));
  }
}

TEST(AnalysisInputsTest, AreTaggedSentencesOfAKindThatNeedsThem) {
  const std::string needs =
      "inputs.dataset: probe needs tagged sentences; expected a data set in CoNLL-U, whose words "
      "have labels";
  for (const char* text : {"", "documents: 5", "prompt: 'a'"}) {
    EXPECT_THAT(InputProblems(text, "probe {}"), ElementsAre(needs)) << text;
  }
  EXPECT_THAT(InputProblems("dataset: 'd'", "probe {}"), IsEmpty());
  const auto of_kind = [](const std::string& analysis, DatasetKind kind) {
    Problems problems;
    CheckDatasetKind(KindOf(analysis), "d", kind, &problems);
    return problems.found();
  };
  EXPECT_EQ(of_kind("probe {}", DatasetKind::kTagged), 0u);
  EXPECT_EQ(of_kind("probe {}", DatasetKind::kText), 1u);
  EXPECT_EQ(of_kind("spectrum {}", DatasetKind::kText), 0u);
}

TEST(AnalysisInputsTest, TokensAreTheDefaultAndTheHashIsTheServers) {
  v1::AnalysisInputs inputs = InputsOf("dataset: 'd' dataset_sha256: 'mine'");
  Problems problems;
  ResolveInputs(KindOf("spectrum {}"), &inputs, &problems);
  EXPECT_EQ(inputs.tokens(), 20'000u);
  EXPECT_EQ(inputs.dataset_sha256(), "");
  inputs = InputsOf("documents: 7");
  ResolveInputs(KindOf("spectrum {}"), &inputs, &problems);
  EXPECT_FALSE(inputs.has_tokens());
}

TEST(AnalysisInputsTest, CostAtMostTheContextForEachDocument) {
  EXPECT_EQ(MostTokens(InputsOf("tokens: 70"), 0, 8), 70u);
  EXPECT_EQ(MostTokens(InputsOf("prompt: '\303\251a'"), 0, 8), 2u);
  EXPECT_EQ(MostTokens(InputsOf("documents: 70"), 0, 8), 560u);
  EXPECT_EQ(MostTokens(InputsOf("documents: 1000000"), 0, 8192), 1'000'000u) << "more is refused";
  EXPECT_EQ(MostTokens(InputsOf("documents: 70"), 400, 8), 470u) << "of so many bytes";
  EXPECT_EQ(MostTokens(InputsOf("documents: 70"), 4000, 8), 560u);
  engine::RunConfig run;
  run.model.context = 8;
  Problems problems;
  const auto cost = [&](const std::string& inputs, uint64_t text_bytes = 0) {
    return CheckSubjects(*ToEngineOptions(ResolvedKind("capture { sites: 'logits' }")),
                         InputsOf(inputs), text_bytes, {run}, "analysis", &problems);
  };
  EXPECT_EQ(cost("documents: 70", 400).state_bytes, cost("tokens: 470").state_bytes);
  EXPECT_GT(cost("documents: 70").state_bytes, 0u);
  EXPECT_EQ(cost("documents: 70").state_bytes, cost("tokens: 560").state_bytes);
}

// Returns the problems of models of one layer or two with sites, as sentences.
std::vector<std::string> SubjectProblemsOf(const std::string& kind, const std::string& inputs,
                                           const std::vector<engine::RunConfig>& subjects) {
  Problems problems;
  CheckSubjects(*ToEngineOptions(ResolvedKind(kind)), InputsOf(inputs), 0, subjects, "analysis",
                &problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.Take()) messages.push_back(problem.message);
  return messages;
}

TEST(AnalysisSubjectsTest, AreNamedWhereSomeOfThemCanNotBeAsked) {
  engine::RunConfig shallow, deep, recall;
  shallow.model.layers = 1;
  shallow.model.context = 4;
  shallow.task = engine::DocumentsTask{};
  deep = recall = shallow;
  deep.model.layers = 2;
  deep.model.context = 16;
  recall.task = engine::RecallTask{};
  const std::string sites = "cka { sites: 'block.1.output' }";
  const auto messages = SubjectProblemsOf(sites, "tokens: 5", {deep, shallow, deep, shallow});
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(messages[0], testing::StartsWith(
                               "analysis.cka.sites[0]: the model has no site \"block.1.output\" of "
                               "this kind (subjects[1], subjects[3]); expected embedding, "));
  EXPECT_THAT(SubjectProblemsOf(sites, "tokens: 5", {shallow, shallow}),
              ElementsAre(testing::HasSubstr("of this kind; expected")))
      << "all of them";
  EXPECT_THAT(SubjectProblemsOf("cka {}", "prompt: 'abcd'", {deep, shallow}),
              ElementsAre("inputs.prompt: 4 characters (subjects[1]); expected at most 3, one less "
                          "than the model's context"));
  EXPECT_THAT(SubjectProblemsOf("cka {}", "dataset: 'd' tokens: 5", {deep, recall}),
              ElementsAre("inputs.dataset: the tokens of recall are numbers, not text "
                          "(subjects[1]); expected a documents or text task"));
}

TEST(AnalysisSubjectsTest, AreTwoThingsAtLeastForCka) {
  engine::RunConfig run;
  run.model.layers = 1;
  const std::string one = "cka { sites: 'embedding' }";
  EXPECT_THAT(SubjectProblemsOf(one, "tokens: 5", {run}),
              ElementsAre("analysis.cka.sites: there is one only; expected two or more, or several "
                          "subjects"));
  EXPECT_THAT(SubjectProblemsOf(one, "tokens: 5", {run, run}), IsEmpty());
  EXPECT_THAT(SubjectProblemsOf("cka {}", "tokens: 5", {run}), IsEmpty());
}

TEST(AnalysisSubjectsTest, MayBeTooLargeForABiasedCka) {
  engine::RunConfig run;
  run.model.layers = 20;
  run.model.width = 768;
  EXPECT_THAT(SubjectProblemsOf("cka { estimator: biased }", "tokens: 5", {run}),
              ElementsAre("analysis.cka.estimator: biased needs sums of all pairs, 1089994752 "
                          "bytes; expected 1000000000 bytes, with fewer sites, or debiased"));
  EXPECT_THAT(SubjectProblemsOf("cka {}", "tokens: 5", {run}), IsEmpty());
}

TEST(AnalysisSubjectsTest, HaveNoSitesOfQueriesAndKeysWhereRowsAreLookedAt) {
  engine::RunConfig run;
  run.model.layers = 1;
  for (const char* kind : {"cka { sites: 'embedding' sites: 'block.0.attention.weights' }",
                           "spectrum { site: 'block.0.attention.scores' }",
                           "activations { sites: 'block.0.attention.weights' }"}) {
    const auto messages = SubjectProblemsOf(kind, "tokens: 5", {run});
    ASSERT_THAT(messages, SizeIs(1)) << kind;
    EXPECT_THAT(messages[0], testing::HasSubstr("of this kind; expected embedding, "));
    EXPECT_THAT(messages[0], testing::Not(testing::HasSubstr("attention.weights,")));
  }
}

class AnalysisFingerprintTest : public testing::Test {
 protected:
  // Returns a request of a resolved kind, with everything else set.
  static v1::Analysis Asked(const v1::AnalysisKind& analysis) {
    v1::Analysis asked;
    *asked.mutable_analysis() = ResolvedKind(analysis);
    asked.mutable_inputs()->set_tokens(100);
    asked.set_seed(3);
    for (const char* run : {"runs/a", "runs/b"}) {
      asked.add_subjects()->set_run(run);
      asked.mutable_subjects(asked.subjects_size() - 1)->set_step(10);
    }
    return asked;
  }
};

TEST_F(AnalysisFingerprintTest, DiffersForEachOption) {
  std::set<std::string> kinds;
  ForEachOption([&](const FieldDescriptor* kind, const FieldDescriptor* option) {
    v1::AnalysisKind analysis;
    OptionsOf(kind, &analysis);
    analysis = ResolvedKind(analysis);
    const std::string before = AnalysisFingerprint(Asked(analysis));
    kinds.insert(before);
    Change(option, OptionsOf(kind, &analysis));
    EXPECT_NE(AnalysisFingerprint(Asked(analysis)), before) << option->full_name();
  });
  kinds.insert(AnalysisFingerprint(Asked(KindOf("gradient_alignment {}"))));
  EXPECT_THAT(kinds, SizeIs(engine::AnalysisKinds().size())) << "and for each kind";
}

TEST_F(AnalysisFingerprintTest, IsTheSameForExplicitDefaults) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::AnalysisKind analysis;
    OptionsOf(kinds->field(i), &analysis);
    EXPECT_EQ(AnalysisFingerprint(Asked(analysis)),
              AnalysisFingerprint(Asked(ResolvedKind(analysis))));
  }
}

TEST_F(AnalysisFingerprintTest, DiffersForInputsSeedAndSubjects) {
  const v1::Analysis asked = Asked(KindOf("cka {}"));
  std::set<std::string> all = {AnalysisFingerprint(asked)};
  const auto expect_new = [&](const std::function<void(v1::Analysis*)>& change) {
    v1::Analysis other = asked;
    change(&other);
    EXPECT_TRUE(all.insert(AnalysisFingerprint(other)).second) << other.ShortDebugString();
  };
  expect_new([](v1::Analysis* a) { a->set_seed(4); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_tokens(101); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_prompt("ab"); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_prompt("ab\nsubject=runs/c@1"); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_documents(100); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_documents(101); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_dataset_sha256("100"); });
  expect_new([](v1::Analysis* a) { a->mutable_inputs()->set_dataset_sha256("101"); });
  expect_new([](v1::Analysis* a) { a->mutable_subjects(0)->set_run("runs/c"); });
  expect_new([](v1::Analysis* a) { a->mutable_subjects(0)->set_step(11); });
  expect_new([](v1::Analysis* a) { a->mutable_subjects()->SwapElements(0, 1); });
  expect_new([](v1::Analysis* a) { a->mutable_subjects()->RemoveLast(); });
}

// It finds stored analyses, also those from before documents and data sets could be named.
TEST_F(AnalysisFingerprintTest, IsWhatItWasWhereNoDocumentsOrDataSetIsGiven) {
  EXPECT_EQ(AnalysisFingerprint(Asked(KindOf("spectrum {}"))), "6uchmpwtpoo6");
  EXPECT_EQ(AnalysisSignature(Asked(KindOf("spectrum {}"))), "b5drks4j4urh");
}

// An analysis with changed numbers isn't found under its old fingerprint.
TEST_F(AnalysisFingerprintTest, ChangesWithTheRevisionOfItsKind) {
  ASSERT_EQ(engine::KindOf(engine::GradientAlignmentOptions()).revision, 2);
  // It was 6tbb3j3oxafj without a revision.
  EXPECT_EQ(AnalysisFingerprint(Asked(KindOf("gradient_alignment {}"))), "vpygacioyk2t");
}

TEST_F(AnalysisFingerprintTest, IsOfADataSetsBytesNotOfItsName) {
  v1::Analysis asked = Asked(KindOf("cka {}"));
  asked.mutable_inputs()->set_dataset("datasets/names-a");
  asked.mutable_inputs()->set_dataset_sha256("aaaa");
  const std::string before = AnalysisFingerprint(asked);
  asked.mutable_inputs()->set_dataset("datasets/renamed-a");
  EXPECT_EQ(AnalysisFingerprint(asked), before);
}

TEST_F(AnalysisFingerprintTest, DoesNotDependOnWhatComesOfIt) {
  v1::Analysis asked = Asked(KindOf("cka {}"));
  const std::string before = AnalysisFingerprint(asked);
  EXPECT_TRUE(before.size() == 12 &&
              before.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == std::string::npos)
      << before;
  asked.set_name("analyses/x");
  asked.set_state(v1::AnalysisState::DONE);
  asked.set_progress(1);
  asked.add_notes("a note");
  EXPECT_EQ(AnalysisFingerprint(asked), before);
}

}  // namespace
}  // namespace ablate::spec
