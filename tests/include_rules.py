"""Checks which files of the tree may include torch, protobuf, gRPC, SQLite, and which of our folders."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("base", "proto", "storage", "server", "client")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

TORCH = re.compile(r"^(torch|ATen|c10)/")
# The folders of the engine that link torch, apart from the run loop, which knows no tensors.
TORCH_FOLDERS = ("server/engine/torch/", "server/engine/analyze/")
RUN_LOOP = re.compile(r"^server/engine/torch/train/(run_loop|resume)\.(h|cc)$")
# CUDA's own headers, for the plugin alone.
# The HTTP library, whose exceptions and threads stay in one file.
HTTP = re.compile(r"^httplib\.h$")
CUDA = re.compile(r"^cuda_runtime_api\.h$|^(ATen|c10)/cuda/")
PROTO = re.compile(r"^google/protobuf/|\.pb\.h$")
GRPC = re.compile(r"^(grpc|grpcpp)/|\.grpc\.pb\.h$")
OPENSSL = re.compile(r"^openssl/")
# Certificates made, read and served; and why a server is not reached by them.
SPEAK_TLS = ("base/openssl.", "base/certificate_facts.", "server/access/", "server/net/tls_", "proto/join/tls_trouble.")
HASHES = "base/sha256.cc"
SQLITE = re.compile(r"^sqlite3")
# Each folder of the server includes only folders that come after it.
ORDER = ("service", "imports", "submit", "results", "analysis", "rpc", "net", "lookup", "experiment", "schedule", "worker", "program", "config", "engine")
OURS = re.compile(r"^(base|proto|storage|server|client)/")
# What the engine may use beside the standard library and its own headers.
ENGINE_ALLOWED = re.compile(r"^(absl|torch|ATen|c10|hwy|pcre2|nlohmann|base|server/engine)\b")
STANDARD = re.compile(r"^[a-z0-9_]+$|^(sys|linux)/[a-z0-9_]+\.h$|^[a-z0-9_]+\.h$")


def problems_of(path: str, include: str):
    """Sentences about what is wrong with one include of one file; paths are relative to the root."""
    inside = path.startswith
    if TORCH.match(include) and (not inside(TORCH_FOLDERS) or RUN_LOOP.match(path)):
        yield "only server/engine/torch/, apart from the run loop, and server/engine/analyze/ see torch"
    if inside("server/engine/core/") and re.match(r"server/engine/(torch|native|analyze)/", include):
        yield "server/engine/core/ is below the other folders of the engine"
    if inside("server/engine/native/") and re.match(r"server/engine/(torch|analyze)/", include):
        yield "server/engine/native/ is below the folders that link torch"
    if CUDA.match(include) and not inside("server/engine/torch/cuda/"):
        yield "only server/engine/torch/cuda/ sees CUDA's headers"
    if SQLITE.match(include) and not inside("storage/sqlite/"):
        yield "only storage/sqlite/ sees sqlite3.h"
    if HTTP.match(include) and path != "client/web/http.cc":
        yield "only client/web/http.cc sees the HTTP library"
    if include.startswith("client/web/") and not inside("client/web/") and path != "client/commands/web.cc":
        yield "only `ablate web` includes the live page"
    if OPENSSL.match(include) and not inside(SPEAK_TLS) and path != HASHES:
        yield "only what makes, reads or judges certificates, and what hashes for names, sees OpenSSL"
    if inside("server/access/") and (PROTO.search(include) or GRPC.search(include)):
        yield "server/access/ knows no messages and no calls"
    if include.startswith("server/") and not inside("server/"):
        yield "nothing outside server/ includes server/"
    if include.startswith("client/") and not inside("client/"):
        yield "nothing outside client/ includes client/"
    if include.startswith("storage/") and not inside(("storage/", "server/")):
        yield "only the server includes storage/"
    if inside("base/") and OURS.match(include) and not include.startswith("base/"):
        yield "base/ is below everything else"
    if inside("storage/") and (PROTO.search(include) or GRPC.search(include)):
        yield "storage/ knows no messages"
    if inside("server/report/") and not inside("server/report/export/") and PROTO.search(include):
        yield "server/report/ knows no messages, but for the files that export/ writes"
    if inside("server/report/compare/") and re.match(r"server/report/(?!compare/)", include):
        yield "server/report/compare/ is below figures, tables and pages"
    if inside("server/engine/") and not (ENGINE_ALLOWED.match(include) or STANDARD.match(include)):
        yield "engine/ includes the standard library, Abseil, LibTorch, Highway, PCRE2, nlohmann-json and base/ only"
    if inside("server/program/") and OURS.match(include) and not include.startswith(("base/", "server/program/")):
        yield "server/program/ includes base/ only"
    if inside("server/program/") and (PROTO.search(include) or GRPC.search(include)):
        yield "server/program/ knows no messages and no calls"
    if inside("server/worker/") and re.match(r"server/engine/.+/", include):
        yield "server/worker/ sees only the headers directly in server/engine/"
    if inside(("server/report/", "server/results/", "server/analysis/")) and GRPC.search(include):
        yield "what is drawn and told is no matter of calls"
    if inside("server/report/") and re.match(r"storage/|server/(lookup|net|rpc|analysis|results|submit|service|schedule)/", include):
        yield "server/report/ is given what it draws: it knows no store and no calls"
    here = next((i for i, folder in enumerate(ORDER) if inside(f"server/{folder}/")), None)
    there = next((i for i, folder in enumerate(ORDER) if include.startswith(f"server/{folder}/")), None)
    if here is not None and there is not None and there < here:
        yield f"data flows one way: {ORDER[here]} does not include {ORDER[there]}"


def check_tree():
    wrong = []
    files = 0
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            files += 1
            name = path.relative_to(ROOT).as_posix()
            includes = INCLUDE.findall(path.read_text(encoding="utf-8"))
            wrong += [f"{name}: {i}: {why}" for i in includes for why in problems_of(name, i)]
            if any(TORCH.match(i) for i in includes) and any(PROTO.search(i) for i in includes):
                wrong.append(f"{name}: no file sees both torch's and protobuf's headers")
            if path.suffix == ".h" and not path.read_text(encoding="utf-8").startswith("// "):
                wrong.append(f"{name}: a header opens with what it is for")
        for bad in ("utils", "util", "common", "helpers"):
            wrong += [f"{p.relative_to(ROOT)}: no folder of that name" for p in (ROOT / folder).rglob(bad)]
    return files, wrong


def check_rules():
    """The rules catch what they are for: a test that cannot fail is none."""
    bad = [("storage/store.cc", "ATen/ATen.h"), ("client/main.cc", "server/experiment/resolution.h"),
           ("server/report/html/page.cc", "ablate/v1/report.pb.h"),
           ("server/report/compare/verdict.cc", "server/report/figure/kinds.h"),
           ("server/service/runs.cc", "sqlite3.h"), ("server/engine/torch/model/layers.cc", "ablate/v1/spec.pb.h"),
           ("server/engine/trainer.h", "ATen/ATen.h"),
           ("server/engine/torch/train/run_loop.cc", "ATen/ATen.h"), ("server/engine/core/layout.cc", "ATen/ATen.h"),
           ("server/engine/core/task.cc", "server/engine/native/forward.h"), ("server/engine/native/forward.cc", "server/engine/torch/model/norm.h"),
           ("server/submit/plan.cc", "server/service/services.h"), ("server/config/fields.cc", "server/experiment/resolve.h"),
           ("server/net/peer.cc", "server/rpc/call.h"), ("server/worker/lanes.cc", "server/engine/torch/train/state.h"),
           ("server/experiment/resolve.cc", "server/lookup/names.h"),
           ("server/schedule/dispatch.cc", "server/experiment/resolution.h"), ("server/worker/run_setup.cc", "server/experiment/resolution.h"),
           ("storage/blobs.cc", "google/protobuf/message.h"),
           ("base/csv.cc", "proto/reflect/text.h"), ("client/connection.cc", "storage/store.h"),
           ("server/lookup/names.cc", "server/service/services.h"), ("server/rpc/call.cc", "server/results/series.h"),
           ("server/results/report.cc", "server/service/services.h"), ("server/analysis/inputs.cc", "server/results/series.h"), ("server/results/series.cc", "grpcpp/server.h"),
           ("server/report/compare/verdict.cc", "server/results/compare.h"),
           ("server/report/compare/verdict.cc", "storage/store.h"),
           ("server/experiment/resolve.cc", "server/results/compare.h"),
           ("client/connection.cc", "openssl/ssl.h"), ("proto/join/channel.cc", "openssl/ssl.h"),
           ("client/web/page.cc", "httplib.h"), ("client/commands/up.cc", "client/web/http.h"),
           ("base/openssl.cc", "server/access/certificates.h"), ("storage/blobs.cc", "openssl/evp.h"),
           ("server/access/certificates.cc", "grpcpp/server.h"), ("server/program/run.cc", "server/config/fields.h"),
           ("server/program/run.cc", "server/worker/run_control.h"), ("server/program/run.cc", "ablate/v1/spec.pb.h")]
    return [f"rule does not catch {p} including {i}" for p, i in bad if not list(problems_of(p, i))]


if __name__ == "__main__":
    count, found = check_tree()
    found += check_rules()
    print("\n".join(found) or f"{count} files keep the include rules")
    sys.exit(1 if found or count == 0 else 0)
