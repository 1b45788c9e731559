#include "base/tokenizer/word_encoder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace ablate::tokenizer {
namespace {

constexpr int kSlotBits = 15;
constexpr size_t kMaxCachedBytes = 16;
constexpr uint32_t kEnd = 0xFFFFFFFF;  // no neighbour

template <typename Number>
Number Load(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

// Returns two numbers that differ for different words of the same length, 1 to 16 bytes.
std::pair<uint64_t, uint64_t> KeyOf(absl::string_view word) {
  const char* const begin = word.data();
  const size_t size = word.size();
  if (size >= 8) return {Load<uint64_t>(begin), Load<uint64_t>(begin + size - 8)};
  if (size >= 4) return {Load<uint32_t>(begin), Load<uint32_t>(begin + size - 4)};
  const auto byte = [begin](size_t i) { return uint64_t{static_cast<unsigned char>(begin[i])}; };
  return {byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16, 0};
}

size_t SlotOf(const std::pair<uint64_t, uint64_t>& key, size_t size) {
  uint64_t hash = (key.first + size) * 0x9E3779B97F4A7C15;  // odd, with evenly spread bits
  hash = (hash ^ (hash >> 32) ^ key.second) * 0xD6E8FEB86659FD93;
  return hash >> (64 - kSlotBits);
}

}  // namespace

WordEncoder::WordEncoder(std::shared_ptr<const BytePairEncoding> encoding)
    : encoding_(std::move(encoding)), slots_(size_t{1} << kSlotBits) {}

void WordEncoder::Encode(absl::string_view word, std::vector<uint32_t>* ids) {
  if (word.size() > kMaxCachedBytes) return MergeWord(word, ids);
  const auto key = KeyOf(word);
  Slot& slot = slots_[SlotOf(key, word.size())];
  if (slot.bytes == word.size() && slot.head == key.first && slot.tail == key.second) {
    ids->insert(ids->end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return;
  }
  const size_t before = ids->size();
  MergeWord(word, ids);
  const size_t count = ids->size() - before;
  if (count > slot.ids.size()) return;
  slot.head = key.first;
  slot.tail = key.second;
  slot.bytes = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::copy_n(ids->data() + before, count, slot.ids.begin());
}

void WordEncoder::Rank(uint32_t place) {
  Node& node = nodes_[place];
  node.rank = node.next == kEnd ? BytePairEncoding::kNoRank
                                : encoding_->RankOf(node.id, nodes_[node.next].id);
}

void WordEncoder::MergeWord(absl::string_view word, std::vector<uint32_t>* ids) {
  if (encoding_->has_words()) {
    const uint32_t id = encoding_->TokenOfWord(word);
    if (id != BytePairEncoding::kNoRank) return ids->push_back(id);
  }
  const uint32_t size = static_cast<uint32_t>(word.size());
  nodes_.resize(size);
  heap_.clear();
  const auto entry = [this](uint32_t place) { return uint64_t{nodes_[place].rank} << 32 | place; };
  for (uint32_t i = 0; i < size; ++i) {
    nodes_[i] = {encoding_->TokenOf(static_cast<unsigned char>(word[i])), i - 1,
                 i + 1 < size ? i + 1 : kEnd, BytePairEncoding::kNoRank};
  }
  for (uint32_t i = 0; i < size; ++i) {
    Rank(i);
    if (nodes_[i].rank != BytePairEncoding::kNoRank) heap_.push_back(entry(i));
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint32_t rank = static_cast<uint32_t>(heap_.back() >> 32);
    const uint32_t place = static_cast<uint32_t>(heap_.back());
    heap_.pop_back();
    Node& node = nodes_[place];
    if (node.rank != rank) continue;  // one of its tokens has been merged since
    nodes_[node.next].rank = BytePairEncoding::kNoRank;
    node.id = encoding_->ResultOf(rank);
    node.next = nodes_[node.next].next;
    if (node.next != kEnd) nodes_[node.next].previous = place;
    for (const uint32_t changed : {node.previous, place}) {
      if (changed == kEnd) continue;
      Rank(changed);
      if (nodes_[changed].rank == BytePairEncoding::kNoRank) continue;
      heap_.push_back(entry(changed));
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }
  for (uint32_t i = 0; i != kEnd; i = nodes_[i].next) ids->push_back(nodes_[i].id);
}

}  // namespace ablate::tokenizer
