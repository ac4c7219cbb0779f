// Contractions, convolutions, Fourier transforms.
#include <tessera/fft.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {
namespace {

// The dims of both operands that belong together.
struct Pairs {
  std::vector<int> left, right;
};

std::vector<int> checked(const OpCall& s, const std::vector<std::int64_t>& numbers, int ndim) {
  std::vector<int> dims;
  for (const auto d : numbers) {
    if (d < 0 || d >= ndim || std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end())
      s.refuse("dim " + std::to_string(d) + " of an operand with " + std::to_string(ndim) + " dims");
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

// Pairs of the short form, name = [..] x [..], or of #stablehlo.dot's two lists.
Pairs pairs_of(const OpCall& s, const char* short_name, const char* left, const char* right) {
  std::vector<std::int64_t> a, b;
  if (const Attribute* both = s.find(short_name)) {
    if (both->items.size() != 2) s.refuse(std::string(short_name) + " is written [dims] x [dims]");
    a = integers_of(s, both->items[0]), b = integers_of(s, both->items[1]);
  } else if (const Attribute* numbers = s.find("dot_dimension_numbers")) {
    if (const Attribute* found = numbers->find(left)) a = integers_of(s, *found);
    if (const Attribute* found = numbers->find(right)) b = integers_of(s, *found);
  }
  Pairs pairs{checked(s, a, s.x[0].ndim()), checked(s, b, s.x[1].ndim())};
  if (pairs.left.size() != pairs.right.size())
    s.refuse(std::string(short_name) + " has lists of different lengths");
  for (std::size_t i = 0; i < pairs.left.size(); ++i)
    if (s.x[0].shape()[static_cast<std::size_t>(pairs.left[i])] !=
        s.x[1].shape()[static_cast<std::size_t>(pairs.right[i])])
      s.refuse(std::string(short_name) + ": extents " +
               std::to_string(s.x[0].shape()[static_cast<std::size_t>(pairs.left[i])]) + " and " +
               std::to_string(s.x[1].shape()[static_cast<std::size_t>(pairs.right[i])]));
  return pairs;
}

// Batch dims first, then the rest of a, then that of b.
Array contracted(const OpCall& s, const Array& a, const Array& b, const Pairs& batch, const Pairs& summed) {
  if (a.ndim() + b.ndim() > 50) s.refuse("operands with more than 50 dims together");
  char next = 'a';
  const auto letter = [&next] {
    const char c = next;
    next = next == 'z' ? 'A' : static_cast<char>(next + 1);
    return c;
  };
  std::string left(static_cast<std::size_t>(a.ndim()), ' '), right(static_cast<std::size_t>(b.ndim()), ' '),
      result;
  for (const auto* pairs : {&batch, &summed})
    for (std::size_t i = 0; i < pairs->left.size(); ++i) {
      char& at = left[static_cast<std::size_t>(pairs->left[i])];
      char& beside = right[static_cast<std::size_t>(pairs->right[i])];
      if (at != ' ' || beside != ' ') s.refuse("a dim is named twice");
      at = beside = letter();
      if (pairs == &batch) result += at;
    }
  for (auto* names : {&left, &right})
    for (char& c : *names)
      if (c == ' ') result += c = letter();
  const bool is_matmul = batch.left.empty() && summed.left.size() == 1 && a.ndim() == 2 && b.ndim() == 2 &&
                         summed.left[0] == 1 && summed.right[0] == 0;
  if (is_matmul) return matmul(a, b);
  return einsum_of(left + "," + right + "->" + result, {a, b});
}

// Products of narrower numbers are added in the result's dtype.
void widen(Array& a, Array& b, Dtype to) {
  const bool is_wider = is_complex(to) || itemsize(to) >= itemsize(a.dtype());
  const Dtype common = is_wider ? to : itemsize(a.dtype()) >= itemsize(b.dtype()) ? a.dtype() : b.dtype();
  a = astype(a, common), b = astype(b, common);
}

Arrays dot_general(OpCall& s) {
  s.want_operands(2);
  const Pairs batch = pairs_of(s, "batching_dims", "lhs_batching_dimensions", "rhs_batching_dimensions");
  const Pairs summed =
      pairs_of(s, "contracting_dims", "lhs_contracting_dimensions", "rhs_contracting_dimensions");
  Array a = s.x[0], b = s.x[1];
  widen(a, b, s.type().dtype);
  return {astype(contracted(s, a, b, batch, summed), s.type().dtype)};
}

Arrays dot(OpCall& s) {
  s.want_operands(2);
  if (s.x[0].ndim() < 1 || s.x[1].ndim() < 1) s.refuse("takes vectors and matrices");
  const Pairs summed{{s.x[0].ndim() - 1}, {0}};
  if (s.x[0].shape().back() != s.x[1].shape()[0]) s.refuse("extents that do not match");
  Array a = s.x[0], b = s.x[1];
  widen(a, b, s.type().dtype);
  return {astype(contracted(s, a, b, {}, summed), s.type().dtype)};
}

// ---- convolution ----

// [b, f, 0, 1]: for tessera's order (first, second, spatial...) the dims of the operand.
std::vector<int> order_of(const OpCall& s, const Attribute& numbers, const char* first, const char* second) {
  const auto ndim = numbers.items.size();
  std::vector<int> order(ndim, -1);
  for (std::size_t d = 0; d < ndim; ++d) {
    const auto& item = numbers.items[d];
    std::size_t place = ndim;
    if (item.text == first)
      place = 0;
    else if (item.text == second)
      place = 1;
    else if (item.kind == Attribute::Kind::number && item.text.size() < 3)
      place = 2 + static_cast<std::size_t>(std::stoi(item.text));
    if (place >= ndim || order[place] >= 0) s.run.refuse(numbers.place, s.op.name + ": dim_numbers");
    order[place] = static_cast<int>(d);
  }
  return order;
}

struct Window {
  std::vector<std::int64_t> strides, padding, base, dilation;
  std::vector<int> reversed;  // dims of (features, channels, taps...)
};

Window window_of(const OpCall& s, std::size_t spatial) {
  Window w;
  const Attribute* window = s.find("window");
  const auto read = [&](const char* short_name, const char* name, std::int64_t otherwise, std::size_t count) {
    const Attribute* found = window != nullptr ? window->find(short_name) : s.find(name);
    auto values = found != nullptr ? integers_of(s, *found) : std::vector<std::int64_t>(count, otherwise);
    if (values.size() != count)
      s.refuse(std::string(short_name) + " has " + std::to_string(values.size()) + " numbers");
    return values;
  };
  w.strides = read("stride", "window_strides", 1, spatial);
  w.padding = read("pad", "padding", 0, 2 * spatial);
  w.base = read("lhs_dilate", "lhs_dilation", 1, spatial);
  w.dilation = read("rhs_dilate", "rhs_dilation", 1, spatial);
  const Attribute* reverse = window != nullptr ? window->find("reverse") : s.find("window_reversal");
  if (reverse != nullptr)
    for (std::size_t d = 0; d < reverse->items.size() && d < spatial; ++d)
      if (reverse->items[d].text == "true" || reverse->items[d].text == "1")
        w.reversed.push_back(static_cast<int>(d) + 2);
  constexpr std::int64_t most = 1 << 30;
  for (const auto* values : {&w.strides, &w.base, &w.dilation})
    for (const auto n : *values)
      if (n < 1 || n > most) s.refuse("a stride or dilation of " + std::to_string(n));
  for (const auto n : w.padding)
    if (n < -most || n > most) s.refuse("a padding of " + std::to_string(n));
  return w;
}

Array convolved(const OpCall& s, const Array& x, const Array& kernel, const Window& w, int groups,
                int batch_groups);

// No spatial dims: one of extent 1.
Array without_space(const OpCall& s, const Array& x, const Array& kernel, int groups, int batch_groups) {
  const Window w{{1}, {0, 0}, {1}, {1}, {}};
  return squeeze(convolved(s, expand_dims(x, 2), expand_dims(kernel, 2), w, groups, batch_groups), {2});
}

Array convolved(const OpCall& s, const Array& x, const Array& kernel, const Window& w, int groups,
                int batch_groups) {
  const std::size_t spatial = w.strides.size();
  if (spatial == 0) return without_space(s, x, kernel, groups, batch_groups);
  ConvOptions options;
  std::vector<std::int64_t> extents{x.shape()[0] / batch_groups, kernel.shape()[0]};
  bool is_empty = x.size() == 0 || kernel.size() == 0;
  for (std::size_t d = 0; d < spatial; ++d) {
    const auto low = std::max<std::int64_t>(w.padding[2 * d], 0),
               high = std::max<std::int64_t>(w.padding[2 * d + 1], 0);
    const auto reach = (kernel.shape()[d + 2] - 1) * w.dilation[d] + 1;
    const auto room = x.shape()[d + 2] + low + high - reach;
    extents.push_back(room < 0 ? 0 : room / w.strides[d] + 1);
    is_empty = is_empty || extents.back() == 0;
    options.strides.push_back(static_cast<int>(w.strides[d]));
    options.padding.emplace_back(static_cast<int>(low), static_cast<int>(high));
    options.dilation.push_back(static_cast<int>(w.dilation[d]));
  }
  if (is_empty) return zeros(Shape(extents), x.dtype());
  options.groups = groups;
  if (batch_groups == 1) return conv(x, kernel, options);
  if (groups != 1) s.refuse("groups of features and of the batch");
  // The batch's groups become groups of channels: image i of group g has the channels g.
  const auto images = x.shape()[0] / batch_groups;
  Shape wide = x.shape();
  wide[0] = images;
  const Array apart = reshape(x, with_dim(wide, 0, batch_groups));
  wide[1] *= batch_groups;
  options.groups = batch_groups;
  return conv(reshape(moveaxis(apart, 0, 1), wide), kernel, options);
}

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> result(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    result[static_cast<std::size_t>(order[d])] = static_cast<int>(d);
  return result;
}

int count_of_groups(const OpCall& s, const char* name) {
  const auto groups = s.integer(name, 1);
  if (groups < 1 || groups > (1 << 30)) s.refuse(std::string(name) + " = " + std::to_string(groups));
  return static_cast<int>(groups);
}

Arrays convolution(OpCall& s) {
  s.want_operands(2);
  const Attribute* numbers = s.find(s.has("dim_numbers") ? "dim_numbers" : "dimension_numbers");
  if (numbers == nullptr || numbers->items.size() != 3) s.refuse("dim_numbers are written [..]x[..]->[..]");
  const auto ndim = static_cast<std::size_t>(s.x[0].ndim());
  for (const auto& item : numbers->items)
    if (item.items.size() != ndim || s.x[1].shape().size() != ndim || ndim < 2)
      s.refuse("dim_numbers for another number of dims");
  const Window w = window_of(s, ndim - 2);
  const int batch_groups = count_of_groups(s, "batch_group_count"),
            groups = count_of_groups(s, "feature_group_count");
  Array x = transposed(s.x[0], order_of(s, numbers->items[0], "b", "f"));
  Array kernel = transposed(s.x[1], order_of(s, numbers->items[1], "o", "i"));
  if (x.shape()[0] % batch_groups != 0)
    s.refuse("a batch of " + std::to_string(x.shape()[0]) + " in " + std::to_string(batch_groups) +
             " groups");
  const Dtype to = s.type().dtype;
  x = astype(x, to), kernel = astype(kernel, to);
  if (!w.reversed.empty()) kernel = flip(kernel, w.reversed);
  std::vector<Padding> before{{}, {}};
  for (std::size_t d = 0; d + 2 < ndim; ++d) before.push_back({0, 0, w.base[d] - 1});
  x = padded(x, number_like(0, x), before);
  for (std::size_t d = 0; d + 2 < ndim; ++d)
    before[d + 2] = {std::min<std::int64_t>(w.padding[2 * d], 0),
                     std::min<std::int64_t>(w.padding[2 * d + 1], 0), 0};
  x = padded(x, number_like(0, x), before);
  const Array result = convolved(s, x, kernel, w, groups, batch_groups);
  return {transposed(result, inverse(order_of(s, numbers->items[2], "b", "f")))};
}

// ---- fft ----

Arrays fft_rule(OpCall& s) {
  s.want_operands(1);
  std::string kind = s.word(s.has("type") ? "type" : "fft_type");
  const auto lengths = s.integers(s.has("length") ? "length" : "fft_length");
  const int ndim = s.x[0].ndim();
  if (static_cast<int>(lengths.size()) > ndim) s.refuse("more lengths than dims");
  if (lengths.empty() || s.x[0].size() == 0) s.refuse("an array or a list of lengths without elements");
  fft::FftOptions options;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    options.axes.push_back(ndim - static_cast<int>(lengths.size()) + static_cast<int>(i));
  if (kind == "FFT") return {fft::fftn(s.x[0], options)};
  if (kind == "IFFT") return {fft::ifftn(s.x[0], options)};
  options.s = lengths;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] != s.type().shape[static_cast<std::size_t>(options.axes[i])] && kind == "IRFFT")
      s.refuse("lengths that differ from the result's extents");
  if (kind == "RFFT") return {fft::rfftn(s.x[0], options)};
  if (kind == "IRFFT") return {fft::irfftn(s.x[0], options)};
  s.refuse("no transform " + shown(kind));
}

}  // namespace

void add_products(Rules& rules) {
  rules["stablehlo.dot_general"] = dot_general;
  rules["stablehlo.dot"] = dot;
  rules["stablehlo.convolution"] = convolution;
  rules["stablehlo.fft"] = fft_rule;
}

}  // namespace tessera::stablehlo
