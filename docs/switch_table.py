"""The switches of the model family by part, for docs/reference/switches.md; field_table.py writes them.

A switch is a field of `model` or `training` that changes what is learned. Its values, default and meaning are those
that spec.proto declares. PARTS has its part, and SOURCES where it comes from.
"""

# Parts in the page's order, with the fields that they have: a path, or the beginning of paths, which ends in a dot.
PARTS = [
    ("Size", ["model.layers", "model.width", "model.base_width", "model.heads", "model.context"]),
    ("Attention", ["model.attention."]),
    ("Positions", ["model.positions", "model.rotary."]),
    ("Norms", ["model.norm.", "model.embedding_norm"]),
    ("Feed-forward", ["model.feed_forward."]),
    ("Blocks, embeddings and head", [
        "model.parallel", "model.parallel_norms", "model.residual", "model.residual_scale", "model.update_gain",
        "model.update_gain_start", "model.dropout", "model.bias", "model.embedding_scale", "model.tied_head", "model.head_bias",
        "model.logit_cap"]),
    ("Initial values", ["model.init."]),
    ("Training", ["training."]),
]
# Fields that say how a run is computed, how long it is and what it keeps.
NO_SWITCHES = {"training.steps", "training.checkpoints", "training.device", "training.trainer", "training.threads",
               "training.accumulation"}


def paper(number, name):
    return f"[{name}](https://arxiv.org/abs/{number})"


SOURCES = {
    "model.attention.kind": f"sigmoid: {paper('2409.04431', 'Ramapuram et al. 2024')}",
    "model.attention.kv_heads": f"{paper('1911.02150', 'multi-query')} and {paper('2305.13245', 'grouped queries')}",
    "model.attention.head_size": "128 whatever the width: Qwen3",
    "model.attention.qkv_bias": paper("2309.16609", "Qwen"),
    "model.attention.qk_norm.kind": f"{paper('2010.04245', 'Henry et al. 2020')}; Qwen3, OLMo 2, nanochat",
    "model.attention.qk_norm.scope": "head: Qwen3; all: OLMo 2",
    "model.attention.qk_norm.place": "before: Qwen3; after: nanochat",
    "model.attention.qk_norm.gain": "true: Qwen3; false: nanochat",
    "model.attention.qk_norm.scale": "10: x-transformers",
    "model.attention.score_cap": f"{paper('2408.00118', 'Gemma 2')}, with 50",
    "model.attention.window": paper("2310.06825", "Mistral"),
    "model.attention.full_every": f"{paper('2503.19786', 'Gemma 3')}, with 6",
    "model.attention.sink": paper("2508.10925", "gpt-oss"),
    "model.attention.value_residual": paper("2410.17897", "Zhou et al. 2024"),
    "model.positions": f"sinusoidal: {paper('1706.03762', 'Vaswani et al. 2017')}; none: "
                       f"{paper('2305.19466', 'Kazemnejad et al. 2023')}; rotary: "
                       f"{paper('2104.09864', 'Su et al. 2021')}; alibi: {paper('2108.12409', 'Press et al. 2021')}",
    "model.rotary.theta": f"500,000: {paper('2407.21783', 'Llama 3')}",
    "model.rotary.share": f"0.25: {paper('2204.06745', 'GPT-NeoX')}",
    "model.rotary.skip_every": f"4: {paper('2501.18795', 'Yang et al. 2025')}",
    "model.norm.kind": f"layer: {paper('1607.06450', 'Ba et al. 2016')}; rms: "
                       f"{paper('1910.07467', 'Zhang & Sennrich 2019')}; batch: "
                       f"{paper('1502.03167', 'Ioffe & Szegedy 2015')}; dyt: {paper('2503.10622', 'Zhu et al. 2025')}; "
                       f"derf: {paper('2512.10938', 'Chen et al. 2025')}",
    "model.norm.placement": f"pre and post: {paper('2002.04745', 'Xiong et al. 2020')}; sandwich: "
                            f"{paper('2105.13290', 'CogView')}, Gemma 2",
    "model.norm.gain_form": f"one_plus: {paper('2403.08295', 'Gemma')}",
    "model.norm.attention_alpha": f"0.2 to 0.8 in {paper('2503.10622', 'DyT')} for LLaMA",
    "model.norm.alpha": f"0.05 to 0.2 in {paper('2503.10622', 'DyT')} for LLaMA",
    "model.norm.backward": "[our experiment](../experiments/norm-jacobian.md)",
    "model.embedding_norm": paper("2211.05100", "BLOOM"),
    "model.feed_forward.activation": f"gelu: {paper('1606.08415', 'Hendrycks & Gimpel 2016')}; swiglu, geglu, reglu: "
                                     f"{paper('2002.05202', 'Shazeer 2020')}; relu2: {paper('2109.08668', 'Primer')}",
    "model.parallel": f"GPT-J, {paper('2204.02311', 'PaLM')}",
    "model.parallel_norms": paper("2204.06745", "GPT-NeoX"),
    "model.residual_scale": f"{paper('2203.00555', 'DeepNorm')}",
    "model.update_gain": f"feature: {paper('2103.17239', 'LayerScale')}; scalar: {paper('2003.04887', 'ReZero')}",
    "model.embedding_scale": f"√width: {paper('1706.03762', 'Vaswani et al. 2017')}, Gemma",
    "model.tied_head": paper("1608.05859", "Press & Wolf 2016"),
    "model.base_width": paper("2203.03466", "Yang et al. 2022"),
    "model.logit_cap": f"{paper('2408.00118', 'Gemma 2')}, with 30",
    "model.init.outputs": f"depth_scaled: GPT-2; zero: nanochat; deepnorm: {paper('2203.00555', 'Wang et al. 2022')}",
    "training.optimizer": f"adamw: {paper('1711.05101', 'Loshchilov & Hutter 2017')}; muon: "
                          f"[Jordan 2024](https://kellerjordan.github.io/posts/muon/); lion: "
                          f"{paper('2302.06675', 'Chen et al. 2023')}",
    "training.schedule": f"one_cycle: {paper('1708.07120', 'Smith & Topin 2017')}; wsd: "
                         f"{paper('2404.06395', 'MiniCPM')}",
    "training.decay_form": f"sqrt: {paper('2405.18392', 'Hägele et al. 2024')}",
    "training.weight_decay_form": f"independent: {paper('2309.14322', 'Wortsman et al. 2023')}",
    "training.muon.adjust": f"original: Jordan; match_rms: {paper('2502.16982', 'Moonlight')}",
    "training.label_smoothing": paper("1512.00567", "Szegedy et al. 2015"),
    "training.rule": f"feedback_alignment: {paper('1411.0247', 'Lillicrap et al. 2014')}; direct: "
                     f"{paper('1609.01596', 'Nøkland 2016')}",
    "training.z_loss": f"{paper('2204.02311', 'PaLM')}, with 0.0001",
}


def part_of(path):
    """Name of the path's part; None for a field that isn't a switch."""
    if path in NO_SWITCHES:
        return None
    parts = [name for name, places in PARTS
             if any(path == place or (place.endswith(".") and path.startswith(place)) for place in places)]
    if len(parts) != 1:
        raise SystemExit(f"docs/switch_table.py: PARTS needs one part with {path}; it has {len(parts)}")
    return parts[0]


def sections(fields):
    """The page's lines. `fields` has the path of each field of model and training, and its lines without a source."""
    unknown = SOURCES.keys() - dict(fields).keys()
    if unknown:
        raise SystemExit(f"docs/switch_table.py: SOURCES has no field {', '.join(sorted(unknown))}")
    lines = []
    for part, _ in PARTS:
        lines += [f"### {part}", ""]
        for path, item in fields:
            if part_of(path) == part:
                lines += item(f"Source: {SOURCES[path]}." if path in SOURCES else "")
        lines.append("")
    return "\n".join(lines).rstrip()
