from ablate.v1 import analysis_options_pb2 as _analysis_options_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Activation(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    geglu: Activation.Value
    gelu: Activation.Value
    gelu_tanh: Activation.Value
    reglu: Activation.Value
    relu: Activation.Value
    relu2: Activation.Value
    silu: Activation.Value
    swiglu: Activation.Value
    unspecified: Activation.Value
    def __init__(self) -> None: ...

class AnalysisSpec(_message.Message):
    __slots__ = ["activations", "at", "attention", "capture", "cka", "gradient_alignment", "gradient_flow", "hessian", "induction", "inputs", "logit_lens", "loss_landscape", "name", "norm_jacobian", "norm_response", "norm_statistics", "on", "patch", "predictions", "probe", "remove", "robustness", "samples", "seed", "spectrum", "trajectory", "weights"]
    ACTIVATIONS_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    CKA_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FLOW_FIELD_NUMBER: _ClassVar[int]
    HESSIAN_FIELD_NUMBER: _ClassVar[int]
    INDUCTION_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    LOGIT_LENS_FIELD_NUMBER: _ClassVar[int]
    LOSS_LANDSCAPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORM_JACOBIAN_FIELD_NUMBER: _ClassVar[int]
    NORM_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    NORM_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    ROBUSTNESS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SPECTRUM_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    activations: _analysis_options_pb2.ActivationsOptions
    at: _containers.RepeatedScalarFieldContainer[int]
    attention: _analysis_options_pb2.AttentionOptions
    capture: _analysis_options_pb2.CaptureOptions
    cka: _analysis_options_pb2.CkaOptions
    gradient_alignment: _analysis_options_pb2.GradientAlignmentOptions
    gradient_flow: _analysis_options_pb2.GradientFlowOptions
    hessian: _analysis_options_pb2.HessianOptions
    induction: _analysis_options_pb2.InductionOptions
    inputs: _analysis_options_pb2.AnalysisInputs
    logit_lens: _analysis_options_pb2.LogitLensOptions
    loss_landscape: _analysis_options_pb2.LossLandscapeOptions
    name: str
    norm_jacobian: _analysis_options_pb2.NormJacobianOptions
    norm_response: _analysis_options_pb2.NormResponseOptions
    norm_statistics: _analysis_options_pb2.NormStatisticsOptions
    on: AnalyzedRuns.Value
    patch: _analysis_options_pb2.PatchOptions
    predictions: _analysis_options_pb2.PredictionsOptions
    probe: _analysis_options_pb2.ProbeOptions
    remove: _analysis_options_pb2.RemoveOptions
    robustness: _analysis_options_pb2.RobustnessOptions
    samples: SamplesSpec
    seed: int
    spectrum: _analysis_options_pb2.SpectrumOptions
    trajectory: _analysis_options_pb2.TrajectoryOptions
    weights: _analysis_options_pb2.WeightsOptions
    def __init__(self, samples: _Optional[_Union[SamplesSpec, _Mapping]] = ..., spectrum: _Optional[_Union[_analysis_options_pb2.SpectrumOptions, _Mapping]] = ..., cka: _Optional[_Union[_analysis_options_pb2.CkaOptions, _Mapping]] = ..., activations: _Optional[_Union[_analysis_options_pb2.ActivationsOptions, _Mapping]] = ..., weights: _Optional[_Union[_analysis_options_pb2.WeightsOptions, _Mapping]] = ..., capture: _Optional[_Union[_analysis_options_pb2.CaptureOptions, _Mapping]] = ..., loss_landscape: _Optional[_Union[_analysis_options_pb2.LossLandscapeOptions, _Mapping]] = ..., hessian: _Optional[_Union[_analysis_options_pb2.HessianOptions, _Mapping]] = ..., gradient_flow: _Optional[_Union[_analysis_options_pb2.GradientFlowOptions, _Mapping]] = ..., gradient_alignment: _Optional[_Union[_analysis_options_pb2.GradientAlignmentOptions, _Mapping]] = ..., norm_jacobian: _Optional[_Union[_analysis_options_pb2.NormJacobianOptions, _Mapping]] = ..., norm_statistics: _Optional[_Union[_analysis_options_pb2.NormStatisticsOptions, _Mapping]] = ..., norm_response: _Optional[_Union[_analysis_options_pb2.NormResponseOptions, _Mapping]] = ..., attention: _Optional[_Union[_analysis_options_pb2.AttentionOptions, _Mapping]] = ..., remove: _Optional[_Union[_analysis_options_pb2.RemoveOptions, _Mapping]] = ..., trajectory: _Optional[_Union[_analysis_options_pb2.TrajectoryOptions, _Mapping]] = ..., logit_lens: _Optional[_Union[_analysis_options_pb2.LogitLensOptions, _Mapping]] = ..., predictions: _Optional[_Union[_analysis_options_pb2.PredictionsOptions, _Mapping]] = ..., induction: _Optional[_Union[_analysis_options_pb2.InductionOptions, _Mapping]] = ..., patch: _Optional[_Union[_analysis_options_pb2.PatchOptions, _Mapping]] = ..., robustness: _Optional[_Union[_analysis_options_pb2.RobustnessOptions, _Mapping]] = ..., probe: _Optional[_Union[_analysis_options_pb2.ProbeOptions, _Mapping]] = ..., name: _Optional[str] = ..., at: _Optional[_Iterable[int]] = ..., on: _Optional[_Union[AnalyzedRuns.Value, str]] = ..., inputs: _Optional[_Union[_analysis_options_pb2.AnalysisInputs, _Mapping]] = ..., seed: _Optional[int] = ...) -> None: ...

class AnalyzedRuns(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    all: AnalyzedRuns.Value
    chosen: AnalyzedRuns.Value
    unspecified: AnalyzedRuns.Value
    def __init__(self) -> None: ...

class Arguments(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    flags: Arguments.Value
    hydra: Arguments.Value
    json: Arguments.Value
    none: Arguments.Value
    unspecified: Arguments.Value
    def __init__(self) -> None: ...

class AttentionKind(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    none: AttentionKind.Value
    sigmoid: AttentionKind.Value
    softmax: AttentionKind.Value
    unspecified: AttentionKind.Value
    def __init__(self) -> None: ...

class AttentionSpec(_message.Message):
    __slots__ = ["causal", "full_every", "head_size", "kind", "kv_heads", "qk_norm", "qkv_bias", "score_bias", "score_cap", "sink", "value_residual", "window"]
    CAUSAL_FIELD_NUMBER: _ClassVar[int]
    FULL_EVERY_FIELD_NUMBER: _ClassVar[int]
    HEAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KV_HEADS_FIELD_NUMBER: _ClassVar[int]
    QKV_BIAS_FIELD_NUMBER: _ClassVar[int]
    QK_NORM_FIELD_NUMBER: _ClassVar[int]
    SCORE_BIAS_FIELD_NUMBER: _ClassVar[int]
    SCORE_CAP_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    VALUE_RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    causal: bool
    full_every: int
    head_size: int
    kind: AttentionKind.Value
    kv_heads: int
    qk_norm: QkNormSpec
    qkv_bias: bool
    score_bias: float
    score_cap: float
    sink: bool
    value_residual: ValueResidual.Value
    window: int
    def __init__(self, kind: _Optional[_Union[AttentionKind.Value, str]] = ..., score_bias: _Optional[float] = ..., causal: bool = ..., kv_heads: _Optional[int] = ..., head_size: _Optional[int] = ..., qkv_bias: bool = ..., qk_norm: _Optional[_Union[QkNormSpec, _Mapping]] = ..., score_cap: _Optional[float] = ..., window: _Optional[int] = ..., full_every: _Optional[int] = ..., sink: bool = ..., value_residual: _Optional[_Union[ValueResidual.Value, str]] = ...) -> None: ...

class Axis(_message.Message):
    __slots__ = ["field", "form", "name", "settings", "switches", "tune", "values"]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    TUNE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    field: str
    form: SwitchForm.Value
    name: str
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    switches: _containers.RepeatedCompositeFieldContainer[Setting]
    tune: bool
    values: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Value]
    def __init__(self, name: _Optional[str] = ..., field: _Optional[str] = ..., values: _Optional[_Iterable[_Union[_struct_pb2.Value, _Mapping]]] = ..., settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., tune: bool = ..., switches: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., form: _Optional[_Union[SwitchForm.Value, str]] = ...) -> None: ...

class BaseSpec(_message.Message):
    __slots__ = ["evaluation", "imported", "model", "model_from", "program", "settings", "task", "training"]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FROM_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    evaluation: EvaluationSpec
    imported: ImportedSpec
    model: ModelSpec
    model_from: str
    program: ProgramSpec
    settings: _struct_pb2.Struct
    task: TaskSpec
    training: TrainingSpec
    def __init__(self, task: _Optional[_Union[TaskSpec, _Mapping]] = ..., model: _Optional[_Union[ModelSpec, _Mapping]] = ..., training: _Optional[_Union[TrainingSpec, _Mapping]] = ..., evaluation: _Optional[_Union[EvaluationSpec, _Mapping]] = ..., model_from: _Optional[str] = ..., program: _Optional[_Union[ProgramSpec, _Mapping]] = ..., settings: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., imported: _Optional[_Union[ImportedSpec, _Mapping]] = ...) -> None: ...

class Better(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    higher: Better.Value
    lower: Better.Value
    unspecified: Better.Value
    def __init__(self) -> None: ...

class DecayForm(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    cosine: DecayForm.Value
    linear: DecayForm.Value
    sqrt: DecayForm.Value
    unspecified: DecayForm.Value
    def __init__(self) -> None: ...

class Device(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    auto: Device.Value
    cpu: Device.Value
    cuda: Device.Value
    unspecified: Device.Value
    def __init__(self) -> None: ...

class DocumentsTask(_message.Message):
    __slots__ = ["dataset", "held_out", "tokenizer"]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    held_out: int
    tokenizer: str
    def __init__(self, dataset: _Optional[str] = ..., held_out: _Optional[int] = ..., tokenizer: _Optional[str] = ...) -> None: ...

class EvaluationSpec(_message.Message):
    __slots__ = ["batches", "every", "record", "tokens"]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    batches: int
    every: int
    record: _containers.RepeatedScalarFieldContainer[Record.Value]
    tokens: int
    def __init__(self, every: _Optional[int] = ..., batches: _Optional[int] = ..., tokens: _Optional[int] = ..., record: _Optional[_Iterable[_Union[Record.Value, str]]] = ...) -> None: ...

class Exclusion(_message.Message):
    __slots__ = ["where"]
    class WhereEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    WHERE_FIELD_NUMBER: _ClassVar[int]
    where: _containers.MessageMap[str, _struct_pb2.Value]
    def __init__(self, where: _Optional[_Mapping[str, _struct_pb2.Value]] = ...) -> None: ...

class ExperimentSpec(_message.Message):
    __slots__ = ["analyses", "axes", "base", "exclude", "limits", "name", "question", "report", "seeds"]
    ANALYSES_FIELD_NUMBER: _ClassVar[int]
    AXES_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    analyses: _containers.RepeatedCompositeFieldContainer[AnalysisSpec]
    axes: _containers.RepeatedCompositeFieldContainer[Axis]
    base: BaseSpec
    exclude: _containers.RepeatedCompositeFieldContainer[Exclusion]
    limits: Limits
    name: str
    question: str
    report: ReportSpec
    seeds: Seeds
    def __init__(self, name: _Optional[str] = ..., question: _Optional[str] = ..., base: _Optional[_Union[BaseSpec, _Mapping]] = ..., axes: _Optional[_Iterable[_Union[Axis, _Mapping]]] = ..., exclude: _Optional[_Iterable[_Union[Exclusion, _Mapping]]] = ..., seeds: _Optional[_Union[Seeds, _Mapping]] = ..., analyses: _Optional[_Iterable[_Union[AnalysisSpec, _Mapping]]] = ..., report: _Optional[_Union[ReportSpec, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ...) -> None: ...

class FeedForwardSpec(_message.Message):
    __slots__ = ["activation", "hidden", "match_parameters"]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    MATCH_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    activation: Activation.Value
    hidden: int
    match_parameters: bool
    def __init__(self, hidden: _Optional[int] = ..., activation: _Optional[_Union[Activation.Value, str]] = ..., match_parameters: bool = ...) -> None: ...

class GainForm(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    one_plus: GainForm.Value
    scale: GainForm.Value
    unspecified: GainForm.Value
    def __init__(self) -> None: ...

class ImportedSpec(_message.Message):
    __slots__ = ["source"]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: str
    def __init__(self, source: _Optional[str] = ...) -> None: ...

class InitKind(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    gpt2: InitKind.Value
    pytorch: InitKind.Value
    pytorch_mha: InitKind.Value
    unspecified: InitKind.Value
    xavier: InitKind.Value
    def __init__(self) -> None: ...

class InitOutputs(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    deepnorm: InitOutputs.Value
    depth_scaled: InitOutputs.Value
    drawn: InitOutputs.Value
    unspecified: InitOutputs.Value
    zero: InitOutputs.Value
    def __init__(self) -> None: ...

class InitSpec(_message.Message):
    __slots__ = ["kind", "outputs", "streams"]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    kind: InitKind.Value
    outputs: InitOutputs.Value
    streams: InitStreams.Value
    def __init__(self, kind: _Optional[_Union[InitKind.Value, str]] = ..., streams: _Optional[_Union[InitStreams.Value, str]] = ..., outputs: _Optional[_Union[InitOutputs.Value, str]] = ...) -> None: ...

class InitStreams(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    by_name: InitStreams.Value
    sequential: InitStreams.Value
    unspecified: InitStreams.Value
    def __init__(self) -> None: ...

class LearningRule(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    backprop: LearningRule.Value
    direct_feedback_alignment: LearningRule.Value
    feedback_alignment: LearningRule.Value
    unspecified: LearningRule.Value
    def __init__(self) -> None: ...

class LegacyRecallTask(_message.Message):
    __slots__ = ["draw", "keys"]
    DRAW_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    draw: int
    keys: int
    def __init__(self, keys: _Optional[int] = ..., draw: _Optional[int] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ["bytes", "device_time", "failures", "priority", "runs"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    device_time: _duration_pb2.Duration
    failures: int
    priority: Priority.Value
    runs: int
    def __init__(self, runs: _Optional[int] = ..., device_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., bytes: _Optional[int] = ..., priority: _Optional[_Union[Priority.Value, str]] = ..., failures: _Optional[int] = ...) -> None: ...

class ModelSpec(_message.Message):
    __slots__ = ["attention", "base_width", "bias", "context", "dropout", "embedding_norm", "embedding_scale", "feed_forward", "head_bias", "heads", "init", "layers", "logit_cap", "norm", "parallel", "parallel_norms", "positions", "residual", "residual_scale", "rotary", "tied_head", "update_gain", "update_gain_start", "width"]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    BASE_WIDTH_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NORM_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SCALE_FIELD_NUMBER: _ClassVar[int]
    FEED_FORWARD_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    HEAD_BIAS_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    LOGIT_CAP_FIELD_NUMBER: _ClassVar[int]
    NORM_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_NORMS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_SCALE_FIELD_NUMBER: _ClassVar[int]
    ROTARY_FIELD_NUMBER: _ClassVar[int]
    TIED_HEAD_FIELD_NUMBER: _ClassVar[int]
    UPDATE_GAIN_FIELD_NUMBER: _ClassVar[int]
    UPDATE_GAIN_START_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    attention: AttentionSpec
    base_width: int
    bias: bool
    context: int
    dropout: float
    embedding_norm: bool
    embedding_scale: float
    feed_forward: FeedForwardSpec
    head_bias: bool
    heads: int
    init: InitSpec
    layers: int
    logit_cap: float
    norm: NormSpec
    parallel: bool
    parallel_norms: bool
    positions: Positions.Value
    residual: bool
    residual_scale: float
    rotary: RotarySpec
    tied_head: bool
    update_gain: UpdateGain.Value
    update_gain_start: float
    width: int
    def __init__(self, layers: _Optional[int] = ..., width: _Optional[int] = ..., heads: _Optional[int] = ..., context: _Optional[int] = ..., positions: _Optional[_Union[Positions.Value, str]] = ..., bias: bool = ..., residual: bool = ..., tied_head: bool = ..., head_bias: bool = ..., init: _Optional[_Union[InitSpec, _Mapping]] = ..., attention: _Optional[_Union[AttentionSpec, _Mapping]] = ..., norm: _Optional[_Union[NormSpec, _Mapping]] = ..., feed_forward: _Optional[_Union[FeedForwardSpec, _Mapping]] = ..., residual_scale: _Optional[float] = ..., dropout: _Optional[float] = ..., rotary: _Optional[_Union[RotarySpec, _Mapping]] = ..., parallel: bool = ..., parallel_norms: bool = ..., update_gain: _Optional[_Union[UpdateGain.Value, str]] = ..., update_gain_start: _Optional[float] = ..., embedding_scale: _Optional[float] = ..., embedding_norm: bool = ..., logit_cap: _Optional[float] = ..., base_width: _Optional[int] = ...) -> None: ...

class MuonAdjust(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    match_rms: MuonAdjust.Value
    original: MuonAdjust.Value
    unspecified: MuonAdjust.Value
    def __init__(self) -> None: ...

class MuonPrecision(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    bfloat16: MuonPrecision.Value
    float32: MuonPrecision.Value
    unspecified: MuonPrecision.Value
    def __init__(self) -> None: ...

class MuonSpec(_message.Message):
    __slots__ = ["adamw_learning_rate", "adamw_weight_decay", "adjust", "iterations", "nesterov", "precision"]
    ADAMW_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    ADAMW_WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    ADJUST_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    NESTEROV_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    adamw_learning_rate: float
    adamw_weight_decay: float
    adjust: MuonAdjust.Value
    iterations: int
    nesterov: bool
    precision: MuonPrecision.Value
    def __init__(self, adjust: _Optional[_Union[MuonAdjust.Value, str]] = ..., iterations: _Optional[int] = ..., nesterov: bool = ..., precision: _Optional[_Union[MuonPrecision.Value, str]] = ..., adamw_learning_rate: _Optional[float] = ..., adamw_weight_decay: _Optional[float] = ...) -> None: ...

class NormBackward(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    center_scale: NormBackward.Value
    exact: NormBackward.Value
    identity: NormBackward.Value
    projected: NormBackward.Value
    unspecified: NormBackward.Value
    def __init__(self) -> None: ...

class NormDeviation(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    population: NormDeviation.Value
    unbiased_eps_outside: NormDeviation.Value
    unspecified: NormDeviation.Value
    def __init__(self) -> None: ...

class NormKind(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    batch: NormKind.Value
    derf: NormKind.Value
    dyt: NormKind.Value
    l2: NormKind.Value
    layer: NormKind.Value
    rms: NormKind.Value
    unspecified: NormKind.Value
    def __init__(self) -> None: ...

class NormPlacement(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    none: NormPlacement.Value
    post: NormPlacement.Value
    pre: NormPlacement.Value
    sandwich: NormPlacement.Value
    unspecified: NormPlacement.Value
    def __init__(self) -> None: ...

class NormSpec(_message.Message):
    __slots__ = ["alpha", "attention", "attention_alpha", "backward", "bias", "deviation", "eps", "feed_forward", "final", "gain", "gain_form", "kind", "placement"]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_ALPHA_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    FEED_FORWARD_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    GAIN_FORM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    alpha: float
    attention: bool
    attention_alpha: float
    backward: NormBackward.Value
    bias: bool
    deviation: NormDeviation.Value
    eps: float
    feed_forward: bool
    final: bool
    gain: bool
    gain_form: GainForm.Value
    kind: NormKind.Value
    placement: NormPlacement.Value
    def __init__(self, kind: _Optional[_Union[NormKind.Value, str]] = ..., placement: _Optional[_Union[NormPlacement.Value, str]] = ..., attention: bool = ..., feed_forward: bool = ..., final: bool = ..., eps: _Optional[float] = ..., gain: bool = ..., bias: bool = ..., deviation: _Optional[_Union[NormDeviation.Value, str]] = ..., backward: _Optional[_Union[NormBackward.Value, str]] = ..., gain_form: _Optional[_Union[GainForm.Value, str]] = ..., attention_alpha: _Optional[float] = ..., alpha: _Optional[float] = ...) -> None: ...

class Optimizer(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    adam: Optimizer.Value
    adamw: Optimizer.Value
    lion: Optimizer.Value
    muon: Optimizer.Value
    sgd: Optimizer.Value
    unspecified: Optimizer.Value
    def __init__(self) -> None: ...

class Positions(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    alibi: Positions.Value
    learned: Positions.Value
    none: Positions.Value
    rotary: Positions.Value
    sinusoidal: Positions.Value
    unspecified: Positions.Value
    def __init__(self) -> None: ...

class Precision(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    bfloat16: Precision.Value
    float32: Precision.Value
    tf32: Precision.Value
    unspecified: Precision.Value
    def __init__(self) -> None: ...

class Priority(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    background: Priority.Value
    interactive: Priority.Value
    normal: Priority.Value
    unspecified: Priority.Value
    def __init__(self) -> None: ...

class ProgramDevice(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    cpu: ProgramDevice.Value
    cuda: ProgramDevice.Value
    unspecified: ProgramDevice.Value
    def __init__(self) -> None: ...

class ProgramLimits(_message.Message):
    __slots__ = ["disk", "memory", "time"]
    DISK_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    disk: int
    memory: int
    time: _duration_pb2.Duration
    def __init__(self, time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., memory: _Optional[int] = ..., disk: _Optional[int] = ...) -> None: ...

class ProgramSpec(_message.Message):
    __slots__ = ["arguments", "checkpoint", "command", "data", "device", "environment", "files", "interrupt_at", "limits", "reuse", "seed", "start", "threads"]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    arguments: Arguments.Value
    checkpoint: bool
    command: _containers.RepeatedScalarFieldContainer[str]
    data: str
    device: ProgramDevice.Value
    environment: str
    files: str
    interrupt_at: int
    limits: ProgramLimits
    reuse: bool
    seed: str
    start: ProgramStart.Value
    threads: int
    def __init__(self, command: _Optional[_Iterable[str]] = ..., arguments: _Optional[_Union[Arguments.Value, str]] = ..., files: _Optional[str] = ..., environment: _Optional[str] = ..., checkpoint: bool = ..., threads: _Optional[int] = ..., reuse: bool = ..., seed: _Optional[str] = ..., limits: _Optional[_Union[ProgramLimits, _Mapping]] = ..., start: _Optional[_Union[ProgramStart.Value, str]] = ..., data: _Optional[str] = ..., device: _Optional[_Union[ProgramDevice.Value, str]] = ..., interrupt_at: _Optional[int] = ...) -> None: ...

class ProgramStart(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    cold: ProgramStart.Value
    unspecified: ProgramStart.Value
    warm: ProgramStart.Value
    def __init__(self) -> None: ...

class QkNormKind(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    l2: QkNormKind.Value
    layer: QkNormKind.Value
    none: QkNormKind.Value
    rms: QkNormKind.Value
    unspecified: QkNormKind.Value
    def __init__(self) -> None: ...

class QkNormPlace(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    after: QkNormPlace.Value
    before: QkNormPlace.Value
    unspecified: QkNormPlace.Value
    def __init__(self) -> None: ...

class QkNormScope(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    all: QkNormScope.Value
    head: QkNormScope.Value
    unspecified: QkNormScope.Value
    def __init__(self) -> None: ...

class QkNormSpec(_message.Message):
    __slots__ = ["gain", "kind", "place", "scale", "scope"]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    gain: bool
    kind: QkNormKind.Value
    place: QkNormPlace.Value
    scale: float
    scope: QkNormScope.Value
    def __init__(self, kind: _Optional[_Union[QkNormKind.Value, str]] = ..., scope: _Optional[_Union[QkNormScope.Value, str]] = ..., place: _Optional[_Union[QkNormPlace.Value, str]] = ..., gain: bool = ..., scale: _Optional[float] = ...) -> None: ...

class RateFactors(_message.Message):
    __slots__ = ["embeddings", "head", "vectors"]
    EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    embeddings: float
    head: float
    vectors: float
    def __init__(self, embeddings: _Optional[float] = ..., head: _Optional[float] = ..., vectors: _Optional[float] = ...) -> None: ...

class RecallTask(_message.Message):
    __slots__ = ["attributes", "entities", "pairs"]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    attributes: int
    entities: int
    pairs: int
    def __init__(self, entities: _Optional[int] = ..., attributes: _Optional[int] = ..., pairs: _Optional[int] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    gradient_by_block: Record.Value
    rule_alignment: Record.Value
    unspecified: Record.Value
    def __init__(self) -> None: ...

class Reduce(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    max: Reduce.Value
    mean: Reduce.Value
    min: Reduce.Value
    unspecified: Reduce.Value
    def __init__(self) -> None: ...

class ReportSpec(_message.Message):
    __slots__ = ["better", "margin", "primary", "scale", "smooth", "summaries"]
    BETTER_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SMOOTH_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    better: Better.Value
    margin: float
    primary: str
    scale: Scale.Value
    smooth: int
    summaries: _containers.RepeatedCompositeFieldContainer[Window]
    def __init__(self, primary: _Optional[str] = ..., smooth: _Optional[int] = ..., summaries: _Optional[_Iterable[_Union[Window, _Mapping]]] = ..., better: _Optional[_Union[Better.Value, str]] = ..., margin: _Optional[float] = ..., scale: _Optional[_Union[Scale.Value, str]] = ...) -> None: ...

class RotarySpec(_message.Message):
    __slots__ = ["share", "skip_every", "theta"]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SKIP_EVERY_FIELD_NUMBER: _ClassVar[int]
    THETA_FIELD_NUMBER: _ClassVar[int]
    share: float
    skip_every: int
    theta: float
    def __init__(self, theta: _Optional[float] = ..., share: _Optional[float] = ..., skip_every: _Optional[int] = ...) -> None: ...

class RunSpec(_message.Message):
    __slots__ = ["seed", "spec", "vocabulary"]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    seed: int
    spec: BaseSpec
    vocabulary: int
    def __init__(self, spec: _Optional[_Union[BaseSpec, _Mapping]] = ..., seed: _Optional[int] = ..., vocabulary: _Optional[int] = ...) -> None: ...

class SamplesSpec(_message.Message):
    __slots__ = ["count", "seed", "temperature", "top_k", "top_p"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    count: int
    seed: int
    temperature: float
    top_k: int
    top_p: float
    def __init__(self, count: _Optional[int] = ..., temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class Scale(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    difference: Scale.Value
    ratio: Scale.Value
    unspecified: Scale.Value
    def __init__(self) -> None: ...

class Schedule(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    constant: Schedule.Value
    cosine: Schedule.Value
    inverse_sqrt: Schedule.Value
    linear: Schedule.Value
    one_cycle: Schedule.Value
    unspecified: Schedule.Value
    wsd: Schedule.Value
    def __init__(self) -> None: ...

class Seeds(_message.Message):
    __slots__ = ["count", "first", "list"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    count: int
    first: int
    list: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ..., list: _Optional[_Iterable[int]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ["label", "set"]
    class SetEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    label: str
    set: _containers.MessageMap[str, _struct_pb2.Value]
    def __init__(self, label: _Optional[str] = ..., set: _Optional[_Mapping[str, _struct_pb2.Value]] = ...) -> None: ...

class SwitchForm(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    add: SwitchForm.Value
    pairs: SwitchForm.Value
    remove: SwitchForm.Value
    unspecified: SwitchForm.Value
    def __init__(self) -> None: ...

class TaskSpec(_message.Message):
    __slots__ = ["documents", "legacy_recall", "recall", "text"]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    LEGACY_RECALL_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    documents: DocumentsTask
    legacy_recall: LegacyRecallTask
    recall: RecallTask
    text: TextTask
    def __init__(self, documents: _Optional[_Union[DocumentsTask, _Mapping]] = ..., legacy_recall: _Optional[_Union[LegacyRecallTask, _Mapping]] = ..., recall: _Optional[_Union[RecallTask, _Mapping]] = ..., text: _Optional[_Union[TextTask, _Mapping]] = ...) -> None: ...

class TextTask(_message.Message):
    __slots__ = ["dataset", "tokenizer", "validation"]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    tokenizer: str
    validation: float
    def __init__(self, dataset: _Optional[str] = ..., tokenizer: _Optional[str] = ..., validation: _Optional[float] = ...) -> None: ...

class Trainer(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    auto: Trainer.Value
    native: Trainer.Value
    torch: Trainer.Value
    unspecified: Trainer.Value
    def __init__(self) -> None: ...

class TrainingSpec(_message.Message):
    __slots__ = ["accumulation", "batch", "betas", "checkpoints", "clip", "decay", "decay_form", "device", "ema", "eps", "final_rate", "label_smoothing", "learning_rate", "momentum", "muon", "optimizer", "precision", "rates", "rule", "schedule", "steps", "threads", "trainer", "warmup", "weight_decay", "weight_decay_form", "weight_decay_on", "z_loss"]
    ACCUMULATION_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    BETAS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    DECAY_FIELD_NUMBER: _ClassVar[int]
    DECAY_FORM_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    EMA_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    FINAL_RATE_FIELD_NUMBER: _ClassVar[int]
    LABEL_SMOOTHING_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    MUON_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    WARMUP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FORM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_ON_FIELD_NUMBER: _ClassVar[int]
    Z_LOSS_FIELD_NUMBER: _ClassVar[int]
    accumulation: int
    batch: int
    betas: _containers.RepeatedScalarFieldContainer[float]
    checkpoints: _containers.RepeatedScalarFieldContainer[int]
    clip: float
    decay: int
    decay_form: DecayForm.Value
    device: Device.Value
    ema: float
    eps: float
    final_rate: float
    label_smoothing: float
    learning_rate: float
    momentum: float
    muon: MuonSpec
    optimizer: Optimizer.Value
    precision: Precision.Value
    rates: RateFactors
    rule: LearningRule.Value
    schedule: Schedule.Value
    steps: int
    threads: int
    trainer: Trainer.Value
    warmup: int
    weight_decay: float
    weight_decay_form: WeightDecayForm.Value
    weight_decay_on: WeightDecayOn.Value
    z_loss: float
    def __init__(self, steps: _Optional[int] = ..., batch: _Optional[int] = ..., optimizer: _Optional[_Union[Optimizer.Value, str]] = ..., learning_rate: _Optional[float] = ..., betas: _Optional[_Iterable[float]] = ..., momentum: _Optional[float] = ..., eps: _Optional[float] = ..., weight_decay: _Optional[float] = ..., schedule: _Optional[_Union[Schedule.Value, str]] = ..., warmup: _Optional[int] = ..., clip: _Optional[float] = ..., checkpoints: _Optional[_Iterable[int]] = ..., rule: _Optional[_Union[LearningRule.Value, str]] = ..., device: _Optional[_Union[Device.Value, str]] = ..., precision: _Optional[_Union[Precision.Value, str]] = ..., threads: _Optional[int] = ..., accumulation: _Optional[int] = ..., weight_decay_on: _Optional[_Union[WeightDecayOn.Value, str]] = ..., ema: _Optional[float] = ..., label_smoothing: _Optional[float] = ..., trainer: _Optional[_Union[Trainer.Value, str]] = ..., z_loss: _Optional[float] = ..., decay: _Optional[int] = ..., decay_form: _Optional[_Union[DecayForm.Value, str]] = ..., final_rate: _Optional[float] = ..., muon: _Optional[_Union[MuonSpec, _Mapping]] = ..., weight_decay_form: _Optional[_Union[WeightDecayForm.Value, str]] = ..., rates: _Optional[_Union[RateFactors, _Mapping]] = ...) -> None: ...

class UpdateGain(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    feature: UpdateGain.Value
    none: UpdateGain.Value
    scalar: UpdateGain.Value
    unspecified: UpdateGain.Value
    def __init__(self) -> None: ...

class ValueResidual(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    fixed: ValueResidual.Value
    learned: ValueResidual.Value
    none: ValueResidual.Value
    unspecified: ValueResidual.Value
    def __init__(self) -> None: ...

class WeightDecayForm(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    independent: WeightDecayForm.Value
    scaled: WeightDecayForm.Value
    unspecified: WeightDecayForm.Value
    def __init__(self) -> None: ...

class WeightDecayOn(_message.Message):
    __slots__ = []
    class Value(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    all: WeightDecayOn.Value
    matrices: WeightDecayOn.Value
    unspecified: WeightDecayOn.Value
    def __init__(self) -> None: ...

class Window(_message.Message):
    __slots__ = ["first", "key", "last", "reduce"]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    REDUCE_FIELD_NUMBER: _ClassVar[int]
    first: int
    key: str
    last: int
    reduce: Reduce.Value
    def __init__(self, key: _Optional[str] = ..., first: _Optional[int] = ..., last: _Optional[int] = ..., reduce: _Optional[_Union[Reduce.Value, str]] = ...) -> None: ...
