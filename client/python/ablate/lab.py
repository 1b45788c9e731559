"""A server and what it has."""
from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from ablate import _address, _datasets, _display, _imports, _submission, _values
from ablate._connection import Connection
from ablate._frames import Library, axis_columns, frame
from ablate.comparison import Comparison
from ablate.errors import DeadlineExceeded, FieldProblem, InvalidArgument, Unavailable
from ablate.experiment import Experiment
from ablate.run import Run
from ablate.v1 import experiment_pb2, metric_pb2, run_pb2, spec_pb2, worker_pb2


class Plan:
    """The answer to a dry run: the grid, what is reused, the cost. `message` has everything."""

    def __init__(self, message: experiment_pb2.CreateExperimentResponse) -> None:
        self.message = message

    @property
    def cells(self) -> list[str]:
        return [cell.name for cell in self.message.cells]

    @property
    def reused(self) -> int:
        """Returns the number of cells whose run exists already."""
        return self.message.reused

    @property
    def notes(self) -> list[str]:
        return list(self.message.notes)

    @property
    def seconds(self) -> float:
        """Returns the estimated time until the last run ends, if nothing else is queued."""
        return float(self.message.estimate.wall_time.ToMilliseconds() / 1000)

    def _line(self) -> str:
        guess = "" if self.message.estimate.measured else " (a guess)"
        name, megabytes = self.message.experiment.spec.name, self.message.estimate.bytes / 1e6
        return (f"{name}: {len(self.cells)} runs ({self.reused} reused), "
                f"about {self.seconds:.0f} s, {megabytes:.1f} MB{guess}")

    def __repr__(self) -> str:
        return "\n".join([self._line(), *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        rows = [(cell.name, "reused" if cell.reused else "new") for cell in self.message.cells]
        return _display.table(["cell", ""], rows, repr(self))


class Lab:
    """A connection to one server; `ablate.connect` returns it. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @overload
    def submit(self, experiment: Mapping[str, Any] | str | Path | Experiment, *,
               set: Mapping[str, Any] | None = ..., seeds: Iterable[int] | int | None = ...,
               files: Sequence[str | Path] = ..., extends: Experiment | str = ...,
               tags: str | Sequence[str] = ..., note: str = ..., fresh: bool = ...,
               private: bool = ..., dry_run: Literal[False] = ...) -> Experiment: ...

    @overload
    def submit(self, experiment: Mapping[str, Any] | str | Path | Experiment, *,
               set: Mapping[str, Any] | None = ..., seeds: Iterable[int] | int | None = ...,
               files: Sequence[str | Path] = ..., extends: Experiment | str = ...,
               tags: str | Sequence[str] = ..., note: str = ..., fresh: bool = ...,
               private: bool = ..., dry_run: Literal[True]) -> Plan: ...

    def submit(self, experiment: Mapping[str, Any] | str | Path | Experiment, *,
               set: Mapping[str, Any] | None = None, seeds: Iterable[int] | int | None = None,
               files: Sequence[str | Path] = (), extends: Experiment | str = "",
               tags: str | Sequence[str] = (), note: str = "", fresh: bool = False,
               private: bool = False, dry_run: bool = False) -> Experiment | Plan:
        """Creates an experiment, or with `dry_run` only checks it and returns its plan.

        `experiment` is a dict, the path of a file (.yaml, .yml or .json), or a text in YAML; all
        have the fields of experiment files. An Experiment is submitted again. `set` has values by
        path below base, which replace the experiment's; None clears. `seeds` replaces its seeds; 8
        stands for those from 0 to 7.

        Unless `fresh` trains every cell again, a submission that would only repeat an experiment of
        yours creates nothing and returns that one; `tags` and `note` that it lacks cause a warning.

        With `extends`, the new experiment keeps all cells of another and their runs, adds seeds,
        settings, steps or analyses, and archives it.

        Data sets that are named by a path are uploaded if the server lacks them, also by a dry run.
        Only you see them until an experiment uses them; after an hour without one they are deleted.
        Paths are relative to the file, or to the working folder. Files outside of that folder must
        be in `files`.

        Raises InvalidArgument, whose `fields` lists every problem.

        >>> lab.submit(spec, set={"training.steps": 200}, seeds=range(3), dry_run=True).cells[0]
        'pre-s0'
        """
        stored = experiment if isinstance(experiment, Experiment) else None
        extended = self.experiment(extends) if isinstance(extends, str) and extends else extends
        related = [one for one in (stored, extended) if isinstance(one, Experiment)]
        request = experiment_pb2.CreateExperimentRequest(
            request_id=uuid.uuid4().hex, fresh=fresh, find_identical=not fresh, note=note,
            private=private or any(one.message.private for one in related), validate_only=dry_run)
        request.tags.extend(_values.listed(tags))
        if isinstance(extended, Experiment):
            request.extends, request.name = extended.name, extended.message.spec.name
        changes = list(stored.message.changes) if stored else []
        if seeds is not None:
            changes.append(_set_seeds(seeds, request.seeds))
        request.changes.extend(one[:200] for one in changes[-100:])
        _set_overrides(set or {}, request)
        source = _submission.read(
            experiment.message.spec if isinstance(experiment, Experiment) else experiment)
        created = _submission.create(self._connection, request, source,
                                     [Path(one) for one in _values.listed(files)])
        if dry_run:
            return Plan(created)
        found = Experiment(self._connection, created.experiment)
        ignored = [one for one, differs in (
            ("tags", not {*request.tags} <= {*found.tags}),
            ("note", note not in ("", found.note))) if differs]
        if created.identical_to and ignored:
            warnings.warn(f"identical to {found.id}, which keeps its tags and note; to apply yours: "
                          f"experiment.edit({', '.join(f'{one}=…' for one in ignored)})",
                          stacklevel=2)
        return found

    def experiment(self, name: str) -> Experiment:
        """Finds an experiment by its ID, a unique prefix of it, or its name: then the newest.

        >>> lab.experiment("placement").message.spec.name
        'placement'
        """
        request = _values.make(experiment_pb2.GetExperimentRequest, name=name)
        return Experiment(self._connection, self._connection.call(
            "Experiments/GetExperiment", request, experiment_pb2.Experiment))

    def experiments(self, owner: str = "", *, tag: str | Sequence[str] = (),
                    archived: bool = False) -> list[Experiment]:
        """Returns experiments, newest first: all, or those of one user or with a tag, or with all
        of several; archived ones only while they are active, unless asked for."""
        tags = [one for one in _values.listed(tag) if one]
        pages = self._connection.pages(
            "Experiments/ListExperiments",
            _values.make(experiment_pb2.ListExperimentsRequest, owner=owner, tag=(tags or [""])[0],
                         archived=archived, page_size=1000),
            experiment_pb2.ListExperimentsResponse)
        # The server selects by one tag.
        return [Experiment(self._connection, one) for page in pages for one in page.experiments
                if {*tags} <= {*one.tags}]

    def run(self, name: str) -> Run:
        """Finds a run by EXPERIMENT/CELL.

        >>> lab.run("placement/pre-s0").cell
        'pre-s0'
        """
        experiment, slash, cell = name.removeprefix("experiments/").partition("/")
        if not slash:
            raise InvalidArgument(f'"{name}" is not a cell; expected EXPERIMENT/CELL')
        return self.experiment(experiment).run(cell)

    def query(self, filter: str = "", *, columns: Sequence[str] = (), order_by: str = "",
              limit: int | None = None, archived: bool = False, library: Library = "pandas"
              ) -> Any:
        """Returns one row per cell of all experiments that the filter selects, of which `limit`
        are the first in the order. Cells of archived experiments are left out unless asked for.

        The columns are experiment, cell, run, seed, state, step and steps; then the values of
        `columns`, which are names as in a filter, or by default the last value of each metric.
        docs/reference/filters.md has filters and orders.

        >>> lab.query("placement = pre AND eval/loss < 3", order_by="eval/loss best", limit=2,
        ...           columns=["placement", "training.steps"]).placement.tolist()
        ['pre', 'pre']
        """
        request = _values.make(run_pb2.ListRunsRequest, experiment="experiments/-", filter=filter,
                               order_by=order_by, columns=list(columns), archived=archived,
                               page_size=min(limit or 1000, 1000))
        rows: list[run_pb2.RunRow] = []
        for page in self._connection.pages("Runs/ListRuns", request, run_pb2.ListRunsResponse):
            rows += page.rows
            if limit is not None and len(rows) >= limit:
                break
        rows = rows[:limit]
        result: dict[str, Any] = {name: [getattr(row, name) for row in rows]
                                  for name in ("experiment", "cell", "run", "seed")}
        result["state"] = [run_pb2.RunState.Value.Name(row.state) for row in rows]
        result |= {name: [getattr(row, name) for row in rows] for name in ("step", "steps")}
        # As a name of a filter, these can only be axes.
        titles = axis_columns(columns, ("cell", "run", "step", "steps"))
        for place, name in enumerate(columns):
            if titles[name] not in result:
                result[titles[name]] = [_scalar(row.values[place], "kind") for row in rows]
        if not columns:
            last = [{one.key: one.last if one.HasField("last") else None for one in row.summaries}
                    for row in rows]
            for key in dict.fromkeys(key for keys in last for key in keys):
                result[key] = [keys.get(key) for keys in last]
        return frame(result, library)

    def sql(self, statement: str, *, library: Library = "pandas") -> Any:
        """Returns the rows of a SELECT over the server's views; columns of one name get a number.

        `SELECT * FROM columns` lists the views: experiments, cells, runs, settings, metrics,
        analyses and points(run, key). docs/reference/sql.md has their limits. Raises
        InvalidArgument with SQLite's message, and Exhausted if a limit is reached.

        >>> lab.sql("SELECT count(DISTINCT run) AS runs FROM cells WHERE cell = 'x'").runs.tolist()
        [0]
        """
        request = _values.make(metric_pb2.SqlRequest, statement=statement)
        names: list[str] = []
        rows: list[tuple[Any, ...]] = []
        for part in self._connection.stream("Metrics/Sql", request, metric_pb2.SqlRows):
            names += part.columns
            rows += [tuple(_scalar(value, "value") for value in row.values) for row in part.rows]
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        result: dict[str, Any] = {}
        for name, values in zip(names, columns, strict=True):
            unique, number = name, 1
            while unique in result:
                number += 1
                unique = f"{name}_{number}"
            result[unique] = list(values)
        return frame(result, library)

    def judge(self, results: Any, *, setting: str | Sequence[str] = (), pair: str = "",
              metric: str | Sequence[str] = "", at: _imports.At = "last", names: str = "",
              better: Literal["", "lower", "higher"] = "",
              baseline: Mapping[str, str] | str | None = None, margin: float | None = None,
              tune: str | Sequence[str] = (), looks: bool = False, level: float | None = None,
              session: Sequence[str] | None = None, **table: Any) -> Comparison:
        """Compares results of any tool; keeps nothing.

        `results` is a frame of `ablate.read`, paths of tools' files, or a table: dicts, or a
        DataFrame, such as `pandas.read_csv` returns. `setting` has the keys of the settings, by
        default those that vary; `pair` the key of the seed; `metric` the metric. A table needs all three, and may have columns `step`, `group`
        and, with items=True, items as pairs. `better` is needed if the metric's name doesn't say
        it. `looks` and `session` are as in `ablate judge`; a session is the list
        `message.gate.changes` of the last comparison, at first an empty one.

        >>> rows = [{"norm": n, "seed": s, "loss": s % 3 + (n == "post")}
        ...         for n in ("pre", "post") for s in range(8)]
        >>> lab.judge(rows, setting="norm", pair="seed", metric="loss").gate
        'worse'
        """
        found = _imports.results_of(results, setting, pair, metric, table)
        gate = {"looks": looks, "level": level, "session": session is not None,
                "changes": session or []}
        response = _imports.send(
            self._connection, found, setting=setting, pair=pair, metric=metric, names=names, at=at,
            better=better, baseline=baseline, margin=margin, tune=tune, validate_only=True,
            gate={key: value for key, value in gate.items() if value is not None})
        return Comparison(response.comparison)

    def import_results(self, results: Any, name: str, *, setting: str | Sequence[str] = (),
                       pair: str = "", metric: str | Sequence[str] = "", at: _imports.At = "last",
                       names: str = "", better: Literal["", "lower", "higher"] = "",
                       baseline: Mapping[str, str] | str | None = None,
                       margin: float | None = None, tune: str | Sequence[str] = (),
                       question: str = "", tags: str | Sequence[str] = (), note: str = "",
                       private: bool = False, **table: Any) -> Experiment:
        """Keeps results of any tool as an experiment of this name. The rest is as for `judge`.

        >>> rows = [{"norm": n, "seed": s, "loss": s % 3 + (n == "post")}
        ...         for n in ("pre", "post") for s in range(8)]
        >>> lab.import_results(rows, "kept", setting="norm", pair="seed", metric="loss").state
        'ENDED'
        """
        found = _imports.results_of(results, setting, pair, metric, table)
        response = _imports.send(
            self._connection, found, setting=setting, pair=pair, metric=metric, names=names, at=at,
            better=better, baseline=baseline, margin=margin, tune=tune, name=name, question=question, note=note,
            tags=_values.listed(tags), private=private)
        return self.experiment(response.experiment)

    def upload(self, path: str | Path, *, private: bool = False,
               files: str | Path | Sequence[str | Path] = ()) -> str:
        """Uploads a data set, or a tokenizer's folder, unless the server has it. Returns its name
        for experiments, datasets/ID. `files` has files or folders to which links of a folder may
        lead."""
        _datasets.check_links(Path(path), [Path(one) for one in _values.listed(files)])
        return _datasets.upload(self._connection, Path(path), private).name

    def close(self) -> None:
        """Ends the connection. The server continues."""
        self._connection.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lab({self._connection.address})"


def connect(address: str | Path | None = None, *, start: bool = True) -> Lab:
    """Connects to a server.

    Without `address` it is the one that the command line uses: $ABLATE_SERVER, otherwise the
    current login, otherwise the personal server in $ABLATE_HOME. `address` is "personal", the name
    of a login, a join file NAME.join, "unix:PATH" or "localhost:PORT".

    If the personal server doesn't run, it is started by the program `ablate`, unless `start` is
    false.
    """
    found = _address.find(None if address is None else str(address))
    if found is None:
        try:
            found = _address.personal()
            with contextlib.closing(Connection(found)) as connection:
                connection.call("Workers/ListWorkers", worker_pb2.ListWorkersRequest(),
                                worker_pb2.ListWorkersResponse, timeout=1, repeat=False)
        except (Unavailable, DeadlineExceeded):
            if not start:
                raise
            found = _address.start_personal()
    return Lab(Connection(found))


def judge(results: Any, **options: Any) -> Comparison:
    """Compares results of any tool by the server of `connect()`; see `Lab.judge`."""
    with connect() as lab:
        return lab.judge(results, **options)


def _scalar(message: Any, oneof: str) -> Any:
    """Returns the member of a oneof that is set; None for a missing one and for null."""
    kind = message.WhichOneof(oneof)
    return None if kind in (None, "null_value") else getattr(message, kind)


def _set_seeds(seeds: Iterable[int] | int, message: spec_pb2.Seeds) -> str:
    """Sets the seeds that replace the experiment's; returns the change's text."""
    given = _values.plain(seeds)
    if given == []:
        raise InvalidArgument("seeds: the list is empty; expected at least one seed")
    problems: list[FieldProblem] = []
    _values.fill(message, {"count" if isinstance(seeds, int) else "list": given}, "seeds", problems)
    if problems:
        raise InvalidArgument.of(problems)
    return f"seeds={given}"


def _set_overrides(values: Mapping[str, Any],
                   request: experiment_pb2.CreateExperimentRequest) -> None:
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"set: {values!r} has no keys; expected fields below base and their "
                              'values, such as {"training.steps": 200}')
    problems: list[FieldProblem] = []
    for path, value in _values.plain(values).items():
        request.overrides[path].CopyFrom(_values.to_value(value, f'overrides["{path}"]', problems))
    if problems:
        raise InvalidArgument.of(problems)
