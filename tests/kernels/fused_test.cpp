#include "kernels/elementwise/fused.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "base/thresholds.hpp"
#include "kernels/elementwise/chain_code.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::map_named;

FusedStep step(const char* op, Dtype in, std::initializer_list<int> operands) {
  FusedStep s;
  s.fn = map_named(op)->of(in);
  s.out = map_named(op)->result(in);
  for (const int r : operands) s.in[s.n_in++] = r;
  EXPECT_NE(s.fn, nullptr) << op;
  return s;
}

FusedOperand operand(const void* data, std::span<const std::int64_t> strides = {}) {
  return {static_cast<const std::byte*>(data), strides};
}
std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

// ((a + b) * c, (a + b) > c): the expected value of an element, for any layout.
struct Sample {
  FusedProgram program{
      {{float32}, {float32}, {float32}},
      {step("add", float32, {0, 1}), step("multiply", float32, {3, 2}), step("greater", float32, {3, 2})},
      {4, 5}};
};

// Every way to read three operands of a 3-d shape: dense, row, column, scalar, transposed, middle.
TEST(fused, operands_of_any_strides_give_what_a_loop_gives) {
  const Sample sample;
  for (const Shape& shape : {Shape{5, 7, 3}, Shape{1, 1, 1}, Shape{3, 1, 1000}, Shape{2000, 3, 1},
                             Shape{4, 3, 2049}, Shape{70, 50, 4}, Shape{1, 9, 1025}}) {
    const std::int64_t d0 = shape[0], d1 = shape[1], d2 = shape[2];
    const std::vector<std::vector<std::int64_t>> layouts = {{d1 * d2, d2, 1}, {0, 0, 0},  {0, 0, 1},
                                                            {0, 1, 0},        {1, 0, 0},  {1, d0, d0 * d1},
                                                            {d2, 0, 1},       {0, d2, 1}, {d1, 1, 0}};
    const auto data = testing::random_values<float>(d0 * d1 * d2, 1);
    for (std::size_t a = 0; a < layouts.size(); ++a)
      for (std::size_t b = 0; b < layouts.size(); ++b) {
        const std::size_t c = (a + b) % layouts.size();
        std::vector<float> product(data.size());
        std::vector<std::uint8_t> greater(data.size());
        const FusedOperand inputs[] = {operand(data.data(), layouts[a]), operand(data.data(), layouts[b]),
                                       operand(data.data(), layouts[c])};
        std::byte* outputs[] = {bytes(product.data()), bytes(greater.data())};
        run_fused(sample.program, shape, inputs, outputs);
        FusedProgram compares = sample.program;  // with one output, few elements need no plan
        compares.outputs = {5};
        std::vector<std::uint8_t> alone(data.size());
        std::byte* output[] = {bytes(alone.data())};
        run_fused(compares, shape, inputs, output);
        ASSERT_EQ(alone, greater) << to_string(shape) << " layouts " << a << " " << b << " " << c;
        std::size_t at = 0;
        for (std::int64_t i = 0; i < d0; ++i)
          for (std::int64_t j = 0; j < d1; ++j)
            for (std::int64_t k = 0; k < d2; ++k, ++at) {
              const auto read = [&](std::size_t l) {
                return data[i * layouts[l][0] + j * layouts[l][1] + k * layouts[l][2]];
              };
              const float sum = read(a) + read(b);
              ASSERT_EQ(product[at], sum * read(c))
                  << to_string(shape) << " layouts " << a << " " << b << " " << c << " element " << at;
              ASSERT_EQ(greater[at] != 0, sum > read(c));
            }
      }
  }
}

// Blocks of a matrix in place, with gaps between their rows, combined with a row, a column and a number.
TEST(fused, a_block_is_run_where_it_lies_again_and_again) {
  const FusedProgram program{
      {{float32}, {float32}, {float32}, {float32}},
      {step("add", float32, {0, 1}), step("multiply", float32, {4, 2}), step("maximum", float32, {5, 3})},
      {6}};
  const std::int64_t rows = 150, columns = 233, pitch = 240;
  const auto before = testing::random_values<float>(rows * pitch, 1),
             row = testing::random_values<float>(pitch, 2), column = testing::random_values<float>(rows, 3);
  const float number = 0.25F;
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{64, 96}, {64, 233}, {7, 1}, {1, 50}}) {
    auto c = before;
    for (std::int64_t i = 0; i < rows; i += height)
      for (std::int64_t j = 0; j < columns; j += width) {
        const std::int64_t m = std::min(height, rows - i), n = std::min(width, columns - j);
        const std::int64_t in_place[] = {pitch, 1}, along_row[] = {0, 1}, along_column[] = {1, 0},
                           nowhere[] = {0, 0};
        const FusedOperand first[] = {operand(c.data(), in_place), operand(row.data(), along_row),
                                      operand(column.data(), along_column), operand(&number, nowhere)};
        FusedBlock block(program, m, n, first, bytes(c.data()), pitch);  // prepared for another address
        const std::byte* at[] = {bytes(&c[i * pitch + j]), operand(&row[j]).data, operand(&column[i]).data,
                                 operand(&number).data};
        block.run(at, bytes(&c[i * pitch + j]));
      }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < pitch; ++j) {
        const float was = before[i * pitch + j];
        ASSERT_EQ(c[i * pitch + j], j < columns ? std::max((was + row[j]) * column[i], number) : was)
            << height << " x " << width << " at " << i << ", " << j;
      }
  }
}

// A view's rows combined with a row, a column and a number; sizes below and above those from which machine
// code is made at once, multiples of the group and others. The second run has code for small ones too.
TEST(fused, an_operand_in_parts_stands_beside_broadcast_ones) {
  const FusedProgram program{
      {{float32}, {float32}, {float32}},
      {step("multiply", float32, {0, 2}), step("add", float32, {3, 1}), step("multiply", float32, {4, 1})},
      {5}};
  const float number = 0.5F;
  for (const std::int64_t rows : {63, 64, 65, 300, 1100})
    for (const std::int64_t columns : {1, 8, 15, 16, 63, 64, 65, 128, 256}) {
      const std::int64_t pitch = columns + columns % 2;  // gaps beside rows of odd lengths
      const auto values = testing::random_values<float>((rows + 1) * pitch, 1),
                 other = testing::random_values<float>(rows * columns, 2);
      const FusedPart part{{{0, rows}, {0, columns}}, operand(values.data()).data, pitch, {pitch, 1}};
      const std::int64_t nowhere[] = {0, 0};
      for (const auto& strides : std::vector<std::vector<std::int64_t>>{{0, 1}, {1, 0}, {columns, 1}, {0, 0}})
        for (int time = 0; time < 2; ++time) {
          std::vector<float> got(other.size());
          std::byte* outputs[] = {bytes(got.data())};
          const FusedOperand operands[] = {
              {.parts = std::span(&part, 1)}, operand(other.data(), strides), operand(&number, nowhere)};
          run_fused(program, Shape{rows, columns}, operands, outputs);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) {
              const float b = other[static_cast<std::size_t>(i * strides[0] + j * strides[1])];
              ASSERT_EQ(got[static_cast<std::size_t>(i * columns + j)],
                        (values[static_cast<std::size_t>((i + 1) * pitch + j)] * number + b) * b)
                  << rows << " x " << columns << " with " << strides[0] << ", " << strides[1] << " at " << i
                  << ", " << j;
            }
        }
    }
}

// 8 MiB and more without gaps: written past the cache if the memory begins at a cache line.
TEST(fused, a_large_block_is_run_at_any_place) {
  const FusedProgram program{
      {{float32}, {float32}}, {step("add", float32, {0, 1}), step("multiply", float32, {2, 1})}, {3}};
  const std::int64_t rows = 1501, columns = 1501, steps[] = {columns, 1}, nowhere[] = {0, 0};
  const float number = 0.5F;
  std::vector<float> memory(rows * columns + 64);
  float* const line = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 / 4;
  const FusedOperand first[] = {operand(line, steps), operand(&number, nowhere)};
  FusedBlock block(program, rows, columns, first, bytes(line), columns);
  for (const std::int64_t start : {0, 1, 3}) {
    std::iota(memory.begin(), memory.end(), 0.F);
    const auto before = memory;
    float* const place = line + start;
    const std::byte* at[] = {bytes(place), operand(&number).data};
    block.run(at, bytes(place));
    for (std::int64_t e = 0; e < rows * columns; ++e)
      ASSERT_EQ(place[e], (before[static_cast<std::size_t>(place + e - memory.data())] + number) * number)
          << "element " << e << " behind " << start;
  }
}

TEST(fused, mixed_dtypes_in_a_long_chain) {
  // where(x > 0, f64(x) * f64(i), f64(i)) with int32 i broadcast along rows; then cast to complex and its
  // absolute value.
  const std::int64_t rows = 37, columns = 451;
  const auto x = testing::random_values<float>(rows * columns);
  std::vector<std::int32_t> i(columns);
  for (std::size_t j = 0; j < i.size(); ++j) i[j] = static_cast<std::int32_t>(j) - 200;
  FusedProgram program;
  program.inputs = {{float32}, {int32}, {float32}};
  program.steps = {step("greater", float32, {0, 2}),
                   FusedStep{find_cast(float32, float64), float64, {0, 0, 0}, 1},
                   FusedStep{find_cast(int32, float64), float64, {1, 0, 0}, 1},
                   step("multiply", float64, {4, 5}),
                   step("where", float64, {3, 6, 5}),
                   step("complex", float64, {7, 4}),
                   step("abs", complex128, {8})};
  program.outputs = {9, 7, 9};
  const std::int64_t dense[] = {columns, 1}, row[] = {0, 1}, scalar[] = {0, 0};
  const float zero = 0;
  const FusedOperand inputs[] = {operand(x.data(), dense), operand(i.data(), row), operand(&zero, scalar)};
  std::vector<double> magnitude(x.size()), chosen(x.size()), again(x.size());
  std::byte* outputs[] = {bytes(magnitude.data()), bytes(chosen.data()), bytes(again.data())};
  run_fused(program, Shape{rows, columns}, inputs, outputs);
  for (std::size_t e = 0; e < x.size(); ++e) {
    const double value = i[e % i.size()], expected = x[e] > 0 ? double{x[e]} * value : value;
    ASSERT_EQ(chosen[e], expected);
    ASSERT_NEAR(magnitude[e], std::hypot(expected, double{x[e]}), 1e-12);
    ASSERT_EQ(again[e], magnitude[e]);
  }
}

TEST(fused, an_output_may_be_the_memory_of_an_operand_that_later_steps_read) {
  // out0 = a + b overwrites a; out1 = a * b is computed after it and still needs the old a.
  FusedProgram program{
      {{float32}, {float32}}, {step("add", float32, {0, 1}), step("multiply", float32, {0, 1})}, {2, 3}};
  const auto a = testing::random_values<float>(5000, 1), b = testing::random_values<float>(5000, 2);
  auto memory = a;
  std::vector<float> product(a.size());
  const FusedOperand inputs[] = {operand(memory.data()), operand(b.data())};
  std::byte* outputs[] = {bytes(memory.data()), bytes(product.data())};
  run_fused(program, Shape{5000}, inputs, outputs);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(memory[i], a[i] + b[i]);
    ASSERT_EQ(product[i], a[i] * b[i]);
  }
}

TEST(fused, an_operand_can_be_an_output) {
  FusedProgram program{{{int16}, {int16}}, {}, {1, 0}};
  const std::int16_t a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8};
  const std::int64_t dense[] = {2, 1}, row[] = {0, 1};
  std::int16_t out_b[6], out_a[6];
  const FusedOperand inputs[] = {operand(a, dense), operand(b, row)};
  std::byte* outputs[] = {bytes(out_b), bytes(out_a)};
  run_fused(program, Shape{3, 2}, inputs, outputs);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(out_a[i], a[i]);
    EXPECT_EQ(out_b[i], b[i % 2]);
  }
}

// Random programs of float arithmetic with any reuse of registers: bit for bit equal to one map after the
// other, by strips and by machine code (made when a chain recurs), in one loop (odd rounds) and by rows.
TEST(fused, random_chains_give_the_bits_of_step_by_step) {
  const char* binary[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin"};
  const char* unary[] = {"negative", "abs", "square", "reciprocal", "relu", "sqrt"};
  std::uint32_t state = 7;
  const auto pick = [&](int n) {
    return static_cast<int>(((state = state * 1664525u + 1013904223u) >> 16) % static_cast<std::uint32_t>(n));
  };
  for (const Dtype dtype : {float32, float64})
    visit(dtype, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T>)
        for (int round = 0; round < 120; ++round) {
          const std::int64_t rows = 3, columns = 4096 + pick(700), n = rows * columns;
          auto a = testing::random_values<T>(n, 1);
          const auto b = testing::random_values<T>(n, 2);
          const T special[] = {T(1.5),  T(0),
                               T(-0.0), std::numeric_limits<T>::quiet_NaN(),
                               T(-2),   std::numeric_limits<T>::infinity()};
          for (std::size_t e = 0; e < 1000; ++e) a[e * 7] = special[e % 6];
          const T constant = special[round % 6];
          const std::int64_t dense[] = {columns, 1}, row[] = {0, 1}, scalar[] = {0, 0};
          FusedProgram program;
          program.inputs = {{dtype}, {dtype}, {dtype}};
          const int steps = 2 + pick(14);
          for (int s = 0; s < steps; ++s) {
            // Mostly uses the last result, so that chains form.
            const auto some = [&] { return s > 0 && pick(3) > 0 ? 2 + s : pick(3 + s); };
            if (pick(3) == 0)
              program.steps.push_back(step(unary[pick(6)], dtype, {some()}));
            else
              program.steps.push_back(step(binary[pick(8)], dtype, {some(), some()}));
          }
          program.outputs = {2 + steps, 3 + pick(steps)};
          const bool is_flat = round % 2 == 1;
          std::vector<T> whole_b(a.size());
          for (std::size_t e = 0; e < a.size(); ++e) whole_b[e] = b[e % static_cast<std::size_t>(columns)];
          const FusedOperand inputs[] = {operand(a.data(), dense),
                                         is_flat ? operand(whole_b.data(), dense) : operand(b.data(), row),
                                         operand(&constant, scalar)};

          std::vector<std::vector<T>> registers = {a, a, std::vector<T>(a.size(), constant)};
          registers[1] = whole_b;
          for (const auto& one : program.steps) {
            std::vector<T> result(a.size());
            const void* in[] = {registers[one.in[0]].data(), registers[one.in[1]].data()};
            one.fn(in, result.data(), n);
            registers.push_back(std::move(result));
          }
          for (const char* way : {"strips", "met first", "code"}) {
            set_chain_code(std::string(way) != "strips");
            std::vector<T> out0(a.size()), out1(a.size());
            std::byte* outputs[] = {bytes(out0.data()), bytes(out1.data())};
            run_fused(program, Shape{rows, columns}, inputs, outputs);
            for (const int o : {0, 1}) {
              const auto& expected = registers[program.outputs[o]];
              const auto& got = o == 0 ? out0 : out1;
              for (std::size_t e = 0; e < got.size(); ++e)
                ASSERT_TRUE(testing::same(got[e], expected[e]))
                    << way << " round " << round << " output " << o << " element " << e;
            }
          }
        }
    });
}

// Results too large for the cache take two further code paths: aligned to cache lines, or not.
TEST(fused, large_outputs_are_complete) {
  const std::int64_t n = (std::int64_t{5} << 20) + 17;
  std::vector<float> x(n), memory(x.size() + 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  FusedProgram program{{{float32}}, {step("square", float32, {0}), step("add", float32, {1, 0})}, {2}};
  const FusedOperand inputs[] = {operand(x.data())};
  const auto in_line = reinterpret_cast<std::uintptr_t>(memory.data()) % 64 / sizeof(float);
  for (const std::size_t off_line : {0, 1}) {
    std::fill(memory.begin(), memory.end(), -1.f);
    float* out = memory.data() + 32 - in_line + off_line;
    std::byte* outputs[] = {bytes(out)};
    run_fused(program, Shape{n}, inputs, outputs);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], x[i] * x[i] + x[i]) << off_line;
    EXPECT_EQ(out[-1], -1);
    EXPECT_EQ(out[n], -1);
  }
}

// A program of one step, for two arrays and for a number on either side, by its function and by code; low
// thresholds let it bypass the cache.
TEST(fused, one_step_gives_the_bits_of_its_function) {
  const auto check = [&]<class T>(T, std::int64_t n, std::size_t off_line) {
    const Dtype dtype = dtype_of<T>();
    auto a = testing::random_values<T>(n, 1), b = testing::random_values<T>(n, 2);
    const T special[] = {T(0), T(-0.0), std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::infinity(), std::numeric_limits<T>::denorm_min()};
    for (std::size_t e = 0; e * 11 < a.size(); ++e) a[e * 7] = special[e % 5], b[e * 11] = special[e % 4];
    const std::int64_t dense[] = {1}, scalar[] = {0};
    const auto run = [&](const char* name, std::vector<const std::vector<T>*> of) {
      FusedProgram program{{}, {}, {static_cast<int>(of.size())}};
      std::vector<FusedOperand> inputs;
      std::vector<std::vector<T>> whole;
      for (const auto* values : of) {
        program.inputs.push_back({dtype});
        inputs.push_back(operand(values->data(), values->size() == 1 ? std::span(scalar) : std::span(dense)));
        whole.push_back(values->size() == 1 ? std::vector<T>(a.size(), values->front()) : *values);
      }
      program.steps = {of.size() == 1 ? step(name, dtype, {0}) : step(name, dtype, {0, 1})};
      std::vector<T> expected(a.size()), memory(a.size() + 64, T(-1));
      const void* in[] = {whole[0].data(), whole.back().data()};
      program.steps[0].fn(in, expected.data(), n);
      const auto in_line = reinterpret_cast<std::uintptr_t>(memory.data()) % 64 / sizeof(T);
      T* const out = memory.data() + 32 - in_line + off_line;
      std::byte* outputs[] = {bytes(out)};
      run_fused(program, Shape{n}, inputs, outputs);
      for (std::size_t e = 0; e < expected.size(); ++e)
        ASSERT_TRUE(testing::same(out[e], expected[e])) << name << " of " << n << ": element " << e;
      EXPECT_EQ(out[-1], -1) << name;
      EXPECT_EQ(out[n], -1) << name;
    };
    for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin"}) {
      run(name, {&a, &b});
      for (const T number : {T(1.5), T(-0.0), std::numeric_limits<T>::quiet_NaN()}) {
        const std::vector<T> one = {number};
        run(name, {&a, &one});
        run(name, {&one, &b});
      }
    }
    for (const char* name : {"negative", "abs", "square", "reciprocal", "relu"}) run(name, {&a});
  };
  for (const std::int64_t n : {1, 10, 1000, 4096, 9000, (1 << 16) - 1, (1 << 16) + 77})
    for (const std::size_t off_line : {0, 1}) {
      check(float{}, n, off_line), check(double{}, n, off_line);
      const LowThresholds low(256);
      check(float{}, n, off_line), check(double{}, n, off_line);
    }
}

// One loop over memory that is both operand and result, with a few elements beyond its last group.
TEST(fused, a_chain_in_place) {
  const double two = 2;
  const std::int64_t dense[] = {1}, scalar[] = {0};
  FusedProgram program{{{float64}, {float64}, {float64}},
                       {step("multiply", float64, {0, 2}), step("subtract", float64, {1, 3}),
                        step("maximum", float64, {4, 0})},
                       {5}};
  for (const std::int64_t n :
       {1, 511, 513, 4096, 70001}) {  // 4096: the largest without a plan, in pieces of 512
    const auto before = testing::random_values<double>(n, 1), b = testing::random_values<double>(n, 2);
    auto memory = before;
    const FusedOperand inputs[] = {operand(memory.data(), dense), operand(b.data(), dense),
                                   operand(&two, scalar)};
    std::byte* outputs[] = {bytes(memory.data())};
    run_fused(program, Shape{n}, inputs, outputs);
    for (std::size_t i = 0; i < b.size(); ++i)
      ASSERT_EQ(memory[i], std::max(b[i] - before[i] * 2, before[i])) << n << ": " << i;
  }
}

// Steps of other item sizes, an operand that is read twice and a comparison at the end: pieces of 256 complex
// numbers give as many bools.
TEST(fused, a_chain_of_few_elements) {
  const std::complex<double> two = {2, -1};
  const std::int64_t dense[] = {1}, scalar[] = {0};
  const FusedProgram program{
      {{complex128}, {complex128}},
      {step("multiply", complex128, {0, 1}), step("add", complex128, {2, 0}), step("abs", complex128, {3}),
       step("real", complex128, {0}), step("greater", float64, {4, 5})},
      {6}};
  for (const std::int64_t n : {1, 255, 256, 257, 1000, 4096}) {
    std::vector<std::complex<double>> a;
    const auto parts = testing::random_values<double>(2 * n, 5);
    for (std::int64_t i = 0; i < n; ++i) a.emplace_back(parts[2 * i] - 0.5, parts[2 * i + 1]);
    std::vector<std::uint8_t> out(n + 1, 7);
    const FusedOperand inputs[] = {operand(a.data(), dense), operand(&two, scalar)};
    std::byte* outputs[] = {bytes(out.data())};
    run_fused(program, Shape{n}, inputs, outputs);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(out[i], std::abs(a[i] * two + a[i]) > a[i].real()) << n << ": " << i;
    EXPECT_EQ(out[n], 7) << n;
  }
}

TEST(fused, empty_and_scalar_shapes) {
  const Sample sample;
  float a = 2, b = 3, c = 4, product = 0;
  std::uint8_t greater = 9;
  const FusedOperand inputs[] = {operand(&a), operand(&b), operand(&c)};
  std::byte* outputs[] = {bytes(&product), bytes(&greater)};
  const std::int64_t strides[] = {1, 1};
  const FusedOperand matrices[] = {operand(&a, strides), operand(&b, strides), operand(&c, strides)};
  run_fused(sample.program, Shape{0, 4}, matrices, outputs);
  EXPECT_EQ(greater, 9);
  run_fused(sample.program, Shape{}, inputs, outputs);
  EXPECT_EQ(product, 20);
  EXPECT_EQ(greater, 1);
}

TEST(fused, threads_give_the_same_as_one) {
  const Sample sample;
  const auto a = testing::random_values<float>(300000, 1), b = testing::random_values<float>(300000, 2);
  std::vector<float> one(a.size()), three(a.size());
  std::vector<std::uint8_t> greater_one(a.size()), greater_three(a.size());
  const FusedOperand inputs[] = {operand(a.data()), operand(b.data()), operand(a.data())};
  std::byte* outputs_one[] = {bytes(one.data()), bytes(greater_one.data())};
  std::byte* outputs_three[] = {bytes(three.data()), bytes(greater_three.data())};
  run_fused(sample.program, Shape{300000}, inputs, outputs_one);
  set_threads(3);
  run_fused(sample.program, Shape{300000}, inputs, outputs_three);
  set_threads(1);
  EXPECT_EQ(one, three);
  EXPECT_EQ(greater_one, greater_three);
}

// A fused chain and reduction equal the two run one after the other, for any cut into blocks.
TEST(fused_reduce, every_op_over_any_axes) {
  FusedProgram program{
      {{float32}, {float32}}, {step("multiply", float32, {0, 1}), step("subtract", float32, {2, 1})}, {3}};
  for (const Shape& shape : {Shape{}, Shape{70000}, Shape{200000, 3}, Shape{3, 100000}, Shape{5, 6000, 7},
                             Shape{60, 50, 40}, Shape{2, 1, 9000}, Shape{0, 4}, Shape{4, 0}}) {
    const auto x = testing::random_values<float>(shape.elements(), 1),
               y = testing::random_values<float>(
                   shape.ndim() == 0 || shape.elements() == 0 ? 4 : shape.back(), 2);
    std::vector<std::int64_t> dense(shape.size(), 1), row(shape.size(), 0);
    for (std::size_t d = shape.size(); d-- > 1;) dense[d - 1] = dense[d] * shape[d];
    if (!row.empty()) row.back() = 1;
    const FusedOperand inputs[] = {operand(x.data(), dense), operand(y.data(), row)};
    std::vector<float> chain(x.size());
    std::byte* whole[] = {bytes(chain.data())};
    run_fused(program, shape, inputs, whole);
    for (int mask = 0; mask < (1 << shape.ndim()); ++mask) {
      std::vector<int> axes;
      std::int64_t places = 1;
      for (int d = 0; d < shape.ndim(); ++d) {
        if ((mask >> d) & 1)
          axes.push_back(d);
        else
          places *= shape[d];
      }
      for (const auto kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::any,
                              ReduceKind::all, ReduceKind::count_nonzero}) {
        std::vector<float> expected(places), got(expected.size());  // room for any result type
        reduce(kind, float32, chain.data(), shape, axes, expected.data());
        run_fused_reduce(program, shape, inputs, kind, axes, bytes(got.data()));
        if (kind != ReduceKind::sum) {
          const auto raw = [&](const std::vector<float>& v) {
            return std::string_view(reinterpret_cast<const char*>(v.data()),
                                    v.size() * itemsize(reduce_result(kind, float32)));
          };
          ASSERT_TRUE(raw(got) == raw(expected)) << name(kind) << to_string(shape) << mask;
          continue;
        }
        const double terms =
            static_cast<double>(shape.elements()) / std::max<double>(1, static_cast<double>(places));
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], expected[i], 4e-7 * (1 + terms)) << to_string(shape) << mask;
      }
    }
  }
}

// Runs the chain and reduces its memory, then both at once; the bytes must be the same.
void expect_as_in_two_passes(const FusedProgram& program, const Shape& shape,
                             std::span<const FusedOperand> inputs, Dtype chain_dtype, ReduceKind kind,
                             const std::vector<int>& axes) {
  std::vector<std::byte> chain(static_cast<std::size_t>(shape.elements()) * itemsize(chain_dtype));
  std::byte* whole[] = {chain.data()};
  run_fused(program, shape, inputs, whole);
  std::int64_t places = 1;
  for (int d = 0; d < shape.ndim(); ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) places *= shape[d];
  const auto size = static_cast<std::size_t>(places) * itemsize(reduce_result(kind, chain_dtype));
  std::vector<std::byte> expected(size), got(size);
  reduce(kind, chain_dtype, chain.data(), shape, axes, expected.data());
  for (const int team : {1, 3}) {
    set_threads(team);
    run_fused_reduce(program, shape, inputs, kind, axes, got.data());
    set_threads(1);
    ASSERT_TRUE(got == expected) << name(kind) << to_string(shape) << " axes " << axes.size() << " from "
                                 << axes[0] << ", threads " << team;
  }
}

TEST(fused_reduce, one_element_anywhere_decides_any_and_all) {
  const FusedProgram program{{{float32}}, {step("isnan", float32, {0})}, {1}};
  const FusedProgram negated{
      {{float32}}, {step("isnan", float32, {0}), step("logical_not", bool_, {1})}, {2}};
  for (const Shape& shape : {Shape{140000}, Shape{20, 5000}, Shape{5000, 20}, Shape{3, 3000, 5}})
    for (const std::int64_t place : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2999},
                                     shape.elements() / 2, shape.elements() - 1}) {
      std::vector<float> x(static_cast<std::size_t>(shape.elements()), 1.0f);
      if (place >= 0) x[static_cast<std::size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
      const FusedOperand inputs[] = {operand(x.data())};
      for (const auto& axes : std::vector<std::vector<int>>{{0}, {shape.ndim() - 1}, {0, 1}, {0, 1, 2}}) {
        if (axes.back() >= shape.ndim() || axes.size() > shape.size()) continue;
        for (const auto kind : {ReduceKind::any, ReduceKind::all}) {
          expect_as_in_two_passes(program, shape, inputs, bool_, kind, axes);
          expect_as_in_two_passes(negated, shape, inputs, bool_, kind, axes);
        }
      }
    }
}

template <class T> void expect_extremes_of_numbers() {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto dtype = dtype_of<T>();
  const FusedProgram program{
      {{dtype}, {dtype}}, {step("isnan", dtype, {0}), step("where", dtype, {2, 1, 0})}, {3}};
  for (const Shape& shape :
       {Shape{1}, Shape{15}, Shape{70001}, Shape{200000}, Shape{3, 70001}, Shape{300, 33}, Shape{5, 7, 900}})
    for (const int nan_every : {0, 1, 1000}) {
      auto x = testing::random_values<T>(shape.elements(), 3);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (nan_every != 0 && i % static_cast<std::size_t>(nan_every) == 0) x[i] = nan;
      if (x.size() > 20) x[17] = inf, x[x.size() - 3] = -inf;
      for (const T instead : {-inf, inf, T(0)}) {
        const std::vector<std::int64_t> nowhere(shape.size(), 0);
        const FusedOperand inputs[] = {operand(x.data()), operand(&instead, nowhere)};
        for (const auto kind : {ReduceKind::max, ReduceKind::min})
          for (int d = 0; d <= shape.ndim(); ++d) {
            std::vector<int> axes{d};
            if (d == shape.ndim()) axes.resize(shape.size()), std::iota(axes.begin(), axes.end(), 0);
            expect_as_in_two_passes(program, shape, inputs, dtype, kind, axes);
          }
      }
    }
}
TEST(fused_reduce, extremes_of_what_is_not_nan) {
  expect_extremes_of_numbers<float>();
  expect_extremes_of_numbers<double>();
}

// Sums of conj(a) b, and of b conj(a), against sums in long double; the bits do not depend on threads.
template <class C> void expect_conjugate_products() {
  using R = typename C::value_type;
  const auto dtype = dtype_of<C>();
  for (const Shape& shape :
       {Shape{1}, Shape{3}, Shape{33}, Shape{511}, Shape{1025}, Shape{140001}, Shape{30, 77}}) {
    const auto a = testing::random_values<C>(shape.elements(), 5),
               b = testing::random_values<C>(shape.elements(), 6);
    std::complex<long double> sum = 0;
    long double terms = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::complex<long double> x(a[i].real(), a[i].imag()), y(b[i].real(), b[i].imag());
      sum += std::conj(x) * y, terms += std::abs(x) * std::abs(y);
    }
    std::vector<int> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    const FusedOperand inputs[] = {operand(a.data()), operand(b.data())};
    for (const auto& factors : {std::pair{2, 1}, std::pair{1, 2}}) {
      const FusedProgram program{
          {{dtype}, {dtype}},
          {step("conj", dtype, {0}), step("multiply", dtype, {factors.first, factors.second})},
          {3}};
      C got[2];
      for (const int team : {1, 3}) {
        set_threads(team);
        run_fused_reduce(program, shape, inputs, ReduceKind::sum, axes, bytes(&got[team / 3]));
        set_threads(1);
      }
      EXPECT_EQ(got[0], got[1]) << to_string(shape);
      const std::complex<long double> found(got[0].real(), got[0].imag());
      EXPECT_LE(std::abs(found - sum), 40 * std::numeric_limits<R>::epsilon() * terms) << to_string(shape);
    }
  }
}
TEST(fused_reduce, conjugate_products) {
  expect_conjugate_products<std::complex<float>>();
  expect_conjugate_products<std::complex<double>>();
}

}  // namespace
}  // namespace tessera::kernels
