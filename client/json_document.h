// JSON → a tree of values with the position of every field.
#ifndef ABLATE_CLIENT_JSON_DOCUMENT_H_
#define ABLATE_CLIENT_JSON_DOCUMENT_H_

#include "client/source_text.h"
#include "client/tree_builder.h"

namespace ablate::client {

// Strict JSON (RFC 8259); the first syntax error ends it.
Document ParseJson(const SourceText& source);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_JSON_DOCUMENT_H_
