"""Tests the line of progress, which shows what snapshots have."""
import unittest

from google.protobuf.duration_pb2 import Duration

from ablate import _display
from ablate.v1 import experiment_pb2


class ProgressTest(unittest.TestCase):
    def line(self, **fields):
        progress = _display.Progress("exp-1")
        event = experiment_pb2.ExperimentEvent(**fields)
        event.counts.running, event.counts.done = 2, 1
        progress.update(event)
        return progress._line()

    def test_shows_counts_speed_time_left_and_the_newest_value(self):
        snapshot = experiment_pb2.Snapshot(
            steps_per_second=1234.5, time_left=Duration(seconds=13),
            newest=experiment_pb2.CellValue(cell="a", key="eval/loss", value=2.123456))
        self.assertEqual(
            self.line(snapshot=snapshot),
            "exp-1  2 running, 1 done   1,234 steps/s, 13 s left   eval/loss 2.123")
        self.assertIn("1 done   STALLED: disk full   eval/loss",
                      self.line(snapshot=snapshot, stalled="disk full"))

    def test_shows_the_counts_alone_while_nothing_else_is_known(self):
        self.assertEqual(self.line(), "exp-1  2 running, 1 done")

    def test_shows_the_analyses_that_are_left(self):
        analyses = experiment_pb2.AnalysisCounts(planned=True, queued=2, running=1, done=4)
        self.assertEqual(self.line(analyses=analyses), "exp-1  2 running, 1 done   3 analyses left")


if __name__ == "__main__":
    unittest.main()
