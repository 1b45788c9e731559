from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
HEADLINE_FIELD_NUMBER: _ClassVar[int]
NUMBER_FIELD_NUMBER: _ClassVar[int]
OPTION_FIELD_NUMBER: _ClassVar[int]
headline: _descriptor.FieldDescriptor
number: _descriptor.FieldDescriptor
option: _descriptor.FieldDescriptor

class ActivationsOptions(_message.Message):
    __slots__ = ["histograms", "sites"]
    HISTOGRAMS_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    histograms: bool
    sites: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sites: _Optional[_Iterable[str]] = ..., histograms: bool = ...) -> None: ...

class AnalysisInputs(_message.Message):
    __slots__ = ["dataset", "dataset_sha256", "documents", "prompt", "tokens"]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    DATASET_SHA256_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    dataset_sha256: str
    documents: int
    prompt: str
    tokens: int
    def __init__(self, tokens: _Optional[int] = ..., prompt: _Optional[str] = ..., documents: _Optional[int] = ..., dataset: _Optional[str] = ..., dataset_sha256: _Optional[str] = ...) -> None: ...

class AnalysisKind(_message.Message):
    __slots__ = ["activations", "attention", "capture", "cka", "gradient_alignment", "gradient_flow", "hessian", "induction", "logit_lens", "loss_landscape", "norm_jacobian", "norm_response", "norm_statistics", "patch", "predictions", "probe", "remove", "robustness", "spectrum", "trajectory", "weights"]
    ACTIVATIONS_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    CKA_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FLOW_FIELD_NUMBER: _ClassVar[int]
    HESSIAN_FIELD_NUMBER: _ClassVar[int]
    INDUCTION_FIELD_NUMBER: _ClassVar[int]
    LOGIT_LENS_FIELD_NUMBER: _ClassVar[int]
    LOSS_LANDSCAPE_FIELD_NUMBER: _ClassVar[int]
    NORM_JACOBIAN_FIELD_NUMBER: _ClassVar[int]
    NORM_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    NORM_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    ROBUSTNESS_FIELD_NUMBER: _ClassVar[int]
    SPECTRUM_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    activations: ActivationsOptions
    attention: AttentionOptions
    capture: CaptureOptions
    cka: CkaOptions
    gradient_alignment: GradientAlignmentOptions
    gradient_flow: GradientFlowOptions
    hessian: HessianOptions
    induction: InductionOptions
    logit_lens: LogitLensOptions
    loss_landscape: LossLandscapeOptions
    norm_jacobian: NormJacobianOptions
    norm_response: NormResponseOptions
    norm_statistics: NormStatisticsOptions
    patch: PatchOptions
    predictions: PredictionsOptions
    probe: ProbeOptions
    remove: RemoveOptions
    robustness: RobustnessOptions
    spectrum: SpectrumOptions
    trajectory: TrajectoryOptions
    weights: WeightsOptions
    def __init__(self, spectrum: _Optional[_Union[SpectrumOptions, _Mapping]] = ..., cka: _Optional[_Union[CkaOptions, _Mapping]] = ..., activations: _Optional[_Union[ActivationsOptions, _Mapping]] = ..., weights: _Optional[_Union[WeightsOptions, _Mapping]] = ..., capture: _Optional[_Union[CaptureOptions, _Mapping]] = ..., loss_landscape: _Optional[_Union[LossLandscapeOptions, _Mapping]] = ..., hessian: _Optional[_Union[HessianOptions, _Mapping]] = ..., gradient_flow: _Optional[_Union[GradientFlowOptions, _Mapping]] = ..., gradient_alignment: _Optional[_Union[GradientAlignmentOptions, _Mapping]] = ..., norm_jacobian: _Optional[_Union[NormJacobianOptions, _Mapping]] = ..., norm_statistics: _Optional[_Union[NormStatisticsOptions, _Mapping]] = ..., norm_response: _Optional[_Union[NormResponseOptions, _Mapping]] = ..., attention: _Optional[_Union[AttentionOptions, _Mapping]] = ..., remove: _Optional[_Union[RemoveOptions, _Mapping]] = ..., trajectory: _Optional[_Union[TrajectoryOptions, _Mapping]] = ..., logit_lens: _Optional[_Union[LogitLensOptions, _Mapping]] = ..., predictions: _Optional[_Union[PredictionsOptions, _Mapping]] = ..., induction: _Optional[_Union[InductionOptions, _Mapping]] = ..., patch: _Optional[_Union[PatchOptions, _Mapping]] = ..., robustness: _Optional[_Union[RobustnessOptions, _Mapping]] = ..., probe: _Optional[_Union[ProbeOptions, _Mapping]] = ...) -> None: ...

class AttentionMaps(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    heads: AttentionMaps.Value
    layers: AttentionMaps.Value
    model: AttentionMaps.Value
    unspecified: AttentionMaps.Value
    def __init__(self) -> None: ...

class AttentionOptions(_message.Message):
    __slots__ = ["dependency", "maps"]
    DEPENDENCY_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    dependency: str
    maps: _containers.RepeatedScalarFieldContainer[AttentionMaps.Value]
    def __init__(self, maps: _Optional[_Iterable[_Union[AttentionMaps.Value, str]]] = ..., dependency: _Optional[str] = ...) -> None: ...

class CaptureOptions(_message.Message):
    __slots__ = ["sites"]
    SITES_FIELD_NUMBER: _ClassVar[int]
    sites: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sites: _Optional[_Iterable[str]] = ...) -> None: ...

class CkaEstimator(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    biased: CkaEstimator.Value
    debiased: CkaEstimator.Value
    unspecified: CkaEstimator.Value
    def __init__(self) -> None: ...

class CkaOptions(_message.Message):
    __slots__ = ["block", "estimator", "sites"]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    block: int
    estimator: CkaEstimator.Value
    sites: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sites: _Optional[_Iterable[str]] = ..., estimator: _Optional[_Union[CkaEstimator.Value, str]] = ..., block: _Optional[int] = ...) -> None: ...

class Direction(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    filter: Direction.Value
    layer: Direction.Value
    raw: Direction.Value
    unit: Direction.Value
    unspecified: Direction.Value
    def __init__(self) -> None: ...

class GradientAlignmentOptions(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GradientFlowOptions(_message.Message):
    __slots__ = ["signal"]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    signal: GradientSignal.Value
    def __init__(self, signal: _Optional[_Union[GradientSignal.Value, str]] = ...) -> None: ...

class GradientSignal(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    exact: GradientSignal.Value
    rule: GradientSignal.Value
    unspecified: GradientSignal.Value
    def __init__(self) -> None: ...

class HessianOptions(_message.Message):
    __slots__ = ["density_runs", "iterations", "top", "trace_samples"]
    DENSITY_RUNS_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    TRACE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    density_runs: int
    iterations: int
    top: int
    trace_samples: int
    def __init__(self, top: _Optional[int] = ..., iterations: _Optional[int] = ..., trace_samples: _Optional[int] = ..., density_runs: _Optional[int] = ...) -> None: ...

class InductionOptions(_message.Message):
    __slots__ = ["period", "repeats", "sequences"]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    period: int
    repeats: int
    sequences: int
    def __init__(self, period: _Optional[int] = ..., repeats: _Optional[int] = ..., sequences: _Optional[int] = ...) -> None: ...

class LensStatistics(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    cached: LensStatistics.Value
    recomputed: LensStatistics.Value
    unspecified: LensStatistics.Value
    def __init__(self) -> None: ...

class LevelUnit(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    absolute: LevelUnit.Value
    relative: LevelUnit.Value
    unspecified: LevelUnit.Value
    def __init__(self) -> None: ...

class LogitLensOptions(_message.Message):
    __slots__ = ["statistics"]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    statistics: LensStatistics.Value
    def __init__(self, statistics: _Optional[_Union[LensStatistics.Value, str]] = ...) -> None: ...

class LossLandscapeOptions(_message.Message):
    __slots__ = ["dims", "direction", "directions", "points", "radius"]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    dims: int
    direction: Direction.Value
    directions: int
    points: int
    radius: float
    def __init__(self, direction: _Optional[_Union[Direction.Value, str]] = ..., dims: _Optional[int] = ..., directions: _Optional[int] = ..., radius: _Optional[float] = ..., points: _Optional[int] = ...) -> None: ...

class NormJacobianOptions(_message.Message):
    __slots__ = ["signal"]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    signal: GradientSignal.Value
    def __init__(self, signal: _Optional[_Union[GradientSignal.Value, str]] = ...) -> None: ...

class NormResponseOptions(_message.Message):
    __slots__ = ["deviation", "mean", "size"]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    deviation: float
    mean: float
    size: int
    def __init__(self, mean: _Optional[float] = ..., deviation: _Optional[float] = ..., size: _Optional[int] = ...) -> None: ...

class NormStatisticsOptions(_message.Message):
    __slots__ = ["batch"]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, batch: _Optional[_Iterable[int]] = ...) -> None: ...

class NumberInfo(_message.Message):
    __slots__ = ["help", "name"]
    HELP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    help: str
    name: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[_Iterable[str]] = ..., help: _Optional[str] = ...) -> None: ...

class OnlyWith(_message.Message):
    __slots__ = ["field", "value"]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, field: _Optional[str] = ..., value: _Optional[_Iterable[str]] = ...) -> None: ...

class OptionInfo(_message.Message):
    __slots__ = ["above", "below", "default", "help", "max", "min", "most", "only_with", "range"]
    ABOVE_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    ONLY_WITH_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    above: float
    below: float
    default: str
    help: str
    max: float
    min: float
    most: int
    only_with: OnlyWith
    range: str
    def __init__(self, default: _Optional[str] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., above: _Optional[float] = ..., below: _Optional[float] = ..., range: _Optional[str] = ..., only_with: _Optional[_Union[OnlyWith, _Mapping]] = ..., most: _Optional[int] = ..., help: _Optional[str] = ...) -> None: ...

class PatchDirection(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    denoise: PatchDirection.Value
    noise: PatchDirection.Value
    unspecified: PatchDirection.Value
    def __init__(self) -> None: ...

class PatchOptions(_message.Message):
    __slots__ = ["clean", "corrupt", "direction", "part", "right", "wrong"]
    CLEAN_FIELD_NUMBER: _ClassVar[int]
    CORRUPT_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    WRONG_FIELD_NUMBER: _ClassVar[int]
    clean: _containers.RepeatedScalarFieldContainer[str]
    corrupt: _containers.RepeatedScalarFieldContainer[str]
    direction: PatchDirection.Value
    part: PatchedPart.Value
    right: _containers.RepeatedScalarFieldContainer[str]
    wrong: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, clean: _Optional[_Iterable[str]] = ..., corrupt: _Optional[_Iterable[str]] = ..., right: _Optional[_Iterable[str]] = ..., wrong: _Optional[_Iterable[str]] = ..., part: _Optional[_Union[PatchedPart.Value, str]] = ..., direction: _Optional[_Union[PatchDirection.Value, str]] = ...) -> None: ...

class PatchedPart(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    attention: PatchedPart.Value
    feed_forward: PatchedPart.Value
    head: PatchedPart.Value
    residual: PatchedPart.Value
    unspecified: PatchedPart.Value
    def __init__(self) -> None: ...

class PredictionsOptions(_message.Message):
    __slots__ = ["bins", "edge"]
    BINS_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    bins: int
    edge: int
    def __init__(self, bins: _Optional[int] = ..., edge: _Optional[int] = ...) -> None: ...

class ProbeOptions(_message.Message):
    __slots__ = ["c", "controls", "label", "subtoken", "test"]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    C_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SUBTOKEN_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    c: float
    controls: bool
    label: str
    subtoken: Subtoken.Value
    test: float
    def __init__(self, label: _Optional[str] = ..., test: _Optional[float] = ..., subtoken: _Optional[_Union[Subtoken.Value, str]] = ..., c: _Optional[float] = ..., controls: bool = ...) -> None: ...

class RemoveOptions(_message.Message):
    __slots__ = ["part", "replacement"]
    PART_FIELD_NUMBER: _ClassVar[int]
    REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    part: RemovedPart.Value
    replacement: Replacement.Value
    def __init__(self, part: _Optional[_Union[RemovedPart.Value, str]] = ..., replacement: _Optional[_Union[Replacement.Value, str]] = ...) -> None: ...

class RemovedPart(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    attention: RemovedPart.Value
    feed_forward: RemovedPart.Value
    head: RemovedPart.Value
    unspecified: RemovedPart.Value
    def __init__(self) -> None: ...

class Replacement(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    mean: Replacement.Value
    uniform: Replacement.Value
    unspecified: Replacement.Value
    zero: Replacement.Value
    def __init__(self) -> None: ...

class RobustnessOptions(_message.Message):
    __slots__ = ["draws", "embedding_noise", "fgsm", "l2", "replace_words", "unit"]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NOISE_FIELD_NUMBER: _ClassVar[int]
    FGSM_FIELD_NUMBER: _ClassVar[int]
    L2_FIELD_NUMBER: _ClassVar[int]
    REPLACE_WORDS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    draws: int
    embedding_noise: _containers.RepeatedScalarFieldContainer[float]
    fgsm: _containers.RepeatedScalarFieldContainer[float]
    l2: _containers.RepeatedScalarFieldContainer[float]
    replace_words: _containers.RepeatedScalarFieldContainer[float]
    unit: LevelUnit.Value
    def __init__(self, replace_words: _Optional[_Iterable[float]] = ..., embedding_noise: _Optional[_Iterable[float]] = ..., fgsm: _Optional[_Iterable[float]] = ..., l2: _Optional[_Iterable[float]] = ..., unit: _Optional[_Union[LevelUnit.Value, str]] = ..., draws: _Optional[int] = ...) -> None: ...

class SpectrumOptions(_message.Message):
    __slots__ = ["site"]
    SITE_FIELD_NUMBER: _ClassVar[int]
    site: str
    def __init__(self, site: _Optional[str] = ...) -> None: ...

class Subtoken(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    first: Subtoken.Value
    last: Subtoken.Value
    mean: Subtoken.Value
    unspecified: Subtoken.Value
    def __init__(self) -> None: ...

class TrajectoryOptions(_message.Message):
    __slots__ = ["points"]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    points: int
    def __init__(self, points: _Optional[int] = ...) -> None: ...

class WeightsOptions(_message.Message):
    __slots__ = ["histograms"]
    HISTOGRAMS_FIELD_NUMBER: _ClassVar[int]
    histograms: bool
    def __init__(self, histograms: bool = ...) -> None: ...
