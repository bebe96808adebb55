"""Records for questions about tensors; the answers, plain Python values, are in test_inquiry.py."""

from tests.ops.catalog import S, op

X = [(S(2, 3),), (S(),)]
PAIRS = [(S(2, 3), S(2, 3)), (S(2, 3), S(3))]
NUMBER = [((1.0,), TypeError)]
NUMBERS = [((S(3), 1.0), TypeError), ((1.0, S(3)), TypeError)]

RECORDS = [
    op("is_floating_point", samples=X, dtypes="bifc", grad=False, errors=NUMBER),
    op("is_complex", samples=X, dtypes="bifc", grad=False, errors=NUMBER),
    op("is_signed", samples=X, dtypes="bifc", grad=False, errors=NUMBER),
    op("is_conj", samples=X, grad=False, errors=NUMBER),
    op("is_neg", samples=X, grad=False, errors=NUMBER),
    op("is_inference", samples=X, grad=False, errors=NUMBER),
    op("is_nonzero", samples=[(S(1),), (S(),)], grad=False, errors=[((S(2),), RuntimeError)]),
    op("is_same_size", samples=PAIRS, grad=False, errors=NUMBERS),
    op("is_tensor", samples=X, grad=False),
    op("numel", samples=X, grad=False, errors=NUMBER),
    op("result_type", samples=[*PAIRS, (S(2), 1.5)], grad=False, errors=[((S(3), "x"), TypeError)]),
    op("equal", samples=PAIRS, grad=False, errors=NUMBERS),
    op("allclose", samples=PAIRS, grad=False, errors=[*NUMBERS, ((S(3), S(4)), RuntimeError)]),
]
