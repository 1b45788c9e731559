"""Logistic regressions of scikit-learn for the parity tests of `probe`.

fit(FOLDER) fits one to each set of labels of each case, and writes its accuracy on the scored words.
"""

import glob
import json
import os
import warnings

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler


def accuracy(vectors, labels, training, c):
    # With two classes scikit-learn has one vector of weights, whose penalty is twice as large.
    c *= 2 if len(set(labels[:training])) == 2 else 1
    scaler = StandardScaler().fit(vectors[:training])
    probe = LogisticRegression(C=c, tol=1e-6, max_iter=20000)
    probe.fit(scaler.transform(vectors[:training]), labels[:training])
    return probe.score(scaler.transform(vectors[training:]), labels[training:])


def fit(folder):
    warnings.simplefilter("error")  # a fit that doesn't converge
    for path in sorted(glob.glob(os.path.join(folder, "*.case.safetensors"))):
        with safe_open(path, "np") as file:
            case = json.loads(file.metadata()["case"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        kinds = {name: labels for name, labels in tensors.items() if not name.startswith("vectors/")}
        answers = {f"{kind}/{place}": accuracy(tensors[f"vectors/{place}"], labels, case["training"], case["c"])
                   for place in case["places"] for kind, labels in kinds.items()}
        save_file({name: torch.tensor(value, dtype=torch.float64) for name, value in answers.items()},
                  path.replace(".case.", ".answer."))
