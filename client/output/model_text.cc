#include "client/output/model_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"

namespace ablate::client {
namespace {

// Returns the heads: "8, 2 of keys, of 128 features" if keys are fewer or features others.
std::string HeadsText(const v1::ModelSpec& model) {
  const v1::AttentionSpec& attention = model.attention();
  std::string text = absl::StrCat(model.heads());
  // Older servers don't say them.
  if (attention.has_kv_heads() && attention.kv_heads() != model.heads()) {
    absl::StrAppend(&text, ", ", attention.kv_heads(), " of keys");
  }
  if (attention.has_head_size() && attention.head_size() * model.heads() != model.width()) {
    absl::StrAppend(&text, ", of ", attention.head_size(), " features");
  }
  return text;
}

}  // namespace

std::string NormText(const v1::ModelSpec& model) {
  const v1::NormSpec& norm = model.norm();
  std::vector<std::string> sites;
  const bool in_blocks = norm.placement() != v1::NormPlacement::none;
  if (in_blocks && norm.attention()) sites.emplace_back("attention");
  if (in_blocks && (norm.feed_forward() || model.parallel_norms()))
    sites.emplace_back("feed-forward");
  if (norm.final()) sites.emplace_back("final");
  if (sites.empty()) return "none";
  return absl::StrCat(v1::NormKind::Value_Name(norm.kind()), " (", absl::StrJoin(sites, ", "), ")");
}

std::string ModelText(const v1::Model& model) {
  const v1::ModelSpec& spec = model.model();
  const v1::NormSpec& norm = spec.norm();
  return absl::StrCat(
      "layers ", spec.layers(), ", width ", spec.width(), ", heads ", HeadsText(spec), ", context ",
      text::Grouped(spec.context()), ", vocabulary ", text::Grouped(model.vocabulary()), "\n",
      "feed-forward ", text::Grouped(spec.feed_forward().hidden()), " ",
      v1::Activation::Value_Name(spec.feed_forward().activation()), ", positions ",
      v1::Positions::Value_Name(spec.positions()), ", head ",
      spec.tied_head() ? "tied to the embedding" : "untied", ", dropout ",
      text::ShortestDecimal(spec.dropout()), "\n", "norms ", NormText(spec), ", eps ",
      text::ShortestDecimal(norm.eps()), norm.bias() ? ", with bias" : ", without bias", "\n");
}

}  // namespace ablate::client
