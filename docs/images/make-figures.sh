#!/usr/bin/env bash
# Makes figures/*.svg, the pictures of docs/reference/figures.md: trains three small experiments
# (152 runs, about a minute on two cores) on a personal server of its own and draws them.
# Usage: PATH=$PWD/build/bin:$PATH docs/images/make-figures.sh
set -euo pipefail
images=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
export ABLATE_HOME=$folder/home
unset ABLATE_SERVER
finish() {
  ablate down
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
cp "$images/../../examples/data/names.txt" .

# A tuned axis, and windows of the training loss.
cat > norms.yaml <<'END'
name: norms
question: Does norm placement matter once each variant has its own learning rate?
base:
  task: {documents: {dataset: names.txt, held_out: 1000}}
  model: {layers: 4, width: 16, heads: 4, context: 16, norm: {kind: rms}}
  training: {steps: 500, batch: 1, schedule: linear}
  evaluation: {every: 25}
axes:
  - {name: norm, field: model.norm.placement, values: [pre, post, none]}
  - {name: lr, field: training.learning_rate, values: [0.001, 0.003, 0.01, 0.03], tune: true}
seeds: 0..7
report:
  summaries:
    - {key: train/loss, first: 100}
    - {key: train/loss, last: 100}
END

# A numeric axis, crossed with another one.
cat > widths.yaml <<'END'
name: widths
question: Does the norm help more in wider models?
base:
  task: {documents: {dataset: names.txt, held_out: 1000}}
  model: {layers: 2, heads: 4, context: 16, norm: {kind: rms}}
  training: {steps: 500, batch: 1, learning_rate: 0.01, schedule: linear}
axes:
  - {name: norm, field: model.norm.placement, values: [pre, none]}
  - {field: model.width, values: [8, 16, 32, 64]}
seeds: 0..5
END

# Metrics by block, checkpoints and analyses.
cat > inside.yaml <<'END'
name: inside
question: What differs inside pre-norm and post-norm models?
base:
  task: {documents: {dataset: names.txt, held_out: 1000}}
  model: {layers: 6, width: 16, heads: 2, context: 16, norm: {kind: rms}}
  training:
    steps: 300
    batch: 4
    learning_rate: 0.005
    schedule: linear
    checkpoints: [0, 25, 50, 100, 150, 200, 250, -1]
  evaluation: {record: [gradient_by_block]}
axes:
  - {name: norm, field: model.norm.placement, values: [pre, post]}
seeds: 0..3
analyses:
  - {loss_landscape: {directions: 4, points: 21}, inputs: {documents: 32}}
  - {name: plane, loss_landscape: {dims: 2, directions: 1, points: 15}, inputs: {documents: 32}}
  - {spectrum: {site: block.5.output}}
  - {cka: {}}
  - {trajectory: {}}
  - {predictions: {}}
  - {remove: {}}
  - {robustness: {embedding_noise: [0.1, 0.2, 0.4], draws: 3}, inputs: {documents: 200}}
END

ablate up
for experiment in norms widths inside; do ablate submit $experiment.yaml --wait; done
ablate analyze attention inside --prompt isabella --set 'maps=[model]' --label maps > /dev/null

mkdir -p "$images/figures"
draw() {  # NAME EXP KIND [OPTION...]
  ablate figure "${@:2}" -o "$images/figures/$1.svg"
}
draw loss norms loss --key eval/loss
draw windows inside windows
draw curves inside curves
draw forest norms forest --width double
draw difference norms difference
draw axis widths axis
draw sensitivity norms sensitivity
draw summary norms summary
draw depth inside depth
draw landscape inside landscape --key loss_landscape
draw landscape-plane inside landscape --key plane
draw eigenvalues inside eigenvalues
draw matrix inside matrix --key cka
draw attention inside matrix --key maps --width double
draw trajectory inside trajectory
draw levels inside levels --key 'robustness/embedding_noise@*/increase'
draw reliability inside reliability
draw remove inside matrix --key remove
