# The worker's side of the lease protocol, free of torch, so that the simulation can drive it.
ablate_library(ablate_worker_protocol
  SOURCES lease_book.cc
  LIBS ablate_proto absl::strings)
