#!/bin/sh
# Fails if the worker and LibTorch's library have a symbol of google::protobuf in common.
# usage: protobuf_symbols.sh WORKER LIBTORCH_CPU
set -eu
worker=$1
torch=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Names in protobuf's own namespace, functions as well as their class's tables; instantiations of std:: templates over
# its types have the same layout in every version and are left out.
own_names() {
  nm -D "$@" | awk '{print $NF}' | sed 's/@.*//' |
    grep -E '^_Z(N[KVrRO]*|T[VTISC]N?|GVN[KVrRO]*|ZN[KVrRO]*)6google8protobuf' | sort -u
}

# What the worker itself has, and what the shared protobuf has that it loads.
own_names "$worker" >"$folder/linked"
loaded=$(ldd "$worker" | awk '$1 ~ /^libprotobuf\.so/ {print $3}')
if ! [ -s "$folder/linked" ] || ! [ -f "$loaded" ]; then
  echo "$worker has no symbol of google::protobuf or loads no libprotobuf.so: this test looks in the wrong place" >&2
  exit 1
fi
own_names --defined-only "$loaded" >"$folder/loaded"
sort -u "$folder/linked" "$folder/loaded" >"$folder/worker"
own_names --defined-only "$torch" >"$folder/torch" || true
comm -12 "$folder/worker" "$folder/torch" >"$folder/common"
if [ -s "$folder/common" ]; then
  echo "$worker and $torch share these symbols:" >&2
  c++filt <"$folder/common" >&2
  exit 1
fi
echo "$(wc -l <"$folder/worker") names of google::protobuf in the worker, $(wc -l <"$folder/torch") in LibTorch, none in common"
