# SPDX-License-Identifier: Apache-2.0
"""XGBoost's wheel against its CPU: the same trees. Every value is a bin of its own (max_bin), and children may have any weight: the GPU's search
takes the best split of 32 bins before it looks at the least weight, the CPU's after."""
import numpy as np
import xgboost

from check import check

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((400, 10)).astype(np.float32)
X_WITH_GAPS = np.where(X > 1.5, np.nan, X)


def predictions(device, x, y, **options):
    options = {"device": device, "tree_method": "hist", "max_depth": 4, "max_bin": 512, "min_child_weight": 0, "seed": 0, **options}
    return xgboost.train(options, xgboost.DMatrix(x, y), 5).predict(xgboost.DMatrix(x))


def same(x, y, **options):
    return np.allclose(predictions("cpu", x, y, **options), predictions("cuda", x, y, **options), 1e-3, 1e-3)


check("regression", lambda: same(X, X[:, 0] * 2 + X[:, 1], objective="reg:squarederror"))
check("two classes", lambda: same(X, X[:, 0] + X[:, 1] ** 2 > 1, objective="binary:logistic"))
check("three classes", lambda: same(X, np.digitize(X[:, 0], [-0.5, 0.5]), objective="multi:softprob", num_class=3))
check("values that are missing", lambda: same(X_WITH_GAPS, X[:, 0] * 2 + X[:, 1], objective="reg:squarederror"))
