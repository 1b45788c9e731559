// Makes a data set of the token files that nanoGPT's prepare scripts write, and such files of a
// data set: train.bin and val.bin, in a folder with the tokenizer that made them.
#ifndef ABLATE_CLIENT_SUBMIT_TOKEN_BINS_H_
#define ABLATE_CLIENT_SUBMIT_TOKEN_BINS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ablate::client {

struct TokenBins {
  std::string file;         // of kind tokens (base/dataset_file.h)
  uint64_t training = 0;    // ids of train.bin, which come first
  uint64_t validation = 0;  // ids of val.bin
};

// Returns true if the folder has token files, or the meta.pkl that belongs to such files.
bool HasTokenBins(const std::string& folder);

// Reads the ids and the tokenizer's files. Ids are little-endian uint16, or
// uint32 if the vocabulary has more than 65,536. meta.pkl isn't read. INVALID_ARGUMENT names a file
// that is missing, empty or too large, ends within an id, or has an id that isn't in the
// vocabulary; other errors as tokenizer::ReadFileText.
absl::StatusOr<TokenBins> ReadTokenBins(const std::string& folder);

struct TokenBinFiles {
  std::string train, val;
  uint64_t validation = 0;  // ids of val
};

// Divides ids into the files as ReadTokenBins reads them, of which val gets the last share
// `validation`. `vocabulary` is the number of tokens. INVALID_ARGUMENT if a file would be empty or
// the share isn't between 0 and 1.
absl::StatusOr<TokenBinFiles> WriteTokenBins(absl::Span<const uint32_t> ids, uint32_t vocabulary,
                                             double validation);

// Returns true for the name of a file in such a folder.
bool IsTokenizersFile(const std::string& name);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_TOKEN_BINS_H_
