// YAML 1.2 → a tree of values with the position of every field.
#ifndef ABLATE_CLIENT_YAML_DOCUMENT_H_
#define ABLATE_CLIENT_YAML_DOCUMENT_H_

#include "client/source_text.h"
#include "client/tree_builder.h"

namespace ablate::client {

// One document. Anchors, aliases, tags and tabs in the indentation are refused: none is needed to
// say what an experiment is, and each has a way to make a small file mean something unexpected.
Document ParseYaml(const SourceText& source);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_YAML_DOCUMENT_H_
