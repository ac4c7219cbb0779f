#include "ops/factor/scalapack/scalapack.hpp"

#include <algorithm>
#include <array>

namespace tessera::factor {
namespace {

using kernels::c32;
using kernels::c64;
using Descriptor = std::array<int, 9>;

extern "C" {
int sys2blacs_handle_(int* communicator);
void free_blacs_system_handle_(int* handle);
void blacs_gridmap_(int* context, const int* ranks, const int* ld, const int* rows, const int* columns);
void blacs_gridexit_(int* context);
void psgesvd_(const char*, const char*, const int*, const int*, float*, const int*, const int*, const int*,
              float*, float*, const int*, const int*, const int*, float*, const int*, const int*, const int*,
              float*, const int*, int*);
void pdgesvd_(const char*, const char*, const int*, const int*, double*, const int*, const int*, const int*,
              double*, double*, const int*, const int*, const int*, double*, const int*, const int*,
              const int*, double*, const int*, int*);
void pcgesvd_(const char*, const char*, const int*, const int*, c32*, const int*, const int*, const int*,
              float*, c32*, const int*, const int*, const int*, c32*, const int*, const int*, const int*,
              c32*, const int*, float*, int*);
void pzgesvd_(const char*, const char*, const int*, const int*, c64*, const int*, const int*, const int*,
              double*, c64*, const int*, const int*, const int*, c64*, const int*, const int*, const int*,
              c64*, const int*, double*, int*);
}

const int one = 1;

// A BLACS grid for the duration of one call. Collective.
class Context {
 public:
  explicit Context(const Grid& grid) {
    int communicator = comm::fortran_handle(*grid.all);
    handle_ = sys2blacs_handle_(&communicator);
    context_ = handle_;
    auto ascending = grid.all->device_ids();
    std::sort(ascending.begin(), ascending.end());
    std::vector<int> ranks;  // column by column, the handle's
    for (int column = 0; column < grid.shape.columns; ++column)
      for (int row = 0; row < grid.shape.rows; ++row) {
        const int id = grid.all->device_ids()[row * grid.shape.columns + column];
        const auto place = std::lower_bound(ascending.begin(), ascending.end(), id);
        ranks.push_back(static_cast<int>(place - ascending.begin()));
      }
    blacs_gridmap_(&context_, ranks.data(), &grid.shape.rows, &grid.shape.rows, &grid.shape.columns);
  }
  ~Context() {
    blacs_gridexit_(&context_);
    free_blacs_system_handle_(&handle_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  template <class T> Descriptor descriptor(const GridMatrix<T>& matrix) const {
    constexpr int dense = 1;
    const auto& layout = matrix.layout;
    return {dense,
            context_,
            static_cast<int>(layout.rows.extent),
            static_cast<int>(layout.columns.extent),
            static_cast<int>(layout.rows.block),
            static_cast<int>(layout.columns.block),
            0,
            0,
            static_cast<int>(matrix.ld)};
  }

 private:
  int handle_ = 0, context_ = 0;
};

template <class T> struct Work {
  std::vector<T> values = std::vector<T>(2);
  std::vector<real_of<T>> reals = std::vector<real_of<T>>(2);
  std::vector<int> integers = std::vector<int>(2);
  int size = -1, real_size = -1, integer_size = -1;  // -1 queries the sizes
  void take_answers(std::int64_t least_reals) {
    const char* what = "a ScaLAPACK workspace";
    size = std::max(kernels::queried_size(values[0], what), 1);
    real_size = std::max<int>(kernels::queried_size(reals[0], what), kernels::lapack_int(least_reals, what));
    integer_size = std::max(integers[0], 1);
    values.resize(size);
    reals.resize(real_size);
    integers.resize(integer_size);
  }
};

}  // namespace

template <class T>
bool svd(const Grid& grid, GridMatrix<T>& a, GridMatrix<T>* u, real_of<T>* s, GridMatrix<T>* vh) {
  const Context context(grid);
  const auto desc_a = context.descriptor(a);
  const auto desc_u = u ? context.descriptor(*u) : desc_a, desc_vh = vh ? context.descriptor(*vh) : desc_a;
  const int m = static_cast<int>(a.layout.rows.extent), n = static_cast<int>(a.layout.columns.extent);
  const char job = u != nullptr ? 'V' : 'N';
  T none{};
  T *u_values = u ? u->values.data() : &none, *vh_values = vh ? vh->values.data() : &none;
  int info = 0;
  Work<T> work;
  const auto call = [&] {
    if constexpr (std::is_same_v<T, float>)
      psgesvd_(&job, &job, &m, &n, a.values.data(), &one, &one, desc_a.data(), s, u_values, &one, &one,
               desc_u.data(), vh_values, &one, &one, desc_vh.data(), work.values.data(), &work.size, &info);
    else if constexpr (std::is_same_v<T, double>)
      pdgesvd_(&job, &job, &m, &n, a.values.data(), &one, &one, desc_a.data(), s, u_values, &one, &one,
               desc_u.data(), vh_values, &one, &one, desc_vh.data(), work.values.data(), &work.size, &info);
    else if constexpr (std::is_same_v<T, c32>)
      pcgesvd_(&job, &job, &m, &n, a.values.data(), &one, &one, desc_a.data(), s, u_values, &one, &one,
               desc_u.data(), vh_values, &one, &one, desc_vh.data(), work.values.data(), &work.size,
               work.reals.data(), &info);
    else
      pzgesvd_(&job, &job, &m, &n, a.values.data(), &one, &one, desc_a.data(), s, u_values, &one, &one,
               desc_u.data(), vh_values, &one, &one, desc_vh.data(), work.values.data(), &work.size,
               work.reals.data(), &info);
  };
  call();
  work.take_answers(1 + 4 * std::int64_t{std::max(m, n)});
  call();
  kernels::check_refusals();
  return info == 0;
}

#define TESSERA_INSTANTIATE(T) \
  template bool svd<T>(const Grid&, GridMatrix<T>&, GridMatrix<T>*, real_of<T>*, GridMatrix<T>*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
