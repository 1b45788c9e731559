// Names the metadata that servers and clients exchange beside messages.
#ifndef ABLATE_PROTO_METADATA_H_
#define ABLATE_PROTO_METADATA_H_

namespace ablate {

// Trailing metadata of an answer, "NAME ID": several experiments have this name, and the request
// was taken to mean the newest, which has this ID.
inline constexpr char kNewestOf[] = "ablate-newest-of";

}  // namespace ablate

#endif  // ABLATE_PROTO_METADATA_H_
