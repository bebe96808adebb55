"""What old programs call in `torch.sparse`."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import torch
x = torch.sparse.FloatTensor(torch.LongTensor([[0, 1], [1, 0]]), torch.FloatTensor([2.0, 3.0]), torch.Size([2, 2]))
assert torch.spmm(x, torch.ones(2, 1)).tolist() == [[2.0], [3.0]]
assert isinstance(x, torch.sparse.FloatTensor) and not isinstance(x, torch.FloatTensor)
assert not isinstance(torch.ones(1), torch.sparse.FloatTensor)
assert torch.sparse.LongTensor(2, 3).shape == (2, 3)
assert torch.sparse.mm(x.to_sparse_csr(), torch.ones(2, 1)).sum() == 5
from torch.masked import masked_tensor
from torch.nested import nested_tensor
assert len(nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)) == 2
print("agreed")
"""


def test_old_constructors_work_under_the_alias(tmp_path: object) -> None:
    path = f"{tmp_path}/program.py"
    with open(path, "w") as file:
        file.write(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "votive.torch", path], capture_output=True, text=True, check=False)
    assert done.stdout == "agreed\n", done.stderr
