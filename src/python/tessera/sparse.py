"""Sparse matrices whose rows are split over mesh axes, and iterative solvers of any linear function: a Csr, a matrix, or a function of an array."""
from ._core.sparse import (  # noqa: F401
    Csr, FileMatrix, LinearMap, bicgstab, block_jacobi, cg, diagonal, from_coordinates, from_dense, from_rows, gmres, jacobi, lanczos, load_hdf5, load_matrix_market,
    load_npz, load_zarr, lobpcg, matmul, open, save_hdf5, save_matrix_market, save_npz, save_zarr, to_dense)

__all__ = ["Csr", "FileMatrix", "LinearMap", "bicgstab", "block_jacobi", "cg", "diagonal", "from_coordinates", "from_dense", "from_rows", "gmres", "jacobi", "lanczos",
           "load_hdf5", "load_matrix_market", "load_npz", "load_zarr", "lobpcg", "matmul", "open", "save_hdf5", "save_matrix_market", "save_npz", "save_zarr",
           "to_dense"]
