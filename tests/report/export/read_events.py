"""Reads with TensorBoard's own reader what write_events wrote: checksums, steps, tags, values, times."""
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def check_cell(folder, index):
    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    assert sorted(reader.Tags()["scalars"]) == ["eval/loss", "train/loss"], reader.Tags()
    losses = reader.Scalars("train/loss")
    assert [point.step for point in losses] == list(range(1000))
    assert [point.value for point in losses] == [step * 0.25 - index for step in range(1000)]
    assert {point.wall_time for point in losses} == {1_700_000_000.5}
    last = reader.Scalars("eval/loss")
    assert [point.step for point in last] == [0, 4_000_000_000]
    assert last[0].value == math.inf and math.isnan(last[1].value), last


def check_damage(folder):
    """The reader must notice a flipped bit, or the checksums are not read at all."""
    path = next(folder.glob("events.out.tfevents.*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    try:
        reader.Reload()
    except Exception:  # which one depends on TensorBoard's version
        return
    assert len(reader.Scalars("train/loss")) < 1000, "a damaged file was read to its end"


with tempfile.TemporaryDirectory() as root:
    subprocess.run([sys.argv[1], root], check=True)
    cells = sorted(pathlib.Path(root).iterdir())
    assert [cell.name for cell in cells] == ["pre-s0", "pre-s1"]
    for number, cell in enumerate(cells):
        check_cell(cell, number)
    check_damage(cells[0])
print("2 event files read back")
