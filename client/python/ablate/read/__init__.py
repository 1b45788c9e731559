"""Reads results that other tools wrote: runs with their settings and series.

>>> import ablate.read
>>> frame = ablate.read.read("wandb")  # doctest: +SKIP
>>> frame.runs[0].settings  # doctest: +SKIP
{'norm': 'post', 'seed': 0}

The readers parse the tools' files themselves, so the tools needn't be installed. A file that ends
early is read up to its first damaged record; the frame's notes say so. A file of another kind is an
`ablate.InvalidArgument`. `python -m ablate.read PATH…` writes the messages of `Frame.messages`.
"""
from ablate.read._autoresearch import autoresearch
from ablate.read._detect import hydra, read
from ablate.read._frame import Frame, Run, Series
from ablate.read._inspect import inspect
from ablate.read._lightning import lightning
from ablate.read._lm_eval import lm_eval
from ablate.read._mlflow import mlflow
from ablate.read._optuna import optuna
from ablate.read._table import rows
from ablate.read._tensorboard import tensorboard
from ablate.read._trackio import trackio
from ablate.read._transformers import trainer_state
from ablate.read._wandb import wandb

__all__ = [
    "Frame", "Run", "Series", "autoresearch", "hydra", "inspect", "lightning", "lm_eval", "mlflow",
    "optuna", "read", "rows", "tensorboard", "trackio", "trainer_state", "wandb",
]
