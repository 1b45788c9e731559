// Protocol buffers' text format → a message with the position of every field.
#ifndef ABLATE_CLIENT_TEXTPROTO_DOCUMENT_H_
#define ABLATE_CLIENT_TEXTPROTO_DOCUMENT_H_

#include <vector>

#include "client/source_map.h"
#include "client/source_text.h"
#include "google/protobuf/message.h"

namespace ablate::client {

// Fills `message` (cleared first) and `positions`; returns what is wrong. The first error of the
// text format ends it.
std::vector<Diagnostic> ParseTextproto(const SourceText& source, google::protobuf::Message* message,
                                       SourceMap* positions);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_TEXTPROTO_DOCUMENT_H_
