// Reads the JSON of a tokenizer.json, whose vocabulary and merges are too many for a document.
#ifndef ABLATE_BASE_TOKENIZER_JSON_READER_H_
#define ABLATE_BASE_TOKENIZER_JSON_READER_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "base/tokenizer/vocabulary.h"

namespace ablate::tokenizer {

struct JsonParts {
  nlohmann::json rest;    // without the next two; at most 100,000 values
  Vocabulary vocabulary;  // model.vocab
  std::string merges;     // model.merges: "LEFT RIGHT\n" each
  bool has_merges = false;
};

// INVALID_ARGUMENT names the file and the first problem: of JSON, or of an entry of model.vocab or
// model.merges. Merges are strings "LEFT RIGHT" or arrays of two strings.
absl::StatusOr<JsonParts> ReadJsonParts(const FileText& file);

// Returns a value for an error, shortened.
std::string Shown(const nlohmann::json& value);

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_JSON_READER_H_
