#include "comm/collectives/collectives.hpp"

#include <gmock/gmock.h>
#include <tessera/error.hpp>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <vector>

#include "base/settings.hpp"
#include "comm/collectives/pending.hpp"

namespace tessera::comm {
namespace {

// The implementations of a collective: the MPI library's, our own, and either in pieces of a few elements.
struct Way {
  const char* collectives;
  const char* message_limit;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.collectives << " limit " << way.message_limit; }

class Collectives : public testing::TestWithParam<Way> {
 protected:
  SettingScope collectives_{"TESSERA_COLLECTIVES", GetParam().collectives};
  SettingScope limit_{"TESSERA_MESSAGE_LIMIT", GetParam().message_limit};
  const Communicator& all_ = world();
  int ranks_ = all_.size(), me_ = all_.rank();
};
INSTANTIATE_TEST_SUITE_P(Ways, Collectives,
                         testing::Values(Way{"mpi", "1073741824"}, Way{"own", "1073741824"},
                                         Way{"mpi", "1000"}, Way{"own", "1000"}, Way{"auto", "1000"},
                                         Way{"auto", "1073741824"}),
                         [](const auto& info) {
                           return std::string(info.param.collectives) + "_" + info.param.message_limit;
                         });

const std::vector<std::int64_t> lengths = {0, 1, 2, 5, 999, 1000, 1001, 70'001, 300'000};

TEST_P(Collectives, all_reduce_adds_every_rank) {
  for (const auto n : lengths) {
    std::vector<double> in(n), out(in.size(), -1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i % 1000) + me_;
    all_reduce(all_, ReduceKind::sum, float64, in.data(), out.data(), n);
    std::vector<double> expected(in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
      expected[i] = static_cast<double>(i % 1000) * ranks_ + ranks_ * (ranks_ - 1) / 2.0;
    ASSERT_EQ(out, expected) << n;
    all_reduce(all_, ReduceKind::sum, float64, in.data(), in.data(), n);
    ASSERT_EQ(in, expected) << "in place, " << n;
  }
}

TEST_P(Collectives, all_reduce_gives_the_same_bits_on_every_rank_and_in_every_run) {
  const std::int64_t n = 50'000;
  std::vector<float> in(n), once(n), again(n), largest(n), smallest(n);
  for (std::int64_t i = 0; i < n; ++i) in[i] = std::sin(static_cast<float>(i * (me_ + 3)));
  all_reduce(all_, ReduceKind::sum, float32, in.data(), once.data(), n);
  all_reduce(all_, ReduceKind::sum, float32, in.data(), again.data(), n);
  EXPECT_EQ(once, again);
  all_reduce(all_, ReduceKind::max, float32, once.data(), largest.data(), n);
  all_reduce(all_, ReduceKind::min, float32, once.data(), smallest.data(), n);
  EXPECT_EQ(largest, smallest);
}

TEST_P(Collectives, max_and_min_keep_nan_from_any_rank) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int bad = 0; bad < ranks_; ++bad) {
    std::vector<float> in(3000, static_cast<float>(me_)), out(in.size());
    if (me_ == bad) in[7] = in[2999] = nan;
    for (const auto kind : {ReduceKind::max, ReduceKind::min}) {
      all_reduce(all_, kind, float32, in.data(), out.data(), 3000);
      EXPECT_TRUE(std::isnan(out[7]) && std::isnan(out[2999])) << name(kind) << " with NaN on rank " << bad;
      EXPECT_EQ(out[0], kind == ReduceKind::max ? static_cast<float>(ranks_ - 1) : 0.f);
    }
  }
}

template <class T> std::vector<T> reduced(const Communicator& comm, ReduceKind kind, Dtype dtype, T mine) {
  std::vector<T> in(1100, mine), out(in.size());
  all_reduce(comm, kind, dtype, in.data(), out.data(), 1100);
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [&](T x) { return x == out[0]; }));
  return out;
}

TEST_P(Collectives, every_kind_of_reduction) {
  const int r = ranks_;
  EXPECT_EQ(reduced<std::int32_t>(all_, ReduceKind::prod, int32, me_ + 1)[0],
            static_cast<int>(std::tgamma(r + 1)));
  EXPECT_EQ(reduced<std::int64_t>(all_, ReduceKind::min, int64, me_ - 5)[0], -5);
  EXPECT_EQ(reduced<std::uint8_t>(all_, ReduceKind::max, uint8, static_cast<std::uint8_t>(200 + me_))[0],
            199 + r);
  EXPECT_EQ(reduced<std::uint16_t>(all_, ReduceKind::bit_or, uint16, static_cast<std::uint16_t>(1 << me_))[0],
            (1 << r) - 1);
  EXPECT_EQ(reduced<std::uint32_t>(all_, ReduceKind::bit_xor, uint32, 5u)[0], r % 2 ? 5u : 0u);
  EXPECT_EQ(reduced<std::uint64_t>(all_, ReduceKind::bit_and, uint64, ~(std::uint64_t{1} << me_))[0],
            ~((std::uint64_t{1} << r) - 1));
  EXPECT_EQ(reduced<std::int16_t>(all_, ReduceKind::all, int16, static_cast<std::int16_t>(me_))[0],
            r == 1 && me_ ? 1 : 0);
  EXPECT_EQ(reduced<std::int16_t>(all_, ReduceKind::any, int16, static_cast<std::int16_t>(me_ * 2))[0],
            r > 1 ? 1 : 0);
  // bool is a byte: sum is or, prod is and
  EXPECT_EQ(reduced<std::uint8_t>(all_, ReduceKind::sum, bool_, me_ == 0)[0], 1);
  EXPECT_EQ(reduced<std::uint8_t>(all_, ReduceKind::prod, bool_, me_ != 0)[0], 0);
  EXPECT_EQ(reduced<std::uint8_t>(all_, ReduceKind::max, bool_, me_ == r - 1)[0], 1);
  EXPECT_EQ(reduced<std::uint8_t>(all_, ReduceKind::min, bool_, 1)[0], 1);
  using C = std::complex<float>;
  EXPECT_EQ(reduced<C>(all_, ReduceKind::sum, complex64, C(1, static_cast<float>(me_)))[0],
            C(static_cast<float>(r), static_cast<float>(r * (r - 1) / 2)));
  std::complex<double> power = 1;  // powers of i
  for (int k = 0; k < r; ++k) power = {-power.imag(), power.real()};
  EXPECT_EQ(reduced<std::complex<double>>(all_, ReduceKind::prod, complex128, {0, 1})[0], power);
}

template <class T> void expect_wrapping(const Communicator& comm) {
  const T most = std::numeric_limits<T>::max();
  T sum = 0, product = 1;
  for (int r = 0; r < comm.size(); ++r) {
    sum = static_cast<T>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(most));
    product = static_cast<T>(static_cast<std::uint64_t>(product) * static_cast<std::uint64_t>(most));
  }
  EXPECT_EQ(reduced<T>(comm, ReduceKind::sum, dtype_of<T>(), most)[0], sum) << name(dtype_of<T>());
  EXPECT_EQ(reduced<T>(comm, ReduceKind::prod, dtype_of<T>(), most)[0], product) << name(dtype_of<T>());
}

TEST_P(Collectives, integers_wrap_around_as_in_numpy) {
  expect_wrapping<std::int8_t>(all_);
  expect_wrapping<std::int16_t>(all_);
  expect_wrapping<std::int32_t>(all_);
  expect_wrapping<std::int64_t>(all_);
  expect_wrapping<std::uint8_t>(all_);
  expect_wrapping<std::uint16_t>(all_);
  expect_wrapping<std::uint32_t>(all_);
  expect_wrapping<std::uint64_t>(all_);
}

TEST_P(Collectives, reductions_without_meaning_are_refused) {
  std::complex<float> z;
  float x = 0;
  EXPECT_THROW(all_reduce(all_, ReduceKind::max, complex64, &z, &z, 1), InternalError);
  EXPECT_THROW(all_reduce(all_, ReduceKind::bit_or, float32, &x, &x, 1), InternalError);
  EXPECT_THROW(all_reduce(all_, ReduceKind::all, float32, &x, &x, 1), InternalError);
}

TEST_P(Collectives, all_gather_puts_blocks_in_rank_order) {
  for (const auto n : lengths) {
    std::vector<std::uint8_t> in(n, static_cast<std::uint8_t>(me_ + 1)),
        out(in.size() * static_cast<std::size_t>(ranks_));
    all_gather(all_, in.data(), n, out.data());
    std::vector<std::uint8_t> expected;
    for (int r = 0; r < ranks_; ++r)
      expected.insert(expected.end(), in.size(), static_cast<std::uint8_t>(r + 1));
    ASSERT_EQ(out, expected) << n;
    std::vector<std::uint8_t> in_place(out.size());
    std::copy(in.begin(), in.end(), in_place.begin() + static_cast<std::ptrdiff_t>(n * me_));
    all_gather(all_, in_place.data() + n * me_, n, in_place.data());
    ASSERT_EQ(in_place, expected) << "in place, " << n;
  }
}

// Rank r's block: r * 700 bytes (rank 0 has none), stored in reverse order with gaps.
TEST_P(Collectives, all_gather_v_takes_any_sizes_and_places) {
  std::vector<std::int64_t> bytes_of, offset_of;
  std::int64_t end = 0;
  for (int r = 0; r < ranks_; ++r) bytes_of.push_back(r * 700);
  for (int r = ranks_ - 1; r >= 0; --r) {
    offset_of.insert(offset_of.begin(), end + 3);
    end += 3 + bytes_of[r];
  }
  std::vector<char> in(bytes_of[me_], static_cast<char>('a' + me_));
  std::vector<char> out(end, '.'), expected(out);
  for (int r = 0; r < ranks_; ++r)
    std::fill_n(expected.begin() + offset_of[r], bytes_of[r], static_cast<char>('a' + r));
  std::vector<char> later(out);
  all_gather_v(all_, in.data(), static_cast<std::int64_t>(in.size()), out.data(), bytes_of, offset_of);
  EXPECT_EQ(out, expected);
  start_all_gather_v(all_, in.data(), static_cast<std::int64_t>(in.size()), later.data(), bytes_of, offset_of)
      .wait();
  EXPECT_EQ(later, expected);
}

TEST_P(Collectives, reduce_scatter_gives_each_rank_its_block_also_when_blocks_are_uneven_or_empty) {
  for (const std::int64_t unit : {0, 1, 333, 20'000}) {
    std::vector<std::int64_t> counts;
    for (int r = 0; r < ranks_; ++r) counts.push_back(r == 0 && ranks_ > 1 ? 0 : unit * (1 + r % 3));
    const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    std::vector<std::int32_t> in(total);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) * (me_ + 1);
    const auto mine = static_cast<std::size_t>(counts[me_]);
    const auto first = std::accumulate(counts.begin(), counts.begin() + me_, std::int64_t{0});
    std::vector<std::int32_t> out(mine), expected(mine);
    for (std::size_t i = 0; i < mine; ++i)
      expected[i] = static_cast<int>(first + static_cast<std::int64_t>(i)) * (ranks_ * (ranks_ + 1) / 2);
    reduce_scatter(all_, ReduceKind::sum, int32, in.data(), out.data(), counts);
    ASSERT_EQ(out, expected) << unit;
  }
}

TEST_P(Collectives, broadcast_from_every_root) {
  for (int root = 0; root < ranks_; ++root) {
    std::vector<int> data(5001, me_ == root ? 100 + root : -1), later(data);
    broadcast(all_, data.data(), static_cast<std::int64_t>(data.size() * sizeof(int)), root);
    EXPECT_THAT(data, testing::Each(100 + root));
    start_broadcast(all_, later.data(), static_cast<std::int64_t>(later.size() * sizeof(int)), root).wait();
    EXPECT_EQ(later, data);
  }
}

TEST_P(Collectives, several_collectives_under_way_at_once_do_not_mix) {
  const std::int64_t n = 3001;
  std::vector<float> a(n, static_cast<float>(me_)), b(n, 1.f), sum_a(n), sum_b(n), gathered(n * ranks_),
      blocking(gathered);
  Pending first = start_all_reduce(all_, ReduceKind::sum, float32, a.data(), sum_a.data(), n);
  Pending second = start_all_gather(all_, a.data(), n * 4, gathered.data());
  Pending third = start_all_reduce(all_, ReduceKind::sum, float32, b.data(), sum_b.data(), n);
  all_gather(all_, b.data(), n * 4, blocking.data());
  third.wait();
  while (!second.test()) {}
  first.wait();
  EXPECT_THAT(sum_a, testing::Each(static_cast<float>(ranks_ * (ranks_ - 1) / 2)));
  EXPECT_THAT(sum_b, testing::Each(static_cast<float>(ranks_)));
  EXPECT_THAT(blocking, testing::Each(1.f));
  for (int r = 0; r < ranks_; ++r) EXPECT_EQ(gathered[r * n + n - 1], static_cast<float>(r));
}

// The second rounds start in different orders on different ranks: half of the ranks wait for the later one
// first.
TEST_P(Collectives, large_all_reduces_under_way_do_not_mix_whichever_is_ready_first) {
  const std::int64_t n = 70'001 * ranks_;
  std::vector<double> a(n), b(2 * n + 1), sum_a(a.size()), whole(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = 1.0 / static_cast<double>(i + static_cast<std::size_t>(me_) + 1);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i) * (me_ + 1);
  all_reduce(all_, ReduceKind::sum, float64, a.data(), whole.data(), n);
  Pending first = start_all_reduce(all_, ReduceKind::sum, float64, a.data(), sum_a.data(), n);
  Pending in_place = start_all_reduce(all_, ReduceKind::sum, float64, b.data(), b.data(), 2 * n + 1);
  if (me_ % 2 == 0) {
    for (bool later_done = false, first_done = false; !later_done || !first_done;)
      later_done = in_place.test(), first_done = first.test();
  } else {
    first.wait();
    in_place.wait();
  }
  if (std::string(GetParam().collectives) != "mpi")
    // Equal bits from the blocking and the nonblocking call, though MPI guarantees neither.
    EXPECT_EQ(sum_a, whole);
  else
    EXPECT_THAT(sum_a, testing::Pointwise(testing::DoubleNear(1e-12), whole));
  for (std::size_t i = 0; i < b.size(); i += 997)
    ASSERT_EQ(b[i], static_cast<double>(i) * (ranks_ * (ranks_ + 1) / 2)) << i;
}

}  // namespace
}  // namespace tessera::comm
