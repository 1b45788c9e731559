// Maps the enum values of analyses to their names in analysis_options.proto and analysis.proto, as
// names.h does for the config. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYSIS_NAMES_H_
#define ABLATE_SERVER_ENGINE_ANALYSIS_NAMES_H_

#include "server/engine/analysis.h"
#include "server/engine/names.h"

namespace ablate::engine {

template <>
inline constexpr Named<GradientSignal> kNames<GradientSignal>[] = {
    {GradientSignal::kExact, "exact"}, {GradientSignal::kRule, "rule"}};
template <>
inline constexpr Named<Direction> kNames<Direction>[] = {{Direction::kRaw, "raw"},
                                                         {Direction::kUnit, "unit"},
                                                         {Direction::kFilter, "filter"},
                                                         {Direction::kLayer, "layer"}};
template <>
inline constexpr Named<RemovedPart> kNames<RemovedPart>[] = {
    {RemovedPart::kHead, "head"},
    {RemovedPart::kAttention, "attention"},
    {RemovedPart::kFeedForward, "feed_forward"}};
template <>
inline constexpr Named<Replacement> kNames<Replacement>[] = {
    {Replacement::kMean, "mean"}, {Replacement::kZero, "zero"}, {Replacement::kUniform, "uniform"}};
template <>
inline constexpr Named<AttentionMaps> kNames<AttentionMaps>[] = {{AttentionMaps::kHeads, "heads"},
                                                                 {AttentionMaps::kLayers, "layers"},
                                                                 {AttentionMaps::kModel, "model"}};
template <>
inline constexpr Named<CkaEstimator> kNames<CkaEstimator>[] = {
    {CkaEstimator::kDebiased, "debiased"}, {CkaEstimator::kBiased, "biased"}};
template <>
inline constexpr Named<LensStatistics> kNames<LensStatistics>[] = {
    {LensStatistics::kRecomputed, "recomputed"}, {LensStatistics::kCached, "cached"}};
template <>
inline constexpr Named<PatchedPart> kNames<PatchedPart>[] = {
    {PatchedPart::kResidual, "residual"},
    {PatchedPart::kAttention, "attention"},
    {PatchedPart::kFeedForward, "feed_forward"},
    {PatchedPart::kHead, "head"}};
template <>
inline constexpr Named<PatchDirection> kNames<PatchDirection>[] = {
    {PatchDirection::kDenoise, "denoise"}, {PatchDirection::kNoise, "noise"}};
template <>
inline constexpr Named<LevelUnit> kNames<LevelUnit>[] = {{LevelUnit::kAbsolute, "absolute"},
                                                         {LevelUnit::kRelative, "relative"}};
template <>
inline constexpr Named<Subtoken> kNames<Subtoken>[] = {
    {Subtoken::kLast, "last"}, {Subtoken::kFirst, "first"}, {Subtoken::kMean, "mean"}};
template <>
inline constexpr Named<Undefined> kNames<Undefined>[] = {
    {Undefined::kZeroVariance, "ZERO_VARIANCE"}, {Undefined::kTooFewTokens, "TOO_FEW_TOKENS"},
    {Undefined::kNoAttention, "NO_ATTENTION"},   {Undefined::kUnnormalised, "UNNORMALISED"},
    {Undefined::kZeroGradient, "ZERO_GRADIENT"}, {Undefined::kZeroDenominator, "ZERO_DENOMINATOR"},
    {Undefined::kNonFinite, "NON_FINITE"},       {Undefined::kNoNorm, "NO_NORM"},
    {Undefined::kOneClass, "ONE_CLASS"}};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYSIS_NAMES_H_
