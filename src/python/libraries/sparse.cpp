// Sparse matrices, and solvers of linear functions, including Python functions.
#include <tessera/sparse.hpp>
#include <tessera/sparse/krylov.hpp>

#include <optional>
#include <string>
#include <utility>

#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

using sparse::Csr;
using sparse::LinearMap;

// A sparse or dense matrix, a preconditioner, or a function of an array.
LinearMap map_of(const py::object& given) {
  if (py::isinstance<LinearMap>(given)) return given.cast<LinearMap>();
  if (py::isinstance<Csr>(given)) return LinearMap(given.cast<Csr>());
  Value matrix;
  if (read_value(given, matrix)) return LinearMap(matrix.array);
  if (!PyCallable_Check(given.ptr()))
    throw py::type_error("a linear function is a Csr, a matrix, or a function of an array; not " +
                         py::repr(given).cast<std::string>());
  return LinearMap([held = kept(given)](const Array& x) {
    const py::gil_scoped_acquire locked;
    return (*held)(x).cast<Array>();
  });
}
std::optional<LinearMap> maybe_map(const py::object& given) {
  return given.is_none() ? std::nullopt : std::optional<LinearMap>(map_of(given));
}

using Solver = sparse::Solution (*)(const LinearMap&, const Operand&, sparse::SolverOptions);
void bind_solver(py::module_& m, const char* name, Solver solver, const char* doc) {
  m.def(
      name,
      [solver](const py::object& a, Value b, double tol, double atol, int maxiter, int restart,
               std::optional<Value> x0, const py::object& preconditioner) {
        const LinearMap map = map_of(a);
        sparse::SolverOptions options{tol, atol, maxiter, restart, std::nullopt, maybe_map(preconditioner)};
        if (x0) options.x0 = x0->array;
        const auto found = [&] {
          const py::gil_scoped_release unlocked;
          return solver(map, b, options);
        }();
        return named_tuple("Solution", "x iterations residual converged",
                           py::make_tuple(found.x, found.iterations, found.residual, found.converged));
      },
      py::arg("a"), py::arg("b"), py::arg("tol") = 1e-5, py::arg("atol") = 0.0, py::arg("maxiter") = 0,
      py::arg("restart") = 20, py::arg("x0") = py::none(), py::arg("preconditioner") = py::none(), doc);
}

py::object eigenpairs_of(const sparse::Eigenpairs& found) {
  return named_tuple("Eigenpairs", "w v iterations residual",
                     py::make_tuple(found.w, found.v, found.iterations, found.residual));
}

void bind_eigensolvers(py::module_& m) {
  m.def(
      "lobpcg",
      [](const py::object& a, Value x0, bool largest, double tol, int maxiter,
         const py::object& preconditioner) {
        const LinearMap map = map_of(a);
        const sparse::EigenOptions options{largest, tol, maxiter, maybe_map(preconditioner)};
        return eigenpairs_of([&] {
          const py::gil_scoped_release unlocked;
          return sparse::lobpcg(map, x0, options);
        }());
      },
      py::arg("a"), py::arg("x0"), py::arg("largest") = false, py::arg("tol") = 1e-6,
      py::arg("maxiter") = 200, py::arg("preconditioner") = py::none(),
      "k extreme eigenvalues of a Hermitian function from the columns of x0 (n, k).");
  m.def(
      "lanczos",
      [](const py::object& a, Value v0, int k, int steps, bool largest, double tol) {
        const LinearMap map = map_of(a);
        sparse::EigenOptions options;
        options.largest = largest;
        options.tol = tol;
        return eigenpairs_of([&] {
          const py::gil_scoped_release unlocked;
          return sparse::lanczos(map, v0, k, steps, options);
        }());
      },
      py::arg("a"), py::arg("v0"), py::arg("k"), py::arg("steps"), py::arg("largest") = false,
      py::arg("tol") = 1e-6, "k extreme eigenvalues of a Hermitian function from `steps` Lanczos vectors.");
}

void bind_matrix(py::module_& m) {
  py::class_<Csr>(m, "Csr", "A sparse matrix, compressed by rows, which are split over mesh axes.")
      .def_property_readonly(
          "shape", [](const Csr& a) { return tuple_of(a.shape()); }, "(rows, columns).")
      .def_property_readonly("dtype", &Csr::dtype, "Of the values.")
      .def_property_readonly("entries", &Csr::entries, "Stored ones, zeros among them.")
      .def_property_readonly("sharding", &Csr::sharding, "Of a vector with an element for each row.")
      .def_property_readonly(
          "values", [](const Csr& a) { return a.values(); }, "The entries as they are stored.")
      .def_property_readonly("entry_rows", &Csr::entry_rows, "The row of each of values; -1 behind them.")
      .def_property_readonly("entry_columns", &Csr::entry_columns, "The column of each of values.")
      .def_property_readonly("T", &Csr::T, "The transposed matrix.")
      .def_property_readonly("exchanged", &Csr::exchanged,
                             "The most elements of x that one rank takes from others in a product.")
      .def(
          "with_values", [](const Csr& a, Value values) { return a.with_values(values); }, py::arg("values"),
          "The same pattern with other values.")
      .def(
          "__matmul__", [](const Csr& a, Value x) { return sparse::matmul(a, x); }, py::is_operator())
      .def("__repr__", [](const Csr& a) {
        return "Csr(shape=" + to_string(a.shape()) + ", dtype=" + name(a.dtype()) +
               ", entries=" + std::to_string(a.entries()) + ")";
      });
  py::class_<LinearMap>(m, "LinearMap").def("__call__", [](const LinearMap& map, Value x) {
    const py::gil_scoped_release unlocked;
    return map(x.array);
  });
}

void bind_file_matrix(py::module_& m) {
  using sparse::FileMatrix;
  py::class_<FileMatrix>(m, "FileMatrix", "A sparse matrix that stays in its file.")
      .def_property_readonly(
          "shape", [](const FileMatrix& a) { return tuple_of(a.shape); }, "(rows, columns).")
      .def_property_readonly(
          "rows", [](const FileMatrix& a) { return a.rows; }, "Of each stored entry.")
      .def_property_readonly(
          "columns", [](const FileMatrix& a) { return a.columns; }, "Of each stored entry.")
      .def_property_readonly(
          "values", [](const FileMatrix& a) { return a.values; }, "Of each stored entry.")
      .def_property_readonly("T", &FileMatrix::T, "The transposed matrix.")
      .def(
          "__matmul__", [](const FileMatrix& a, Value x) { return sparse::matmul(a, x); }, py::is_operator());
  m.def(
      "open",
      [](const PathValue& path, const std::string& group) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return sparse::open(path, group, where);
      },
      py::arg("path"), py::arg("group") = "",
      "A matrix in a .npz file that is not compressed, a Zarr store or a group of an HDF5 file, for "
      "io.compute and io.store: a @ x, a.T @ x, ts.sum(a.values). Collective over all ranks.");
}

sparse::Entries entries_of(const py::object& returned) {
  const py::tuple three = py::tuple(returned);
  if (three.size() != 3) throw py::type_error("from_rows: the function must return (rows, columns, values)");
  return {three[0].cast<std::vector<std::int64_t>>(), three[1].cast<std::vector<std::int64_t>>(),
          host_array(three[2])};
}

void bind_making(py::module_& m) {
  m.def(
      "from_coordinates",
      [](ShapeValue shape, Value rows, Value columns, Value values, ShardingValue sharding) {
        const py::gil_scoped_release unlocked;
        return sparse::from_coordinates(shape.value, rows, columns, values, *sharding.value);
      },
      py::arg("shape"), py::arg("rows"), py::arg("columns"), py::arg("values"), py::arg("sharding"),
      "Entry k is values[k] at (rows[k], columns[k]). Collective over all ranks.");
  m.def(
      "from_rows",
      [](ShapeValue shape, ShardingValue sharding, py::function entries) {
        const auto where = here();
        const auto call = [&](Range range) {
          const py::gil_scoped_acquire locked;
          return entries_of(entries(range.start, range.stop));
        };
        const py::gil_scoped_release unlocked;
        return sparse::from_rows(shape.value, *sharding.value, call, where);
      },
      py::arg("shape"), py::arg("sharding"), py::arg("entries"),
      "From entries(begin, end) -> (rows, columns, values) of a range of rows. Collective over all ranks.");
  m.def(
      "from_dense",
      [](Value x, ShardingValue sharding) {
        const py::gil_scoped_release unlocked;
        return sparse::from_dense(x, *sharding.value);
      },
      py::arg("x"), py::arg("sharding"), "What is not 0 in a dense matrix. Collective over all ranks.");
}

void bind_loader(py::module_& m, const char* name,
                 sparse::Csr (*load)(const std::string&, const Sharding&, std::source_location),
                 const char* doc) {
  m.def(
      name,
      [load](const PathValue& path, ShardingValue sharding) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return load(path, *sharding.value, where);
      },
      py::arg("path"), py::arg("sharding"), doc);
}
void bind_saver(py::module_& m, const char* name,
                void (*save)(const std::string&, const Csr&, std::source_location), const char* doc) {
  m.def(
      name,
      [save](const PathValue& path, const Csr& a) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        save(path, a, where);
      },
      py::arg("path"), py::arg("a"), doc);
}

void bind_files(py::module_& m) {
  bind_loader(m, "load_matrix_market", &sparse::load_matrix_market,
              "A Matrix Market file of coordinates, of which each rank reads its part. Collective over all "
              "ranks.");
  bind_loader(
      m, "load_npz", &sparse::load_npz,
      "A file of scipy.sparse.save_npz (csr, csc, bsr, coo), of which each rank reads its share; rows "
      "are split by the sharding. IoError for arrays that contradict each other. Collective over all "
      "ranks.");
  bind_loader(m, "load_zarr", &sparse::load_zarr,
              "A sparse matrix in a group of a Zarr store, as AnnData writes it (\"cells.zarr/X\"); as "
              "load_npz. Collective over all ranks.");
  m.def(
      "load_hdf5",
      [](const PathValue& path, const std::string& group, ShardingValue sharding) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return sparse::load_hdf5(path, group, *sharding.value, where);
      },
      py::arg("path"), py::arg("group"), py::arg("sharding"),
      "A sparse matrix in a group of an HDF5 file, as AnnData writes it (\"X\"); as load_npz. Collective "
      "over all ranks.");
  bind_saver(m, "save_matrix_market", &sparse::save_matrix_market,
             "Writes the entries, each rank its own. Collective over all ranks.");
  bind_saver(
      m, "save_npz", &sparse::save_npz,
      "Writes a file for scipy.sparse.load_npz: csr, or csc of a transposed matrix. Collective over all "
      "ranks.");
  bind_saver(m, "save_zarr", &sparse::save_zarr,
             "Writes a Zarr store that is one matrix, as AnnData stores it. Collective over all ranks.");
  m.def(
      "save_hdf5",
      [](const PathValue& path, const std::string& group, const Csr& a) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        sparse::save_hdf5(path, group, a, where);
      },
      py::arg("path"), py::arg("group"), py::arg("a"),
      "Writes a matrix as a group of an HDF5 file, as AnnData stores it; the file keeps its other objects. "
      "Collective over all ranks.");
}

}  // namespace

void bind_sparse(py::module_& m) {
  py::module_ part = m.def_submodule("sparse");
  bind_matrix(part);
  bind_file_matrix(part);
  bind_making(part);
  bind_files(part);
  part.def(
      "matmul", [](const Csr& a, Value x) { return sparse::matmul(a, x); }, py::arg("a"), py::arg("x"),
      "a x for a vector or for the columns of x.");
  part.def(
      "diagonal", [](const Csr& a) { return sparse::diagonal(a, here()); }, py::arg("a"), "The diagonal.");
  part.def(
      "to_dense", [](const Csr& a) { return sparse::to_dense(a, here()); }, py::arg("a"),
      "All elements: for small matrices.");
  part.def(
      "jacobi", [](const Csr& a) { return sparse::jacobi(a, here()); }, py::arg("a"),
      "Division by the diagonal, as a preconditioner.");
  part.def(
      "block_jacobi", [](const Csr& a) { return sparse::block_jacobi(a, here()); }, py::arg("a"),
      "Incomplete LU of each rank's diagonal block, as a preconditioner.");
  bind_solver(part, "cg", &sparse::cg, "Conjugate gradients, for Hermitian positive definite a.");
  bind_solver(part, "gmres", &sparse::gmres, "Restarted GMRES, for any a.");
  bind_solver(part, "bicgstab", &sparse::bicgstab, "BiCGSTAB, for any a, in little memory.");
  bind_eigensolvers(part);
}

}  // namespace tessera::python
