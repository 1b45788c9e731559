// Computes probes independently of the analysis: words by their characters, vectors of each
// sequence read separately, and regressions by Newton's method.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PROBE_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PROBE_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/engine/core/data/random.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/tagged_text.h"

namespace ablate::engine {

struct PlainProbe {
  double accuracy = 0, shuffled = 0, types = 0, majority = 0;
};

// A word within the context: its first and last position, and its label's number.
struct PlainWord {
  int64_t first = 0, last = 0, label = 0;
  std::string form;
};

// Returns the accuracy on `scored` of a regression that is fitted to `training`, by Newton's method
// on C·Σloss + ½‖W‖². Each class is a label of the words to learn from.
inline double NewtonAccuracy(const at::Tensor& training, const std::vector<int64_t>& of_training,
                             const at::Tensor& scored, const std::vector<int64_t>& of_scored,
                             double c) {
  const std::set<int64_t> distinct(of_training.begin(), of_training.end());
  const std::vector<int64_t> classes(distinct.begin(), distinct.end());
  const auto k = static_cast<int64_t>(classes.size());
  const auto with_one = [](const at::Tensor& x) {
    return at::cat({x, at::ones({x.size(0), 1}, at::kDouble)}, 1);
  };
  const at::Tensor mean = training.mean(0), deviation = training.var(0, /*unbiased=*/false).sqrt();
  const auto standardised = [&](const at::Tensor& x) {
    return with_one((x - mean) / at::where(deviation.gt(1e-14), deviation, 1.0));
  };
  const at::Tensor a = standardised(training);
  const int64_t features = a.size(1);
  at::Tensor targets = at::zeros({a.size(0), k}, at::kDouble);
  for (int64_t i = 0; i < a.size(0); ++i) {
    const auto at = std::find(classes.begin(), classes.end(), of_training[static_cast<size_t>(i)]);
    targets[i][at - classes.begin()] = 1;
  }
  at::Tensor penalty = at::ones({features}, at::kDouble);
  penalty[features - 1] = 0;
  at::Tensor b = at::zeros({k, features}, at::kDouble);
  const auto value = [&](const at::Tensor& of) {
    const at::Tensor scores = at::mm(a, of.t());
    return c * (scores.logsumexp(1) - (scores * targets).sum(1)).sum().item<double>() +
           0.5 * (of.square() * penalty).sum().item<double>();
  };
  for (int step = 0; step < 100; ++step) {
    const at::Tensor p = at::mm(a, b.t()).softmax(1);
    const at::Tensor gradient = c * at::mm((p - targets).t(), a) + b * penalty;
    if (gradient.abs().max().item<double>() < 1e-10) break;
    at::Tensor hessian = at::zeros({k * features, k * features}, at::kDouble);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        const at::Tensor weight = p.select(1, i) * ((i == j ? 1.0 : 0.0) - p.select(1, j));
        at::Tensor block = c * at::mm((a * weight.unsqueeze(1)).t(), a);
        if (i == j) block = block + penalty.diag();
        hessian.narrow(0, i * features, features).narrow(1, j * features, features).copy_(block);
      }
    }
    const at::Tensor move =
        at::mv(at::linalg_pinv(hessian, 1e-13, /*hermitian=*/true), gradient.flatten()).view_as(b);
    double length = 1;
    while (length > 1e-6 && value(b - length * move) > value(b)) length /= 2;
    b = b - length * move;
  }
  const at::Tensor predicted = at::mm(standardised(scored), b.t()).argmax(1);
  double correct = 0;
  for (int64_t i = 0; i < predicted.size(0); ++i) {
    const int64_t label = classes[static_cast<size_t>(predicted[i].item<int64_t>())];
    correct += label == of_scored[static_cast<size_t>(i)] ? 1 : 0;
  }
  return correct / static_cast<double>(of_scored.size());
}

// Returns the probes of upos at each depth, for sentences without spaces.
inline std::vector<PlainProbe> PlainProbes(const AnalysisRequest& request,
                                           const std::vector<TextSentence>& sentences) {
  const auto& options = std::get<ProbeOptions>(request.options);
  const RunConfig& config = request.subjects[0].config;
  const int64_t begin = std::holds_alternative<DocumentsTask>(config.task) ? 1 : 0;

  std::vector<std::string> names;
  for (const TextSentence& sentence : sentences) {
    for (const TextWord& word : sentence) names.push_back(word.upos);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::vector<PlainWord>> words(sentences.size());
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < sentences.size(); ++i) {
    int64_t position = begin;
    for (const TextWord& word : sentences[i]) {
      const int64_t first = position;
      position += static_cast<int64_t>(word.form.size());
      if (position > config.model.context) continue;
      const auto label = std::find(names.begin(), names.end(), word.upos) - names.begin();
      words[i].push_back({first, position - 1, label, word.form});
    }
    lengths.push_back(std::min<int64_t>(position, config.model.context));
  }

  // The part of each sentence.
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const uint64_t key = StreamSeed(request.seed, "analysis/probe/split");
    if (!words[i].empty()) order.emplace_back(SplitMix64::At(key, i), i);
  }
  std::sort(order.begin(), order.end());
  const auto count = static_cast<size_t>(
      std::max(1.0, std::round(options.test * static_cast<double>(order.size()))));
  std::set<size_t> is_scored;
  for (size_t i = 0; i < count; ++i) is_scored.insert(order[i].second);

  // The first row of each sentence among the rows of all, which are read by length.
  std::vector<size_t> by_length(sentences.size());
  std::iota(by_length.begin(), by_length.end(), size_t{0});
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](size_t a, size_t b) { return lengths[a] < lengths[b]; });
  std::vector<int64_t> offset(sentences.size());
  int64_t next = 0;
  for (const size_t i : by_length) {
    offset[i] = next;
    next += lengths[i];
  }

  // Labels of three kinds, first of the words to learn from.
  std::vector<PlainWord> parts[2];
  for (size_t i = 0; i < sentences.size(); ++i) {
    for (PlainWord word : words[i]) {
      word.first += offset[i];
      word.last += offset[i];
      parts[is_scored.contains(i) ? 1 : 0].push_back(word);
    }
  }
  std::vector<int64_t> labels[2], types[2], counts(names.size());
  for (const int part : {0, 1}) {
    for (const PlainWord& word : parts[part]) labels[part].push_back(word.label);
  }
  for (const int64_t label : labels[0]) ++counts[static_cast<size_t>(label)];
  for (const int part : {0, 1}) {
    for (const PlainWord& word : parts[part]) {
      SplitMix64 draw(StreamSeed(request.seed, "analysis/probe/type/" + word.form));
      auto rest = static_cast<int64_t>(draw.Below(labels[0].size()));
      size_t label = 0;
      while (rest >= counts[label]) rest -= counts[label++];
      types[part].push_back(static_cast<int64_t>(label));
    }
  }
  std::vector<int64_t> shuffled = labels[0];
  SplitMix64 draws(StreamSeed(request.seed, "analysis/probe/shuffled"));
  for (size_t i = shuffled.size() - 1; i > 0; --i)
    std::swap(shuffled[i], shuffled[draws.Below(i + 1)]);

  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  std::vector<PlainProbe> probes;
  for (const std::string& point : HookPointsOr({}, config.model)) {
    const at::Tensor rows = RowsAlone(analysis, subject, point);
    at::Tensor vectors[2];
    for (const int part : {0, 1}) {
      std::vector<at::Tensor> of;
      for (const PlainWord& word : parts[part]) {
        of.push_back(options.subtoken == Subtoken::kFirst ? rows[word.first]
                     : options.subtoken == Subtoken::kLast
                         ? rows[word.last]
                         : rows.narrow(0, word.first, word.last - word.first + 1).mean(0));
      }
      vectors[part] = at::stack(of);
    }
    PlainProbe& probe = probes.emplace_back();
    const auto accuracy = [&](const std::vector<int64_t>& learned,
                              const std::vector<int64_t>& scored) {
      return NewtonAccuracy(vectors[0], learned, vectors[1], scored, options.c);
    };
    probe.accuracy = accuracy(labels[0], labels[1]);
    probe.shuffled = accuracy(shuffled, labels[1]);
    probe.types = accuracy(types[0], types[1]);
    const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
    probe.majority = static_cast<double>(std::count(labels[1].begin(), labels[1].end(), most)) /
                     static_cast<double>(labels[1].size());
  }
  return probes;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PROBE_H_
