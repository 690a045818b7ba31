import pytest
import torch
from torch.nn.functional import cross_entropy

from jorth.kge.loss import logistic, softmax


def smooth(positive, negative):
    return softmax(positive, negative, 0.2)


def test_losses_are_their_formulas():
    positive, negative = torch.randn(4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    s, log = torch.sigmoid, torch.log
    expected = -(log(s(positive)) + log(1 - s(negative)).sum(1)).mean()
    assert abs(logistic(positive, negative) - expected) < 1e-13
    both = torch.cat([positive[:, None], negative], 1)
    zeros = torch.zeros(4, dtype=torch.int64)
    for smoothing in (0.0, 0.3):
        expected = cross_entropy(both, zeros, label_smoothing=smoothing)
        assert abs(softmax(positive, negative, smoothing) - expected) < 1e-13


@pytest.mark.parametrize("loss", [logistic, softmax, smooth])
def test_what_is_left_out_has_no_part(loss):
    positive = torch.tensor([0.5, 2.0], requires_grad=True)
    negative = torch.tensor([[1.0, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    value = loss(positive, negative)
    value.backward()
    alone = (loss(positive[:1], negative[:1, :1]) + loss(positive[1:], torch.zeros(1, 0))) / 2
    assert abs(value - alone) < 1e-6
    assert positive.grad.isfinite().all()
    assert (negative.grad.nan_to_num(7.0).ravel()[1:] == 0).all()


@pytest.mark.parametrize("loss", [logistic, softmax])
def test_large_scores_do_not_overflow(loss):
    value = loss(torch.tensor([-1e4]), torch.tensor([[1e4, -1e4]]))
    assert value.isfinite()
    assert value > 1e4
