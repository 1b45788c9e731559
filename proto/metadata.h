// Names the metadata that servers and clients exchange in addition to messages.
#ifndef ABLATE_PROTO_METADATA_H_
#define ABLATE_PROTO_METADATA_H_

namespace ablate {

// Metadata of every call of our programs: the release that they are of, such as 0.2.0. Clients in
// other languages need not send it.
inline constexpr char kRelease[] = "ablate-release";

// Trailing metadata of a response, "NAME ID": several experiments have this name, and the request
// was applied to the newest one, which has this ID.
inline constexpr char kNewestOf[] = "ablate-newest-of";

}  // namespace ablate

#endif  // ABLATE_PROTO_METADATA_H_
