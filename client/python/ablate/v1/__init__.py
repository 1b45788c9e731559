"""Messages of the server's API, generated from proto/ablate/v1 by generate.py."""
