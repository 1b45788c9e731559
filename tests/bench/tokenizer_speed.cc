// Encodes a text for tokenizer_speed.py: for each line of standard input, encodes FILE with a new
// encoder, and prints the seconds of processor time and the number of ids.
//   tokenizer_speed TOKENIZER_FOLDER FILE
//   tokenizer_speed --mixed BYTES FILE   writes mixed text to FILE
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/tokenizer/encoder.h"
#include "base/tokenizer/tokenizer_files.h"
#include "tests/tokenizer/mixed_text.h"

namespace {

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int EncodeForEachLine(const std::string& folder, const std::string& file) {
  const auto tokenizer = ablate::tokenizer::ReadTokenizerFolder(folder);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return EXIT_FAILURE;
  }
  const std::string text = ablate::process::ReadWholeFile(file);
  for (std::string line; std::getline(std::cin, line);) {
    const double begin = ProcessorSeconds();
    std::vector<uint32_t> ids;
    ablate::tokenizer::Encoder(tokenizer->encoding).Encode(text, &ids);
    std::printf("%.6f %zu\n", ProcessorSeconds() - begin, ids.size());
    std::fflush(stdout);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "--mixed") {
    std::ofstream(arguments[2], std::ios::binary)
        << ablate::tokenizer::MixedText(1, std::stoull(arguments[1]));
    return EXIT_SUCCESS;
  }
  if (arguments.size() == 2) return EncodeForEachLine(arguments[0], arguments[1]);
  std::cerr << "usage: tokenizer_speed TOKENIZER_FOLDER FILE\n";
  return EXIT_FAILURE;
}
