"""Client of an ablate server: submit experiments, and read results as DataFrames and arrays.

>>> import ablate
>>> lab = ablate.connect()
>>> experiment = lab.submit("placement.yaml").wait()
>>> frame = experiment.frame()
>>> print(experiment.compare().message.rows[0].label)
pre

The messages of the server's API are in `ablate.v1`; `ablate.torch` makes PyTorch modules of
checkpoints. Errors of calls and of their arguments are `ablate.Error`s.
"""
from ablate.analysis import Analysis, Array
from ablate.comparison import Comparison
from ablate.errors import (Conflict, DataLoss, DeadlineExceeded, Error, Exhausted, FieldProblem,
                           InvalidArgument, NotFound, PermissionDenied, Unavailable)
from ablate.experiment import Experiment
from ablate.figure import Figure
from ablate.lab import Lab, Plan, connect, judge
from ablate.run import Checkpoint, Run, Series

__all__ = [
    "Analysis", "Array", "Checkpoint", "Comparison", "Conflict", "DataLoss", "DeadlineExceeded",
    "Error", "Exhausted", "Experiment", "Figure", "FieldProblem", "InvalidArgument", "Lab",
    "NotFound", "PermissionDenied", "Plan", "Run", "Series", "Unavailable", "connect", "judge",
]
