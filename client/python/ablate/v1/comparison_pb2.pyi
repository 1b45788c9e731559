from ablate.v1 import spec_pb2 as _spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChangedField(_message.Message):
    __slots__ = ["baseline", "path", "value"]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    baseline: str
    path: str
    value: str
    def __init__(self, path: _Optional[str] = ..., value: _Optional[str] = ..., baseline: _Optional[str] = ...) -> None: ...

class ChosenValues(_message.Message):
    __slots__ = ["labels", "seeds"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.ScalarMap[str, str]
    seeds: int
    def __init__(self, labels: _Optional[_Mapping[str, str]] = ..., seeds: _Optional[int] = ...) -> None: ...

class CompareRequest(_message.Message):
    __slots__ = ["at", "baseline", "by", "experiment", "gate", "key", "others"]
    class BaselineEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AT_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    at: int
    baseline: _containers.ScalarMap[str, str]
    by: str
    experiment: str
    gate: GateRequest
    key: str
    others: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, experiment: _Optional[str] = ..., others: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., by: _Optional[str] = ..., baseline: _Optional[_Mapping[str, str]] = ..., at: _Optional[int] = ..., gate: _Optional[_Union[GateRequest, _Mapping]] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ["at", "better", "ended", "experiment", "family", "gate", "interactions", "key", "main_effects", "matched", "matched_note", "others", "planned", "row_axes", "rows", "scale", "text", "tuned_axes", "unit", "verdict", "warnings", "within_axes"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BETTER_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    INTERACTIONS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MAIN_EFFECTS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    MATCHED_NOTE_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROW_AXES_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TUNED_AXES_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    WITHIN_AXES_FIELD_NUMBER: _ClassVar[int]
    at: int
    better: _spec_pb2.Better.Value
    ended: int
    experiment: str
    family: int
    gate: Gate
    interactions: _containers.RepeatedCompositeFieldContainer[FactorialEffect]
    key: str
    main_effects: _containers.RepeatedCompositeFieldContainer[FactorialEffect]
    matched: _containers.RepeatedCompositeFieldContainer[MatchedComparison]
    matched_note: str
    others: _containers.RepeatedScalarFieldContainer[str]
    planned: int
    row_axes: _containers.RepeatedScalarFieldContainer[str]
    rows: _containers.RepeatedCompositeFieldContainer[ComparisonRow]
    scale: _spec_pb2.Scale.Value
    text: str
    tuned_axes: _containers.RepeatedScalarFieldContainer[str]
    unit: PairUnit.Value
    verdict: Verdict
    warnings: _containers.RepeatedCompositeFieldContainer[ComparisonWarning]
    within_axes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, experiment: _Optional[str] = ..., others: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., at: _Optional[int] = ..., better: _Optional[_Union[_spec_pb2.Better.Value, str]] = ..., row_axes: _Optional[_Iterable[str]] = ..., tuned_axes: _Optional[_Iterable[str]] = ..., rows: _Optional[_Iterable[_Union[ComparisonRow, _Mapping]]] = ..., family: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., warnings: _Optional[_Iterable[_Union[ComparisonWarning, _Mapping]]] = ..., matched: _Optional[_Iterable[_Union[MatchedComparison, _Mapping]]] = ..., matched_note: _Optional[str] = ..., text: _Optional[str] = ..., planned: _Optional[int] = ..., ended: _Optional[int] = ..., within_axes: _Optional[_Iterable[str]] = ..., main_effects: _Optional[_Iterable[_Union[FactorialEffect, _Mapping]]] = ..., interactions: _Optional[_Iterable[_Union[FactorialEffect, _Mapping]]] = ..., scale: _Optional[_Union[_spec_pb2.Scale.Value, str]] = ..., unit: _Optional[_Union[PairUnit.Value, str]] = ..., gate: _Optional[_Union[Gate, _Mapping]] = ...) -> None: ...

class ComparisonRow(_message.Message):
    __slots__ = ["baseline", "by_wins", "changed", "chosen", "correlation", "device_seconds", "device_seconds_all", "difference", "diverged", "effect", "effect_unbiased", "exact", "failed", "is_baseline", "label", "labels", "losses", "mean", "mean_high", "mean_low", "missing", "most_parameters", "n", "noise_ratio", "p", "p_any_look", "p_better_any_look", "p_equivalence", "p_holm", "p_sign_flip", "p_t", "p_t_holm", "pairs", "pairs_converged", "parameters", "runs", "scored_differently", "ties", "tokens_per_second", "undefined", "unfinished", "verdict", "windows", "wins"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UndefinedEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Undefined.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Undefined.Value, str]] = ...) -> None: ...
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    BY_WINS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_SECONDS_ALL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    EFFECT_UNBIASED_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    IS_BASELINE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MEAN_HIGH_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOW_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    MOST_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    NOISE_RATIO_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    PAIRS_CONVERGED_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    P_ANY_LOOK_FIELD_NUMBER: _ClassVar[int]
    P_BETTER_ANY_LOOK_FIELD_NUMBER: _ClassVar[int]
    P_EQUIVALENCE_FIELD_NUMBER: _ClassVar[int]
    P_FIELD_NUMBER: _ClassVar[int]
    P_HOLM_FIELD_NUMBER: _ClassVar[int]
    P_SIGN_FLIP_FIELD_NUMBER: _ClassVar[int]
    P_T_FIELD_NUMBER: _ClassVar[int]
    P_T_HOLM_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SCORED_DIFFERENTLY_FIELD_NUMBER: _ClassVar[int]
    TIES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    baseline: int
    by_wins: bool
    changed: _containers.RepeatedCompositeFieldContainer[ChangedField]
    chosen: _containers.RepeatedCompositeFieldContainer[ChosenValues]
    correlation: float
    device_seconds: float
    device_seconds_all: float
    difference: Difference
    diverged: int
    effect: float
    effect_unbiased: float
    exact: bool
    failed: int
    is_baseline: bool
    label: str
    labels: _containers.ScalarMap[str, str]
    losses: int
    mean: float
    mean_high: float
    mean_low: float
    missing: int
    most_parameters: int
    n: int
    noise_ratio: float
    p: float
    p_any_look: float
    p_better_any_look: float
    p_equivalence: float
    p_holm: float
    p_sign_flip: float
    p_t: float
    p_t_holm: float
    pairs: int
    pairs_converged: int
    parameters: int
    runs: _containers.RepeatedCompositeFieldContainer[SeedResult]
    scored_differently: _containers.RepeatedScalarFieldContainer[str]
    ties: int
    tokens_per_second: float
    undefined: _containers.ScalarMap[str, Undefined.Value]
    unfinished: int
    verdict: Verdict
    windows: _containers.RepeatedCompositeFieldContainer[WindowSummary]
    wins: int
    def __init__(self, labels: _Optional[_Mapping[str, str]] = ..., label: _Optional[str] = ..., is_baseline: bool = ..., baseline: _Optional[int] = ..., n: _Optional[int] = ..., diverged: _Optional[int] = ..., missing: _Optional[int] = ..., failed: _Optional[int] = ..., unfinished: _Optional[int] = ..., scored_differently: _Optional[_Iterable[str]] = ..., mean: _Optional[float] = ..., mean_low: _Optional[float] = ..., mean_high: _Optional[float] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ..., p_sign_flip: _Optional[float] = ..., p: _Optional[float] = ..., by_wins: bool = ..., p_holm: _Optional[float] = ..., p_equivalence: _Optional[float] = ..., p_t: _Optional[float] = ..., p_t_holm: _Optional[float] = ..., p_any_look: _Optional[float] = ..., p_better_any_look: _Optional[float] = ..., exact: bool = ..., effect: _Optional[float] = ..., effect_unbiased: _Optional[float] = ..., correlation: _Optional[float] = ..., noise_ratio: _Optional[float] = ..., wins: _Optional[int] = ..., losses: _Optional[int] = ..., ties: _Optional[int] = ..., pairs: _Optional[int] = ..., pairs_converged: _Optional[int] = ..., chosen: _Optional[_Iterable[_Union[ChosenValues, _Mapping]]] = ..., parameters: _Optional[int] = ..., most_parameters: _Optional[int] = ..., device_seconds: _Optional[float] = ..., device_seconds_all: _Optional[float] = ..., tokens_per_second: _Optional[float] = ..., changed: _Optional[_Iterable[_Union[ChangedField, _Mapping]]] = ..., runs: _Optional[_Iterable[_Union[SeedResult, _Mapping]]] = ..., windows: _Optional[_Iterable[_Union[WindowSummary, _Mapping]]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., undefined: _Optional[_Mapping[str, Undefined.Value]] = ...) -> None: ...

class ComparisonWarning(_message.Message):
    __slots__ = ["kind", "text"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CONTENDED_THROUGHPUT: ComparisonWarning.Kind
    FAILED_CELLS: ComparisonWarning.Kind
    GRID_EDGE: ComparisonWarning.Kind
    HIGH_START: ComparisonWarning.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    MANY_TIES: ComparisonWarning.Kind
    MISSING_CELLS: ComparisonWarning.Kind
    MIXED_PROVENANCE: ComparisonWarning.Kind
    NON_FINITE_VALUES: ComparisonWarning.Kind
    NOT_BY_SEQUENCE: ComparisonWarning.Kind
    NOT_POSITIVE: ComparisonWarning.Kind
    NO_BASELINE: ComparisonWarning.Kind
    OTHER_CANDIDATES: ComparisonWarning.Kind
    SCORED_DIFFERENTLY: ComparisonWarning.Kind
    SEEDS_ADDED: ComparisonWarning.Kind
    SEVERAL_CHANGES: ComparisonWarning.Kind
    SEVERAL_EXPERIMENTS: ComparisonWarning.Kind
    SKEWED_DIFFERENCES: ComparisonWarning.Kind
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOO_FEW_SEEDS: ComparisonWarning.Kind
    TUNED_ON_SAME_SEED: ComparisonWarning.Kind
    UNBALANCED_SEEDS: ComparisonWarning.Kind
    UNEQUAL_NOISE: ComparisonWarning.Kind
    UNEQUAL_PARAMETERS: ComparisonWarning.Kind
    kind: ComparisonWarning.Kind
    text: str
    unspecified: ComparisonWarning.Kind
    def __init__(self, kind: _Optional[_Union[ComparisonWarning.Kind, str]] = ..., text: _Optional[str] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ["bca_high", "bca_low", "by_rechoosing", "deviation", "high", "low", "mean", "ratio", "ratio_high", "ratio_low", "skewness", "t", "undefined"]
    class UndefinedEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Undefined.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Undefined.Value, str]] = ...) -> None: ...
    BCA_HIGH_FIELD_NUMBER: _ClassVar[int]
    BCA_LOW_FIELD_NUMBER: _ClassVar[int]
    BY_RECHOOSING_FIELD_NUMBER: _ClassVar[int]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    RATIO_HIGH_FIELD_NUMBER: _ClassVar[int]
    RATIO_LOW_FIELD_NUMBER: _ClassVar[int]
    SKEWNESS_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_FIELD_NUMBER: _ClassVar[int]
    bca_high: float
    bca_low: float
    by_rechoosing: bool
    deviation: float
    high: float
    low: float
    mean: float
    ratio: float
    ratio_high: float
    ratio_low: float
    skewness: float
    t: float
    undefined: _containers.ScalarMap[str, Undefined.Value]
    def __init__(self, mean: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., by_rechoosing: bool = ..., deviation: _Optional[float] = ..., t: _Optional[float] = ..., skewness: _Optional[float] = ..., bca_low: _Optional[float] = ..., bca_high: _Optional[float] = ..., ratio: _Optional[float] = ..., ratio_low: _Optional[float] = ..., ratio_high: _Optional[float] = ..., undefined: _Optional[_Mapping[str, Undefined.Value]] = ...) -> None: ...

class FactorialEffect(_message.Message):
    __slots__ = ["combinations", "difference", "levels", "p_holm", "p_sign_flip", "pairs", "undefined"]
    class Level(_message.Message):
        __slots__ = ["axis", "baseline", "label"]
        AXIS_FIELD_NUMBER: _ClassVar[int]
        BASELINE_FIELD_NUMBER: _ClassVar[int]
        LABEL_FIELD_NUMBER: _ClassVar[int]
        axis: str
        baseline: str
        label: str
        def __init__(self, axis: _Optional[str] = ..., label: _Optional[str] = ..., baseline: _Optional[str] = ...) -> None: ...
    class UndefinedEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Undefined.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Undefined.Value, str]] = ...) -> None: ...
    COMBINATIONS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    P_HOLM_FIELD_NUMBER: _ClassVar[int]
    P_SIGN_FLIP_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_FIELD_NUMBER: _ClassVar[int]
    combinations: int
    difference: Difference
    levels: _containers.RepeatedCompositeFieldContainer[FactorialEffect.Level]
    p_holm: float
    p_sign_flip: float
    pairs: int
    undefined: _containers.ScalarMap[str, Undefined.Value]
    def __init__(self, levels: _Optional[_Iterable[_Union[FactorialEffect.Level, _Mapping]]] = ..., combinations: _Optional[int] = ..., pairs: _Optional[int] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ..., p_sign_flip: _Optional[float] = ..., p_holm: _Optional[float] = ..., undefined: _Optional[_Mapping[str, Undefined.Value]] = ...) -> None: ...

class Gate(_message.Message):
    __slots__ = ["changes", "decision", "more_pairs", "next", "text"]
    class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BETTER: Gate.Decision
    CANNOT_SAY: Gate.Decision
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    MORE_PAIRS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    NOT_SHOWN: Gate.Decision
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WORSE: Gate.Decision
    changes: _containers.RepeatedScalarFieldContainer[str]
    decision: Gate.Decision
    more_pairs: int
    next: str
    text: str
    unspecified: Gate.Decision
    def __init__(self, decision: _Optional[_Union[Gate.Decision, str]] = ..., text: _Optional[str] = ..., more_pairs: _Optional[int] = ..., next: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ...) -> None: ...

class GateRequest(_message.Message):
    __slots__ = ["changes", "level", "looks", "session"]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LOOKS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedScalarFieldContainer[str]
    level: float
    looks: bool
    session: bool
    def __init__(self, looks: bool = ..., level: _Optional[float] = ..., session: bool = ..., changes: _Optional[_Iterable[str]] = ...) -> None: ...

class MatchedComparison(_message.Message):
    __slots__ = ["is_reference", "labels", "rows"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    IS_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    is_reference: bool
    labels: _containers.ScalarMap[str, str]
    rows: _containers.RepeatedCompositeFieldContainer[ComparisonRow]
    def __init__(self, labels: _Optional[_Mapping[str, str]] = ..., is_reference: bool = ..., rows: _Optional[_Iterable[_Union[ComparisonRow, _Mapping]]] = ...) -> None: ...

class PairUnit(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    GROUP: PairUnit.Value
    ITEM: PairUnit.Value
    SEED: PairUnit.Value
    SEQUENCE: PairUnit.Value
    unspecified: PairUnit.Value
    def __init__(self) -> None: ...

class SeedResult(_message.Message):
    __slots__ = ["cell", "diverged", "seed", "value"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    cell: str
    diverged: bool
    seed: int
    value: float
    def __init__(self, seed: _Optional[int] = ..., cell: _Optional[str] = ..., value: _Optional[float] = ..., diverged: bool = ...) -> None: ...

class Undefined(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ALL_DIVERGED: Undefined.Value
    BEYOND_LIMIT: Undefined.Value
    IS_BASELINE: Undefined.Value
    NON_FINITE: Undefined.Value
    NOT_RECORDED: Undefined.Value
    NO_BASELINE: Undefined.Value
    SCORED_DIFFERENTLY: Undefined.Value
    TESTED_BY_WINS: Undefined.Value
    TOO_FEW_PAIRS: Undefined.Value
    TOO_FEW_RUNS: Undefined.Value
    ZERO_VARIANCE: Undefined.Value
    unspecified: Undefined.Value
    def __init__(self) -> None: ...

class Verdict(_message.Message):
    __slots__ = ["equivalent", "grade", "outcome", "seeds_high", "seeds_low", "seeds_to_decide", "text"]
    EQUIVALENT_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SEEDS_HIGH_FIELD_NUMBER: _ClassVar[int]
    SEEDS_LOW_FIELD_NUMBER: _ClassVar[int]
    SEEDS_TO_DECIDE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    equivalent: bool
    grade: VerdictGrade.Value
    outcome: VerdictOutcome.Value
    seeds_high: int
    seeds_low: int
    seeds_to_decide: int
    text: str
    def __init__(self, outcome: _Optional[_Union[VerdictOutcome.Value, str]] = ..., grade: _Optional[_Union[VerdictGrade.Value, str]] = ..., equivalent: bool = ..., text: _Optional[str] = ..., seeds_to_decide: _Optional[int] = ..., seeds_low: _Optional[int] = ..., seeds_high: _Optional[int] = ...) -> None: ...

class VerdictGrade(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    EQUIVALENT: VerdictGrade.Value
    ESTABLISHED: VerdictGrade.Value
    INCONCLUSIVE: VerdictGrade.Value
    LEANS: VerdictGrade.Value
    NO_VERDICT: VerdictGrade.Value
    PROBABLE: VerdictGrade.Value
    unspecified: VerdictGrade.Value
    def __init__(self) -> None: ...

class VerdictOutcome(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BETTER: VerdictOutcome.Value
    EQUIVALENT: VerdictOutcome.Value
    EXPLORATORY: VerdictOutcome.Value
    HIGHER: VerdictOutcome.Value
    INCONCLUSIVE: VerdictOutcome.Value
    LOWER: VerdictOutcome.Value
    MIXED: VerdictOutcome.Value
    PRELIMINARY: VerdictOutcome.Value
    SCORED_DIFFERENTLY: VerdictOutcome.Value
    TOO_FEW_PAIRS: VerdictOutcome.Value
    WORSE: VerdictOutcome.Value
    unspecified: VerdictOutcome.Value
    def __init__(self) -> None: ...

class WindowSummary(_message.Message):
    __slots__ = ["fewest_points", "high", "left_out", "low", "mean", "n", "undefined", "window"]
    class UndefinedEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Undefined.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Undefined.Value, str]] = ...) -> None: ...
    FEWEST_POINTS_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    fewest_points: int
    high: float
    left_out: int
    low: float
    mean: float
    n: int
    undefined: _containers.ScalarMap[str, Undefined.Value]
    window: _spec_pb2.Window
    def __init__(self, window: _Optional[_Union[_spec_pb2.Window, _Mapping]] = ..., n: _Optional[int] = ..., left_out: _Optional[int] = ..., mean: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., fewest_points: _Optional[int] = ..., undefined: _Optional[_Mapping[str, Undefined.Value]] = ...) -> None: ...
