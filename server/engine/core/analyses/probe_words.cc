#include "server/engine/core/analyses/probe_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

constexpr size_t kMostLabelNames = 12;

// Returns the names of labels that words have: upos, xpos, and the most frequent features.
std::string LabelNames(const TaggedRows& rows) {
  std::vector<std::string> names;
  std::map<absl::string_view, size_t> features;
  for (const char* name : {"upos", "xpos"}) {
    const auto has_it = [&](const TaggedWord& word) { return !LabelOf(word, name).empty(); };
    const bool any = std::any_of(
        rows.sentences.begin(), rows.sentences.end(), [&](const TaggedSentence& sentence) {
          return std::any_of(sentence.words.begin(), sentence.words.end(), has_it);
        });
    if (any) names.emplace_back(name);
  }
  for (const TaggedSentence& sentence : rows.sentences) {
    for (const TaggedWord& word : sentence.words) {
      if (word.features == "_") continue;
      for (const absl::string_view pair : absl::StrSplit(word.features, '|')) {
        ++features[pair.substr(0, pair.find('='))];
      }
    }
  }
  std::vector<std::pair<absl::string_view, size_t>> frequent(features.begin(), features.end());
  std::stable_sort(frequent.begin(), frequent.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, count] : frequent) {
    if (names.size() == kMostLabelNames) break;
    if (name.size() <= kMostLabelBytes) names.emplace_back(name);
  }
  return names.empty() ? "a data set whose words have labels" : absl::StrJoin(names, ", ");
}

// Calls visit(sentence, word, tokens) for each word within the context that has the label.
template <typename Visit>
void VisitLabelled(const TaggedRows& rows, absl::string_view label, const Visit& visit) {
  for (const TaggedRow& row : rows.rows) {
    const std::vector<TaggedWord>& words = rows.sentences[row.sentence].words;
    for (size_t i = 0; i < row.words.size(); ++i) {
      if (!LabelOf(words[i], label).empty()) visit(row.sentence, words[i], row.words[i]);
    }
  }
}

OptionProblem NoLabel(absl::string_view label, const TaggedRows& rows) {
  return {"label", std::string(label), absl::StrCat("no word has the label \"", label, "\""),
          LabelNames(rows)};
}

}  // namespace

ProbeWords SelectWords(const ProbeOptions& options, const TaggedRows& rows, uint32_t seed) {
  ProbeWords selected;
  std::set<absl::string_view> values;  // in order
  std::vector<size_t> words_of(rows.sentences.size());
  VisitLabelled(rows, options.label, [&](size_t sentence, const TaggedWord& word, TokenSpan) {
    values.insert(LabelOf(word, options.label));
    ++words_of[sentence];
  });
  absl::flat_hash_map<absl::string_view, int64_t> label_of;
  for (const absl::string_view value : values) {
    label_of[value] = static_cast<int64_t>(selected.labels.size());
    selected.labels.emplace_back(value);
  }

  const uint64_t key = StreamSeed(seed, "analysis/probe/split");
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t sentence = 0; sentence < words_of.size(); ++sentence) {
    if (words_of[sentence] > 0) order.emplace_back(SplitMix64::At(key, sentence), sentence);
  }
  std::sort(order.begin(), order.end());
  const auto count = static_cast<double>(order.size());
  const double wanted = std::max(1.0, std::round(options.test * count));
  const auto scored = static_cast<size_t>(std::min(wanted, count - 1));
  std::vector<bool> is_scored(words_of.size());
  for (size_t i = 0; i < scored; ++i) is_scored[order[i].second] = true;
  selected.training_sentences = order.size() - scored;

  // The first word of each sentence: those to learn from come first.
  std::vector<size_t> first(words_of.size());
  size_t next = 0;
  for (const bool part : {false, true}) {
    for (size_t sentence = 0; sentence < words_of.size(); ++sentence) {
      if (is_scored[sentence] != part) continue;
      first[sentence] = next;
      next += words_of[sentence];
      if (part) selected.scored_sentences.push_back(words_of[sentence]);
    }
    if (!part) selected.training = next;
  }
  selected.words.resize(next);
  std::vector<size_t> place = first;
  VisitLabelled(rows, options.label,
                [&](size_t sentence, const TaggedWord& word, const TokenSpan& tokens) {
                  selected.words[place[sentence]++] = {
                      tokens, label_of[LabelOf(word, options.label)], word.form};
                });
  for (const TaggedRow& row : rows.rows) {
    const size_t begin = first[row.sentence], used = words_of[row.sentence];
    selected.of_rows.emplace_back(begin, begin + used);
    selected.unlabelled += row.words.size() - used;
    selected.cut += rows.sentences[row.sentence].words.size() - row.words.size();
  }
  return selected;
}

std::vector<int64_t> LabelsOf(const ProbeWords& words) {
  std::vector<int64_t> labels;
  for (const ProbeWord& word : words.words) labels.push_back(word.label);
  return labels;
}

std::vector<int64_t> ShuffledLabels(const ProbeWords& words, uint32_t seed) {
  std::vector<int64_t> labels = LabelsOf(words);
  SplitMix64 draws(StreamSeed(seed, "analysis/probe/shuffled"));
  for (size_t i = words.training; i-- > 1;) {
    std::swap(labels[i], labels[draws.Below(i + 1)]);
  }
  return labels;
}

std::vector<int64_t> TypeLabels(const ProbeWords& words, uint32_t seed) {
  std::vector<int64_t> counts(words.labels.size());
  for (size_t i = 0; i < words.training; ++i) ++counts[static_cast<size_t>(words.words[i].label)];
  std::vector<int64_t> labels;
  for (const ProbeWord& word : words.words) {
    // The label of a random word to learn from.
    const uint64_t key = StreamSeed(seed, absl::StrCat("analysis/probe/type/", word.form));
    auto rest = static_cast<int64_t>(SplitMix64(key).Below(words.training));
    int64_t label = 0;
    while (rest >= counts[static_cast<size_t>(label)]) rest -= counts[static_cast<size_t>(label++)];
    labels.push_back(label);
  }
  return labels;
}

std::vector<OptionProblem> CheckProbed(const AnalysisOptions& options, const ModelConfig&,
                                       const SequenceSummary& read) {
  const std::string& label = std::get<ProbeOptions>(options).label;
  if (read.tagged == nullptr) {
    return {{"inputs.dataset", "", "probe needs tagged sentences",
             "a data set in CoNLL-U, whose words have labels"}};
  }
  const TaggedRows& rows = *read.tagged;
  absl::flat_hash_set<absl::string_view> values;
  absl::flat_hash_set<size_t> sentences;
  size_t longest = 0, words = 0;
  VisitLabelled(rows, label, [&](size_t sentence, const TaggedWord& word, const TokenSpan&) {
    const absl::string_view value = LabelOf(word, label);
    values.insert(value);
    sentences.insert(sentence);
    ++words;
    longest = std::max(longest, value.size());
  });
  if (sentences.empty()) {
    for (const TaggedSentence& sentence : rows.sentences) {
      for (const TaggedWord& word : sentence.words) {
        if (LabelOf(word, label).empty()) continue;
        return {{"inputs.dataset", "", "no labelled word is within the model's context",
                 "shorter sentences, or a longer context"}};
      }
    }
    return {NoLabel(label, rows)};
  }
  if (values.size() > kMostProbeLabels || longest > kMostLabelBytes) {
    const bool many = values.size() > kMostProbeLabels;
    return {{"label", label,
             many ? absl::StrCat("words have ", values.size(), " values of ", label)
                  : absl::StrCat("a value of ", label, " has ", longest, " bytes"),
             absl::StrCat("at most ", many ? kMostProbeLabels : kMostLabelBytes)}};
  }
  if (sentences.size() < 2) {
    return {{"inputs.dataset", "", absl::StrCat("one sentence alone has words with ", label),
             "at least two: one to learn from and one to score"}};
  }
  if (words > read.tokens) {
    return {{"inputs.dataset", "",
             absl::StrCat("the number of words with ", label, " is ", words,
                          ", larger than that of the tokens that are read"),
             absl::StrCat("at most ", read.tokens)}};
  }
  return {};
}

AnalysisCost ProbeCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                       size_t) {
  constexpr double kUsualSteps = 500, kUsualLabels = 17;  // of upos in a few thousand sentences
  const auto& probe = std::get<ProbeOptions>(options);
  const auto width = static_cast<uint64_t>(config.model.width);
  const uint64_t depths = static_cast<uint64_t>(config.model.layers) + 1;
  const uint64_t fits = probe.controls ? kProbeFits : 1;
  // There are no more words than tokens (CheckProbed).
  const uint64_t bytes = (config.precision == Precision::kFloat64 ? 8 : 4) * tokens * width;
  const uint64_t together =
      std::clamp<uint64_t>(kMostFeatureBytes / std::max<uint64_t>(bytes, 1), 1, depths);
  AnalysisCost cost;
  const uint64_t passes = (depths + together - 1) / together;
  cost.forwards = static_cast<double>(passes);
  const uint64_t exact = 8 * tokens * width;  // one depth in float64
  const uint64_t probes =
      uint64_t{200} * kMostProbeLabels * (width + 1);  // 10 pairs of L-BFGS and its rest
  cost.state_bytes = together * bytes + exact + probes + 8 * depths * tokens;
  // A sentence has some ten tokens.
  cost.array_bytes = 8 * depths * (kMostProbeLabels * kMostProbeLabels + tokens / 8) +
                     kMostProbeLabels * (kMostLabelBytes + 8);
  cost.pass = AnalysisPass::kEverywhere;
  cost.others = kUsualSteps * 4 * kUsualLabels *
                static_cast<double>(depths * fits * tokens * (width + 1)) * (1 - probe.test);
  return cost;
}

}  // namespace ablate::engine
