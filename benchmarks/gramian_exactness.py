"""How exact is a Gramian made in float32: one parameter at a time, or from one flat matrix?

Rows of float32 gradients of 8 tasks; relative errors ‖Ĝ - G‖ / ‖G‖ to the product in float64.
`python -m benchmarks.gramian_exactness` prints a line for each workload.
"""

import torch
from torch import Tensor

import gradwright as gw
from benchmarks._workloads import WORKLOADS
from gradwright.engine.basics.inner_products import gramian_of

N_TASKS = 8


def errors(rows: list[Tensor]) -> tuple[float, float]:
    """Of the sum over parameters, and of the flat product, from rows [parameter][task, ...]."""
    flat = torch.cat([row.flatten(1) for row in rows], dim=1)
    exact = flat.double() @ flat.double().T
    by_parameter = gramian_of([list(row) for row in rows], len(flat))
    found = [by_parameter, (flat @ flat.T).double()]
    one, other = (float((gramian - exact).norm() / exact.norm()) for gramian in found)
    return one, other


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    print(f"{'':4} {'by parameter':>14} {'flat':>10}  times")
    for name, make in WORKLOADS.items():
        torch.manual_seed(0)
        work = make(N_TASKS)
        rows = gw.jacobian(work.losses(), work.shared())
        one, other = errors([row for row in rows if row is not None])
        print(f"{name:4} {one:14.1e} {other:10.1e}  {other / one:5.0f}")


if __name__ == "__main__":
    main()
