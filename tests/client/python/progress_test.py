"""Tests the line of progress, with a clock of the test's own."""
import unittest
from unittest import mock

from ablate import _display
from ablate.v1 import experiment_pb2, run_pb2

RUNNING, QUEUED, DONE = run_pb2.RunState.RUNNING, run_pb2.RunState.QUEUED, run_pb2.RunState.DONE


class ProgressTest(unittest.TestCase):
    def setUp(self):
        self.now = 1000.0
        clock = mock.patch.object(_display.time, "monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)
        self.progress = _display.Progress("exp-1", "eval/loss")

    def tell(self, run, state, step, seconds=1.0):
        self.now += seconds
        self.progress.update(
            experiment_pb2.ExperimentEvent(cell=run, run=run, state=state, step=step, steps=1000))

    def test_shows_the_speed_and_the_time_left_of_all(self):
        self.tell("a", RUNNING, 500)
        self.tell("b", QUEUED, 0, 0)
        self.assertNotIn("left", self.progress._line())
        self.tell("a", RUNNING, 700, 2)
        self.assertIn("100 steps/s, 13 s left", self.progress._line())

    def test_takes_the_time_left_from_the_run_that_still_trains(self):
        self.tell("fast", RUNNING, 0)
        self.tell("slow", QUEUED, 0, 0)
        self.tell("fast", DONE, 1000, 2)
        for step in (1, 2, 3):
            self.tell("slow", RUNNING, step)
        self.assertIn("201 steps/s, 997 s left", self.progress._line())

    def test_is_not_misled_by_a_slow_run_that_has_ended(self):
        self.tell("slow", RUNNING, 900)
        self.tell("fast", QUEUED, 0, 0)
        self.tell("slow", DONE, 1000, 15)
        self.tell("fast", RUNNING, 100)
        self.tell("fast", RUNNING, 200)
        self.assertIn(" 8 s left", self.progress._line())


if __name__ == "__main__":
    unittest.main()
