"""Sends experiments as texts, which the server reads, and the data sets that they name by a path."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import json_format

from ablate import _datasets, _program_files, _values
from ablate._connection import LONG, Connection
from ablate.errors import FieldProblem, InvalidArgument, NotFound
from ablate.v1 import experiment_pb2, spec_pb2

_FILE_ENDINGS = (".yaml", ".yml", ".json")


class Source(NamedTuple):
    """The text of an experiment."""

    text: str
    name: str  #: before its lines in messages; empty if the caller didn't write it
    folder: Path  #: that its data sets are relative to
    file: Path | None = None  #: that has the text


def read(experiment: Mapping[str, Any] | str | Path | spec_pb2.ExperimentSpec) -> Source:
    """Returns the text of a dict, a path, a text in YAML or a stored spec."""
    if isinstance(experiment, spec_pb2.ExperimentSpec):
        return Source(json_format.MessageToJson(experiment, preserving_proto_field_name=True), "",
                      Path("."))
    if isinstance(experiment, Mapping):
        return Source(json.dumps(_checked(experiment)), "", Path("."))
    if not isinstance(experiment, str | Path):
        raise InvalidArgument(f"experiment: {type(experiment).__name__} can't be submitted; "
                              "expected a dict, a path or a text in YAML")
    if isinstance(experiment, str) and ("\n" in experiment or experiment.startswith("{")):
        return Source(experiment, "the text", Path("."))
    path = Path(experiment)
    if path.suffix not in _FILE_ENDINGS:
        raise InvalidArgument(f'experiment: "{path}" is neither the path of a .yaml, .yml or .json '
                              "file nor a text with several lines")
    try:
        return Source(path.read_text(encoding="utf-8-sig"), str(path), path.parent, path)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path}: {error}") from None


def create(connection: Connection, request: experiment_pb2.CreateExperimentRequest, source: Source,
           allowed: Sequence[Path]) -> experiment_pb2.CreateExperimentResponse:
    """Sends a request with the source's text, and again with the data sets that it turns out to
    need. Raises InvalidArgument with every problem."""
    request.text = source.text
    while True:
        refusal = None
        if not request.validate_only:
            try:
                return _call(connection, request)
            except InvalidArgument as error:
                refusal = error
        checked = _validate(connection, request, source)
        if not checked.files and refusal is not None:
            raise refusal
        if not checked.files:
            return checked
        _upload(connection, request, checked, source, allowed)


def _checked(experiment: Mapping[str, Any]) -> Any:
    """Returns plain values. Raises InvalidArgument for those that no text has."""
    fields = _values.plain(experiment)
    problems: list[FieldProblem] = []
    _values.to_value(fields, "", problems)
    if problems:
        raise InvalidArgument.of(problems)
    return fields


def _call(connection: Connection, request: experiment_pb2.CreateExperimentRequest
          ) -> experiment_pb2.CreateExperimentResponse:
    return connection.call("Experiments/CreateExperiment", request,
                           experiment_pb2.CreateExperimentResponse, timeout=LONG)


def _validate(connection: Connection, request: experiment_pb2.CreateExperimentRequest,
              source: Source) -> experiment_pb2.CreateExperimentResponse:
    """Makes a dry run: an error carries only a few problems, and no places."""
    checked = experiment_pb2.CreateExperimentRequest()
    checked.CopyFrom(request)
    checked.request_id, checked.validate_only = "", True
    response = _call(connection, checked)
    if response.problems:
        raise InvalidArgument.of([
            FieldProblem(one.field, (f"{source.name}:{one.line}:{one.column}: "
                                     if one.line and source.name else "") + one.message)
            for one in response.problems])
    return response


def _upload(connection: Connection, request: experiment_pb2.CreateExperimentRequest,
            checked: experiment_pb2.CreateExperimentResponse, source: Source,
            allowed: Sequence[Path]) -> None:
    """Uploads files and adds their names to the request. A text may be somebody else's and the
    files are published: it may name only files in its folder that aren't hidden, and `allowed`."""
    problems: list[FieldProblem] = []
    for file in checked.files:
        path = source.folder / file.path
        try:
            if file.is_files:
                packed = _program_files.pack(source.folder, file.path, source.file, allowed)
                name = Path(f"{checked.experiment.spec.name or 'program'}.files")
                request.files[file.path] = _datasets.upload_bytes(
                    connection, packed, name, request.private, for_experiment=True).name
                continue
            if file.in_text:
                _datasets.check_allowed(path, source.folder, allowed)
            else:
                _datasets.check_links(path, allowed)
            if file.path not in request.files:
                request.files[file.path] = _datasets.upload(connection, path, request.private,
                                                            for_experiment=True).name
        except (OSError, NotFound, InvalidArgument) as error:
            problems.append(FieldProblem(file.field, f"{file.field}: {error}"))
    if problems:
        raise InvalidArgument.of(problems)
