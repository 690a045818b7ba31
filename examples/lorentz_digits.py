"""Handwritten digits on a hyperboloid: a network of isometries, trained by JOBCD and Adam.

The 64 pixels become 32 principal components, lifted onto the hyperboloid in 33 dimensions. Two
residual blocks, each an isometry before a tanh, lead to a logistic regression by distances to
hyperplanes. Isometries are trained by JOBCD, all other parameters by Adam. Beside it stand geoopt's
RiemannianAdam on the same network, with our manifold for the isometries, and the logistic
regression alone, ours and that of geoopt's Poincare ball.

    python examples/lorentz_digits.py [steps, 400 by default]
"""

import sys
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import jorth
from jorth.nn import HyperbolicMLR, JOrthogonalLinear, LorentzResidual

try:
    import geoopt
    from geoopt.layers.stereographic import Distance2StereographicHyperplanes
except ImportError:
    geoopt = None

SIG = jorth.Signature.lorentz(33)
BATCH = 128


def digits():
    """Points (1797, 33) and their digits, for training and for testing."""
    data = load_digits()
    space = PCA(32, whiten=True, random_state=0).fit_transform(data.data) / np.sqrt(32)
    points = jorth.ultrahyperbolic.lift(np.column_stack([np.ones(len(space)), space]), SIG)
    points = torch.from_numpy(points).float()
    labels = torch.from_numpy(data.target)
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    return [(points[rows], labels[rows]) for rows in (order[:1400], order[1400:])]


def network():
    """Two residual blocks and a head; all parameters but gates and hyperplanes are isometries."""
    blocks = [
        LorentzResidual(torch.nn.Sequential(JOrthogonalLinear(SIG, seed=k), torch.nn.Tanh()), SIG)
        for k in range(2)
    ]
    return torch.nn.Sequential(*blocks, HyperbolicMLR(SIG, 10))


def isometries(model):
    """The J-orthogonal weights of a model."""
    return [
        W for group in jorth.optim.split_parameters(model).j_orthogonal for W in group["params"]
    ]


def adam(model):
    """Adam for all parameters that are not J-orthogonal."""
    return torch.optim.Adam(jorth.optim.split_parameters(model).others, lr=0.01)


def jobcd_network():
    """The network, with JOBCD for its isometries."""
    model = network()
    jobcd = jorth.optim.JOBCD(jorth.optim.split_parameters(model).j_orthogonal)
    return model, [jobcd, adam(model)]


def geoopt_network():
    """The same network, its isometries as parameters on our manifold in geoopt."""
    from jorth.adapters.geoopt import JOrthogonal

    model = network()
    for module in model.modules():
        if isinstance(module, JOrthogonalLinear):
            module.weight = geoopt.ManifoldParameter(module.weight.detach(), JOrthogonal(SIG))
    return model, [geoopt.optim.RiemannianAdam(isometries(model), lr=0.01), adam(model)]


def our_head():
    """The logistic regression alone."""
    model = HyperbolicMLR(SIG, 10)
    return model, [adam(model)]


class BallHead(torch.nn.Module):
    """geoopt's distances to hyperplanes on the ball, times a learned factor for each class."""

    def __init__(self):
        super().__init__()
        ball = geoopt.PoincareBall()
        self.planes = Distance2StereographicHyperplanes(32, 10, ball=ball, init_std=0.1)
        self.factor = torch.nn.Parameter(torch.ones(10))

    def forward(self, x):
        return self.factor * self.planes(x[:, 1:] / (1 + x[:, :1]))


def geoopt_head():
    """geoopt's distances to hyperplanes, and its optimiser."""
    torch.manual_seed(0)
    model = BallHead()
    return model, [geoopt.optim.RiemannianAdam(model.parameters(), lr=0.01)]


def train(model, optimizers, points, labels, steps):
    """Take so many steps on minibatches, and return the seconds they took."""
    generator = torch.Generator().manual_seed(1)
    start = time.perf_counter()
    for _ in range(steps):
        rows = torch.randint(len(points), (BATCH,), generator=generator)
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(points[rows]), labels[rows]).backward()
        for optimizer in optimizers:
            optimizer.step()
    return time.perf_counter() - start


def main(steps):
    """Train each model, print its row, and return loss, accuracy and residual."""
    (points, labels), (test_points, test_labels) = digits()
    rows = {"network, JOBCD + Adam": jobcd_network, "logistic regression, Adam": our_head}
    if geoopt is None:
        print("geoopt is not installed; its rows are left out")
    else:
        rows["network, geoopt's RiemannianAdam"] = geoopt_network
        rows["geoopt's hyperplanes on the ball"] = geoopt_head
    print(f"{steps} steps of {BATCH} digits\n")
    print(f"{'':34}{'loss':>8}{'accuracy':>10}{'seconds':>9}{'residual':>10}")
    found = {}
    for name, make in rows.items():
        train(*make(), points, labels, 1)  # the first step on a machine compiles for some seconds
        model, optimizers = make()
        seconds = train(model, optimizers, points, labels, steps)
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(model(points), labels).item()
            accuracy = (model(test_points).argmax(dim=1) == test_labels).float().mean().item()
            off = max([jorth.residual(W.detach(), SIG) for W in isometries(model)], default=None)
        residual = "-" if off is None else f"{off:.0e}"
        print(f"{name:34}{loss:8.3f}{accuracy:10.1%}{seconds:9.1f}{residual:>10}")
        found[name] = loss, accuracy, off
    return found


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    loss, accuracy, off = main(steps)["network, JOBCD + Adam"]
    assert off < 1e-5
    assert loss < np.log(10)
    assert steps < 400 or accuracy > 0.9
