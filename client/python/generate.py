"""Writes the messages of proto/ablate/v1 as Python modules into ablate/v1, or checks them.

Usage: generate.py [--check] [PROTOC]

PROTOC is a protoc 3.21, such as Debian 12's. Modules of a newer one refuse older runtimes of
protobuf; those of 3.21 run with 4.21 and all later ones. The modules import each other as
ablate.v1.NAME_pb2, which is their place in this package.
"""
import filecmp
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
STORED = HERE / "ablate" / "v1"


def generate(protoc: str, folder: pathlib.Path) -> None:
    version = subprocess.run([protoc, "--version"], check=True, capture_output=True, text=True)
    if not version.stdout.startswith("libprotoc 3.21."):
        sys.exit(f"{protoc} is {version.stdout.strip()}; expected libprotoc 3.21")
    sources = [str(path) for path in sorted((PROTO / "ablate" / "v1").glob("*.proto"))]
    subprocess.run([protoc, f"-I{PROTO}", f"--python_out={folder}", f"--pyi_out={folder}",
                    *sources], check=True)


def main(arguments: list[str]) -> None:
    check = arguments[:1] == ["--check"]
    protoc = arguments[-1] if len(arguments) > check else "protoc"
    with tempfile.TemporaryDirectory() as folder:
        generate(protoc, pathlib.Path(folder))
        made = {path.name: path for path in (pathlib.Path(folder) / "ablate" / "v1").iterdir()}
        stored = {path.name: path for path in STORED.glob("*_pb2.py*")}
        differing = [name for name in sorted(made.keys() | stored.keys())
                     if name not in made or name not in stored
                     or not filecmp.cmp(made[name], stored[name], shallow=False)]
        if check and differing:
            sys.exit(f"not as the .proto files are: {', '.join(differing)}; "
                     "run `python3 client/python/generate.py`")
        for name in [] if check else differing:
            (STORED / name).unlink(missing_ok=True)
            if name in made:
                (STORED / name).write_bytes(made[name].read_bytes())


main(sys.argv[1:])
