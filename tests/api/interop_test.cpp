// Zero-copy exchange with other libraries: they read blocks in place, and arrays are made from their memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/dlpack.hpp>
#include <tessera/eigen.hpp>
#include <tessera/tessera.hpp>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#endif

#include <complex>
#include <numeric>

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Mesh all_devices() { return make_mesh({device_count()}, {"x"}); }
Array rows_of(std::int64_t rows, std::int64_t columns) {
  return device_put(reshape(astype(arange(rows * columns), float64), {rows, columns}), all_devices(),
                    P("x", None));
}

// A foreign tensor over memory that the test owns.
struct Foreign {
  std::vector<double> values = std::vector<double>(12);
  std::vector<std::int64_t> shape{3, 4}, strides{4, 1};
  int given_back = 0;
  dlpack::ManagedTensor tensor{};
  Foreign() {
    std::iota(values.begin(), values.end(), 0.0);
    tensor.dl_tensor = {values.data(), {1, 0}, 2, {2, 64, 1}, shape.data(), strides.data(), 0};
    tensor.manager_ctx = this;
    tensor.deleter = [](dlpack::ManagedTensor* t) { ++static_cast<Foreign*>(t->manager_ctx)->given_back; };
  }
};

template <class Error, class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was raised";
}

TEST(DLPack, a_block_is_exported_where_it_lies) {
  const Array x = rows_of(7, 3);
  dlpack::ManagedTensor* tensor = to_dlpack(x);
  const auto& block = tensor->dl_tensor;
  EXPECT_EQ(block.data, local<double>(x).data());
  EXPECT_EQ(block.ndim, 2);
  EXPECT_EQ((Shape{block.shape[0], block.shape[1]}), local_shape(x));
  EXPECT_THAT((std::vector<std::int64_t>{block.strides[0], block.strides[1]}), ElementsAre(3, 1));
  EXPECT_EQ(block.device.device_type, 1);
  tensor->deleter(tensor);
}

TEST(DLPack, element_types_have_the_codes_of_the_standard) {
  const auto code_of = [](Dtype dtype) {
    dlpack::ManagedTensor* tensor =
        to_dlpack(device_put(zeros({2 * device_count()}, dtype), all_devices(), P("x")));
    const auto type = tensor->dl_tensor.dtype;
    tensor->deleter(tensor);
    return std::vector<int>{type.code, type.bits, type.lanes};
  };
  EXPECT_THAT(code_of(bool_), ElementsAre(6, 8, 1));
  EXPECT_THAT(code_of(int16), ElementsAre(0, 16, 1));
  EXPECT_THAT(code_of(uint8), ElementsAre(1, 8, 1));
  EXPECT_THAT(code_of(float32), ElementsAre(2, 32, 1));
  EXPECT_THAT(code_of(complex128), ElementsAre(5, 128, 1));
  EXPECT_THAT(code_of(float16), ElementsAre(2, 16, 1));
  EXPECT_THAT(code_of(bfloat16), ElementsAre(4, 16, 1));
}

TEST(DLPack, an_exported_block_outlives_the_handle) {
  dlpack::ManagedTensor* tensor = nullptr;
  {
    const Array x = rows_of(device_count(), 2);
    tensor = to_dlpack(x);
  }
  eval({rows_of(device_count(), 2) * 3});  // would take freed memory
  const double* values = static_cast<const double*>(tensor->dl_tensor.data);
  EXPECT_EQ(values[1], 2.0 * process_index() + 1);
  tensor->deleter(tensor);
}

TEST(DLPack, readers_of_1_0_are_told_not_to_write) {
  const Array x = rows_of(7, 3);
  auto* tensor = to_dlpack<dlpack::ManagedTensorVersioned>(x);
  EXPECT_EQ(tensor->version.major, 1u);
  EXPECT_EQ(tensor->flags, dlpack::flag_read_only);
  EXPECT_EQ(tensor->dl_tensor.data, local<double>(x).data());
  const HostArray back = from_dlpack(tensor);
  EXPECT_TRUE(back.is_adopted());
  EXPECT_EQ(back.bytes(), reinterpret_cast<const std::byte*>(local<double>(x).data()));
  Foreign foreign;
  dlpack::ManagedTensorVersioned later{{2, 0}, nullptr, nullptr, 0, foreign.tensor.dl_tensor};
  EXPECT_THAT(message_of<ArgumentError>([&] { (void)from_dlpack(&later); }), HasSubstr("DLPack 2"));
}

TEST(DLPack, a_dense_tensor_is_adopted_and_given_back) {
  Foreign foreign;
  {
    const Array x = array(from_dlpack(&foreign.tensor));
    EXPECT_EQ(x.shape(), (Shape{3, 4}));
    EXPECT_EQ(local<double>(x).data(), foreign.values.data());
    EXPECT_EQ(item<double>(sum(x)), 66);
    EXPECT_EQ(foreign.given_back, 0);
  }
  EXPECT_EQ(foreign.given_back, 1);
}

TEST(DLPack, halves_come_back_as_they_went) {
  for (const Dtype half : {bfloat16, float16}) {
    const HostArray host = from_dlpack(to_dlpack(astype(array({1.5f, -0.1f}), half)));
    EXPECT_EQ(host.dtype(), half);
    EXPECT_EQ(to_vector<float>(array(host)), to_vector<float>(astype(array({1.5f, -0.1f}), half)));
  }
}

TEST(DLPack, strides_and_an_offset_are_followed_by_a_copy) {
  Foreign foreign;  // the last three columns, transposed
  foreign.shape = {3, 3}, foreign.strides = {1, 4}, foreign.tensor.dl_tensor.byte_offset = sizeof(double);
  const HostArray host = from_dlpack(&foreign.tensor);
  EXPECT_EQ(foreign.given_back, 1);
  EXPECT_THAT(host.as<double>(), ElementsAre(1, 5, 9, 2, 6, 10, 3, 7, 11));
}

TEST(DLPack, what_goes_out_comes_back_as_a_block_of_each_rank) {
  const Array x = rows_of(2 * device_count(), 3);
  const Array y = make_array_from_process_local_data(NamedSharding(all_devices(), P("x", None)),
                                                     from_dlpack(to_dlpack(x)));
  EXPECT_EQ(to_vector<double>(y), to_vector<double>(x));
}

// A struct with the layout of the one in <dlpack/dlpack.h>.
struct OtherTensor {
  dlpack::Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(OtherTensor*);
};
TEST(DLPack, the_types_may_be_those_of_the_programs_header) {
  auto* tensor = to_dlpack<OtherTensor>(rows_of(device_count(), 2));
  EXPECT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(from_dlpack(tensor).size(), 2);
}

TEST(DLPack, what_it_cannot_read_is_refused) {
  Foreign foreign;
  foreign.tensor.dl_tensor.device.device_type = 2 + 8;
  EXPECT_THAT(message_of<ArgumentError>([&] { (void)from_dlpack(&foreign.tensor); }), HasSubstr("type 10"));
  foreign.tensor.dl_tensor.device.device_type = 1;
  foreign.tensor.dl_tensor.dtype = {3, 16, 1};
  EXPECT_THAT(message_of<DtypeError>([&] { (void)from_dlpack(&foreign.tensor); }),
              HasSubstr("code 3, 16 bits"));
  EXPECT_EQ(foreign.given_back, 0);
  dlpack::ManagedTensor* none = nullptr;
  EXPECT_THROW((void)from_dlpack(none), ArgumentError);
}

// The members from which Eigen::Map<const Matrix<double, Dynamic, Dynamic, RowMajor>> is constructed.
struct MatrixMap {
  using Scalar = double;
  MatrixMap(const double* data, std::int64_t rows, std::int64_t columns)
      : data(data), rows(rows), columns(columns) {}
  const double* data;
  std::int64_t rows, columns;
};
struct VectorMap {
  using Scalar = double;
  VectorMap(const double* data, std::int64_t size) : data(data), size(size) {}
  const double* data;
  std::int64_t size;
};

TEST(LocalMap, a_matrix_is_seen_where_it_lies) {
  const Array x = rows_of(7, 3);
  const auto map = local_map<MatrixMap>(x);
  EXPECT_EQ(map.data, local<double>(x).data());
  EXPECT_EQ((Shape{map.rows, map.columns}), local_shape(x));
}

TEST(LocalMap, a_vector_is_one_and_three_dims_are_refused) {
  const Array x = device_put(arange(9.0, float64), all_devices(), P("x"));
  EXPECT_EQ(local_map<VectorMap>(x).size, local_shape(x)[0]);
  EXPECT_EQ(local_map<MatrixMap>(x).columns, 1);
  EXPECT_THAT(message_of<ShapeError>([] {
                const Array cube = zeros({2, 2, 2}, float64);
                (void)local_map<MatrixMap>(cube);
              }),
              HasSubstr("3 dims"));
  const Array other = zeros({2, 2}, float32);
  EXPECT_THROW((void)local_map<MatrixMap>(other), DtypeError);
}

#ifdef EIGEN_CORE_H
TEST(LocalMap, eigens_map_reads_the_block) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Array x = rows_of(device_count(), 3);
  const auto map = local_map<Eigen::Map<const Rows>>(x);
  EXPECT_EQ(map.rows(), 1);
  EXPECT_EQ(map(0, 2), 3.0 * process_index() + 2);
  EXPECT_EQ(map.sum(), 3 * 3.0 * process_index() + 3);
}
#endif

}  // namespace
}  // namespace tessera::test
