// Compares encoders with a plain one, and texts in pieces with whole ones.
#include "base/tokenizer/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/tokenizer/mixed_text.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<uint32_t>;
using Encoding = std::shared_ptr<const BytePairEncoding>;

Ids Encode(Encoder encoder, absl::string_view text) {
  Ids ids;
  encoder.Encode(text, &ids);
  return ids;
}

// Encodes a text that is given in pieces of up to `longest` bytes.
Ids EncodePieces(Encoder encoder, absl::string_view text, unsigned seed, size_t longest) {
  std::mt19937 random(seed);
  Ids ids;
  while (!text.empty()) {
    const size_t size = std::min<size_t>(random() % (longest + 1), text.size());
    encoder.Add(text.substr(0, size), &ids);
    text.remove_prefix(size);
  }
  encoder.Finish(&ids);
  return ids;
}

// Merges a word as the definition says, in quadratic time.
Ids PlainMerge(const BytePairEncoding& encoding, absl::string_view word) {
  Ids ids;
  for (const char byte : word) ids.push_back(encoding.TokenOf(static_cast<unsigned char>(byte)));
  while (true) {
    uint32_t best = BytePairEncoding::kNoRank;
    size_t place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const uint32_t rank = encoding.RankOf(ids[i], ids[i + 1]);
      if (rank >= best) continue;
      best = rank;
      place = i;
    }
    if (best == BytePairEncoding::kNoRank) return ids;
    ids[place] = encoding.ResultOf(best);
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
}

Encoder Special(const Encoding& encoding, const std::vector<std::string>& names) {
  return *Encoder::WithSpecial(encoding, names);
}

TEST(WordEncoderTest, MergesTheLowestRankFirstAndTheLeftmostOfSeveral) {
  const Encoding encoding = SmallTokenizer{{"a a", "b c", "aa b", "a b"}, {}}.Make();
  const auto merged = [&](absl::string_view word) {
    Ids ids;
    WordEncoder(encoding).Encode(word, &ids);
    return ids;
  };
  EXPECT_THAT(merged("aaa"), ElementsAre(256, 'a'));
  EXPECT_THAT(merged("aab"), ElementsAre(258));
  EXPECT_THAT(merged("aabc"), ElementsAre(256, 257));
  EXPECT_THAT(merged("ab"), ElementsAre(259));
  EXPECT_THAT(merged("x"), ElementsAre('x'));
}

TEST(WordEncoderTest, EqualsThePlainMergeForAnyMerges) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Encoding encoding = SmallTokenizer{RandomMerges(seed, 60), {}}.Make();
    WordEncoder words(encoding);
    std::mt19937 random(seed);
    for (int i = 0; i < 400; ++i) {
      // Half of them are short enough for the cache, which has most of the shortest.
      std::string word;
      for (size_t length = 1 + random() % 32; word.size() < length;) word += "abc "[random() % 4];
      Ids ids;
      words.Encode(word, &ids);
      ASSERT_EQ(ids, PlainMerge(*encoding, word)) << seed << " " << word;
    }
  }
}

TEST(WordEncoderTest, KeepsWordsOfOneSlotApart) {
  const Encoding encoding = SmallTokenizer{RandomMerges(1, 60), {}}.Make();
  WordEncoder words(encoding);
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string word = i % 2 == 0 ? "" : "same8byt";
    for (size_t length = word.size() + 1 + random() % 8; word.size() < length;) {
      word += static_cast<char>(random());
    }
    Ids ids;
    words.Encode(word, &ids);
    ASSERT_EQ(*encoding->Decode(ids), word);
  }
}

TEST(EncoderTest, EncodesTheBeginningOfATextAsTheWhole) {
  const Encoding encoding = SmallTokenizer{RandomMerges(3, 60), {}}.Make();
  std::string text;
  std::mt19937 random(3);
  while (text.size() < 100'000) text += "abc abc\n"[random() % 8];
  const Ids whole = Encode(Encoder(encoding), text);
  Encoder encoder(encoding);
  for (const size_t most : {size_t{0}, size_t{1}, size_t{100}, size_t{20'000}, whole.size() - 1,
                            whole.size(), whole.size() + 1}) {
    Ids ids = {7};
    encoder.EncodeBeginning(text, most, &ids);
    Ids expected = {7};
    expected.insert(expected.end(), whole.begin(),
                    whole.begin() + static_cast<ptrdiff_t>(std::min(most, whole.size())));
    EXPECT_EQ(ids, expected) << most;
  }
}

TEST(EncoderTest, EncodesAnyBytesWithoutLoss) {
  const Encoding encoding = SmallTokenizer{RandomMerges(1, 60), {"<end>"}}.Make();
  for (const unsigned seed : {1, 2, 3}) {
    for (const std::string& text : {MixedText(seed, 50'000), DamagedText(seed, 50'000)}) {
      EXPECT_EQ(*encoding->Decode(Encode(Encoder(encoding), text)), text);
    }
  }
}

TEST(EncoderTest, EncodesPiecesAsTheWholeText) {
  const Encoding encoding = SmallTokenizer{RandomMerges(1, 60), {"<end>"}}.Make();
  for (const unsigned seed : {1, 2, 3}) {
    for (const std::string& text : {MixedText(seed, 50'000), DamagedText(seed, 50'000)}) {
      const Ids whole = Encode(Encoder(encoding), text);
      for (const size_t longest : {1, 3, 100, 10'000}) {
        EXPECT_TRUE(EncodePieces(Encoder(encoding), text, seed, longest) == whole) << longest;
      }
    }
  }
}

TEST(EncoderTest, EncodesShortTextsInPiecesAsTheWholeText) {
  const Encoding encoding = SmallTokenizer{RandomMerges(2, 60), {"<e>", "<e>ab", "<e><"}}.Make();
  const std::vector<std::string> parts = {"a", "b",    " ",  "'",    "l",    "r",   "e",      "\n",
                                          "1", "!",    "é",  "\xE4", "\xB8", "中",  "\u3000", "<e>",
                                          "<", "<e>a", "'s", "e>",   "\xF0", "'ve", "  ",     "😀"};
  Encoder plain(encoding), special = Special(encoding, {"<e>", "<e>ab", "<e><"});
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t length = random() % 8; length > 0; --length) text += parts[random() % parts.size()];
    for (Encoder* encoder : {&plain, &special}) {
      Ids whole, pieces;
      encoder->Encode(text, &whole);
      EXPECT_EQ(*encoding->Decode(whole), text);
      for (size_t at = 0; at < text.size();) {
        const size_t size = 1 + random() % 3;
        encoder->Add(absl::string_view(text).substr(at, size), &pieces);
        at += size;
      }
      encoder->Finish(&pieces);
      ASSERT_EQ(pieces, whole) << testing::PrintToString(text);
    }
  }
}

TEST(EncoderTest, HoldsBackOnlyTheLastWord) {
  const Encoding encoding = SmallTokenizer{{}, {}}.Make();
  Encoder encoder(encoding);
  Ids ids;
  const auto count = [&](absl::string_view piece) {
    encoder.Add(piece, &ids);
    return ids.size();
  };
  EXPECT_EQ(count("one two"), 3u);   // " two" may go on
  EXPECT_EQ(count("s!"), 8u);        // as may "!"
  EXPECT_EQ(count("\xE4\xB8"), 8u);  // the first bytes of a character
  EXPECT_EQ(count("\xAD"), 9u);      // "中" is a letter, and ends "!"
  EXPECT_EQ(count("'"), 12u);        // may begin 's
  EXPECT_EQ(count("s"), 14u);
  encoder.Finish(&ids);
  EXPECT_EQ(ids.size(), 14u);
  encoder.Finish(&ids);
  EXPECT_EQ(ids.size(), 14u);
}

TEST(EncoderTest, CutsVeryLongWordsAtTheSamePlaceInPieces) {
  const Encoding encoding = SmallTokenizer{{"a a", "aa a"}, {}}.Make();
  const std::string text = " b" + std::string(WordSplitter::kMaxWordBytes + 100'000, 'a') + "!";
  const Ids whole = Encode(Encoder(encoding), text);
  EXPECT_EQ(*encoding->Decode(whole), text);
  EXPECT_TRUE(EncodePieces(Encoder(encoding), text, 1, 100) == whole);
}

TEST(EncoderTest, RecognisesSpecialTokensOnlyIfAsked) {
  const Encoding encoding = SmallTokenizer{{}, {"<e>", "<e>!", "<f g>"}}.Make();
  const Ids plain = Encode(Encoder(encoding), "<e>");
  EXPECT_THAT(plain, ElementsAre('<', 'e', '>'));
  const Encoder one = Special(encoding, {"<e>"});
  EXPECT_THAT(Encode(one, "a<e>!<f g>"), ElementsAre('a', 256, '!', '<', 'f', ' ', 'g', '>'));
  const Encoder all = Special(encoding, {"<f g>", "<e>", "<e>!"});
  EXPECT_THAT(Encode(all, "<<e>!<f g><e>"), ElementsAre('<', 257, 258, 256));
}

TEST(EncoderTest, RefusesNamesThatArentSpecialTokens) {
  const Encoding encoding = SmallTokenizer{{"a b"}, {"<e>", "<é>"}}.Make();
  const auto error = [&](const std::vector<std::string>& names) {
    return std::string(Encoder::WithSpecial(encoding, names).status().message());
  };
  EXPECT_THAT(error({"<e>", "<x>"}),
              HasSubstr("\"<x>\" isn't a special token; expected one of \"<e>\""));
  for (const char* ordinary : {"ab", "a", "", "<é>"}) {
    EXPECT_THAT(error({ordinary}), HasSubstr("isn't a special token")) << ordinary;
  }
  EXPECT_EQ(error(std::vector<std::string>(257, "<e>")),
            "257 special tokens; expected at most 256");
  const auto none = Encoder::WithSpecial(SmallTokenizer{}.Make(), {"x"});
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("this vocabulary has no special tokens"));
}

TEST(EncoderTest, SharesOneEncodingBetweenThreads) {
  const Encoding encoding = SmallTokenizer{RandomMerges(1, 60), {}}.Make();
  const std::string text = MixedText(1, 50'000);
  const Ids expected = Encode(Encoder(encoding), text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) {
    threads.emplace_back([&] { ids = Encode(Encoder(encoding), text); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_TRUE(ids == expected);
}

}  // namespace
}  // namespace ablate::tokenizer
