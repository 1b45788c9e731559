#include "proto/reflect/field_hints.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/reflect/text.h"

namespace ablate::reflect {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kMaxHints = 3;
constexpr size_t kMaxHintDepth = 8;
constexpr size_t kMaxHintParts = 8;

// Names that other programs, such as transformers, PyTorch and nanoGPT, have for fields.
struct Synonym {
  absl::string_view name;
  absl::string_view field;  // the end of its path
};
constexpr Synonym kSynonyms[] = {
    {"act", "activation"},
    {"activation_function", "activation"},
    {"accumulation_steps", "accumulation"},
    {"batch_size", "batch"},
    {"beta1", "betas"},
    {"beta2", "betas"},
    {"block_size", "context"},
    {"bs", "batch"},
    {"context_length", "context"},
    {"d_ff", "hidden"},
    {"d_model", "width"},
    {"data", "dataset"},
    {"depth", "layers"},
    {"dim", "width"},
    {"dtype", "precision"},
    {"ema_decay", "ema"},
    {"embed_dim", "width"},
    {"epochs", "training.steps"},
    {"epsilon", "eps"},
    {"eval_every", "evaluation.every"},
    {"eval_interval", "evaluation.every"},
    {"ffn_dim", "hidden"},
    {"grad_clip", "clip"},
    {"gradient_accumulation", "accumulation"},
    {"gradient_accumulation_steps", "accumulation"},
    {"gradient_clip", "clip"},
    {"hidden_size", "width"},
    {"intermediate_size", "hidden"},
    {"iterations", "training.steps"},
    {"lr", "learning_rate"},
    {"lr_schedule", "schedule"},
    {"lr_scheduler", "schedule"},
    {"max_grad_norm", "clip"},
    {"max_iters", "training.steps"},
    {"max_steps", "training.steps"},
    {"mlp_dim", "hidden"},
    {"n_ctx", "context"},
    {"n_embd", "width"},
    {"n_head", "heads"},
    {"n_heads", "heads"},
    {"n_layer", "layers"},
    {"n_layers", "layers"},
    {"n_positions", "context"},
    {"norm_first", "norm.placement"},
    {"norm_type", "norm.kind"},
    {"num_heads", "heads"},
    {"num_layers", "layers"},
    {"num_steps", "training.steps"},
    {"opt", "optimizer"},
    {"pos_emb", "positions"},
    {"scheduler", "schedule"},
    {"seq_len", "context"},
    {"tie_weights", "tied_head"},
    {"tie_word_embeddings", "tied_head"},
    {"val_split", "validation"},
    {"warmup_iters", "warmup"},
    {"warmup_steps", "warmup"},
    {"wd", "weight_decay"},
    {"weight_tying", "tied_head"},
};

// Returns the end of a path that a name means elsewhere; empty if it is no synonym.
absl::string_view MeaningOf(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const auto* found = std::find_if(std::begin(kSynonyms), std::end(kSynonyms),
                                   [&lower](const Synonym& one) { return one.name == lower; });
  return found == std::end(kSynonyms) ? "" : found->field;
}

using Parts = std::vector<absl::string_view>;

// Finds fields whose paths end in certain parts.
class FieldSearch {
 public:
  FieldSearch(const UnknownName& unknown, const Parts& ending)
      : unknown_(unknown), ending_(ending) {
    if (ending_.size() <= kMaxHintParts) Visit(unknown.root);
  }

  // Returns the paths found: if some are below the unknown field's message, only these.
  std::vector<std::string> Take() {
    const std::string below = absl::StrCat(unknown_.type_path, ".");
    std::vector<std::string> near;
    std::copy_if(found_.begin(), found_.end(), std::back_inserter(near),
                 [&below](const std::string& path) { return absl::StartsWith(path, below); });
    std::vector<std::string> chosen = near.empty() ? std::move(found_) : std::move(near);
    if (chosen.size() > kMaxHints) chosen.resize(kMaxHints);
    return chosen;
  }

  // Returns the names of all fields.
  const std::vector<std::string>& names() const { return names_; }

 private:
  bool Ends() const {
    if (path_.size() < ending_.size()) return false;
    return std::equal(ending_.rbegin(), ending_.rend(), path_.rbegin());
  }

  void Visit(const Descriptor* type) {
    if (path_.size() >= kMaxHintDepth) return;
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      path_.push_back(field->name());
      names_.push_back(field->name());
      if (Ends()) {
        found_.push_back(absl::StrCat(unknown_.root_path, unknown_.root_path.empty() ? "" : ".",
                                      absl::StrJoin(path_, ".")));
      }
      const bool descend = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                           !field->is_repeated() &&
                           field->message_type()->file()->package() != "google.protobuf";
      if (descend) Visit(field->message_type());
      path_.pop_back();
    }
  }

  const UnknownName& unknown_;
  const Parts& ending_;
  Parts path_;
  std::vector<std::string> found_, names_;
};

std::vector<std::string> FindEnding(const UnknownName& unknown, const Parts& ending) {
  if (ending.empty()) return {};
  return FieldSearch(unknown, ending).Take();
}

// Returns the paths of the fields whose name is nearest to `word`.
std::vector<std::string> FindNearest(const UnknownName& unknown, absl::string_view word) {
  const std::string nearest = Nearest(word, FieldSearch(unknown, {}).names());
  return nearest.empty() ? std::vector<std::string>() : FindEnding(unknown, {nearest});
}

// Returns `parts` with the last one replaced by what it means elsewhere; empty if that is nothing.
Parts Translated(Parts parts) {
  const absl::string_view meaning = MeaningOf(parts.back());
  if (meaning.empty()) return {};
  parts.pop_back();
  for (const absl::string_view part : absl::StrSplit(meaning, '.')) parts.push_back(part);
  return parts;
}

// Returns the paths that end as `parts` do or, if there are none, as what they mean elsewhere.
std::vector<std::string> FindMeant(const UnknownName& unknown, const Parts& parts) {
  std::vector<std::string> paths = FindEnding(unknown, parts);
  return paths.empty() ? FindEnding(unknown, Translated(parts)) : paths;
}

std::string HintOf(const std::vector<std::string>& paths) {
  return paths.empty() ? "" : absl::StrCat(" (did you mean ", AnyOf(paths), "?)");
}

}  // namespace

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(type->field_count()));
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

std::vector<std::string> PathsEnding(const Descriptor* root, absl::string_view ending) {
  return FindMeant({root, "", root, "", ending}, absl::StrSplit(ending, '.'));
}

std::string EndingHint(const Descriptor* root, absl::string_view ending) {
  return HintOf(PathsEnding(root, ending));
}

std::string FieldHint(const UnknownName& unknown) {
  const Parts parts = absl::StrSplit(unknown.rest, '.');
  std::vector<std::string> paths;
  const std::string plural = absl::StrCat(unknown.rest, "s");
  if (unknown.type->FindFieldByName(plural) != nullptr) {
    paths = {plural};
  } else {
    paths = FindMeant(unknown, parts);
  }
  if (paths.empty()) {
    const std::string nearest = Nearest(parts.front(), FieldNames(unknown.type));
    if (!nearest.empty()) paths = {nearest};
  }
  if (paths.empty()) paths = FindMeant(unknown, {parts.back()});
  if (paths.empty()) paths = FindNearest(unknown, parts.back());
  return HintOf(paths);
}

}  // namespace ablate::reflect
