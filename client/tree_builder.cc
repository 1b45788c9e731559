// Builds a tree of google.protobuf.Value from a parser's events and notes where each field stands.
#include "client/tree_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::client {

void TreeBuilder::Problem(Position position, std::string message) {
  document_->problems.push_back({position, std::move(message), ""});
}

bool TreeBuilder::ExpectsKey() const {
  if (ignored_levels_ > 0 || levels_.empty()) return false;
  return levels_.back().is_map && levels_.back().next == nullptr;
}

void TreeBuilder::Key(const std::string& key, Position position) {
  if (ignored_levels_ > 0) return;
  Level& level = levels_.back();
  const auto [first, is_new] = level.keys.emplace(key, position);
  if (!is_new) {
    Problem(position, absl::StrCat("duplicate key \"", key, "\": it is already at line ",
                                   first->second.line, ", column ", first->second.column));
  }
  level.next = &(*level.value->mutable_struct_value()->mutable_fields())[key];
  path_.push_back(key);
  if (is_new) document_->positions.Add(path_, position);
}

google::protobuf::Value* TreeBuilder::NextSlot(Position position) {
  if (levels_.empty()) return &document_->root;
  Level& level = levels_.back();
  if (level.is_map) return level.next;
  google::protobuf::ListValue* list = level.value->mutable_list_value();
  path_.push_back(absl::StrCat(list->values_size()));
  document_->positions.Add(path_, position);
  return list->add_values();
}

void TreeBuilder::Filled() {
  if (levels_.empty()) return;
  levels_.back().next = nullptr;
  path_.pop_back();
}

void TreeBuilder::Scalar(google::protobuf::Value value, Position position) {
  if (ignored_levels_ > 0) return;
  *NextSlot(position) = std::move(value);
  Filled();
}

void TreeBuilder::Skip() {
  if (ignored_levels_ > 0 || levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.is_map) return;
  level.value->mutable_struct_value()->mutable_fields()->erase(path_.back());
  Filled();
}

void TreeBuilder::Begin(Position position, bool is_map) {
  if (ignored_levels_ > 0 || levels_.size() == kMaxDepth) {
    if (!std::exchange(too_deep_, true)) {
      Problem(position, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    ++ignored_levels_;
    return;
  }
  google::protobuf::Value* slot = NextSlot(position);
  slot->Clear();
  if (is_map) {
    slot->mutable_struct_value();
  } else {
    slot->mutable_list_value();
  }
  levels_.push_back({slot, is_map, nullptr, {}});
}

void TreeBuilder::End() {
  if (ignored_levels_ > 0) {
    --ignored_levels_;
    Skip();
    return;
  }
  levels_.pop_back();
  Filled();
}

}  // namespace ablate::client
