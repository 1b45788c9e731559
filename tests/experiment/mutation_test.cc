// Tests that for any bytes that parse as a spec, Resolve returns cells or sentences.
#include <random>

#include "base/utf8.h"
#include "google/protobuf/stubs/logging.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

TEST(MutationTest, EverySpecGetsAnAnswer) {
  const google::protobuf::LogSilencer quiet;  // text that isn't UTF-8 is expected here
  v1::ExperimentSpec spec = NamesNorm();
  spec.mutable_seeds()->set_count(1);
  (*spec.add_exclude()->mutable_where())["lr"] = Json("0.02");
  const std::string bytes = spec.SerializeAsString();
  std::mt19937 random(1);
  int parsed = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string mutated = bytes;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      mutated[random() % mutated.size()] = static_cast<char>(random() % 0x80);
    }
    v1::ExperimentSpec message;
    if (!message.ParseFromString(mutated)) continue;
    ++parsed;
    const Resolution resolution = Resolve(message, {}, TestSurroundings());
    EXPECT_TRUE(!resolution.problems.empty() || (resolution.sound && !resolution.cells.empty()));
    refused += resolution.problems.empty() ? 0 : 1;
    for (const Problem& problem : resolution.problems) {
      EXPECT_TRUE(text::IsUtf8(problem.message));
      EXPECT_FALSE(text::HasControlCharacter(problem.message));
    }
  }
  EXPECT_GT(parsed, 200);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace ablate::spec
