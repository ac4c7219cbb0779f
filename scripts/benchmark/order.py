"""Which rows come first, at which rank counts, and which run once more as on a CPU with AVX2 only."""
import fnmatch
import pathlib
import re
from typing import NamedTuple


class Row(NamedTuple):
    name: str
    ranks: int
    avx2: bool = False

    @property
    def written(self):
        """The name in results."""
        return self.name + "_avx2" if self.avx2 else self.name


# In order of importance: names, rank counts.
FIRST = [
    ("jit_call_of_10_*", (8, 2, 1)),
    ("gradient_*", (2, 8, 1)),
    ("product_f64_4096_row_row", (2, 4)),
    ("fft_256^3_complex128_natural", (2, 4)),
    ("linalg_solve_f64_4096", (2, 4, 1)),
    ("linalg_cholesky_f64_4096", (2, 4)),
    ("linalg_qr_f64_2048", (2,)),
    ("tanh_exp_chain_*", (2, 1)),
    ("chain_of_16_*", (1,)),
    ("chain_of_8_*", (2, 1)),
    ("reshard_*", (2, 4)),
    ("einsum_*", (2, 1)),
    ("checkpoint_*", (2,)),
    ("first_eval_*", (2, 1)),
    ("cumsum*", (2,)),
    ("stencil*", (2,)),
    ("sort*", (2,)),
    ("argsort*", (2,)),
    ("convolve*", (2,)),
    ("histogram*", (2,)),
    ("spmv*", (2,)),
    ("random_*", (2, 1)),
    ("sin_*", (2,)),
    ("matmul_*", (1, 2)),
    ("fft_128*", (2, 4)),
    ("linalg_cholesky_f64_2048", (2,)),
    ("linalg_solve_f64_2048", (2,)),
    ("linalg_qr_f64_4096", (2,)),
    ("linalg_solve_f64_10000x16x16", (2, 1)),
    ("product_f64_4096_block_block", (2, 4)),
    ("product_batch_*", (2,)),
    ("product_217x217x43417_*", (2,)),
    ("fft_*", (2,)),
    ("linalg_solve_f64_8192", (2,)),
    ("linalg_cholesky_f64_8192", (2,)),
    ("numpy_*", (1,)),
    ("one_op_*", (1,)),
    ("agreement_*", (2, 8)),
    ("jit_*", (1, 2)),
    ("fori_*", (2,)),
    ("all_reduce_*", (2, 8)),
    ("product_f64_2048_*", (2,)),
]
# Block sizes and vector widths are chosen by what the CPU does: these are looked at without AVX-512 as well.
AVX2 = ["chain_of_16_*", "tanh_exp_chain_*", "sin_*", "matmul_local_f32_2048", "linalg_cholesky_f64_4096", "linalg_solve_f64_4096", "fft_256^3_complex128_natural"]
REST = (1, 2)
# They print how algorithms rank, without a time to compare.
UNCOMPARED = "product_ranking_*"


def queue(names_at, counts=None):
    """Every row once. names_at: rank count -> the names that exist there; counts: only these rank counts."""
    rows = []

    def add(pattern, ranks, avx2=False):
        for count in counts or ranks:
            rows.extend(Row(name, count, avx2) for name in names_at.get(count, []) if fnmatch.fnmatchcase(name, pattern))

    for pattern, ranks in FIRST:
        add(pattern, ranks)
    for pattern in AVX2:
        add(pattern, next(r for p, r in FIRST if fnmatch.fnmatchcase(pattern, p))[:1], True)
    add("*", REST)
    return list(dict.fromkeys(row for row in rows if not fnmatch.fnmatchcase(row.name, UNCOMPARED)))


def rank_counts(counts=None):
    return sorted(set(counts or [count for _, ranks in FIRST for count in ranks]))


def numpy_names():
    """The rows of numpy_rows.py, without what it imports."""
    text = pathlib.Path(__file__).with_name("numpy_rows.py").read_text()
    return [f"numpy_{name}" for name in re.findall(r'^(?:same|@?row)\("(\w+)"', text, re.MULTILINE)]
