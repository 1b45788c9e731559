// Names the metadata that servers and clients exchange in addition to messages.
#ifndef ABLATE_PROTO_METADATA_H_
#define ABLATE_PROTO_METADATA_H_

namespace ablate {

// Trailing metadata of a response, "NAME ID": several experiments have this name, and the request
// was applied to the newest one, which has this ID.
inline constexpr char kNewestOf[] = "ablate-newest-of";

}  // namespace ablate

#endif  // ABLATE_PROTO_METADATA_H_
