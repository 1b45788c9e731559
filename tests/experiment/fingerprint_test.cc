// Tests fingerprints: pinned values, and what changes them or must not.
#include "server/experiment/fingerprint.h"

#include <regex>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/config/fields.h"
#include "server/experiment/resolution.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

ResolvedCell CellNamed(const Resolution& resolution, const std::string& name) {
  for (const ResolvedCell& cell : resolution.cells) {
    if (cell.name == name) return cell;
  }
  ADD_FAILURE() << "no cell " << name;
  return {};
}

ResolvedCell Only(const v1::ExperimentSpec& spec) { return Resolved(spec).cells.at(0); }

// Torch's are the same as before there was another trainer. These may only change together with
// engine::kNumericsVersion: every stored run is found by them.
TEST(FingerprintTest, IsPinned) {
  const Resolution names = Resolved(ByTorch(NamesNorm()));
  EXPECT_EQ(CellNamed(names, "pre-lr0.01-s42").fingerprint, "3uxbbiwgxpiq");
  EXPECT_EQ(CellNamed(names, "pre-lr0.01-s42").trajectory, "rj6kszkq4efm");
  EXPECT_EQ(CellNamed(names, "pre-lr0.01-s42").shape, "m7ropqry6yxp");
  EXPECT_EQ(CellNamed(names, "post-lr0.01-s42").fingerprint, "rj6np3rnb2mg");
  EXPECT_EQ(CellNamed(names, "none-lr0.01-s43").fingerprint, "elf44xlr5p3s");
  EXPECT_EQ(Only(ByTorch(SmallSpec())).fingerprint, "2w5ghhxd3f2y");
}

TEST(FingerprintTest, IsTheHashOfACanonicalText) {
  const ResolvedCell cell = CellNamed(Resolved(ByTorch(NamesNorm())), "post-lr0.002-s43");
  const Canonical canonical(cell.run.spec(), cell.dataset_sha256);
  EXPECT_EQ(canonical.RunText(43), R"(ablate run 1
data=0000000000000000000000000000000000000000000000000000000000000001
device=cpu
model.bias=false
model.context=16
model.feed_forward.activation=relu
model.init.streams=sequential
model.layers=8
model.norm.final=false
model.norm.kind=rms
model.norm.placement=post
model.width=16
numerics=5
seed=43
task=documents
task.documents.held_out=2000
trainer=torch
training.batch=1
training.betas=0.85,0.99
training.checkpoints=0,100,500,-1
training.learning_rate=0.002
training.schedule=linear
)");
  EXPECT_EQ(cell.fingerprint, ShortHash(canonical.RunText(43)));
  EXPECT_EQ(cell.trajectory, ShortHash(canonical.TrajectoryText(43)));
  EXPECT_EQ(cell.shape, ShortHash(canonical.ShapeText()));
}

TEST(FingerprintTest, ADefaultSpecSaysAlmostNothing) {
  const ResolvedCell cell = Only(ByTorch(SmallSpec()));
  EXPECT_EQ(Canonical(cell.run.spec(), "").RunText(0),
            "ablate run 1\ndevice=cpu\nnumerics=5\nseed=0\ntask=legacy_recall\ntrainer=torch\n");
}

TEST(FingerprintTest, HasTheTrainerInEveryKey) {
  const ResolvedCell native = Only(SmallSpec());
  const ResolvedCell torch = Only(ByTorch(SmallSpec()));
  EXPECT_EQ(Canonical(native.run.spec(), "").RunText(0),
            "ablate run 1\ndevice=cpu\nnumerics=5\nseed=0\ntask=legacy_recall\ntrainer=native\n");
  EXPECT_NE(native.fingerprint, torch.fingerprint);
  EXPECT_NE(native.trajectory, torch.trajectory);
  EXPECT_NE(native.growth, torch.growth);
  EXPECT_NE(native.shape, torch.shape);
}

TEST(FingerprintTest, NamesTheTask) {
  EXPECT_EQ(Canonical(Only(ByTorch(RecallSpec())).run.spec(), "").RunText(0),
            "ablate run 1\ndevice=cpu\nnumerics=5\nseed=0\ntask=recall\ntrainer=torch\n");
  const std::string text =
      "ablate run 1\ndata=x\ndevice=cpu\nnumerics=5\nseed=0\ntask=text\ntrainer=torch\n";
  v1::BaseSpec base = Only(ByTorch(TextSpec())).run.spec();
  EXPECT_EQ(Canonical(base, "x").RunText(0), text);
  // Reading characters is the default; the number of evaluated batches is not.
  base.mutable_evaluation()->set_batches(8);
  EXPECT_THAT(Canonical(base, "x").RunText(0), ::testing::HasSubstr("\nevaluation.batches=8\n"));
}

TEST(FingerprintTest, IsTwelveCharactersOfBase32) {
  // SHA-256("abc") is ba7816bf8f01cfea…
  EXPECT_EQ(ShortHash("abc"), "xj4bnp4pahh6");
  EXPECT_TRUE(std::regex_match(Only(SmallSpec()).fingerprint, std::regex("[a-z2-7]{12}")));
}

// Equal resolved specs must be equal, however they are written.
TEST(FingerprintTest, WritingDefaultsOutChangesNothing) {
  for (const v1::ExperimentSpec& spec : {SmallSpec(), NamesNorm()}) {
    const ResolvedCell cell = Only(spec);
    v1::ExperimentSpec written = SmallSpec();
    *written.mutable_base() = cell.run.spec();
    written.mutable_seeds()->add_list(cell.seed);
    const ResolvedCell again = Only(written);
    EXPECT_EQ(again.fingerprint, cell.fingerprint);
    EXPECT_EQ(again.trajectory, cell.trajectory);
    EXPECT_EQ(again.shape, cell.shape);
  }
}

TEST(FingerprintTest, WhatIsSaidAboutAnExperimentChangesNothing) {
  v1::ExperimentSpec spec = NamesNorm();
  const std::string before = Only(spec).fingerprint;
  spec.set_name("other");
  spec.set_question("What else?");
  spec.mutable_report()->set_primary("train/loss");
  spec.mutable_report()->set_better(v1::Better::higher);
  spec.mutable_report()->set_scale(v1::Scale::ratio);
  spec.mutable_limits()->set_priority(v1::Priority::background);
  spec.mutable_axes(0)->set_name("norm");
  spec.mutable_axes(0)->mutable_settings(0)->set_label("before");
  spec.mutable_axes(1)->set_tune(false);
  EXPECT_EQ(Only(spec).fingerprint, before);
}

TEST(FingerprintTest, TheWayToAValueChangesNothing) {
  v1::ExperimentSpec direct = SmallSpec();
  direct.mutable_base()->mutable_training()->set_learning_rate(1e-4);
  v1::ExperimentSpec by_axis = SmallSpec();
  by_axis.add_axes()->set_field("training.learning_rate");
  *by_axis.mutable_axes(0)->add_values() = Json("0.0001");
  const std::string expected = Only(direct).fingerprint;
  EXPECT_EQ(Only(by_axis).fingerprint, expected);
  const Overrides overrides = {{"training.learning_rate", Json("1E-4")}};
  EXPECT_EQ(Resolved(SmallSpec(), overrides).cells.at(0).fingerprint, expected);
}

TEST(FingerprintTest, TheOrderOfASetChangesNothing) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.add_axes()->set_name("a");
  for (const bool forward : {true, false}) {
    v1::Setting* setting = spec.mutable_axes(0)->add_settings();
    setting->set_label(forward ? "forward" : "backward");
    auto& set = *setting->mutable_set();
    for (const char* path : {forward ? "model.width" : "model.feed_forward.hidden",
                             forward ? "model.feed_forward.hidden" : "model.width"}) {
      set[path] = Json("64");
    }
  }
  const Resolution resolution = Resolved(spec);
  EXPECT_EQ(resolution.cells[0].fingerprint, resolution.cells[1].fingerprint);
}

TEST(FingerprintTest, TheNameOfADataSetChangesNothing) {
  v1::ExperimentSpec spec = NamesNorm();
  const std::string before = Only(spec).fingerprint;
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset("datasets/names-0a30b5");
  EXPECT_EQ(Only(spec).fingerprint, before);
}

TEST(FingerprintTest, CheckpointsAreASet) {
  v1::ExperimentSpec spec = SmallSpec();
  for (const int step : {-1, 100, 0, 100, 1000}) {
    spec.mutable_base()->mutable_training()->add_checkpoints(step);
  }
  v1::ExperimentSpec sorted = SmallSpec();
  for (const int step : {0, 100, -1}) {
    sorted.mutable_base()->mutable_training()->add_checkpoints(step);
  }
  EXPECT_EQ(Only(spec).fingerprint, Only(sorted).fingerprint);
}

TEST(FingerprintTest, EveryFieldCounts) {
  size_t changed = 0;
  for (const v1::BaseSpec& base : FilledBases()) {
    const Canonical before(base, "0");
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.Applies(base)) continue;
      v1::BaseSpec other = base;
      rule.field.Set(OtherValue(rule, rule.field.Get(base)), &other);
      const Canonical after(other, "0");
      EXPECT_NE(after.RunText(1), before.RunText(1)) << rule.path;
      const bool evaluation = rule.path.rfind("evaluation.", 0) == 0;
      EXPECT_EQ(after.TrajectoryText(1) == before.TrajectoryText(1), evaluation) << rule.path;
      ++changed;
    }
  }
  EXPECT_GT(changed, FieldRules().size());
}

TEST(FingerprintTest, WhatIsNoScalarCountsToo) {
  const v1::BaseSpec base = FilledBases().back();
  const Canonical before(base, "0");
  v1::BaseSpec betas = base;
  betas.mutable_training()->set_betas(1, 0.5);
  EXPECT_NE(Canonical(betas, "0").TrajectoryText(1), before.TrajectoryText(1));
  v1::BaseSpec device = base;
  device.mutable_training()->set_device(v1::Device::cuda);
  EXPECT_NE(Canonical(device, "0").TrajectoryText(1), before.TrajectoryText(1));
  EXPECT_NE(Canonical(device, "0").ShapeText(), before.ShapeText());
  EXPECT_NE(Canonical(base, "1").TrajectoryText(1), before.TrajectoryText(1));
  EXPECT_NE(before.TrajectoryText(2), before.TrajectoryText(1));
  v1::BaseSpec checkpoints = base;
  checkpoints.mutable_training()->add_checkpoints(7);
  EXPECT_NE(Canonical(checkpoints, "0").RunText(1), before.RunText(1));
  EXPECT_EQ(Canonical(checkpoints, "0").TrajectoryText(1), before.TrajectoryText(1));
}

TEST(FingerprintTest, ADefaultThatDependsOnOthersFollowsThem) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_model()->set_width(64);
  const std::string implicit = Only(spec).fingerprint;
  spec.mutable_base()->mutable_model()->mutable_feed_forward()->set_hidden(256);
  EXPECT_EQ(Only(spec).fingerprint, implicit);
  spec.mutable_base()->mutable_model()->mutable_feed_forward()->set_hidden(512);
  EXPECT_NE(Only(spec).fingerprint, implicit);
}

// One cycle's rise is three tenths of its run.
TEST(FingerprintTest, ADefaultThatDependsOnTheScheduleFollowsIt) {
  const auto cell = [](const std::string& training) {
    return Only(FromText(absl::StrCat(R"(name: "a" base { task { legacy_recall {} } training { )",
                                      training, " } }")));
  };
  const ResolvedCell cycle = cell("schedule: one_cycle steps: 19");
  EXPECT_EQ(cycle.run.spec().training().warmup(), 5u);
  EXPECT_EQ(cell("schedule: one_cycle steps: 19 warmup: 5").fingerprint, cycle.fingerprint);
  EXPECT_NE(cell("schedule: one_cycle steps: 19 warmup: 0").fingerprint, cycle.fingerprint);
  EXPECT_EQ(cell("schedule: one_cycle steps: 1000").run.spec().training().warmup(), 300u);
  EXPECT_EQ(cell("schedule: inverse_sqrt steps: 19").run.spec().training().warmup(), 0u);
}

TEST(FingerprintTest, AShapeIsWhatAStepCosts) {
  const std::string before = Only(NamesNorm()).shape;
  const auto shape_with = [](const std::string& path, const std::string& json) {
    return Resolved(NamesNorm(), {{path, Json(json)}}).cells.at(0).shape;
  };
  for (const char* path : {"training.steps", "training.warmup"}) {
    EXPECT_EQ(shape_with(path, "500"), before) << path;
  }
  EXPECT_EQ(shape_with("model.init.kind", "\"gpt2\""), before);
  // A run's time includes its evaluations.
  EXPECT_NE(shape_with("evaluation.every", "500"), before);
  EXPECT_NE(shape_with("evaluation.record", R"(["gradient_by_block"])"), before);
  EXPECT_NE(shape_with("task.documents.held_out", "7"), before);
  const std::string of_text = Only(TextSpec()).shape;
  EXPECT_NE(Resolved(TextSpec(), {{"task.text.validation", Json("0.2")}}).cells.at(0).shape,
            of_text);
  EXPECT_NE(Resolved(TextSpec(), {{"evaluation.batches", Json("2")}}).cells.at(0).shape, of_text);
  EXPECT_NE(Resolved(TextSpec(), {{"model.context", Json("32")}}).cells.at(0).shape, of_text);
  EXPECT_NE(shape_with("model.width", "32"), before);
  EXPECT_NE(shape_with("training.batch", "2"), before);
  EXPECT_NE(shape_with("training.ema", "0.9"), before);
  v1::ExperimentSpec parts = NamesNorm();
  parts.mutable_base()->mutable_training()->set_batch(2);
  const std::string whole = Only(parts).shape;
  parts.mutable_base()->mutable_training()->set_accumulation(2);
  EXPECT_NE(Only(parts).shape, whole);
  EXPECT_NE(shape_with("task.documents", R"({"dataset": "tiny", "held_out": 2})"), before);
}

v1::ExperimentSpec WithSteps(v1::ExperimentSpec spec, uint32_t steps) {
  spec.mutable_base()->mutable_training()->set_steps(steps);
  return spec;
}

TEST(GrowthTest, IsTheRunWithoutItsSteps) {
  const ResolvedCell cell = Only(WithSteps(ByTorch(SmallSpec()), 300));
  EXPECT_EQ(Canonical(cell.run.spec(), "").GrowthText(4),
            "ablate growth 1\ndevice=cpu\nnumerics=5\nseed=4\ntask=legacy_recall\ntrainer=torch\n");
  EXPECT_EQ(cell.growth, Only(WithSteps(ByTorch(SmallSpec()), 7)).growth);
  // If steps are not written.
  EXPECT_EQ(cell.growth, Only(ByTorch(SmallSpec())).growth);
  EXPECT_NE(cell.fingerprint, Only(ByTorch(SmallSpec())).fingerprint);
}

TEST(GrowthTest, ChangesWithEverythingElse) {
  const std::string growth = Only(SmallSpec()).growth;
  std::vector<v1::ExperimentSpec> others(6, SmallSpec());
  others[0].mutable_seeds()->add_list(1);
  others[1].mutable_base()->mutable_training()->set_warmup(5);
  others[2].mutable_base()->mutable_training()->add_checkpoints(5);
  others[3].mutable_base()->mutable_evaluation()->set_every(5);
  others[4].mutable_base()->mutable_model()->set_layers(1);
  others[5].mutable_base()->mutable_training()->set_optimizer(v1::Optimizer::sgd);
  for (const v1::ExperimentSpec& other : others) EXPECT_NE(Only(other).growth, growth);
}

// A step's computation of such a run depends on the number of steps.
TEST(GrowthTest, IsEmptyUnderAScheduleThatDependsOnSteps) {
  for (const auto schedule : {v1::Schedule::linear, v1::Schedule::cosine}) {
    v1::ExperimentSpec spec = SmallSpec();
    spec.mutable_base()->mutable_training()->set_schedule(schedule);
    EXPECT_EQ(Only(spec).growth, "");
  }
}

TEST(PrivateToTest, IsEachUsersOwn) {
  EXPECT_EQ(PrivateTo("", "xj4bnp4pahh6"), "xj4bnp4pahh6") << "everybody's";
  EXPECT_EQ(PrivateTo("mia", ""), "") << "what a run has none of";
  const std::string mias = PrivateTo("mia", "xj4bnp4pahh6");
  EXPECT_EQ(mias.size(), 12u);
  EXPECT_NE(mias, "xj4bnp4pahh6");
  EXPECT_NE(mias, PrivateTo("bob", "xj4bnp4pahh6"));
  EXPECT_NE(mias, PrivateTo("mia", "xj4bnp4pahh7"));
  // Stored runs are found by it.
  EXPECT_EQ(mias, "ezed3e755xsr");
}

}  // namespace
}  // namespace ablate::spec
